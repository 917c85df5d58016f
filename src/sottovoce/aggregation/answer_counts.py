"""How often each answer was given, cohort by cohort: sparse sums, for families of millions of
cohorts whose answers are few.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.aggregation.counts import WORD, Counts
from sottovoce.aggregation.merging import is_rising, sum_equal
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
        self.keys = np.zeros(0, np.int64)  # cohort and answer in one number, increasing
        self.counts = np.zeros(0, np.int64)

    # -- who was heard

    @property
    def people(self) -> int:
        return int(self.counts.sum())

    def cohort_people(self, index: int) -> int:
        return int(self.counts[self._part(index)].sum())

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
        return len(self.cohorts) << self._bits > self.people

    @property
    def is_signed(self) -> bool:
        return bool((self.counts < 0).any())

    # -- what was said

    @property
    def answers(self) -> tuple[Integers, Integers, Integers]:
        return self.keys >> self._bits, self.keys & self._mask, self.counts

    @property
    def _mask(self) -> int:
        return (1 << self._bits) - 1

    def _part(self, index: int) -> slice:
        """Where the answers of a cohort stand."""
        ends = [index << self._bits, (index + 1) << self._bits]
        first, last = np.searchsorted(self.keys, ends).tolist()
        return slice(first, last)

    def support(self, index: int, ask: int, values: ArrayLike | None = None) -> Integers:
        oracle = self.cohorts[index].oracles[ask]
        asked = oracle.asked(values)
        part = self._part(index)
        payload = self._payload(oracle, self.keys[part] & self._mask)
        return oracle.support_rows(payload, self.counts[part], asked)

    def state(self, index: int, ask: int) -> Integers:
        oracle = self.cohorts[index].oracles[ask]
        assert isinstance(oracle, SummedOracle)
        part = self._part(index)
        payload = self._payload(oracle, self.keys[part] & self._mask)
        return oracle._accumulate(oracle.empty(), payload, self.counts[part])

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
        keys = cohorts.astype(np.int64) << self._bits | answers.astype(np.int64)
        self._take(keys, np.ones(len(keys), np.int64) if weights is None else weights)

    def absorb(self, other: Self) -> None:
        self._take(other.keys, other.counts)

    def _take(self, keys: Integers, counts: Integers) -> None:
        keys, counts = np.concatenate([self.keys, keys]), np.concatenate([self.counts, counts])
        places, self.counts = sum_equal([keys], counts)
        self.keys = keys[places]

    # -- as bytes

    def to_bytes(self) -> bytes:
        return self.keys.astype("<i8").tobytes() + self.counts.astype("<i8").tobytes()

    def most_bytes(self, reports: int) -> int:
        return 2 * WORD * min(len(self.cohorts) << self._bits, reports)

    def read(self, body: bytes) -> None:
        if not body:
            return  # of nobody
        both = np.frombuffer(body, "<i8").astype(np.int64)
        if len(both) % 2:
            raise CorruptReport("aggregate: it has bytes to spare")
        self.keys, self.counts = both[: len(both) // 2], both[len(both) // 2 :]
        if not is_rising([self.keys], strictly=True) or int(self.keys.min(initial=0)) < 0:
            raise CorruptReport("aggregate: its answers are not in increasing order")
        magnitude = magnitude_of(self.counts)
        if not self.counts.all() or magnitude > self.most_weight:
            raise CorruptReport("aggregate: its content is malformed")
        self.grow(magnitude)
        self._check_answers()

    def _check_answers(self) -> None:
        cohorts, answers, _ = self.answers
        if len(cohorts) and int(cohorts[-1]) >= len(self.cohorts):
            raise CorruptReport(f"aggregate: cohort must be below {len(self.cohorts)}")
        for batch in self.cohorts.groups(cohorts.astype(np.uint32)):
            own = answers[batch.rows]
            if len(own) and int(own.max()) >> batch.oracles[0].layout.bits:
                raise CorruptReport("aggregate: an answer is not one of its oracle's")
            batch.oracles[0].validate(self._payload(batch.oracles[0], own))
