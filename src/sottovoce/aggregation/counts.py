"""What an aggregate keeps of the reports under a family of cohorts.

Reports may have weights, integers in fixed point. Then wherever people are counted weights are
added up: what is kept is what reports would give that are repeated as often as their weights say,
and a negative weight takes reports away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.cells import PlacedCells
from sottovoce.aggregation.rows import CountedRows, RowCount
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import too_much
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families import Family
from sottovoce.protocol.families.base import Batch

WORD = 8  # bytes of an integer


class Counts(ABC):
    """The integers of the reports heard under a family of cohorts.
    Two of them merge by addition.
    """

    def __init__(self, cohorts: Family) -> None:
        self.cohorts = cohorts
        self.magnitude = 0  # of all reports: their absolute weights added up, or how many there are

    @cached_property
    def most_weight(self) -> int:
        """The largest magnitude with which no integer of any cohort can overflow."""
        asked = self.cohorts.different_oracles
        return min(oracle.most_weight for oracles in asked for oracle in oracles)

    # -- who was heard

    @property
    @abstractmethod
    def people(self) -> int:
        """How many reports it holds, or how much weight."""

    @abstractmethod
    def cohort_people(self, index: int) -> int:
        """The people of one cohort, or their weight."""

    @property
    @abstractmethod
    def fewest(self) -> int:
        """The people of the smallest cohort that was heard from: of one person alone a sum is the
        report. 0 if none.
        """

    @property
    @abstractmethod
    def holds_reports(self) -> bool:
        """Whether the reports themselves, each by itself, can be read off it: then it is no sum."""

    @property
    @abstractmethod
    def is_signed(self) -> bool:
        """Whether a count in it is negative, as far as can be told: then no crowd said this."""

    # -- what was said

    @abstractmethod
    def support(self, index: int, ask: int, values: ArrayLike | None = None) -> Integers:
        """How many reports of a cohort, or how much weight, support each value of one of its asks
        (all by default).
        """

    @abstractmethod
    def state(self, index: int, ask: int) -> Integers:
        """What the reports of a cohort to one of its asks add up to."""

    def count_rows(self, index: int, asks: Sequence[int], count: RowCount) -> Integers:
        """What is counted in the rows of a cohort, of what they say to each of some asks."""
        raise InvalidInput("aggregate: what a person said to these asks was not kept together")

    @property
    def answers(self) -> tuple[Integers, Integers, Integers]:
        """(cohort, answer, people) in columns, in increasing order, where answers are few."""
        raise InvalidInput("aggregate: its answers were not counted one by one")

    # -- growing

    def grow(self, more: int) -> None:
        """Make room for reports of a magnitude; one clear error, before anything changes, if there
        is none.
        """
        if self.magnitude + more > self.most_weight:
            raise too_much(self.most_weight)
        self.magnitude += more

    @abstractmethod
    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        """Take in a batch's checked reports: the cohorts, payloads and weights of its people. See
        :meth:`grow`.
        """

    @abstractmethod
    def absorb(self, other: Self) -> None:
        """Add another crowd, which stays as it is. See :meth:`grow`."""

    def emptied(self) -> Self:
        """Counts of nobody; these are not to be used again, since the memory may be the same."""
        return type(self)(self.cohorts)

    def merge(self, other: Self) -> Self:
        """Both crowds together; neither of the two changes."""
        out = type(self)(self.cohorts)
        for part in (self, other):
            out.grow(part.magnitude)
            out.absorb(part)
        return out

    # -- as cells and rows, which are cut into pieces

    @property
    @abstractmethod
    def cell_count(self) -> int:
        """How many places its cells have, which follows from the cohorts alone."""

    @abstractmethod
    def cells(self) -> Iterator[PlacedCells]:
        """All cells that are not 0, in order of their places: every integer that it holds, of
        people and magnitudes of cohorts too, but no rows.
        """

    def check_cells(self, cells: PlacedCells) -> None:
        """Refuse cells that no reports give."""
        if len(cells.places) and int(cells.places[-1]) >= self.cell_count:
            raise CorruptReport(f"aggregate: cells must be below {self.cell_count}")

    @abstractmethod
    def add_cells(self, cells: PlacedCells) -> None:
        """Add cells of another crowd that were checked. See :meth:`grow`."""

    def kept_rows(self) -> CountedRows:
        """The reports that are kept, each with a label of what they answer."""
        return CountedRows(np.zeros((0, 0), np.uint8), None)

    def check_rows(self, rows: CountedRows) -> None:
        """Refuse rows that are not such as :meth:`kept_rows` gives."""
        raise CorruptReport("aggregate: its plan keeps no reports")

    def add_rows(self, rows: CountedRows) -> None:
        """Add rows of another crowd that were checked. See :meth:`grow`."""
        raise CorruptReport("aggregate: its plan keeps no reports")

    # -- as bytes

    @abstractmethod
    def to_bytes(self) -> bytes:
        """One form for equal crowds, whatever the order of their reports."""

    def held_bytes(self) -> bytes:
        """The integers that :meth:`holds_same` compares, as bytes."""
        return self.to_bytes()

    def holds_same(self, other: Self) -> bool:
        """Whether both hold the same integers, whatever was added and taken away on the way."""
        return self.held_bytes() == other.held_bytes()

    @abstractmethod
    def most_bytes(self, reports: int) -> int:
        """What :meth:`to_bytes` gives at most for so many reports under these cohorts."""

    @abstractmethod
    def read(self, body: bytes) -> None:
        """Fill empty counts with what :meth:`to_bytes` wrote."""
