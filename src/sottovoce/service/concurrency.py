"""At most so much at once: whoever comes beyond that is told to come again, and holds up nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from sottovoce.service.problems import Problem


class Turns:
    """So many turns; each is one's own until the work is done, also if nobody waits for it any longer."""

    def __init__(self, most: int) -> None:
        self._left = BoundedSemaphore(most)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A turn for as long as this lasts."""
        self._take()
        try:
            yield
        finally:
            self._left.release()

    def taken(self, start: Callable[[], Future[Any]]) -> Future[Any]:
        """Start work that has a turn until it ends."""
        self._take()
        try:
            future = start()
        except BaseException:
            self._left.release()
            raise
        future.add_done_callback(lambda _: self._left.release())
        return future

    def _take(self) -> None:
        if not self._left.acquire(blocking=False):
            raise Problem("busy", "too many ask for it at once; ask again", {"Retry-After": "10"})
