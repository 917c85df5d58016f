"""How processes beside the collector behave; light, as they step back before they load more."""

from __future__ import annotations

import os
import shutil
import threading
from multiprocessing import connection, parent_process

from sottovoce.ground.errors import InvalidInput

MOST_NICE = 19


def step_back(nice: int, folder: str | None = None) -> None:
    """Let others go first by so much, as nobody waits for this process; end with the collector.

    ``folder`` is then removed, however it ends.
    """
    os.nice(nice)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel, folder), daemon=True).start()


def niceness() -> int:
    """By how much they step back: ``SOTTOVOCE_NICE``, or enough that reports do not wait for them.

    >>> niceness() in range(20)
    True
    """
    text = os.environ.get("SOTTOVOCE_NICE", "10")
    if not text.isascii() or not text.isdecimal() or int(text) > MOST_NICE:
        raise InvalidInput(f"SOTTOVOCE_NICE ({text}) must be a whole number from 0 to {MOST_NICE}")
    return int(text)


def _end_with(sentinel: int, folder: str | None) -> None:
    connection.wait([sentinel])
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
