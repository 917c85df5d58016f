"""The report of a survey: what was promised, who answered, what they said, in one HTML file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import TYPE_CHECKING

from sottovoce import __version__
from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.analysis.raking import Raked
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.ground.files import replacing
from sottovoce.ground.labels import visible, visible_lines
from sottovoce.pages.findings import attribute_cards, relations_html
from sottovoce.pages.parts import facts_html, in_language, page_style, paragraphs, promise_html
from sottovoce.protocol.guarantee import at_most
from sottovoce.protocol.reports import Report, Reports
from sottovoce.protocol.texts import LONGEST_TITLE, NO_TEXTS, Texts
from sottovoce.results.estimate import Estimate

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan

Heard = Aggregate | Estimate | Raked | Reports | Iterable[Report]

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
<header>
<h1>$title</h1>
<p class="lede">$lede</p>
$introduction</header>
<div class="facts">$facts</div>
<h2>What each person was promised</h2>
$promise
<h2>What the crowd said</h2>
$reading
$attributes
<h2>What goes with what</h2>
$relations
<h2>How it was asked</h2>
$told<p>The plan is public, and was frozen before the first answer.
Its id is the SHA-256 of its bytes, and every report names it.
<code>sottovoce audit plan.json</code> runs the device's own code along the ways its coins can fall,
and says whether the promise above is kept.</p>
<pre>$plan</pre>
<footer>${contact}sottovoce $version &middot; plan <code>$id</code></footer>
</main>
</body>
</html>
""")


@dataclass(frozen=True, repr=False)
class SurveyPage:
    """The report of a survey as one HTML file that loads nothing.

    Attributes:
        html: all of it.
        title: its heading.

    >>> page = SurveyPage("<!doctype html>...", "Tea in our town")
    >>> page, str(page)
    (<SurveyPage 'Tea in our town': 18 characters>, '<!doctype html>...')
    """

    html: str
    title: str

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all.

        Args:
            path: of the file.
        """
        with replacing(path) as draft:
            draft.write_text(self.html, encoding="utf-8")

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<SurveyPage {self.title!r}: {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own, so that its style stays inside."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            'style="width: 100%; height: 720px; border: 0"></iframe>'
        )


def report(
    plan: Plan,
    heard: Heard,
    *,
    title: str | None = None,
    texts: Texts = NO_TEXTS,
    level: float = 0.95,
) -> SurveyPage:
    """The report of a survey, to be read, printed and kept: one HTML file that loads nothing.

    It says what was promised, how many answered, what they said to every question with intervals,
    and what goes with what, as far as the plan's question tells it.

    Args:
        plan: the survey's plan.
        heard: its aggregate, its estimate, its reports, or what :func:`sottovoce.rake` made of
            them.
        title: the heading; by default that of the texts, or what was asked about.
        texts: what the survey said to people.
        level: of the intervals.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(tea=sv.Boolean(), age=sv.Ordinal(18, 97, bins=4))
    >>> plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=2.0, people=2000)
    >>> people = {"tea": [True, False] * 1000, "age": [20, 40, 60, 80] * 500}
    >>> total = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1))
    >>> page = report(plan, total, title="Tea in our town")
    >>> page.title, "What each person was promised" in page.html
    ('Tea in our town', True)
    """
    if not 0 < level < 1:
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")
    found = _estimated(plan, heard)
    people = heard.people if isinstance(heard, Raked) else found.people
    texts.check(plan.schema)
    heading = _heading(plan, title if title is not None else texts.title or None)
    text = _PAGE.substitute(
        title=escape(heading),
        style=page_style(),
        lede=_lede(people),
        introduction=paragraphs(texts.introduction, texts.language),
        told=_told(texts),
        contact=_contact(texts),
        facts=facts_html(_facts(plan, people)),
        promise=promise_html(plan.guarantee),
        reading=_reading(found, level) + (_weighted(heard) if isinstance(heard, Raked) else ""),
        attributes=attribute_cards(plan, found, level, texts),
        relations=relations_html(found, level),
        plan=escape(visible_lines(str(plan))),
        version=escape(__version__),
        id=plan.id[:16],
    )
    return SurveyPage(text, heading)


def _estimated(plan: Plan, heard: Heard) -> Estimate:
    """The estimate of whatever was heard."""
    if isinstance(heard, Raked):
        if heard.plan.id != plan.id:
            raise PlanMismatch("report: the weighted reports belong to another plan")
        return heard.estimate()
    if isinstance(heard, Estimate):
        return heard
    total = heard if isinstance(heard, Aggregate) else Aggregate(plan).add(heard)
    if total.plan.id != plan.id:
        raise PlanMismatch("report: the aggregate belongs to another plan")
    return total.estimate()


def _heading(plan: Plan, title: str | None) -> str:
    """What stands above everything."""
    if title is not None:
        shown = visible(title.strip())
        if not 0 < len(title.strip()) <= LONGEST_TITLE:
            raise InvalidInput(f"title must have 1 to {LONGEST_TITLE} characters")
        return shown
    names = [visible(name) for name in plan.cohorts.attributes]
    if len(names) <= 3:
        return f"A survey about {_listed(names)}"
    return f"A survey of {len(names)} questions"


def _listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _told(texts: Texts) -> str:
    """What people agreed to before they saw a question."""
    if not texts.consent:
        return ""
    agreed = paragraphs(texts.consent, texts.language)
    return (
        f"<p>Before the first question people agreed to this:</p><blockquote>{agreed}</blockquote>"
    )


def _contact(texts: Texts) -> str:
    """Whom people could ask."""
    if not texts.contact:
        return ""
    return (
        f"Contact: <span{in_language(texts.language)}>{escape(visible(texts.contact))}</span><br>"
    )


def _lede(people: int) -> str:
    count = f"{people:,} {'person' if people == 1 else 'people'}"
    return (
        f"{count} answered. Each device sent one randomised report; true answers stayed with the "
        "people. What is below was learnt from those reports alone."
    )


def _facts(plan: Plan, people: int) -> list[tuple[str, str]]:
    """Figures, and what they are about."""
    guarantee = plan.guarantee
    count = len(plan.cohorts.attributes)
    facts = [
        (f"{people:,}", f"reports heard; the plan was made for {plan.round_people:,}"),
        (f"{count}", "attribute was asked about" if count == 1 else "attributes were asked about"),
        (at_most(guarantee.per_report), "epsilon, the most that a report can cost"),
    ]
    if guarantee.delta:
        facts.append((at_most(guarantee.delta), "delta, the chance that it costs more"))
    if plan.shuffling is not None:
        facts.append((str(plan.shuffling.epsilon), "epsilon against who sees the shuffled batch"))
        facts.append((f"{plan.shuffling.least:,}", "people that a batch must hold for that"))
    rounds = len(plan.series.shares)
    if rounds > 1:
        facts.append((f"{plan.series.number + 1} of {rounds}", "rounds; nobody answers two"))
    return facts


def _weighted(raked: Raked) -> str:
    """What weights are for, and what they cost."""
    return (
        f"<p>Answers are {escape(str(raked))}. Weights make the shares of public columns those of "
        "the population, as they were given; what else sets apart who did not answer stays.</p>"
    )


def _reading(found: Estimate, level: float) -> str:
    """How the figures are to be read."""
    misses = round(1 / (1 - level))
    told = (
        f"<p>Bars are estimated shares of the people who answered, lines are {100 * level:.4g}% "
        f"intervals: of many such intervals about one in {misses} misses the truth. They count the "
        "noise that keeps each answer private, and not who did not answer.</p>"
    )
    if found.is_unbiased:
        told += (
            "<p>Estimates are unbiased and unrepaired, so a rare value may come out below zero.</p>"
        )
    remarks = "".join(f"<p>{escape(visible(remark))}</p>" for remark in found.remarks)
    following = (
        "<p>Another round follows, made of what this one heard.</p>"
        if found.next is not None
        else ""
    )
    return told + remarks + following
