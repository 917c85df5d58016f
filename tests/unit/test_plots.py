"""Pictures: what is drawn for how many attributes, and what is written into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.cli.answers import draw
from sottovoce.results import plots
from tests.known import chain, known

MARKS = {1: ["bar", "rule"], 2: ["rect", "text"]}


@pytest.fixture(scope="module")
def estimate() -> sv.MarginalEstimate:
    return known(chain([2, 3, 4, 2], 1), 1e-4, order=3)


def marks(chart: Any) -> list[str]:
    """The kinds of marks of a layered chart, or of each part of a faceted one."""
    made = chart.to_dict()
    layers = made["spec"]["layer"] if "spec" in made else made["layer"]
    return [layer["mark"]["type"] for layer in layers]


def data(chart: Any) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = chart.to_dict()["data"]["values"]
    return values


def test_the_number_of_attributes_decides(estimate: sv.MarginalEstimate) -> None:
    assert marks(estimate.marginal("a").plot()) == MARKS[1]
    assert marks(estimate.marginal("a", "b").plot()) == MARKS[2]
    three = estimate.marginal("b", "a", "c").plot()
    assert marks(three) == MARKS[2]
    assert three.to_dict()["facet"]["title"] == "b"
    assert marks(estimate.marginal("a", "b", "c", "d").plot()) == MARKS[1]
    assert marks(estimate.marginal("a", "b").plot(kind="bars")) == MARKS[1]


def test_a_heat_map_holds_every_cell_and_its_interval(estimate: sv.MarginalEstimate) -> None:
    table = estimate.marginal("c", "b")
    chart = table.plot(level=0.9)
    rows = data(chart)
    low, high = table.interval(0.9)
    assert [(row["down"], row["across"]) for row in rows] == [
        (str(c), str(b)) for c, b in table.labels
    ]  # type: ignore[misc]
    assert [row["frequency"] for row in rows] == pytest.approx(table.values)
    assert rows[0]["interval"] == f"{low[0]:.4f} to {high[0]:.4f}"
    assert rows[0]["figures"] == f"{table.values[0]:.3f}\n±{(high[0] - low[0]) / 2:.3f}"
    made = chart.to_dict()
    assert made["title"]["subtitle"] == "±: half of a 90% interval"
    assert made["layer"][0]["encoding"]["y"]["title"] == "c"
    assert made["layer"][0]["encoding"]["x"]["sort"] == ["0", "1", "2"]
    tooltip = made["layer"][0]["encoding"]["tooltip"]
    titles = {each.get("title", each["field"]) for each in tooltip}
    assert titles == {"b", "c", "frequency", "90% interval"}


def test_a_reconstructed_table_says_so(estimate: sv.MarginalEstimate) -> None:
    assert (
        "reconstructed"
        in estimate.marginal("a", "b", "c", "d").plot().to_dict()["title"]["subtitle"]
    )
    assert (
        "reconstructed"
        not in estimate.marginal("a", "b", "c").plot().to_dict()["title"]["subtitle"]
    )


def test_the_truth_is_drawn_beside(estimate: sv.MarginalEstimate) -> None:
    table = estimate.marginal("a", "b")
    chart = table.plot(truth=np.full(6, 1 / 6))
    assert marks(chart) == ["bar", "rule", "tick"]
    assert {row["truth"] for row in data(chart)} == {1 / 6}
    assert data(chart)[1]["value"] == "0, 1"
    assert chart.to_dict()["title"]["subtitle"].endswith("red: truth")


def test_many_cells_are_drawn_without_figures_and_very_many_as_bars() -> None:
    wide = known(np.full((20, 30), 1 / 600), 1e-6)
    assert marks(wide.marginal("a", "b").plot()) == ["rect"]
    wider = known(np.full((60, 60), 1 / 3600), 1e-6)
    chart = wider.marginal("a", "b").plot(most=10)
    assert marks(chart) == MARKS[1]
    assert len(data(chart)) == 10
    assert "the 10 largest of 3,600" in chart.to_dict()["title"]["subtitle"]
    with pytest.raises(
        sv.InvalidInput, match=r"kind \(heat\) is for 2 or 3 attributes and at most 2,500 cells"
    ):
        wider.marginal("a", "b").plot(kind="heat")


def test_bad_kinds_are_refused(estimate: sv.MarginalEstimate) -> None:
    for words, options in (
        (r"kind \(pie\) must be one of bars, heat", {"kind": "pie"}),
        ("cannot show the truth", {"kind": "heat", "truth": np.full(6, 1 / 6)}),
    ):
        with pytest.raises(sv.InvalidInput, match=words):
            estimate.marginal("a", "b").plot(**options)  # type: ignore[arg-type]
    with pytest.raises(sv.InvalidInput, match=r"kind \(heat\)"):
        estimate.marginal("a").plot(kind="heat")
    twins = known(np.full((2, 2), 0.25), a=sv.Categorical([1, "1"]), b=sv.Categorical("xy"))
    with pytest.raises(sv.InvalidInput, match="the same label"):
        twins.marginal("a", "b").plot()


def test_pictures_are_written(estimate: sv.MarginalEstimate, tmp_path: Path) -> None:
    for number, names in enumerate(("a", "ab", "abc", "abcd")):
        path = tmp_path / f"{number}.svg"
        estimate.marginal(*names).plot(str(path))
        assert path.read_text().startswith("<svg")
    estimate.marginal("a", "b", "c").plot(str(tmp_path / "three.png"))
    assert (tmp_path / "three.png").read_bytes().startswith(b"\x89PNG")
    estimate.plot(str(tmp_path / "correlations.svg"))
    assert "correlations (10,000 people)" in (tmp_path / "correlations.svg").read_text()
    draw([estimate.marginal(*names) for names in ("a", "ab", "abc")], tmp_path / "all.svg")
    assert (tmp_path / "all.svg").read_text().startswith("<svg")


def test_a_matrix_shows_signs() -> None:
    frame = pd.DataFrame([[1, -0.5], [-0.5, 1]], index=["a", "b"], columns=["a", "b"])
    chart = plots.matrix(frame, title="signs")
    assert data(chart)[1] == {"one": "a", "two": "b", "value": -0.5, "figure": "-0.50"}
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert (scale["scheme"], scale["domain"]) == ("redblue", [-1, 1])
    scale = plots.matrix(frame.abs()).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert (scale["scheme"], scale["domain"]) == ("blues", [0, 1])
    large = pd.DataFrame(np.eye(30))
    assert plots.matrix(large).to_dict()["mark"]["type"] == "rect"
    with pytest.raises(sv.InvalidInput, match="frame must be square, not 1 rows by 2 columns"):
        plots.matrix(frame[:1])


def test_a_network_places_what_it_is_given() -> None:
    nodes = [{"name": "one", "x": 0, "y": 0.0}, {"name": "two", "x": 1, "y": 0.0}]
    link = {
        "x": 0,
        "y": 0.0,
        "x2": 1,
        "y2": 0.0,
        "weight": 0.3,
        "between": "one - two",
        "figure": "",
        "is_clear": True,
    }
    made = plots.network(nodes, [link], title="net", subtitle="sub").to_dict()
    assert [layer["mark"]["type"] for layer in made["layer"]] == ["rule", "rule", "circle", "text"]
    assert made["data"]["values"] == [link]
    assert made["layer"][1]["encoding"]["strokeWidth"]["field"] == "weight"
    assert made["title"] == {"text": "net", "subtitle": "sub"}
