"""How processes beside the collector behave. Nothing heavy is imported here: they step back before they load it."""

from __future__ import annotations

import os
import shutil
import threading
from multiprocessing import connection, parent_process


def step_back(folder: str | None = None) -> None:
    """Let others go first, since nobody waits for this process; and end when the collector does, however it ends.

    ``folder`` is then removed.
    """
    os.nice(10)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel, folder), daemon=True).start()


def _end_with(sentinel: int, folder: str | None) -> None:
    connection.wait([sentinel])
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
