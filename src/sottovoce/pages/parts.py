"""What pages are made of: their style, tables, and what a person was promised in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from sottovoce.protocol.guarantee import at_most, at_most_percent

if TYPE_CHECKING:
    from sottovoce.protocol.guarantee import Guarantee

PAGE_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #1d2a33;
  --soft: #5d6b75; --line: #e3e0d8; --grid: #ecebe6; --bar: #8fb3c9; --accent: #22627f;
  --truth: #c8374d; --code: #f3f1ea; }
@media (prefers-color-scheme: dark) { :root { --paper: #12181c; --card: #1a2228; --ink: #e6ebee;
  --soft: #98a6b0; --line: #2a353d; --grid: #27323a; --bar: #44708a; --accent: #8cc4df;
  --truth: #ff7d8d; --code: #141b20; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 48px 24px 72px; }
h1 { font: 600 2.3rem/1.15 Georgia, "Times New Roman", serif; margin: 0 0 .3rem; }
h2 { font: 600 1.35rem/1.3 Georgia, "Times New Roman", serif; margin: 2.6rem 0 .8rem; }
p { max-width: 70ch; margin: .5rem 0; }
.lede { color: var(--soft); font-size: 1.1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 1.8rem 0; }
.fact, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.fact { padding: 14px 16px; color: var(--soft); font-size: .85rem; line-height: 1.35; }
.fact b { display: block; color: var(--ink); font: 600 1.55rem/1.25 Georgia, serif; }
.card { padding: 18px 20px; margin: 14px 0; }
.card h3 { margin: 0 0 .1rem; font-size: 1.05rem; }
.card .note { color: var(--soft); font-size: .88rem; margin: 0 0 .8rem; }
.plot svg { display: block; width: 100%; max-width: 860px; height: auto; margin: 0 auto .8rem; }
.plot svg text { fill: var(--soft); }
.plot .role-axis-grid line { stroke: var(--grid); }
.plot .role-axis-domain line, .plot .role-axis-tick line { stroke: var(--line); }
.plot:not(.popular) .mark-rect[class*="layer_0_marks"] path { fill: var(--bar); }
.plot .mark-rule[class*="layer_1_marks"] line { stroke: var(--ink); }
.plot .mark-rect[class*="layer_2_marks"] path { fill: var(--truth); }
.plot.tree .layer_0_marks line { stroke: var(--bar); }
.plot.tree .layer_1_marks path { fill: var(--ink); }
.plot.tree .layer_2_marks text { fill: var(--card); stroke: var(--card); }
.plot.tree .layer_3_marks text { fill: var(--ink); }
.plot.tree .role-legend-symbol path { stroke: var(--bar); }
.wide { overflow-x: auto; }
.narrow table { width: auto; }
.narrow th, .narrow td { padding-right: 28px; }
summary { cursor: pointer; color: var(--accent); font-size: .9rem; }
.key { display: inline-block; width: .75em; height: .75em; border-radius: 2px;
  margin: 0 .3em 0 .8em; }
.key:first-child { margin-left: 0; }
.key.bar { background: var(--bar); }
.key.line { background: var(--ink); width: 2px; height: 1em; vertical-align: -.15em; }
.key.truth { background: var(--truth); height: .22em; vertical-align: .25em; }
table { border-collapse: collapse; width: 100%; font-size: .84rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: 3px 6px; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th.word, td.word { text-align: left; }
tr.missed td { color: var(--truth); }
tr.chosen td { font-weight: 600; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 14px; margin: .5rem 0;
  font: .84rem/1.5 ui-monospace, Menlo, Consolas, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .92em ui-monospace, Menlo, Consolas, monospace; }
.steps { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr));
  gap: 6px 22px; }
.steps > * { min-width: 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
"""


def promise_html(guarantee: Guarantee) -> str:
    times = math.exp(guarantee.per_report)
    but = (
        f", but for a chance of {at_most(guarantee.delta)} that is counted in below"
        if guarantee.delta
        else ""
    )
    even, unlikely = (at_most_percent(guarantee.best_guess(prior)) for prior in (0.5, 0.1))
    return (
        "<p>Whatever you answer, each report that your device might send could also come from any "
        f"other answer, and is at most <b>{at_most(times)} times</b> likelier under yours{but}. "
        "Somebody who gave your secret a 50% chance and then reads your report is at most "
        f"<b>{even}</b> sure; from 10% they get to at most {unlikely}. This holds whatever else "
        "they know, for whoever receives the reports, and cannot be undone later.</p><p>The coins "
        "are tossed on the device against integer thresholds, so the number above is proved, not "
        "measured: <code>sottovoce audit plan.json</code> runs the device's own code along the "
        "ways its coins can fall, with exact chances, and says what it enumerated and what it "
        "sampled.</p>"
    )


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: int = 1,
    marks: Mapping[int, str] | None = None,
) -> str:
    """An HTML table: ``words`` columns of words, then figures; ``marks`` are classes of rows."""

    def line(cells: Sequence[str], tag: str, mark: str = "") -> str:
        inside = "".join(
            f'<{tag} class="word">{escape(cell)}</{tag}>'
            if place < words
            else f"<{tag}>{escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )
        return f'<tr class="{mark}">{inside}</tr>' if mark else f"<tr>{inside}</tr>"

    body = "".join(
        line(cells, "td", (marks or {}).get(place, "")) for place, cells in enumerate(rows)
    )
    return f"<table>{line(head, 'th')}{body}</table>"
