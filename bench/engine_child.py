"""Run in a fresh process: what an engine needs for a crowd of local hashing, warm.

``python -m bench.engine_child local|threads|spark fold|simulate BITS PEOPLE FOLDER``, where local
is one thread, and threads are as many as Spark has slots.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from bench.engine_crowd import numbers, plan_of
from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine import LocalEngine, TaskEngine, open_engine

MEBI = 1 << 20
_TICKS = os.sysconf("SC_CLK_TCK")


def family() -> dict[int, str]:
    """This process and all below it, by number, with their names."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = int(rest.split()[1])
            names[int(entry.name)] = head.partition("(")[2]
    found, new = {}, [os.getpid()]
    while new:
        found |= {pid: names[pid] for pid in new}
        new = [pid for pid, parent in parents.items() if parent in new]
    return found


def cpu() -> float:
    """CPU seconds of the family so far, of those that ended too."""
    total = 0
    for pid in family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))  # own and children's, user and system
    return total / _TICKS


def peak(pid: int) -> float:
    """The most memory that a process has had, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def measured(engine: TaskEngine, kind: str, bits: int, people: int, folder: str) -> dict[str, Any]:
    """CPU and memory of the second time; of a simulated crowd one block warms up."""
    plan = plan_of(bits)
    if kind == "fold":
        engine.fold(plan, folder)
    else:
        engine.fold_crowd(plan, numbers, BLOCK_PEOPLE, 1)
    start, begun = cpu(), time.perf_counter()
    if kind == "fold":
        total = engine.fold(plan, folder)
    else:
        total = engine.fold_crowd(plan, numbers, people, 1)
    spent, wall, driver = cpu() - start, time.perf_counter() - begun, peak(os.getpid())
    below = {pid: name for pid, name in family().items() if pid != os.getpid()}
    workers = [peak(pid) for pid, name in below.items() if name.startswith("python")]
    return {
        "people": total.people,
        "digest": total.digest,
        "cpu": spent,
        "wall": wall,
        "driver": driver,  # before the digest, which takes a table more
        "worker": max(workers, default=0.0),
    }


if __name__ == "__main__":
    name, kind, bits, people, folder = sys.argv[1:]
    made = {"local": lambda: LocalEngine(1), "threads": LocalEngine}
    with made.get(name, lambda: open_engine(name))() as engine:
        print(json.dumps(measured(engine, kind, int(bits), int(people), folder)))
