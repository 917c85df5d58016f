"""``python -m bench.executors [PEOPLE]``: how much sooner two executors of Spark have folded files
than one, and beside it two processes that share nothing: no engine gets more from a machine.

Spark's own small cluster on this machine runs them, one core and 1 GiB each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from bench.engine_crowd import numbers, plan_of
from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine import LocalEngine, TaskEngine
from sottovoce.engine.spark import start_spark

PEOPLE = 32 * 96 * BLOCK_PEOPLE  # 402,653,184
BITS = 20
ROOT = Path(__file__).parents[1]


def seconds(engine: TaskEngine, folder: str) -> float:
    """The second time, when all is warm and the files are in memory."""
    plan = plan_of(BITS)
    engine.fold(plan, folder)
    start = time.perf_counter()
    engine.fold(plan, folder)
    return time.perf_counter() - start


def executors(count: int, folder: Path) -> float:
    """Of a cluster of ``count`` executors."""
    with start_spark(f"local-cluster[{count},1,1024]") as engine:
        return seconds(engine, str(folder / "all"))


def processes(count: int, folder: Path) -> float:
    """Of ``count`` processes of one thread, until the last one has folded its part."""
    parts = ["first", "second"] if count > 1 else ["all"]
    command = [sys.executable, "-m", "bench.executors", "--alone"]
    started = [
        subprocess.Popen(
            [*command, str(folder / part)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for part in parts
    ]
    return max(float(each.communicate()[0]) for each in started)


def main() -> None:
    if sys.argv[1:2] == ["--alone"]:
        with LocalEngine(1) as engine:
            print(seconds(engine, sys.argv[2]))
        return
    people = int(sys.argv[1]) if len(sys.argv) > 1 else PEOPLE
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        sys.exit("bench.executors: PySpark is missing")
    os.environ["SPARK_HOME"] = str(Path(spark.origin).parent)
    os.environ["PYTHONPATH"] = str(ROOT)  # executors import the crowd from here
    print(f"olh, d = 2^{BITS}, {people:,} reports in files")
    with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as name:
        folder = Path(name)
        (folder / "all").mkdir()
        for seed, part in enumerate(("first", "second")):
            (folder / part).mkdir()
            LocalEngine().simulate(plan_of(BITS), numbers, people // 2, seed, folder / part)
            for file in (folder / part).iterdir():
                os.link(file, folder / "all" / f"{file.stem}-{part}.parquet")
        for what, run in (("executors", executors), ("processes", processes)):
            one, two = run(1, folder), run(2, folder)
            print(f"{what}: one {one:.2f} s, two {two:.2f} s, {one / two:.2f} times as fast")


if __name__ == "__main__":
    main()
