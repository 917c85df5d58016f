"""A file of people as devices that send reports, several at once, each drawn once in any case."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from sottovoce.ground.errors import InvalidInput
from sottovoce.sending.journal import DrawnReport, Journal, Record, journal_beside, other_records
from sottovoce.sending.people import (
    AS_IT_IS,
    PeopleFileOptions,
    bad_rows,
    batches,
    encoded,
    named_rows,
)

if TYPE_CHECKING:
    from sottovoce.device.assignment import Assignment
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Report
    from sottovoce.sending.rounds import SeriesMembership

Row = tuple[int, dict[str, Any]]  # (row of the file, record)
DRAWN_AT_ONCE = 10_000  # rows that one write makes durable
ASSIGNED_AT_ONCE = 64  # if each of them must first ask the collector
T = TypeVar("T")


@dataclass(frozen=True)
class Sent:
    """How it went: reports acknowledged now and before, and rows whose assignment failed."""

    now: int
    before: int
    lost: tuple[int, ...]


def send_people(
    plan: Plan,
    people: Path,
    url: str,
    batch: int,
    connections: int,
    log: Path | None,
    advance: Callable[[int], None],
    members: SeriesMembership | None = None,
    journal: Path | None = None,
    is_moved: bool = False,
    reading: PeopleFileOptions = AS_IT_IS,
) -> Sent:
    """Everybody's report to a collector, or of ``members`` theirs whose round this is.

    All rows are checked before anything is drawn. What is drawn is in the journal before it leaves;
    if there is one already, its reports are sent as they are, under their ids, and only rows that
    it does not have are drawn. They go to the collector that it names, or if that ``is_moved`` to
    the same one at another address.
    """
    from sottovoce.device.sender import NotSent
    from sottovoce.service.settings import Settings
    from sottovoce.service.wire import most_together

    batch = min(batch, most_together(plan, Settings()))
    if plan.shuffling is not None:
        batch = min(batch, _most_onions(plan))
    with ExitStack() as stack:
        devices = _Devices(plan, url)  # a bad address is met before anything else
        stack.callback(devices.close)
        book = stack.enter_context(Journal(journal or journal_beside(people, plan), plan, people))
        book.check_collector(devices.address, is_moved)
        count = _check(plan, people, book, reading)
        if journal is None and not book.digests:
            _refuse_drawn(plan, people, reading)
        book.belong_to(people, devices.address)
        drawing = _Drawing(plan, people, book, members, reading)
        drawing.begin(count)
        devices.journal = book
        if log is not None:
            devices.log = stack.enter_context(log.open("a", encoding="utf-8"))
        try:
            return _send(devices, drawing, batch, connections, advance)
        except NotSent as wrong:
            raise NotSent(
                f"{wrong}; the same command goes on from {book.path}, and draws nothing again"
            ) from None


def _most_onions(plan: Plan) -> int:
    """How many onions one request may hold; refuses a plan that names no shufflers."""
    from sottovoce.device.sealing import onion_size
    from sottovoce.service.settings import MOST_ANALYST_BYTES

    return max(1, MOST_ANALYST_BYTES // onion_size(plan))


def _send(
    devices: _Devices,
    drawing: _Drawing,
    batch: int,
    connections: int,
    advance: Callable[[int], None],
) -> Sent:
    before = len(drawing.journal.acknowledged)
    now = 0
    pool = ThreadPoolExecutor(connections)
    under_way: set[Future[int]] = set()
    try:
        for work in devices.work(drawing, batch):
            under_way.add(pool.submit(work))
            if len(under_way) >= 2 * connections:
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                now += sum(future.result() for future in ended)
                advance(before + now)
        for future in under_way:
            now += future.result()
            advance(before + now)
    except BaseException:
        devices.stop.set()  # whoever waits for a collector gives up now
        raise
    finally:
        pool.shutdown(cancel_futures=True)  # before the connections are closed
    return Sent(now, before, tuple(sorted(devices.lost)))


def _records(plan: Plan, people: Path, reading: PeopleFileOptions) -> Iterator[Row]:

    before = 0
    for table in batches(people, plan, reading=reading):
        yield from enumerate(table.to_pylist(), start=before + 1)
        before += table.num_rows


def _check(plan: Plan, people: Path, journal: Journal, reading: PeopleFileOptions) -> int:
    """Refuse a file whose rows do not fit the plan, or were drawn otherwise; returns its rows."""

    count, first = 0, ""
    bad: list[int] = []
    changed: list[int] = []
    for count, record in _records(plan, people, reading):
        try:
            codes = encoded(plan, record)
        except InvalidInput as wrong:
            first = first or str(wrong)
            (changed if count in journal.digests else bad).append(count)
            continue
        if count in journal.digests and journal.digests[count] != journal.digest(codes):
            changed.append(count)
    changed += [row for row in journal.digests if row > count]
    if changed:
        raise InvalidInput(
            f"people ({people}): {named_rows(changed)} changed or went since a report was drawn "
            "there; put back what it was, or give other people a file of their own: to draw again "
            "would cost a person epsilon again"
        )
    if bad:
        raise InvalidInput(f"people ({people}): {bad_rows(bad, first)}; nothing was drawn or sent")
    return count


def _refuse_drawn(plan: Plan, people: Path, reading: PeopleFileOptions) -> None:
    """Refuse people without a journal, if another in the folder shows that they were drawn.

    It does if it is of the same file, if its own file is gone and one of its rows is here, if all
    its rows are here, or if so many are that chance does not explain it.
    """
    for other in other_records(people, plan):
        is_same, is_left = other.is_of(people), other.is_left()
        if not is_same and not _has_rows_of(plan, people, other, is_left, reading):
            continue
        remedy = (
            f"give --journal {other.path}" if is_same or is_left else f"send {other.people} itself"
        )
        raise InvalidInput(
            f"people ({people}): reports of these rows, or of most of them, were drawn for "
            f"{other.people} before (journal {other.path}); {remedy} to go on with them, with the "
            "rows that were drawn as they were and others after them, or if these are other "
            "people give --journal FILE, a new one; nothing was drawn or sent"
        )


def _has_rows_of(
    plan: Plan, people: Path, other: Record, is_left: bool, reading: PeopleFileOptions
) -> bool:
    """Whether a file has the rows, or most of the rows, that were drawn for another journal."""
    import numpy as np

    from sottovoce.sending.copies import is_copy

    if not other.digests:
        return False
    read = (encoded(plan, record) for _, record in _records(plan, people, reading))
    here = np.fromiter((_number(other.digest(codes)) for codes in read), np.uint64)
    drawn_rows = sorted(other.digests)
    rows = np.array(drawn_rows, np.int64) - 1  # from 0
    drawn = np.fromiter((_number(other.digests[row]) for row in drawn_rows), np.uint64)
    inside = rows < len(here)
    same = int(np.count_nonzero(drawn[inside] == here[rows[inside]]))
    if same == len(rows) or (is_left and same):
        return True
    return is_copy(rows, drawn, here)


def _number(digest: bytes) -> int:
    """Enough of a digest to tell rows apart."""
    return int.from_bytes(digest[:8], "little")


class _Drawing:
    """Who is to be drawn, and the drawing."""

    def __init__(
        self,
        plan: Plan,
        people: Path,
        journal: Journal,
        members: SeriesMembership | None,
        reading: PeopleFileOptions,
    ) -> None:
        self.plan, self.journal = plan, journal
        self._people, self._members, self._reading = people, members, reading

    def begin(self, count: int) -> None:
        """Give every row its round, for good; those that were drawn have answered."""
        if self._members is not None:
            self._members.prepare(count)
            self._members.mark(self.journal.digests)

    def rows(self) -> Iterator[Row]:
        """Those that were not drawn, of this round."""
        known = frozenset(self.journal.digests)
        for row, record in _records(self.plan, self._people, self._reading):
            if row not in known and (self._members is None or self._members.answers(row)):
                yield row, record

    def keep(self, draws: Sequence[DrawnReport]) -> None:
        """From here on they have answered, and may be sent."""
        self.journal.write(draws)
        if self._members is not None:
            self._members.mark([drawn.row for drawn in draws])

    def draw(
        self, row: int, record: dict[str, Any], given: Assignment | None = None
    ) -> DrawnReport:
        from sottovoce.device.assignment import new_id
        from sottovoce.device.client import Client
        from sottovoce.sending.rounds import state_of

        plan = self.plan
        digest = self.journal.digest(encoded(plan, record))
        state = state_of(plan) if len(plan.series.shares) > 1 else None
        report = Client(plan, state, assignment=given, invalid="raise").report(record)
        if plan.shuffling is not None:
            return self._sealed(row, digest, report)
        return DrawnReport(row, digest, given.id if given else new_id(), report, given)

    def _sealed(self, row: int, digest: bytes, report: Report) -> DrawnReport:
        """A report sealed for the plan's hops, once: sent again, it is the same onion."""
        from sottovoce.device.sealing import new_nonce, seal
        from sottovoce.ground.entropy import System

        nonce = new_nonce(System())
        onion = seal(report, self.plan, System(), nonce)
        return DrawnReport(row, digest, nonce, report, onion=onion)


class _Devices:
    """Devices that share connections, one for each thread."""

    journal: Journal
    log: TextIO | None = None

    def __init__(self, plan: Plan, url: str) -> None:
        from sottovoce.device.sender import Sender

        self._plan = plan
        self.stop = threading.Event()
        self.lost: list[int] = []
        self._own = threading.local()
        self._lock = threading.Lock()
        self._make: Callable[[], Any] = lambda: Sender(url, stop=self.stop)
        self._senders = [self._make()]
        self.address: str = self._senders[0].address
        self._unused = list(self._senders)

    def _sender(self) -> Any:
        if not hasattr(self._own, "sender"):
            with self._lock:
                if self._unused:
                    self._own.sender = self._unused.pop()
                else:
                    self._own.sender = self._make()
                    self._senders.append(self._own.sender)
        return self._own.sender

    def work(self, drawing: _Drawing, batch: int) -> Iterator[Callable[[], int]]:
        """What the threads are to do: send what was drawn before, then draw and send the others."""
        waiting = self.journal.waiting()
        if self._plan.coin == "assigned":
            for group in _batched(waiting, batch):
                yield partial(self._send, group, batch)
            for rows in _batched(drawing.rows(), max(batch, ASSIGNED_AT_ONCE)):
                yield partial(self._draw_and_send, drawing, rows, batch)
            return
        draws = chain.from_iterable(
            _kept(drawing, rows) for rows in _batched(drawing.rows(), DRAWN_AT_ONCE)
        )
        for group in _batched(chain(waiting, draws), batch):
            yield partial(self._send, group, batch)

    def _draw_and_send(self, drawing: _Drawing, rows: Sequence[Row], batch: int) -> int:
        """Ask for coins, draw with them, and keep both before anything of it is sent."""
        sender = self._sender()
        draws = [
            drawing.draw(row, record, sender.assignment(self._plan.id)) for row, record in rows
        ]
        with self._lock:
            drawing.keep(draws)
        return self._send(draws, batch)

    def _send(self, draws: Sequence[DrawnReport], batch: int) -> int:
        now = time()
        good: list[DrawnReport] = []
        late: list[DrawnReport] = []
        for each in draws:
            has_expired = each.assignment is not None and now > each.assignment.expires
            (late if has_expired else good).append(each)
        self._lose(late)
        return sum(self._send_one(group) for group in _batched(good, batch))

    def _send_one(self, draws: Sequence[DrawnReport]) -> int:
        """One request. If an assignment is refused, each goes singly; refused ones are lost."""
        from sottovoce.device.sender import NotSent

        given = [each.assignment for each in draws if each.assignment is not None]
        try:
            if self._plan.shuffling is not None:
                self._sender().send_onions(self._plan.id, [each.onion for each in draws])
            else:
                ids, reports = [each.id for each in draws], [each.report for each in draws]
                self._sender().send(ids, reports, given)
        except NotSent as wrong:
            if wrong.problem != "bad-assignment":
                raise
            if len(draws) > 1:
                return sum(self._send_one([each]) for each in draws)
            self._lose(draws)
            return 0
        self._acknowledged(draws)
        return len(draws)

    def _lose(self, draws: Iterable[DrawnReport]) -> None:
        with self._lock:
            self.lost += [each.row for each in draws]

    def _acknowledged(self, draws: Sequence[DrawnReport]) -> None:
        with self._lock:
            if self.log is not None:
                self.log.write("".join(f"{each.id.hex()}\n" for each in draws))
                self.log.flush()
            self.journal.acknowledge([each.row for each in draws])

    def close(self) -> None:
        for sender in self._senders:
            sender.close()


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of ``size`` items, and a shorter last one."""
    source = iter(items)
    while group := list(islice(source, size)):
        yield group


def _kept(drawing: _Drawing, rows: Sequence[Row]) -> list[DrawnReport]:
    draws = [drawing.draw(row, record) for row, record in rows]
    drawing.keep(draws)
    return draws
