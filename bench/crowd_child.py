"""Run in a fresh process: the memory of one crowd, or of one streamed file, above imports and
warm-up.

``python -m bench.crowd_child held|batches ORACLE PEOPLE SIZE``, ``... stream ORACLE SIZE FILE``
"""

from __future__ import annotations

import json
import sys
import time

import sottovoce as sv
from bench.resident import Above
from bench.survey import estimated, plan_of, zipf
from sottovoce.protocol.report_files import stream

BATCH = 1 << 14  # people simulated and aggregated at a time


def crowd(oracle: str, people: int, size: int, batch: int) -> dict[str, float]:
    """MiB that simulating, aggregating and estimating take, beside the data, with ``batch``
    people's reports held.
    """
    plan = plan_of(oracle, size, people)
    values = zipf(people, size)
    estimated(plan, sv.simulate(plan, {"x": values[:64]}, seed=0))
    above = Above()
    total = sv.Aggregate(plan)
    for start in range(0, people, batch):
        reports = sv.simulate(plan, {"x": values[start : start + batch]}, seed=start)
        total.add(reports)
    total.estimate()
    return {"above": above.mib()}


def streamed(oracle: str, size: int, path: str) -> dict[str, float]:
    """MiB and seconds of aggregating a file."""
    plan = plan_of(oracle, size, 1_000_000)
    estimated(plan, sv.simulate(plan, {"x": zipf(64, size)}, seed=0))
    next(stream(path, batch=64))
    above = Above()
    start = time.perf_counter()
    total = sv.Aggregate(plan).add(stream(path))
    return {"above": above.mib(), "seconds": time.perf_counter() - start, "people": total.people}


if __name__ == "__main__":
    kind, name, *rest = sys.argv[1:]
    if kind == "stream":
        found = streamed(name, int(rest[0]), rest[1])
    else:
        found = crowd(name, int(rest[0]), int(rest[1]), int(rest[0]) if kind == "held" else BATCH)
    print(json.dumps(found))
