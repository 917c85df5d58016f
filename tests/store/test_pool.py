"""Threads share few connections: a server has room for a hundred, whoever asks how much."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier, Event, Lock
from typing import Any

import psycopg
import pytest

from sottovoce.ground.errors import StoreError, UnknownPlan
from sottovoce.store import open_store
from sottovoce.store.pool import MOST_IDLE, MOST_READERS, Pool
from tests.store.crowds import plan

THREADS = 40  # that serve requests in a collector


class Line:
    """Something to lend that knows how many there are."""

    lock = Lock()
    open = most = 0

    def __init__(self) -> None:
        with Line.lock:
            Line.open += 1
            Line.most = max(Line.most, Line.open)

    def close(self) -> None:
        with Line.lock:
            Line.open -= 1


@pytest.fixture(autouse=True)
def nothing_open() -> None:
    Line.open = Line.most = 0


def test_many_threads_share_few_connections() -> None:
    pool = Pool(Line, patience=600)
    together = Barrier(THREADS)

    def use() -> None:
        together.wait()
        for _ in range(20):
            with pool.lend():
                pass

    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(use) for _ in range(THREADS)]:
            done.result()
    assert 1 <= Line.most <= MOST_READERS
    assert Line.open <= MOST_IDLE
    pool.close()
    assert Line.open == 0


def test_who_comes_when_all_are_lent_waits_for_one_and_is_told_if_it_takes_too_long() -> None:
    pool = Pool(Line, most=2, patience=600)
    with ExitStack() as held, ThreadPoolExecutor(1) as thread:
        first = held.enter_context(pool.lend())
        given, taken = Event(), Event()

        def hold() -> None:
            with pool.lend():
                taken.set()
                given.wait()

        waiting = thread.submit(hold)
        taken.wait()
        pool._patience = 0
        with pytest.raises(StoreError, match="all of its 2 connections are in use"), pool.lend():
            pass
        given.set()
        pool._patience = 600
        with pool.lend() as second:
            assert second is not first
        waiting.result()
    assert Line.most == 2


def test_what_failed_leaves_room_for_another() -> None:
    failing = True

    def connect() -> Line:
        if failing:
            raise StoreError("store: it cannot be reached")
        return Line()

    pool = Pool(connect, most=1, patience=0)
    for _ in range(3):
        with pytest.raises(StoreError, match="cannot be reached"), pool.lend():
            pass
    failing = False
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), pool.lend():
            raise ZeroDivisionError
    assert Line.open == 0
    with pool.lend():
        pool.close()
    assert Line.open == 0
    with pytest.raises(StoreError, match="closed"), pool.lend():
        pass


def test_strangers_do_not_use_up_a_servers_connections(
    cluster_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each unknown plan is looked for in the store, by as many threads as a collector has."""
    lock, together = Lock(), Barrier(THREADS)
    connect = psycopg.connect
    made: list[psycopg.Connection[Any]] = []
    most = 0

    def counted(**options: Any) -> psycopg.Connection[Any]:
        nonlocal most
        new = connect(**options)
        with lock:
            made.append(new)
            most = max(most, sum(not each.closed for each in made))
        return new

    monkeypatch.setattr(psycopg, "connect", counted)
    with open_store(cluster_url) as store:
        store.add_plan(plan())

        def ask(number: int) -> None:
            together.wait()
            for step in range(5):
                with pytest.raises(UnknownPlan):
                    store.entry(f"{number:032x}{step:032x}")

        with ThreadPoolExecutor(THREADS) as threads:
            for done in [threads.submit(ask, number) for number in range(THREADS)]:
                done.result()
        assert sum(not each.closed for each in made) <= MOST_IDLE + 1
    assert 2 <= most <= MOST_READERS + 1  # and the one that writes
    assert all(each.closed for each in made)
