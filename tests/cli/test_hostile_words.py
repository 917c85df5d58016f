"""Titles, names and labels come from files and from strangers: none reaches a terminal or a
spreadsheet as an order.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.console.surveys import read_plan
from sottovoce.results.spreadsheets import table_csv
from sottovoce.store import open_store
from tests.cli.helpers import Command, Files, write_csv

ESCAPES = "\x1b[2J\x9b31m\u202ereversed\u2066"
HIDDEN = ("\x1b", "\x9b", "\u202e", "\u2066")


def clean(text: str) -> bool:
    return not any(character in text for character in HIDDEN)


def test_info_writes_out_a_title(sottovoce: Command, files: Files) -> None:
    url = f"sqlite:///{files.folder}/survey.db"
    with open_store(url) as store:
        store.add_plan(read_plan(files.plan), sv.Texts(f"Colours{ESCAPES}"))
        store.add_token(f"alice{ESCAPES}", bytes(32))
    shown = sottovoce("info", url)
    assert clean(shown.out)
    assert r"Colours\x1b[2J" in shown.out
    assert clean(sottovoce("info", url, "--json").out)
    owners = sottovoce("token", url, "--list")
    assert clean(owners.out)
    assert r"alice\x1b" in owners.out


@pytest.fixture
def hostile(files: Files) -> Files:
    """A survey whose names and labels are orders to a spreadsheet, and one label to a terminal."""
    name, other = "=a", "@b"
    schema = sv.Schema(
        **{name: sv.Categorical(["-1+1", f"x{ESCAPES}"]), other: sv.Categorical(["=1+1", "-7"])}
    )
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="marg-ps"), epsilon=4.0, people=400)
    files.plan.write_text(plan.to_json(), encoding="utf-8")
    draws = np.random.default_rng(1)
    rows = {
        each: [kind.labels()[code] for code in draws.integers(0, 2, 400)]
        for each, kind in schema.items()
    }
    write_csv(files.people, **rows)
    sv.simulate(plan, rows, seed=1).write(files.reports)
    return files


def test_names_and_labels_are_written_out(sottovoce: Command, hostile: Files) -> None:
    for command in (
        ("estimate", hostile.plan, hostile.reports, "--k", 2),
        ("estimate", hostile.plan, hostile.reports, "--k", 1),
        ("associate", hostile.plan, hostile.reports, "--null", "naive", "-q"),
        ("tree", hostile.plan, hostile.reports),
    ):
        shown = sottovoce(*command)
        assert (shown.code, shown.err) == (0, ""), command
        assert clean(shown.out), command
        # the others show no labels
        assert (r"\x1b[2J" in shown.out) == (command[0] == "estimate"), command


def test_a_survey_with_such_names_is_refused_in_visible_words(
    sottovoce: Command, files: Files
) -> None:
    text = files.survey.read_text()
    files.survey.write_text(
        text.replace("schema.colour", 'schema."a\\u001b[2J"').replace('"colour"', '"a\\u001b[2J"')
    )
    shown = sottovoce("plan", files.survey)
    assert shown.code == 2
    assert clean(shown.err)
    assert r"attribute 'a\x1b[2J': a name must have no control characters" in shown.err
    refused = sottovoce("estimate", files.folder / f"no{ESCAPES}.json", files.reports)
    assert refused.code == 2
    assert clean(refused.err)
    assert r"no\x1b[2J" in refused.err


def test_synthetic_people_hold_no_formulas(
    sottovoce: Command, hostile: Files, tmp_path: Path
) -> None:
    out = tmp_path / "synthetic.csv"
    made = sottovoce(
        "synthesize", hostile.plan, hostile.reports, "--people", 50, "--seed", 1, "-o", out, "-q"
    )
    assert made.code == 0, made.err
    with out.open(newline="", encoding="utf-8") as file:
        heads, *rows = csv.reader(file)
    assert [head[:2] for head in heads] == ["'=", "'@"]
    assert {row[1] for row in rows} == {"'=1+1", "-7"}
    assert {row[0] for row in rows} <= {"'-1+1", f"x{ESCAPES}"}


def test_a_table_holds_no_formulas(hostile: Files) -> None:
    plan = read_plan(hostile.plan)
    table = sv.Aggregate(plan).add(sv.Reports.read(hostile.reports)).estimate().marginal("@b")
    heads, *rows = csv.reader(table_csv(table, 0.95).splitlines())
    assert heads == ["'@b", "frequency", "std_error", "low", "high"]
    assert [row[0] for row in rows] == ["'=1+1", "-7"]
    assert all(float(figure) < 2 for row in rows for figure in row[1:])
