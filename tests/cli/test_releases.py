"""Releases from the command line: files, figures, and one clear error for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sottovoce as sv
from tests.cli.helpers import Command, write_csv

SCHEMA = """\
[schema.tea]
kind = "categorical"
values = ["black", "green", "white"]

[schema.milk]
kind = "boolean"
"""
PEOPLE = 4000


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three teas."""
    teas = ["green", "black", "black", "white"] * (PEOPLE // 4)
    milk = ["yes", "no"] * (PEOPLE // 2)
    return write_csv(tmp_path / "table.csv", tea=teas, milk=milk)


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """Its values, made public."""
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    return path


TERMS = ("--epsilon", "1", "--delta", "1e-6")


@pytest.mark.parametrize("is_known", [False, True])
def test_a_table_is_released(
    sottovoce: Command, table: Path, schema: Path, tmp_path: Path, is_known: bool
) -> None:
    output = tmp_path / "out"
    public = ["--schema", schema] if is_known else []
    ended = sottovoce("release", table, *TERMS, "--up-to", 2, "-o", output, *public, "-q")
    assert (ended.code, ended.err) == (0, "")
    method = "residual" if is_known else "dp-marginals"
    assert f"Method: {method}: the " in ended.out
    assert "(1, 0.000001)-differential privacy" in ended.out
    assert f"Written: {output}\n" in ended.out
    assert (tmp_path / "out.ledger.json").is_file()
    told = sv.load_release(output)
    assert len(told.rows(1)) == 5
    pairs = {tuple(row["tuple"].values()): row["count"] for row in told.rows(2)}
    yes = True if is_known else "yes"
    assert pairs["black", yes] == pytest.approx(PEOPLE / 4, abs=200)
    assert told.marginal("tea", "milk")["black", yes].value == pytest.approx(0.25, abs=0.05)


def test_sets_are_released_as_json(sottovoce: Command, tmp_path: Path) -> None:
    clicks = [(user, page) for user in range(2000) for page in ("home", f"p{user % 4}")]
    owners, pages = zip(*clicks, strict=True)
    path = write_csv(tmp_path / "clicks.csv", visitor=list(owners), page=list(pages))
    ended = sottovoce(
        "release", path, *TERMS, "--user", "visitor", "--items", "page", "--up-to", 1,
        "--neighbours", "replace-one", "--json", "-o", tmp_path / "pages",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert ended.err.startswith("release: 4,000 rows of 2,000 users; set-union: ")
    told = json.loads(ended.out)
    assert told["method"] == "set-union"
    assert told["found"] == {"1": 5}
    assert told["guarantee"]["neighbours"] == "replace-one"
    assert told["guarantee"]["user"] == "visitor"
    assert told["files"] == ["release.json", "summary.html", "tuples-1.csv", "tuples-1.parquet"]


def test_a_method_takes_options(sottovoce: Command, table: Path, tmp_path: Path) -> None:
    ended = sottovoce(
        "release", table, *TERMS, "--method", "dp-marginals:shares=0.5;0.5:eta=0.01",
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    body = json.loads((tmp_path / "out" / "release.json").read_text())
    assert body["parameters"]["options"] == {"shares": ["0.5", "0.5"], "eta": "0.01"}


def test_a_large_delta_is_noted(sottovoce: Command, table: Path, tmp_path: Path) -> None:
    terms = ("--epsilon", "1", "--delta", "0.001", "--up-to", 1)
    ended = sottovoce("release", table, *terms, "-o", tmp_path / "out", "-q")
    assert ended.code == 0
    assert ended.err.startswith("Note: delta (0.001) is above one in the number of users")
    assert "number of users" not in (tmp_path / "out" / "release.json").read_text()


BAD = [
    (["--epsilon", "0", "--delta", "1e-6"], "epsilon (0) must be finite and greater than 0"),
    (["--epsilon", "1", "--delta", "0.3"], "delta (0.3) must be at most 0.01"),
    ([*TERMS, "--up-to", "3"], "up_to (3) must be at most the number of attributes (2)"),
    ([*TERMS, "--method", "magic"], "method (magic) must be one of auto, "),
    ([*TERMS, "--method", "residual"], "method (residual): the values of attribute 'tea' are not"),
    ([*TERMS, "--method", "set-union:speed=2", "--up-to", "1"], "option 'speed' is not one"),
    ([*TERMS, "--user", "who"], "user (who) must be a column of the table (it has: tea, milk)"),
    ([*TERMS, "--items", "bag"], "items (bag) must be a column"),
    ([*TERMS, "--columns", "tea,sugar"], "column 'sugar' is not in the table"),
    ([*TERMS, "--neighbours", "friends"], "neighbours (friends) must be one of add-remove"),
    ([*TERMS, "--may-be-empty", "sugar"], "may_be_empty (sugar) must name attributes (of: tea, "),
    ([*TERMS, "--method", "dp-marginals:shares=3"], "shares (3) must be 2 numbers"),
    ([*TERMS, "--method", "dp-marginals:no_spurious=maybe"], "no_spurious (maybe) must be true"),
    ([*TERMS, "--schema", "none.toml"], "No such file"),
]


@pytest.mark.parametrize(("given", "rule"), BAD, ids=[rule for _, rule in BAD])
def test_bad_input_is_one_error(
    sottovoce: Command, table: Path, tmp_path: Path, given: list[str], rule: str
) -> None:
    ended = sottovoce("release", table, *given, "-o", tmp_path / "out")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert rule in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_a_table_that_cannot_be_is_one_error(sottovoce: Command, tmp_path: Path) -> None:
    empty = write_csv(tmp_path / "empty.csv", tea=[])
    ids = write_csv(tmp_path / "ids.csv", id=[f"x{place}" for place in range(99)], tea=["a"] * 99)
    here = tmp_path / "here"
    here.mkdir()
    cases = [
        (empty, tmp_path / "out", "table must have at least one row"),
        (ids, tmp_path / "out", "column 'id': nearly every row has a value of its own"),
        (ids, here, f"output ({here}) must not exist yet"),
        (tmp_path / "none.csv", tmp_path / "out", "must be a file that exists"),
    ]
    for table, output, rule in cases:
        ended = sottovoce("release", table, *TERMS, "--up-to", 1, "-o", output)
        assert (ended.code, ended.out) == (2, "")
        assert rule in ended.err
        assert "x7" not in ended.err
    forced = ("release", ids, *TERMS, "--up-to", 1, "--force", "id", "-o", tmp_path / "out")
    assert sottovoce(*forced).code == 0


@pytest.mark.parametrize("method", ["dp-marginals", "set-union"])
def test_a_table_in_which_nobody_says_anything_is_released(
    sottovoce: Command, tmp_path: Path, method: str
) -> None:
    # that one person says something must not decide whether there is a release
    table = write_csv(tmp_path / "silent.csv", tea=[""] * 50, milk=["NaN"] * 50)
    terms = (*TERMS, "--up-to", 1, "--method", method)
    ended = sottovoce("release", table, *terms, "-o", tmp_path / "out", "-q")
    assert ended.code == 0, ended.err
    assert sv.load_release(tmp_path / "out").rows(1) == []


def test_a_domain_too_large_for_residual(sottovoce: Command, tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(3)]
    table = write_csv(tmp_path / "wide.csv", **{name: [1, 2] * 20 for name in names})
    schema = tmp_path / "wide.toml"
    parts = [f'[schema.{name}]\nkind = "ordinal"\nlow = 0\nhigh = 999\n' for name in names]
    schema.write_text("\n".join(parts), encoding="utf-8")
    ended = sottovoce(
        "release", table, *TERMS, "--up-to", 3, "--method", "residual", "--schema", schema,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert ended.code == 2
    assert "cells in all, more than" in ended.err
    assert not (tmp_path / "out").exists()


def test_releases_are_compared(sottovoce: Command, table: Path, schema: Path) -> None:
    asked = (
        "compare", "releases", table, "--schema", schema, "--epsilon", "0.5,1",
        "--methods", "dp-marginals,residual,auto,set-union", "--up-to", 2, "--above", "0.1",
    )  # fmt: skip
    ended = sottovoce(*asked, "--json")
    assert ended.code == 0, ended.err
    rows = json.loads(ended.out)
    keys = {"method", "epsilon", "k", "found", "spurious", "recall", "sse", "seconds"}
    assert all(keys <= set(row) for row in rows)
    shown = [(row["method"], row["k"]) for row in rows if row["epsilon"] == 0.5]
    assert shown[:3] == [("dp-marginals", 1), ("dp-marginals", 2), ("residual", 1)]
    assert rows[2]["recall"] == 1
    assert rows[2]["found"] == 5
    assert rows[3]["spurious"] == 2  # all six pairs are released, and four are held
    assert rows[0]["sse"] < 0.01
    assert all(row["chosen"] == "residual" for row in rows if row["method"] == "auto")
    (refused,) = [row for row in rows if row["method"] == "set-union" and row["epsilon"] == 1]
    assert "up_to" in refused["reason"]
    printed = sottovoce(*asked)
    assert "chose" in printed.out  # a narrow terminal breaks the line here
    again = json.loads(sottovoce(*asked, "--json").out)
    assert [row["sse"] for row in again] == [row["sse"] for row in rows]  # seeded
