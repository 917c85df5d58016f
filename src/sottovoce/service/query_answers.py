"""Answers to SQL for whoever asks: made in a process of their own while reports come."""

from __future__ import annotations

import threading
from collections.abc import Container
from concurrent.futures import Future
from typing import Any

from sottovoce.protocol.plan import Plan
from sottovoce.service.estimate_cache import LONGEST_ANSWER, Key
from sottovoce.service.kept import KeptAnswers
from sottovoce.service.query_sessions import Form, answered
from sottovoce.service.timed import TimedWorkers

QUERY_TOO_LONG = (
    "the query takes too long to answer here; ask a simpler one, or use `sottovoce sql`"
)


class QueryAnswers:
    """The process that answers SQL."""

    def __init__(self, url: str, refresh_seconds: float) -> None:
        self._url, self._refresh = url, refresh_seconds
        self._lock = threading.Lock()
        # one process, so that what a query has read and fitted is there for the next
        self._querying = TimedWorkers(1, LONGEST_ANSWER, QUERY_TOO_LONG, "querying")
        # what was answered before may be of fewer people, and is soon made again
        self._answers = KeptAnswers(keeps_done=False)
        self._asked: set[Key] = set()  # whose reports the process may hold

    def ask(self, key: Key, plan: Plan, sql: str, level: float, form: Form) -> Future[Any]:
        """A future of what ``form`` makes of the answer, one for all who ask the same meanwhile.

        Args:
            key: the plan's id, and the version of its reports.
            plan: the survey's.
            sql: the query.
            level: of the intervals.
            form: a function of a module, which runs in the process.
        """
        with self._lock:
            self._asked.add(key)

        def start() -> Future[Any]:
            args = (self._url, plan.text, sql, level, self._refresh, form)
            return self._querying.submit(answered, *args)

        return self._answers.ask((*key, sql, level, form), start)

    def keep(self, keys: Container[Key]) -> None:
        """Let go of all other surveys: they were deleted, or have lost reports."""
        with self._lock:
            gone = [key for key in self._asked if key not in keys]
            self._asked.difference_update(gone)
        if gone:
            self._answers.clear()
            self._querying.restart()

    def close(self) -> None:
        """Stop the process, whatever it is at."""
        self._querying.stop()
