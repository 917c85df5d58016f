"""Which ids a SQLite store has taken, in sorted runs that are written once and never touched again.

Ids tell the minute and are random within it: an index that took each of them at once would be
rewritten all over by every commit. So the newest ids wait in memory (a restart finds them in the
reports themselves). When they are many they are written as a run: their hashes, sorted and cut into
pieces by their first bits, and the sequence numbers they belong to. A run says which minutes its
ids are of, so that a new id is looked for only in the runs of its own minute, and for these a
filter in memory tells most ids apart. A hash that is found only points to a report that may have an
id; whether it has is read there.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sottovoce.device.assignment import ID_BYTES
from sottovoce.oracles.base import Integers
from sottovoce.store.base import Ids
from sottovoce.store.duplicate_filter import DuplicateFilter, Hash, Hashes, Probe

RUN = 1 << 19  # ids that wait in memory before they are written
SHRINK = 8  # how much shorter than the run before it a run in memory is at least
PIECE_BITS = 8  # the first of a hash, that name its piece
# that stay in memory, 2 MiB each: as many as the last call needed, within these limits
MIN_FILTERS, MAX_FILTERS = 2, 128
LOADED = 1 << 17  # ids read at once

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS runs (upto INTEGER PRIMARY KEY, start INTEGER NOT NULL, minutes "
    "BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS pieces (place INTEGER PRIMARY KEY, hashes BLOB NOT NULL, offsets "
    "BLOB NOT NULL)",
    "INSERT INTO settings (name, value) VALUES ('hash key', randomblob(32)) ON CONFLICT DO NOTHING",
    "INSERT INTO settings (name, value) VALUES ('register', randomblob(16)) ON CONFLICT DO NOTHING",
)
_GENERATION = "SELECT value FROM settings WHERE name = 'register'"

Minutes = NDArray[np.uint32]


class WaitingIds:
    """The newest ids: hashes and numbers in a few sorted runs, each much shorter than the last."""

    def __init__(self) -> None:
        self.duplicate_filter = DuplicateFilter(RUN)
        self.minutes = np.zeros(0, np.uint32)
        self._runs: list[tuple[Hashes, Integers]] = []

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def add(self, hashes: Hashes, minutes: Minutes, seqs: Integers) -> None:
        """Take in ids in any order."""
        if not len(hashes):
            return
        self.duplicate_filter.add(Probe(hashes))
        order = np.argsort(hashes)
        self._runs.append((hashes[order], seqs[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < SHRINK * len(self._runs[-1][0]):
            self._merge(2)
        if not np.isin(minutes, self.minutes).all():
            self.minutes = np.union1d(self.minutes, minutes)

    def _merge(self, count: int) -> None:
        """The last runs in one; a stable sort finds that they are sorted, and merges."""
        hashes, seqs = (np.concatenate(column) for column in zip(*self._runs[-count:], strict=True))
        order = np.argsort(hashes, kind="stable")
        self._runs[-count:] = [(hashes[order], seqs[order])]

    def find(self, asked: Hashes, probe: Probe) -> list[tuple[int, int]]:
        """(place in ``asked``, sequence number) of all that are equal."""
        rows = self.duplicate_filter.passed(probe)
        return [found for hashes, seqs in self._runs for found in _equal(asked, rows, hashes, seqs)]

    def sorted(self) -> tuple[Hashes, Integers]:
        """All of them in one run."""
        if len(self._runs) > 1:
            self._merge(len(self._runs))
        return self._runs[0]


class IdIndex:
    """The ids of one SQLite store as one process knows them.

    :meth:`refresh`, :meth:`find` and :meth:`write_run` belong into one write transaction;
    :meth:`committed` comes after it. If the transaction fails nothing has changed here.
    """

    def __init__(self) -> None:
        self._hash: Hash | None = None
        self._sieves: OrderedDict[int, DuplicateFilter] = OrderedDict()
        self._forget()

    def _forget(self) -> None:
        self._generation = b""  # drawn anew whenever the runs were written anew
        self._last = -1  # the last sequence number that is known here
        self._indexed = 0  # the last one in a run that was written
        self._waiting = WaitingIds()
        self._minutes = np.zeros(0, np.uint32)  # every minute of every run, increasing,
        self._runs = np.zeros(0, np.int64)  # and the run
        self._has_written = False
        self._sieves.clear()

    # -- in a transaction

    def begin(self) -> None:
        """A transaction begins; the last one may have failed."""
        self._has_written = False

    def refresh(self, db: sqlite3.Connection) -> int:
        """Take in what other processes wrote; the store's last sequence number."""
        last = int(db.execute("SELECT coalesce(max(seq), 0) FROM parts").fetchone()[0])
        generation = bytes(db.execute(_GENERATION).fetchone()[0])
        if last != self._last or generation != self._generation:
            indexed = int(db.execute("SELECT coalesce(max(upto), 0) FROM runs").fetchone()[0])
            is_new = last < self._last or indexed != self._indexed or generation != self._generation
            if is_new or self._last < 0:
                self._forget()
                self._generation, self._hash = generation, _hash(db)
                for upto, minutes in db.execute("SELECT upto, minutes FROM runs"):
                    self._know_run(upto, np.frombuffer(minutes, "<u4"))
                self._last = self._indexed = indexed
            self._load(db)
            self._last = last
        return last

    def _load(self, db: sqlite3.Connection) -> None:
        for ids, seqs in _stored_ids(db, self._last):
            self._wait(ids, seqs)

    @classmethod
    def rebuild(cls, db: sqlite3.Connection) -> None:
        """Write all runs anew, from the ids of the reports that are there."""
        db.execute("DELETE FROM runs")
        db.execute("DELETE FROM pieces")
        db.execute("UPDATE settings SET value = randomblob(16) WHERE name = 'register'")
        new = cls()
        new._hash = _hash(db)
        new._last = 0
        for ids, seqs in _stored_ids(db, 0):
            new._wait(ids, seqs)
            new._last = int(seqs[-1])
            if len(new._waiting) >= RUN:
                new.write_run(db)
                new._indexed, new._waiting = new._last, WaitingIds()

    def find(self, db: sqlite3.Connection, ids: Ids) -> list[tuple[int, int]]:
        """(row of ``ids``, sequence number of a report that may have its id), in any order."""
        hashes = self._hashes(ids)
        probe = Probe(hashes)
        found = self._waiting.find(hashes, probe)
        needed = self._runs_of(minutes_of(ids))
        for upto in needed:
            rows = self._duplicate_filter(db, upto).passed(probe)
            if len(rows):
                found += _in_run(db, upto, hashes, rows)
        while len(self._sieves) > min(MAX_FILTERS, max(MIN_FILTERS, len(needed))):
            self._sieves.popitem(last=False)
        return found

    def _runs_of(self, minutes: Minutes) -> list[int]:
        asked = np.unique(minutes)
        first, stop = (
            np.searchsorted(self._minutes, asked),
            np.searchsorted(self._minutes, asked, "right"),
        )
        found = [self._runs[a:b] for a, b in zip(first.tolist(), stop.tolist(), strict=True)]
        return sorted(set(np.concatenate(found).tolist())) if found else []

    def _duplicate_filter(self, db: sqlite3.Connection, upto: int) -> DuplicateFilter:
        if upto not in self._sieves:
            query = "SELECT hashes FROM pieces WHERE place BETWEEN ? AND ?"
            pieces = db.execute(query, (_place(upto, 0), _place(upto + 1, 0) - 1))
            hashes = np.frombuffer(b"".join(piece for (piece,) in pieces), "<u8")
            if len(self._sieves) >= MAX_FILTERS:
                self._sieves.popitem(last=False)
            self._sieves[upto] = DuplicateFilter(len(hashes))
            self._sieves[upto].add(Probe(hashes))
        self._sieves.move_to_end(upto)
        return self._sieves[upto]

    def write_run(self, db: sqlite3.Connection) -> None:
        """Write the ids that wait, if they are many."""
        if len(self._waiting) < RUN:
            return
        hashes, seqs = self._waiting.sorted()
        start = self._indexed + 1
        minutes = self._waiting.minutes.astype("<u4").tobytes()
        db.execute(
            "INSERT INTO runs (upto, start, minutes) VALUES (?, ?, ?)", (self._last, start, minutes)
        )
        cuts = np.searchsorted(hashes >> np.uint64(64 - PIECE_BITS), np.arange(1, 1 << PIECE_BITS))
        columns = (
            np.split(hashes.astype("<u8"), cuts),
            np.split((seqs - start).astype("<u4"), cuts),
        )
        for number, pieces in enumerate(zip(*columns, strict=True)):
            row = (_place(self._last, number), *(piece.tobytes() for piece in pieces))
            db.execute("INSERT INTO pieces (place, hashes, offsets) VALUES (?, ?, ?)", row)
        self._has_written = True

    # -- after it

    def committed(self, ids: Ids) -> None:
        """The transaction is durable; the reports with these ids are the last in the store."""
        if self._has_written:
            self._know_run(self._last, self._waiting.minutes)
            self._sieves[self._last] = self._waiting.duplicate_filter
            self._indexed = self._last
            self._waiting = WaitingIds()
        self._wait(ids, np.arange(self._last + 1, self._last + 1 + len(ids)))
        self._last += len(ids)

    def _wait(self, ids: Ids, seqs: Integers) -> None:
        self._waiting.add(self._hashes(ids), minutes_of(ids), seqs)

    def _hashes(self, ids: Ids) -> Hashes:
        assert self._hash is not None
        return self._hash(ids)

    def _know_run(self, upto: int, minutes: Minutes) -> None:
        together = np.concatenate([self._minutes, minutes])
        order = np.argsort(together, kind="stable")
        self._minutes = together[order]
        self._runs = np.concatenate([self._runs, np.full(len(minutes), upto)])[order]


def _hash(db: sqlite3.Connection) -> Hash:
    return Hash(db.execute("SELECT value FROM settings WHERE name = 'hash key'").fetchone()[0])


def _stored_ids(db: sqlite3.Connection, after: int) -> Iterator[tuple[Ids, Integers]]:
    """The ids of reports and their numbers, in order; a part of another length has none."""
    query = "SELECT seq, rows, ids FROM parts WHERE seq > ? ORDER BY seq"
    ids: list[bytes] = []
    seqs: list[Integers] = []
    rows = 0
    for seq, count, some in db.execute(query, (after,)):
        if count and len(some) == count * ID_BYTES:
            ids.append(some)
            seqs.append(np.arange(seq - count + 1, seq + 1))
            rows += count
        if rows >= LOADED:
            yield _joined(ids), np.concatenate(seqs)
            ids, seqs, rows = [], [], 0
    if ids:
        yield _joined(ids), np.concatenate(seqs)


def _joined(ids: list[bytes]) -> Ids:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, ID_BYTES)


def minutes_of(ids: Ids) -> Minutes:
    """The first four of the six bytes that tell the time: what is left of them is always zero."""
    return np.ascontiguousarray(ids[:, :4]).view(">u4").reshape(-1).astype(np.uint32)


def _place(upto: int, piece: int) -> int:
    """The key of a run's piece."""
    return upto << PIECE_BITS | piece


def _in_run(
    db: sqlite3.Connection, upto: int, asked: Hashes, rows: Integers
) -> list[tuple[int, int]]:
    """(one of ``rows``, sequence number) wherever the run holds what is asked there."""
    start = db.execute("SELECT start FROM runs WHERE upto = ?", (upto,)).fetchone()[0]
    pieces = asked[rows] >> np.uint64(64 - PIECE_BITS)
    found: list[tuple[int, int]] = []
    for number in np.unique(pieces).tolist():
        query = "SELECT hashes, offsets FROM pieces WHERE place = ?"
        hashes, offsets = db.execute(query, (_place(upto, number),)).fetchone()
        seqs = np.frombuffer(offsets, "<u4") + np.int64(start)
        found += _equal(asked, rows[pieces == number], np.frombuffer(hashes, "<u8"), seqs)
    return found


def _equal(
    asked: Hashes, rows: Integers, hashes: Hashes, seqs: Integers
) -> Iterator[tuple[int, int]]:
    """(one of ``rows``, sequence number) wherever what is asked is among the sorted ``hashes``."""
    some = asked[rows]
    first, stop = np.searchsorted(hashes, some), np.searchsorted(hashes, some, "right")
    for hit in np.flatnonzero(first < stop).tolist():
        for place in range(first[hit], stop[hit]):
            yield int(rows[hit]), int(seqs[place])
