"""The commands that use marginals, on reports in a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.protocol.report_files import write_stream
from tests.cli.helpers import Command, Files, refused

SCHEMA = sv.Schema(
    smoker=sv.Boolean(), drinker=sv.Boolean(), region=sv.Categorical(["N", "S", "W"])
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plan and the reports of people half of whom drink as they smoke."""
    where = tmp_path_factory.mktemp("analysis")
    draws = np.random.default_rng(1)
    smoker = draws.random(8000) < 0.4
    drinker = np.where(draws.random(8000) < 0.5, smoker, draws.random(8000) < 0.5)
    people = {
        "smoker": smoker,
        "drinker": drinker,
        "region": np.array(["N", "S", "W"], object)[draws.integers(0, 3, 8000)],
    }
    for name, method in (("", "inp-ht"), ("calm-", "calm")):
        plan = sv.plan(SCHEMA, sv.Marginals(up_to=2, method=method), epsilon=2.0, people=8000)
        (where / f"{name}plan.json").write_bytes(plan.to_json().encode())
        write_stream(where / f"{name}reports.parquet", [sv.simulate(plan, people, seed=1)])
    return where


def test_associate(sottovoce: Command, folder: Path) -> None:
    files = folder / "plan.json", folder / "reports.parquet"
    told = sottovoce("associate", *files)
    assert (told.code, told.err) == (0, "")
    lines = told.out.splitlines()
    heads = ["attributes", "V", "95%", "interval", "statistic", "degrees", "p", "adjusted"]
    assert lines[0].split() == heads
    assert lines[1].startswith("smoker - drinker")  # the clearest first
    assert lines[-1] == "8,000 people; null law: asymptotic"
    found = json.loads(sottovoce("associate", *files, "--json").out)
    assert [row["attributes"] for row in found] == [
        ["smoker", "drinker"],
        ["smoker", "region"],
        ["drinker", "region"],
    ]
    assert found[0]["p_value"] < 1e-6
    assert found[1]["p_value"] > 1e-3
    assert found[0]["adjusted"] >= found[0]["p_value"]
    assert 0.3 < found[0]["cramers_v"] < 0.7
    assert 0 < found[0]["low"] < found[0]["cramers_v"] < found[0]["high"]
    assert 0 < found[0]["information_low"] < found[0]["information"] < found[0]["information_high"]
    one = json.loads(
        sottovoce("associate", *files, "--pair", "region,smoker", "--null", "naive", "--json").out
    )
    assert (len(one), one[0]["attributes"], one[0]["method"]) == (1, ["region", "smoker"], "naive")
    assert "do not rely on it" in sottovoce("associate", *files, "--null", "naive").out


def test_associate_by_simulation(sottovoce: Command, folder: Path) -> None:
    files = folder / "calm-plan.json", folder / "calm-reports.parquet"
    options = "--null", "simulation", "--replicates", 19, "--pair", "smoker, drinker", "--json"
    told = sottovoce("associate", *files, *options)
    assert json.loads(told.out)[0]["method"] == "simulation"
    assert json.loads(told.out)[0]["p_value"] < 0.05
    assert told == sottovoce("associate", *files, *options, "--seed", 1)


def test_tree(sottovoce: Command, folder: Path, tmp_path: Path) -> None:
    files = folder / "plan.json", folder / "reports.parquet"
    told = sottovoce("tree", *files, "--root", "smoker", "--plot", tmp_path / "tree.svg")
    assert (told.code, told.err) == (0, "")
    lines = told.out.splitlines()
    assert lines[0] == "smoker"
    assert any("── drinker" in line for line in lines)
    assert lines[-1] == f"Drawn: {tmp_path / 'tree.svg'}"
    assert (tmp_path / "tree.svg").read_text().startswith("<svg")
    found = json.loads(sottovoce("tree", *files, "--json").out)
    assert (found["people"], len(found["edges"])) == (8000, 2)
    tested = json.loads(sottovoce("associate", *files, "--json").out)
    p_values = {frozenset(row["attributes"]): row["p_value"] for row in tested}
    for edge in found["edges"]:
        assert edge["p_value"] == p_values[frozenset((edge["parent"], edge["child"]))]
        assert edge["is_clear"] == (edge["adjusted"] <= 0.05)
    assert found["total"] == pytest.approx(sum(edge["information"] for edge in found["edges"]))


def test_synthesize(sottovoce: Command, folder: Path, tmp_path: Path) -> None:
    files = folder / "plan.json", folder / "reports.parquet"
    made = tmp_path / "people.csv"
    told = sottovoce("synthesize", *files, "--people", 2000, "--seed", 1, "-o", made)
    assert (told.code, told.out) == (0, f"2,000 synthetic people written to {made}\n")
    records = pd.read_csv(made)
    assert list(records.columns) == list(SCHEMA)
    assert set(records["region"]) == {"N", "S", "W"}
    assert np.corrcoef(records["smoker"], records["drinker"])[0, 1] > 0.3
    # made-up people can be asked as real ones are
    again = sottovoce("whisper", files[0], made, "-o", tmp_path / "again.parquet", "--seed", 1)
    assert again.out == f"2,000 reports written to {tmp_path / 'again.parquet'}\n"
    column = tmp_path / "some.parquet"
    told = sottovoce(
        "synthesize",
        *files,
        "--people",
        50,
        "--seed",
        1,
        "-o",
        column,
        "--attributes",
        "region,smoker",
        "--json",
    )
    figures = {"people": 50, "attributes": ["region", "smoker"], "output": str(column)}
    assert json.loads(told.out) == figures | {"never_asked": []}
    assert pd.read_parquet(column).shape == (50, 2)


@pytest.mark.parametrize("name", ["associate", "tree", "synthesize"])
def test_help_shows_an_example(sottovoce: Command, name: str) -> None:
    assert f"sottovoce {name} plan.json reports.parquet" in sottovoce(name, "--help").out


def test_bad_input_is_one_line(
    sottovoce: Command, folder: Path, files: Files, tmp_path: Path
) -> None:
    good = folder / "plan.json", folder / "reports.parquet"
    made = "--people", 5, "--seed", 1, "-o"
    refused(sottovoce("associate", *good, "--pair", "smoker"), "must be two attributes")
    refused(sottovoce("associate", *good, "--pair", "smoker,tall"), "'tall' is not in the plan")
    refused(sottovoce("associate", *good, "--null", "magic"), "null (magic)")
    refused(
        sottovoce("associate", *good, "--null", "simulation", "--replicates", 1), "replicates (1)"
    )
    refused(
        sottovoce("associate", files.plan, files.reports),
        "its question must be marginals, not frequencies",
    )
    refused(sottovoce("associate", good[0], folder / "calm-reports.parquet"), "another plan")
    refused(sottovoce("associate", good[0], folder / "none.parquet"), "none.parquet")
    refused(sottovoce("tree", *good, "--root", "tall"), "'tall' is not in the plan")
    refused(sottovoce("tree", *good, "--plot", tmp_path / "tree.doc"), "must end in one of")
    refused(sottovoce("tree", *good, "--id", "00"), "its hash is not the id expected")
    refused(
        sottovoce("synthesize", *good, *made, tmp_path / "people.doc"), "must end in one of .csv"
    )
    refused(
        sottovoce("synthesize", *good, *made, tmp_path / "none" / "people.csv"),
        "folder that exists",
    )
    refused(
        sottovoce("synthesize", *good, *made, tmp_path / "a.csv", "--attributes", "tall"), "'tall'"
    )
    refused(
        sottovoce("synthesize", *good, "--people", 0, "--seed", 1, "-o", tmp_path / "a.csv"),
        "people (0)",
    )
    refused(sottovoce("synthesize", *good, "-o", tmp_path / "a.csv", "--seed", 1), "--people")
    assert not (tmp_path / "a.csv").exists()


def test_what_was_never_asked_is_said(sottovoce: Command, tmp_path: Path) -> None:
    question = sv.Marginals(up_to=2, method="calm", views=[[0, 1], [2]])
    plan = sv.plan(SCHEMA, question, epsilon=2.0, people=600)
    people = {
        "smoker": [True, False] * 300,
        "drinker": [True, False] * 300,
        "region": ["N", "S", "W"] * 200,
    }
    files = tmp_path / "plan.json", tmp_path / "reports.parquet"
    files[0].write_bytes(plan.to_json().encode())
    write_stream(files[1], [sv.simulate(plan, people, seed=1)])
    found = sottovoce("associate", *files, "--null", "asymptotic").out.splitlines()
    assert found[1].startswith("smoker - drinker")
    assert [line.split(None, 3)[3] for line in found[2:4]] == ["never asked together"] * 2
    refused(sottovoce("associate", *files, "--pair", "region,smoker"), "never asked together")
    assert (
        "never asked together: smoker x region, drinker x region" in sottovoce("tree", *files).out
    )
    table = sottovoce("estimate", *files, "--marginal", "smoker,region")
    assert "never asked: smoker x region" in " ".join(table.out.split())
    told = json.loads(sottovoce("estimate", *files, "--marginal", "smoker,region", "--json").out)
    assert told["tables"][0]["never_asked"] == [["smoker", "region"]]
    made = sottovoce("synthesize", *files, "--people", 5, "--seed", 1, "-o", tmp_path / "made.csv")
    assert "drawn as if independent: smoker x region, drinker x region" in made.out


def test_what_lies_outside_the_tables_is_said(sottovoce: Command, tmp_path: Path) -> None:
    question = sv.Marginals(up_to=2, workload=[["smoker", "drinker"], ["region"]], method="marg-ps")
    plan = sv.plan(SCHEMA, question, epsilon=2.0, people=600)
    people = {
        "smoker": [True, False] * 300,
        "drinker": [True, False] * 300,
        "region": ["N", "S", "W"] * 200,
    }
    files = tmp_path / "plan.json", tmp_path / "reports.parquet"
    files[0].write_bytes(plan.to_json().encode())
    write_stream(files[1], [sv.simulate(plan, people, seed=1)])
    draw = "synthesize", *files, "--people", 5, "--seed", 1, "-o"
    made = sottovoce(*draw, tmp_path / "made.csv")
    assert "drawn as if independent: smoker x region, drinker x region" in made.out
    told = json.loads(sottovoce(*draw, tmp_path / "made.parquet", "--json").out)
    assert told["never_asked"] == [["smoker", "region"], ["drinker", "region"]]
    assert len(pd.read_parquet(tmp_path / "made.parquet")) == 5
    some = sottovoce(*draw, tmp_path / "some.csv", "--attributes", "drinker,smoker")
    assert "never asked" not in some.out
