"""`sottovoce estimate --csv --xlsx`: all tables at once, whole or not there."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import sottovoce as sv
from tests.cli.helpers import Command, Files, refused


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_one_table_goes_into_a_file(sottovoce: Command, files: Files) -> None:
    sheet, book = files.folder / "colour.csv", files.folder / "colour.xlsx"
    done = sottovoce("estimate", files.plan, files.reports, "--csv", sheet, "--xlsx", book, "-q")
    assert done.code == 0
    assert done.out.endswith(f"Tables written to {sheet}\nTables written to {book}\n")
    head, *lines = rows(sheet)
    assert head == ["colour", "frequency", "std_error", "low", "high"]
    assert [line[0] for line in lines] == ["red", "green", "blue", "grey"]
    with zipfile.ZipFile(book) as archive:
        assert 'name="colour"' in archive.read("xl/workbook.xml").decode()
    again = sottovoce("estimate", files.plan, files.reports, "--csv", sheet, "-q")
    assert again.code == 0  # a file is replaced


def test_several_tables_go_into_a_folder(sottovoce: Command, files: Files) -> None:
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["=x", "y"]), c=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=1000)
    people = {"a": [True, False] * 500, "b": ["=x", "y"] * 500, "c": [True] * 1000}
    plan_file, saved = files.folder / "pairs.json", files.folder / "pairs.sva"
    plan_file.write_text(plan.to_json())
    saved.write_bytes(sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).to_bytes())
    folder = files.folder / "tables"
    arguments = ("estimate", plan_file, saved, "--k", 2, "-q", "--csv")
    assert sottovoce(*arguments, folder).code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["a-b.csv", "a-c.csv", "b-c.csv"]
    assert rows(folder / "a-b.csv")[1][:2] == ["False", "'=x"]
    refused(sottovoce(*arguments, folder), "must end in .csv, or be a folder not there yet")
    refused(sottovoce(*arguments, files.folder / "all.csv"), "can hold one table, not 3")
    assert not (files.folder / "all.csv").exists()


def test_popular_values_have_their_marks(sottovoce: Command, files: Files) -> None:
    schema = sv.Schema(word=sv.Text(bytes=3))
    plan = sv.plan(schema, sv.HeavyHitters("word", top=2), epsilon=4.0, people=4000)
    total = sv.Aggregate(plan).add(sv.simulate(plan, {"word": ["tea", "jam"] * 2000}, seed=1))
    plan_file, saved = files.folder / "words.json", files.folder / "words.sva"
    plan_file.write_text(plan.to_json())
    saved.write_bytes(total.to_bytes())
    sheet = files.folder / "words.csv"
    assert sottovoce("estimate", plan_file, saved, "--csv", sheet, "-q").code == 0
    head, *lines = rows(sheet)
    assert head[-2:] == ["significant", "expected_false"]
    assert sorted(line[0] for line in lines) == ["jam", "tea"]
    assert {line[-2] for line in lines} == {"True"}


def test_names_that_cannot_be_are_refused_first(sottovoce: Command, files: Files) -> None:
    wrong = files.folder / "tables.xls"
    refused(
        sottovoce("estimate", files.plan, files.reports, "--xlsx", wrong, "-q"),
        "must end in .xlsx",
    )
