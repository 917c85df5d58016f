"""Pictures of tables, drawn without a network. Altair is loaded when the first one is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import replacing
from sottovoce.ground.labels import written

if TYPE_CHECKING:
    from sottovoce.results.estimate import Estimate, Table
    from sottovoce.results.findings import Findings

FORMATS = (".svg", ".png", ".html", ".json")
VEGA_LICENCE = Path(__file__).parent / "vega-license.txt"
CHART_KINDS = ("bars", "heat")
MOST_MAPPED = 2500  # cells of a heat map
MAX_WRITTEN_CELLS = 200  # cells of a heat map that have their figures written in
MAX_POPULAR_BARS = 64  # popular values
MOST_PREFIXES = 120  # of a tree
LONGEST_PREFIX = 12  # characters of one that are drawn
NODE_STEP, NODE_ROW = 34, 28  # pixels from one column of a tree to the next, and from row to row
NARROWEST_TREE = 240  # pixels
LETTER_WIDTH = 7.5  # pixels, on average


def picture(
    table: Table,
    path: str | None = None,
    *,
    truth: NDArray[np.float64] | None = None,
    level: float = 0.95,
    population: bool = False,
    most: int = 64,
    kind: str | None = None,
) -> Any:
    """A table as it is best seen: two attributes as a heat map, three as several, else bars."""
    if kind is not None and kind not in CHART_KINDS:
        raise InvalidInput(f"kind ({kind}) must be one of {', '.join(CHART_KINDS)}")
    fits = (
        len(table.attributes) in (2, 3) and table.is_complete and len(table.values) <= MOST_MAPPED
    )
    if kind == "heat":
        if not fits:
            raise InvalidInput(
                f"kind (heat) is for 2 or 3 attributes and at most {MOST_MAPPED:,} cells, all "
                "listed"
            )
        if truth is not None:
            raise InvalidInput("kind (heat) cannot show the truth; bars can")
    if kind == "heat" or (kind is None and fits and truth is None):
        return heat(table, path, level=level, population=population)
    return bars(table, path, truth=truth, level=level, population=population, most=most)


def bars(
    table: Table,
    path: str | None = None,
    *,
    truth: NDArray[np.float64] | None = None,
    level: float = 0.95,
    population: bool = False,
    most: int = 64,
) -> Any:
    """Bars with intervals, at most the ``most`` largest; the truth as ticks where it is known."""
    alt = imported("altair")

    order = list(range(len(table.values)))
    if len(order) > most:
        order = sorted(np.argsort(-table.values, kind="stable")[:most].tolist())
    rows = table.rows(level, population=population)
    data = [
        {**rows[place], "value": written(rows[place]["value"]), "place": place} for place in order
    ]
    if truth is not None:
        for row in data:
            row["truth"] = float(truth[row["place"]])
    name = ", ".join(table.attributes)
    across = alt.X("value:N", sort=alt.SortField("place"), title=name)
    base = alt.Chart(alt.Data(values=data)).encode(x=across)
    bar = base.mark_bar(color="#7aa6c2").encode(y=alt.Y("frequency:Q", title="frequency"))
    whisker = base.mark_rule(color="#1f3b4d", strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    chart = bar + whisker
    if truth is not None:
        chart = chart + base.mark_tick(color="#d1495b", thickness=2, size=14).encode(y="truth:Q")
    note = f"bars: estimate, lines: {level:.0%} interval" + (
        ", red: truth" if truth is not None else ""
    )
    if len(order) < len(table.values):
        note += f"; the {len(order)} largest of {len(table.values):,}"
    note += _doubt(table)
    size = max(240, min(900, 22 * len(data)))
    chart = chart.properties(
        width=size,
        height=240,
        title={"text": f"{name} ({table.people:,} people)", "subtitle": note},
    )
    return _kept(chart, path)


def _doubt(table: Table) -> str:
    doubts = ["reconstructed"] if table.is_reconstructed else []
    doubts += [doubt for doubt in (table.unasked, table.partly) if doubt]
    return "".join(f"; {doubt}" for doubt in doubts)


def heat(
    table: Table, path: str | None = None, *, level: float = 0.95, population: bool = False
) -> Any:
    """A heat map of two attributes, or one for each value of a third; intervals on pointing."""
    alt = imported("altair")

    rows = table.rows(level, population=population)
    data = []
    for row in rows:
        *first, down, across = (written(part) for part in row["value"])
        reach = (row["high"] - row["low"]) / 2
        data.append(
            {
                "part": first[0] if first else "",
                "down": down,
                "across": across,
                "frequency": row["frequency"],
                "figures": f"{row['frequency']:.3f}\n±{reach:.3f}",
                "interval": f"{row['low']:.4f} to {row['high']:.4f}",
            }
        )
    names = table.attributes
    sides = {
        side: list(dict.fromkeys(row[side] for row in data)) for side in ("part", "down", "across")
    }
    if prod(len(labels) for labels in sides.values()) != len(data):
        raise InvalidInput("plot: two values of an attribute have the same label; draw bars")
    peak = max(1e-9, float(table.values.max()))
    angle = 0 if max(map(len, sides["across"])) <= 7 and len(data) <= MAX_WRITTEN_CELLS else -90
    base = alt.Chart().encode(
        x=alt.X("across:N", sort=sides["across"], title=names[-1], axis=alt.Axis(labelAngle=angle)),
        y=alt.Y("down:N", sort=sides["down"], title=names[-2]),
        tooltip=[
            *([alt.Tooltip("part:N", title=names[0])] if sides["part"] != [""] else []),
            alt.Tooltip("down:N", title=names[-2]),
            alt.Tooltip("across:N", title=names[-1]),
            alt.Tooltip("frequency:Q", format=".4f"),
            alt.Tooltip("interval:N", title=f"{level:.0%} interval"),
        ],
    )
    shade = alt.Color("frequency:Q", scale=alt.Scale(scheme="blues", domain=[0, peak], clamp=True))
    is_written = len(data) <= MAX_WRITTEN_CELLS
    step = 52 if is_written else 16
    layers = [base.mark_rect().encode(color=shade)]
    if is_written:
        ink = alt.condition(
            alt.datum.frequency > 0.6 * peak, alt.value("white"), alt.value("#1f3b4d")
        )
        layers.append(
            base.mark_text(lineBreak="\n", fontSize=10, dy=-5).encode(text="figures:N", color=ink)
        )
    size = {"width": step * len(sides["across"]), "height": min(step, 36) * len(sides["down"])}
    chart = alt.layer(*layers, data=alt.Data(values=data)).properties(**size)
    if len(names) == 3:
        wide = max(1, 900 // (size["width"] + 40))
        chart = chart.facet(
            facet=alt.Facet("part:N", sort=sides["part"], title=names[0]), columns=wide
        )
    note = f"±: half of a {level:.0%} interval" if is_written else "colour: frequency"
    title = f"{', '.join(names)} ({table.people:,} people)"
    return _kept(chart.properties(title={"text": title, "subtitle": note + _doubt(table)}), path)


def popular(
    found: Estimate, path: str | None = None, *, truth: NDArray[np.float64] | None = None
) -> Any:
    """Popular values as bars, the most frequent above; pale where it may be noise alone."""
    alt = imported("altair")

    table = found.table
    marks = [mark.significant for mark in found.marks or ()]
    data = [
        {
            **row,
            "value": f"{place + 1}. {written(row['value'])}",
            "found": "significant" if mark else "may be noise",
        }
        for place, (row, mark) in enumerate(zip(table.rows(), marks, strict=True))
    ][:MAX_POPULAR_BARS]
    for row, true in zip(data, () if truth is None else truth.tolist(), strict=False):
        row["truth"] = true
    shades = alt.Scale(domain=["significant", "may be noise"], range=["#7aa6c2", "#d5dde2"])
    down = alt.Y(
        "value:N", sort=[row["value"] for row in data], title=None, axis=alt.Axis(labelLimit=260)
    )
    base = alt.Chart(alt.Data(values=data)).encode(y=down)
    across = alt.X("frequency:Q", title="frequency", axis=alt.Axis(format="~%", tickCount=6))
    bar = base.mark_bar().encode(x=across, color=alt.Color("found:N", scale=shades, title=None))
    chart = bar + base.mark_rule(color="#1f3b4d", strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    note = "bars: estimate, lines: 95% interval"
    if truth is not None:
        chart = chart + base.mark_tick(color="#d1495b", thickness=2, size=14).encode(x="truth:Q")
        note += ", red: truth"
    if len(data) < len(marks):
        note += f"; the {len(data)} most frequent of {len(marks):,}"
    title = {"text": f"{', '.join(table.attributes)} ({table.people:,} people)", "subtitle": note}
    return _kept(chart.properties(width=420, height=max(60, 20 * len(data)), title=title), path)


def prefixes(found: Findings, path: str | None = None) -> Any:
    """The prefixes on the way to what was found, as a tree; wider where more people went."""
    shown = sorted(range(len(found.steps)), key=lambda place: -found.steps[place].frequency)[
        :MOST_PREFIXES
    ]
    kept = set(shown)
    for place in sorted(kept):  # a prefix stands only where what it extends does
        if found.steps[place].parent is not None and found.steps[place].parent not in kept:
            kept.discard(place)
    lengths = sorted({found.steps[place].length for place in kept})
    rows = _rows(found, kept)
    spot = {place: (lengths.index(found.steps[place].length), rows[place]) for place in kept}
    nodes, links = [], []
    for place in sorted(kept):
        step = found.steps[place]
        count = f"{step.frequency * found.people:,.0f} ± {step.std_error * found.people:,.0f}"
        nodes.append(
            {"name": f"{_shortened(step.label)}  {count}", "x": spot[place][0], "y": spot[place][1]}
        )
        if step.parent is not None:
            x, y = spot[step.parent]
            link = {
                "x": x,
                "y": y,
                "x2": spot[place][0],
                "y2": spot[place][1],
                "weight": max(step.frequency, 0.0),
            }
            between = f"{_shortened(found.steps[step.parent].label)} - {_shortened(step.label)}"
            links.append(
                link
                | {
                    "between": between,
                    "figure": count,
                    "is_clear": step.frequency > 2 * step.std_error,
                }
            )
    more = (
        ""
        if len(kept) == len(found.steps)
        else f"; the {len(kept)} most frequent of {len(found.steps):,}"
    )
    title, note = (
        "prefixes on the way",
        f"with counts ± standard errors{more}; dashed: within two standard errors of 0",
    )
    return network(nodes, links, path, title=title, subtitle=note, weight="frequency")


def _shortened(label: str) -> str:
    """A prefix that fits between two dots: long ones, such as bits, are cut short."""
    name = written(label)
    return name if len(name) <= LONGEST_PREFIX else f"{name[: LONGEST_PREFIX - 1]}…"


def _rows(found: Findings, kept: set[int]) -> dict[int, int]:
    """The row of each prefix: below what it extends, the most frequent first."""
    below: dict[int | None, list[int]] = {}
    for place in sorted(kept, key=lambda place: -found.steps[place].frequency):
        below.setdefault(found.steps[place].parent, []).append(place)
    rows: dict[int, int] = {}
    waiting = below.get(None, [])[::-1]
    while waiting:
        place = waiting.pop()
        rows[place] = len(rows)
        waiting += below.get(place, [])[::-1]
    return rows


def matrix(frame: Any, path: str | None = None, *, title: str = "") -> Any:
    """A heat map of a square data frame, such as correlations: red below 0, blue above."""
    alt = imported("altair")

    names = [str(name) for name in frame.columns]
    values = np.asarray(frame, dtype=float)
    if values.shape != (len(names), len(names)):
        raise InvalidInput(
            f"frame must be square, not {values.shape[0]} rows by {values.shape[1]} columns"
        )
    data = [
        {"one": one, "two": two, "value": float(values[i, j]), "figure": f"{values[i, j]:.2f}"}
        if np.isfinite(values[i, j])
        else {"one": one, "two": two, "value": None, "figure": "?"}  # not known
        for i, one in enumerate(names)
        for j, two in enumerate(names)
    ]
    peak = max(1e-9, float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
    has_signs = bool((values < 0).any())
    scale = alt.Scale(
        scheme="redblue" if has_signs else "blues", domain=[-peak if has_signs else 0, peak]
    )
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X("two:N", sort=names, title=None),
        y=alt.Y("one:N", sort=names, title=None),
        tooltip=["one:N", "two:N", alt.Tooltip("value:Q", format=".4f")],
    )
    chart = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, title=None))
    if len(data) <= MAX_WRITTEN_CELLS * 2:
        ink = alt.condition(
            f"abs(datum.value) > {0.6 * peak}", alt.value("white"), alt.value("#1f3b4d")
        )
        chart = chart + base.mark_text(fontSize=10).encode(text="figure:N", color=ink)
    step = 36 if len(names) <= 20 else 18
    return _kept(
        chart.properties(width=step * len(names), height=step * len(names), title=title), path
    )


def network(
    nodes: Sequence[Mapping[str, Any]],
    links: Sequence[Mapping[str, Any]],
    path: str | None = None,
    *,
    title: str = "",
    subtitle: str = "",
    weight: str = "nats",
) -> Any:
    """A tree as an outline: a row for each named node, as far in as its depth ``x``, so that no
    name meets another; links are wide by ``weight``.

    Links lead from ``x``, ``y`` to ``x2``, ``y2``, and say ``between`` which nodes, their
    ``figure`` and whether they are clear (``is_clear``) or dashed.
    """
    alt = imported("altair")

    longest = max(len(str(node["name"])) for node in nodes)
    columns = 1 + max(int(node["x"]) for node in nodes)
    rows = 1 + max(float(node["y"]) for node in nodes)
    width = max(NARROWEST_TREE, NODE_STEP * columns + LETTER_WIDTH * longest)
    ends = [-0.3, width / NODE_STEP - 0.3]  # names have their place behind the last column
    across = alt.Scale(domain=ends, nice=False)
    down = alt.Scale(domain=[-0.6, rows - 0.4], reverse=True, nice=False)
    x, x2 = alt.X("x:Q", axis=None, scale=across), alt.X2("x2:Q")
    drawn = alt.Chart(alt.Data(values=[dict(each) for each in links]))
    stem = drawn.mark_rule(color="#7aa6c2").encode(
        x=x, y=alt.Y("y:Q", axis=None, scale=down), y2="y2:Q"
    )
    link = drawn.mark_rule(color="#7aa6c2").encode(
        x=x,
        x2=x2,
        y=alt.Y("y2:Q", axis=None, scale=down),
        strokeWidth=alt.StrokeWidth(
            "weight:Q", scale=alt.Scale(range=[1, 10], zero=True), title=weight
        ),
        strokeDash=alt.condition("datum.is_clear", alt.value([1, 0]), alt.value([4, 3])),
        tooltip=["between:N", "figure:N"],
    )
    base = alt.Chart(alt.Data(values=[dict(each) for each in nodes])).encode(
        x=x, y=alt.Y("y:Q", axis=None, scale=down)
    )
    dot = base.mark_circle(size=90, color="#1f3b4d", opacity=1)
    name = base.mark_text(
        align="left", baseline="middle", dx=10, fontSize=12, color="#1f3b4d"
    ).encode(text="name:N")
    chart = (stem + link + dot + name).properties(
        title={"text": title, "subtitle": subtitle},
        width=width,
        height=max(60, NODE_ROW * rows),
    )
    return _kept(chart.properties(view={"stroke": None}), path)


def stacked(tables: Sequence[Table]) -> Any:
    """The pictures of several tables, one below the other."""
    alt = imported("altair")

    charts = [table.plot() for table in tables]
    return (
        charts[0] if len(charts) == 1 else alt.vconcat(*charts).resolve_scale(color="independent")
    )


def beneath(charts: Sequence[Any]) -> Any:
    """Charts one below the other, each with colours and widths of its own."""
    alt = imported("altair")

    return alt.vconcat(*charts).resolve_scale(color="independent", strokeWidth="independent")


def _kept(chart: Any, path: str | None) -> Any:
    if path is not None:
        save(chart, path)
    return chart


def svg(chart: Any) -> str:
    """A chart as SVG text."""
    vl_convert = imported("vl_convert")

    text: str = vl_convert.vegalite_to_svg(chart.to_json())
    return text


def check_ending(path: str) -> str:
    """The ending of a picture's file; refused unless it is one of a kind that can be drawn.

    >>> check_ending("errors.SVG")
    '.svg'
    """
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise InvalidInput(f"plot ({path}) must end in one of {', '.join(FORMATS)}")
    return kind


def save(chart: Any, path: str) -> None:
    """Write a chart as SVG, PNG, self-contained HTML or Vega-Lite JSON, by the file's ending."""
    vl_convert = imported("vl_convert")

    kind = check_ending(path)
    with replacing(path) as draft:
        if kind == ".png":
            draft.write_bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=2))
        elif kind == ".svg":
            draft.write_text(svg(chart), encoding="utf-8")
        elif kind == ".html":
            page = vl_convert.vegalite_to_html(chart.to_json(), bundle=True)
            # of the scripts in the page, which leave it out
            licence = VEGA_LICENCE.read_text(encoding="utf-8")
            draft.write_text(f"{page}\n<!--\n{licence}-->\n", encoding="utf-8")
        else:
            draft.write_text(chart.to_json(), encoding="utf-8")
