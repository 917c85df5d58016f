"""Group commit: many requests' reports become durable at once; only then is anybody thanked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import SottovoceError, StoreError
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.service.concurrency import HouseholdTurns
from sottovoce.service.logs import log_mistake
from sottovoce.service.memory import HeldMemory, Memory
from sottovoce.service.metrics import Metrics
from sottovoce.service.problems import Problem
from sottovoce.service.queues import Receipt, Waiting, WriteQueue
from sottovoce.service.remembered import Remembered
from sottovoce.service.settings import Settings
from sottovoce.service.wire import Envelope, Ids, check_assignments, gathered
from sottovoce.store import Outcome, Store

MAX_TRANSACTION_REPORTS = 20_000  # reports of one transaction, if several requests wait
MOST_BYTES_AT_ONCE = 32 << 20
CHECKERS = 2  # threads that check assignments
MOST_CHECKS = 2  # requests of one household that are checked or wait for it at once,
MOST_SMALL_CHECKS = 64  # or reports of all its requests, if they are small
LOOK = 0.5  # seconds between two looks for those who have waited too long
CROWDED = 4  # requests written at once, from which the next ones are worth waiting for
# seconds to wait for them: fewer and larger transactions, and the event loop undisturbed meanwhile
GATHERING = 0.001


class Writer:
    """One thread that writes. Requests that come while it writes are written together next."""

    def __init__(self, store: Store, metrics: Metrics, settings: Settings) -> None:
        self._to, self._metrics, self._settings = store, metrics, settings
        self._queue = WriteQueue()
        self._last_group = 0  # requests written together the last time
        # in the order they came; of the event loop alone, as is the next
        self._pending: dict[Waiting, None] = {}
        self._is_watching = False
        self._is_closing = False
        self.memory = Memory(settings.most_waiting)  # also of bodies that are being read
        self._checkers = ThreadPoolExecutor(CHECKERS, "sottovoce-checker")
        self._free_checkers = asyncio.Semaphore(CHECKERS)
        self._checks = HouseholdTurns(MOST_CHECKS, MOST_SMALL_CHECKS)
        self._remembered = Remembered()
        self._thread = threading.Thread(target=self._run, name="sottovoce-writer")
        self._thread.start()

    @property
    def waiting_bytes(self) -> int:
        """Memory of reports that are not durable yet."""
        return self.memory.used

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_ready(self) -> bool:
        """Whether it takes more: it lives, is not told to stop, and what waits is not too much."""
        return (
            self.is_alive
            and not self._is_closing
            and self.memory.has_room(self._settings.most_bytes)
        )

    async def write(self, envelope: Envelope, household: str = "") -> Receipt:
        """Returns when the reports are durable; raises if none of them was taken.

        ``household``: whose they are, as limits count them.
        What a request holds is given back when nothing has it any longer, also if its sender was
        sent away before.
        """
        with HeldMemory(self.memory) as held:
            if not held.take(envelope.bytes):
                raise Problem(
                    "busy",
                    "more reports wait to be written than fit; send it again",
                    {"Retry-After": "1"},
                )
            if envelope.assignments:
                await self._check(envelope, held, household)
            return await self._queued(envelope, held)

    async def _check(self, envelope: Envelope, held: HeldMemory, household: str) -> None:
        """Its assignments, which takes long: before it is queued, so that nobody else waits.

        One household has few turns at once, which last until its checks have ended: others wait for
        no more of it.
        """
        turn = self._checks.take(household, len(envelope))
        checking: asyncio.Future[None] | None = None
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                # those who wait for it wait here, where they can be sent away
                await self._free_checkers.acquire()
                checking = asyncio.get_running_loop().run_in_executor(
                    self._checkers, self._check_now, envelope
                )
                checking.add_done_callback(self._checked_one)
                checking.add_done_callback(lambda _: turn.end())
                try:
                    await asyncio.shield(checking)
                except asyncio.CancelledError:
                    held.release_after(checking)
                    raise
        except TimeoutError:
            raise _too_late() from None
        finally:
            if checking is None:
                turn.end()

    def _checked_one(self, checking: asyncio.Future[None]) -> None:
        self._free_checkers.release()
        if not checking.cancelled():
            checking.exception()  # if nobody waits for it any longer, it is nobody's concern

    def _check_now(self, envelope: Envelope) -> None:
        keys = self._to.accepted_keys()  # each time, since they may be replaced
        now = time.time()  # read once, so that one request is all early or all late
        check_assignments(envelope, keys, now, self._remembered)

    async def _queued(self, envelope: Envelope, held: HeldMemory) -> Receipt:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        each = Waiting(envelope, future, loop, loop.time() + self._settings.answer_seconds)
        self._pending[each] = None
        if not self._is_watching:
            self._is_watching = True
            loop.call_later(LOOK, self._give_up, loop)
        self._queue.put(each)
        try:
            return await future
        finally:
            self._pending.pop(each, None)
            if not each.is_written and not self._queue.remove(each):
                each.left = held.handed_on()

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell those who have waited too long to come again; one timer for all of them."""
        for each in self._pending:  # in the order they came
            if each.until > loop.time():
                break
            if not each.future.done():
                each.future.set_exception(_too_late())
        self._is_watching = bool(self._pending)
        if self._is_watching:
            loop.call_later(LOOK, self._give_up, loop)

    def close(self) -> None:
        """Write what waits, then stop."""
        self._is_closing = True
        self._checkers.shutdown()
        self._queue.close()
        self._thread.join()

    def _run(self) -> None:
        while self._queue.wait():
            if self._last_group > CROWDED:
                time.sleep(GATHERING)
            group = self._next_group()
            self._last_group = len(group)
            if group:  # those who waited may have been sent away
                self._write_group(group)
            del group  # while it waits for others it holds nothing

    def _write_group(self, group: Sequence[Waiting]) -> None:
        start = time.perf_counter()
        envelopes = [each.envelope for each in group]
        try:
            results = self._written(envelopes)
        except StoreError as wrong:  # it cannot say which keys are good; nothing was stored
            results = [wrong for _ in group]
        except (
            Exception
        ) as wrong:  # a mistake of ours costs this group its answer, never the next one
            log_mistake("writing failed", wrong)
            results = [wrong for _ in group]
        self._metrics.committed(time.perf_counter() - start)
        group[0].loop.call_soon_threadsafe(_resolve, group, results)

    def _next_group(self) -> list[Waiting]:
        """What waits, as much as fits into one transaction."""
        group: list[Waiting] = []
        rows = size = 0

        def fits(envelope: Envelope) -> bool:
            is_small = (
                rows + len(envelope) <= MAX_TRANSACTION_REPORTS
                and size + envelope.bytes <= MOST_BYTES_AT_ONCE
            )
            return is_small or not group

        while (more := self._queue.take(fits)) is not None:
            rows += len(more.envelope)
            size += more.envelope.bytes
            group.append(more)
        return group

    def _written(self, envelopes: Sequence[Envelope]) -> list[Receipt | BaseException]:
        """What became of each request."""
        results: dict[int, Receipt | BaseException] = {}
        by_plan: dict[str, list[int]] = {}
        for place, envelope in enumerate(envelopes):
            by_plan.setdefault(envelope.plan.id, []).append(place)
        groups: list[_Group] = []
        for places in by_plan.values():
            groups += self._checked(places, envelopes, results)
        while groups:  # once, unless two reports contradict each other
            groups = self._store(groups, envelopes, results)
        return [results[place] for place in range(len(envelopes))]

    def _checked(
        self,
        places: list[int],
        envelopes: Sequence[Envelope],
        results: dict[int, Receipt | BaseException],
    ) -> list[_Group]:
        """Requests for one plan, all at once, which is quick; halved where something is wrong."""
        try:
            return [_Group.of(places, envelopes)]
        except SottovoceError as wrong:
            if len(places) == 1:
                results[places[0]] = wrong
                return []
        half = len(places) // 2
        halves = (places[:half], places[half:])
        return [group for some in halves for group in self._checked(some, envelopes, results)]

    def _store(
        self,
        groups: Sequence[_Group],
        envelopes: Sequence[Envelope],
        results: dict[int, Receipt | BaseException],
    ) -> list[_Group]:
        """Store groups in one transaction; contradicting requests are refused, others come back."""
        try:
            outcomes = self._to.append_many(
                [(group.plan, group.ids, group.reports) for group in groups]
            )
        except Exception as wrong:  # nothing was stored
            outcomes = [wrong for _ in groups]  # type: ignore[misc]
        again = []
        for group, outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                results |= dict.fromkeys(group.places, outcome)
                continue
            wrong_rows = outcome == Outcome.CONFLICT
            if not outcome.any():  # all of it is new, as nearly always
                new = zip(group.places, group.rows, strict=True)
                results |= {place: Receipt(rows.stop - rows.start, 0) for place, rows in new}
                continue
            if not wrong_rows.any():
                results |= {
                    place: _receipt(outcome[rows])
                    for place, rows in zip(group.places, group.rows, strict=True)
                }
                continue
            refused = [bool(wrong_rows[rows].any()) for rows in group.rows]
            for place, is_refused in zip(group.places, refused, strict=True):
                if is_refused:
                    results[place] = _contradicted(envelopes[place])
            if not all(refused):
                again.append(group.without(refused))
        return again


@dataclass(frozen=True)
class _Group:
    """Requests for one plan that are stored as one part."""

    places: list[int]  # in the order they came
    plan: Plan
    ids: Ids
    reports: Reports
    rows: list[slice]  # of each request

    @classmethod
    def of(cls, places: list[int], envelopes: Sequence[Envelope]) -> _Group:
        """The columns of requests, if all are reports of the plan."""
        own = [envelopes[place] for place in places]
        plan = own[0].plan
        ids, reports = gathered(plan, own)
        return cls(places, plan, ids, reports, _rows([len(envelope) for envelope in own]))

    def without(self, refused: Sequence[bool]) -> _Group:
        """The same without some of the requests."""
        lengths = [rows.stop - rows.start for rows in self.rows]
        kept = ~np.repeat(np.array(refused), lengths)
        reports = self.reports[kept]
        left = [
            (place, length)
            for place, length, out in zip(self.places, lengths, refused, strict=True)
            if not out
        ]
        return _Group(
            [place for place, _ in left],
            self.plan,
            self.ids[kept],
            reports,
            _rows([n for _, n in left]),
        )


def _rows(lengths: Sequence[int]) -> list[slice]:
    return [slice(low, high) for low, high in pairwise(accumulate(lengths, initial=0))]


def _too_late() -> Problem:
    return Problem(
        "busy", "the reports could not be written in time; send them again", {"Retry-After": "1"}
    )


def _contradicted(envelope: Envelope) -> Problem:
    used = "assignment-used" if envelope.assignments else "id-reused"
    return Problem(used, "another report has this id; nothing of this request was stored")


def _receipt(outcome: NDArray[np.uint8]) -> Receipt:
    duplicates = int(np.count_nonzero(outcome))
    return Receipt(len(outcome) - duplicates, duplicates)


def _resolve(group: Sequence[Waiting], results: Sequence[Receipt | BaseException]) -> None:
    for each, result in zip(group, results, strict=True):
        each.is_written = True
        if each.left is not None:
            each.left.release()
        if each.future.done():  # the sender was sent away, or is gone
            continue
        if isinstance(result, BaseException):
            each.future.set_exception(result)
        else:
            each.future.set_result(result)
