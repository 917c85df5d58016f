"""Tables for notebooks: rows with their intervals drawn, in plain HTML that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.ground.html import text_html
from sottovoce.ground.labels import written

if TYPE_CHECKING:
    from sottovoce.results.estimate import Estimate, Table
    from sottovoce.results.findings import Findings

MAX_HTML_ROWS = 60
MAX_HTML_TABLES = 12
ROW_WIDTH, ROW_HEIGHT = 160, 14  # pixels of the picture of a row


def table_html(table: Table, level: float = 0.95, stars: Sequence[bool] | None = None) -> str:
    """A table with a bar and an interval in each row; of a large table the largest values.

    ``stars``: which values have one behind them.
    """
    places = np.arange(len(table))
    if len(places) > MAX_HTML_ROWS:
        places = table.largest_first()[:MAX_HTML_ROWS]
    shown = table.at(places)
    rows = shown.rows(level)
    least = min([0.0, *(row["low"] for row in rows)])
    most = max([1e-9, *(row["high"] for row in rows)])
    several = len(table.attributes) > 1
    lines = []
    marks = [""] * len(places)
    if stars is not None:
        marks = [" *" if stars[place] else "" for place in places.tolist()]
    for row, mark in zip(rows, marks, strict=True):
        labels = row["value"] if several else (row["value"],)
        heads = "".join(f"<th>{text_html(written(label))}</th>" for label in labels)
        picture = _interval(row["frequency"], row["low"], row["high"], least, most)
        figures = f"<td>{row['frequency']:.4f}{mark}</td><td>{row['std_error']:.4f}</td>"
        lines.append(
            f"<tr>{heads}{figures}<td>[{row['low']:.4f}, "
            f"{row['high']:.4f}]</td><td>{picture}</td></tr>"
        )
    names = "".join(f"<th>{text_html(name)}</th>" for name in table.attributes)
    head = (
        f"<tr>{names}<th>frequency</th><th>std error</th><th>{100 * level:.4g}% "
        "interval</th><th></th></tr>"
    )
    notes = list(table.notes)
    if len(rows) < len(table):
        notes.append(f"the {len(rows)} largest of {len(table):,}")
    if stars is not None:
        notes.append("* significant")
    caption = f"<caption>{text_html(', '.join(notes))}</caption>"
    return f"<table>{caption}<thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


def findings_html(found: Findings) -> str:
    """What is popular, starred where noise alone does not explain it, and what to know of it."""
    table = table_html(found.table, stars=found.significant().tolist())
    return table + "".join(f"<p>{text_html(note)}</p>" for note in found.notes)


def estimate_html(estimate: Estimate) -> str:
    """The tables that are listed, one after the other."""
    names = list(estimate.tables)
    tables = [table_html(estimate.tables[each]) for each in names[:MAX_HTML_TABLES]]
    more = len(names) - len(tables)
    left_out = [f"<p>and {more:,} more tables</p>"] if more else []
    remarks = [f"<p>{text_html(remark)}</p>" for remark in estimate.remarks]
    return "".join([*tables, *left_out, *remarks])


def _interval(value: float, low: float, high: float, least: float, most: float) -> str:
    """A bar from 0 to the value, and a line over its interval."""
    zero, end, left, right = (
        ROW_WIDTH * (at - least) / (most - least) for at in (0.0, value, low, high)
    )
    middle = ROW_HEIGHT / 2
    bar = (
        f'<rect x="{min(zero, end):.1f}" y="2" width="{abs(end - zero):.1f}" '
        f'height="{ROW_HEIGHT - 4}" fill="#7aa6c2"/>'
    )
    line = (
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}" '
        'stroke="#1f3b4d" stroke-width="1.5"/>'
    )
    return (
        f'<svg width="{ROW_WIDTH}" height="{ROW_HEIGHT}" role="img" aria-hidden="true">'
        f"{bar}{line}</svg>"
    )
