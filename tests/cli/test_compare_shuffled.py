"""``sottovoce compare shuffled``: rows for all methods, and one clear error for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sottovoce.measure import Population
from sottovoce.measure.shuffled import SHUFFLED_METHODS, compare_shuffled
from tests.cli.helpers import Command, refused

FIGURES = {"local", "mse", "mse_std", "head_mse", "head_mse_std", "seconds", "people", "runs"}
KEYS = {"method", "epsilon", "about", "reason", *FIGURES}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    values = np.random.default_rng(1).binomial(30, 0.2, 500)
    path = tmp_path / "people.csv"
    path.write_text("x,y\n" + "".join(f"{value},1\n" for value in values))
    return path


def test_rows_of_all_methods(sottovoce: Command, table: Path) -> None:
    asked = ("compare", "shuffled", str(table), "--attribute", "x", "--epsilon", ".5")
    crowd = ("--people", "20000", "--delta", "1e-7", "--runs", "2")
    outcome = sottovoce(*asked, *crowd, "--methods", ",".join(SHUFFLED_METHODS), "--json")
    rows: Any = {row["method"]: row for row in json.loads(outcome.out)}
    assert list(rows) == list(SHUFFLED_METHODS)
    assert all(set(row) == KEYS and row["reason"] is None for row in rows.values())
    errors = {name: row["mse"] for name, row in rows.items()}
    assert errors["central"] < errors["auto"] < errors["solh-thesis"]
    assert rows["aue"]["local"] is rows["central"]["local"] is None
    assert 0.5 < rows["solh-thesis"]["local"] < rows["auto"]["local"] <= 8
    for name in ("aue", "rap-r"):
        assert "not LDP" in rows[name]["about"]
    told = sottovoce(*asked, *crowd, "--methods", "sh,aue").out
    assert "no bound" in told
    assert "simulation only" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attribute", "z"), "attribute 'z' is not in the table"),
        (("--attribute", "x", "--people", "1"), "people (1)"),
        (("--attribute", "x", "--delta", "2"), "delta"),
        (("--attribute", "x", "--runs", "0"), "runs (0)"),
        (("--attribute", "x", "--methods", "sh,nobody"), "method (nobody) must be one of auto"),
    ],
)
def test_bad_input(sottovoce: Command, table: Path, options: tuple[str, ...], message: str) -> None:
    given = ("--attribute", "x", "--epsilon", "1", "--people", "10000", "--methods", "sh")
    refused(sottovoce("compare", "shuffled", str(table), *given, *options), message)


def test_what_does_not_fit_says_why() -> None:
    crowd = Population.of({"x": ["a", "b", "c"] * 10})
    rows = list(compare_shuffled(crowd, "x", ["1e-6"], 100, ["sh", "aue", "she"], 1, 1, "1e-4"))
    assert [row.mse for row in rows] == [None] * 3
    assert all(row.reason for row in rows)
