"""Estimates for whoever looks: made in their own process while reports come, kept until the next.

The estimating process writes an estimate into a file; another process reads it from there and makes
the bytes that are sent. The collector itself knows only how many people an estimate is of and where
it is.

A survey that lost reports, or was deleted and made again, has another version in its store: no
estimate of an earlier version is shown for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Hashable
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.service.kept import KeptAnswers
from sottovoce.service.logs import log_mistake
from sottovoce.service.serialized import KeptEstimate, keep
from sottovoce.service.temporary_folders import WorkFolder
from sottovoce.service.timed import TimedWorkers
from sottovoce.service.workers import Workers
from sottovoce.store import Store, open_store

REFRESH_FACTOR = 10  # times as long as the last one took, before the next one is made
MAX_REFRESH_WAIT = 60.0  # seconds, however long that was
LONGEST_ESTIMATE = 900.0  # seconds, after which an estimate is given up
LONGEST_ANSWER = 50.0  # seconds, after which the making of an answer is ended
ANSWER_TOO_LONG = "the answer takes too long to make; ask about fewer attributes"
# processes that make answers; the second is started only if something is asked for meanwhile
ANSWERING = 2
# of plans whose aggregates the estimating process keeps in memory between two estimates
KEPT_VALUES = 1 << 20
FAILED = "estimate: it could not be made; the collector's log says why"


Key = tuple[str, int]  # a plan's id, and the version of its reports


@dataclass(frozen=True)
class Snapshot:
    """What a survey's crowd said at some moment; no estimate before anybody was heard."""

    people: int
    file: Path | None = None  # where the estimate is
    has_next: bool = False  # whether a next round follows from it
    made: float = 0.0  # unix time, to be shown
    seconds: float = 0.0  # it took
    problem: str | None = None  # why there is no estimate, or no newer one
    number: int = 0  # another estimate of this collector has another number


_stores: dict[str, Store] = {}  # of the estimating process, which keeps what it has folded


def _estimated(url: str, plan_text: str, version: int, file: Path) -> Snapshot:
    """Runs in the estimating process."""
    if url not in _stores:
        _stores[url] = open_store(url)
    store, plan = _stores[url], Plan.from_json(plan_text)
    start = time.perf_counter()
    try:
        values = plan.question.values(plan.schema)
    except InvalidInput as wrong:  # of another package, which is not installed here
        return Snapshot(store.count(plan), made=time.time(), problem=str(wrong))
    try:
        heard = store.aggregate(plan)
        if (
            not heard.people or store.kept(plan).version != version
        ):  # of another version, which is asked for apart
            return Snapshot(0, made=time.time())
        try:
            estimate = heard.estimate()
        except InvalidInput as wrong:  # an open alphabet without candidates, say
            seconds = time.perf_counter() - start
            return Snapshot(heard.people, made=time.time(), seconds=seconds, problem=str(wrong))
        made = time.time()
        keep(KeptEstimate(estimate, heard.people, made, store.kept(plan).missing), file)
        return Snapshot(
            heard.people, file, estimate.next is not None, made, time.perf_counter() - start
        )
    finally:
        if values > KEPT_VALUES:
            store.forget(plan)


class EstimateCache:
    """The latest snapshot of every survey."""

    def __init__(self, url: str, refresh_seconds: float) -> None:
        self._url, self._refresh = url, refresh_seconds
        self._lock = threading.Lock()
        self._estimating = Workers(1)
        self._answering = TimedWorkers(ANSWERING, LONGEST_ANSWER, ANSWER_TOO_LONG, "answering")
        self._answers = KeptAnswers()
        self._is_closed = False
        self._folder: WorkFolder | None = None
        self._numbers = count(1)
        self._latest: dict[Key, Snapshot] = {}
        self._ended: dict[Key, float] = {}  # when, by a clock that nobody sets
        self._asked: dict[Key, Future[Snapshot]] = {}
        self._since: dict[Key, float] = {}

    def latest(self, plan: Plan, people: int, version: int) -> Snapshot:
        """The last one, at once; a newer one is made behind it if there are more people by now."""
        key = (plan.id, version)
        with self._lock:
            self._collect(key)
            self._give_up(key)
            last = self._latest.get(key)
            if (
                people
                and not self._is_closed
                and (last is None or (last.people != people and self._is_due(key, last)))
            ):
                self._ask(key, plan)
            return last or Snapshot(people)

    def _is_due(self, key: Key, last: Snapshot) -> bool:
        age = time.monotonic() - self._ended[key]
        return age > max(self._refresh, min(REFRESH_FACTOR * last.seconds, MAX_REFRESH_WAIT))

    def ask(self, plan: Plan, people: int, version: int) -> Future[Snapshot] | None:
        """Have one of now made; None if the last one is."""
        key = (plan.id, version)
        with self._lock:
            self._collect(key)
            last = self._latest.get(key)
            is_current = (
                not people or self._is_closed or (last is not None and last.people == people)
            )
            return None if is_current else self._ask(key, plan)

    def last(self, plan: Plan, people: int, version: int) -> Snapshot:
        """The last one; nothing is made."""
        key = (plan.id, version)
        with self._lock:
            self._collect(key)
            return self._latest.get(key) or Snapshot(people)

    def fresh(self, plan: Plan, people: int, version: int, timeout: float) -> Snapshot:
        """One of now, if it can be made in time; else the last one."""
        asked = self.ask(plan, people, version)
        if asked is not None:
            wait_for([asked], timeout)
        return self.last(plan, people, version)

    def keep(self, keys: Container[Key]) -> None:
        """Let go of all other estimates: their surveys were deleted, or have lost reports."""
        with self._lock:
            gone = [each for each in {*self._latest, *self._asked} if each not in keys]
            if not gone:
                return
            self._answers.clear()
            self._estimating.stop()  # it holds what it has folded of them, perhaps their reports
            self._asked.clear()  # what else was under way is asked for again
            for key in gone:
                self._latest.pop(key, None)
                self._ended.pop(key, None)
                self._since.pop(key, None)
                self._estimate_file(key).unlink(missing_ok=True)

    def answer(self, snapshot: Snapshot, work: Callable[..., Any], *args: Hashable) -> Future[Any]:
        """What a function of :mod:`sottovoce.service.serialized` makes of an estimate, once for all
        who ask for it.

        One that takes too long is ended, and is a problem.
        """
        key = (snapshot.number, work, *args)
        return self._answers.ask(key, lambda: self._answering.submit(work, snapshot.file, *args))

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """The same for work that writes into a file."""
        return self._answering.submit(work, *args)

    def new_file(self) -> Path:
        """A place for a file that a process writes; it is gone when the collector stops."""
        with self._lock:
            return self._place() / f"{uuid4().hex}.out"

    def _ask(self, key: Key, plan: Plan) -> Future[Snapshot]:
        if key not in self._asked:
            self._since[key] = time.monotonic()
            args = (_estimated, self._url, plan.text, key[1], self._estimate_file(key))
            self._asked[key] = self._estimating.submit(*args, folder=str(self._place()))
        return self._asked[key]

    def _estimate_file(self, key: Key) -> Path:
        plan_id, version = key
        return self._place() / f"{plan_id}-{version:x}.estimate"

    def _place(self) -> Path:
        """The folder of this collector's estimates, which nobody else may look into."""
        if self._folder is None:
            self._folder = WorkFolder()
        return self._folder.path

    def _collect(self, key: Key) -> None:
        asked = self._asked.get(key)
        if asked is not None and asked.done():
            del self._asked[key]
            self._ended[key] = time.monotonic()
            number = next(self._numbers)
            wrong = CancelledError() if asked.cancelled() else asked.exception()
            if wrong is None:
                self._latest[key] = replace(asked.result(), number=number)
                return
            log_mistake("estimate failed", wrong)
            last = self._latest.get(key) or Snapshot(0)
            self._latest[key] = replace(
                last, seconds=MAX_REFRESH_WAIT, problem=FAILED, number=number
            )

    def _give_up(self, key: Key) -> None:
        """Stop an estimate that takes too long, so that others get their turn."""
        if key in self._asked and time.monotonic() - self._since[key] > LONGEST_ESTIMATE:
            self._estimating.stop()

    def close(self) -> None:
        """Stop the processes, whatever they are at, and remove what they wrote."""
        with self._lock:
            self._is_closed = True
        self._estimating.stop()
        self._answering.stop()
        with self._lock:
            folder, self._folder = self._folder, None
            self._latest.clear()
        if folder is not None:
            folder.close()
