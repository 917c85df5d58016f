"""Assigned coins are checked once for each report,
and one household holds up nobody else's checks.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.assignment import Assignment, new_id
from sottovoce.device.messages import write_json
from sottovoce.ground.errors import BadAssignment, CorruptReport
from sottovoce.protocol.reports import Report
from sottovoce.service.concurrency import HouseholdTurns
from sottovoce.service.ingest import Ingest
from sottovoce.service.metrics import Metrics
from sottovoce.service.problems import Problem
from sottovoce.service.remembered import Remembered, digest_of
from sottovoce.service.settings import Settings
from sottovoce.service.wire import Envelope, check_assignments
from sottovoce.service.writer import MOST_CHECKS, MOST_SMALL_CHECKS, Receipt, Writer
from sottovoce.store import open_store
from tests.service.collector import RECORD, SEEDED
from tests.waiting import HANG

KEY, OTHER = bytes(32), bytes([1]) * 32
NOW = 1 << 40  # far ahead, so that devices take what expires then
Drawn = tuple[Assignment, Report]


def drawn(key: bytes = KEY) -> Drawn:
    given = Assignment.sign(key, SEEDED.id, new_id(), NOW + 60)
    return given, sv.Client(SEEDED, assignment=given).report(RECORD)


def envelope(*rows: Drawn) -> Envelope:
    ids = b"".join(given.id for given, _ in rows)
    reports = [report for _, report in rows]
    payloads = [report.payload for report in reports]
    return Envelope(
        SEEDED,
        ids,
        [report.cohort for report in reports],
        payloads,
        tuple(given for given, _ in rows),
    )


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The assignments whose coins were derived."""
    ids: list[bytes] = []
    check = Assignment.check

    def counted(self: Assignment, *given: Any) -> None:
        ids.append(self.id)
        check(self, *given)

    monkeypatch.setattr(Assignment, "check", counted)
    return ids


def test_a_report_that_is_repeated_is_derived_once(derived: list[bytes]) -> None:
    one, two = drawn(), drawn()
    remembered = Remembered()
    check_assignments(envelope(*[one] * 500, two), [KEY], NOW, remembered)
    assert derived == [one[0].id, two[0].id]
    # and not in the next request
    check_assignments(envelope(*[two, one] * 250), [KEY], NOW, remembered)
    assert len(derived) == 2


def test_what_is_remembered_still_needs_its_key_and_time(derived: list[bytes]) -> None:
    one, remembered = drawn(), Remembered()
    check_assignments(envelope(one), [KEY], NOW, remembered)
    # the key was replaced, and is accepted for a while
    check_assignments(envelope(one), [OTHER, KEY], NOW, remembered)
    with pytest.raises(BadAssignment, match="sign"):
        check_assignments(envelope(one), [OTHER], NOW, remembered)  # or at once not any more
    with pytest.raises(BadAssignment, match="expired"):
        check_assignments(envelope(one), [KEY], NOW + 61, remembered)
    assert len(derived) == 1


def test_another_report_is_not_taken_for_one_that_is_remembered() -> None:
    (given, report), remembered = drawn(), Remembered()
    check_assignments(envelope((given, report)), [KEY], NOW, remembered)
    changed = Report(SEEDED.id, report.cohort, bytes(byte ^ 0xFF for byte in report.payload))
    for _ in range(2):  # what was refused is not remembered either
        with pytest.raises((BadAssignment, CorruptReport)):
            check_assignments(envelope((given, changed)), [KEY], NOW, remembered)
    assert len(remembered) == 1
    other = Assignment(given.plan_id, new_id(), given.expires, given.signature)
    later = Assignment(given.plan_id, given.id, given.expires + 1, given.signature)
    rows = [
        (given, 0, b"1"),
        (other, 0, b"1"),
        (later, 0, b"1"),
        (given, 1, b"1"),
        (given, 0, b"2"),
    ]
    rows.append((given, 1 << 80, b""))
    assert len({digest_of(*row) for row in rows}) == len(rows)


def test_two_reports_of_one_assignment_are_refused_before_they_are_derived(
    derived: list[bytes],
) -> None:
    """A sender cannot make one assignment cost many checks by changing its report."""
    given, report = drawn()
    changed = [
        (given, Report(SEEDED.id, report.cohort, bytes([place]) * len(report.payload)))
        for place in range(200)
    ]
    with pytest.raises(Problem) as refused:
        check_assignments(envelope((given, report), *changed), [KEY], NOW, Remembered())
    assert refused.value.name == "assignment-used"
    assert derived == []


def test_so_much_is_remembered_and_no_more() -> None:
    remembered = Remembered(2)
    for digest in (b"a", b"b"):
        remembered.add(digest)
    assert remembered.has(b"a")
    remembered.add(b"c")  # "b" was asked for longest ago
    assert [remembered.has(digest) for digest in (b"a", b"b", b"c")] == [True, False, True]
    assert len(remembered) == 2


def test_a_household_has_few_large_requests_or_many_small_ones() -> None:
    turns = HouseholdTurns(2, 10)
    first, _ = turns.take("a", 500), turns.take("a", 500)
    for reports in (1, 500):
        with pytest.raises(Problem) as refused:
            turns.take("a", reports)
        assert (refused.value.name, refused.value.headers["Retry-After"]) == ("busy", "1")
    small = [turns.take("b", 1) for _ in range(10)]
    with pytest.raises(Problem):
        turns.take("b", 1)
    first.end()
    first.end()  # which does nothing
    turns.take("a", 500)
    with pytest.raises(Problem):
        turns.take("a", 500)
    for each in small:
        each.end()
    assert len(turns) == 1  # nothing is kept of who asks for nothing


class _Keys:
    """A store that says which keys are good when it is told to."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.free = threading.Event()

    def accepted_keys(self) -> list[bytes]:
        assert self.free.wait(HANG)
        return [KEY]

    def append_many(self, parts: Any) -> Any:
        return self._store.append_many(parts)


def test_who_fills_the_checkers_is_told_to_come_again(tmp_path: Path) -> None:
    async def crowd(store: Any, writer: Writer) -> None:
        large = [
            envelope(*[drawn() for _ in range(MOST_SMALL_CHECKS // 2)]) for _ in range(MOST_CHECKS)
        ]
        greedy = [asyncio.create_task(writer.write(each, "a")) for each in large]
        await asyncio.sleep(0)
        used = writer.memory.used
        third = asyncio.create_task(writer.write(envelope(drawn()), "a"))
        await asyncio.sleep(0)
        assert third.done()  # at once: the checkers are held up
        with pytest.raises(Problem, match="from this address"):
            await third
        assert writer.memory.used == used
        others = [
            asyncio.create_task(writer.write(envelope(drawn()), household)) for household in "bcd"
        ]
        await asyncio.sleep(0)
        assert not any(each.done() for each in others)
        store.free.set()
        assert await asyncio.gather(*others) == [Receipt(1, 0)] * 3
        assert await asyncio.gather(*greedy) == [Receipt(MOST_SMALL_CHECKS // 2, 0)] * MOST_CHECKS
        assert await writer.write(envelope(drawn()), "a") == Receipt(1, 0)

    with open_store(f"sqlite:///{tmp_path}/s.db") as real:
        real.add_plan(SEEDED)
        store: Any = _Keys(real)
        writer = Writer(store, Metrics(), Settings(answer_seconds=HANG))
        try:
            asyncio.run(crowd(store, writer))
            assert len(writer._checks) == 0
        finally:
            store.free.set()
            writer.close()


def test_a_household_is_counted_as_the_rate_limit_does() -> None:
    given, report = drawn()
    body = json.dumps(write_json(given.id, report, given)).encode()
    senders: list[str] = []

    class _Shelf:
        async def insist(self, look: Any) -> Any:
            return look()

        def plan(self, _: str) -> sv.Plan:
            return SEEDED

    async def write(_: Envelope, household: str) -> Receipt:
        senders.append(household)
        return Receipt(1, 0)

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_: Any) -> None: ...

    writer: Any = SimpleNamespace(
        write=write, memory=SimpleNamespace(used=0, has_room=lambda _: True)
    )
    plan_cache: Any = _Shelf()
    ingest = Ingest(plan_cache, writer, Metrics(), Settings())
    for address in ("192.0.2.1", "2001:db8::1", "2001:db8::2"):
        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "headers": headers, "client": (address, 1)}
        asyncio.run(ingest(scope, receive, send))
    assert senders == ["192.0.2.1", "2001:db8::/64", "2001:db8::/64"]
