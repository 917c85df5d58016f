"""How processes beside the collector behave. Nothing heavy is imported here: they step back before they load it."""

from __future__ import annotations

import os
import threading
from multiprocessing import connection, parent_process


def step_back() -> None:
    """Let others go first, since nobody waits for this process; and end when the collector does, however it ends."""
    os.nice(10)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(0)
