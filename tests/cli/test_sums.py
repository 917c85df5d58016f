"""`estimate --sum`: sets and ranges of values, each with its own error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sottovoce.cli import run
from tests.cli.helpers import COLOURS, SURVEY, Command, refused, write_csv


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A plan about colours and ages, and its reports."""
    folder = tmp_path_factory.mktemp("heard")
    survey = folder / "survey.toml"
    survey.write_text(SURVEY.replace('["colour"]', '["colour", "age"]'))
    ages = np.random.default_rng(1).integers(18, 98, len(COLOURS)).tolist()
    people = write_csv(folder / "people.csv", colour=COLOURS, age=ages)
    plan, reports = folder / "plan.json", folder / "reports.parquet"
    assert run(["plan", str(survey), "-o", str(plan)]) == 0
    assert run(["whisper", str(plan), str(people), "-o", str(reports), "--seed", "1", "-q"]) == 0
    return plan, reports


def test_ranges_and_lists_have_errors_of_their_own(
    sottovoce: Command, heard: tuple[Path, Path]
) -> None:
    asked = ("--sum", "age:18..37, 48 to 57", "--sum", "colour:red,grey,blue", "--json")
    body = json.loads(sottovoce("estimate", *heard, *asked).out)
    ages, colours = body["sums"]
    assert ages["values"] == ["18 to 27", "28 to 37", "48 to 57"]
    assert abs(ages["frequency"] - 3 / 8) < 5 * ages["std_error"]
    assert colours["attributes"] == ["colour"]
    assert not colours["is_bound"]
    assert colours["low"] < colours["frequency"] < colours["high"]
    rows = {row["value"]: row for row in body["tables"][0]["rows"]}
    # of answers that sum to one, all but one err as that one does, and not as their variances add
    variances = sum(rows[name]["std_error"] ** 2 for name in ("red", "grey", "blue"))
    assert colours["std_error"] == pytest.approx(rows["green"]["std_error"], rel=1e-6)
    assert colours["std_error"] ** 2 < 0.6 * variances


def test_sums_are_printed_and_repaired(sottovoce: Command, heard: tuple[Path, Path]) -> None:
    repaired = ("--postprocess", "norm-sub", "--level", 0.9)
    outcome = sottovoce("estimate", *heard, "--sum", "colour:red,blue", *repaired)
    assert outcome.code == 0
    assert "bias" in outcome.out
    assert "parametric bootstrap through the repair" in outcome.out
    assert "90% interval" in outcome.out
    assert "colour:red,blue" in outcome.out
    body = json.loads(
        sottovoce("estimate", *heard, "--sum", "colour:red,blue", *repaired, "--json").out
    )
    assert body["sums"][0]["low"] >= 0
    assert all("bias" in row for row in body["tables"][0]["rows"])
    plain = json.loads(sottovoce("estimate", *heard, "--json").out)
    assert "sums" not in plain


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("age:18..36", "'age' is told in bins, and none ends with 36"),
        ("age:20", "none starts with 20"),
        ("age:28..27", "must not end before it starts"),
        ("age", "must be 'attribute:value,value'"),
        ("hue:red", "attribute 'hue' is not in the schema"),
        ("colour:pink", "colour"),
        ("colour:red;colour:blue", "named twice"),
        ("colour:red;age:18..27", "was not asked for"),
    ],
)
def test_wrong_sums_are_refused(
    sottovoce: Command, heard: tuple[Path, Path], asked: str, words: str
) -> None:
    outcome = sottovoce("estimate", *heard, "--sum", asked)
    refused(outcome, words)


def test_tables_of_several_attributes_are_summed_over_products(
    sottovoce: Command, tmp_path: Path
) -> None:
    survey = tmp_path / "survey.toml"
    question = '[question]\nkind = "marginals"\nup_to = 2\nmethod = "METHOD"\n'
    head = SURVEY.partition("[question]")[0]
    ages = np.random.default_rng(1).integers(18, 98, len(COLOURS)).tolist()
    people = write_csv(tmp_path / "people.csv", colour=COLOURS, age=ages)
    plan, reports = tmp_path / "plan.json", tmp_path / "reports.parquet"
    for method, is_bound in (("fc", False), ("latent", True)):
        survey.write_text(head + question.replace("METHOD", method))
        assert sottovoce("plan", survey, "-o", plan).code == 0
        assert sottovoce("whisper", plan, people, "-o", reports, "--seed", 1).code == 0
        asked = ("--sum", "colour:red,green;age:18..57")
        body = json.loads(sottovoce("estimate", plan, reports, *asked, "--json").out)
        (found,) = body["sums"]
        assert found["attributes"] == ["colour", "age"]
        assert len(found["values"]) == 8
        assert found["is_bound"] is is_bound
        assert abs(found["frequency"] - 0.4) < 6 * found["std_error"]
        printed = sottovoce("estimate", plan, reports, *asked).out
        assert ("at most" in printed) is is_bound
