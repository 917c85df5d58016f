"""Processes beside the collector: what takes long or much memory is done there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from sottovoce.service.niceness import niceness, step_back


class Workers:
    """At most so many processes, started when they are needed and replaced when they die."""

    def __init__(self, processes: int) -> None:
        self._processes, self._nice = processes, niceness()
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def submit(
        self, work: Callable[..., Any], *args: Any, folder: str | None = None
    ) -> Future[Any]:
        """Have it done. ``folder``: for files, which go if the collector is killed."""
        with self._lock:
            try:
                return self._started(folder).submit(work, *args)
            except BrokenProcessPool:  # a process died; another one may live
                self._pool = None
                return self._started(folder).submit(work, *args)

    def _started(self, folder: str | None) -> ProcessPoolExecutor:
        if self._pool is None:
            spawn = get_context("spawn")
            first = (self._nice, folder)
            self._pool = ProcessPoolExecutor(
                self._processes, spawn, initializer=step_back, initargs=first
            )
        return self._pool

    def stop(self) -> None:
        """End the processes, whatever they are at; the next work starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            for process in list(
                (pool._processes or {}).values()
            ):  # work that nobody waits for is not waited for
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
