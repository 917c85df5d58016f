"""How long SQL takes: the first answer to a crowd's reports, and the next ones.

``python -m bench.query_speed CASE PEOPLE SIZE`` is one case in a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import sottovoce as sv
from bench.resident import peak
from bench.rows import Row
from bench.timing import Timing, child

FIRST_ONE, NEXT_ONE = 2.0, 0.05
FIRST_TWO, NEXT_TWO, TWO_MIB = 10.0, 0.1, 2048.0
FIRST_GROUPS, NEXT_GROUPS = 5.0, 0.25
NEXT = 10  # queries after the first
PART = 1_000_000  # people who are simulated at once
WARM_UP = 2000
STATES = 50

Columns = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """How large the cases are; the targets hold for the defaults."""

    people: int = 1_000_000
    size: int = 1024
    many: int = 10_000_000  # people with a measure
    square: int = 256  # values of each of two dimensions


@dataclass(frozen=True)
class Case:
    """A survey and what is asked of it; ``{low}`` and ``{high}`` differ from query to query."""

    dimensions: tuple[str, ...]
    public: tuple[str, ...] = ()
    has_pay: bool = False
    sql: str = "SELECT COUNT(*) FROM people WHERE x BETWEEN {low} AND {high}"


GROUPED = "SELECT state, SUM(pay) FROM people WHERE x BETWEEN {low} AND {high} GROUP BY state"
CASES = {
    "one": Case(("x",)),
    "two": Case(
        ("x", "y"),
        has_pay=True,
        sql="SELECT COUNT(*), SUM(pay) FROM people WHERE x BETWEEN {low} AND {high} "
        "AND y BETWEEN {low} AND {high}",
    ),
    "public-groups": Case(("x",), ("state",), has_pay=True, sql=GROUPED),
    "whispered-groups": Case(("x", "state"), has_pay=True, sql=GROUPED),
}


def queries(_: Any, __: Mapping[str, Any], shape: Shape = Shape()) -> Iterator[Row]:
    """Every target of queries."""
    group = "queries"
    one = child("bench.query_speed", "one", str(shape.people), str(shape.size))
    what = f"{shape.people:,} reports, one dimension of {shape.size:,}"
    yield Row(group, f"{what}: first count of a range", "s", _once(one["first"]), limit=FIRST_ONE)
    yield Row(group, f"{what}: first, from a file", "s", _once(one["file"]), limit=FIRST_ONE)
    yield Row(group, f"{what}: each next range", "s", _once(one["next"]), limit=NEXT_ONE)
    yield Row(group, f"{what}: COUNT(*) of all", "s", _once(one["all"]), limit=NEXT_ONE)

    two = child("bench.query_speed", "two", str(shape.many), str(shape.square))
    what = f"{shape.many:,} reports with a measure, two dimensions of {shape.square:,}"
    yield Row(group, f"{what}: first count and sum", "s", _once(two["first"]), limit=FIRST_TWO)
    yield Row(group, f"{what}: each next one", "s", _once(two["next"]), limit=NEXT_TWO)
    yield Row(group, f"{what}: peak memory", "MiB", _once(two["mib"]), limit=TWO_MIB)

    for kind in ("public", "whispered"):
        found = child("bench.query_speed", f"{kind}-groups", str(shape.people), str(shape.size))
        what = f"{shape.people:,} reports, sums of {STATES} {kind} groups"
        yield Row(group, f"{what}: first", "s", _once(found["first"]), limit=FIRST_GROUPS)
        yield Row(group, f"{what}: each next one", "s", _once(found["next"]), limit=NEXT_GROUPS)


def _once(figure: float) -> Timing:
    return Timing(figure, figure, 1)


def _schema(asked: Case, size: int) -> Any:
    """All columns that a case has."""
    attributes: Columns = {}
    for name in (*asked.dimensions, *asked.public):
        if name == "state":
            names = [f"S{number:02d}" for number in range(STATES)]
            attributes[name] = sv.Categorical(names, sensitive=name in asked.dimensions)
        else:
            attributes[name] = sv.Ordinal(0, size - 1)
    if asked.has_pay:
        attributes["pay"] = sv.Number(0, 500, step="0.01", sensitive=False)
    return sv.Schema(**attributes)


def _people(asked: Case, count: int, size: int, seed: int) -> Columns:
    """A crowd that leans to the middle; its columns go together."""
    draws = np.random.default_rng(seed)
    share = draws.beta(2, 4, count)
    other = (share + draws.random(count)) / 2
    state = np.minimum((other * STATES).astype(np.int64), STATES - 1)
    columns: Columns = {
        "x": np.minimum((share * size).astype(np.int64), size - 1),
        "y": np.minimum((other * size).astype(np.int64), size - 1),
        "state": np.array([f"S{number:02d}" for number in range(STATES)])[state],
    }
    kept = {name: columns[name] for name in (*asked.dimensions, *asked.public)}
    if asked.has_pay:
        kept["pay"] = draws.integers(0, 50_000, count) / 100
    return kept


def case(name: str, people: int, size: int) -> dict[str, float]:
    """Seconds of a first answer and of later ones, from reports; and the peak memory."""
    asked = CASES[name]
    measures = ["pay"] if asked.has_pay else []
    question = sv.Queries(list(asked.dimensions), measures=measures)
    made = sv.plan(
        _schema(asked, size), question, epsilon=1.0, people=people, public=list(asked.public)
    )
    # a few people first, who load libraries and compile what runs
    _answered(made, sv.simulate(made, _people(asked, WARM_UP, size, 0), seed=0), asked, size)
    parts = []
    for place, start in enumerate(range(0, people, PART)):
        crowd = _people(asked, min(PART, people - start), size, place + 1)
        parts.append(sv.simulate(made, crowd, seed=place + 1))
    reports = parts[0] if len(parts) == 1 else type(parts[0]).concat(parts)
    del parts
    first, later = _answered(made, reports, asked, size)
    found = {"first": first, "next": later, "mib": peak()}
    if name == "one":
        found |= _of_everybody(made, reports, asked, size)
    return found


def _answered(made: Any, reports: Any, asked: Case, size: int) -> tuple[float, float]:
    """Seconds until the first answer, and those of each later one."""
    texts = _texts(asked, size)
    start = perf_counter()
    sv.query(made, reports, texts[0])
    first = perf_counter() - start
    start = perf_counter()
    for text in texts[1:]:
        sv.query(made, reports, text)
    return first, (perf_counter() - start) / (len(texts) - 1)


def _of_everybody(made: Any, reports: Any, asked: Case, size: int) -> dict[str, float]:
    """Seconds of a count without a condition, and of a first answer from a Parquet file."""
    start = perf_counter()
    sv.query(made, reports, "SELECT COUNT(*) FROM people")
    everybody = perf_counter() - start
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        reports.write(path)
        start = perf_counter()
        sv.query(made, str(path), _texts(asked, size)[0])
        return {"all": everybody, "file": perf_counter() - start}


def _texts(asked: Case, size: int) -> Sequence[str]:
    """Queries of ranges that differ from one to the next."""
    ends = [(number * size // 64, size // 2 + number * size // 64) for number in range(NEXT + 1)]
    return [asked.sql.format(low=low, high=high) for low, high in ends]


if __name__ == "__main__":
    print(json.dumps(case(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
