"""How processes beside the collector behave. Nothing heavy is imported here: they step back before they load it."""

from __future__ import annotations

import os


def step_back() -> None:
    """Let others go first: whoever sends a report waits for the collector, nobody for this process."""
    os.nice(10)
