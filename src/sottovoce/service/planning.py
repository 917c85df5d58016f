"""Plans, made in processes of their own: one that takes too long is ended, and estimates never wait for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from sottovoce.service.concurrency import Turns
from sottovoce.service.problems import Problem
from sottovoce.service.workers import Workers

AT_ONCE = 2  # plans that are made at once, each in a process; the second is started only if it is needed
MOST = 8  # plans under way or waiting for their turn
LONGEST_PLANNING = 50.0  # seconds, less than the 60 for which a proxy waits


class Planning:
    """Makes plans, each for so long and no longer."""

    def __init__(self, seconds: float = LONGEST_PLANNING) -> None:
        self._seconds = seconds
        self._turns = Turns(MOST)
        self._threads = ThreadPoolExecutor(AT_ONCE, "planning")  # each waits for one process
        self._free: SimpleQueue[Workers] = SimpleQueue()
        self._workers = [Workers(1) for _ in range(AT_ONCE)]
        for workers in self._workers:
            self._free.put(workers)

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have a plan made; a problem at once if too many wait."""
        return self._turns.taken(lambda: self._threads.submit(self._made, work, *args))

    def _made(self, work: Callable[..., Any], *args: Any) -> Any:
        workers = self._free.get()  # there are as many as threads
        try:
            return workers.submit(work, *args).result(self._seconds)
        except TimeoutError:
            workers.stop()  # nobody waits for it any longer; the next plan starts a new process
            raise Problem(
                "busy", "planning takes too long; ask about fewer attributes", {"Retry-After": "10"}
            ) from None
        finally:
            self._free.put(workers)

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for workers in self._workers:
            workers.stop()
