"""The sums of one ask: the state of its oracle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.aggregation.cells import PlacedCells, held_cells
from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.oracles import SummedOracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.layout import Payload


class Sums(CohortPart):
    """What the reports to one ask add up to, of an oracle whose reports can be summed."""

    def __init__(self, oracle: SummedOracle, magnitude: int) -> None:
        self._oracle = oracle
        self._state = oracle.empty(magnitude)

    def add(self, payload: Payload, weights: Integers | None, magnitude: int) -> None:
        room = self._oracle.fitted(self._state, magnitude)
        self._state = self._oracle._accumulate(room, payload, weights)

    def absorb(self, other: Self, magnitude: int) -> None:
        room = self._oracle.fitted(self._state, magnitude)
        self._state = self._oracle.absorb(room, other._state)

    def clear(self) -> None:
        """Forget everybody; a large table's memory is the system's to give, which takes longer."""
        self._state[...] = 0

    def support(self, ask: int, values: ArrayLike | None) -> Integers:
        return self._oracle.support_of(self._state, self._oracle.asked(values))

    def state(self, ask: int) -> Integers:
        return self._state

    @property
    def is_nothing(self) -> bool:
        return not self._state.any()

    @property
    def cell_count(self) -> int:
        return math.prod(self._oracle.state_shape)

    def cells(self, first: int) -> Iterator[PlacedCells]:
        return held_cells(self._state, first)

    def add_cells(self, cells: PlacedCells, magnitude: int) -> None:
        self._state = np.ascontiguousarray(self._oracle.fitted(self._state, magnitude))
        self._state.reshape(-1)[cells.places] += cells.values

    def content(self) -> Integers:
        return self._state

    def fits(self, shape: Sequence[Any]) -> bool:
        return tuple(shape) == self._oracle.state_shape

    def read(self, content: Integers, people: int) -> None:
        self._state = content
