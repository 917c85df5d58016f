"""All that a page shows of an estimate, drawn: each attribute, how they go together, any table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from sottovoce.analysis import Association, associate, dependency_tree
from sottovoce.analysis.dependence import TEST_LEVEL
from sottovoce.analysis.sums import Sum, sum_of
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible
from sottovoce.pages.charts import MAX_CHART_BARS, heat, network, shortened, single
from sottovoce.pages.silent import in_words
from sottovoce.results.estimate import Estimate, Table
from sottovoce.schema import Schema

INTERVAL_LEVEL = 0.95
BROAD_CHART = 430  # pixels
MOST_SINGLES = 40  # attributes that are drawn
MOST_RELATED = 24  # attributes whose ties are all looked at
MAX_PAIR_CHARTS = 6  # heat maps on the page; any other is one question away
MAX_CHART_CELLS = 400  # of a heat map on the page
MAX_TABLE_ROWS = 500  # of a table on a page; a download has all


@dataclass(frozen=True)
class Picture:
    """A chart, what it shows, and its figures for whoever cannot see it or wants them exactly."""

    attributes: tuple[str, ...]
    svg: str
    rows: list[dict[str, Any]]
    more: int  # rows that are left out
    note: str
    total: str = ""  # a sum over some of its values, in words, if one was asked for

    @property
    def is_broad(self) -> bool:
        """Whether its chart needs the room of two, to be read."""
        width = re.match(r'<svg[^>]*? width="([\d.]+)"', self.svg)
        return width is not None and float(width[1]) > BROAD_CHART


@dataclass(frozen=True)
class Branch:
    """An edge of the tree, in words."""

    parent: str
    child: str
    figure: str  # its information, with an interval
    is_asked: bool
    is_clear: bool


@dataclass(frozen=True)
class Relations:
    """How attributes go together."""

    pairs: list[Picture]
    tree: str
    branches: list[Branch]
    strongest: list[Association]
    is_exact: bool  # whether the tests hold their level, which repaired estimates do not promise
    never_asked: list[str]  # pairs that no report tells of


def singles(estimate: Estimate, level: float = INTERVAL_LEVEL) -> list[Picture]:
    """Every attribute by itself; of popular values the one that was asked about."""
    names = estimate.singles[:MOST_SINGLES]
    return [
        _drawn(estimate, in_words(estimate.tables[each], estimate.schema), level) for each in names
    ]


def relations(told: Estimate, level: float = INTERVAL_LEVEL) -> Relations | str:
    """The tree, the strongest ties and their heat maps; or why there are none."""
    if told.apart:
        return f"This survey {told.apart}."
    if not 2 <= len(told.tables) <= MOST_RELATED:
        return (
            f"Ties are shown for 2 to {MOST_RELATED} attributes; any table can be asked for by "
            "itself."
        )
    estimate = told.joint
    names = estimate.work.names
    tree = dependency_tree(estimate)
    found = [each for each in associate(estimate, null="asymptotic") if each.is_asked]
    # clear ones first
    found.sort(
        key=lambda each: (each.adjusted > TEST_LEVEL, -np.nan_to_num(each.cramers_v), each.p_value)
    )
    fit = estimate.fit
    places = [
        pair
        for pair in combinations(range(len(names)), 2)
        if estimate.is_asked(*estimate.work.attributes(pair))
    ]
    is_exact = fit.evidence(places[:1]) is not None or all(
        fit.is_unbiased(pair) and not fit.is_reconstructed(pair) for pair in places
    )
    pairs = [estimate.marginal(*each.attributes) for each in found[:MAX_PAIR_CHARTS]]
    drawn = [_heat(in_words(each, estimate.schema), level) for each in pairs]
    branches = [
        Branch(edge.parent, edge.child, edge.figure, edge.is_asked, edge.is_clear)
        for edge in tree.edges
    ]
    unasked = [" x ".join(pair) for pair in tree.never_asked]
    return Relations(
        drawn, network(tree.plot()), branches, found[: 2 * MAX_PAIR_CHARTS], is_exact, unasked
    )


def table_of(estimate: Estimate, names: Sequence[str]) -> Picture | str:
    """Any table: a heat map of two attributes, several of three, bars of others; or why none."""
    try:
        table = in_words(estimate.marginal(*names), estimate.schema)
    except InvalidInput as wrong:
        return str(wrong)
    return _heat(table) if len(names) in (2, 3) else _drawn(estimate, table, INTERVAL_LEVEL)


def summed_table(
    estimate: Estimate, names: Sequence[str], schema: Schema, values: str
) -> Picture | str:
    """The same with a sum over some of its values, as they were typed."""
    picture = table_of(estimate, names)
    if isinstance(picture, str):
        return picture
    try:
        found = sum_of(schema, estimate.marginal(*names), values)
    except InvalidInput as wrong:
        return visible(str(wrong))
    return replace(picture, total=_total(found))


def _total(found: Sum) -> str:
    """A sum with its error, in words."""
    low, high = found.total.interval(INTERVAL_LEVEL)
    count = len(found.labels)
    bound = "at most " if found.total.is_bound else ""
    return (
        f"{visible(found.asked)} ({count:,} {'value' if count == 1 else 'values'}): "
        f"{float(found.total):.2%}, std. error {bound}{found.total.std_error:.2%}, "
        f"95% interval {low:.2%} to {high:.2%}"
    )


def _heat(table: Table, level: float = INTERVAL_LEVEL) -> Picture:
    fits = len(table.values) <= MAX_CHART_CELLS and table.is_complete
    return _picture(table, heat(table, level), level, "in percent") if fits else _bars(table, level)


def _bars(table: Table, level: float, marks: Sequence[bool] | None = None) -> Picture:
    count = len(table.values)
    return _picture(
        table,
        single(table, level, marks),
        level,
        f"the {MAX_CHART_BARS} largest of {count:,}" if count > MAX_CHART_BARS else "",
    )


def _drawn(estimate: Estimate, table: Table, level: float) -> Picture:
    """Bars of a table; of popular values those that noise alone does not explain are marked."""
    marks = estimate.marks
    if marks is None:
        return _bars(table, level)
    drawn = _bars(table, level, [mark.significant for mark in marks])
    rows = [_starred(row, mark.significant) for row, mark in zip(drawn.rows, marks, strict=False)]
    told = [
        "* significant: noise alone does not explain it; the pale ones may be noise",
        *map(visible, estimate.remarks),
    ]
    if estimate.next is not None:
        told.append("another round follows, made of what this one heard")
    return replace(drawn, rows=rows, note="; ".join([drawn.note, *told]))


def _starred(row: dict[str, Any], is_significant: bool) -> dict[str, Any]:
    value = f"{row['value']} *" if is_significant else row["value"]
    return {**row, "value": value, "mark": is_significant}


def _picture(table: Table, svg: str, level: float, more: str = "") -> Picture:
    count = len(table.values)
    rows = table.at(np.arange(min(count, MAX_TABLE_ROWS))).rows(level)
    shown = [{**row, "value": shortened(row["value"])} for row in rows]
    return Picture(
        table.attributes,
        svg,
        shown,
        count - len(shown),
        ", ".join(filter(None, [more, note(table)])),
    )


def note(table: Table) -> str:
    """Where the figures come from, in a few words."""
    parts = [f"{table.people:,} people"]
    parts.append(table.origin)
    if table.is_reconstructed:
        parts.append("reconstructed: not all of it was asked")
    if table.unasked:
        parts.append(visible(table.unasked))
    if table.partly:
        parts.append(visible(table.partly))
    return ", ".join(parts)
