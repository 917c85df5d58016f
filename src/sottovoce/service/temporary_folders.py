"""Folders for files that go with the collector: at its end, or the next start if killed.

Whoever has a folder holds a lock on a file in it, which the system lets go of however a process
ends. A folder whose lock can be taken is nobody's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

FOLDER_PREFIX = "sottovoce-"
LOCK_FILE = "collector.lock"


class WorkFolder:
    """A folder in the system's temporary directory that nobody else may look into."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        unlocked = self.path / f"{LOCK_FILE}.new"
        self._lock = unlocked.open("xb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unlocked.rename(self.path / LOCK_FILE)  # it is never there without being held

    def close(self) -> None:
        """Remove it with all that is in it."""
        self._folder.cleanup()
        self._lock.close()


def remove_leftovers() -> int:
    """Remove the folders of killed collectors that ran under this account; how many they were."""
    count = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or gone by now
            count += _removed(folder)
    return count


def _removed(folder: Path) -> bool:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    with open(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its owner lives
        shutil.rmtree(folder)
    return True
