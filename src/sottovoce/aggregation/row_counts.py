"""The rows of all reports, for questions about how a person's answers go together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.aggregation.cohort_counts import CohortCounts, Heard
from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.counts import WORD
from sottovoce.aggregation.merging import is_rising
from sottovoce.aggregation.rows import KeptRows, RowCount, byte_keys
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import magnitude_of
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families.base import slices_of

# before a report, highest first, so that reports are in the order of their cohorts
_COHORT_BYTES = 4


class RowCounts(CohortCounts):
    """Which reports were sent, and how often each: for each cohort heard from, rows that hold all
    of its asks.
    """

    def _parts(self, oracles: Sequence[Oracle], magnitude: int) -> list[CohortPart]:
        return [KeptRows(oracles)]

    def _slices(self, oracles: Sequence[Oracle]) -> Sequence[slice]:
        return [slice(0, slices_of(oracles)[-1].stop)]

    def _place(self, ask: int) -> tuple[int, int]:
        return 0, ask

    @property
    def holds_reports(self) -> bool:
        return True

    def _rows(self, index: int) -> KeptRows:
        part, _ = self._part(index, 0)
        assert isinstance(part, KeptRows)
        return part

    def count_rows(self, index: int, asks: Sequence[int], count: RowCount) -> Integers:
        return self._rows(index).count(asks, count)

    # -- as bytes: how often each different report was sent, then the reports, cohorts before them

    def to_bytes(self) -> bytes:
        counts, labelled = [], []
        for index in self._written():
            table = self._rows(index).distinct()
            people = np.ones(len(table.payload), np.int64) if table.counts is None else table.counts
            counts.append(people.astype("<i8").tobytes())
            rows = np.zeros((len(people), _COHORT_BYTES + self.cohorts.bytes), np.uint8)
            rows[:, :_COHORT_BYTES] = np.frombuffer(index.to_bytes(_COHORT_BYTES, "big"), np.uint8)
            rows[:, _COHORT_BYTES : _COHORT_BYTES + table.payload.shape[1]] = table.payload
            labelled.append(rows.tobytes())
        total = sum(len(each) for each in counts) // WORD
        return total.to_bytes(WORD, "little") + b"".join([*counts, *labelled])

    def most_bytes(self, reports: int) -> int:
        return WORD + reports * (WORD + _COHORT_BYTES + self.cohorts.bytes)

    def read(self, body: bytes) -> None:
        count = int.from_bytes(body[:WORD], "little")
        width = _COHORT_BYTES + self.cohorts.bytes
        if len(body) != WORD + count * (WORD + width):
            raise CorruptReport("aggregate: it has bytes to spare or too few")
        if not count:
            return  # of nobody
        people = np.frombuffer(body, "<i8", count, WORD).astype(np.int64)
        rows = np.frombuffer(body, np.uint8, offset=WORD + WORD * count).reshape(count, width)
        if not people.all() or magnitude_of(people) > self.most_weight:
            raise CorruptReport("aggregate: its content is malformed")
        if not is_rising(byte_keys(rows), strictly=True):
            raise CorruptReport("aggregate: its reports are not in increasing order")
        labels = np.ascontiguousarray(rows[:, :_COHORT_BYTES]).view(">u4").ravel()
        cohorts, starts = np.unique(labels, return_index=True)
        ends = [*starts[1:].tolist(), count]
        for index, start, end in zip(cohorts.tolist(), starts.tolist(), ends, strict=True):
            self._read_cohort(index, rows[start:end, _COHORT_BYTES:], people[start:end])

    def _read_cohort(self, index: int, payload: Payload, people: Integers) -> None:
        if index >= len(self.cohorts):
            raise CorruptReport(f"aggregate: cohort must be below {len(self.cohorts)}")
        cohort = self.cohorts[index]
        if payload[:, cohort.bytes :].any():
            raise CorruptReport("aggregate: the padding must be zero")
        for oracle, part in zip(cohort.oracles, cohort.slices, strict=True):
            oracle.validate(np.ascontiguousarray(payload[:, part]))
        magnitude = magnitude_of(people)
        rows = KeptRows(cohort.oracles)
        is_single = bool((people == 1).all())
        rows.add(payload[:, : cohort.bytes], None if is_single else people, magnitude)
        self._heard[index] = Heard(int(people.sum()), magnitude, [rows])
        self.grow(magnitude)
