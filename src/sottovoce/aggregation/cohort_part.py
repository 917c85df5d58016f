"""What an aggregate holds of one or more asks of a cohort: their sums, or their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from sottovoce.aggregation.cells import PlacedCells
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles.base import Integers
from sottovoce.oracles.layout import Payload


class CohortPart(ABC):
    """Reports to some asks of a cohort, as integers that merge by addition.

    A ``magnitude`` is that of all reports of the cohort, with those that come now: their absolute
    weights added up, or how many there are.
    """

    @abstractmethod
    def add(self, payload: Payload, weights: Integers | None, magnitude: int) -> None:
        """Take in checked reports, a weight beside each (None for 1)."""

    @abstractmethod
    def absorb(self, other: Self, magnitude: int) -> None:
        """Add another crowd's, which stays as it is."""

    @abstractmethod
    def support(self, ask: int, values: ArrayLike | None) -> Integers:
        """How many reports, or how much weight, support each value of one of the asks."""

    @abstractmethod
    def state(self, ask: int) -> Integers:
        """What the reports to one of the asks add up to."""

    @property
    @abstractmethod
    def is_nothing(self) -> bool:
        """Whether it is what it was before any report came."""

    @property
    def is_signed(self) -> bool:
        """Whether a count in it is negative, as far as can be told: then no crowd said this."""
        return False

    # -- as cells: see sottovoce.aggregation.cells

    @property
    def cell_count(self) -> int:
        """How many places its cells have; none if it keeps rows."""
        return 0

    def cells(self, first: int) -> Iterator[PlacedCells]:
        """Its cells that are not 0; its places begin at ``first``."""
        return iter(())

    def add_cells(self, cells: PlacedCells, magnitude: int) -> None:
        """Add cells of another crowd's, at places from 0 on."""
        raise CorruptReport("aggregate: it has a cell where its plan keeps reports")

    # -- as integers that equal crowds share, whatever the order of their reports

    @abstractmethod
    def content(self) -> Integers:
        """All that it holds."""

    @abstractmethod
    def fits(self, shape: Sequence[Any]) -> bool:
        """Whether :meth:`content` may have this shape."""

    @abstractmethod
    def read(self, content: Integers, people: int) -> None:
        """Fill an empty part with the content of so many people's, or so much weight; refuse what
        no reports give.
        """
