"""Charts for the pages, as Vega-Lite drawn to SVG: no scripts, no network; coloured by the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.ground.labels import written
from sottovoce.results.estimate import Table
from sottovoce.schema import Label

# the style sheet gives these their colours by day and night
BAR_COLOUR, INK_COLOUR, SOFT_COLOUR = "#7aa6c2", "#1f3b4d", "#5d6b75"
HEAT_PALE, HEAT_FULL = (
    "#f1f6f9",
    "#7fb0cc",
)  # ends of a heat map's scale: dark figures can be read on both
PALE_BAR = 0.3  # opacity of what noise alone may have put there
MAX_CHART_BARS = 24  # of a chart; of more values the largest are shown
MAX_FIGURED_CELLS = 100  # cells of a heat map that have their figures written in
MOST_LETTERS = 22  # of a label
LABEL_LETTER = 7.2  # pixels of a letter of a label, in the widest font of a page
SLANT = -40  # degrees, of labels that are wider than their column
BARS_WIDTH, BARS_STEP = 150, 26  # pixels of bars
CELL = {True: (72, 38), False: (22, 22)}  # pixels of a heat map's cell, with figures and without
_CONFIG = {
    "aria": False,  # the page says in words what a chart shows
    "view": {"stroke": None},
    "legend": {"disable": True},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelColor": SOFT_COLOUR,
        "domain": False,
        "ticks": False,
        "titlePadding": 14,
    },
    "header": {"labelFontSize": 12, "titleFontSize": 12},
}


def single(table: Table, level: float, marks: Sequence[bool] | None = None) -> str:
    """One attribute, or the largest cells of several: bars with error bars, figures beside them.

    ``marks``: of popular values, which ones noise alone does not explain: they have a star, the
    others are pale.
    """
    places = np.sort(table.largest_first()[:MAX_CHART_BARS])
    rows = table.at(places).rows(level)
    data = [_bar(place, row, marks) for place, row in zip(places.tolist(), rows, strict=True)]
    down = {
        "field": "place",
        "type": "ordinal",
        "title": None,
        "axis": {
            "labelExpr": _names(data),
            "labelPadding": 8,
            "labelLimit": 180 * len(table.attributes),
            "minExtent": _extent([row["name"] for row in data]) + 8,
        },
    }
    shares = {
        "field": "frequency",
        "type": "quantitative",
        "title": None,
        "axis": {"format": "~%", "tickCount": 3, "labelOverlap": True, "labelSeparation": 6},
    }
    ends = {"x": {"field": "low", "type": "quantitative", "title": None}, "x2": {"field": "high"}}
    line = {
        "type": "errorbar",
        "color": INK_COLOUR,
        "thickness": 1.5,
        "ticks": {"size": 7, "color": INK_COLOUR},
    }
    solid = {"field": "solid", "type": "quantitative", "scale": None}
    figures = {"type": "text", "align": "left", "color": INK_COLOUR, "fontSize": 12}
    return inline(
        {
            "data": {"values": data},
            "width": BARS_WIDTH,
            "height": {"step": BARS_STEP},
            "padding": {"left": 4, "top": 4, "bottom": 4, "right": 16},
            "encoding": {"y": down},
            "layer": [
                {
                    "mark": {"type": "bar", "color": BAR_COLOUR, "height": 15},
                    "encoding": {"x": shares, "opacity": solid},
                },
                {"mark": line, "encoding": ends},
                {
                    "mark": figures,
                    "encoding": {"x": {"value": BARS_WIDTH + 12}, "text": {"field": "figures"}},
                },
            ],
            "config": _CONFIG,
        }
    )


def _bar(place: int, row: dict[str, Any], marks: Sequence[bool] | None) -> dict[str, Any]:
    ends = {"low": row["low"], "high": row["high"]}
    name = shortened(row["value"])
    return {
        "place": place,
        "name": f"{name} *" if marks is not None and marks[place] else name,
        "solid": PALE_BAR if marks is not None and not marks[place] else 1,
        "frequency": row["frequency"],
        **ends,
        "figures": f"{_figures(row)}%",
    }


def _figures(row: dict[str, Any]) -> str:
    """A share and half of its interval, in percent."""
    return f"{100 * row['frequency']:.1f} ± {50 * (row['high'] - row['low']):.1f}".replace("-", "−")


def _names(data: list[dict[str, Any]]) -> str:
    """Labels by place, so that values that look alike stay two; a Vega expression of text alone."""
    return f"{json.dumps({str(row['place']): row['name'] for row in data})}[datum.value]"


def heat(table: Table, level: float) -> str:
    """Two attributes, or three: one map for each value of the first."""
    rows = table.rows(level)
    cells = cast(Sequence[tuple[Label, ...]], table.labels)
    sides = [list(dict.fromkeys(values)) for values in zip(*cells, strict=True)]
    is_written = len(rows) <= MAX_FIGURED_CELLS
    data = []
    for row in rows:
        places = [side.index(part) for side, part in zip(sides, row["value"], strict=True)]
        cell = dict(zip(("part", "down", "across"), [0, *places][-3:], strict=True))
        data.append({**cell, "frequency": row["frequency"], "figures": _figures(row)})
    wide, high = CELL[is_written]
    across = [shortened(label) for label in sides[-1]]
    fits = _extent(across) <= wide
    angle = 0 if is_written and fits else SLANT if is_written else -90
    axes = {
        name: {
            "field": name,
            "type": "ordinal",
            "title": title,
            "axis": {
                "labelExpr": _labels(side),
                "labelAngle": 0 if name == "down" else angle,
                **({"minExtent": _extent(map(shortened, side))} if name == "down" else {}),
            },
        }
        for name, title, side in zip(
            ("down", "across"), table.attributes[-2:], sides[-2:], strict=True
        )
    }
    peak = max(1e-9, float(table.values.max()))
    colour = {
        "field": "frequency",
        "type": "quantitative",
        "scale": {"range": [HEAT_PALE, HEAT_FULL], "domain": [0, peak], "clamp": True},
    }
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rect", "cornerRadius": 2}, "encoding": {"color": colour}}
    ]
    if is_written:
        text = {"type": "text", "fontSize": 11, "color": INK_COLOUR}
        layers.append({"mark": text, "encoding": {"text": {"field": "figures"}}})
    size = {"width": {"step": wide}, "height": {"step": high}}
    maps = {"encoding": {"x": axes["across"], "y": axes["down"]}, "layer": layers, **size}
    spec: dict[str, Any] = {"data": {"values": data}, "config": _CONFIG, "padding": 8}
    if len(sides) == 2:
        return inline({**spec, **maps})
    parts = {
        "field": "part",
        "type": "ordinal",
        "title": table.attributes[0],
        "header": {"labelExpr": _labels(sides[0])},
    }
    return inline(
        {
            **spec,
            "facet": parts,
            "columns": max(1, 900 // (wide * len(sides[2]) + 80)),
            "spec": maps,
        }
    )


def _extent(labels: Iterable[str]) -> float:
    """Pixels that the longest label takes."""
    return LABEL_LETTER * max(map(len, labels), default=0)


def _labels(side: list[Any]) -> str:
    return f"{json.dumps([shortened(label) for label in side])}[datum.value]"


def network(chart: Any) -> str:
    """The dependency tree, as the analysis draws it, without title and legend."""
    spec = json.loads(chart.properties(title="").to_json())
    return inline({**spec, "config": {**spec.get("config", {}), "legend": {"disable": True}}})


def answer_chart(chart: Any) -> str:
    """The answer to a query, as it draws itself; the page says in words what is shown."""
    spec = json.loads(chart.to_json())
    return inline({**spec, "config": _CONFIG})


def shortened(value: Any) -> str:
    """A label that fits; yes and no in words."""
    if isinstance(value, tuple):
        return ", ".join(map(shortened, value))
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else written(value)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def inline(spec: dict[str, Any]) -> str:
    """A chart as SVG to stand in a page: no background, no namespaces,
    as high as its width says.
    """
    vl_convert = imported("vl_convert")

    text: str = vl_convert.vegalite_to_svg({**spec, "background": "transparent"})
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    return re.sub(
        r'^<svg([^>]*?) width="([\d.]+)" height="[\d.]+"',
        r'<svg\1 width="\2" focusable="false"',
        text,
    )
