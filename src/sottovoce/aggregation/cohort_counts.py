"""Counts that keep something of each cohort heard from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.counts import Counts
from sottovoce.oracles import Oracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import Weighed, weighed
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families import Family
from sottovoce.protocol.families.base import Batch, rows_by


@dataclass
class Heard:
    """What one cohort said: its people (or their weight), their magnitude, and what is kept."""

    people: int
    magnitude: int
    parts: list[CohortPart]

    @property
    def is_nothing(self) -> bool:
        """Whether it is what a cohort says that was not heard from."""
        return self.people == 0 and all(part.is_nothing for part in self.parts)


class CohortCounts(Counts):
    """Parts for each cohort heard from, each of one or more of its asks."""

    def __init__(self, cohorts: Family) -> None:
        super().__init__(cohorts)
        self._heard: dict[int, Heard] = {}

    @abstractmethod
    def _parts(self, oracles: Sequence[Oracle], magnitude: int) -> list[CohortPart]:
        """The parts of a cohort that is asked through these oracles, empty, with room for reports
        of a magnitude.
        """

    @abstractmethod
    def _slices(self, oracles: Sequence[Oracle]) -> Sequence[slice]:
        """Where the bytes of each part lie in a report."""

    @abstractmethod
    def _place(self, ask: int) -> tuple[int, int]:
        """Which part an ask belongs to, and which of the part's asks it is."""

    # -- who was heard

    @property
    def people(self) -> int:
        return sum(heard.people for heard in self._heard.values())

    def cohort_people(self, index: int) -> int:
        return self._heard[index].people if index in self._heard else 0

    @property
    def fewest(self) -> int:
        return min((heard.people for heard in self._heard.values() if heard.people), default=0)

    @property
    def is_signed(self) -> bool:
        return any(
            heard.people < 0 or any(part.is_signed for part in heard.parts)
            for heard in self._heard.values()
        )

    # -- what was said

    def _part(self, index: int, ask: int) -> tuple[CohortPart, int]:
        """The part that an ask of a cohort belongs to, and which of the part's asks it is."""
        number, place = self._place(ask)
        if index in self._heard:
            return self._heard[index].parts[number], place
        return self._parts(self.cohorts[index].oracles, 0)[number], place

    def support(self, index: int, ask: int, values: ArrayLike | None = None) -> Integers:
        part, place = self._part(index, ask)
        return part.support(place, values)

    def state(self, index: int, ask: int) -> Integers:
        part, place = self._part(index, ask)
        return part.state(place)

    # -- growing

    def _room(self, index: int, oracles: Sequence[Oracle], more: Weighed) -> Heard:
        """What a cohort said, with further people counted in, whose reports are still to come."""
        if index not in self._heard:
            self._heard[index] = Heard(0, 0, self._parts(oracles, more.magnitude))
        heard = self._heard[index]
        heard.people += more.total
        heard.magnitude += more.magnitude
        return heard

    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        slices = self._slices(batch.oracles)
        for index, rows in rows_by(cohorts, len(self.cohorts)):
            is_run = isinstance(rows, slice)
            own = payload[rows] if is_run else payload.take(rows, axis=0)  # which is faster
            own_weights = None if weights is None else weights[rows]
            more = Weighed(len(own), len(own)) if own_weights is None else weighed(own_weights)
            heard = self._room(index, batch.oracles, more)
            for part, place in zip(heard.parts, slices, strict=True):
                part.add(np.ascontiguousarray(own[:, place]), own_weights, heard.magnitude)

    def absorb(self, other: Self) -> None:
        for index in sorted(other._heard):
            more = other._heard[index]
            weight = Weighed(more.people, more.magnitude)
            heard = self._room(index, self.cohorts[index].oracles, weight)
            for part, new in zip(heard.parts, more.parts, strict=True):
                part.absorb(new, heard.magnitude)

    # -- as bytes

    def _written(self) -> list[int]:
        """The cohorts that are written, in order: those that said something."""
        return [index for index in sorted(self._heard) if not self._heard[index].is_nothing]
