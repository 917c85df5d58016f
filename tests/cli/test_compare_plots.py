"""``sottovoce compare ... --plot``: every comparison is drawn, with its spread over runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from sottovoce.cli import app
from tests.cli.helpers import Command, refused, write_csv

PEOPLE = 400


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A table that every comparison can read."""
    write_csv(
        tmp_path / "people.csv",
        colour=["red", "green", "blue", "red"] * (PEOPLE // 4),
        smoker=[0, 1] * (PEOPLE // 2),
        age=[20 + row % 8 for row in range(PEOPLE)],
        basket=["milk;tea", "milk", "", "tea;jam"] * (PEOPLE // 4),
    )
    return tmp_path


# what each comparison is asked, and how many panels its picture has
ORACLES = ("oracles", "--size", 4, "--people", 500, "--oracles", "grr,oue")
COLUMNS = ("--columns", "colour,smoker")
COMPARISONS: list[tuple[tuple[object, ...], int]] = [
    (ORACLES, 1),
    (("marginals", "T", "--attributes", "colour,smoker", "--k", 2, "--people", 400,
      "--methods", "uniform,calm", "--queries", 1), 2),
    (("queries", "T", "--dimensions", "age:8", "--volume", "0.25,0.5", "--people", 400,
      "--methods", "hio,hi", "--queries", 4), 2),
    (("heavyhitters", "T", "--value", "colour", "--bytes", 5, "--top", 2, "--methods", "genie"), 2),
    (("itemsets", "T", "--column", "basket", "--top", 2, "--methods", "psfo:length=2"), 2),
    (("releases", "T", *COLUMNS, "--up-to", 2, "--methods", "dp-marginals", "--delta", "1e-3"),
     2),
    (("shuffled", "T", "--attribute", "colour", "--people", 1000, "--methods", "aue,central",
      "--delta", "1e-4"), 2),
]  # fmt: skip


def panels(path: Path) -> list[dict[str, Any]]:
    chart = json.loads(path.read_text())
    return list(chart.get("concat", [chart]))


def layers(panel: dict[str, Any]) -> list[str]:
    """The marks of a panel."""
    return [layer["mark"]["type"] for layer in panel["layer"]]


def test_every_comparison_is_in_this_list() -> None:
    group = typer.main.get_command(app).commands["compare"]  # type: ignore[attr-defined]
    assert sorted(group.commands) == sorted(str(words[0]) for words, _ in COMPARISONS)


@pytest.mark.parametrize(("words", "count"), COMPARISONS, ids=lambda each: str(each)[2:9])
def test_a_comparison_is_drawn_with_its_spread(
    here: Path, sottovoce: Command, words: tuple[object, ...], count: int
) -> None:
    path = here / "errors.json"
    asked = [here / "people.csv" if word == "T" else word for word in words]
    outcome = sottovoce("compare", *asked, "--epsilon", 2, "--runs", 2, "--plot", path)
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith(f"Drawn: {path}\n")
    assert len(panels(path)) == count
    for panel in panels(path):
        values = [row["value"] for row in panel["data"]["values"]]
        are_bars = min(values) <= 0 or max(values) < 20 * min(values)
        assert layers(panel)[:2] == ["bar" if are_bars else "point", "rule"]
        for row in panel["data"]["values"]:
            assert row["low"] <= row["value"] <= row["high"]


def test_several_epsilons_are_lines_on_logarithmic_scales(here: Path, sottovoce: Command) -> None:
    path = here / "errors.json"
    asked = (*ORACLES, "--epsilon", "1,2", "--plot", path)
    outcome = sottovoce("compare", *asked, "--runs", 3, "--json")
    rows = json.loads(outcome.out)  # nothing else on standard output
    assert outcome.err == f"Drawn: {path}\n"
    (panel,) = panels(path)
    assert layers(panel) == ["point", "rule", "line"]
    assert panel["layer"][1]["encoding"]["y"]["scale"]["type"] == "log"
    for row, drawn in zip(rows, panel["data"]["values"], strict=True):
        assert drawn["value"] == row["measured"]
        assert drawn["high"] - drawn["value"] == pytest.approx(row["measured_std"])
        assert drawn["low"] > 0
        assert drawn["theory"] == row["theory"]


def test_one_run_has_no_spread(here: Path, sottovoce: Command) -> None:
    path = here / "errors.json"
    assert sottovoce("compare", *ORACLES, "--epsilon", 1, "--runs", 1, "--plot", path).code == 0
    (panel,) = panels(path)
    assert layers(panel) == ["bar", "tick"]
    assert "deviation" not in path.read_text()


def test_what_cannot_be_drawn(here: Path, sottovoce: Command) -> None:
    bad = (*ORACLES, "--epsilon", 1, "--runs", 1, "--plot", here / "errors.pdf")
    refused(sottovoce("compare", *bad), "must end in one of .svg")
    asked = ("itemsets", here / "people.csv", "--column", "basket", "--top", 2, "--epsilon", 1)
    path = here / "errors.svg"
    outcome = sottovoce("compare", *asked, "--methods", "svim", "--people", 1, "--plot", path)
    assert outcome.code == 2
    assert "svim" in outcome.out  # the table says why
    assert "nothing to draw" in outcome.err
    assert not path.exists()
