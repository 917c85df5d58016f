"""Sums of each ask of each cohort; rows of an ask whose oracle's reports cannot be summed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from sottovoce.aggregation.cohort_counts import CohortCounts, Heard
from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.rows import KeptRows, RowCount
from sottovoce.aggregation.sum_bytes import SumLine, most_sum_bytes, read_sums, write_sums
from sottovoce.aggregation.sums import Sums
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.base import Integers
from sottovoce.protocol.families.base import slices_of


def part_of(oracle: Oracle, magnitude: int = 0) -> CohortPart:
    """What is kept of the reports to one ask: sums wherever its oracle's reports can be summed."""
    return Sums(oracle, magnitude) if isinstance(oracle, SummedOracle) else KeptRows([oracle])


class SumCounts(CohortCounts):
    """A part for each ask of each cohort heard from."""

    def _parts(self, oracles: Sequence[Oracle], magnitude: int) -> list[CohortPart]:
        return [part_of(oracle, magnitude) for oracle in oracles]

    def emptied(self) -> Self:
        for index, heard in self._heard.items():
            oracles = self.cohorts[index].oracles
            parts = [
                part if isinstance(part, Sums) else part_of(oracle)
                for part, oracle in zip(heard.parts, oracles, strict=True)
            ]
            for part in parts:
                if isinstance(part, Sums):
                    part.clear()
            self._heard[index] = Heard(0, 0, parts)
        self.magnitude = 0
        return self

    def _slices(self, oracles: Sequence[Oracle]) -> Sequence[slice]:
        return slices_of(oracles)

    def _place(self, ask: int) -> tuple[int, int]:
        return ask, 0

    @property
    def holds_reports(self) -> bool:
        oracles = [oracle for kind in self.cohorts.kinds for oracle in kind.oracles]
        return not all(isinstance(oracle, SummedOracle) for oracle in oracles)

    def count_rows(self, index: int, asks: Sequence[int], count: RowCount) -> Integers:
        if len(asks) == 1:
            part, _ = self._part(index, asks[0])
            if isinstance(part, KeptRows):
                return part.count([0], count)
        return super().count_rows(index, asks, count)

    # -- as bytes: a line of JSON for each cohort, then the integers of all parts

    def to_bytes(self) -> bytes:
        return write_sums(self._lines(), with_magnitudes=True)

    def held_bytes(self) -> bytes:
        return write_sums(self._lines(), with_magnitudes=False)

    def _lines(self) -> Iterator[SumLine]:
        for index in self._written():
            heard = self._heard[index]
            contents = [part.content() for part in heard.parts]
            yield SumLine(index, heard.people, heard.magnitude, contents)

    def most_bytes(self, reports: int) -> int:
        return most_sum_bytes(self.cohorts, reports)

    def read(self, body: bytes) -> None:
        for line in read_sums(body, len(self.cohorts), self.most_weight):
            parts = self._parts(self.cohorts[line.cohort].oracles, 0)
            for part, content in zip(parts, line.contents, strict=True):
                if not part.fits(content.shape):
                    raise CorruptReport("aggregate: a state has another shape than its oracle's")
                part.read(content, line.people)
            self._heard[line.cohort] = Heard(line.people, line.magnitude, parts)
            self.grow(line.magnitude)
