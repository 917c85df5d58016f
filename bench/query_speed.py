"""How long queries take: the first answer to a crowd's reports, and the next ones.

``python -m bench.query_speed PEOPLE SIZE DIMENSIONS`` is one case in a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import sottovoce as sv
from bench.resident import peak
from bench.rows import Row
from bench.timing import Timing, child

FIRST_ONE, NEXT_ONE = 2.0, 0.05
FIRST_TWO, NEXT_TWO, TWO_MIB = 10.0, 0.1, 2048.0
NEXT = 20  # queries after the first
PART = 1_000_000  # people who are simulated at once
WARM_UP = 2000


@dataclass(frozen=True)
class Shape:
    """How large the cases are; the targets hold for the defaults."""

    people: int = 1_000_000
    size: int = 1024
    many: int = 10_000_000  # people with a measure
    square: int = 256  # values of each of two dimensions


def queries(_: Any, __: Mapping[str, Any], shape: Shape = Shape()) -> Iterator[Row]:
    """Every target of queries."""
    group = "queries"
    one = child("bench.query_speed", str(shape.people), str(shape.size), "1")
    what = f"{shape.people:,} reports, one dimension of {shape.size:,}"
    yield Row(group, f"{what}: first count", "s", _once(one["first"]), limit=FIRST_ONE)
    yield Row(group, f"{what}: each next count", "s", _once(one["next"]), limit=NEXT_ONE)

    two = child("bench.query_speed", str(shape.many), str(shape.square), "2")
    what = f"{shape.many:,} reports with a measure, two dimensions of {shape.square:,}"
    yield Row(group, f"{what}: first count and sum", "s", _once(two["first"]), limit=FIRST_TWO)
    yield Row(group, f"{what}: each next sum", "s", _once(two["next"]), limit=NEXT_TWO)
    yield Row(group, f"{what}: peak memory", "MiB", _once(two["mib"]), limit=TWO_MIB)


def _once(figure: float) -> Timing:
    return Timing(figure, figure, 1)


def _people(count: int, size: int, dimensions: int, seed: int) -> dict[str, Any]:
    """Columns of a crowd that leans to the middle; with two dimensions they go together."""
    draws = np.random.default_rng(seed)
    share = draws.beta(2, 4, count)
    columns: dict[str, Any] = {"x": np.minimum((share * size).astype(np.int64), size - 1)}
    if dimensions == 2:
        other = (share + draws.random(count)) / 2
        columns["y"] = np.minimum((other * size).astype(np.int64), size - 1)
        columns["pay"] = draws.integers(0, 500, count)
    return columns


def case(people: int, size: int, dimensions: int) -> dict[str, float]:
    """Seconds of a first answer and of later ones, from reports; and the peak memory."""
    names = ["x", "y"][:dimensions]
    attributes: dict[str, Any] = {name: sv.Ordinal(0, size - 1) for name in names}
    measures = []
    if dimensions == 2:
        attributes["pay"] = sv.Number(0, 500, sensitive=False)
        measures = ["pay"]
    schema = sv.Schema(**attributes)
    made = sv.plan(schema, sv.Queries(names, measures=measures), epsilon=1.0, people=people)
    _answered(made, [sv.simulate(made, _people(WARM_UP, size, dimensions, 0), seed=0)], size)
    parts = []
    for place, start in enumerate(range(0, people, PART)):
        crowd = _people(min(PART, people - start), size, dimensions, place + 1)
        parts.append(sv.simulate(made, crowd, seed=place + 1))
    first, later = _answered(made, parts, size)
    return {"first": first, "next": later, "mib": peak()}


def _answered(made: Any, parts: list[Any], size: int) -> tuple[float, float]:
    """Seconds until the first answer, and those of each later one."""
    from sottovoce.aggregation.aggregate import fold
    from sottovoce.questions.queries.evidence import cohort_squares

    start = perf_counter()
    total = sv.Aggregate(made)
    for part in parts:
        total.add(part)
    estimate: Any = total.estimate()
    fitted = estimate.fitted
    estimate.count(x=(0, size // 3))
    if made.columns:
        weighed, squares = sv.Aggregate(made), np.zeros(len(made.cohorts))
        for part in parts:
            weights = part.public["pay"].values
            weighed = weighed.merge(fold(made, part, weights))
            squares += cohort_squares(part.cohorts, weights, len(made.cohorts))
        fitted = estimate.fit_weights(weighed, squares)
    fitted.joint([_selection(0, size, made)])
    first = perf_counter() - start
    start = perf_counter()
    for number in range(NEXT):
        fitted.joint([_selection(number, size, made)])
    return first, (perf_counter() - start) / NEXT


def _selection(number: int, size: int, made: Any) -> dict[int, Any]:
    """Ranges that differ from query to query."""
    codes = np.arange(size)
    low, high = number * size // 64, size // 2 + number * size // 64
    inside = ((codes >= low) & (codes < high)).astype(float)
    return dict.fromkeys(range(len(made.question.dimensions)), inside)


if __name__ == "__main__":
    print(json.dumps(case(*map(int, sys.argv[1:]))))
