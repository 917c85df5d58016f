"""Groups, for a page: shares within each value of an attribute, means and medians of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import parts, visible
from sottovoce.pages.parts import html_table, percent, span
from sottovoce.pages.silent import said
from sottovoce.results.averages import silent_number
from sottovoce.results.groups import MAX_GROUP_VALUES

if TYPE_CHECKING:
    from sottovoce.results.averages import Average
    from sottovoce.results.cells import CellLabel
    from sottovoce.results.estimate import Estimate, Table

MAX_GROUPS = 12  # values of an attribute that are groups on a page
MAX_ANSWERS = 4  # columns of shares
TOO_FEW = "too few to tell"


def within_html(found: Estimate, names: Sequence[str], level: float) -> str:
    """What people in each group say: a sentence and a table; empty if there are too many values.

    The attribute of fewer values is the answer, the other one makes the groups.
    """
    answer, grouping = sorted(names, key=lambda name: len(found.marginal(name)))
    values, answers = found.marginal(grouping).labels, found.marginal(answer).labels
    if len(values) > MAX_GROUPS or len(answers) > MAX_ANSWERS:
        return ""
    shown = [place for place, label in enumerate(answers) if label is not False]
    tables = [_within(found, answer, grouping, value) for value in values]
    told = [
        (parts(said(found.schema, grouping, value))[0], *_cells(table, shown, level))
        for value, table in zip(values, tables, strict=True)
    ]
    heads = [f"{answer}: {parts(said(found.schema, answer, answers[place]))[0]}" for place in shown]
    sentence = _sentence(answer, grouping, values, tables, level)
    sizes = (
        "Intervals are the widest there can be. "
        if any(table is not None and "largest there can be" in table.remark for table in tables)
        else ""
    )
    note = (
        f"{sizes}Shares within each value of {visible(grouping)}, with {100 * level:.4g}% intervals"
    )
    rows = html_table((visible(grouping), *map(visible, heads)), told)
    table = f'<div class="wide within">{rows}</div>'
    return f'<p>{sentence}</p>{table}<p class="note">{escape(note)}.</p>'


def _within(found: Estimate, answer: str, grouping: str, value: CellLabel) -> Table | None:
    """The shares in one group; None if it is lost in the noise."""
    try:
        return found.within(answer, {grouping: value})
    except InvalidInput:
        return None


def _cells(table: Table | None, shown: Sequence[int], level: float) -> list[str]:
    if table is None:
        return [TOO_FEW] * len(shown)
    low, high = table.interval(level)
    between = " " if len(shown) == 1 else "\n"  # a line for the interval where columns are many
    return [f"{percent(table.values[at])}{between}({span(low[at], high[at])})" for at in shown]


def _sentence(
    answer: str,
    grouping: str,
    values: Sequence[object],
    tables: Sequence[Table | None],
    level: float,
) -> str:
    """Where the last answer is most and least often said."""
    known = [(table, value) for table, value in zip(tables, values, strict=True) if table]
    if len(known) < 2:
        return "Too few groups are clear of the noise to be compared."
    place = len(known[0][0]) - 1
    most = max(known, key=lambda each: each[0].values[place])
    least = min(known, key=lambda each: each[0].values[place])
    label = parts(most[0].labels[place])[0]
    said = f"<b>{escape(visible(answer))}: {escape(label)}</b>"

    def of(table: Table, value: object) -> str:
        low, high = table.interval(level)
        share = f"<b>{percent(table.values[place])}</b> ({span(low[place], high[place])})"
        return f"{share} of those with {escape(visible(grouping))}: {escape(parts(value)[0])}"

    return f"{said} is true of {of(*most)}, and of {of(*least)}."


def averages_html(found: Estimate, name: str, level: float) -> str:
    """The mean and the median of an attribute whose values are numbers; empty of others."""
    schema = found.schema
    if schema is None or name not in schema or schema[name].spans() is None:
        return ""
    if len(found.marginal(name)) > MAX_GROUP_VALUES:
        return ""
    silent = silent_number(schema[name])
    try:
        mean, median = found.mean(name, without=silent), found.median(name, without=silent)
    except InvalidInput:  # hardly anybody is left
        return ""
    even = ", if people are spread evenly inside their bins" if mean.is_binned else ""
    head = "Mean" if silent is None else f"Without {silent}, which stands for no answer too: mean"
    return (
        f"<p>{head} <b>{_number(mean.value)}</b> ({_reach(mean, level)}){even}; median "
        f"<b>{_number(median.value)}</b> ({_reach(median, level)}).</p>"
    )


def _reach(average: Average, level: float) -> str:
    low, high = average.interval(level, evenly=True)
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    """Four digits, and never powers of ten.

    >>> _number(41.237), _number(167812.3)
    ('41.24', '167,812')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
