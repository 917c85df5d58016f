"""Groups of reports: those for which every public part of a query has the same value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.questions.queries.evidence import Integers
from sottovoce.questions.queries.sql.errors import SqlError

MAX_ROW_GROUPS = 10_000
MAX_COUNTED_CODES = 1 << 22  # codes that are counted in a table; more are sorted


@dataclass(frozen=True, eq=False)
class RowColumn:
    """What a public expression is worth, for each report.

    ``labels``: its different values; ``codes``: which of them each report has, (people,).
    """

    labels: list[Any]
    codes: NDArray[Any]

    @classmethod
    def of(cls, column: Any) -> RowColumn:
        """From an Arrow column; NULL is a label of its own."""
        encoded = imported("pyarrow.compute").dictionary_encode(column, null_encoding="encode")
        if not isinstance(encoded, imported("pyarrow").DictionaryArray):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False)  # 32-bit integers
        return cls(encoded.dictionary.to_pylist(), codes)


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Reports with the same values of all public parts.

    ``rows``: which ones, increasing; None for all. A row is a report, or as many as ``times`` says
    that have the same public values. ``labels``: for each part the place of its value
    among the labels of its column.
    """

    rows: Integers | None
    labels: tuple[int, ...]
    people: int
    times: Integers | None = None  # how many reports each row stands for; None for one each
    known: dict[Any, Any] = field(default_factory=dict)  # what was computed of its weights


def row_groups(
    columns: Sequence[RowColumn], rows: int, times: Integers | None = None
) -> list[RowGroup]:
    """All groups that occur, in one pass over the rows, each of which is a report or ``times`` so
    many.

    >>> column = RowColumn(["NY", "WA"], np.array([0, 1, 0]))
    >>> [group.rows.tolist() for group in row_groups([column], 3)]
    [[0, 2], [1]]
    """
    people = rows if times is None else int(times.sum())
    if not columns:
        return [RowGroup(None, (), people, times)]
    if rows == 0:
        return []
    codes, firsts = joined_codes(columns, rows)  # (rows,), (groups,)
    if len(firsts) > MAX_ROW_GROUPS:
        raise SqlError(
            f"the public parts of the query take {len(firsts):,} different values together; "
            f"at most {MAX_ROW_GROUPS:,}",
            hint="group by fewer values, or put numbers into steps, such as floor(amount / 100)",
        )
    if len(firsts) == 1:
        labels = tuple(int(column.codes[0]) for column in columns)
        return [RowGroup(None, labels, people, times)]
    # one sort puts the reports of each group side by side
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(firsts)))
    groups = []
    for number, chosen in enumerate(np.split(order, ends[:-1])):
        labels = tuple(int(column.codes[firsts[number]]) for column in columns)
        own = None if times is None else times[chosen]
        count = len(chosen) if own is None else int(own.sum())
        groups.append(RowGroup(chosen, labels, count, own))
    return groups


def joined_codes(columns: Sequence[RowColumn], people: int) -> tuple[Integers, Integers]:
    """(the number of each report's group, a report of each group)."""
    joined = np.zeros(people, np.int64)
    size = 1
    for column in columns:
        joined = joined * len(column.labels) + column.codes
        size *= len(column.labels)
        if size > MAX_COUNTED_CODES:
            _, joined = np.unique(joined, return_inverse=True)
            size = int(joined.max()) + 1
    first = np.full(size, -1, np.int64)
    first[joined[::-1]] = np.arange(people - 1, -1, -1)  # the earliest report stays
    occurs = first >= 0
    number = np.cumsum(occurs) - 1
    small = np.uint16 if int(occurs.sum()) <= 1 << 16 else np.int64
    codes: Integers = number[joined].astype(small)  # sorting short integers is faster
    return codes, first[occurs]
