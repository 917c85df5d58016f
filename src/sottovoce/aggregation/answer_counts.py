"""How often each answer was given, cohort by cohort: sparse sums, for families of millions of
cohorts whose answers are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.cells import PlacedCells
from sottovoce.aggregation.counts import WORD, Counts
from sottovoce.aggregation.merging import is_rising, sum_equal
from sottovoce.aggregation.tallies import tally_of
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import magnitude_of
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families import Family
from sottovoce.protocol.families.base import Batch


class AnswerCounts(Counts):
    """How many people of each cohort gave each answer."""

    def __init__(self, cohorts: Family) -> None:
        super().__init__(cohorts)
        assert cohorts.answer_bits is not None
        self._bits = cohorts.answer_bits
        self._tally = tally_of(self._size)  # of cohort and answer in one number

    # -- who was heard

    @property
    def people(self) -> int:
        return self._tally.total

    def cohort_people(self, index: int) -> int:
        _, counts = self._part(index)
        return int(counts.sum())

    @property
    def fewest(self) -> int:
        cohorts, _, counts = self.answers
        _, people = sum_equal([cohorts], counts)
        return int(people.min(initial=self.people))

    @property
    def holds_reports(self) -> bool:
        """Where there are more different answers than people, hardly anybody is counted together
        with others.
        """
        return self._size > self.people

    @property
    def is_signed(self) -> bool:
        _, _, counts = self.answers
        return bool((counts < 0).any())

    # -- what was said

    @property
    def answers(self) -> tuple[Integers, Integers, Integers]:
        keys, counts = self._tally.between(0, self._size)
        return keys >> self._bits, keys & self._mask, counts

    @property
    def _size(self) -> int:
        """How many pairs of a cohort and an answer there are."""
        return len(self.cohorts) << self._bits

    @property
    def _mask(self) -> int:
        return (1 << self._bits) - 1

    def _part(self, index: int) -> tuple[Integers, Integers]:
        """The answers of a cohort, and how many people gave each."""
        keys, counts = self._tally.between(index << self._bits, (index + 1) << self._bits)
        return keys & self._mask, counts

    def support(self, index: int, ask: int, values: ArrayLike | None = None) -> Integers:
        oracle = self.cohorts[index].oracles[ask]
        asked = oracle.asked(values)
        answers, counts = self._part(index)
        return oracle.support_rows(self._payload(oracle, answers), counts, asked)

    def state(self, index: int, ask: int) -> Integers:
        oracle = self.cohorts[index].oracles[ask]
        assert isinstance(oracle, SummedOracle)
        answers, counts = self._part(index)
        return oracle._accumulate(oracle.empty(), self._payload(oracle, answers), counts)

    @staticmethod
    def _payload(oracle: Oracle, answers: Integers) -> Payload:
        """The reports that answers came from: such a report is one field."""
        payload = np.zeros((len(answers), oracle.layout.bytes), np.uint8)
        oracle.layout.write(payload, oracle.layout.fields[0].name, answers.astype(np.uint64))
        return payload

    # -- growing

    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        layout = batch.oracles[0].layout
        answers = layout.read(payload[:, : layout.bytes], layout.fields[0].name)
        keys = cohorts.astype(np.int64)
        keys <<= self._bits  # in place: fresh columns cost more than what is done with them
        keys |= answers.view(np.int64)
        self._tally.add(keys, weights)

    def absorb(self, other: Self) -> None:
        self._tally.absorb(other._tally)

    # -- as cells: how often each answer was given, cohort by cohort

    @property
    def cell_count(self) -> int:
        return self._size

    def cells(self) -> Iterator[PlacedCells]:
        yield PlacedCells(*self._tally.between(0, self._size))

    def check_cells(self, cells: PlacedCells) -> None:
        super().check_cells(cells)
        self._check_answers(cells.places >> self._bits, cells.places & self._mask)

    def add_cells(self, cells: PlacedCells) -> None:
        self._tally.add(*cells)

    # -- as bytes

    def to_bytes(self) -> bytes:
        keys, counts = self._tally.between(0, self._size)
        return keys.astype("<i8").tobytes() + counts.astype("<i8").tobytes()

    def most_bytes(self, reports: int) -> int:
        return 2 * WORD * min(self._size, reports)

    def read(self, body: bytes) -> None:
        if not body:
            return  # of nobody
        both = np.frombuffer(body, "<i8").astype(np.int64)
        if len(both) % 2:
            raise CorruptReport("aggregate: it has bytes to spare")
        keys, counts = both[: len(both) // 2], both[len(both) // 2 :]
        if not is_rising([keys], strictly=True) or int(keys.min(initial=0)) < 0:
            raise CorruptReport("aggregate: its answers are not in increasing order")
        magnitude = magnitude_of(counts)
        if not counts.all() or magnitude > self.most_weight:
            raise CorruptReport("aggregate: its content is malformed")
        self._check_answers(keys >> self._bits, keys & self._mask)
        self.grow(magnitude)
        self._tally.add(keys, counts)

    def _check_answers(self, cohorts: Integers, answers: Integers) -> None:
        if len(cohorts) and int(cohorts[-1]) >= len(self.cohorts):
            raise CorruptReport(f"aggregate: cohort must be below {len(self.cohorts)}")
        for batch in self.cohorts.groups(cohorts.astype(np.uint32)):
            own = answers[batch.rows]
            if len(own) and int(own.max()) >> batch.oracles[0].layout.bits:
                raise CorruptReport("aggregate: an answer is not one of its oracle's")
            batch.oracles[0].validate(self._payload(batch.oracles[0], own))
