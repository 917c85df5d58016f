"""Wall time: of a call repeated in this process, and of fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Timing:
    """The best and the median of repeats. Other load on a machine only ever adds, so the best is
    judged.
    """

    best: float
    median: float
    repeats: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Timing:
        return cls(min(figures), median(figures), len(figures))

    def over(self, other: Timing) -> Timing:
        """How many times the other one's figures these are."""
        return Timing(self.best / other.best, self.median / other.median, self.repeats)

    def scaled(self, factor: float) -> Timing:
        """The same for ``factor`` times as much work."""
        return Timing(self.best * factor, self.median * factor, self.repeats)


def measure(work: Callable[[], Any], repeats: int = 5) -> Timing:
    """Seconds of ``work``, after one call that warms it up (and compiles it)."""
    work()
    figures = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        figures.append(time.perf_counter() - start)
    return Timing.of(figures)


def fresh(command: Sequence[str], repeats: int = 5) -> Timing:
    """Seconds of a whole process, from its start to its end;
    the first call fills the file cache.
    """
    return measure(
        lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT), repeats
    )


def child(*arguments: str, python: str = sys.executable, timeout: float = 900) -> dict[str, Any]:
    """The JSON object that ``python -m arguments`` prints last."""
    command = [python, "-W", "ignore", "-m", *arguments]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=timeout
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{' '.join(arguments)}: {last}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
