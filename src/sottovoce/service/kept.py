"""Answers that were made, kept for whoever asks again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

from sottovoce.service.problems import Problem

MAX_KEPT_ANSWERS = 16  # answers
MOST_KEPT_BYTES = 32 << 20  # of all of them but the last
# for which it is known that an answer takes too long, before that is tried again
LATE_SECONDS = 60.0


class KeptAnswers:
    """Futures by key: one for all who ask while it is under way, then the last few that are done.

    Whoever was told to ask again therefore gets the answer in the end, or hears that it takes too
    long. With ``keeps_done`` false only that it takes too long is kept.
    """

    def __init__(self, keeps_done: bool = True) -> None:
        self._keeps_done = keeps_done
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}
        # with the time when it ended
        self._done: OrderedDict[Hashable, tuple[Future[Any], float]] = OrderedDict()

    def ask(self, key: Hashable, start: Callable[[], Future[Any]]) -> Future[Any]:
        """The answer under a key, which is started if there is none."""
        with self._lock:
            known = self._under_way.get(key) or self._last(key)
            if known is not None:
                return known
            future = self._under_way[key] = start()
        future.add_done_callback(lambda done: self._ended(key, done))
        return future

    def clear(self) -> None:
        """Let go of what is done."""
        with self._lock:
            self._done.clear()

    def _last(self, key: Hashable) -> Future[Any] | None:
        future, ended = self._done.get(key, (None, 0.0))
        if future is None:
            return None
        if future.exception() is not None and time.monotonic() - ended > LATE_SECONDS:
            del self._done[key]
            return None
        self._done.move_to_end(key)
        return future

    def _ended(self, key: Hashable, future: Future[Any]) -> None:
        with self._lock:
            self._under_way.pop(key, None)
            if future.cancelled() or not isinstance(future.exception(), Problem | None):
                return  # it may be asked for again
            if future.exception() is None and not self._keeps_done:
                return
            self._done[key] = (future, time.monotonic())
            size = sum(map(_size, self._done.values()))
            while len(self._done) > 1 and (
                len(self._done) > MAX_KEPT_ANSWERS or size > MOST_KEPT_BYTES
            ):
                _, oldest = self._done.popitem(last=False)
                size -= _size(oldest)


def _size(kept: tuple[Future[Any], float]) -> int:
    future, _ = kept
    result = future.result() if future.exception() is None else None
    return len(result) if isinstance(result, bytes) else 0
