"""``sottovoce methods`` and ``--help``: everything that can be named, with its options."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from sottovoce.central.methods import METHODS as RELEASES
from sottovoce.central.release import ReleaseOptions
from sottovoce.console.catalogue import KINDS, catalogue, described
from sottovoce.oracles import ORACLES, options_of
from sottovoce.oracles.cohorts import DECODERS
from sottovoce.postprocessing import METHODS as REPAIRS
from sottovoce.postprocessing.methods import RepairOptions
from sottovoce.questions.heavyhitters.methods import METHODS as SEARCHES
from sottovoce.questions.itemsets.methods import METHODS as ITEMS
from sottovoce.questions.marginals.methods import METHODS as MARGINALS
from sottovoce.questions.queries.methods import METHODS as QUERIES
from tests.cli.helpers import Command, refused

FOLDERS: dict[str, list[Any]] = {
    "marginals": list(MARGINALS),
    "queries": list(QUERIES),
    "heavy-hitters": list(SEARCHES),
    "top-items": [method for method in ITEMS if method.for_items],
    "top-itemsets": [method for method in ITEMS if method.for_sets],
    "release": list(RELEASES),
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [entry.to_json() for entry in catalogue()]


def options_in(rows: list[dict[str, Any]], kind: str) -> dict[str, list[str]]:
    return {
        row["name"]: [option["name"] for option in row["options"]]
        for row in rows
        if row["kind"] == kind
    }


def test_everything_is_listed_with_all_its_options(rows: list[dict[str, Any]]) -> None:
    assert options_in(rows, "oracle") == {
        kind.names[0]: list(options_of(kind.names[0])) for kind in ORACLES
    }
    for kind, methods in FOLDERS.items():
        expected = {
            method.name: [name for name in method.options if name != "known"] for method in methods
        }
        assert options_in(rows, kind) == expected
    assert options_in(rows, "post-processing") == {
        name: list(repair.options) for name, repair in REPAIRS.items()
    }
    assert list(options_in(rows, "decoder")) == list(DECODERS)
    assert {row["kind"] for row in rows} == set(KINDS)


def test_each_has_a_line_a_source_and_a_line_for_each_option(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["about"], row["name"]
        assert "\n" not in row["about"]
        assert row["source"] or row["kind"] == "question", row["name"]
        assert row["package"] == ""
        for option in row["options"]:
            assert option["about"], (row["name"], option["name"])


def test_defaults_are_those_of_the_code(rows: list[dict[str, Any]]) -> None:
    defaults = {
        (row["kind"], row["name"], option["name"]): option["default"]
        for row in rows
        for option in row["options"]
    }
    assert defaults["oracle", "cms", "width"] == "1024"
    assert defaults["oracle", "ss", "chosen"] == "chosen"
    assert defaults["marginals", "calm", "theta"] == "0.001"
    assert defaults["marginals", "calm", "views"] == "chosen"
    assert defaults["marginals", "calm", "size"] is None  # a plan holds nothing of it
    assert defaults["top-items", "psfo", "length"] == "must be given"
    assert defaults["top-items", "svim", "candidates"] == "chosen"  # twice top
    alpha = inspect.signature(REPAIRS["base-cut"].repair).parameters["alpha"].default
    assert defaults["post-processing", "base-cut", "alpha"] == str(alpha)


def test_docstrings_are_read_by_their_lines() -> None:
    text = "What.\n\n    Args:\n        one: a\n            long line.\n        two: b.\n\n    End."
    assert described(text) == {"one": "a long line.", "two": "b."}
    assert described(None) == {}


def test_the_command_lists_some_by_kind_or_name(sottovoce: Command) -> None:
    shown = sottovoce("methods", "decoder", "k-rr")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == ["oracle", "decoder"]
    assert "  grr (de, k-rr, ps): generalized randomized response" in shown.out
    assert "  nnls: never negative; erlingsson2014rappor" in lines
    found = json.loads(sottovoce("methods", "decoder", "--json").out)
    assert [row["name"] for row in found] == list(DECODERS)
    refused(sottovoce("methods", "magic"), "name (magic) must be that of an oracle")


@pytest.mark.parametrize("columns", [40, 72])
def test_lines_end_where_the_terminal_does(
    sottovoce: Command, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for line in sottovoce("methods", "post-processing").out.splitlines():
        assert len(line) <= columns


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("compare", "marginals"), "calm:theta=:views=:size=:count="),
        (("compare", "queries"), "hio:fanout="),
        (("compare", "heavyhitters"), "windows:fresh=:width="),
        (("compare", "itemsets"), "psfo:length=:oracle=:delta="),
        (("compare", "releases"), "priview:views=:noise=:expected_people=:may_be_empty="),
        (("compare", "oracles"), "ss (chosen)"),
        (("check-method",), "inp-rr:coins="),
        (("release",), "set-union:form="),
        (("estimate",), "base-cut (alpha)"),
    ],
)
def test_help_names_methods_with_their_options(
    sottovoce: Command, command: tuple[str, ...], named: str
) -> None:
    shown = sottovoce(*command, "--help")
    assert shown.code == 0
    assert named in shown.out
    assert "`sottovoce methods NAME` explains one" in shown.out


def test_signatures_name_the_options_of_all_methods(rows: list[dict[str, Any]]) -> None:
    """Those of questions and oracles are keywords of their own: tests/unit/test_methods.py."""
    for kind, named in (("post-processing", RepairOptions), ("release", ReleaseOptions)):
        options = {name for names in options_in(rows, kind).values() for name in names}
        # what may be empty is a parameter of every release
        assert set(named.__annotations__) == options - {"may_be_empty"}
