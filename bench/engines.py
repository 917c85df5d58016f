"""Engines: what Spark needs beside the threads of one process for the same reports, in CPU of all
its processes, Java's too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from bench.engine_crowd import numbers, plan_of
from bench.rows import Row
from bench.timing import Timing
from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine import LocalEngine

TICK = 0.01  # seconds: what a clock of CPU time tells apart
SMALL = 80 * BLOCK_PEOPLE  # 10,485,760
FULL = 96 * 8 * BLOCK_PEOPLE  # 100,663,296: the limit on Spark's share holds here


@dataclass(frozen=True)
class EngineShape:
    """How large the cases are. SOTTOVOCE_ENGINE_PEOPLE sets how many people there are in files, and
    SOTTOVOCE_ENGINE_CROWD how many are simulated, 10^9 say, whose cost a report is then compared
    with that of 10^7.
    """

    people: int = int(os.environ.get("SOTTOVOCE_ENGINE_PEOPLE", SMALL))
    crowd: int = int(os.environ.get("SOTTOVOCE_ENGINE_CROWD", "0"))  # 0: no larger crowd
    bits: int = 20
    large: int = 26  # bits of a large table
    large_people: int = 4 * BLOCK_PEOPLE


def engines(_: Any, __: Mapping[str, Any], shape: EngineShape = EngineShape()) -> Iterator[Row]:
    """Files folded by both, a simulated crowd, and a large table through Spark."""
    if not has_spark():
        print("bench: engines: Java or PySpark is missing", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder:
        LocalEngine().simulate(plan_of(shape.bits), numbers, shape.people, 1, folder)
        local = _child("local", "fold", shape.bits, shape.people, folder)
        threads = _child("threads", "fold", shape.bits, shape.people, folder)
        spark = _child("spark", "fold", shape.bits, shape.people, folder)
    yield from _folds(local, threads, spark, shape)
    yield from _crowds(local, shape)
    large = _child("spark", "simulate", shape.large, shape.large_people, "-")
    what = f"olh, d = 2^{shape.large}, {shape.large_people:,} simulated people"
    yield _row(f"{what}: a worker", "MiB", large["worker"], limit=1024, note="peak")
    yield _row(f"{what}: the driver", "MiB", large["driver"], note="peak; the table has 512")


def has_spark() -> bool:
    """Whether Spark can run here."""
    return bool(find_spec("pyspark") and shutil.which("java"))


def _folds(
    local: Mapping[str, Any],
    threads: Mapping[str, Any],
    spark: Mapping[str, Any],
    shape: EngineShape,
) -> Iterator[Row]:
    what = f"olh, d = 2^{shape.bits}, {shape.people:,} reports in files"
    for name, found in (("one thread", local), ("threads", threads), ("spark", spark)):
        note = f"CPU a report; {found['wall']:.3g} s"
        yield _row(f"{what}: {name}", "ns", _ns(found), note=note)
    limit = 1.1 if shape.people >= FULL else None
    ratio = spark["cpu"] / max(local["cpu"], TICK)
    yield _row(f"{what}: spark over one thread", "times", ratio, limit=limit)
    ratio = spark["cpu"] / max(threads["cpu"], TICK)
    note = "which slow each other down as Spark's workers do"
    yield _row(f"{what}: spark over as many threads", "times", ratio, note=note)
    differ = float(spark["digest"] != local["digest"])
    yield _row(f"{what}: integers that differ", "wrong", differ, limit=0)
    yield _row(f"{what}: the driver", "MiB", spark["driver"], limit=400, note="peak")
    yield _row(f"{what}: a worker", "MiB", spark["worker"], limit=400, note="peak")


def _crowds(local: Mapping[str, Any], shape: EngineShape) -> Iterator[Row]:
    """The people of the files simulated; and of a larger crowd what a report costs beside 10^7."""
    crowd = _child("spark", "simulate", shape.bits, shape.people, "-")
    what = f"olh, d = 2^{shape.bits}, {shape.people:,} simulated people"
    yield _row(f"{what}: spark", "ns", _ns(crowd), note=f"CPU a report; {crowd['wall']:.3g} s")
    same = float(crowd["digest"] != local["digest"])
    yield _row(f"{what}: other integers than from files", "wrong", same, limit=0)
    if shape.crowd <= SMALL:
        return
    small = _child("spark", "simulate", shape.bits, SMALL, "-")
    large = _child("spark", "simulate", shape.bits, shape.crowd, "-")
    what = f"olh, d = 2^{shape.bits}, {shape.crowd:,} simulated people"
    yield _row(f"{what}: spark", "ns", _ns(large), note=f"CPU a report; {large['wall']:.3g} s")
    ratio = _ns(large) / _ns(small)
    yield _row(f"{what}: a report over one of {SMALL:,}", "times", ratio, limit=1.2)
    yield _row(f"{what}: the driver", "MiB", large["driver"], limit=400, note="peak")


def _ns(found: Mapping[str, Any]) -> float:
    return float(found["cpu"]) / int(found["people"]) * 1e9


def _row(what: str, unit: str, figure: float, **more: Any) -> Row:
    return Row("engines", what, unit, Timing(figure, figure, 1), **more)


def _child(engine: str, kind: str, bits: int, people: int, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.engine_child", engine, kind]
    done = subprocess.run(
        [*command, str(bits), str(people), folder], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
