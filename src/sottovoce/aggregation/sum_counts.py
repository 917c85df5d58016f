"""Sums of each ask of each cohort; rows of an ask whose oracle's reports cannot be summed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Self

import numpy as np

from sottovoce.aggregation.cohort_counts import CohortCounts, Heard
from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.counts import WORD
from sottovoce.aggregation.rows import KeptRows, field_count
from sottovoce.aggregation.sums import Sums
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families.base import slices_of

_COHORT_LINE = 64  # bytes at most: a cohort's number, people and magnitude, as text
_SHAPE_TEXT = 64  # bytes at most: the shape of a part, as text


def part_of(oracle: Oracle, magnitude: int = 0) -> CohortPart:
    """What is kept of the reports to one ask: sums wherever its oracle's reports can be summed."""
    return Sums(oracle, magnitude) if isinstance(oracle, SummedOracle) else KeptRows([oracle])


class SumCounts(CohortCounts):
    """A part for each ask of each cohort heard from."""

    def _parts(self, oracles: Sequence[Oracle], magnitude: int) -> list[CohortPart]:
        return [part_of(oracle, magnitude) for oracle in oracles]

    def _slices(self, oracles: Sequence[Oracle]) -> Sequence[slice]:
        return slices_of(oracles)

    def _place(self, ask: int) -> tuple[int, int]:
        return ask, 0

    @property
    def holds_reports(self) -> bool:
        oracles = [oracle for kind in self.cohorts.kinds for oracle in kind.oracles]
        return not all(isinstance(oracle, SummedOracle) for oracle in oracles)

    def rows(self, index: int, asks: Sequence[int]) -> tuple[list[Payload], Integers | None]:
        if len(asks) == 1:
            part, _ = self._part(index, asks[0])
            if isinstance(part, KeptRows):
                return part.columns([0])
        return super().rows(index, asks)

    # -- as bytes: a line of JSON for each cohort, then the integers of all parts

    def to_bytes(self) -> bytes:
        return self._to_bytes(with_magnitudes=True)

    def holds_same(self, other: Self) -> bool:
        """Whether both hold the same integers, whatever was added and taken away on the way."""
        return self._to_bytes(with_magnitudes=False) == other._to_bytes(with_magnitudes=False)

    def _to_bytes(self, *, with_magnitudes: bool) -> bytes:
        """A magnitude is written where it is not the number of people: there were negative weights
        then, and it says how near the integers may be to their limits.
        """
        header, arrays = [], []
        for index in self._written():
            heard = self._heard[index]
            contents = [part.content() for part in heard.parts]
            shapes = [list(content.shape) for content in contents]
            is_plain = heard.magnitude == heard.people or not with_magnitudes
            header.append([index, heard.people, shapes, *([] if is_plain else [heard.magnitude])])
            arrays += [np.ascontiguousarray(content, "<i8").tobytes() for content in contents]
        text = json.dumps(header, separators=(",", ":")).encode()
        return len(text).to_bytes(WORD, "little") + text + b"".join(arrays)

    def most_bytes(self, reports: int) -> int:
        heard = min(len(self.cohorts), reports)
        most_fixed, most_row = 0, 0  # of a cohort's line and sums; of one report, where it is kept
        for cohort in self.cohorts.kinds:
            summed = [oracle for oracle in cohort.oracles if isinstance(oracle, SummedOracle)]
            kept = [oracle for oracle in cohort.oracles if not isinstance(oracle, SummedOracle)]
            cells = sum(math.prod(oracle.state_shape) for oracle in summed)
            fixed = _COHORT_LINE + _SHAPE_TEXT * len(cohort.oracles) + WORD * cells
            most_fixed = max(most_fixed, fixed)
            # the fields of a report, and for each ask how often it was sent
            most_row = max(most_row, WORD * (field_count(kept) + len(kept)))
        return WORD + _COHORT_LINE + heard * most_fixed + reports * most_row

    def read(self, body: bytes) -> None:
        start = WORD + int.from_bytes(body[:WORD], "little")
        most = self.most_weight
        for number, people, shapes, *rest in json.loads(body[WORD:start]):
            index = whole("aggregate: cohort", number, 0, len(self.cohorts) - 1)
            total = whole("aggregate: people", people, -most, most)
            (magnitude,) = rest or [total]
            whole("aggregate: magnitude", magnitude, abs(total), most)
            if index in self._heard:
                raise CorruptReport("aggregate: a cohort stands in it twice")
            parts = self._parts(self.cohorts[index].oracles, 0)
            for part, shape in zip(parts, shapes, strict=True):
                if not part.fits(shape):
                    raise CorruptReport("aggregate: a state has another shape than its oracle's")
                count = math.prod(whole("aggregate: shape", each, 0, 1 << 40) for each in shape)
                content = np.frombuffer(body, "<i8", count, start).reshape(shape)
                part.read(content.astype(np.int64), total)
                start += WORD * count
            self._heard[index] = Heard(total, magnitude, parts)
            self.grow(magnitude)
        if start != len(body):
            raise CorruptReport("aggregate: it has bytes to spare")
