"""Slow work in its own processes, so that reports keep coming in; what was made is kept."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Any

from sottovoce.service.problems import Problem
from sottovoce.service.timed import TimedWorkers

PROCESSES = 2  # one draws; the second is started only if something is asked for meanwhile
KEPT = 128  # results that are remembered
PAUSE = 3.0  # seconds between two drawings of one thing, at least
REDRAW_FACTOR = 4  # times as long as the last drawing took, before the next one
LONGEST_DRAWING = 120.0  # seconds, after which it is ended
DRAWING_TOO_LONG = "it takes too long to draw; ask about fewer attributes"


@dataclass
class _DrawnJob:
    """The last drawing of something that changes, and perhaps the next one under way."""

    version: float = 0.0
    result: Any = None
    ended: float = float("-inf")
    seconds: float = 0.0
    next: Future[Any] | None = None
    next_version: float = 0.0


class BackgroundJobs:
    """Runs functions elsewhere and keeps their results."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool = TimedWorkers(PROCESSES, LONGEST_DRAWING, DRAWING_TOO_LONG, "drawing")
        self._made: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._drawings: OrderedDict[Hashable, _DrawnJob] = OrderedDict()

    def ask(self, key: Hashable, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """The result under a key: the one made before, or one that is being made now."""
        return self.keep(key, lambda: self._submit(work, *args))

    def keep(self, key: Hashable, start: Callable[[], Future[Any]]) -> Future[Any]:
        """The same for work that is started elsewhere."""
        with self._lock:
            known = self._made.pop(key, None)
            if known is None or _is_lost(known):
                known = start()
            self._made[key] = known
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
            return known

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Work whose result is nobody else's."""
        with self._lock:
            return self._submit(work, *args)

    def latest(
        self,
        key: Hashable,
        version: float,
        work: Callable[..., Any],
        *args: Any,
        patience: float = 0.0,
        late: Any = None,
    ) -> tuple[float, Any]:
        """(version, result) of the last one made; one of this version is made when due.

        ``patience``: seconds to wait for that one. ``late``: the result if there is none because it
        takes too long.
        """
        with self._lock:
            drawing = self._drawings.pop(key, None) or _DrawnJob()
            self._drawings[key] = drawing
            while len(self._drawings) > KEPT:
                self._drawings.popitem(last=False)
            self._collect(drawing, late)
            due = time.monotonic() - drawing.ended > max(PAUSE, REDRAW_FACTOR * drawing.seconds)
            if drawing.next is None and version != drawing.version and due:
                drawing.next_version = version
                drawing.next = self._submit(_timed, work, *args)
            under_way = drawing.next
        if under_way is not None and patience:
            wait_for([under_way], patience)
        with self._lock:
            self._collect(drawing, late)
            return drawing.version, drawing.result

    @staticmethod
    def _collect(drawing: _DrawnJob, late: Any) -> None:
        if drawing.next is None or not drawing.next.done():
            return
        drawing.ended = time.monotonic()
        if not _is_lost(drawing.next):
            drawing.version = drawing.next_version
            drawing.seconds, drawing.result = drawing.next.result()
        elif not drawing.next.cancelled() and isinstance(
            drawing.next.exception(), Problem
        ):  # it took too long
            # no estimate's, so that it is tried again when it is due
            drawing.version = -drawing.next_version
            drawing.seconds = LONGEST_DRAWING
            drawing.result = late if drawing.result is None else drawing.result
        drawing.next = None

    def _submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        return self._pool.submit(work, *args)

    def close(self) -> None:
        """Stop the processes."""
        self._pool.stop()


def _timed(work: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """(seconds, result), without what it takes to start a process."""
    start = time.perf_counter()
    result = work(*args)
    return time.perf_counter() - start, result


def _is_lost(future: Future[Any]) -> bool:
    """Whether it ended without a result; work that went wrong may be asked for again."""
    return future.cancelled() or (future.done() and future.exception() is not None)
