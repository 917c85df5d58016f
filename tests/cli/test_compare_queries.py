"""Methods for queries, compared on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.helpers import Command, refused, write_csv

ROW = ["method", "epsilon", "volume", "mse", "mnae", "mre", "coverage", "seconds"]


def test_compare_queries(tmp_path: Path, sottovoce: Command) -> None:
    path = write_csv(
        tmp_path / "people.csv",
        age=[20, 30, 40, 50] * 50,
        state=["NY", "WA"] * 100,
        pay=[1, 2, 3, -4] * 50,
    )
    arguments = ("compare", "queries", path, "--epsilon", "1,4", "--people", 2000, "--queries", 5)
    outcome = sottovoce(
        *arguments, "--dimensions", "age:8", "--methods", "hio,haar", "--volume", "0.25,random"
    )
    assert outcome.code == 0, outcome.err
    for word in ("haar", "±", "random", "MRE", "2,000 people, 3 runs of 5 random queries"):
        assert word in outcome.out
    outcome = sottovoce(
        *arguments,
        "--dimensions",
        "age:8,state",
        "--measure",
        "pay",
        "--methods",
        "hio,haar",
        "--runs",
        1,
        "--coverage",
        "--json",
    )
    assert outcome.err == ""
    rows = json.loads(outcome.out)
    assert [list(row)[:8] for row in rows] == [ROW] * 4
    assert [row["mse"] is None for row in rows] == [False, True, False, True]
    assert rows[0]["coverage"] is not None


def test_bad_input_has_one_clear_error(tmp_path: Path, sottovoce: Command) -> None:
    path = write_csv(tmp_path / "people.csv", age=[20, 30, 40, 50])
    base = ("compare", "queries", path, "--epsilon", "1")
    refused(sottovoce(*base, "--dimensions", "age:none"), "dimensions (age:none)")
    refused(sottovoce(*base, "--dimensions", "salary:8"), "not in the table")
    refused(sottovoce(*base, "--dimensions", "age:8", "--methods", "magic"), "method (magic)")
    refused(sottovoce(*base, "--dimensions", "age:8", "--volume", "3"), "volume")
