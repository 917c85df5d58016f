"""What pages are made of: their style, tables, and what a person was promised in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.ground.labels import visible_lines
from sottovoce.protocol.guarantee import at_most, at_most_percent

if TYPE_CHECKING:
    from sottovoce.protocol.guarantee import Guarantee

STATIC = Path(__file__).parent / "static"
STYLES = ("page.css", "charts.css")


def page_style() -> str:
    """The style of a page, its charts' colours included."""
    return "".join((STATIC / name).read_text(encoding="utf-8") for name in STYLES)


def facts_html(facts: Sequence[tuple[str, str]]) -> str:
    """Figures side by side, each with what it is about."""
    return "".join(
        f'<div class="fact"><b>{escape(value)}</b>{escape(about)}</div>' for value, about in facts
    )


def in_language(language: str) -> str:
    """The attribute of text in another language than the page's; none if it is not known."""
    return f' lang="{escape(language)}"' if language else ""


def paragraphs(text: str, language: str = "") -> str:
    r"""A survey's text: paragraphs where lines are empty between.

    >>> paragraphs("Two parts,\n\nso.", "de")
    '<p lang="de">Two parts,</p><p lang="de">so.</p>'
    """
    told = [visible_lines(part.strip()) for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p{in_language(language)}>{escape(part)}</p>" for part in told)


def promise_html(guarantee: Guarantee) -> str:
    """What a person was promised, in plain words; of shuffled reports adversary by adversary."""
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
        f"sampled.</p>{_adversaries(guarantee)}"
    )


def _adversaries(guarantee: Guarantee) -> str:
    """Who can learn how much, where that depends on who it is."""
    promises = guarantee.promises
    if len(promises) == 1:
        return ""
    lines = "".join(
        f"<li>at most <b>{at_most_percent(each.guess)}</b> for {escape(each.against)} (epsilon "
        f"{at_most(each.epsilon)}{f', delta {at_most(each.delta)}' if each.delta else ''})</li>"
        for each in promises
    )
    return (
        "<p>That is for a report by itself. Shufflers mixed the reports before anybody opened "
        f"them; then a guess of 50% rises to</p><ul>{lines}</ul>"
    )


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: int = 1,
    marks: Mapping[int, str] | None = None,
) -> str:
    """An HTML table: ``words`` columns of words, then figures; ``marks`` are classes of rows."""

    def line(cells: Sequence[str], tag: str, mark: str = "") -> str:
        scope = ' scope="col"' if tag == "th" else ""
        inside = "".join(
            f'<{tag}{scope} class="word">{escape(cell)}</{tag}>'
            if place < words
            else f"<{tag}{scope}>{escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )
        return f'<tr class="{mark}">{inside}</tr>' if mark else f"<tr>{inside}</tr>"

    body = "".join(
        line(cells, "td", (marks or {}).get(place, "")) for place, cells in enumerate(rows)
    )
    return f"<table>{line(head, 'th')}{body}</table>"


def percent(share: Any, digits: int = 1) -> str:
    """A share in percent, with a real minus sign."""
    return f"{share:z.{digits}%}".replace("-", "−")


def span(low: Any, high: Any, digits: int = 1) -> str:
    """An interval in percent."""
    return f"{percent(low, digits)} to {percent(high, digits)}"
