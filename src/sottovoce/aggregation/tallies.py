"""How often each of many numbered things was counted: dense where all of them fit, else sparse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from sottovoce.aggregation.merging import sum_equal
from sottovoce.oracles.base import Integers

MAX_DENSE_CELLS = 1 << 20  # 8 MiB


class Tally(ABC):
    """Counts of the numbers of a range; most of them may be 0."""

    @abstractmethod
    def add(self, numbers: Integers, counts: Integers | None) -> None:
        """Count numbers, so many times each; None for once each."""

    @abstractmethod
    def absorb(self, other: Self) -> None:
        """Add another tally of the same range, which stays as it is."""

    @abstractmethod
    def between(self, first: int, end: int) -> tuple[Integers, Integers]:
        """The numbers from ``first`` on, below ``end``, whose counts are not 0, in increasing
        order, and their counts.
        """

    @property
    @abstractmethod
    def total(self) -> int:
        """All counts added up."""


class DenseTally(Tally):
    """A cell for each number: counting is one pass, with no sorting."""

    def __init__(self, size: int) -> None:
        self._cells = np.zeros(size, np.int64)

    def add(self, numbers: Integers, counts: Integers | None) -> None:
        np.add.at(self._cells, numbers, 1 if counts is None else counts)

    def absorb(self, other: Self) -> None:
        self._cells += other._cells

    def between(self, first: int, end: int) -> tuple[Integers, Integers]:
        cells = self._cells[first:end]
        places = np.flatnonzero(cells)
        return places + first, cells[places]

    @property
    def total(self) -> int:
        return int(self._cells.sum())


class SparseTally(Tally):
    """The numbers that were counted, in order: for ranges far larger than the crowd."""

    def __init__(self) -> None:
        self._numbers = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, numbers: Integers, counts: Integers | None) -> None:
        more = np.ones(len(numbers), np.int64) if counts is None else counts
        numbers = np.concatenate([self._numbers, numbers])
        places, self._counts = sum_equal([numbers], np.concatenate([self._counts, more]))
        self._numbers = numbers[places]

    def absorb(self, other: Self) -> None:
        self.add(other._numbers, other._counts)

    def between(self, first: int, end: int) -> tuple[Integers, Integers]:
        start, stop = np.searchsorted(self._numbers, [first, end]).tolist()
        return self._numbers[start:stop], self._counts[start:stop]

    @property
    def total(self) -> int:
        return int(self._counts.sum())


def tally_of(size: int) -> Tally:
    """An empty tally of ``range(size)``."""
    return DenseTally(size) if size <= MAX_DENSE_CELLS else SparseTally()
