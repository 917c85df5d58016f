"""A file of people as devices that send their reports, several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sottovoce.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.cli.progress import Advance
    from sottovoce.cli.rounds import Membership
    from sottovoce.front import Plan

Rows = list[tuple[int, dict[str, Any]]]  # (row of the file, record)


def send_people(
    plan: Plan,
    people: Path,
    url: str,
    batch: int,
    connections: int,
    log: Path | None,
    advance: Advance,
    members: Membership | None = None,
) -> int:
    """Everybody's report to a collector, or of ``members`` theirs whose round this is; returns how many arrived."""
    devices = _Devices(plan, url, str(people))
    done = 0
    with ExitStack() as stack:
        file = stack.enter_context(log.open("a", encoding="utf-8")) if log is not None else None
        stack.callback(devices.close)
        pool = stack.enter_context(ThreadPoolExecutor(connections))  # ends before the connections do
        under_way: set[Future[int]] = set()
        for rows in _groups(plan, people, batch, members):
            under_way.add(pool.submit(devices.send, rows, file))
            if len(under_way) >= 2 * connections:
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                done += sum(future.result() for future in ended)
                advance(done)
        for future in under_way:
            done += future.result()
            advance(done)
    return done


def _groups(plan: Plan, people: Path, size: int, members: Membership | None) -> Iterator[Rows]:
    from sottovoce.cli.people import batches

    group: Rows = []
    row = 0
    for table in batches(people, plan):
        mine = None
        if members is not None:
            mine = members.answering(row, table.num_rows)
            members.save()  # now, so that no interruption lets a row answer twice
        for place, record in enumerate(table.to_pylist()):
            row += 1
            if mine is not None and not mine[place]:
                continue
            group.append((row, record))
            if len(group) == size:
                yield group
                group = []
    if group:
        yield group


class _Devices:
    """Devices that share connections, one for each thread."""

    def __init__(self, plan: Plan, url: str, source: str) -> None:
        from sottovoce.service.sender import Sender

        self._plan, self._source = plan, source
        self._own = threading.local()
        self._lock = threading.Lock()
        self._make: Callable[[], Any] = lambda: Sender(url)
        self._senders = [self._make()]  # a bad address is met before the first report
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

    def send(self, rows: Rows, log: TextIO | None) -> int:
        from sottovoce.assignments import Assignment, new_id
        from sottovoce.cli.rounds import state_of
        from sottovoce.client import Client

        sender = self._sender()
        ids, reports, given = [], [], []
        for row, record in rows:
            assigned: Assignment | None = None
            if self._plan.coin == "assigned":
                assigned = sender.assignment(self._plan.id)
                given.append(assigned)
            try:
                state = state_of(self._plan) if len(self._plan.series.shares) > 1 else None
                reports.append(Client(self._plan, state, assignment=assigned, invalid="raise").report(record))
            except InvalidInput as wrong:
                raise InvalidInput(f"people ({self._source}): row {row}: {wrong}") from None
            ids.append(assigned.id if assigned else new_id())
        sender.send(ids, reports, given)
        self._acknowledged(ids, log)
        return len(reports)

    def _acknowledged(self, ids: Sequence[bytes], log: TextIO | None) -> None:
        if log is not None:
            with self._lock:
                log.write("".join(f"{id.hex()}\n" for id in ids))
                log.flush()

    def close(self) -> None:
        for sender in self._senders:
            sender.close()
