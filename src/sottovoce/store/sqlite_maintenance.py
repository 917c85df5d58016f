"""What is taken away from a SQLite store: damaged reports, surveys; each in one transaction."""

from __future__ import annotations

import sqlite3
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import StoreError
from sottovoce.protocol.plan import Plan
from sottovoce.store.base import new_version
from sottovoce.store.id_index import IdIndex
from sottovoce.store.sqlite_parts import EMPTY, Columns, good_rows, insert_part, widths

_PARTS = """SELECT seq, rows, people, ids, cohorts, payload, checksums FROM parts
    WHERE plan = ? AND seq > ? ORDER BY seq LIMIT 1"""


def set_aside(db: sqlite3.Connection, plan: Plan, number: int) -> int:
    """Move a plan's damaged reports to the table ``set_aside``; how many they were.

    What is left of a part keeps its sequence numbers. Its last number stays taken, by a part
    without reports if need be, so that no later report gets a number that was read already.
    """
    width = plan.row_bytes
    total, last = 0, 0
    while (found := db.execute(_PARTS, (number, last)).fetchone()) is not None:
        last, rows, people, *columns = found
        is_good = good_rows(plan, rows, columns)
        if is_good.all():
            continue
        total += int(np.count_nonzero(~is_good))
        db.execute("DELETE FROM parts WHERE seq = ?", (last,))
        if not is_good.any():
            _keep_aside(db, number, last, rows, columns)
        for start, stop in _runs(is_good):
            sizes = widths(width)
            cut = [
                column[start * size : stop * size]
                for column, size in zip(columns, sizes, strict=True)
            ]
            after = rows - stop  # reports of the part that follow
            if is_good[start]:
                insert_part(db, last - after, number, people - after, cut)
            elif is_good.any():
                _keep_aside(db, number, last - after, stop - start, cut)
        if rows and not is_good[-1]:
            insert_part(db, last, number, people, EMPTY)
    if total:
        change = "UPDATE plans SET set_aside = set_aside + ?, version = ? WHERE number = ?"
        db.execute(change, (total, new_version(), number))
        IdIndex.rebuild(db)
    return total


def _runs(is_good: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, behind the last) of the rows that follow each other and are all good, or all bad."""
    cuts = np.flatnonzero(is_good[1:] != is_good[:-1]) + 1
    return list(pairwise([0, *cuts.tolist(), len(is_good)]))


def _keep_aside(db: sqlite3.Connection, number: int, seq: int, rows: int, columns: Columns) -> None:
    insert = """INSERT INTO set_aside (plan, seq, rows, ids, cohorts, payload, checksums)
        VALUES (?, ?, ?, ?, ?, ?, ?)"""
    db.execute(insert, (number, seq, rows, *columns))


def delete(db: sqlite3.Connection, number: int) -> None:
    """Delete a survey and all that is kept of it."""
    _delete_reports(db, number)
    db.execute("DELETE FROM checkpoints WHERE plan = ?", (number,))
    db.execute("DELETE FROM plans WHERE number = ?", (number,))
    IdIndex.rebuild(db)


def keep_sums(db: sqlite3.Connection, number: int) -> None:
    """Delete the reports of a closed survey whose checkpoint holds them all."""
    query = """SELECT 1 FROM plans JOIN checkpoints saved
        ON saved.plan = number AND saved.version = plans.version WHERE number = ? AND closed
        AND upto >= (SELECT coalesce(max(seq), 0) FROM parts WHERE parts.plan = number)"""
    if db.execute(query, (number,)).fetchone() is None:
        raise StoreError("store: the survey changed meanwhile; nothing was deleted, try again")
    version = new_version()
    db.execute("UPDATE plans SET only_sums = 1, version = ? WHERE number = ?", (version, number))
    db.execute("UPDATE checkpoints SET version = ? WHERE plan = ?", (version, number))
    _delete_reports(db, number)
    IdIndex.rebuild(db)


def _delete_reports(db: sqlite3.Connection, number: int) -> None:
    db.execute("DELETE FROM parts WHERE plan = ?", (number,))
    db.execute("DELETE FROM set_aside WHERE plan = ?", (number,))


def erase(db: sqlite3.Connection) -> bool:
    """Write the file anew without what was deleted, and empty the log; whether it could be."""
    try:
        db.execute("VACUUM")
        is_busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except (
        sqlite3.OperationalError
    ):  # no room for a second file, or another process writes all the time
        return False
    return not is_busy
