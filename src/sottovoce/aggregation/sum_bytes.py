"""Sums of cohorts as bytes: a line of JSON for each cohort, then the integers of all parts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from sottovoce.aggregation.counts import WORD
from sottovoce.aggregation.rows import field_count
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import SummedOracle
from sottovoce.oracles.base import Integers
from sottovoce.protocol.families import Family

_COHORT_LINE = 64  # bytes at most: a cohort's number, people and magnitude, as text
_SHAPE_TEXT = 64  # bytes at most: the shape of a part, as text


class SumLine(NamedTuple):
    """What one cohort said: its people, their magnitude, and the integers of each part."""

    cohort: int
    people: int
    magnitude: int
    contents: list[Integers]


def write_sums(lines: Iterable[SumLine], *, with_magnitudes: bool) -> bytes:
    """The lines of cohorts in increasing order.

    A magnitude is written where it is not the number of people: there were negative weights then,
    and it says how near the integers may be to their limits.
    """
    header, arrays = [], []
    for cohort, people, magnitude, contents in lines:
        shapes = [list(content.shape) for content in contents]
        is_plain = magnitude == people or not with_magnitudes
        header.append([cohort, people, shapes, *([] if is_plain else [magnitude])])
        arrays += [np.ascontiguousarray(content, "<i8").tobytes() for content in contents]
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(WORD, "little") + text + b"".join(arrays)


def read_sums(body: bytes, cohorts: int, most_weight: int) -> Iterator[SumLine]:
    """The inverse of :func:`write_sums`; refuses what so many cohorts cannot have said. Whether
    contents have the right shapes is for whoever takes them to check.
    """
    seen = set()
    start = WORD + int.from_bytes(body[:WORD], "little")
    for number, people, shapes, *rest in json.loads(body[WORD:start]):
        index = whole("aggregate: cohort", number, 0, cohorts - 1)
        total = whole("aggregate: people", people, -most_weight, most_weight)
        (magnitude,) = rest or [total]
        whole("aggregate: magnitude", magnitude, abs(total), most_weight)
        if index in seen:
            raise CorruptReport("aggregate: a cohort stands in it twice")
        seen.add(index)
        contents = []
        for shape in shapes:
            sides = [whole("aggregate: shape", each, 0, 1 << 40) for each in shape]
            content = np.frombuffer(body, "<i8", math.prod(sides), start)
            contents.append(content.reshape(sides).astype(np.int64))
            start += WORD * content.size
        yield SumLine(index, total, magnitude, contents)
    if start != len(body):
        raise CorruptReport("aggregate: it has bytes to spare")


def most_sum_bytes(cohorts: Family, reports: int) -> int:
    """What :func:`write_sums` gives at most for so many reports under these cohorts."""
    heard = min(len(cohorts), reports)
    most_fixed, most_row = 0, 0  # of a cohort's line and sums; of one report, where it is kept
    for cohort in cohorts.kinds:
        summed = [oracle for oracle in cohort.oracles if isinstance(oracle, SummedOracle)]
        kept = [oracle for oracle in cohort.oracles if not isinstance(oracle, SummedOracle)]
        cells = sum(math.prod(oracle.state_shape) for oracle in summed)
        fixed = _COHORT_LINE + _SHAPE_TEXT * len(cohort.oracles) + WORD * cells
        most_fixed = max(most_fixed, fixed)
        # the fields of a report, and for each ask how often it was sent
        most_row = max(most_row, WORD * (field_count(kept) + len(kept)))
    return WORD + _COHORT_LINE + heard * most_fixed + reports * most_row
