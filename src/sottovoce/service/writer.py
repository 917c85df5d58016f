"""Group commit: reports of many requests become durable in one transaction, and only then is anybody thanked."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import SottovoceError
from sottovoce.plans import Plan
from sottovoce.reports import Reports
from sottovoce.service.envelopes import Envelope, Ids, gathered
from sottovoce.service.metrics import Metrics
from sottovoce.service.problems import Problem
from sottovoce.store import Outcome, Store

MOST_AT_ONCE = 20_000  # reports of one transaction, if several requests wait


@dataclass(frozen=True)
class Receipt:
    """What became of a request's reports."""

    stored: int
    duplicates: int


@dataclass(eq=False)
class _Waiting:
    envelope: Envelope
    future: asyncio.Future[Receipt]
    loop: asyncio.AbstractEventLoop = field(repr=False)


class Writer:
    """One thread that writes. Requests that come while it writes are written together next."""

    def __init__(self, store: Store, metrics: Metrics, most_waiting: int) -> None:
        self._to, self._metrics, self._most_waiting = store, metrics, most_waiting
        self._key = store.signing_key()
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._waiting = 0  # reports; changed by the event loop alone
        self._thread = threading.Thread(target=self._run, name="sottovoce-writer")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Reports that are not durable yet."""
        return self._waiting

    async def write(self, envelope: Envelope) -> Receipt:
        """Returns when the reports are durable; raises if none of them was taken."""
        if self._waiting + len(envelope) > self._most_waiting:
            raise Problem("busy", "more reports wait to be written than fit; send it again", {"Retry-After": "1"})
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        self._waiting += len(envelope)
        self._queue.put(_Waiting(envelope, future, loop))
        try:
            return await future
        finally:
            self._waiting -= len(envelope)

    def close(self) -> None:
        """Write what waits, then stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            first = self._queue.get()
            if first is None:
                return
            group, size = [first], len(first.envelope)
            while size < MOST_AT_ONCE:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    going = False
                    break
                group.append(more)
                size += len(more.envelope)
            start = time.perf_counter()
            results = self._written([each.envelope for each in group])
            self._metrics.committed(size, time.perf_counter() - start)
            group[0].loop.call_soon_threadsafe(_resolve, group, results)

    def _written(self, envelopes: Sequence[Envelope]) -> list[Receipt | BaseException]:
        """What became of each request."""
        results: list[Receipt | BaseException] = [Problem("internal", "not written")] * len(envelopes)
        groups: list[_Group] = []
        by_plan: dict[str, list[int]] = {}
        for place, envelope in enumerate(envelopes):
            by_plan.setdefault(envelope.plan.id, []).append(place)
        for places in by_plan.values():
            own = _Group.of(places, envelopes, self._check, results)
            if own is not None:
                groups.append(own)
        for group in self._store(groups, results):  # two that contradict each other: one by one, in their order
            alone = [_Group([place], *self._check([envelopes[place]])) for place in group.places]
            for place, outcome in zip(group.places, self._outcomes(alone), strict=True):
                results[place] = outcome if isinstance(outcome, BaseException) else _receipt(envelopes[place], outcome)
        return results

    def _store(self, groups: Sequence[_Group], results: list[Receipt | BaseException]) -> list[_Group]:
        """Store groups, and say so in the results; those of which nothing could be stored come back."""
        again = []
        for group, outcome in zip(groups, self._outcomes(groups), strict=True):
            if not isinstance(outcome, BaseException) and (outcome == Outcome.CONFLICT).any():
                again.append(group)
                continue
            for place, rows in zip(group.places, group.rows, strict=True):
                results[place] = outcome if isinstance(outcome, BaseException) else _stored(outcome[rows])
        return again

    def _outcomes(self, groups: Sequence[_Group]) -> list[NDArray[np.uint8] | BaseException]:
        """One transaction."""
        parts = [(group.plan, group.ids, group.reports) for group in groups]
        try:
            return list(self._to.append_many(parts)) if parts else []
        except Exception as wrong:  # nothing was stored
            return [wrong for _ in parts]

    def _check(self, envelopes: Sequence[Envelope]) -> tuple[Plan, Ids, Reports, list[slice]]:
        """The columns of one plan's requests, if all are reports of it and use the coins that were assigned."""
        plan = envelopes[0].plan
        ids, reports = gathered(plan, envelopes)
        given = [assignment for envelope in envelopes for assignment in envelope.assignments]
        if given:
            now = time.time()
            for assignment, report in zip(given, reports.single(plan), strict=True):
                assignment.verify(self._key, now)
                assignment.check(report, plan)
        ends = list(accumulate(map(len, envelopes), initial=0))
        return plan, ids, reports, [slice(low, high) for low, high in pairwise(ends)]


@dataclass(frozen=True)
class _Group:
    """Requests for one plan that are stored as one part."""

    places: list[int]  # in the order they came
    plan: Plan
    ids: Ids
    reports: Reports
    rows: list[slice]  # of each request

    @classmethod
    def of(
        cls,
        places: list[int],
        envelopes: Sequence[Envelope],
        check: Callable[[Sequence[Envelope]], tuple[Plan, Ids, Reports, list[slice]]],
        results: list[Receipt | BaseException],
    ) -> _Group | None:
        """All at once, which is quick; only if something is wrong look for whose it is."""
        try:
            return cls(places, *check([envelopes[place] for place in places]))
        except SottovoceError:
            good = []
            for place in places:
                try:
                    check([envelopes[place]])
                    good.append(place)
                except SottovoceError as wrong:
                    results[place] = wrong
            return cls(good, *check([envelopes[place] for place in good])) if good else None


def _receipt(envelope: Envelope, outcome: NDArray[np.uint8]) -> Receipt | Problem:
    if (outcome == Outcome.CONFLICT).any():
        used = "assignment-used" if envelope.assignments else "id-reused"
        return Problem(used, "a report with this id and another content is stored; nothing of this request was")
    return _stored(outcome)


def _stored(outcome: NDArray[np.uint8]) -> Receipt:
    duplicates = int(np.count_nonzero(outcome))
    return Receipt(len(outcome) - duplicates, duplicates)


def _resolve(group: Sequence[_Waiting], results: Sequence[Receipt | BaseException]) -> None:
    for each, result in zip(group, results, strict=True):
        if each.future.done():  # the sender gave up
            continue
        if isinstance(result, BaseException):
            each.future.set_exception(result)
        else:
            each.future.set_result(result)
