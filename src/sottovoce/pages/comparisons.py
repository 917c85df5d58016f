"""People compared, for a page: groups with groups, a wave with an earlier one, weighted answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import parts, visible
from sottovoce.pages.groups import TOO_FEW
from sottovoce.pages.parts import percent, span
from sottovoce.pages.silent import in_words
from sottovoce.results.averages import span_text
from sottovoce.results.groups import written_group

if TYPE_CHECKING:
    from sottovoce.analysis.raking import Raked
    from sottovoce.results.averages import Average
    from sottovoce.results.estimate import Estimate, Table
    from sottovoce.results.group_answers import Group

MAX_COMPARED_GROUPS = 12  # columns of a table
MAX_COMPARED_ROWS = 200
MAX_WEIGHTED_TABLES = 40  # attributes
A_PAIR = 2


@dataclass(frozen=True)
class FigureTable:
    """A table in words: what it is about, the head of each column, the rows."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    more: int = 0  # rows that are left out


@dataclass(frozen=True)
class PeopleCompared:
    """The answer to a question about groups, waves or weights."""

    tables: list[FigureTable]
    notes: list[str] = field(default_factory=list)


def groups_compared(
    found: Estimate, attribute: str, groups: Sequence[Group], level: float
) -> PeopleCompared:
    """The shares of an attribute's values in each group, of two groups how they differ, and the
    averages of numbers.
    """
    if not 1 <= len(groups) <= MAX_COMPARED_GROUPS:
        raise InvalidInput(f"groups ({len(groups)}) must be 1 to {MAX_COMPARED_GROUPS} here")
    labels = _labels(in_words(found.marginal(attribute), found.schema))
    columns = []
    notes: list[str] = []
    averages: list[Average] = []
    for group in groups:
        try:
            table = found.within(attribute, group)
        except InvalidInput:
            if len(groups) <= A_PAIR:
                raise
            columns.append([TOO_FEW] * len(labels))  # one of many may be lost in the noise
            continue
        columns.append(_cells(table, level))
        averages += found.averages(attribute, group)
        notes.append(table.remark)
    names = [visible(written_group(group)) for group in groups]
    heads = [visible(attribute), *(f"among {name}" for name in names)]
    if len(groups) == A_PAIR:
        differences = found.compare(attribute, *groups)
        columns.append(_cells(differences, level))
        heads.append("difference")
        notes.append(differences.remark)
    rows = list(zip(labels, *columns, strict=True))
    shown = [_figures(f"Shares of {visible(attribute)}", heads, rows)]
    if averages:
        shown.append(_averages(attribute, averages, level))
    return PeopleCompared(shown, [visible(note) for note in dict.fromkeys(filter(None, notes))])


def waves_compared(
    found: Estimate, earlier: Estimate, attributes: Sequence[str], level: float
) -> PeopleCompared:
    """What changed since an earlier wave, as samples of the people whom both stand for."""
    before, now = earlier.marginal(*attributes), found.marginal(*attributes)
    change = found.change_since(earlier, *attributes)
    columns = (
        _cells(before, level, population=True),
        _cells(now, level, population=True),
        _cells(change, level, population=True),
    )
    names = ", ".join(map(visible, attributes))
    rows = list(zip(_labels(in_words(now, found.schema)), *columns, strict=True))
    heads = (names, "before", "now", "change")
    return PeopleCompared([_figures(f"Change of {names}", heads, rows)])


def weights_compared(found: Estimate, raked: Raked, level: float) -> PeopleCompared:
    """Every attribute's shares without weights and with them, and what the weights cost."""
    weighted = raked.estimate()
    tables = []
    for name in found.singles[:MAX_WEIGHTED_TABLES]:
        without, table = found.tables[name], weighted.tables[name]
        rows = list(zip(_labels(table), _cells(without, level), _cells(table, level), strict=True))
        title = ", ".join(map(visible, name))
        tables.append(_figures(title, (title, "without weights", "weighted"), rows))
    cost = str(raked)
    return PeopleCompared(tables, [f"{cost[0].upper()}{cost[1:]}."])


def _figures(title: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> FigureTable:
    more = max(0, len(rows) - MAX_COMPARED_ROWS)
    return FigureTable(title, tuple(heads), list(rows[:MAX_COMPARED_ROWS]), more)


def _labels(table: Table) -> list[str]:
    return [", ".join(parts(label)) for label in table.labels]


def _cells(table: Table, level: float, *, population: bool = False) -> list[str]:
    """Each share with its interval."""
    low, high = table.interval(level, population=population)
    return [
        f"{percent(value)} ({span(bottom, top)})"
        for value, bottom, top in zip(table.values, low, high, strict=True)
    ]


def _averages(attribute: str, averages: Sequence[Average], level: float) -> FigureTable:
    """Means and medians; of numbers in bins, as if people were spread evenly inside."""
    binned = any(each.is_binned for each in averages)
    rows = [
        (
            f"{each.kind} among {visible(each.of)}",
            f"{each.value:.4g}",
            span_text(each.interval(level, evenly=True)),
            *([span_text(each.interval(level))] if binned else []),
        )
        for each in averages
    ]
    reach = f"{100 * level:.4g}% interval"
    wide = ("wherever in their bins people are",) if binned else ()
    return _figures(
        f"Averages of {visible(attribute)}", (visible(attribute), "value", reach, *wide), rows
    )
