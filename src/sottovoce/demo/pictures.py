"""The demo's pictures: estimates with their intervals beside the truth, and the dependency tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.ground.extras import imported
from sottovoce.ground.labels import parts

if TYPE_CHECKING:
    from sottovoce.analysis import Tree
    from sottovoce.demo.survey import Finding

LIGHT_BAR, LIGHT_INK, LIGHT_TRUTH = (
    "#8fb3c9",
    "#1d2a33",
    "#c8374d",
)  # as the page has them in the light
CHART_HEIGHT = 210
CHART_STEP = 46  # from bar to bar, at most
MOST_WIDE = 640  # of all bars together


def marginal(finding: Finding) -> Any:
    """An Altair chart of one table: bars, intervals, red ticks for the truth; a panel a prefix."""
    alt = imported("altair")

    names = finding.table.attributes
    data = _rows(finding)
    step = min(CHART_STEP, MOST_WIDE // len(data))
    chart = _bars(data, names[-1], step)
    if len(names) > 1:
        panels = list(dict.fromkeys(row["panel"] for row in data))
        heading = alt.Header(labelFontSize=12, titleFontSize=12, labelPadding=4)
        facet = alt.Facet("panel:N", sort=panels, title=", ".join(names[:-1]), header=heading)
        chart = chart.facet(facet=facet, columns=len(panels), spacing=14)
    return chart.configure_view(stroke=None)


def singles(findings: Sequence[Finding]) -> Any:
    """An Altair chart of several attributes, side by side on one scale."""
    alt = imported("altair")

    step = min(CHART_STEP, MOST_WIDE // sum(len(finding.truth) for finding in findings))
    panels = [
        _bars(_rows(finding), finding.table.attributes[0], step, has_scale=place == 0)
        for place, finding in enumerate(findings)
    ]
    return alt.hconcat(*panels, spacing=12).resolve_scale(y="shared").configure_view(stroke=None)


def _rows(finding: Finding) -> list[dict[str, Any]]:
    low, high = finding.table.interval()
    rows = []
    for place, label in enumerate(finding.table.labels):
        *panel, value = parts(label)
        rows.append(
            {
                "panel": ", ".join(panel),
                "value": value,
                "estimate": float(finding.table.values[place]),
                "low": float(low[place]),
                "high": float(high[place]),
                "truth": float(finding.truth[place]),
            }
        )
    return rows


def _bars(data: Sequence[dict[str, Any]], name: str, step: int, has_scale: bool = True) -> Any:
    alt = imported("altair")

    values = list(dict.fromkeys(row["value"] for row in data))
    angle = 0 if step * 0.95 >= 6.5 * max(map(len, values)) else -45
    base = alt.Chart().encode(
        x=alt.X("value:N", sort=values, title=name, axis=alt.Axis(labelAngle=angle))
    )
    axis = alt.Axis(format="%", tickCount=5, labels=has_scale, ticks=has_scale, domain=has_scale)
    layers = (
        base.mark_bar(color=LIGHT_BAR, width=0.72 * step).encode(
            y=alt.Y("estimate:Q", title=None, axis=axis)
        ),
        base.mark_rule(color=LIGHT_INK, strokeWidth=1.6).encode(y="low:Q", y2="high:Q"),
        base.mark_tick(color=LIGHT_TRUTH, thickness=2.5, width=0.55 * step, opacity=1).encode(
            y="truth:Q"
        ),
    )
    return alt.layer(*layers, data=alt.Data(values=list(data))).properties(
        width=step * len(values), height=CHART_HEIGHT
    )


def titled(chart: Any, finding: Finding, epsilon: float) -> Any:
    """The chart with what it shows above it, to stand by itself."""
    names = " and ".join(finding.table.attributes)
    title = {
        "text": f"{names}, as {finding.table.people:,} people whispered it at epsilon {epsilon:g}",
        "subtitle": "blue: what the reports say; lines: 95% intervals; "
        "red: the truth, which nobody was told",
        "anchor": "start",
        "offset": 12,
        "fontSize": 15,
        "subtitleFontSize": 12,
    }
    return chart.properties(title=title, background="white", padding=16)


def tree(found: Tree) -> Any:
    """The dependency tree without a title."""
    return found.plot().properties(title="")


def inline(chart: Any) -> str:
    """A chart as SVG for the page, without background and namespaces;
    the page's style colours it.
    """
    from sottovoce.results.plots import svg

    return re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg(chart.properties(background="transparent")))
