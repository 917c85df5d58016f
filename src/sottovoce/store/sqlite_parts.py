"""The rows of a SQLite store's table ``parts``: how reports are laid out, read, checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.device.assignment import ID_BYTES
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.store.base import Ids, Stretch
from sottovoce.store.checksums import CHECKSUM_BYTES, checksum_of, checksums
from sottovoce.store.duplicates import DAMAGED, Content

COHORT_BYTES = 4
MAX_PART_REPORTS = 1 << 14  # reports in one part
# and their bytes, unless one alone has more: a part is read for each old report sent again
MOST_PART_BYTES = 1 << 17
Columns = Sequence[bytes]  # ids, cohorts, payloads, checksums
EMPTY: Columns = (b"", b"", b"", b"")


def columns_of(ids: Ids, reports: Reports) -> Columns:
    """Reports as a part holds them."""
    cohorts = reports.cohorts.astype("<u4", copy=False)
    checks = checksums(ids, reports).astype("<u4", copy=False)
    return ids.tobytes(), cohorts.tobytes(), reports.payload.tobytes(), checks.tobytes()


def insert_part(db: sqlite3.Connection, seq: int, plan: int, people: int, columns: Columns) -> None:
    """Store one part."""
    insert = """INSERT INTO parts (seq, plan, rows, people, ids, cohorts, payload, checksums)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
    db.execute(insert, (seq, plan, len(columns[0]) // ID_BYTES, people, *columns))


@dataclass(frozen=True)
class Rows:
    """Reports of a plan as they were read, and which of them are as they were stored."""

    ids: Ids
    reports: Reports
    is_good: NDArray[np.bool_]

    @classmethod
    def read(cls, plan_id: str, width: int, columns: Columns) -> Rows:
        """From columns that are as long as they must be; ``width`` is that of a payload."""
        ids, cohorts, payload, checks = (
            np.frombuffer(bytearray(column), np.uint8) for column in columns
        )
        ids = ids.reshape(-1, ID_BYTES)
        numbers = cohorts.view("<u4").astype(np.uint32, copy=False)
        reports = Reports(plan_id, numbers, payload.reshape(len(ids), width))
        return cls(ids, reports, checksums(ids, reports) == checks.view("<u4"))

    @property
    def good(self) -> tuple[Ids, Reports]:
        """Those that are."""
        if self.is_good.all():
            return self.ids, self.reports
        kept = self.is_good
        reports = Reports(
            self.reports.plan_id, self.reports.cohorts[kept], self.reports.payload[kept]
        )
        return self.ids[kept], reports


def widths(width: int) -> tuple[int, ...]:
    """The bytes of one report in each column, given those of its payload."""
    return ID_BYTES, COHORT_BYTES, width, CHECKSUM_BYTES


def rows_per_part(width: int) -> int:
    """How many reports go into one part, given the bytes of a payload."""
    return max(1, min(MAX_PART_REPORTS, MOST_PART_BYTES // sum(widths(width))))


def is_whole(rows: int, width: int, columns: Columns) -> bool:
    """Whether all columns are as long as so many reports."""
    return all(
        len(column) == rows * size for column, size in zip(columns, widths(width), strict=True)
    )


def good_rows(plan: Plan, rows: int, columns: Columns) -> NDArray[np.bool_]:
    """Which reports of a part are as they were stored: none if its columns have other lengths."""
    width = plan.row_bytes
    if not is_whole(rows, width, columns):
        return np.zeros(rows, np.bool_)
    return Rows.read(plan.id, width, columns).is_good


def next_stretch(
    db: sqlite3.Connection, plan: Plan, number: int, after: int, batch: int
) -> Stretch | None:
    """The next reports of a plan, at most ``batch`` of them; None if there are none."""
    query = (
        "SELECT seq, rows, ids, cohorts, payload, checksums FROM parts WHERE plan = ? AND seq > ? "
        "ORDER BY seq"
    )
    width = plan.row_bytes
    pieces: tuple[list[bytes], ...] = ([], [], [], [])
    last, damaged = after, 0
    with closing(db.execute(query, (number, after))) as cursor:
        for seq, rows, *columns in cursor:
            start = max(0, rows - (seq - after))
            stop = min(rows, start + batch)
            last = seq - rows + stop
            batch -= stop - start
            if is_whole(rows, width, columns):
                for piece, column, size in zip(pieces, columns, widths(width), strict=True):
                    piece.append(column[start * size : stop * size])
            else:
                damaged += stop - start
            if not batch:
                break
    if last == after:
        return None
    found = Rows.read(plan.id, width, [b"".join(piece) for piece in pieces])
    return Stretch(last, *found.good, damaged + int(np.count_nonzero(~found.is_good)))


class Contents:
    """What a store has under an id, given the number it may have; ask in increasing order.

    A part is read once, however many are asked for, and only the reports that are asked for are
    checked.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._last = self._rows = self._number = 0
        self._plan_id = ""
        self._columns: Columns = ()
        self._is_whole = False

    def at(self, seq: int, key: bytes) -> Content | None:
        """The content under the id ``key``; None if this number has another id, or is gone."""
        if seq > self._last:
            self._load(seq)
        row = self._rows - 1 - (self._last - seq)
        if row < 0 or self._cell(0, row) != key:
            return None
        cohort = int.from_bytes(self._cell(1, row), "little")
        payload = self._cell(2, row)
        checksum = int.from_bytes(self._cell(3, row), "little")
        if not self._is_whole or checksum_of(self._plan_id, key, cohort, payload) != checksum:
            return DAMAGED
        return self._number, cohort, payload

    def _load(self, seq: int) -> None:
        query = """SELECT seq, rows, number, id, ids, cohorts, payload, checksums FROM parts
            JOIN plans ON plan = number WHERE seq >= ? ORDER BY seq LIMIT 1"""
        found = self._db.execute(query, (seq,)).fetchone()
        if found is None:
            self._last, self._rows = seq, 0
            return
        self._last, self._rows, self._number, self._plan_id, *self._columns = found
        width = len(self._columns[2]) // max(1, self._rows)
        self._is_whole = is_whole(self._rows, width, self._columns)

    def _cell(self, column: int, row: int) -> bytes:
        width = len(self._columns[column]) // self._rows
        return self._columns[column][row * width : (row + 1) * width]
