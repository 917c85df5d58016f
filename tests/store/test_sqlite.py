"""What is special about the embedded store: its file, its disk, its ids, and processes that die."""

from __future__ import annotations

import random
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, StoreFull
from sottovoce.protocol.reports import Reports
from sottovoce.store import (
    Outcome,
    Store,
    checksums,
    duplicate_filter,
    id_index,
    open_store,
    sqlite_parts,
)
from sottovoce.store.sqlite import SqliteStore
from tests.store.child import PARTS, ROWS
from tests.store.crowds import ids, plan, reports
from tests.store.processes import finished, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.db"


def stored_ids(store: Store) -> list[bytes]:
    return [key.tobytes() for _, own, _ in store.read(plan()) for key in own]


# -- durability


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(path: Path, kills: int) -> None:
    url = f"sqlite:///{path}"
    chance = random.Random(4)
    acknowledged: list[int] = []
    for seed in range(kills):
        child = start("endless", url, seed)
        assert child.stdout is not None
        acknowledged += [int(child.stdout.readline()) for _ in range(3)]
        time.sleep(chance.uniform(0.05, 0.4))
        child.kill()
        acknowledged += [int(line) for line in child.stdout.read().splitlines() if line]
        child.communicate()
    with open_store(url) as store:
        kept = stored_ids(store)
        assert len(kept) == len(set(kept)) == store.count(plan()) == store.aggregate(plan()).people
        assert len(acknowledged) > 2 * kills
        for step in acknowledged:  # as a client would send them again
            again = store.append(plan(), ids(ROWS, step, minute=step % 3), reports(ROWS, step))
            assert (again == Outcome.DUPLICATE).all()
        extra = len(kept) - ROWS * len(acknowledged)
        assert 0 <= extra <= ROWS * kills  # stored, but killed before it said so


def test_two_processes_on_one_file_count_once(path: Path) -> None:
    url = f"sqlite:///{path}"
    for child in [start("overlapping", url, seed) for seed in range(2)]:
        finished(child)
    with open_store(url) as store:
        kept = stored_ids(store)
        assert len(kept) == len(set(kept)) == store.count(plan()) == ROWS * PARTS


def test_a_commit_waits_for_the_disk(path: Path) -> None:
    with open_store(f"sqlite:///{path}") as store:
        assert isinstance(store, SqliteStore)
        settings = [
            store._writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous")
        ]
        assert settings == ["wal", 2]


# -- a full disk


def test_a_full_disk_loses_nothing(path: Path) -> None:
    url = f"sqlite:///{path}"
    seed = 0
    with open_store(f"{url}?max_page_count=60") as store:
        store.add_plan(plan())
        while not isinstance(
            store.append_many([(plan(), ids(500, seed), reports(500, seed))])[0], StoreFull
        ):
            seed += 1
        assert 2 < seed < 40
        with pytest.raises(StoreFull, match="disk is full; nothing was stored"):
            store.append(plan(), ids(500, seed), reports(500, seed))
        # reading goes on
        assert store.count(plan()) == store.aggregate(plan()).people == 500 * seed
        assert (store.append(plan(), ids(500, 0), reports(500, 0)) == Outcome.DUPLICATE).all()
        assert isinstance(store, SqliteStore)
        store._writer.execute("PRAGMA max_page_count = 1000000")  # room returns
        assert not store.append(plan(), ids(500, seed), reports(500, seed)).any()
    with open_store(url) as store:
        kept = stored_ids(store)
        assert len(kept) == len(set(kept)) == 500 * (seed + 1)


def test_a_file_size_limit_is_a_full_disk(path: Path) -> None:
    lines = finished(start("full", f"sqlite:///{path}"))
    assert [line.rpartition(" ")[0] for line in lines] == ["full after", "full after", "stored"]
    counts = [int(line.split()[-1]) for line in lines]
    assert 0 < counts[0] < counts[1] == counts[2] - 5
    with open_store(f"sqlite:///{path}") as store:
        kept = stored_ids(store)
        assert len(kept) == len(set(kept)) == store.aggregate(plan()).people == 1000 * counts[2]


# -- ids


def test_ids_that_hash_alike_stay_different(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_index, "RUN", 40)
    monkeypatch.setattr(
        duplicate_filter.Hash,
        "__call__",
        lambda self, own: own[:, 15].astype(np.uint64) % 3 << np.uint64(60),
    )
    with open_store(f"sqlite:///{path}") as store:
        store.add_plan(plan())
        for seed in range(5):
            assert not store.append(plan(), ids(30, seed), reports(30, seed)).any()
        for seed in range(5):
            assert (
                store.append(plan(), ids(30, seed), reports(30, seed)) == Outcome.DUPLICATE
            ).all()
        assert store.count(plan()) == 150


def test_an_id_is_found_however_old_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory and in runs, before and after a restart; more runs of one minute than stay in
    memory.
    """
    monkeypatch.setattr(id_index, "RUN", 20)
    monkeypatch.setattr(id_index, "MAX_FILTERS", 3)
    url = f"sqlite:///{path}"
    with open_store(url) as store:
        store.add_plan(plan())
        for seed in range(12):
            assert not store.append(
                plan(), ids(20, seed, minute=seed // 6), reports(20, seed)
            ).any()
    for _ in range(2):
        with open_store(url) as store:
            for seed in (0, 11, 5, 6):
                again = store.append(plan(), ids(20, seed, minute=seed // 6), reports(20, seed))
                assert (again == Outcome.DUPLICATE).all()
            assert not store.append(plan(), ids(1, seed=99, minute=_), reports(1)).any()


def test_a_file_put_back_from_a_copy_is_read_anew(path: Path) -> None:
    with open_store(f"sqlite:///{path}") as store:
        store.add_plan(plan())
        store.append(plan(), ids(10, 1), reports(10, 1))
        store.append(plan(), ids(10, 2), reports(10, 2))
        with sqlite3.connect(path) as other:
            other.execute("DELETE FROM parts WHERE seq = 20")
        assert not store.append(plan(), ids(10, 2), reports(10, 2)).any()
        assert (store.append(plan(), ids(10, 1), reports(10, 1)) == Outcome.DUPLICATE).all()


# -- reports that are sent again


def test_a_report_sent_again_is_the_only_one_that_is_checked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a replay of one's own old reports would cost the only writer a whole part for each of
    them.
    """
    checked = 0

    def count_rows(own: np.ndarray, some: Reports) -> np.ndarray:
        nonlocal checked
        checked += len(own)
        return checksums.checksums(own, some)

    def count_one(*report: Any) -> int | None:
        nonlocal checked
        checked += 1
        return checksums.checksum_of(*report)

    with open_store(f"sqlite:///{path}") as store:
        store.add_plan(plan())
        for seed in range(3):
            store.append(plan(), ids(300, seed), reports(300, seed))
        monkeypatch.setattr(sqlite_parts, "checksums", count_rows)
        monkeypatch.setattr(sqlite_parts, "checksum_of", count_one, raising=False)
        old = [(plan(), ids(300, seed)[7:8], reports(300, seed)[7:8]) for seed in range(3)]
        assert store.append_many(old) == [[Outcome.DUPLICATE]] * 3
        assert checked == 3
        changed = Reports(plan().id, np.zeros(1, np.uint32), 1 - reports(300)[7:8].payload % 2)
        assert store.append(plan(), ids(300)[7:8], changed) == [Outcome.CONFLICT]
        assert checked == 4


def test_a_part_has_few_bytes_however_long_its_reports_are(path: Path) -> None:
    """It is read for each old report that is sent again."""
    wide = sv.plan(
        sv.Schema(x=sv.Categorical(range(4000))),
        sv.Frequencies("x", oracle="oue"),
        epsilon=1.0,
        people=1000,
    )
    assert wide.cohorts.bytes == 500
    many = Reports(wide.id, np.zeros(2000, np.uint32), np.zeros((2000, 500), np.uint8))
    with open_store(f"sqlite:///{path}") as store:
        store.add_plan(wide)
        assert not store.append(wide, ids(2000), many).any()
        assert (store.append(wide, ids(2000), many) == Outcome.DUPLICATE).all()
        assert store.count(wide) == sum(len(some) for _, _, some in store.read(wide)) == 2000
    with closing(sqlite3.connect(path)) as db:
        size = "length(ids) + length(cohorts) + length(payload) + length(checksums)"
        largest, rows = db.execute(f"SELECT max({size}), sum(rows) FROM parts").fetchone()
    assert largest <= 1 << 17
    assert rows == 2000


# -- opening


def test_only_its_owner_can_read_a_new_file(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_that_are_something_else_are_refused_and_left_alone(path: Path) -> None:
    url = f"sqlite:///{path}"
    with pytest.raises(InvalidInput, match="must be a file that exists"):
        open_store(url, create=False)
    path.touch()
    with pytest.raises(InvalidInput, match="it is empty"):
        open_store(url, create=False)
    path.write_bytes(b"name,age\n" * 1000)
    with pytest.raises(InvalidInput, match="must be a SQLite file"):
        open_store(url)
    assert path.read_bytes() == b"name,age\n" * 1000
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE accounts (name)")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="the database of something else"):
        open_store(url)
    assert path.read_bytes() == before
    path.unlink()
    open_store(url).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 7")
    with pytest.raises(InvalidInput, match="has version 7; this sottovoce reads version 4"):
        open_store(url)


def test_a_folder_that_is_missing_or_is_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must lie in a folder that exists"):
        open_store(f"sqlite:///{tmp_path}/no/survey.db")
    (tmp_path / "survey.db").mkdir()
    with pytest.raises(InvalidInput, match="must be a file that exists"):
        open_store(f"sqlite:///{tmp_path}/survey.db")
