"""Waiting for what will come, however busy the machine is. Only a hang is ended, and nothing takes
as long as that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

HANG = 1800.0  # seconds


def until(holds: Callable[[], Any], lives: Callable[[], Any] = lambda: True) -> Any:
    """What a condition gives, once it holds; fails at once when what should bring it about does not
    live.
    """
    end = time.monotonic() + HANG
    while not (found := holds()):
        assert lives(), "what should bring it about has ended"
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.05)
    return found
