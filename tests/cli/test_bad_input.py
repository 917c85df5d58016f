"""Whatever is wrong: one line, exit code 2, no person's value, and good files stay as they were."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.helpers import Command, Files, refused, write_csv

SECRET = "mauve-4711"


@pytest.mark.parametrize("epsilon", ["0", "nan", "-1.0", "inf", '"much"', "true"])
def test_epsilon_of_a_survey(sottovoce: Command, files: Files, epsilon: str) -> None:
    good = files.plan.read_bytes()
    files.survey.write_text(
        files.survey.read_text().replace("epsilon = 2.0", f"epsilon = {epsilon}")
    )
    refused(sottovoce("plan", files.survey, "-o", files.plan), "epsilon")
    assert files.plan.read_bytes() == good


@pytest.mark.parametrize("command", [("oracles",), ("audit", "--oracle", "grr")])
@pytest.mark.parametrize("epsilon", ["0", "nan", "-1", "much"])
def test_epsilon_of_an_option(sottovoce: Command, command: tuple[str, ...], epsilon: str) -> None:
    refused(sottovoce(*command, "--size", 4, "--epsilon", epsilon), f"epsilon ({epsilon})")


@pytest.mark.parametrize("command", [("oracles",), ("audit", "--oracle", "grr")])
def test_size_one(sottovoce: Command, command: tuple[str, ...]) -> None:
    refused(sottovoce(*command, "--size", 1, "--epsilon", 1), "size (1)")


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ('["red", "green", "blue", "grey"]', '["red"]', "at least 2"),
        ('kind = "categorical"', 'kind = "colourful"', "colourful"),
        ("people = 3000", "people = 0", "people (0)"),
        ("people = 3000\n", "", "people is missing"),
        ("people = 3000", "persons = 3000", "people is missing"),
        ("people = 3000", "people = 3000\nextra = 1", "extra"),
        ("people = 3000", "people = ", "TOML"),
        ('attributes = ["colour"]', 'attributes = ["taste"]', "taste"),
        ('attributes = ["colour"]', 'attributes = "colour"', "attributes"),
        ('kind = "frequencies"', 'kind = "gossip"', "gossip"),
        ('oracle = "grr"', 'oracle = "delphi"', "delphi"),
        ('oracle = "grr"', 'oracle = "grr"\nsplit = "hairs"', "split"),
        ('oracle = "grr"', 'oracle = "grr"\nnonsense = 1', "nonsense"),
        ("[question]", "[schema]\nx = 1\n[question]", "[schema.x]"),
        ("[question]", "[question]\n[question]", "TOML"),
        ("bins = 8", "bins = 1", "bins"),
        ("bins = 8", "bones = 8", "bones"),
    ],
)
def test_surveys(sottovoce: Command, files: Files, before: str, after: str, word: str) -> None:
    text = files.survey.read_text()
    assert before in text
    files.survey.write_text(text.replace(before, after))
    refused(sottovoce("plan", files.survey), word)


@pytest.mark.parametrize("seed", [(), ("--seed", 1)])
@pytest.mark.parametrize("column", ["colour", "age"])
def test_value_outside_the_schema(
    sottovoce: Command, files: Files, seed: tuple[object, ...], column: str
) -> None:
    files.survey.write_text(files.survey.read_text().replace('["colour"]', f'["{column}"]'))
    assert sottovoce("plan", files.survey, "-o", files.plan).code == 0
    good = files.reports.read_bytes()
    people = write_csv(
        files.folder / "bad.csv", **{column: ["red" if column == "colour" else 20] * 2 + [SECRET]}
    )
    outcome = sottovoce("whisper", files.plan, people, "-o", files.reports, *seed)
    refused(outcome, "row 3", repr(column))
    assert SECRET not in outcome.err
    assert files.reports.read_bytes() == good
    assert not list(files.folder.glob(".reports*"))


def test_columns(sottovoce: Command, files: Files) -> None:
    bad = files.folder / "bad.csv"
    target = files.folder / "new.parquet"
    for text, words in (
        ("age\n20\n", ("'colour' is missing",)),
        (f"colour,{SECRET}\nred,1\n", ("column 2 is not an attribute", "colour, age")),
        ("colour,colour\nred,red\n", ("twice",)),
        (f"{SECRET}\nred\n", ("column 1",)),  # no header: its first line is a person
        ("", ("CSV",)),
        ("colour\n", ("nothing to write",)),
        (f"colour,age\nred,20\n{SECRET}\n", ("CSV", "rows of equal length")),
        ("colour,age\nred,20\n,30\n", ("row 2", "'colour'")),
    ):
        bad.write_text(text, encoding="utf-8")
        outcome = sottovoce("whisper", files.plan, bad, "-o", target)
        refused(outcome, *words)
        assert SECRET not in outcome.err
        assert not target.exists()


def test_text_that_is_not_utf8(sottovoce: Command, files: Files) -> None:
    bad = files.folder / "bad.csv"
    bad.write_bytes(b"colour\nr\xffd\n")
    refused(sottovoce("whisper", files.plan, bad, "-o", files.reports), "UTF-8")
    words = files.folder / "words.txt"
    words.write_bytes(b"\xff\n")
    refused(sottovoce("estimate", files.plan, files.reports, "--candidates", words), "UTF-8")
    files.survey.write_bytes(b"# \xff")
    refused(sottovoce("plan", files.survey), "UTF-8")


@pytest.mark.parametrize("seed", [(), ("--seed", 1)])
def test_parquet_people(sottovoce: Command, files: Files, seed: tuple[object, ...]) -> None:
    bad = files.folder / "bad.parquet"
    pq.write_table(pa.table({"colour": ["red", None]}), bad)
    refused(sottovoce("whisper", files.plan, bad, "-o", files.reports, *seed), "missing values")
    pq.write_table(pa.table({"colour": [1.5, 2.5]}), bad)
    refused(sottovoce("whisper", files.plan, bad, "-o", files.reports, *seed), "row 1", "'colour'")
    bad.write_bytes(bad.read_bytes()[:-20])
    refused(sottovoce("whisper", files.plan, bad, "-o", files.reports, *seed), "whole Parquet")


@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.99])
def test_truncated_reports(sottovoce: Command, files: Files, kept: float) -> None:
    whole = files.reports.read_bytes()
    files.reports.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else int(kept)])
    refused(sottovoce("estimate", files.plan, files.reports, "--json"), "reports.parquet")


def test_damaged_reports_end_cleanly(sottovoce: Command, files: Files) -> None:
    """Any byte of the pages may be wrong; the answer is an estimate or one line,
    never a traceback.
    """
    whole = bytearray(files.reports.read_bytes())
    for place in range(4, len(whole) - 8, max(1, len(whole) // 40)):
        damaged = whole.copy()
        damaged[place] ^= 0xFF
        files.reports.write_bytes(damaged)
        outcome = sottovoce("estimate", files.plan, files.reports, "--json")
        if outcome.code != 0:
            refused(outcome)


def test_reports_of_another_plan(sottovoce: Command, files: Files) -> None:
    files.survey.write_text(files.survey.read_text().replace("epsilon = 2.0", "epsilon = 1.0"))
    assert sottovoce("plan", files.survey, "-o", files.plan).code == 0
    refused(sottovoce("estimate", files.plan, files.reports), "another plan")


def test_people_are_not_reports(sottovoce: Command, files: Files) -> None:
    people = files.folder / "people.parquet"
    pq.write_table(pa.table({"colour": ["red"]}), people)
    refused(sottovoce("estimate", files.plan, people), "reports")


def test_tampered_plans(sottovoce: Command, files: Files) -> None:
    text = files.plan.read_text()
    body = json.loads(text)
    (threshold,) = body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]["thresholds"].values()
    for changed, word in (
        (text.replace(threshold, str(int(threshold) + 1)), "threshold"),
        (text.replace('"epsilon": "2"', '"epsilon": "1"', 1), "plan"),
        (text.replace('"people": 3000', '"people": 3000.5'), "float"),
        (text.replace('"sottovoce": 1', '"sottovoce": 99'), "version"),
        (text[: len(text) // 2], "JSON"),
        ("[]", "plan"),
    ):
        assert changed != text
        files.plan.write_text(changed)
        refused(sottovoce("estimate", files.plan, files.reports), word)
        refused(sottovoce("whisper", files.plan, files.people, "-o", files.reports), word)
        refused(sottovoce("audit", files.plan), word)


def test_a_plan_whose_hash_does_not_match(sottovoce: Command, files: Files) -> None:
    wrong = "0" * 64
    refused(sottovoce("estimate", files.plan, files.reports, "--id", wrong), "hash")
    refused(
        sottovoce("whisper", files.plan, files.people, "-o", files.reports, "--id", wrong), "hash"
    )
    right = hashlib.sha256(files.plan.read_bytes()).hexdigest()
    assert sottovoce("estimate", files.plan, files.reports, "--id", right).code == 0


def test_files_that_are_not_there(sottovoce: Command, files: Files) -> None:
    missing = files.folder / "missing" / "file"
    refused(sottovoce("plan", missing), str(missing))
    refused(sottovoce("plan", files.survey, "-o", missing), "folder that exists")
    refused(sottovoce("whisper", missing, files.people, "-o", files.reports), str(missing))
    refused(sottovoce("whisper", files.plan, missing, "-o", files.reports), str(missing))
    refused(sottovoce("whisper", files.plan, files.people, "-o", missing), "folder that exists")
    refused(sottovoce("estimate", files.plan, missing), str(missing))
    refused(sottovoce("estimate", files.plan, files.reports, "--candidates", missing), str(missing))
    refused(
        sottovoce("estimate", files.plan, files.reports, "--plot", missing.with_suffix(".svg")),
        "folder",
    )
    refused(sottovoce("audit", missing), str(missing))
    refused(sottovoce("plan", files.folder), "directory")
    refused(sottovoce("plan", files.survey, "-o", files.folder), "is a folder")


def test_options(sottovoce: Command, files: Files) -> None:
    estimate = ("estimate", files.plan, files.reports)
    refused(sottovoce(*estimate, "--level", "1"), "level")
    refused(sottovoce(*estimate, "--plot", files.folder / "plot.bmp"), "plot")
    empty = files.folder / "empty.txt"
    empty.write_text("\n")
    refused(sottovoce(*estimate, "--candidates", empty), "candidates")
    refused(
        sottovoce("whisper", files.plan, files.people, "-o", files.reports, "--seed", "-1"),
        "--seed",
    )
    refused(sottovoce("audit"), "--oracle")
    refused(sottovoce("audit", files.plan, "--oracle", "grr"), "not both")
    refused(sottovoce("audit", "--oracle", "delphi", "--size", 4, "--epsilon", 1), "delphi")
    compare = ("compare", "oracles", "--size", 4, "--people", 100)
    refused(sottovoce(*compare, "--epsilon", "1,", "--runs", 1), "epsilon")
    refused(sottovoce(*compare, "--epsilon", "1", "--runs", 0), "runs (0)")
    refused(sottovoce(*compare, "--epsilon", "1", "--runs", 1, "--oracles", "grr,delphi"), "delphi")
    refused(sottovoce("nonsense"), "nonsense")
    refused(sottovoce("plan"), "survey.toml")


def test_unknown_repair(sottovoce: Command, files: Files) -> None:
    refused(sottovoce("estimate", files.plan, files.reports, "--postprocess", "wish"), "wish")


def test_demo_into_a_file(sottovoce: Command, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    refused(sottovoce("demo", "--output", taken), "taken")
