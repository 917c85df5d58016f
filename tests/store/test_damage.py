"""A damaged report is left out and counted; it stops neither estimates nor exports, and is moved
away when asked.
"""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.protocol.report_files import stream
from sottovoce.protocol.reports import Reports
from sottovoce.store import Outcome, export, id_index, open_store, sqlite_file
from sottovoce.store.checksums import checksums
from tests.store.crowds import ids, marginals, plan, reports
from tests.store.damage import damage, path_of

KINDS = ["payload", "cohort", "id", "checksum"]


def without(rows: list[int]) -> Reports:
    """The reports that :func:`fill` stores, without some."""
    whole = Reports.concat(reports(50, seed) for seed in range(4))
    kept = np.delete(np.arange(200), rows)
    return Reports(whole.plan_id, whole.cohorts[kept], whole.payload[kept])


def fill(url: str) -> None:
    with open_store(url) as store:
        store.add_plan(plan())
        for seed in range(4):
            store.append(plan(), ids(50, seed), reports(50, seed))


def sums(rows: list[int]) -> bytes:
    return sv.Aggregate(plan()).add(without(rows)).to_bytes()


# -- checksums


def test_a_checksum_is_that_of_zlib() -> None:
    of = marginals()
    some, own = reports(30, of=of), ids(30)
    parts = zip(own, some.cohorts.tolist(), some.payload, strict=True)
    head = bytes.fromhex(of.id)
    expected = [
        zlib.crc32(head + a.tobytes() + b.to_bytes(4, "little") + c.tobytes()) for a, b, c in parts
    ]
    assert checksums(own, some).tolist() == expected


# -- estimates and exports go on


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_report_is_left_out_and_counted(url: str, kind: str) -> None:
    fill(url)
    damage(url, kind, 70)
    with open_store(url) as store:
        assert store.aggregate(plan()).to_bytes() == sums([70])
        assert store.kept(plan()).damaged == 1
        # as many as an estimate is of, so that it is not made for ever
        assert store.count(plan()) == 199
        assert sum(len(some) for _, _, some in store.read(plan())) == 199
    with open_store(url) as store:  # the checkpoint tells the next one
        assert (store.kept(plan()).damaged, store.count(plan())) == (1, 199)
        assert not store.append(plan(), ids(5, 9), reports(5, 9)).any()
        assert store.aggregate(plan()).people == store.count(plan()) == 204


def test_a_cut_payload_costs_no_more_than_what_was_stored_with_it(url: str) -> None:
    fill(url)
    damage(url, "cut", 70)
    lost = list(range(50, 100)) if url.startswith("sqlite") else [70]
    with open_store(url) as store:
        assert store.aggregate(plan()).to_bytes() == sums(lost)
        assert store.kept(plan()).damaged == len(lost)
        assert store.set_aside(plan()) == len(lost)
        assert store.rebuild(plan()).to_bytes() == sums(lost)


def test_a_cohort_beyond_32_bits_is_damaged(cluster_url: str) -> None:
    fill(cluster_url)
    damage(cluster_url, "wide cohort", 3)
    with open_store(cluster_url) as store:
        assert store.aggregate(plan()).to_bytes() == sums([3])
        assert store.set_aside(plan()) == 1


def test_an_export_leaves_it_out(url: str, tmp_path: Path) -> None:
    fill(url)
    damage(url, "payload", 0)
    with open_store(url) as store:
        assert export(store, plan(), tmp_path / "out") == 199
    assert sv.Aggregate(plan()).add(stream(tmp_path / "out")).to_bytes() == sums([0])


def test_damage_that_came_after_the_checkpoint_is_found_by_a_rebuild(url: str) -> None:
    fill(url)
    with open_store(url) as store:
        whole = store.rebuild(plan()).to_bytes()
    damage(url, "payload", 199)
    with open_store(url) as store:
        assert store.aggregate(plan()).to_bytes() == whole  # what was added up is still right
        with pytest.raises(StoreError, match=r"1 reports of .* are damaged.*--set-aside"):
            store.rebuild(plan())
        assert store.aggregate(plan()).to_bytes() == whole


def test_a_report_sent_again_is_not_told_that_the_damaged_one_was_another(url: str) -> None:
    fill(url)
    damage(url, "payload", 70)
    with open_store(url) as store:
        again = store.append(plan(), ids(50, 1), reports(50, 1))
        assert (again == Outcome.DUPLICATE).all()
        assert store.aggregate(plan()).people == 199


# -- set aside


@pytest.mark.parametrize(
    "rows", [[0], [49], [199], [70, 71, 90], list(range(150, 200)), [0, 49, 50, 149]]
)
def test_damaged_reports_are_moved_away(
    url: str, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_index, "RUN", 60)
    fill(url)
    with open_store(url) as early, open_store(url) as store:
        assert early.aggregate(plan()).people == 200
        for row in rows:
            damage(url, "payload", row)
        assert store.set_aside(plan()) == len(rows)
        assert store.set_aside(plan()) == 0
        assert store.rebuild(plan()).to_bytes() == sums(rows)
        kept = store.kept(plan())
        assert (kept.damaged, kept.set_aside, store.count(plan())) == (
            0,
            len(rows),
            200 - len(rows),
        )
        # what it held is of another version
        assert early.aggregate(plan()).to_bytes() == sums(rows)
        again = [store.append(plan(), ids(50, seed), reports(50, seed)) for seed in range(4)]
        outcomes = np.concatenate(again)
        # their ids are free again
        assert np.flatnonzero(outcomes == Outcome.STORED).tolist() == rows
        assert store.aggregate(plan()).to_bytes() == early.aggregate(plan()).to_bytes() == sums([])
        assert store.count(plan()) == 200
        assert (early.append(plan(), ids(50, 3), reports(50, 3)) == Outcome.DUPLICATE).all()


def test_what_was_moved_away_is_kept(url: str) -> None:
    fill(url)
    damage(url, "payload", 70)
    with open_store(url) as store:
        store.set_aside(plan())
    if url.startswith("sqlite"):
        with sqlite3.connect(path_of(url)) as db:
            (found,) = db.execute("SELECT rows, ids FROM set_aside").fetchall()
        db.close()
    else:
        import psycopg

        with psycopg.connect(url) as db:
            (found,) = db.execute("SELECT rows, ids FROM sottovoce_set_aside").fetchall()
    assert found == (1, ids(50, 1)[20].tobytes())


# -- a damaged file


def added_up(url: str) -> sv.Aggregate:
    with open_store(url) as store:
        return store.aggregate(plan())


@pytest.mark.parametrize("pages", [2, 8, 20])
def test_a_cut_file_is_one_clear_error(tmp_path: Path, pages: int) -> None:
    path = tmp_path / "survey.db"
    url = f"sqlite:///{path}"
    with open_store(url) as store:
        store.add_plan(plan())
        store.append(plan(), ids(4000), reports(4000))
    whole = path.read_bytes()
    assert len(whole) > 21 * 4096
    path.write_bytes(whole[: pages * 4096])
    with pytest.raises(
        StoreError, match=r"its file is damaged \(SQLITE_CORRUPT\).*sottovoce restore"
    ):
        added_up(url)


def test_an_older_store_is_one_clear_error(url: str) -> None:
    open_store(url).close()
    if url.startswith("sqlite"):
        with sqlite3.connect(path_of(url)) as db:
            db.execute("PRAGMA user_version = 1")
        db.close()
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as other:
            other.execute("UPDATE sottovoce_settings SET value = '1' WHERE name = 'version'")
    with pytest.raises(
        InvalidInput,
        match=f"has version 1; this sottovoce reads version {sqlite_file.STORE_VERSION}",
    ):
        open_store(url)
