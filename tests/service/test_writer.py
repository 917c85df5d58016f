"""A writer whose store is held up: what waits stays within its limit, and what was given up is
gone.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.service import writer as writing
from sottovoce.service.metrics import Metrics
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from sottovoce.service.wire import Envelope
from sottovoce.service.writer import Receipt, Writer
from sottovoce.store import Store, open_store
from tests.service.collector import PLAN, RECORD
from tests.waiting import HANG

LIMITS = {
    "most_bytes": 1 << 16,
    "most_padded": 1 << 16,
    "most_reports": 100,
    "most_waiting": 260_000,
}
REPORT = sv.Client(PLAN).report(RECORD)
ROWS = 100


class HeldUp:
    """A store that does not answer while it is held up, as one that somebody else has locked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entered, self.free = threading.Event(), threading.Event()
        self.groups: list[int] = []  # reports of each transaction

    def append_many(self, parts: Any) -> Any:
        self.entered.set()
        assert self.free.wait(HANG)
        self.groups.append(sum(len(ids) for _, ids, _ in parts))
        return self._store.append_many(parts)

    def accepted_keys(self) -> Any:
        self.entered.set()
        assert self.free.wait(HANG)
        return self._store.accepted_keys()


@contextmanager
def held_up(folder: Path, seconds: float = 0.05) -> Iterator[tuple[HeldUp, Writer, Store]]:
    with open_store(f"sqlite:///{folder}/s.db") as store:
        store.add_plan(PLAN)
        held: Any = HeldUp(store)
        writer = Writer(held, Metrics(), Settings(answer_seconds=seconds, **LIMITS))
        try:
            yield held, writer, store
        finally:
            held.free.set()
            writer.close()


def envelope(*assignments: Any) -> Envelope:
    ids = b"".join(new_id() for _ in range(ROWS))
    return Envelope(PLAN, ids, [REPORT.cohort] * ROWS, [REPORT.payload] * ROWS, assignments)


class Sent:
    """Requests that were sent, and those of them that are still somewhere in memory."""

    def __init__(self, *assignments: Any) -> None:
        self._assignments = assignments
        self._alive: list[weakref.ref[Envelope]] = []

    async def send(self, writer: Writer) -> str | Receipt:
        """The receipt, or the name of the problem."""
        made = envelope(*self._assignments)
        self._alive.append(weakref.ref(made))
        try:
            return await writer.write(made, f"household {len(self._alive)}")
        except Problem as wrong:
            return wrong.name

    def held(self) -> int:
        """Their bytes."""
        gc.collect()
        return sum(made.bytes for each in self._alive if (made := each()) is not None)


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LOOK", 0.01)


def test_what_waits_keeps_to_its_limit_while_the_store_is_held_up(tmp_path: Path) -> None:
    sent = Sent()

    async def crowd() -> None:
        first = asyncio.create_task(sent.send(writer))
        while not store.entered.is_set():
            await asyncio.sleep(0.001)
            if first.done():  # given up before the thread had it
                first = asyncio.create_task(sent.send(writer))
        for _ in range(5):
            senders = [asyncio.create_task(sent.send(writer)) for _ in range(60)]
            await asyncio.sleep(0)
            assert writer.memory.used <= LIMITS["most_waiting"]
            assert set(await asyncio.gather(*senders)) == {"busy"}
            assert sent.held() <= writer.memory.used  # nothing is held that is not counted
        assert await first == "busy"
        assert writer.memory.used == sent.held() == envelope().bytes  # the thread still has it
        store.free.set()
        while (last := await sent.send(writer)) == "busy":  # told to come again until there is time
            pass
        assert last == Receipt(ROWS, 0)
        assert writer.memory.used == 0

    with held_up(tmp_path) as (store, writer, kept):
        asyncio.run(crowd())
        assert set(store.groups) == {
            ROWS
        }  # the first, and those that were sent at the end, one by one
        assert kept.count(PLAN) == ROWS * len(store.groups)


def test_a_sender_who_is_gone_leaves_nothing(tmp_path: Path) -> None:
    async def crowd() -> None:
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(writer.write(envelope()))
        await loop.run_in_executor(None, store.entered.wait, HANG)
        used = writer.memory.used
        gone = asyncio.create_task(writer.write(envelope()))
        await asyncio.sleep(0)
        assert writer.memory.used > used
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert writer.memory.used == used
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert writer.memory.used == used  # the thread still has it
        store.free.set()
        while writer.memory.used:
            await asyncio.sleep(0.001)

    with held_up(tmp_path, HANG) as (store, writer, kept):
        asyncio.run(crowd())
        assert store.groups == [ROWS]
        assert kept.count(PLAN) == ROWS


def test_assigned_coins_that_wait_for_a_check_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "check_assignments", lambda *_: None)
    sent = Sent(object())

    async def crowd() -> None:
        for _ in range(3):
            senders = [asyncio.create_task(sent.send(writer)) for _ in range(60)]
            assert set(await asyncio.gather(*senders)) == {"busy"}
            assert sent.held() <= writer.memory.used
        assert 0 < sent.held() <= writing.CHECKERS * envelope(object()).bytes
        store.free.set()
        while writer.memory.used:
            await asyncio.sleep(0.001)

    with held_up(tmp_path) as (store, writer, _):
        asyncio.run(crowd())
        assert store.groups == []
