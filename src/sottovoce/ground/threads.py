"""How many threads work at once: one setting for all that runs in several."""

from __future__ import annotations

import os
from pathlib import Path

from sottovoce.ground.arguments import whole

VARIABLE = "SOTTOVOCE_THREADS"
MAX_THREADS = 1024
_CGROUPS = Path("/sys/fs/cgroup")


def thread_count() -> int:
    """What ``SOTTOVOCE_THREADS`` says; by default the cores that this process may use.

    Set it to 1 where something else shares out the cores, as inside the tasks of a cluster.
    """
    given = os.environ.get(VARIABLE)
    return usable_cores() if given is None else whole(VARIABLE, given, 1, MAX_THREADS)


def usable_cores(cgroups: Path = _CGROUPS) -> int:
    """The cores of this machine, or those that affinity and the quota of its container leave."""
    has_affinity = hasattr(os, "sched_getaffinity")  # which is Linux alone
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    quota = _quota(cgroups)
    return cores if quota is None else max(1, min(cores, int(quota)))


def _quota(cgroups: Path) -> float | None:
    """The cores' time that a container may use, as its own files tell; None for all."""
    text = _first_line(cgroups / "cpu.max")  # version 2: the quota and the period, in microseconds
    if text is None:  # version 1
        parts = [_first_line(cgroups / f"cpu/cpu.cfs_{name}_us") for name in ("quota", "period")]
        text = " ".join(part for part in parts if part is not None)
    try:
        quota, period = (int(part) for part in text.split())
    except ValueError:  # "max", or no such files
        return None
    return quota / period if quota > 0 and period > 0 else None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None
