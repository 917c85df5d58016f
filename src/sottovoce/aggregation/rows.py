"""Reports as they were sent, row by row: the one way in which they are kept.

Rows are kept of an ask whose oracle's reports cannot be summed, and of all asks of a cohort
together if the question is about how a person's answers go together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.merging import is_rising, sum_equal
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import magnitude_of
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.shape import MOST_WEIGHT
from sottovoce.protocol.families.base import slices_of

# Of reports of so few bits many are equal: each different one is kept once. Of longer ones hardly
# any two are, and sorting them would be in vain.
REPEATING_BITS = 40
# rows that may stand for fewer ones with counts, where they are written
MOST_REPEATED = 1 << 24


# what is counted in rows: from what they say to some asks, and how often each was sent (None: once)
RowCount = Callable[[Sequence[Payload], Integers | None], Integers]


class CountedRows(NamedTuple):
    """Rows of bytes, and how often each was sent, or its weight; None for once each.

    ``is_distinct``: each different row stands there once, in increasing order of its bytes.
    """

    payload: Payload  # (rows, bytes)
    counts: Integers | None  # (rows,)
    is_distinct: bool = False


class KeptRows(CohortPart):
    """The reports to some asks, in one row for each person or for all people who sent the same."""

    def __init__(self, oracles: Sequence[Oracle]) -> None:
        self._oracles = tuple(oracles)
        self._slices = slices_of(oracles)
        self._repeats = sum(oracle.bits for oracle in oracles) <= REPEATING_BITS
        width = sum(oracle.layout.bytes for oracle in oracles)
        # One table, then what came since, never more rows than it has. No array in here is ever
        # changed, so that aggregates may share them; and reading replaces the list in one step, so
        # that several threads may read.
        self._tables = [CountedRows(np.zeros((0, width), np.uint8), None, is_distinct=True)]
        self._new = 0  # rows that came since

    # -- growing

    def add(self, payload: Payload, weights: Integers | None, magnitude: int) -> None:
        own = None if weights is None else weights.copy()
        self._append([CountedRows(payload.copy(), own)])

    def absorb(self, other: Self, magnitude: int) -> None:
        self._append(other._tables)

    def _append(self, tables: Sequence[CountedRows]) -> None:
        more = [table for table in tables if len(table.payload)]
        if not more:
            return
        self._tables.extend(more)
        self._new += sum(len(table.payload) for table in more)
        if self._new > len(self._tables[0].payload):
            self._settle()

    def _settle(self) -> None:
        whole = joined_rows(self._tables)
        self._tables = [distinct_rows(whole) if self._repeats else whole]
        self._new = 0

    def check(self, payload: Payload) -> None:
        """Refuse rows that no device sends."""
        for oracle, part in zip(self._oracles, self._slices, strict=True):
            oracle.validate(np.ascontiguousarray(payload[:, part]))

    # -- reading

    @property
    def width(self) -> int:
        """The bytes of a row."""
        return int(self._tables[0].payload.shape[1])

    def table(self) -> CountedRows:
        """All rows, in any order; unless they have few bits, equal ones may stand there often."""
        if len(self._tables) > 1:
            self._settle()
        return self._tables[0]

    def distinct(self) -> CountedRows:
        """Each different row once, in increasing order of its bytes."""
        whole = distinct_rows(self.table())
        self._tables = [whole]
        return whole

    def columns(self, asks: Sequence[int]) -> tuple[list[Payload], Integers | None]:
        """What the rows say to each of some asks, and how often each row was sent."""
        whole = self.table()
        parts = [np.ascontiguousarray(whole.payload[:, self._slices[ask]]) for ask in asks]
        return parts, whole.counts

    @property
    def people(self) -> int:
        """How many reports there are, or how much weight."""
        return sum(
            len(table.payload) if table.counts is None else int(table.counts.sum())
            for table in self._tables
        )

    def count(self, asks: Sequence[int], count: RowCount) -> Integers:
        """What is counted in all rows, of what they say to some asks."""
        return count(*self.columns(asks))

    def support(self, ask: int, values: ArrayLike | None) -> Integers:
        oracle = self._oracles[ask]
        asked = oracle.asked(values)
        (payload,), counts = self.columns([ask])
        return oracle.support_rows(payload, counts, asked)

    def state(self, ask: int) -> Integers:
        oracle = self._oracles[ask]
        if not isinstance(oracle, SummedOracle):
            raise InvalidInput(f"aggregate: reports of {oracle.names[0]} have no sums to be read")
        (payload,), counts = self.columns([ask])
        return oracle._accumulate(oracle.empty(), payload, counts)

    @property
    def is_nothing(self) -> bool:
        table = self.table()
        return not len(table.payload if table.counts is None else self.distinct().payload)

    @property
    def is_signed(self) -> bool:
        if not any(_has_negative(table) for table in self._tables):
            return False
        return _has_negative(self.distinct())  # a report may have been taken away that was there

    # -- as integers: one for each field of a report

    def content(self) -> Integers:
        """The fields of each report, in order; it stands there as often as it was sent.

        If one was sent less than never, or if that would be far more rows, then each different one
        once, and how often. Fields have at most 64 bits.
        """
        payload, weights, _ = self.table()
        keys = self._fields(payload)
        places, counts = sum_equal(keys, weights)
        rows = np.stack([key[places] for key in keys], axis=1)  # (different rows, fields)
        total = int(counts.sum())
        if not bool((counts < 0).any()) and total <= max(MOST_REPEATED, 2 * len(rows)):
            return np.repeat(rows, counts, axis=0)
        return np.concatenate([rows, counts[:, None]], axis=1)

    def _fields(self, payload: Payload) -> list[Integers]:
        return [
            oracle.layout.read(payload[:, part], field.name).view(np.int64)
            for oracle, part in zip(self._oracles, self._slices, strict=True)
            for field in oracle.layout.fields
        ]

    def fits(self, shape: Sequence[Any]) -> bool:
        width = field_count(self._oracles)
        return len(shape) == 2 and shape[1] in (width, width + 1)

    def read(self, content: Integers, people: int) -> None:
        width = field_count(self._oracles)
        fields = [np.ascontiguousarray(column) for column in content.T[:width]]
        is_counted = content.shape[1] > width
        counts = np.ascontiguousarray(content[:, -1]) if is_counted else None
        if not is_rising(fields, strictly=is_counted):
            raise CorruptReport("aggregate: its reports are not in increasing order")
        if counts is not None and (not counts.all() or magnitude_of(counts) > MOST_WEIGHT):
            raise CorruptReport("aggregate: its content is malformed")
        self._append([CountedRows(self._payload(fields), counts)])
        if self.people != people:
            raise CorruptReport("aggregate: its reports are not as many as its people")

    def _payload(self, fields: Sequence[Integers]) -> Payload:
        """The reports that fields were read from; refuses what no report has."""
        payload = np.zeros((len(fields[0]), self._tables[0].payload.shape[1]), np.uint8)
        left = iter(fields)
        for oracle, part in zip(self._oracles, self._slices, strict=True):
            own = payload[:, part]
            for field in oracle.layout.fields:
                column = next(left).view(np.uint64)
                if field.width < 64 and len(column) and int(column.max()) >> field.width:
                    raise CorruptReport(f"aggregate: field {field.name!r} is not one of a report's")
                oracle.layout.write(own, field.name, column)
            oracle.validate(np.ascontiguousarray(own))
        return payload


def field_count(oracles: Sequence[Oracle]) -> int:
    """Integers that a report has in a part's content."""
    return sum(len(oracle.layout.fields) for oracle in oracles)


def joined_rows(tables: Sequence[CountedRows]) -> CountedRows:
    """Rows of several tables in one."""
    held = [table for table in tables if len(table.payload)]
    if len(held) <= 1:
        return held[0] if held else tables[0]
    payload = np.concatenate([table.payload for table in held])
    if all(table.counts is None for table in held):
        return CountedRows(payload, None)
    counts = [
        np.ones(len(table.payload), np.int64) if table.counts is None else table.counts
        for table in held
    ]
    return CountedRows(payload, np.concatenate(counts))


def distinct_rows(rows: CountedRows) -> CountedRows:
    """Each different row once, by increasing bytes; what adds up to nothing is left out."""
    if rows.is_distinct:
        return rows
    places, counts = sum_equal(byte_keys(rows.payload), rows.counts)
    is_single = bool((counts == 1).all())
    return CountedRows(rows.payload[places], None if is_single else counts, is_distinct=True)


def byte_keys(payload: Payload) -> list[NDArray[np.uint64]]:
    """Columns of words in whose order rows are in the order of their bytes."""
    padded = np.zeros((len(payload), -(-payload.shape[1] // 8) * 8), np.uint8)
    padded[:, : payload.shape[1]] = payload
    words = padded.view(">u8").astype(np.uint64)  # (rows, words)
    return list(np.ascontiguousarray(words.T))


def _has_negative(rows: CountedRows) -> bool:
    return rows.counts is not None and bool((rows.counts < 0).any())
