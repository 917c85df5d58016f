"""How much memory a process has held. Only the standard library, since the peers' environments
import it too.
"""

from __future__ import annotations

import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def _status(key: str) -> float | None:
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    return None


def peak() -> float:
    """The largest resident size so far, in MiB.

    Not ru_maxrss where the kernel tells more: a child inherits ru_maxrss from the process that
    started it.
    """
    held = _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if held is None else held


class Above:
    """Memory above what is held now: make one after imports, data and warm-up, then ask ``mib()``
    at the end.
    """

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak of imports and warm-up
            self._before = _status("VmRSS") or peak()
        except OSError:
            self._before = peak()

    def mib(self) -> float:
        return max(0.0, peak() - self._before)
