"""Public columns at rest, in both stores: kept with their report under one checksum, exported as
real columns.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.ground.errors import StoreError
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.report_files import stream
from sottovoce.store import Outcome, Store, backup, open_store, restore
from sottovoce.store.exports import export, export_file
from tests.store.crowds import ids
from tests.store.damage import path_of

SCHEMA = sv.Schema(
    x=sv.Categorical(range(3)),
    y=sv.Categorical(range(40)),
    state=sv.Categorical(["NY", "WA", "TX"], sensitive=False),
    note=sv.Text(bytes=20, sensitive=False),
    amount=sv.FixedPoint(-5, "999.99", sensitive=False),
)
PLAN = sv.plan(
    SCHEMA,
    sv.Frequencies("x", "y", oracle="oue"),
    epsilon=1.0,
    people=1000,
    public=("amount", "state", "note"),
)


def crowd(count: int, seed: int = 1) -> sv.Reports:
    draws = np.random.default_rng(seed)
    table = {
        "x": draws.integers(0, 3, count),
        "y": draws.integers(0, 40, count),
        "state": draws.choice(["NY", "WA", "TX"], count),
        "note": [("è già", "", "a\0", "x" * 20)[each] for each in draws.integers(0, 4, count)],
        "amount": [f"{each / 100:.2f}" for each in draws.integers(-500, 100_000, count)],
    }
    return sv.simulate(PLAN, table, seed)


def everything(store: Store) -> sv.Reports:
    return sv.Reports.concat([reports for _, _, reports in store.read(PLAN, batch=37)])


@pytest.fixture
def filled(store: Store) -> Store:
    store.add_plan(PLAN)
    for seed in range(3):
        assert not store.append(PLAN, ids(50, seed), crowd(50, seed)).any()
    return store


CROWD = sv.Reports.concat([crowd(50, seed) for seed in range(3)])


def test_what_comes_in_comes_out(filled: Store, url: str) -> None:
    assert everything(filled) == CROWD
    assert filled.aggregate(PLAN).people == 150
    filled.close()
    with open_store(url) as again:
        assert everything(again) == CROWD


def test_another_public_value_under_an_id_is_another_report(filled: Store) -> None:
    same = crowd(50, 1)
    assert set(filled.append(PLAN, ids(50, 1), same).tolist()) == {Outcome.DUPLICATE}
    states = same.public["state"].values.copy()
    states[7] = "WA" if states[7] != "WA" else "NY"
    other = sv.Reports(
        PLAN.id, same.cohorts, same.payload, {**same.public, "state": PublicColumn(states)}
    )
    found = filled.append(PLAN, ids(50, 1), other)
    assert np.flatnonzero(found == Outcome.CONFLICT).tolist() == [7]
    assert filled.count(PLAN) == 150


def test_reports_without_their_public_columns_are_not_stored(store: Store) -> None:
    store.add_plan(PLAN)
    good = crowd(5)
    bare = sv.Reports(PLAN.id, good.cohorts, good.payload)
    wrong = {**good.public, "amount": PublicColumn(np.full(5, 100_000), 2)}
    for reports in (bare, sv.Reports(PLAN.id, good.cohorts, good.payload, wrong)):
        with pytest.raises(sv.CorruptReport):
            store.append(PLAN, ids(5), reports)
    assert store.count(PLAN) == 0


def _flip_last_byte(url: str, row: int) -> None:
    """Of what is stored of a report: a byte of its public part."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(path_of(url))) as db, db:
            query = "SELECT seq, rows, payload FROM parts WHERE seq > ? ORDER BY seq LIMIT 1"
            seq, rows, payload = db.execute(query, (row,)).fetchone()
            changed = bytearray(payload)
            changed[(row - (seq - rows) + 1) * PLAN.row_bytes - 1] ^= 1
            db.execute("UPDATE parts SET payload = ? WHERE seq = ?", (bytes(changed), seq))
        return
    flipped = (
        "payload = set_byte(payload, length(payload) - 1, 1 # get_byte(payload, length(payload) - "
        "1))"
    )
    chosen = "(SELECT seq FROM sottovoce_reports ORDER BY seq OFFSET %s LIMIT 1)"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"UPDATE sottovoce_reports SET {flipped} WHERE seq = {chosen}", (row,))


def test_the_checksum_covers_them(filled: Store, url: str) -> None:
    _flip_last_byte(url, 60)
    assert len(everything(filled)) == 149
    with pytest.raises(StoreError):
        filled.rebuild(PLAN)
    assert filled.set_aside(PLAN) == 1
    assert len(everything(filled)) == 149
    assert filled.rebuild(PLAN).people == 149


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_backups_keep_them(
    filled: Store, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backup(filled, tmp_path / "backup.db")
    to = (
        f"sqlite:///{tmp_path}/other.db"
        if target == "sqlite"
        else request.getfixturevalue("cluster").fresh_url()
    )
    with open_store(to) as other:
        restore(tmp_path / "backup.db", other)
        assert everything(other) == CROWD


def test_exports_have_real_columns(filled: Store, tmp_path: Path) -> None:
    assert export(filled, PLAN, tmp_path / "out") == 150
    (file,) = (tmp_path / "out").iterdir()
    table = pq.read_table(file)
    assert table.column_names == ["id", "cohort", "payload", "amount", "state", "note"]
    assert table.column("state").to_pylist() == CROWD.public["state"].values.tolist()
    assert table.column("amount").to_pylist() == CROWD.public["amount"].values.tolist()
    assert str(table.schema.field("amount").type) == "int64"
    assert table.schema.field("amount").metadata[b"sottovoce.public"] == b"2"
    assert sv.Reports.concat(stream(tmp_path / "out")) == CROWD
    export_file(filled, PLAN, tmp_path / "one.parquet")
    assert sv.Reports.read(tmp_path / "one.parquet") == CROWD


def test_an_empty_export_has_them_too(store: Store, tmp_path: Path) -> None:
    store.add_plan(PLAN)
    export_file(store, PLAN, tmp_path / "none.parquet")
    assert sv.Reports.read(tmp_path / "none.parquet") == sv.Reports.empty(PLAN)
