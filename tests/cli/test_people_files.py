"""Her own file: what a table is taken for, and how its cells are read."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.measure.proposals import propose
from sottovoce.sending.cells import settled_column
from sottovoce.sending.people import PeopleFileOptions, batches
from tests.cli.conftest import Command
from tests.cli.helpers import refused

PEOPLE = 300
SECRET = "mf-secret"


def passengers() -> pd.DataFrame:
    draws = np.random.default_rng(1)
    ages = np.round(draws.gamma(4, 8, PEOPLE) * 2) / 2
    return pd.DataFrame(
        {
            "PassengerId": np.arange(1, PEOPLE + 1),
            "Survived": draws.integers(0, 2, PEOPLE),
            "Name": [f"Doe; {number}, junior" for number in range(PEOPLE)],
            "Sex": draws.choice(["male", "female"], PEOPLE),
            "Age": np.where(draws.random(PEOPLE) < 0.2, np.nan, ages),
            "Class": draws.integers(1, 4, PEOPLE).astype(float),
            "Fare": np.round(draws.gamma(1, 30, PEOPLE), 4),
            "Port": np.where(draws.random(PEOPLE) < 0.1, None, draws.choice(list("SCQ"), PEOPLE)),
            "Deck": draws.choice([f"d{number}" for number in range(40)], PEOPLE),
            "On": pd.Timestamp("1912-04-10"),
            "Same": "x",
        }
    )


@pytest.fixture(params=["comma", "semicolon", "tab", "parquet"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table, path = passengers(), tmp_path / "people.csv"
    if request.param == "comma":
        table.to_csv(path)  # with pandas' index
    elif request.param == "semicolon":
        table.to_csv(path, sep=";", decimal=",", index=False)
    elif request.param == "tab":
        table.to_csv(path, sep="\t", index=False)
    else:
        path = tmp_path / "people.parquet"
        table.to_parquet(path)
    return path


def test_from_a_table_to_an_estimate(sottovoce: Command, source: Path, tmp_path: Path) -> None:
    """Every way of writing the same table gives the same survey, and its people answer it."""
    survey, plan, reports = (tmp_path / name for name in ("s.toml", "p.json", "r.parquet"))
    outcome = sottovoce("survey", source, "-o", survey, "--values", 8, "--bins", 5)
    assert outcome.code == 0
    assert "7 attributes of 300 people" in outcome.out
    for name, reason in (
        ("PassengerId", "an id"),
        ("Name", "an id or free text"),
        ("On", "dates"),
        ("Same", "a single value"),
    ):
        assert any(name in line and reason in line for line in outcome.out.splitlines())
    text = survey.read_text()
    assert "tells something about these people" in text
    schema = sv.Schema.from_json(tomllib.loads(text)["schema"])
    assert list(schema) == ["Survived", "Sex", "Age", "Class", "Fare", "Port", "Deck"]
    assert schema["Survived"] == sv.Boolean()
    assert schema["Class"] == sv.Ordinal(1, 3)
    assert schema["Port"] == sv.Categorical(["C", "Q", "S", "no answer"], other="no answer")
    assert schema["Deck"].size == 8
    age = schema["Age"]
    assert isinstance(age, sv.Ordinal)
    assert age.other == -1
    assert age.labels()[:1] == ["-1"]
    assert sottovoce("plan", survey, "-o", plan).code == 0
    refused(
        sottovoce("whisper", plan, source, "-o", reports),
        "is not an attribute of the plan",
        "--ignore '*'",
    )
    done = sottovoce("whisper", plan, source, "-o", reports, "--ignore", "*", "--seed", "1")
    assert done.code == 0
    assert "300 reports" in done.out

    table = passengers()
    made, options = sv.Plan.from_json(plan.read_bytes()), PeopleFileOptions(ignored=("*",))
    read = pa.concat_tables(list(batches(source, made, reading=options)))
    found = schema.encode_table(read, schema)
    whole = np.floor(table["Age"].fillna(-1)).astype(int)
    assert found["Age"].tolist() == [age.code(value) for value in whole]
    assert found["Class"].tolist() == (table["Class"] - 1).astype(int).tolist()
    assert (found["Port"] == 3).tolist() == table["Port"].isna().tolist()
    fares = np.floor(table["Fare"]).astype(int)
    assert found["Fare"].tolist() == [schema["Fare"].code(value) for value in fares]
    counts = np.bincount(found["Fare"].astype(int))
    assert counts.min() > 0.5 * PEOPLE / 5  # bins of about as many people


def test_a_proposal_as_json_and_on_the_screen(sottovoce: Command, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("odd name\tage\n" + "".join(f"a{n % 3}\t{n % 90}\n" for n in range(200)))
    said = json.loads(sottovoce("survey", path, "--json", "--bins", 4).out)
    assert said["people"] == 200
    assert said["question"] == {"kind": "marginals", "attributes": ["odd name", "age"], "up_to": 2}
    assert len(said["schema"]["age"]["bins"]) == 4
    assert "public or your own" in said["caution"]
    shown = sottovoce("survey", path, "--columns", "odd name", "--epsilon", "0.5").out
    parsed = tomllib.loads(shown)
    assert parsed["epsilon"] == 0.5
    assert parsed["schema"] == {"odd name": {"kind": "categorical", "values": ["a0", "a1", "a2"]}}
    assert parsed["question"] == {"kind": "frequencies", "attributes": ["odd name"]}
    ignored = sottovoce("survey", path, "--ignore", "odd name").out
    assert list(tomllib.loads(ignored)["schema"]) == ["age"]


def test_bins_start_where_they_are_told_to(sottovoce: Command, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    ages = [18, 24, 25, 34, "", 49.5]
    path.write_text("age,tea\n" + "".join(f"{age},{n % 2}\n" for n, age in enumerate(ages * 20)))
    said = json.loads(sottovoce("survey", path, "--json", "--edges", "age:18,25,35").out)
    age = sv.Schema.from_json(said["schema"])["age"]
    assert age == sv.Ordinal(17, 49, bins=[17, 18, 25, 35], other=17)
    assert "20 people have no answer" in said["notes"]["age"]
    for edges, rule in (
        ("age:20,30", "20 numbers of 'age' lie below 20"),
        ("age:18,18", "rising"),
        ("age", "must be a column, a colon"),
        ("Age:18,25", "edges (Age) must be a column of the table"),
    ):
        refused(sottovoce("survey", path, "--edges", edges), rule)


def test_sets_are_proposed_for_lists(tmp_path: Path) -> None:
    path = tmp_path / "baskets.parquet"
    pq.write_table(pa.table({"basket": [["milk", "tea"], ["milk"], []] * 30}), path)
    found = propose(path)
    assert found.schema == {"basket": sv.Items(["milk", "tea"])}
    assert found.question["kind"] == "top-items"


def test_a_proposal_says_no_more_of_one_person_than_it_must(tmp_path: Path) -> None:
    """Names that nobody shares stay out of a small table's proposal; a lone value is pointed out,
    in texts and in numbers, with and without a missing answer.
    """
    path = tmp_path / "people.csv"
    cities = ["Bern"] * 5 + ["Oslo"] * 6 + ["Ulm"]
    pays = [100] * 5 + [300] * 6 + [900]
    table = {
        "name": [f"{SECRET}{n}" for n in range(12)],
        "city": cities,
        "pay": pays,
        "gap": [None, *cities[1:]],
    }
    pd.DataFrame(table).to_csv(path, index=False)
    found = propose(path)
    assert SECRET not in found.to_toml("1.0")
    notes = {each.name: each.note for each in found.columns}
    assert "everybody has another" in notes["name"]
    lone = "1 of these is of one person alone: look whether that tells who it is"
    assert notes["city"] == notes["pay"] == lone
    assert notes["gap"].endswith(f'which is "no answer" here; {lone}')


def test_columns_that_are_neither_text_nor_numbers_are_left_out(
    sottovoce: Command, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.parquet"
    pair = [{"a": 1}, {"a": 2}]
    pq.write_table(pa.table({"age": [1, 2], "pair": pair, "raw": [b"a", b"b"]}), odd)
    said = json.loads(sottovoce("survey", odd, "--json").out)
    assert list(said["schema"]) == ["age"]
    assert said["left_out"] == {"pair": "values of type struct<a: int64>", "raw": "bytes, not text"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--columns", "nobody"), "columns (nobody)"),
        (("--ignore", "nobody"), "ignore (nobody)"),
        (("--separator", "|"), "separator"),
        (("--epsilon", "0"), "epsilon"),
        (("--ignore", "x"), "no column can be asked about"),
    ],
)
def test_what_cannot_be_proposed(
    sottovoce: Command, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x,y\n1,5\n2,5\n")
    survey = tmp_path / "survey.toml"
    refused(sottovoce("survey", path, "-o", survey, *options), words)
    assert not survey.exists()


AGE = sv.Ordinal(18, 49, bins=[18, 25, 35], other=18)
YES_OR_NO = sv.Categorical([True, False, "none"], other="none")


@pytest.mark.parametrize(
    ("attribute", "cells", "read"),
    [
        (sv.Ordinal(0, 30), ["22.0", " 7 ", "+3.", "0.50"], ["22", "7", "+3", "0.50"]),
        (sv.Ordinal(-9, 9, bins=3), ["-0.5", "-1.0", "2.9", "-2.01"], ["-1", "-1", "2", "-3"]),
        (AGE, ["24.9", "", "17", "x", "49"], ["24", "18", "18", "18", "49"]),
        (sv.Categorical(["a", "z"], other="z"), ["a", "", "b", "z"], ["a", "z", "z", "z"]),
        (sv.Categorical(["", "z"], other="z"), ["", "q"], ["", "z"]),
        (sv.Categorical(["1.0", "2"]), ["1.0", "2"], ["1.0", "2"]),
        (sv.Categorical([1, 2]), ["1.0", "2"], ["1", "2"]),
        (sv.Boolean(), ["1.0", "0", "yes"], ["1", "0", "yes"]),
        (sv.Boolean(other=False), ["", "1.0"], ["False", "1"]),
        (YES_OR_NO, ["Yes", "", "false", "1"], ["1", "none", "0", "1"]),
        (sv.Text(bytes=4), ["1.0", ""], ["1.0", ""]),
        (sv.Number(0, 9, "0.01", sensitive=False), ["1.5", "2."], ["1.5", "2.0"]),
    ],
)
def test_cells_are_read_by_their_attribute(
    attribute: Any, cells: list[str], read: list[str]
) -> None:
    found = settled_column(attribute, pa.array(cells), decimal_commas=False, takes_other=True)
    assert found.to_pylist() == read


def test_decimal_commas_are_read_where_commas_do_not_separate() -> None:
    cells = pa.array(["24,9", "18", "30,0"])
    found = [
        settled_column(AGE, cells, decimal_commas=commas, takes_other=False).to_pylist()
        for commas in (True, False)
    ]
    assert found == [["24", "18", "30"], ["24,9", "18", "30,0"]]


def test_cells_of_numbers_and_none() -> None:
    column = pa.array([22.0, None, float("nan"), 30.5])
    found = settled_column(AGE, column, decimal_commas=False, takes_other=True)
    assert found.to_pylist() == ["22", "18", "18", "30"]
    # what travels in clear has no other
    clear = settled_column(AGE, column, decimal_commas=False, takes_other=False)
    assert clear.to_pylist() == ["22", None, "nan", "30"]


@pytest.mark.parametrize("seed", [(), ("--seed", 1)])
def test_all_bad_rows_are_counted_without_their_values(
    sottovoce: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: tuple[object, ...]
) -> None:
    monkeypatch.setattr("sottovoce.sending.people.BLOCK_PEOPLE", 10)
    plan = tmp_path / "plan.json"
    schema = sv.Schema(age=sv.Ordinal(0, 99))
    plan.write_text(sv.plan(schema, sv.Frequencies("age"), epsilon=1, people=1000).to_json())
    people = tmp_path / "people.csv"
    bad = {4, 13, 14, 30, 31, 32, 33}
    rows = [SECRET if row in bad else str(row) for row in range(1, 41)]
    people.write_text("age\n" + "\n".join(rows) + "\n")
    outcome = sottovoce("whisper", plan, people, "-o", tmp_path / "reports.parquet", *seed)
    refused(outcome, "row 4: attribute 'age'", "rows 4, 13, 14, 30, 31 and 2 more in all")
    assert SECRET not in outcome.err
    assert not (tmp_path / "reports.parquet").exists()
    people.write_text("age;note\n4;a\n5;b\n")
    output = tmp_path / "reports.parquet"
    refused(sottovoce("whisper", plan, people, "-o", output, "--separator", ","), "column 1")
    assert sottovoce("whisper", plan, people, "-o", output, "--ignore", "note").code == 0
    refused(sottovoce("whisper", plan, people, "-o", output, "--ignore", "nbte"), "ignore (nbte)")


@pytest.mark.parametrize("text", ["größe;kind\n1;2\n", "size;kind\nMüller;x\nMaier;y\n"])
def test_a_file_of_another_encoding_is_refused(
    sottovoce: Command, tmp_path: Path, text: str
) -> None:
    """Of names as of cells, by all that read tables."""
    path = tmp_path / "older.csv"
    path.write_text(text, encoding="cp1252")
    refused(sottovoce("survey", path), 'spreadsheets save it as "CSV UTF-8"')
