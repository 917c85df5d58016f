"""Estimates for whoever looks: made in a process of their own while reports keep coming, and kept until the next."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context

from sottovoce import front
from sottovoce.errors import InvalidInput
from sottovoce.estimate import Estimate
from sottovoce.plans import Plan
from sottovoce.service.logs import log_mistake
from sottovoce.service.manners import step_back
from sottovoce.store import Store, open_store

PATIENCE = 10  # times as long as the last one took, before the next one is made
LONGEST_WAIT = 60.0  # seconds, however long that was
LONGEST_ESTIMATE = 900.0  # seconds, after which an estimate is given up


@dataclass(frozen=True)
class Snapshot:
    """What a survey's crowd said at some moment; no estimate before anybody was heard, or while the first is made."""

    people: int
    estimate: Estimate | None = None
    made: float = 0.0  # unix time
    seconds: float = 0.0  # it took
    problem: str | None = None  # why there is no estimate


_stores: dict[str, Store] = {}  # of the estimating process, which keeps what it has folded


def _estimated(url: str, plan_text: str) -> Snapshot:
    """Runs in the estimating process."""
    if url not in _stores:
        _stores[url] = open_store(url)
    start = time.perf_counter()
    heard = _stores[url].aggregate(front.Plan.from_json(plan_text))
    if not heard.people:
        return Snapshot(0, made=time.time())
    try:
        estimate = heard.estimate()
    except InvalidInput as wrong:  # an open alphabet without candidates, say
        return Snapshot(heard.people, None, time.time(), time.perf_counter() - start, str(wrong))
    return Snapshot(heard.people, estimate, time.time(), time.perf_counter() - start)


class Snapshots:
    """The latest snapshot of every survey."""

    def __init__(self, url: str, refresh_seconds: float) -> None:
        self._url, self._refresh = url, refresh_seconds
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._latest: dict[str, Snapshot] = {}
        self._asked: dict[str, Future[Snapshot]] = {}
        self._since: dict[str, float] = {}

    def latest(self, plan: Plan, people: int) -> Snapshot:
        """The last one, at once; a newer one is made behind it if there are more people by now."""
        with self._lock:
            self._collect(plan.id)
            self._give_up(plan.id)
            last = self._latest.get(plan.id)
            age = time.time() - last.made if last else float("inf")
            due = last is None or age > max(self._refresh, min(PATIENCE * last.seconds, LONGEST_WAIT))
            if people and due and (last is None or last.people != people):
                self._ask(plan)
            return last or Snapshot(people)

    def fresh(self, plan: Plan, people: int, timeout: float) -> Snapshot:
        """One of now, if it can be made in time; else the last one."""
        with self._lock:
            self._collect(plan.id)
            last = self._latest.get(plan.id)
            if last is not None and last.people == people:
                return last
            asked = self._ask(plan)
        wait_for([asked], timeout)
        with self._lock:
            self._collect(plan.id)
            return self._latest.get(plan.id) or Snapshot(people)

    def _ask(self, plan: Plan) -> Future[Snapshot]:
        if plan.id not in self._asked:
            self._since[plan.id] = time.monotonic()
            try:
                self._asked[plan.id] = self._started().submit(_estimated, self._url, plan.text)
            except BrokenProcessPool:  # the process died; another one may live
                self._pool = None
                self._asked[plan.id] = self._started().submit(_estimated, self._url, plan.text)
        return self._asked[plan.id]

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=step_back)
        return self._pool

    def _collect(self, plan_id: str) -> None:
        asked = self._asked.get(plan_id)
        if asked is not None and asked.done():
            del self._asked[plan_id]
            wrong = CancelledError() if asked.cancelled() else asked.exception()
            if wrong is None:
                self._latest[plan_id] = asked.result()
                return
            log_mistake("estimate failed", wrong)
            last = self._latest.get(plan_id) or Snapshot(0)
            problem = "estimate: it could not be made; the collector's log says why"
            self._latest[plan_id] = replace(last, made=time.time(), seconds=LONGEST_WAIT, problem=problem)

    def _give_up(self, plan_id: str) -> None:
        """Stop an estimate that takes too long, so that others get their turn."""
        if plan_id in self._asked and time.monotonic() - self._since[plan_id] > LONGEST_ESTIMATE:
            pool, self._pool = self._pool, None
            _stop(pool)

    def close(self) -> None:
        """Stop the estimating process, whatever it is at."""
        with self._lock:
            pool, self._pool = self._pool, None
        _stop(pool)


def _stop(pool: ProcessPoolExecutor | None) -> None:
    if pool is not None:
        for process in list((pool._processes or {}).values()):  # an estimate that nobody waits for is not waited for
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
