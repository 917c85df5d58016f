"""``sottovoce amplify``: three numbers beside each other, and one clear error for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from tests.cli.helpers import Command, Outcome, refused

CROWD = ("--size", "64", "--people", "20000", "--delta", "1e-6")
GRR = ("amplify", "--oracle", "grr", *CROWD)


def figures(outcome: Outcome) -> Any:
    assert outcome.code == 0
    return json.loads(outcome.out)


def test_what_shuffling_makes_of_a_local_epsilon(sottovoce: Command) -> None:
    told = sottovoce(*GRR, "--local", "3").out
    assert told.startswith("grr over 64 values, local epsilon 3, 20,000 people, delta 1e-06")
    assert "Against the analyst with all shufflers:  epsilon 3" in told
    found = figures(sottovoce(*GRR, "--local", "3", "--json"))
    assert found["lower"] <= found["upper"] < found["thesis"] < found["local"] == found["colluding"]
    with_fakes = figures(
        sottovoce(*GRR, "--local", "3", "--fakes", "2000", "--colluding", "0.5", "--json")
    )
    assert with_fakes["upper"] < with_fakes["colluding"] < 3
    twice = figures(sottovoce(*GRR, "--local", "3", "--rounds", "2", "--json"))
    assert twice["thesis"] is None
    assert found["upper"] < twice["upper"] < 2 * found["upper"]


def test_solving_for_the_local_epsilon(sottovoce: Command) -> None:
    found = figures(sottovoce(*GRR, "--target", "0.2", "--json"))
    assert found["upper"] <= 0.2
    assert 2 < float(found["requested"]) < 8
    assert figures(sottovoce(*GRR, "--target", "0.2", "--cap", "1", "--json"))["requested"] == "1"
    hashed = ("amplify", "--oracle", "olh", *CROWD, "--target", "0.2", "--option", "hash_bits=6")
    assert "(hash_bits 6)" in sottovoce(*hashed).out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "give --local, or --target, but not both"),
        (("--local", "1", "--target", "1"), "give --local, or --target, but not both"),
        (("--local", "0"), "epsilon (0) must be finite and greater than 0"),
        (("--local", "1", "--fakes", "-1"), "fakes (-1) must lie between 0"),
        (("--local", "1", "--colluding", "2"), "colluding (2.0) must lie between 0 and 1"),
        (("--local", "1", "--rounds", "0"), "rounds (0) must lie between 1"),
        (("--target", "1", "--rounds", "2"), "rounds (2) must be 1 with --target"),
        (("--local", "1", "--option", "theta"), "option (theta) must be KEY=VALUE"),
        (("--local", "1", "--delta", "1"), "delta (1.0) must be greater than 0 and less than 1"),
        (("--local", "1", "--oracle", "she"), "she has no privacy blanket"),
    ],
)
def test_bad_input(sottovoce: Command, given: tuple[str, ...], message: str) -> None:
    refused(sottovoce(*GRR, *given), message)


def test_three_targets_are_searched_for(sottovoce: Command) -> None:
    few = ("--size", "4", "--people", "10000", "--delta", "1e-6")
    found = figures(sottovoce("amplify", "--targets", "0.5,2,4", *few, "--json"))
    assert found["analyst"] <= 0.5
    assert found["colluding"] <= 2
    assert found["local"] <= 4
    assert found["fakes"] > 0
    # without a promise about the others there is little to search
    told = sottovoce("amplify", "--targets", "0.5,0.5,0.5", *few).out
    assert " 0 fakes" in told
    assert "Against the analyst with all shufflers:  epsilon 0.5" in told
    for wrong, word in (
        (("--targets", "1,2"), "three epsilons"),
        (("--targets", "2,1,3"), "must not fall"),
        (("--targets", "1,2,3", "--oracle", "grr"), "targets finds oracle"),
        ((), "--oracle, or --targets"),
    ):
        refused(sottovoce("amplify", *wrong, *CROWD), word)


def test_a_delta_that_allows_too_much_is_noted(sottovoce: Command) -> None:
    asked = ("amplify", "--oracle", "grr", "--size", "16", "--local", "2", "--people", "100")
    told = sottovoce(*asked, "--delta", "0.5", "--json")
    assert "delta (0.5) is above one in the number of people" in told.err
    assert json.loads(told.out)["local"] == 2
    assert sottovoce(*asked, "--delta", "1e-6").err == ""


@pytest.mark.parametrize("seed", [(), ("--seed", 3)])
def test_whispers_of_a_shuffled_plan_come_with_its_fakes(
    sottovoce: Command, tmp_path: Path, seed: tuple[object, ...]
) -> None:
    """As many as estimates take out: else everybody would be counted too often."""
    schema = sv.Schema(drinks=sv.Categorical(["never", "weekly", "daily", "hourly"]))
    plan = sv.plan(
        schema,
        sv.Frequencies("drinks", oracle="grr"),
        epsilon=2,
        people=1000,
        trust="shuffled",
        delta="1e-6",
        fakes=700,
    )
    (tmp_path / "plan.json").write_text(plan.to_json())
    (tmp_path / "people.csv").write_text("drinks\n" + "never\ndaily\n" * 500)
    files = [str(tmp_path / name) for name in ("plan.json", "people.csv", "reports.parquet")]
    told = sottovoce("whisper", *files[:2], "-o", files[2], *seed)
    assert "1,700 reports written" in told.out
    assert "(700 of them fakes, which its shufflers add)" in told.out
    (table,) = json.loads(sottovoce("estimate", files[0], files[2], "--json").out)["tables"]
    assert table["people"] == 1000
    for row, share in zip(table["rows"], (0.5, 0, 0.5, 0), strict=True):
        assert abs(row["frequency"] - share) < 6 * row["std_error"]
