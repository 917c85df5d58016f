"""A release on one page: what is promised, what was spent, what was found; it loads nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from sottovoce.central.result import RELEASE_LEVEL, Release
from sottovoce.ground.labels import visible, written

MAX_SUMMARY_ROWS = 40  # of each k
BAR_WIDTH, BAR_HEIGHT = 180, 14  # pixels of the picture of a row

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1d2a33; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid #dde4e8;
  vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.note { background: #fff6e0; padding: .5rem .8rem; border-left: 3px solid #d9a520; }
.promise { background: #eaf3f8; padding: .5rem .8rem; border-left: 3px solid #3d7ea6; }
rect { fill: #7aa6c2; } line { stroke: #1f3b4d; stroke-width: 1.5; }
@media (max-width: 40rem) {
  svg { display: none; }
  table { display: block; overflow-x: auto; }
}
@media (prefers-color-scheme: dark) {
  body { color: #e3e9ec; background: #12181b; }
  th, td { border-color: #2e3b42; }
  .note { background: #33290f; } .promise { background: #152b37; }
  rect { fill: #4a7f9f; } line { stroke: #d5e4ec; }
}
"""


def summary_html(release: Release) -> str:
    """The page of a release."""
    what = "sets of items" if release.is_sets else f"{len(release.attributes)} attributes"
    parts = [
        f"<h1>A private release of {what}</h1>",
        f'<p class="promise">{_text(str(release.guarantee))}</p>',
        "<p>Counts are numbers of users, with noise added. The standard error is that of the "
        f"noise, and as far as noise goes the interval holds the true count in {RELEASE_LEVEL:.0%} "
        "of cases; what notes say of counts is not in it. What stands here may be shared; the "
        "table it was made of may not.</p>",
        *(f'<p class="note">{_text(note)}</p>' for note in release.notes),
        _found(release),
        *(_tuples(release, k) for k in sorted(release.tuples)),
        _spent(release),
        _made(release),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>A private release of {what}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _text(words: str) -> str:
    return escape(visible(words))


def _table(heads: list[str], rows: list[list[str]], numbers: int = 0) -> str:
    """An HTML table whose last ``numbers`` columns are numbers; cells are HTML already."""
    first = len(heads) - numbers

    def line(tag: str, cells: list[str]) -> str:
        told = [
            f'<{tag} class="number">{cell}</{tag}>' if place >= first else f"<{tag}>{cell}</{tag}>"
            for place, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(told)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', heads)}</thead><tbody>\n{body}\n</tbody></table>"


def _found(release: Release) -> str:
    rows = []
    for k, counts in sorted(release.tuples.items()):
        doubtful = int(counts.may_be_spurious.sum())
        middle = float(np.median(counts.std_errors)) if len(counts.counts) else math.nan
        error = "" if math.isnan(middle) else f"{middle:,.2f}"
        rows.append([str(k), f"{len(counts.counts):,}", f"{doubtful:,}", error])
    heads = ["values together", "released", "of them may be held by nobody", "median std error"]
    return "<h2>What was released</h2>" + _table(heads, rows, numbers=3)


def _tuples(release: Release, k: int) -> str:
    counts = release.tuples[k]
    largest = np.argsort(-counts.counts, kind="stable")[:MAX_SUMMARY_ROWS]
    rows = replace(release, tuples={k: counts.at(largest)}).rows(k)
    most = max([1e-9, *(row["high"] for row in rows)])
    lines = []
    for row in rows:
        name = _text(_label(row["tuple"]))
        doubt = " *" if row["may_be_spurious"] else ""
        if math.isnan(row["count"]):
            lines.append([name + doubt, "", "unknown", "", ""])
            continue
        figures = [f"{row['count']:,.1f}", f"{row['std_error']:,.2f}"]
        reach = f"{row['low']:,.1f} to {row['high']:,.1f}"
        lines.append([name + doubt, _bar(row, most), *figures, reach])
    total = len(counts.counts)
    more = f"<p>The {len(rows)} largest of {total:,}.</p>" if total > len(rows) else ""
    if any(row["may_be_spurious"] for row in rows):
        more += "<p>* May be held by nobody: it was found under noise.</p>"
    title = "Single values" if k == 1 else f"{k} values together"
    heads = ["value", "", "count", "std error", f"{RELEASE_LEVEL:.0%} interval"]
    return f"<h2>{title}</h2>{_table(heads, lines, numbers=3)}{more}"


def _label(values: Any) -> str:
    if isinstance(values, dict):
        return ", ".join(f"{name} = {written(value)}" for name, value in values.items())
    return ", ".join(written(value) for value in values)


def _bar(row: dict[str, Any], most: float) -> str:
    """A bar up to the count, and a line over its interval."""
    end, left, right = (
        BAR_WIDTH * min(max(row[name], 0.0), most) / most for name in ("count", "low", "high")
    )
    middle = BAR_HEIGHT / 2
    return (
        f'<svg width="{BAR_WIDTH}" height="{BAR_HEIGHT}" role="img" aria-hidden="true">'
        f'<rect x="0" y="2" width="{end:.1f}" height="{BAR_HEIGHT - 4}"/>'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/></svg>'
    )


def _spent(release: Release) -> str:
    """The ledger, a line for each step."""
    rows = []
    for step in release.ledger["steps"]:
        told = {key: value for key, value in step.items() if value is not None}
        head = [_text(str(told.pop(key, ""))) for key in ("name", "purpose", "mechanism")]
        figures = ", ".join(f"{key.replace('_', ' ')} {_figure(told[key])}" for key in told)
        rows.append([*head, _text(figures)])
    heads = ["step", "spent for", "mechanism", "figures"]
    return "<h2>What was spent</h2>" + _table(heads, rows)


def _figure(value: Any) -> str:
    """A number of the ledger in six digits; the file has it exactly."""
    try:
        return f"{float(Fraction(str(value))):.6g}"
    except (ValueError, ZeroDivisionError):
        return str(value)


def _made(release: Release) -> str:
    told = {
        "method": f"{release.method} ({release.choice['why']})",
        **{key: value for key, value in release.parameters.items() if value not in (None, {})},
        "made with": ", ".join(f"{name} {number}" for name, number in release.versions.items()),
    }
    rows = [[_text(str(name).replace("_", " ")), _text(str(value))] for name, value in told.items()]
    return "<h2>How it was made</h2>" + _table(["parameter", "value"], rows)
