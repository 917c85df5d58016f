"""What was found, for a page: a card for each attribute, and what goes with what."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sottovoce.ground.labels import parts, visible
from sottovoce.pages.figures import MOST_SINGLES, Picture, Relations, relations, singles
from sottovoce.pages.groups import averages_html, within_html
from sottovoce.pages.parts import html_table, in_language, percent, span
from sottovoce.pages.silent import in_words

if TYPE_CHECKING:
    from sottovoce.analysis import Association
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.texts import Texts
    from sottovoce.results.estimate import Estimate, Table

SMALLEST_P = 0.001  # that is written out
MAX_NAMED_TIES = 4  # in the sentence that sums ties up


def attribute_cards(plan: Plan, found: Estimate, level: float, texts: Texts) -> str:
    """Each attribute by itself, or what is popular of one: a sentence, a chart, all figures."""
    names = found.singles
    if not names:
        return (
            "<p>No attribute can be listed value by value: each has too many values. "
            "<code>sottovoce query</code> answers selections of them.</p>"
        )
    cards = [
        card(picture, level, _about_single(found, picture.attributes, level, texts))
        for picture in singles(found, level)
    ]
    more = len(names) - MOST_SINGLES
    left_out = (
        f"<p>{more:,} more attributes are not drawn; <code>sottovoce estimate --csv</code> has "
        "them all.</p>"
        if more > 0
        else ""
    )
    return f'<div class="cards">{"".join(cards)}</div>{left_out}'


def _about_single(found: Estimate, names: tuple[str, ...], level: float, texts: Texts) -> str:
    """An attribute in words: what was asked, and what was found."""
    question = texts.questions.get(names[0], "")
    asked = (
        f'<p class="asked"{in_language(texts.language)}>{escape(visible(question))}</p>'
        if question
        else ""
    )
    average = "" if found.is_part else averages_html(found, names[0], level)
    return f"{asked}<p>{_sentence(found, found.tables[names], level)}</p>{average}"


def card(
    picture: Picture, level: float, words: str = "", kind: str = "bars", more_words: str = ""
) -> str:
    """A chart with what it shows in words, above and below, and its figures in a table that can be
    opened.
    """
    names = ", ".join(map(visible, picture.attributes))
    heads = (names, "share", "std error", f"{100 * level:.4g}% interval")
    rows = [
        (
            str(row["value"]),
            percent(row["frequency"], 2),
            percent(row["std_error"], 2),
            span(row["low"], row["high"], 2),
        )
        for row in picture.rows
    ]
    more = f'<p class="note">and {picture.more:,} more</p>' if picture.more else ""
    room = " broad" if picture.is_broad else ""
    return (
        f'<section class="card{room}"><h3>{escape(names)}</h3>{words}'
        f'<div class="chart {kind}" role="img" aria-label="Estimated shares of {escape(names)}; '
        f'the figures are in the table below">{picture.svg}</div>'
        f'<p class="note">{escape(picture.note)}</p>{more_words}'
        f"<details><summary>Figures</summary>"
        f'<div class="wide">{html_table(heads, rows)}</div>{more}</details></section>'
    )


def _sentence(found: Estimate, table: Table, level: float) -> str:
    """The largest share in words, or that of yes, with its interval."""
    (place,) = table.largest_first()[:1].tolist()
    if list(table.labels) == [False, True]:
        place = 1
    label = ", ".join(parts(in_words(table, found.schema).labels[place]))
    low, high = table.interval(level)
    reach = f"<b>{percent(table.values[place])}</b> ({span(low[place], high[place])})"
    if found.is_part:
        marked = sum(mark.significant for mark in found.marks or ())
        return (
            f"Most popular: <b>{escape(label)}</b>, {reach}. Noise alone does not explain "
            f"{marked} of the {len(table)} values below."
        )
    head = "" if table.labels[place] is True else "Most often: "
    return f"{head}<b>{escape(label)}</b>, {reach}."


def relations_html(found: Estimate, level: float) -> str:
    """The tree, the strongest ties and their tables; or a sentence why there is nothing to say."""
    told = relations(found, level)
    if isinstance(told, str):
        return f"<p>{escape(visible(told))}</p>"
    clear = [
        picture for picture, each in zip(told.pairs, told.strongest, strict=False) if is_clear(each)
    ]
    maps = "".join(
        card(picture, level, kind="heat", more_words=within_html(found, picture.attributes, level))
        for picture in clear
    )
    return f'{_summary(told)}{_tree(told)}{_strongest(told)}<div class="cards">{maps}</div>'


def _summary(told: Relations) -> str:
    """The clear ties in a sentence."""
    clear = [each for each in told.strongest if is_clear(each)]
    if not clear:
        return (
            "<p>Of no two attributes do the reports show that they go together: what ties there "
            "are cannot be told from the privacy noise.</p>"
        )
    named = "; ".join(
        f"<b>{escape(' and '.join(map(visible, each.attributes)))}</b> (V {each.strength})"
        for each in clear[:MAX_NAMED_TIES]
    )
    more = len(clear) - MAX_NAMED_TIES
    rest = f"; and {more} more pairs" if more > 0 else ""
    return f"<p>These go together beyond what noise explains: {named}{rest}.</p>"


def _tree(told: Relations) -> str:
    rows = [
        (
            f"{branch.parent} - {branch.child}",
            f"{branch.figure}{'' if branch.is_clear or not branch.is_asked else ', may be noise'}",
        )
        for branch in told.branches
    ]
    return (
        "<p>The tree that holds the most mutual information: each attribute beside the one that "
        "tells most about it. Wider lines tell more; dashed ones may be noise.</p>"
        '<section class="card"><div class="chart tree" role="img" aria-label="Dependency tree; '
        f'its branches are listed below">{told.tree}</div>'
        "<details><summary>Branches, in nats</summary>"
        f'<div class="wide">{html_table(("branch", "information"), rows, 2)}</div>'
        "</details></section>"
    )


def _strongest(told: Relations) -> str:
    sure = {place: "chosen" for place, each in enumerate(told.strongest) if is_clear(each)}
    rows = [
        (
            " - ".join(map(visible, each.attributes)),
            each.strength,
            each.span,
            "< 0.001" if each.adjusted < SMALLEST_P else f"{each.adjusted:.3f}",
        )
        for each in told.strongest
    ]
    notes = [
        "Cramér's V is 0 for independent attributes, and 1 where one decides the other. Tests "
        "count the privacy noise, and are corrected for testing every pair. Pairs in bold go "
        "together."
    ]
    if not told.is_exact:
        notes.append("Estimates by this method are repaired, so p-values are approximate.")
    if told.never_asked:
        listed = ", ".join(map(visible, told.never_asked))
        notes.append(f"Never asked together, so nothing is known of: {listed}.")
    heads = ("pair", "V", "95% interval", "p, adjusted")
    return (
        f'<section class="card"><h3>Strongest ties</h3><p class="note">{escape(" ".join(notes))}'
        f'</p><div class="wide narrow">{html_table(heads, rows, 1, sure)}</div></section>'
    )


def is_clear(found: Association) -> bool:
    """Whether a pair's test rejects independence, all pairs allowed for."""
    from sottovoce.analysis.dependence import TEST_LEVEL

    return found.adjusted <= TEST_LEVEL
