"""What tests let workers do: they import it from here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.aggregation.pieces import Piece
from sottovoce.engine.base import Task


@dataclass(frozen=True)
class HeldTask:
    """A task whose first attempt at one job waits until the folder has a file ``go``. It leaves its
    process's number there; later attempts leave ``again``, and do not wait.
    """

    task: Task
    folder: str
    held: int

    def __call__(self, job: tuple[int, Any]) -> Iterator[Piece]:
        number, inner = job
        if number == self.held:
            self._hold()
        yield from self.task(inner)

    def _hold(self) -> None:
        folder = Path(self.folder)
        try:
            handle = os.open(folder / "first", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            (folder / "again").touch()
            return
        os.close(handle)
        (folder / "draft").write_text(str(os.getpid()))
        (folder / "draft").rename(folder / "pid")
        with suppress(FileNotFoundError):  # the test is over
            while not (folder / "go").exists() and folder.exists():
                time.sleep(0.02)


def yes_or_no(block: int, rows: int) -> dict[str, Any]:
    """The people of a block, for the plans of marginals."""
    draws = np.random.default_rng([7, block])
    return {f"a{k}": draws.random(rows) < 0.3 for k in range(6)}


def divide(number: int) -> float:
    """A mistake for 0."""
    return 1 / number


def threads(_: int) -> int:
    """How many threads a worker would use."""
    from sottovoce.ground.threads import thread_count

    return thread_count()
