"""Counts that keep something of each cohort heard from."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.cells import PlacedCells, held_cells, ranges_of
from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.counts import Counts
from sottovoce.aggregation.rows import CountedRows, KeptRows, joined_rows
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import Weighed, weighed
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families import Family
from sottovoce.protocol.families.base import Batch, rows_by

SLOT_HEAD = 2  # cells before a cohort's sums: its people, and their magnitude
_LABEL = struct.Struct(">IH")  # the cohort of a kept row, and which of its parts
LABEL_BYTES = _LABEL.size


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

    # -- as cells: for each cohort its people, their magnitude and its sums, in a slot of their own

    @cached_property
    def _slot_cells(self) -> int:
        """How many places each cohort has: as many as the one with the largest sums needs."""
        asked = self.cohorts.different_oracles
        sums = (sum(part.cell_count for part in self._parts(oracles, 0)) for oracles in asked)
        return SLOT_HEAD + max(sums)

    @property
    def cell_count(self) -> int:
        return len(self.cohorts) * self._slot_cells

    def cells(self) -> Iterator[PlacedCells]:
        for index in sorted(self._heard):
            heard, first = self._heard[index], index * self._slot_cells
            yield from held_cells(np.array([heard.people, heard.magnitude]), first)
            first += SLOT_HEAD
            for part in heard.parts:
                yield from part.cells(first)
                first += part.cell_count

    def _slots(self, cells: PlacedCells) -> Iterator[tuple[int, PlacedCells]]:
        """(cohort, its cells, at places from 0 on)."""
        for index, own in ranges_of([cells], self._slot_cells):
            yield index, PlacedCells(own.places - index * self._slot_cells, own.values)

    def check_cells(self, cells: PlacedCells) -> None:
        super().check_cells(cells)
        for index, own in self._slots(cells):
            parts = self._part_list(index)
            if own.places[-1] >= SLOT_HEAD + sum(part.cell_count for part in parts):
                raise CorruptReport("aggregate: a state has more cells than its oracle's")

    def add_cells(self, cells: PlacedCells) -> None:
        for index, own in self._slots(cells):
            people, magnitude = _head_of(own)
            heard = self._room(index, self.cohorts[index].oracles, Weighed(people, magnitude))
            first = SLOT_HEAD
            for part in heard.parts:
                share = own.between(first, first + part.cell_count)
                if len(share.places):
                    part.add_cells(PlacedCells(share.places - first, share.values), self.magnitude)
                first += part.cell_count

    # -- as rows: the cohort and the part that each belongs to, highest byte first, before it

    @cached_property
    def _kept_bytes(self) -> int:
        """The bytes of a labelled row; 0 if no rows are kept."""
        widths = [
            part.width
            for oracles in self.cohorts.different_oracles
            for part in self._parts(oracles, 0)
            if isinstance(part, KeptRows)
        ]
        return LABEL_BYTES + max(widths) if widths else 0

    def kept_rows(self) -> CountedRows:
        tables = []
        for index in sorted(self._heard):
            for number, part in enumerate(self._heard[index].parts):
                if isinstance(part, KeptRows):
                    table = part.distinct()
                    rows = np.zeros((len(table.payload), self._kept_bytes), np.uint8)
                    rows[:, :LABEL_BYTES] = np.frombuffer(_LABEL.pack(index, number), np.uint8)
                    rows[:, LABEL_BYTES : LABEL_BYTES + part.width] = table.payload
                    tables.append(CountedRows(rows, table.counts))
        return joined_rows(tables) if tables else super().kept_rows()

    def check_rows(self, rows: CountedRows) -> None:
        if rows.payload.shape[1] != self._kept_bytes:
            raise CorruptReport("aggregate: its rows have other bytes than its plan's reports")
        for index, number, own in _by_label(rows):
            parts = self._part_list(index)
            part = parts[number] if number < len(parts) else None
            if not isinstance(part, KeptRows):
                raise CorruptReport("aggregate: it has rows where its plan keeps none")
            if own.payload[:, part.width :].any():
                raise CorruptReport("aggregate: the padding must be zero")
            part.check(own.payload[:, : part.width])

    def add_rows(self, rows: CountedRows) -> None:
        for index, number, own in _by_label(rows):
            heard = self._room(index, self.cohorts[index].oracles, Weighed(0, 0))
            part = heard.parts[number]
            assert isinstance(part, KeptRows)
            part.add(own.payload[:, : part.width], own.counts, heard.magnitude)

    def replace_rows(self, other: Callable[[int, list[int], bool], KeptRows]) -> None:
        """Put others in the place of all rows that are kept. ``other`` gets a cohort, the asks that
        its rows answer, and whether any of its reports had a negative weight.
        """
        for index, heard in self._heard.items():
            for number, part in enumerate(heard.parts):
                if isinstance(part, KeptRows):
                    every = range(len(self.cohorts[index].oracles))
                    asks = [ask for ask in every if self._place(ask)[0] == number]
                    is_signed = heard.people != heard.magnitude
                    heard.parts[number] = other(index, asks, is_signed)

    def _part_list(self, index: int) -> list[CohortPart]:
        """The parts of a cohort, heard from or not."""
        if index in self._heard:
            return self._heard[index].parts
        if index >= len(self.cohorts):
            raise CorruptReport(f"aggregate: cohort must be below {len(self.cohorts)}")
        return self._parts(self.cohorts[index].oracles, 0)

    # -- as bytes

    def _written(self) -> list[int]:
        """The cohorts that are written, in order: those that said something."""
        return [index for index in sorted(self._heard) if not self._heard[index].is_nothing]


def _head_of(slot: PlacedCells) -> tuple[int, int]:
    """The people and the magnitude in a slot's cells."""
    head = slot.between(0, SLOT_HEAD)
    found = dict(zip(head.places.tolist(), head.values.tolist(), strict=True))
    return found.get(0, 0), found.get(1, 0)


def _by_label(rows: CountedRows) -> Iterator[tuple[int, int, CountedRows]]:
    """(cohort, part, its rows without the label) for every label that occurs."""
    labels = np.ascontiguousarray(rows.payload[:, :LABEL_BYTES]).view(f"V{LABEL_BYTES}").ravel()
    different, numbers = np.unique(labels, return_inverse=True)
    for number, places in rows_by(numbers, len(different)):
        index, part = _LABEL.unpack(different[number].tobytes())
        counts = None if rows.counts is None else rows.counts[places]
        yield index, part, CountedRows(rows.payload[places, LABEL_BYTES:], counts)
