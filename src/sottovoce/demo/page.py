"""The demo's page: one file, no network, light and dark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from sottovoce import __version__
from sottovoce.demo import pictures, popularity
from sottovoce.demo.mixed import trust_models
from sottovoce.ground.files import replacing
from sottovoce.ground.labels import parts
from sottovoce.pages.parts import facts_html, html_table, page_style, promise_html
from sottovoce.protocol.guarantee import at_most

if TYPE_CHECKING:
    from sottovoce.demo.posting import Posted
    from sottovoce.demo.survey import Finding, Pair, Story
    from sottovoce.measure import MarginalsComparison
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Report
    from sottovoce.questions.prediction import Rank

SINGLE = ("attribute", "value")
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
<p class="lede">$people made-up people answered a survey.
Their true answers stayed with them; what is below was learnt from noisy whispers alone.</p>
<div class="facts">$facts</div>
<h2>What each person was promised</h2>
$promise
<h2>How the planner chose</h2>
<p>Before anybody was asked, every method's error was predicted for this survey:
its attributes, people and epsilon. The best is in the plan.</p>
<div class="card wide">$ranking</div>
<h2>What the crowd said</h2>
<p>$coverage</p>
<p>$method</p>
$findings
<h2>What tells about what</h2>
<p>The tree that holds the most mutual information: each attribute beside the one that tells most
about it. Figures are in nats, with what noise alone would seem to tell taken off;
dashed edges may be noise.</p>
<div class="card"><div class="plot tree">$tree</div><div class="wide narrow">$edges</div></div>
<h2>The strongest pairs</h2>
<p>Cramer's V: 0 for independent attributes, 1 where one decides the other.
A method that pulls estimates towards a model makes strong ties look weaker than they are.</p>
<div class="card wide narrow">$pairs</div>
<h2>What is popular</h2>
<p>Another survey, of $crowd simulated devices at epsilon $liking: answers that nobody listed
beforehand, and baskets. The values themselves come out of the noise;
a pale bar is a value that noise alone may have put there.</p>
$popular
<h2>Three methods, measured</h2>
<p>$comparison</p>
<div class="card wide narrow">$compared</div>
<h2>Over the network</h2>
<p>$posted</p>
$heard
<h2>Shuffled</h2>
<p>$mixed</p>
$shuffled
<h2>With a trusted curator</h2>
<p>$curated</p>
<p>All tables of up to three attributes, what was spent and a summary are in the folder
<code>release</code>.</p>
$released
<h2>Whom must people trust?</h2>
<p>The same table at the same epsilon, in three trust models:
the farther answers may travel, the nearer the table comes to the truth.</p>
<div class="card wide narrow">$trust</div>
<h2>The plan</h2>
<p>Public and frozen before the first answer.
Its id is the SHA-256 of its bytes, and every report names it.</p>
<pre>$plan</pre>
<h2>What one report looks like</h2>
<p>The first person of the file.
The record never left the device; this is all that anybody received.</p>
<div class="card steps">$report</div>
<footer>sottovoce $version &middot; plan <code>$id</code></footer>
</main>
</body>
</html>
""")


def write_page(path: Path, story: Story) -> None:
    """The whole story of a survey in one file that needs nothing else."""
    plan = story.plan
    text = PAGE.substitute(
        style=page_style(),
        people=f"{plan.people:,}",
        facts=_facts(plan),
        promise=promise_html(plan.guarantee),
        ranking=_ranking(story.ranks),
        coverage=escape(story.coverage),
        method=_method(story.two),
        findings="\n".join([_singles(story.singles), _finding(story.two), _finding(story.three)]),
        tree=pictures.inline(pictures.tree(story.tree)),
        edges=_edges(story),
        pairs=_pairs(story.pairs),
        crowd=f"{popularity.CROWD_PEOPLE:,}",
        liking=popularity.EPSILON,
        popular=popularity.section(story.popular),
        comparison=_comparison(story.compared),
        compared=_compared(story.compared),
        posted=_posted(story.posted),
        heard=_card(
            "each attribute, from what was posted",
            pictures.singles(story.heard),
            SINGLE,
            story.heard,
        ),
        curated=escape(f"{story.curated.sentence} {story.curated.release.guarantee}."),
        released=_finding(story.curated.central),
        mixed=escape(story.mixed.sentence),
        shuffled=_finding(story.mixed.finding),
        trust=_trust(story),
        plan=escape(str(plan)),
        report=_report(story.record, story.report),
        version=escape(__version__),
        id=plan.id[:16],
    )
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _facts(plan: Plan) -> str:
    size = plan.cohorts.bytes
    facts = (
        (f"{plan.people:,}", "people, each sending one report"),
        (f"{len(plan.schema)}", "attributes, any of which can be asked for together"),
        (f"{plan.guarantee.per_report:.3g}", "epsilon, the most a report can cost"),
        *(
            [(f"{at_most(plan.guarantee.delta)}", "delta, the chance that it costs more")]
            if plan.guarantee.delta
            else []
        ),
        (f"{len(plan.cohorts):,}", "cohorts, drawn by the devices"),
        (f"{size}", f"byte{'s' if size > 1 else ''} of answer in a report, at most"),
    )
    return facts_html(facts)


def _ranking(ranks: Sequence[Rank]) -> str:
    fitting = [rank for rank in ranks if rank.predicted_sse is not None]
    rows = [
        (
            rank.method,
            rank.reason,
            f"{rank.predicted_sse:.2g}",
            f"{rank.per_cell:.2g}",
            _ratio(rank.ratio or 1),
        )
        for rank in fitting
    ]
    chosen = {place: "chosen" for place, rank in enumerate(fitting) if rank.chosen}
    head = ("method", "what decides", "squared error of a table", "per cell", "to the best")
    refused = "".join(
        f'<p class="note">{escape(rank.method)} does not fit: {escape(rank.reason)}</p>'
        for rank in ranks
        if rank.predicted_sse is None
    )
    return html_table(head, rows, words=2, marks=chosen) + refused


def _method(finding: Finding) -> str:
    table = finding.table
    if table.is_unbiased:
        return "Estimates are unbiased and unrepaired, so a rare cell may come out below zero."
    return (
        f"Estimates by <code>{escape(table.method)}</code> are pulled towards a model of how "
        "people are, which is why they err less than unbiased ones. Standard errors: "
        f"{escape(table.errors)}."
    )


CHART_KEY = (
    '<span class="key bar"></span>estimate<span class="key line"></span>95% interval'
    '<span class="key truth"></span>truth'
)


def _singles(findings: Sequence[Finding]) -> str:
    return _card("each attribute by itself", pictures.singles(findings), SINGLE, findings)


def _finding(finding: Finding) -> str:
    names = finding.table.attributes
    return _card(", ".join(names), pictures.marginal(finding), names, [finding])


def _card(title: str, chart: Any, columns: Sequence[str], findings: Sequence[Finding]) -> str:
    rows, missed = list[tuple[str, ...]](), dict[int, str]()
    for finding in findings:
        table = finding.table
        low, high = table.interval()
        for place, (label, holds) in enumerate(zip(table.labels, finding.holds, strict=True)):
            if not holds:
                missed[len(rows)] = "missed"
            cell = parts(label)
            rows.append(
                (
                    *(cell if len(cell) == len(columns) else (*table.attributes, *cell)),
                    _percent(finding.truth[place]),
                    _percent(table.values[place]),
                    _percent(table.std_error[place]),
                    f"{_percent(low[place])} to {_percent(high[place])}",
                )
            )
    head = (*columns, "truth", "estimate", "std error", "95% interval")
    figures = html_table(head, rows, len(columns), missed)
    return (
        f'<section class="card"><h3>{escape(title)}</h3><p class="note">{CHART_KEY}</p>'
        f'<div class="plot">{pictures.inline(chart)}</div>'
        f"<details><summary>all {len(rows)} figures</summary>"
        f'<div class="wide">{figures}</div></details></section>'
    )


def _posted(posted: Posted) -> str:
    return (
        f"Then {posted.people:,} of them posted: each a device that randomises, sends its report "
        "to a collector over HTTP, and is thanked when it is durable. It took "
        f"{posted.seconds:.1f} seconds, {posted.rate:,.0f} reports a second. Fewer people than "
        "above, so the intervals are wider."
    )


def _edges(story: Story) -> str:
    rows = [
        (
            f"{edge.parent} - {edge.child}",
            f"{edge.information:.3f} ({edge.low:.3f} to {edge.high:.3f})"
            f"{'' if edge.is_clear else ' (may be noise)'}",
            f"{story.told[(edge.parent, edge.child)]:.3f}",
        )
        for edge in story.tree.edges
    ]
    return html_table(("edge", "nats", "truth"), rows)


def _pairs(pairs: Sequence[Pair]) -> str:
    rows = [
        (" - ".join(pair.attributes), f"{pair.strength:.2f}", f"{pair.truth:.2f}") for pair in pairs
    ]
    return html_table(("pair", "estimate", "truth"), rows)


def _trust(story: Story) -> str:
    models = trust_models(story.two, story.mixed, story.curated)
    rows = [(model.name, model.who, f"{model.error:.5f}") for model in models]
    return html_table(("model", "who sees an answer", "error of a cell (root mean square)"), rows)


def _comparison(rows: Sequence[MarginalsComparison]) -> str:
    first = rows[0]
    return (
        f"One more simulated survey for each, of {first.people:,} people drawn from these, at "
        f"epsilon {first.epsilon:g}: errors of the same {first.queries} random tables of {first.k} "
        "attributes. One run says which is far ahead, not by exactly how much; <code>sottovoce "
        f"compare marginals people.csv --schema survey.toml --k {first.k} --epsilon "
        f"{first.epsilon:g} --methods auto,calm</code> measures more."
    )


def _compared(rows: Sequence[MarginalsComparison]) -> str:
    told = [
        (
            row.method if row.chosen in (None, row.method) else f"{row.method} ({row.chosen})",
            "" if row.sse is None else f"{row.sse:.2g}",
            "" if row.tvd is None else f"{row.tvd:.3f}",
            "" if row.seconds is None else f"{row.seconds:.2f}",
        )
        for row in rows
    ]
    return html_table(
        ("method", "squared error of a table", "total variation distance", "seconds"), told
    )


def _ratio(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


def _percent(share: float) -> str:
    return f"{share:z.1%}"


def _report(record: Mapping[str, Any], report: Report) -> str:
    wire = report.to_bytes()
    parts = (
        ("The record, on the device only", json.dumps(dict(record))),
        (f"On the wire, {len(wire)} bytes", wire.hex(" ")),
        ("The same report as JSON", json.dumps(json.loads(report.to_json()), indent=1)),
    )
    return "".join(
        f'<div><p class="note">{title}</p><pre>{escape(body)}</pre></div>' for title, body in parts
    )
