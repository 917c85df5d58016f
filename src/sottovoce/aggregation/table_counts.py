"""Sums of many cohorts in tables: cohorts that are asked through the same oracles are rows of one
table for each ask, so that reports are added up in one pass, whichever cohorts they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.cells import PlacedCells, held_cells
from sottovoce.aggregation.cohort_counts import SLOT_HEAD
from sottovoce.aggregation.counts import Counts
from sottovoce.aggregation.sum_bytes import SumLine, most_sum_bytes, read_sums, write_sums
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.base import Integers, tally
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families import Family
from sottovoce.protocol.families.base import Batch

MAX_TABLED_CELLS = 1 << 20  # of all states: 8 MiB


def fits_tables(cohorts: Family) -> bool:
    """Whether there are several cohorts, with sums for states, that are small all together."""
    if cohorts.keep == "rows" or len(cohorts) == 1:
        return False
    largest = max(_cells(oracles) for oracles in cohorts.different_oracles)
    return len(cohorts) * largest <= MAX_TABLED_CELLS


def _cells(oracles: Sequence[Oracle]) -> int:
    """How many integers the states of oracles have; more than fit if there are no sums."""
    if not all(isinstance(oracle, SummedOracle) for oracle in oracles):
        return MAX_TABLED_CELLS
    return sum(math.prod(oracle.state_shape) for oracle in _summed(oracles))


def _summed(oracles: Sequence[Oracle]) -> tuple[SummedOracle, ...]:
    return tuple(oracle for oracle in oracles if isinstance(oracle, SummedOracle))


class _Tables(NamedTuple):
    """The states of cohorts that are asked through the same oracles."""

    cohorts: Integers  # in increasing order
    oracles: tuple[SummedOracle, ...]
    tables: list[Integers]  # one for each ask: (cohorts, *state shape)


class TableCounts(Counts):
    """The states of all cohorts, of those that were not heard from too."""

    def __init__(self, cohorts: Family) -> None:
        super().__init__(cohorts)
        self._people = np.zeros(len(cohorts), np.int64)
        self._magnitudes = np.zeros(len(cohorts), np.int64)
        self._group_of = np.zeros(len(cohorts), np.int64)
        self._row_of = np.zeros(len(cohorts), np.int64)
        self._groups: dict[int, _Tables] = {}
        for number, members, oracles in cohorts.grouping:
            self._group_of[members] = number
            self._row_of[members] = np.arange(len(members))
            self._groups[number] = _empty_tables(members, oracles)

    # -- who was heard

    @property
    def people(self) -> int:
        return int(self._people.sum())

    def cohort_people(self, index: int) -> int:
        return int(self._people[index])

    @property
    def fewest(self) -> int:
        heard = self._people[self._people != 0]
        return int(heard.min()) if len(heard) else 0

    @property
    def holds_reports(self) -> bool:
        return False

    @property
    def is_signed(self) -> bool:
        return bool((self._people < 0).any())

    # -- what was said

    def support(self, index: int, ask: int, values: ArrayLike | None = None) -> Integers:
        oracle = self._groups[self._group_of[index]].oracles[ask]
        return oracle.support_of(self.state(index, ask), oracle.asked(values))

    def state(self, index: int, ask: int) -> Integers:
        found: Integers = self._groups[self._group_of[index]].tables[ask][self._row_of[index]]
        return found

    # -- growing

    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        column, count = cohorts.astype(np.int64), len(self.cohorts)
        people = tally(column, weights, count)
        self._people += people
        self._magnitudes += people if weights is None else tally(column, np.abs(weights), count)
        group = self._groups[batch.number]
        rows = self._row_of.take(column)  # which other threads need not wait for
        for oracle, table, place in zip(group.oracles, group.tables, batch.slices, strict=True):
            own = np.ascontiguousarray(payload[:, place])
            oracle._accumulate_groups(table, rows, own, weights)

    def absorb(self, other: Self) -> None:
        self._people += other._people
        self._magnitudes += other._magnitudes
        for number, group in self._groups.items():
            for table, new in zip(group.tables, other._groups[number].tables, strict=True):
                np.add(table, new, out=table)

    # -- as cells: for each cohort its people, their magnitude and its sums, in a slot of their own

    @cached_property
    def _slot_cells(self) -> int:
        """How many places each cohort has: as many as the one with the largest sums needs."""
        return SLOT_HEAD + max(_cells(oracles) for oracles in self.cohorts.different_oracles)

    @property
    def cell_count(self) -> int:
        return len(self.cohorts) * self._slot_cells

    def _columns(self) -> Iterator[tuple[Integers, slice, Integers]]:
        """(cohorts, the part of their slots that a table fills, the table)."""
        for group in self._groups.values():
            start = SLOT_HEAD
            for table in group.tables:
                width = table[0].size
                yield group.cohorts, slice(start, start + width), table
                start += width

    def cells(self) -> Iterator[PlacedCells]:
        slots = np.zeros((len(self.cohorts), self._slot_cells), np.int64)
        slots[:, 0], slots[:, 1] = self._people, self._magnitudes
        for cohorts, columns, table in self._columns():
            slots[cohorts, columns] = table.reshape(len(table), -1)
        return held_cells(slots)

    def add_cells(self, cells: PlacedCells) -> None:
        slots = np.zeros((len(self.cohorts), self._slot_cells), np.int64)
        slots.reshape(-1)[cells.places] = cells.values
        self._people += slots[:, 0]
        self._magnitudes += slots[:, 1]
        for cohorts, columns, table in self._columns():
            np.add(table, slots[cohorts, columns].reshape(table.shape), out=table)

    # -- as bytes, which are those of sums that stand cohort by cohort

    def to_bytes(self) -> bytes:
        return write_sums(self._lines(), with_magnitudes=True)

    def held_bytes(self) -> bytes:
        return write_sums(self._lines(), with_magnitudes=False)

    def holds_same(self, other: Self) -> bool:
        return np.array_equal(self._people, other._people) and all(
            np.array_equal(table, new)
            for number, group in self._groups.items()
            for table, new in zip(group.tables, other._groups[number].tables, strict=True)
        )

    def _lines(self) -> Iterator[SumLine]:
        told = self._people != 0
        for group in self._groups.values():
            for table in group.tables:
                told[group.cohorts] |= table.reshape(len(table), -1).any(axis=1)
        for index in np.flatnonzero(told).tolist():
            asks = range(len(self._groups[self._group_of[index]].oracles))
            contents = [self.state(index, ask) for ask in asks]
            yield SumLine(index, int(self._people[index]), int(self._magnitudes[index]), contents)

    def most_bytes(self, reports: int) -> int:
        return most_sum_bytes(self.cohorts, reports)

    def read(self, body: bytes) -> None:
        for line in read_sums(body, len(self.cohorts), self.most_weight):
            group = self._groups[self._group_of[line.cohort]]
            for table, content in zip(group.tables, line.contents, strict=True):
                if content.shape != table.shape[1:]:
                    raise CorruptReport("aggregate: a state has another shape than its oracle's")
                table[self._row_of[line.cohort]] = content
            self._people[line.cohort] = line.people
            self._magnitudes[line.cohort] = line.magnitude
            self.grow(line.magnitude)


def _empty_tables(cohorts: Integers, oracles: Sequence[Oracle]) -> _Tables:
    summed = _summed(oracles)
    tables = [np.zeros((len(cohorts), *oracle.state_shape), np.int64) for oracle in summed]
    return _Tables(cohorts, summed, tables)
