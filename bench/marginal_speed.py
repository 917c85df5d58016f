"""How long marginals take: planning, simulating a crowd, hearing it, answering many large tables.

``python -m bench.marginal_speed ATTRIBUTES K PEOPLE QUERIES`` is the last case in a process of its
own.
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
from bench.timing import Timing, child, fresh, measure

VIEW_BASED = (
    "marg-rr",
    "marg-ps",
    "marg-ht",
    "am",
    "calm",
    "calm+",
    "calm-binary",
    "joint",
    "fourier",
    "latent",
)
PLANNING, SIMULATING, HASHED, WHOLE, WHOLE_MIB = 5.0, 2.0, 5.0, 60.0, 2048.0


@dataclass(frozen=True)
class Shape:
    """How large the cases are; the targets hold for the defaults."""

    attributes: int = 32
    hashed: int = 16  # attributes of the table that inp-olh hashes
    k: int = 8
    people: int = 1 << 18
    queries: int = 50
    repeats: int = 2


def yes_or_no(attributes: int, people: int) -> tuple[sv.Schema, dict[str, Any]]:
    """Attributes that lean on a common cause, so that tables are not all alike."""
    draws = np.random.default_rng(1)
    cause = draws.random(people)
    leanings = np.linspace(0.1, 0.9, attributes)
    columns = {
        f"a{place}": draws.random(people) < leaning * cause
        for place, leaning in enumerate(leanings)
    }
    return sv.Schema(**{name: sv.Boolean() for name in columns}), columns


def _plan(schema: sv.Schema, k: int, method: str, people: int) -> sv.Plan:
    return sv.plan(schema, sv.Marginals(up_to=k, method=method), epsilon=1.0, people=people)


def marginals(_: Any, __: Mapping[str, Any], shape: Shape = Shape()) -> Iterator[Row]:
    """Every target of marginals."""
    group, d = "marginals", shape.attributes
    code = (
        "import sottovoce as sv; s = sv.Schema(**{f'a{i}': sv.Boolean() for i in "
        f"range({d})}}); sv.plan(s, sv.Marginals(up_to={shape.k}), epsilon=1.0, "
        f"people={shape.people})"
    )
    planning = fresh([sys.executable, "-c", code], shape.repeats)
    yield Row(
        group, f"auto, d = {d}, k = {shape.k}: plan, a fresh process", "s", planning, limit=PLANNING
    )

    schema, columns = yes_or_no(d, shape.people)
    for method in VIEW_BASED:
        made = _plan(
            schema,
            2 if method in ("am", "marg-rr", "marg-ps", "marg-ht") else shape.k,
            method,
            shape.people,
        )
        timing = measure(lambda made=made: sv.simulate(made, columns, seed=1), shape.repeats)  # type: ignore[misc]
        yield Row(
            group,
            f"{method}, d = {d}: simulate {shape.people:,} people",
            "s",
            timing,
            limit=SIMULATING,
        )

    schema, columns = yes_or_no(shape.hashed, shape.people)
    made = _plan(schema, 2, "inp-olh", shape.people)

    def hashed() -> Any:
        reports = sv.simulate(made, columns, seed=1)
        return sv.Aggregate(made).add(reports).estimate().marginals(2)  # type: ignore[attr-defined]

    note = (
        "simulate, aggregate, estimate, all pairs; cormode2018marginal: not done after 12 hours "
        "at d = 12"
    )
    yield Row(
        group,
        f"inp-olh, d = {shape.hashed}",
        "s",
        measure(hashed, shape.repeats),
        limit=HASHED,
        note=note,
    )

    case = map(str, (d, shape.k, shape.people, shape.queries))
    found = child("bench.marginal_speed", *case)
    what = f"auto, d = {d}, k = {shape.k}: {shape.queries} tables of {2**shape.k} cells"
    seconds, held = found["seconds"], found["mib"]
    note = "a fresh process: plan, simulate, aggregate, estimate, intervals"
    yield Row(group, what, "s", Timing(seconds, seconds, 1), limit=WHOLE, note=note)
    yield Row(group, f"{what}: peak memory", "MiB", Timing(held, held, 1), limit=WHOLE_MIB)


def whole(attributes: int, k: int, people: int, queries: int) -> dict[str, float]:
    """Seconds and peak memory from schema to answers."""
    schema, columns = yes_or_no(attributes, people)
    start = perf_counter()
    made = _plan(schema, k, "auto", people)
    estimate: Any = sv.Aggregate(made).add(sv.simulate(made, columns, seed=1)).estimate()
    draws = np.random.default_rng(2)
    for _ in range(queries):
        estimate.marginal(*draws.choice(list(schema), k, replace=False).tolist()).interval()
    return {"seconds": perf_counter() - start, "mib": peak()}


if __name__ == "__main__":
    print(json.dumps(whole(*map(int, sys.argv[1:]))))
