"""The demo's page: one file, no network, light and dark."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from sottovoce import __version__
from sottovoce.files import replacing

if TYPE_CHECKING:
    from sottovoce.cli.demo import Finding
    from sottovoce.front import Plan
    from sottovoce.reports import Report

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #1d2a33; --soft: #5d6b75;
  --line: #e3e0d8; --grid: #ecebe6; --bar: #8fb3c9; --accent: #22627f; --truth: #c8374d; --code: #f3f1ea; }
@media (prefers-color-scheme: dark) { :root { --paper: #12181c; --card: #1a2228; --ink: #e6ebee;
  --soft: #98a6b0; --line: #2a353d; --grid: #27323a; --bar: #44708a; --accent: #8cc4df; --truth: #ff7d8d;
  --code: #141b20; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 48px 24px 72px; }
h1 { font: 600 2.3rem/1.15 Georgia, "Times New Roman", serif; margin: 0 0 .3rem; }
h2 { font: 600 1.35rem/1.3 Georgia, "Times New Roman", serif; margin: 2.6rem 0 .8rem; }
p { max-width: 70ch; margin: .5rem 0; }
.lede { color: var(--soft); font-size: 1.1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 1.8rem 0; }
.fact, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.fact { padding: 14px 16px; color: var(--soft); font-size: .85rem; line-height: 1.35; }
.fact b { display: block; color: var(--ink); font: 600 1.55rem/1.25 Georgia, serif; }
.card { padding: 18px 20px; margin: 14px 0; }
.card h3 { margin: 0 0 .1rem; font-size: 1.05rem; }
.card .note { color: var(--soft); font-size: .88rem; margin: 0 0 .8rem; }
.pair { display: grid; grid-template-columns: minmax(0, 1.35fr) minmax(0, 1fr); gap: 26px; align-items: start; }
@media (max-width: 820px) { .pair { grid-template-columns: minmax(0, 1fr); } }
.plot svg { display: block; width: 100%; height: auto; }
.plot svg text { fill: var(--soft); }
.plot .role-axis-title { display: none; }
.plot .role-axis-grid line { stroke: var(--grid); }
.plot .role-axis-domain line, .plot .role-axis-tick line { stroke: var(--line); }
.plot .layer_0_marks path { fill: var(--bar); }
.plot .layer_1_marks line { stroke: var(--ink); }
.plot .layer_2_marks path { fill: var(--truth); }
.key { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin: 0 .3em 0 .8em; }
.key:first-child { margin-left: 0; }
.key.bar { background: var(--bar); }
.key.line { background: var(--ink); width: 2px; height: 1em; vertical-align: -.15em; }
.key.truth { background: var(--truth); height: .22em; vertical-align: .25em; }
table { border-collapse: collapse; width: 100%; font-size: .84rem; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 6px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; }
tr.missed td { color: var(--truth); }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; margin: .5rem 0;
  font: .84rem/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .92em ui-monospace, Menlo, Consolas, monospace; }
.steps { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 6px 22px; }
.steps > * { min-width: 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
"""

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A private survey, by sottovoce</title>
<style>$style</style>
</head>
<body>
<main>
<h1>Everyone whispers; the crowd is heard</h1>
<p class="lede">$people made-up people answered a survey. Their true answers stayed with them; what is below was learnt
from noisy whispers alone.</p>
<div class="facts">$facts</div>
<h2>What each person was promised</h2>
$promise
<h2>What the crowd said</h2>
<p>$coverage</p>
$findings
<h2>The plan</h2>
<p>Public and frozen before the first answer. Its id is the SHA-256 of its bytes, and every report names it.</p>
<pre>$plan</pre>
<h2>What one report looks like</h2>
<p>The first person of the file. The record never left the device; this is all that anybody received.</p>
<div class="card steps">$report</div>
<footer>sottovoce $version &middot; plan <code>$id</code></footer>
</main>
</body>
</html>
""")


def write_page(path: Path, plan: Plan, findings: Sequence[Finding], record: Mapping[str, Any], report: Report) -> None:
    """The whole story of a survey in one file that needs nothing else."""
    text = PAGE.substitute(
        style=STYLE,
        people=f"{plan.people:,}",
        facts=_facts(plan),
        promise=_promise(plan),
        coverage=_coverage(findings),
        findings="\n".join(_finding(finding) for finding in findings),
        plan=escape(str(plan)),
        report=_report(record, report),
        version=escape(__version__),
        id=plan.id[:16],
    )
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _facts(plan: Plan) -> str:
    cohorts = len(plan.cohorts)
    bits = [plan.cohorts[index].bits for index in range(cohorts)]
    facts = (
        (f"{plan.people:,}", "people, each asked one thing"),
        (f"{cohorts}", "cohorts, drawn by the devices"),
        (f"{plan.guarantee.per_report:.3g}", "epsilon, the most a report can cost"),
        (f"{min(bits)} to {max(bits)}", "bits in a report's answer"),
    )
    return "".join(f'<div class="fact"><b>{value}</b>{about}</div>' for value, about in facts)


def _promise(plan: Plan) -> str:
    guarantee = plan.guarantee
    times = math.exp(guarantee.per_report)
    return (
        f"<p>Whatever you answer, each report that your device might send could also come from any other answer, and "
        f"is at most <b>{times:.2f} times</b> likelier under yours. Somebody who gave your secret a 50% chance and "
        f"then reads your report is at most <b>{guarantee.best_guess(0.5):.0%}</b> sure; from 10% they get to at most "
        f"{guarantee.best_guess(0.1):.0%}. This holds whatever else they know, for whoever receives the reports, and "
        f"cannot be undone later.</p>"
        f"<p>The coins are tossed on the device against integer thresholds, so the number above is proved, not "
        f"measured: <code>sottovoce audit plan.json</code> lists every report and its exact chance.</p>"
    )


def _coverage(findings: Sequence[Finding]) -> str:
    held = sum(finding.held for finding in findings)
    total = sum(len(finding.truth) for finding in findings)
    return (
        f"{held} of the {total} intervals hold the truth; 95% of them should. Estimates are unbiased and unrepaired, "
        f"so a rare value may come out below zero."
    )


def _finding(finding: Finding) -> str:
    table = finding.table
    return (
        f'<section class="card"><h3>{escape(", ".join(table.attributes))}</h3>'
        f'<p class="note">{table.people:,} whispers &middot; <span class="key bar"></span>estimate'
        f'<span class="key line"></span>95% interval<span class="key truth"></span>truth</p>'
        f'<div class="pair"><div class="plot">{_svg(finding)}</div>{_rows(finding)}</div></section>'
    )


def _svg(finding: Finding) -> str:
    """The plot without title, background and namespaces; the page's style colours it."""
    from sottovoce.plots import svg

    table = replace(finding.table, labels=[_named(label) for label in finding.table.labels])
    few = len(table.labels) <= 4
    chart = table.plot(truth=finding.truth)
    chart = chart.properties(title="", width=460, height=120 if few else 250, background="transparent")
    chart = chart.configure_view(stroke=None).configure_axisX(labelAngle=0 if few else -45)
    return re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg(chart))


def _rows(finding: Finding) -> str:
    low, high = finding.table.interval()
    rows = []
    for place, label in enumerate(finding.table.labels):
        holds = low[place] <= finding.truth[place] <= high[place]
        row = "<tr>" if holds else '<tr class="missed">'
        rows.append(
            f"{row}<td>{escape(_named(label))}</td><td>{_percent(finding.truth[place])}</td>"
            f"<td>{_percent(finding.table.values[place])}</td><td>{_percent(finding.table.std_error[place])}</td>"
            f"<td>{_percent(low[place])} to {_percent(high[place])}</td></tr>"
        )
    head = "<tr><th>value</th><th>truth</th><th>estimate</th><th>std error</th><th>95% interval</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _percent(share: float) -> str:
    return f"{share:z.1%}"


def _named(label: object) -> str:
    return {True: "yes", False: "no"}[label] if isinstance(label, bool) else str(label)


def _report(record: Mapping[str, Any], report: Report) -> str:
    wire = report.to_bytes()
    parts = (
        ("The record, on the device only", json.dumps(dict(record))),
        (f"On the wire, {len(wire)} bytes", wire.hex(" ")),
        ("The same report as JSON", json.dumps(json.loads(report.to_json()), indent=1)),
    )
    return "".join(f'<div><p class="note">{title}</p><pre>{escape(body)}</pre></div>' for title, body in parts)
