"""How long it takes to find what is popular, each case in a process of its own, from schema to
answer.

``python -m bench.popular_speed CASE PEOPLE`` is one case.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np

import sottovoce as sv
from bench.resident import peak
from bench.rows import Row
from bench.timing import Timing, child

PEOPLE = 1_000_000
BASKETS = 500_000
ITEMS = 2_600
VALUES = 50_000  # different ones in a crowd
Crowd = tuple[sv.Schema, Any, dict[str, Any]]  # schema, question, table


def _words(people: int, size: int, **options: Any) -> Crowd:
    """People with words of 2 to ``size`` letters, as frequent as a Zipf law says."""
    draws = np.random.default_rng(1)
    letters = draws.integers(97, 123, (VALUES, size), dtype=np.uint8)
    lengths = draws.integers(2, size + 1, VALUES)
    words = np.array(
        [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)], object
    )
    question = sv.HeavyHitters("x", top=32, **options)
    return sv.Schema(x=sv.Text(bytes=size)), question, {"x": words[_zipf(draws, VALUES, people)]}


def _numbers(people: int) -> Crowd:
    draws = np.random.default_rng(1)
    numbers = draws.integers(0, 1 << 64, VALUES, dtype=np.uint64)
    return (
        sv.Schema(x=sv.Integer(bits=64)),
        sv.HeavyHitters("x", top=32),
        {"x": numbers[_zipf(draws, VALUES, people)]},
    )


def _zipf(draws: np.random.Generator, values: int, people: int) -> Any:
    weights = 1 / np.arange(1, values + 1)
    return draws.choice(values, people, p=weights / weights.sum())


def _baskets(people: int, method: str) -> Crowd:
    """Baskets of about five items of 2,600, in Arrow."""
    import pyarrow as pa

    draws = np.random.default_rng(1)
    ends = np.cumsum(1 + draws.poisson(4, people))
    members = _zipf(draws, ITEMS, int(ends[-1]))
    column = pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), pa.array(members))
    return (
        sv.Schema(x=sv.Items(range(ITEMS))),
        sv.TopItems("x", top=64, method=method),
        {"x": column},
    )


# name -> (what, who, limit in seconds, limit in MiB, epsilon)
CASES: Mapping[str, tuple[str, Callable[[int], Crowd], float, float | None, float]] = {
    "windows-48": ("windows, 48 bits of text", lambda n: _words(n, 6), 3.0, 1024.0, 1.0),
    "windows-64": ("windows, 64-bit numbers", _numbers, 5.0, 1024.0, 1.0),
    "windows-128": ("windows, 128 bits of text", lambda n: _words(n, 16), 10.0, 1024.0, 1.0),
    "pem-48": (
        "pem, 48 bits, rounds of 16 bits",
        lambda n: _words(n, 6, method="pem", lengths=[16, 32, 48]),
        20.0,
        2048.0,
        1.0,
    ),
    "svim": (f"svim, {ITEMS:,} items", lambda n: _baskets(n, "svim"), 5.0, None, 2.0),
    "auto": (f"auto for items, {ITEMS:,} items", lambda n: _baskets(n, "auto"), 20.0, None, 2.0),
}


def popular(
    _: Any, __: Mapping[str, Any], people: int = PEOPLE, baskets: int = BASKETS
) -> Iterator[Row]:
    """Every target of what is popular."""
    note = "a fresh process, warmed up: plan, simulate, aggregate, estimate, all rounds"
    for name, (what, _make, seconds, held, _epsilon) in CASES.items():
        count = baskets if name in ("svim", "auto") else people
        found = child("bench.popular_speed", name, str(count))
        timing = Timing(found["seconds"], found["seconds"], 1)
        yield Row("popular", f"{what}: {count:,} people", "s", timing, limit=seconds, note=note)
        if held is not None:
            memory = Timing(found["mib"], found["mib"], 1)
            yield Row("popular", f"{what}: peak memory", "MiB", memory, limit=held)


def case(name: str, people: int) -> dict[str, float]:
    """Seconds and peak memory of one case; a small crowd compiles the kernels first."""
    _, make, _, _, epsilon = CASES[name]

    def once(count: int) -> float:
        schema, question, table = make(count)
        start = perf_counter()
        sv.simulate_rounds(sv.plan(schema, question, epsilon=epsilon, people=count), table, seed=1)
        return perf_counter() - start

    once(min(people, 20_000))
    return {"seconds": once(people), "mib": peak()}


if __name__ == "__main__":
    print(json.dumps(case(sys.argv[1], int(sys.argv[2]))))
