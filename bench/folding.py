"""What folding costs: nanoseconds of CPU a report, in memory and from a file of 2^17 a row group;
and what two threads are worth, in wall time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from bench.rows import Row
from bench.timing import Timing, measure
from sottovoce.aggregation.file_fold import fold_files
from sottovoce.protocol.report_files import write_stream
from sottovoce.protocol.reports import STREAM_BATCH
from sottovoce.schema import Schema

ATTRIBUTES = 16
CASES = ("signs", "views", "olh", "windows")


@dataclass(frozen=True)
class FoldShape:
    """How large the cases are; the limits hold for the defaults."""

    blocks: int = 4  # of 2^17 different reports in memory
    copies: int = 32  # of them in a file: what threads take to start is little beside that
    repeats: int = 3
    bits: int = 20  # of the value of olh
    cases: tuple[str, ...] = CASES


@dataclass(frozen=True)
class FoldCase:
    """A plan, people who answer it, and the limit on reading and folding, in ns a report."""

    what: str
    plan: sv.Plan
    table: Callable[[Any, int], dict[str, Any]]
    limit: float


def _yes_or_no(draws: Any, rows: int) -> dict[str, Any]:
    cause = draws.random(rows, np.float32)
    lean = np.linspace(0.1, 0.9, ATTRIBUTES, dtype=np.float32)
    return {f"a{k}": draws.random(rows, np.float32) < lean[k] * cause for k in range(ATTRIBUTES)}


def _numbers(draws: Any, rows: int) -> dict[str, Any]:
    return {"x": draws.integers(0, 256, rows)}


def case_of(name: str, shape: FoldShape) -> FoldCase:
    """One of ``CASES``."""
    many = 10**8  # people
    if name in ("signs", "views"):
        schema = Schema(**{f"a{k}": sv.Boolean() for k in range(ATTRIBUTES)})
        people, method, limit = (10**7, "latent", 15) if name == "signs" else (many, "joint", 60)
        plan = sv.plan(schema, sv.Marginals(up_to=3, method=method), epsilon=1.0, people=people)
        what = f"Marginals(up_to=3), {ATTRIBUTES} attributes, {method}: {len(plan.cohorts)} cohorts"
        return FoldCase(what, plan, _yes_or_no, limit)
    if name == "olh":
        schema = Schema(x=sv.Ordinal(0, (1 << shape.bits) - 1))
        plan = sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=many)
        return FoldCase(f"olh, d = 2^{shape.bits}", plan, _numbers, 45)
    plan = sv.plan(
        Schema(x=sv.Integer(bits=48)), sv.HeavyHitters("x", top=32), epsilon=1.0, people=many
    )
    return FoldCase("HeavyHitters, 48 bits: three tables of 2^24", plan, _numbers, 200)


def folding(_: Any, __: Mapping[str, Any], shape: FoldShape = FoldShape()) -> Iterator[Row]:
    """Every case: in memory, from a file by one thread, and two threads against one."""
    for name in shape.cases:
        case = case_of(name, shape)
        parts = [
            sv.simulate(case.plan, case.table(np.random.default_rng(k), STREAM_BATCH), seed=k)
            for k in range(shape.blocks)
        ]
        held = sv.Aggregate(case.plan)
        in_memory = _nanoseconds(lambda held=held, parts=parts: held.add(parts), parts, 1, shape)  # type: ignore[misc]
        yield Row("folding", f"{case.what}: fold", "ns", in_memory, note="CPU a report, in memory")
        with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder:
            path = Path(folder) / "reports.parquet"
            write_stream(path, (part for _ in range(shape.copies) for part in parts))
            yield from _from_file(case, path, parts, shape)


def _from_file(
    case: FoldCase, path: Path, parts: Sequence[sv.Reports], shape: FoldShape
) -> Iterator[Row]:
    def folded(threads: int) -> Callable[[], sv.Aggregate]:
        return lambda: fold_files(case.plan, path, threads=threads)

    read = _nanoseconds(folded(1), parts, shape.copies, shape)
    note = (
        f"CPU a report, {path.stat().st_size / len(parts) / shape.copies / STREAM_BATCH:.2f} bytes"
    )
    yield Row("folding", f"{case.what}: read and fold", "ns", read, limit=case.limit, note=note)
    both = measure(folded(2), shape.repeats).over(measure(folded(1), shape.repeats))
    note = "wall time over that of one; below 1 only on an idle machine"
    yield Row("folding", f"{case.what}: two threads", "times", both, note=note)


def _nanoseconds(
    work: Callable[[], Any], parts: Sequence[sv.Reports], copies: int, shape: FoldShape
) -> Timing:
    """CPU of ``work`` a report, after one call that warms it up."""
    work()
    figures = []
    for _ in range(shape.repeats):
        start = time.process_time()
        work()
        figures.append(time.process_time() - start)
    return Timing.of(figures).scaled(1e9 / copies / sum(map(len, parts)))
