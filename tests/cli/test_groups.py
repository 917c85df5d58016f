"""`sottovoce groups` and `sottovoce change`: what they print, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from tests.cli.helpers import Command, refused

PEOPLE = 6000
SCHEMA = sv.Schema(
    smoker=sv.Boolean(), drinks=sv.Categorical(["never", "often"]), age=sv.Ordinal(18, 57, bins=4)
)


def people(often: float) -> dict[str, Any]:
    draws = np.random.default_rng(1)
    smoker = draws.random(PEOPLE) < 0.4
    drinks = np.where(draws.random(PEOPLE) < np.where(smoker, often, 0.1), "often", "never")
    return {
        "smoker": smoker,
        "drinks": drinks.astype(object),
        "age": np.where(smoker, draws.integers(18, 38, PEOPLE), draws.integers(18, 58, PEOPLE)),
    }


def saved(folder: Path, name: str, often: float, wave: int) -> tuple[Path, Path]:
    """The plan and the aggregate of one wave."""
    question = sv.Marginals(up_to=2, method="marg-ps")
    plan = sv.plan(SCHEMA, question, epsilon=4.0, people=PEOPLE + wave)
    total = sv.Aggregate(plan).add(sv.simulate(plan, people(often), seed=wave))
    files = folder / f"{name}.json", folder / f"{name}.sva"
    files[0].write_text(plan.to_json())
    files[1].write_bytes(total.to_bytes())
    return files


@pytest.fixture
def wave(tmp_path: Path) -> tuple[Path, Path]:
    return saved(tmp_path, "spring", 0.6, 0)


def test_groups_are_compared(sottovoce: Command, wave: tuple[Path, Path]) -> None:
    done = sottovoce("groups", *wave, "drinks", "--by", "smoker", "-q")
    assert done.code == 0
    for words in ("drinks, among smoker: no", "drinks, among smoker: yes", "drinks, difference"):
        assert words in done.out
    one = ("--group", "smoker:yes; age:18..37", "--group", "smoker:no", "--json", "-q")
    told = json.loads(sottovoce("groups", *wave, "drinks", *one).out)
    assert [len(table["rows"]) for table in told["tables"]] == [2, 2, 2]
    often = told["tables"][2]["rows"][1]
    assert often["low"] < 0.5 < often["high"]
    assert "among smoker: yes, age: 18 to 27 or 28 to 37" in told["tables"][0]["remark"]
    assert told["averages"] == []


def test_numbers_have_averages(sottovoce: Command, wave: tuple[Path, Path]) -> None:
    done = sottovoce("groups", *wave, "age", "-q")
    assert done.code == 0
    assert "everybody" in done.out
    assert "if even" in done.out
    told = json.loads(sottovoce("groups", *wave, "age", "--by", "smoker", "--json", "-q").out)
    kinds = [(each["average"], each["group"]["smoker"]) for each in told["averages"]]
    assert kinds == [(kind, side) for side in (False, True) for kind in ("mean", "median")]
    smokers = told["averages"][2]
    assert smokers["low"] < smokers["even_low"] < smokers["value"] < smokers["even_high"] < 38
    plain = sottovoce("groups", *wave, "drinks", "-q")  # without a group: its table
    assert "often" in plain.out


def test_what_cannot_be_grouped_is_refused(sottovoce: Command, wave: tuple[Path, Path]) -> None:
    asked = ("groups", *wave, "drinks", "-q")
    refused(sottovoce(*asked, "--by", "sex"), "by: attribute 'sex' is not in the schema")
    refused(sottovoce(*asked, "--by", "smoker", "--group", "smoker:yes"), "not both")
    refused(sottovoce(*asked, "--group", "smoker"), "group (smoker) must be")
    refused(sottovoce(*asked, "--group", "age:18..30"), "group: 'age' is told in bins")
    refused(sottovoce(*asked, "--group", "drinks:often"), "cannot make the group")
    refused(sottovoce(*asked, "--level", "0"), "level (0.0)")


def test_a_change_between_waves(
    sottovoce: Command, wave: tuple[Path, Path], tmp_path: Path
) -> None:
    later = saved(tmp_path, "autumn", 0.9, 1)
    asked = ("change", *wave, later[1], "--after-plan", later[0], "--marginal", "drinks", "-q")
    done = sottovoce(*asked)
    assert done.code == 0
    assert "drinks: what changed" in done.out
    assert "Note" not in done.out
    told = json.loads(sottovoce(*asked, "--json").out)
    often = told["tables"][0]["rows"][1]
    assert often["low"] < 0.12 < often["high"]
    assert often["low"] > 0
    narrow = json.loads(sottovoce(*asked, "--same-people", "--json").out)["tables"][0]["rows"][1]
    assert often["low"] < narrow["low"] < narrow["high"] < often["high"]


def test_waves_of_one_plan_are_told_what_a_device_remembers(
    sottovoce: Command, wave: tuple[Path, Path], tmp_path: Path
) -> None:
    plan = sv.Plan.from_json(wave[0].read_bytes())
    other = tmp_path / "others.sva"
    reports = sv.simulate(plan, people(0.6), seed=9)
    other.write_bytes(sv.Aggregate(plan).add(reports).to_bytes())
    done = sottovoce("change", *wave, other, "-q")
    assert done.code == 0
    assert "both waves are of one plan, so the people must be others" in done.out
    refused(sottovoce("change", *wave, wave[1], "-q"), "are the same reports")
    refused(sottovoce("change", *wave, other, "--same-people", "-q"), "a plan of its own")


def test_a_change_leaves_out_what_a_wave_was_not_asked(
    sottovoce: Command, wave: tuple[Path, Path], tmp_path: Path
) -> None:
    """The only person of a wave is asked about one pair; a change of the rest is not made up."""
    plan = sv.Plan.from_json(wave[0].read_bytes())
    few, one = tmp_path / "few.sva", {name: column[:1] for name, column in people(0.6).items()}
    total = sv.Aggregate(plan).add(sv.simulate(plan, one, seed=9))
    few.write_bytes(total.to_bytes())
    unasked = [names for names, table in total.estimate().tables.items() if table.unasked]
    done = sottovoce("change", *wave, few, "--json", "-q")
    assert done.err.count("Left out, as not asked in both") == len(unasked) > 0
    told = json.loads(done.out)
    assert len(told["tables"]) == len(total.estimate().tables) - len(unasked) > 0


def test_who_gave_no_answer_is_in_no_average(sottovoce: Command, tmp_path: Path) -> None:
    schema = sv.Schema(age=sv.Ordinal(-1, 59, bins=[-1, 0, 20, 40], other=-1), car=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=PEOPLE)
    crowd = {"age": np.where(np.arange(PEOPLE) % 2, -1, 50), "car": np.arange(PEOPLE) % 3 == 0}
    total = sv.Aggregate(plan).add(sv.simulate(plan, crowd, seed=1))
    made, heard = tmp_path / "plan.json", tmp_path / "total.sva"
    made.write_text(plan.to_json())
    heard.write_bytes(total.to_bytes())
    mean, median = json.loads(sottovoce("groups", made, heard, "age", "--json", "-q").out)[
        "averages"
    ]
    assert mean["without"] == median["without"] == -1
    assert mean["low"] < 50 < mean["high"]
    assert mean["low"] > 30  # it would be 25 with them
    assert "everybody, without -1" in sottovoce("groups", made, heard, "age", "-q").out
