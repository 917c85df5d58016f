"""Which ids a SQLite store has taken, in sorted runs that are written once and never touched again.

Ids tell the minute and are random within it: an index that took each of them at once would be rewritten all over by
every commit. So the newest ids wait in memory (a restart finds them in the reports themselves), and go to the table
``runs`` when they are many, as sorted hashes with the sequence numbers they belong to. A run also says which minutes
its ids are of, so that a new id is looked for only in the runs of its own minute. Hashes only point to reports that may
have an id; whether one has is read there.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sottovoce.oracles.base import Integers
from sottovoce.store.base import ID_BYTES, Ids

RUN = 1 << 20  # ids that wait in memory before they are written
SHRINK = 8  # how much shorter than the run before it a run in memory is at least
SIEVE = 25  # bits that name a place in a sieve: it has 32 times as many places as a run has ids
FEW, MOST = 2, 16  # runs that stay in memory, 12 MiB each: as many as the last call needed, within these limits
LOADED = 1 << 17  # ids read at once

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS runs (upto INTEGER PRIMARY KEY, start INTEGER NOT NULL, minutes BLOB NOT NULL,
       hashes BLOB NOT NULL, offsets BLOB NOT NULL)""",
    "INSERT INTO settings (name, value) VALUES ('hash key', randomblob(32)) ON CONFLICT DO NOTHING",
)

Hashes = NDArray[np.uint64]
Minutes = NDArray[np.uint32]


class Hash:
    """Hashes of ids under a secret of the store, so that nobody can choose ids whose hashes are equal."""

    def __init__(self, key: bytes) -> None:
        self._key = np.frombuffer(key, "<u8").astype(np.uint64) | np.uint64(1)

    def __call__(self, ids: Ids) -> Hashes:
        halves = np.ascontiguousarray(ids).view("<u8").astype(np.uint64, copy=False)
        mixed: Hashes = (halves[:, 0] ^ self._key[3]) * self._key[0]
        mixed ^= mixed >> np.uint64(32)
        mixed += halves[:, 1]
        for factor in self._key[1:3]:
            mixed *= factor
            mixed ^= mixed >> np.uint64(31)
        return mixed


class Sieve:
    """Two bits for each hash, at the places that its beginning and its middle name.

    Of the hashes that do not occur it passes one in 250, so they are told apart without a look at the run.
    """

    def __init__(self) -> None:
        self._bits = np.zeros(1 << (SIEVE - 3), np.uint8)

    def add(self, hashes: Hashes) -> None:
        for start in (0, SIEVE):
            place, bit = _place(hashes, start)
            np.bitwise_or.at(self._bits, place, np.uint8(1) << bit)

    def passed(self, hashes: Hashes) -> Integers:
        """The places of those that may occur."""
        rows = np.arange(len(hashes))
        for start in (0, SIEVE):
            place, bit = _place(hashes[rows], start)
            rows = rows[np.flatnonzero(self._bits[place] >> bit & np.uint8(1))]
        return rows


def _place(hashes: Hashes, start: int) -> tuple[Integers, NDArray[np.uint8]]:
    """(byte of a sieve, bit in it) that the bits of each hash from ``start`` on name."""
    named = hashes << np.uint64(start) >> np.uint64(64 - SIEVE)
    return (named >> np.uint64(3)).view(np.int64), (named & np.uint64(7)).astype(np.uint8)


class Waiting:
    """The newest ids: hashes and sequence numbers in a few sorted runs, each much shorter than the one before."""

    def __init__(self) -> None:
        self._sieve = Sieve()
        self._runs: list[tuple[Hashes, Integers]] = []
        self._minutes = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def add(self, hashes: Hashes, minutes: Minutes, seqs: Integers) -> None:
        """Take in ids in any order."""
        if not len(hashes):
            return
        self._sieve.add(hashes)
        order = np.argsort(hashes)
        self._runs.append((hashes[order], seqs[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < SHRINK * len(self._runs[-1][0]):
            self._merge(2)
        if not np.isin(minutes, self._minutes).all():
            self._minutes = np.union1d(self._minutes, minutes)

    def _merge(self, count: int) -> None:
        """The last runs in one; a stable sort finds that they are sorted, and merges."""
        hashes, seqs = (np.concatenate(column) for column in zip(*self._runs[-count:], strict=True))
        order = np.argsort(hashes, kind="stable")
        self._runs[-count:] = [(hashes[order], seqs[order])]

    def find(self, asked: Hashes) -> list[tuple[int, int]]:
        """(place in ``asked``, sequence number) of all that are equal."""
        rows = self._sieve.passed(asked)
        return [(row, int(seqs[place])) for own, seqs in self._runs for row, place in _equal(own, asked, rows)]

    def sorted(self) -> tuple[Minutes, Hashes, Integers]:
        """Their minutes, and all of them in one run."""
        if len(self._runs) > 1:
            self._merge(len(self._runs))
        return self._minutes, *self._runs[0]


class Run:
    """A run that was written, as it is searched."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes
        self._sieve = Sieve()
        self._sieve.add(hashes)

    def matches(self, asked: Hashes) -> list[tuple[int, int]]:
        """(place in ``asked``, place in the run) of all that are equal."""
        return list(_equal(self._hashes, asked, self._sieve.passed(asked)))


class Register:
    """The ids of one SQLite store as one process knows them.

    :meth:`refresh`, :meth:`find` and :meth:`write_run` belong into one write transaction; :meth:`committed` comes after
    it. If the transaction fails nothing has changed here.
    """

    def __init__(self) -> None:
        self._hash: Hash | None = None
        self._cache: OrderedDict[int, Run] = OrderedDict()
        self._forget()

    def _forget(self) -> None:
        self._last = -1  # the last sequence number that is known here
        self._indexed = 0  # the last one in a run that was written
        self._waiting = Waiting()
        self._minutes = np.zeros(0, np.uint32)  # every minute of every run, increasing,
        self._runs = np.zeros(0, np.int64)  # and the run
        self._written: tuple[Minutes, Hashes] | None = None
        self._cache.clear()

    def _hashes(self, ids: Ids) -> Hashes:
        assert self._hash is not None
        return self._hash(ids)

    # -- in a transaction

    def refresh(self, db: sqlite3.Connection) -> int:
        """Take in what other processes wrote; the store's last sequence number."""
        self._written = None
        if self._hash is None:
            self._hash = Hash(db.execute("SELECT value FROM settings WHERE name = 'hash key'").fetchone()[0])
        last = int(db.execute("SELECT coalesce(max(seq), 0) FROM parts").fetchone()[0])
        if last != self._last:
            indexed = int(db.execute("SELECT coalesce(max(upto), 0) FROM runs").fetchone()[0])
            if last < self._last or indexed != self._indexed or self._last < 0:
                self._forget()
                for upto, minutes in db.execute("SELECT upto, minutes FROM runs"):
                    self._know_run(upto, np.frombuffer(minutes, "<u4"))
                self._last = self._indexed = indexed
            self._load(db)
            self._last = last
        return last

    def _load(self, db: sqlite3.Connection) -> None:
        query = "SELECT seq, rows, ids FROM parts WHERE seq > ? ORDER BY seq"
        ids: list[bytes] = []
        seqs: list[Integers] = []
        rows = 0
        for seq, count, some in db.execute(query, (self._last,)):
            ids.append(some)
            seqs.append(np.arange(seq - count + 1, seq + 1))
            rows += count
            if rows >= LOADED:
                self._wait(_joined(ids), np.concatenate(seqs))
                ids, seqs, rows = [], [], 0
        if ids:
            self._wait(_joined(ids), np.concatenate(seqs))

    def find(self, db: sqlite3.Connection, ids: Ids) -> list[tuple[int, int]]:
        """(row of ``ids``, sequence number of a report that may have its id), in any order."""
        hashes = self._hashes(ids)
        found = self._waiting.find(hashes)
        needed = self._runs_of(_minutes(ids))
        for upto in needed:
            found += _numbered(db, upto, self._run(db, upto).matches(hashes))
        while len(self._cache) > min(MOST, max(FEW, len(needed))):
            self._cache.popitem(last=False)
        return found

    def _runs_of(self, minutes: Minutes) -> list[int]:
        asked = np.unique(minutes)
        first, stop = np.searchsorted(self._minutes, asked), np.searchsorted(self._minutes, asked, "right")
        found = [self._runs[a:b] for a, b in zip(first.tolist(), stop.tolist(), strict=True)]
        return sorted(set(np.concatenate(found).tolist())) if found else []

    def _run(self, db: sqlite3.Connection, upto: int) -> Run:
        if upto not in self._cache:
            data = db.execute("SELECT hashes FROM runs WHERE upto = ?", (upto,)).fetchone()[0]
            if len(self._cache) >= MOST:
                self._cache.popitem(last=False)
            self._cache[upto] = Run(np.frombuffer(data, "<u8"))
        self._cache.move_to_end(upto)
        return self._cache[upto]

    def write_run(self, db: sqlite3.Connection) -> None:
        """Write the ids that wait, if they are many."""
        if len(self._waiting) < RUN:
            return
        minutes, hashes, seqs = self._waiting.sorted()
        start = self._indexed + 1
        columns = (minutes.astype("<u4"), hashes.astype("<u8"), (seqs - start).astype("<u4"))
        insert = "INSERT INTO runs (upto, start, minutes, hashes, offsets) VALUES (?, ?, ?, ?, ?)"
        db.execute(insert, (self._last, start, *(column.tobytes() for column in columns)))
        self._written = minutes, hashes

    # -- after it

    def committed(self, ids: Ids) -> None:
        """The transaction is durable, and the reports with these ids are the last ones in the store."""
        if self._written is not None:
            minutes, hashes = self._written
            self._know_run(self._last, minutes)
            self._cache[self._last] = Run(hashes)
            self._indexed = self._last
            self._waiting = Waiting()
        self._wait(ids, np.arange(self._last + 1, self._last + 1 + len(ids)))
        self._last += len(ids)

    def _wait(self, ids: Ids, seqs: Integers) -> None:
        self._waiting.add(self._hashes(ids), _minutes(ids), seqs)

    def _know_run(self, upto: int, minutes: Minutes) -> None:
        together = np.concatenate([self._minutes, minutes])
        order = np.argsort(together, kind="stable")
        self._minutes = together[order]
        self._runs = np.concatenate([self._runs, np.full(len(minutes), upto)])[order]


def _joined(ids: list[bytes]) -> Ids:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, ID_BYTES)


def _minutes(ids: Ids) -> Minutes:
    """The first four of the six bytes that tell the time: what is left of them is always zero."""
    return np.ascontiguousarray(ids[:, :4]).view(">u4").reshape(-1).astype(np.uint32)


def _equal(hashes: Hashes, asked: Hashes, rows: Integers) -> Iterator[tuple[int, int]]:
    """(one of ``rows``, place in the sorted ``hashes``) wherever what is asked there is equal."""
    some = asked[rows]
    first = np.searchsorted(hashes, some)
    for hit in np.flatnonzero(hashes[np.minimum(first, len(hashes) - 1)] == some).tolist():
        place = int(first[hit])
        while place < len(hashes) and hashes[place] == some[hit]:
            yield int(rows[hit]), place
            place += 1


def _numbered(db: sqlite3.Connection, upto: int, matches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in a run as sequence numbers."""
    if not matches:
        return []
    start, data = db.execute("SELECT start, offsets FROM runs WHERE upto = ?", (upto,)).fetchone()
    offsets = np.frombuffer(data, "<u4")
    return [(row, start + int(offsets[place])) for row, place in matches]
