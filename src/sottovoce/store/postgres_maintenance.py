"""Reports on a PostgreSQL server as they are read and checked, and what is taken away from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg

from sottovoce.device.assignment import ID_BYTES
from sottovoce.ground.errors import StoreError
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.store.base import Stretch, new_version
from sottovoce.store.checksums import checksum_of, checksums

Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[int, bytes, int, bytes, int]  # sequence number, id, cohort, payload, checksum

_BATCH = """SELECT seq, id, cohort, payload, checksum FROM sottovoce_reports
    WHERE plan = %s AND seq > %s ORDER BY seq LIMIT %s"""
_COLUMNS = f"""SELECT max(seq), bool_and(length(payload) = %s AND cohort >> 32 = 0),
    string_agg(uuid_send(id), ''),
    string_agg(int8send(cohort), ''), string_agg(payload, ''), string_agg(int8send(checksum), '')
    FROM ({_BATCH}) AS batch"""
_READ = 1 << 14  # reports that are looked at one by one


def next_stretch(db: Connection, plan: Plan, number: int, after: int, batch: int) -> Stretch | None:
    """The next reports of a plan, at most ``batch`` of them: the server joins them, which is faster
    than row by row.
    """
    width = plan.row_bytes
    found = db.execute(_COLUMNS, (width, number, after, batch), binary=True).fetchone()
    assert found is not None
    last, has_shape, *columns = found
    if last is None:
        return None
    if not has_shape:
        return _checked_one_by_one(db, plan, number, after, batch)
    ids, cohorts, payload, checks = (
        np.frombuffer(bytearray(column), np.uint8) for column in columns
    )
    ids = ids.reshape(-1, ID_BYTES)
    reports = Reports(
        plan.id, cohorts.view(">i8").astype(np.uint32), payload.reshape(len(ids), width)
    )
    is_good = checksums(ids, reports) == checks.view(">i8")
    damaged = int(np.count_nonzero(~is_good))
    if damaged:
        reports = Reports(plan.id, reports.cohorts[is_good], reports.payload[is_good])
        ids = ids[is_good]
    return Stretch(last, ids, reports, damaged)


def _checked_one_by_one(db: Connection, plan: Plan, number: int, after: int, batch: int) -> Stretch:
    """The same where a payload is not as long as it must be."""
    rows = [_row(row) for row in db.execute(_BATCH, (number, after, batch), binary=True)]
    good = [row for row in rows if _is_good(plan, row)]
    ids = np.frombuffer(bytearray().join(row[1] for row in good), np.uint8).reshape(-1, ID_BYTES)
    cohorts = np.array([row[2] for row in good], np.uint32)
    payload = np.frombuffer(bytearray().join(row[3] for row in good), np.uint8).reshape(
        len(good), -1
    )
    if not good:
        payload = np.zeros((0, plan.row_bytes), np.uint8)
    return Stretch(rows[-1][0], ids, Reports(plan.id, cohorts, payload), len(rows) - len(good))


def _row(row: tuple[Any, ...]) -> Row:
    seq, id, cohort, payload, checksum = row
    return seq, id.bytes, cohort, bytes(payload), checksum


def _is_good(plan: Plan, row: Row) -> bool:
    _, id, cohort, payload, checksum = row
    return len(payload) == plan.row_bytes and checksum_of(plan.id, id, cohort, payload) == checksum


def set_aside(db: Connection, plan: Plan, number: int) -> int:
    """Move a plan's damaged reports to the table ``set_aside``; how many they were."""
    keep = """INSERT INTO sottovoce_set_aside (plan, seq, rows, ids, cohorts, payload, checksums)
        VALUES (%s, %s, 1, %s, %s, %s, %s)"""
    damaged = list(_damaged(db, plan, number))
    for seq, id, cohort, payload, checksum in damaged:
        cells = (
            cohort.to_bytes(8, "little", signed=True),
            payload,
            checksum.to_bytes(8, "little", signed=True),
        )
        db.execute(keep, (number, seq, id, *cells))
        db.execute("DELETE FROM sottovoce_reports WHERE plan = %s AND seq = %s", (number, seq))
    if damaged:
        change = (
            "UPDATE sottovoce_plans SET set_aside = set_aside + %s, version = %s WHERE number = %s"
        )
        db.execute(change, (len(damaged), new_version(), number))
    return len(damaged)


def _damaged(db: Connection, plan: Plan, number: int) -> Iterator[Row]:
    last = 0
    while True:
        found = next_stretch(db, plan, number, last, _READ)
        if found is None:
            return
        if found.damaged:
            rows = db.execute(_BATCH, (number, last, _READ), binary=True).fetchall()
            yield from (row for row in map(_row, rows) if not _is_good(plan, row))
        last = found.last


def delete(db: Connection, number: int) -> None:
    """Delete a survey and all that is kept of it."""
    _delete_reports(db, number)
    db.execute("DELETE FROM sottovoce_checkpoints WHERE plan = %s", (number,))
    db.execute("DELETE FROM sottovoce_plans WHERE number = %s", (number,))


def keep_sums(db: Connection, number: int) -> None:
    """Delete the reports of a closed survey whose checkpoint holds them all."""
    query = """SELECT 1 FROM sottovoce_plans plans JOIN sottovoce_checkpoints saved
        ON saved.plan = number AND saved.version = plans.version WHERE number = %s AND closed
        AND upto >= (
            SELECT coalesce(max(seq), 0) FROM sottovoce_reports own WHERE own.plan = number)"""
    if db.execute(query, (number,)).fetchone() is None:
        raise StoreError("store: the survey changed meanwhile; nothing was deleted, try again")
    version = new_version()
    db.execute(
        "UPDATE sottovoce_plans SET only_sums = true, version = %s WHERE number = %s",
        (version, number),
    )
    db.execute("UPDATE sottovoce_checkpoints SET version = %s WHERE plan = %s", (version, number))
    _delete_reports(db, number)


def _delete_reports(db: Connection, number: int) -> None:
    db.execute("DELETE FROM sottovoce_reports WHERE plan = %s", (number,))
    db.execute("DELETE FROM sottovoce_set_aside WHERE plan = %s", (number,))


def erase(db: Connection) -> bool:
    """Write the tables anew without what was deleted; whether nobody kept us from it."""
    try:
        for table in ("reports", "set_aside", "checkpoints", "plans"):
            db.execute(f"VACUUM FULL sottovoce_{table}")
    except (
        psycopg.errors.OperationalError
    ):  # a lock that was not given, a disk without room for a second table
        return False
    return True
