"""Work in processes beside the collector, so long and no longer: what takes longer is ended."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import LifoQueue
from typing import Any

from sottovoce.service.problems import Problem
from sottovoce.service.workers import Workers

RESTARTED = "reports were deleted meanwhile; ask again"


class TimedWorkers:
    """So many processes, one thing at a time each; one that takes too long is replaced.

    ``late`` is what whoever waits for that is told.
    """

    def __init__(self, processes: int, seconds: float, late: str, name: str) -> None:
        self._seconds, self._late = seconds, late
        self._threads = ThreadPoolExecutor(processes, name)  # each waits for one process
        self._workers = [Workers(1) for _ in range(processes)]
        # the last that worked, first: others are started if needed
        self._free: LifoQueue[Workers] = LifoQueue()
        self._is_stopped = False
        self._restarts = 0
        for workers in self._workers:
            self._free.put(workers)

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have it done; if all processes are at work, when one is free."""
        return self._threads.submit(self._made, work, *args)

    def _made(self, work: Callable[..., Any], *args: Any) -> Any:
        if self._is_stopped:
            raise CancelledError
        workers = self._free.get()  # there are as many as threads
        restarts = self._restarts
        try:
            return workers.submit(work, *args).result(self._seconds)
        except TimeoutError:
            workers.stop()  # nobody waits for it any longer; the next work starts a new process
            raise Problem("busy", self._late, {"Retry-After": "10"}) from None
        except (BrokenProcessPool, CancelledError):
            if self._is_stopped or self._restarts == restarts:
                raise
            raise Problem("busy", RESTARTED, {"Retry-After": "2"}) from None
        finally:
            self._free.put(workers)

    def restart(self) -> None:
        """End the processes, whatever they are at and hold; the next work starts new ones."""
        self._restarts += 1
        for workers in self._workers:
            workers.stop()

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        self._is_stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for workers in self._workers:
            workers.stop()
