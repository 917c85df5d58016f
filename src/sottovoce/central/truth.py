"""How often tuples truly occur: for comparisons, and for nothing that is released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from sottovoce.central.method import EMPTY_CODE, CentralTable, Floats, Integers, TupleCounts
from sottovoce.ground.extras import imported

_DENSE = 4  # cells for each row up to which a table is counted in an array


@dataclass(frozen=True, eq=False)
class TrueTable:
    """The tuples of some attributes together that users hold, by the number of their cell."""

    cells: Integers  # ascending
    counts: Integers  # of users


class Truth(ABC):
    """The tables of k attributes that there truly are, and where released tuples belong."""

    @abstractmethod
    def tables(self, k: int) -> Iterator[tuple[int, TrueTable]]:
        """(number, table) of every set of k attributes; of sets the one table of all k-sets."""

    @abstractmethod
    def placed(self, counts: TupleCounts, k: int) -> tuple[Integers, Integers]:
        """(number of the table, cell) of each released tuple."""

    def is_countable(self, k: int) -> bool:
        """Whether all k-tuples can be counted, not only those that were released."""
        return True


def truth_of(table: CentralTable) -> Truth:
    """What is true of a table."""
    return SetTruth(table) if table.is_sets else RowTruth(table)


class RowTruth(Truth):
    """Of rows: a table for each set of k attributes."""

    def __init__(self, table: CentralTable) -> None:
        batches = list(table.batches())
        codes = np.concatenate([batch.codes for batch in batches])
        self._columns = np.ascontiguousarray(codes.T)  # (attributes, rows)
        self._users = np.concatenate([batch.users for batch in batches])
        self._is_one_each = bool((np.diff(self._users) > 0).all())
        self._sizes = [max(1, len(values)) for values in table.values]

    def tables(self, k: int) -> Iterator[tuple[int, TrueTable]]:
        for number, places in enumerate(combinations(range(len(self._sizes)), k)):
            yield number, self._counted(places)

    def _counted(self, places: tuple[int, ...]) -> TrueTable:
        shape = [self._sizes[place] for place in places]
        is_filled = np.ones(self._columns.shape[1], bool)
        cells = np.zeros(self._columns.shape[1], np.int64)
        for place, size in zip(places, shape, strict=True):
            is_filled &= self._columns[place] != EMPTY_CODE
            cells = cells * size + self._columns[place]
        cells = cells[is_filled]
        if not self._is_one_each:  # a user counts once in a cell
            pairs = np.column_stack([self._users[is_filled], cells])
            cells = np.unique(pairs, axis=0)[:, 1]
        if prod(shape) <= _DENSE * len(cells):
            dense = np.bincount(cells, minlength=prod(shape))
            held = np.flatnonzero(dense)
            return TrueTable(held, dense[held])
        return TrueTable(*np.unique(cells, return_counts=True))

    def placed(self, counts: TupleCounts, k: int) -> tuple[Integers, Integers]:
        numbers = {
            places: number for number, places in enumerate(combinations(range(len(self._sizes)), k))
        }
        order = np.argsort(counts.attributes, axis=1, kind="stable")
        attributes = np.take_along_axis(counts.attributes, order, axis=1)
        codes = np.take_along_axis(counts.codes, order, axis=1)
        distinct, which = np.unique(attributes, axis=0, return_inverse=True)
        known = np.array([numbers[tuple(row)] for row in distinct.tolist()], np.int64)
        sizes = np.array(self._sizes)
        cells = np.zeros(len(codes), np.int64)
        for column in range(k):
            cells = cells * sizes[attributes[:, column]] + codes[:, column]
        return known[which.ravel()] if len(known) else np.zeros(0, np.int64), cells


class SetTruth(Truth):
    """Of sets: items, and pairs of items; of larger sets those that are asked for."""

    def __init__(self, table: CentralTable) -> None:
        sparse = imported("scipy.sparse")
        batches = list(table.batches())
        items = np.concatenate([batch.codes[:, 0] for batch in batches])
        users = np.concatenate([batch.users for batch in batches])
        self._size = max(1, len(table.values[0]))
        ones = np.ones(len(items), np.int32)
        self._held = sparse.csc_matrix((ones, (users, items)), (table.people, self._size))

    def is_countable(self, k: int) -> bool:
        return k <= 2

    def tables(self, k: int) -> Iterator[tuple[int, TrueTable]]:
        if k == 1:
            counts = np.diff(self._held.indptr)
            held = np.flatnonzero(counts)
            yield 0, TrueTable(held, counts[held])
        elif k == 2:
            sparse = imported("scipy.sparse")
            pairs = sparse.triu(self._held.T @ self._held, k=1).tocoo()
            cells = pairs.row.astype(np.int64) * self._size + pairs.col
            order = np.argsort(cells)
            yield 0, TrueTable(cells[order], pairs.data[order])

    def placed(self, counts: TupleCounts, k: int) -> tuple[Integers, Integers]:
        codes = np.sort(counts.codes, axis=1)
        cells = np.zeros(len(codes), np.int64)
        for column in range(k):
            cells = cells * self._size + codes[:, column]
        return np.zeros(len(codes), np.int64), cells

    def count_each(self, codes: Integers) -> Floats:
        """How many users hold each of some sets, (tuples, k)."""
        found = np.zeros(len(codes))
        for row, items in enumerate(codes.tolist()):
            holders = self._holders(items[0])
            for item in items[1:]:
                holders = np.intersect1d(holders, self._holders(item), assume_unique=True)
            found[row] = len(holders)
        return found

    def _holders(self, item: int) -> Integers:
        start, end = self._held.indptr[item : item + 2]
        return np.asarray(self._held.indices[start:end], np.int64)
