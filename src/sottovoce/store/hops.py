"""Where a hop keeps its batches until the next one has them: a SQLite file of its own.

Onions are kept by their bytes alone, in an index without row numbers: no query tells the order in
which they came. While they wait, SQLite's log beside the file does, and where they lie in its
pages. What leaves is written here first, so that it leaves once more as it was
after a crash. What was acknowledged is deleted and overwritten.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from threading import RLock
from typing import Any, Self

from sottovoce.ground.errors import BatchClosed, InvalidInput, UnknownPlan
from sottovoce.store.sqlite_file import connect, translated
from sottovoce.store.urls import SqliteAddress, kind_of

HOP_APPLICATION = 0x73686F70  # "shop": shuffling hop
HOP_VERSION = 1
REASON = "reason"  # under which a refused batch's is noted

_SCHEMA = (
    """CREATE TABLE batches (
       plan TEXT PRIMARY KEY, state TEXT NOT NULL, closes INTEGER, counts TEXT NOT NULL)
       WITHOUT ROWID""",
    """CREATE TABLE onions (plan TEXT NOT NULL, onion BLOB NOT NULL, PRIMARY KEY (plan, onion))
       WITHOUT ROWID""",
    # chunks are large: their keys are apart from them, and data comes last, so that a look at many
    # rows reads none of it
    """CREATE TABLE incoming (
       plan TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, count INTEGER NOT NULL,
       data BLOB NOT NULL, PRIMARY KEY (plan, kind, number))""",
    """CREATE TABLE outgoing (
       plan TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL,
       taken INTEGER NOT NULL DEFAULT 0, data BLOB NOT NULL, PRIMARY KEY (plan, kind, number))""",
    """CREATE TABLE notes (
       plan TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (plan, name))
       WITHOUT ROWID""",
    f"PRAGMA application_id = {HOP_APPLICATION}",
    f"PRAGMA user_version = {HOP_VERSION}",
)


class BatchState(StrEnum):
    """How far a batch has come at a hop."""

    COLLECTING = "collecting"  # it takes onions
    CLOSED = "closed"  # it takes no more, and is being opened
    MIXED = "mixed"  # what leaves is kept, and is being sent
    SENT = "sent"  # the next hop has it; fakes may have to be opened
    DONE = "done"  # nothing of it is left here
    REFUSED = "refused"  # it was too small, or not as it must be; nothing was passed on


@dataclass(frozen=True)
class BatchStatus:
    """A batch as whoever runs a hop sees it."""

    plan_id: str
    state: BatchState
    closes: int | None  # unix time, of a hop that takes onions
    waiting: int  # onions that are here
    counts: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None  # why it was refused

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan_id,
            "state": str(self.state),
            "closes": self.closes,
            "waiting": self.waiting,
            **self.counts,
            **({} if self.reason is None else {"reason": self.reason}),
        }


class HopStore:
    """The batches of one hop. Threads may share it; another process may look, and not write.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with HopStore(f"sqlite:///{folder}/hop.db") as store:
    ...         store.begin("00" * 32)
    ...         store.add_onions("00" * 32, [b"one", b"two", b"one"])
    ...         store.status("00" * 32).waiting
    2
    """

    def __init__(self, url: str, create: bool = True) -> None:
        if kind_of(url) != "sqlite":
            raise InvalidInput("store: a hop keeps its batches in sqlite:///FILE")
        address = SqliteAddress.parse(url)
        self._path = address.path
        self._lock = RLock()
        if not self._path.parent.is_dir() or (not create and not self._path.is_file()):
            raise InvalidInput(f"store ({self._path}) must be a file, or lie in a folder, there is")
        if not self._path.exists():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with translated(self._path):
            self._db = connect(self._path)
            try:
                self._prepare()
                if create:  # it is to be worked on, and a crash may have come before it
                    self._forget()
                if address.most_pages is not None:
                    self._db.execute(f"PRAGMA max_page_count = {address.most_pages}")
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != HOP_APPLICATION and (application or tables):
            raise InvalidInput(
                f"store ({self._path}) must be a new file, or one that a hop keeps its batches in"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        with self._writing() as db:
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _SCHEMA:
                    db.execute(statement)
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != HOP_VERSION:
            raise InvalidInput(
                f"store ({self._path}) has version {version}; this sottovoce reads version "
                f"{HOP_VERSION}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Closing it again changes nothing."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is durable when the block is left, or leaves nothing behind."""
        with self._lock, translated(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, translated(self._path), closing(self._db.execute(query, values)) as found:
            return found.fetchall()

    # -- batches

    def begin(self, plan_id: str, closes: int | None = None, moves: bool = False) -> None:
        """Have a batch for a plan: one, for good. ``moves`` sets when it closes anew."""
        insert = """INSERT INTO batches (plan, state, closes, counts) VALUES (?, ?, ?, '{}')
            ON CONFLICT (plan) DO NOTHING"""
        with self._writing() as db:
            db.execute(insert, (plan_id, BatchState.COLLECTING, closes))
            if moves:
                db.execute("UPDATE batches SET closes = ? WHERE plan = ?", (closes, plan_id))

    def plan_ids(self) -> list[str]:
        """The plans that have a batch here."""
        return [plan_id for (plan_id,) in self._rows("SELECT plan FROM batches ORDER BY plan")]

    def status(self, plan_id: str) -> BatchStatus:
        """How far the batch of a plan is."""
        rows = self._rows("SELECT state, closes, counts FROM batches WHERE plan = ?", plan_id)
        if not rows:
            raise UnknownPlan("plan: this hop has no batch of it")
        ((state, closes, counts),) = rows
        waiting, reason = self.count(plan_id), self.noted(plan_id, REASON)
        told = None if reason is None else reason.decode()
        return BatchStatus(plan_id, BatchState(state), closes, waiting, json.loads(counts), told)

    def state(self, plan_id: str) -> BatchState:
        """The same in one word, without a count of what waits."""
        rows = self._rows("SELECT state FROM batches WHERE plan = ?", plan_id)
        if not rows:
            raise UnknownPlan("plan: this hop has no batch of it")
        return BatchState(rows[0][0])

    def closes(self, plan_id: str) -> int | None:
        """When a batch may close: unix time, of a hop that takes onions."""
        rows = self._rows("SELECT closes FROM batches WHERE plan = ?", plan_id)
        return rows[0][0] if rows else None

    def set_state(self, plan_id: str, state: BatchState, **counts: int) -> None:
        """Note how far a batch is, and what was counted on the way."""
        with self._writing() as db:
            _set_state(db, plan_id, state, counts)

    # -- what comes

    def add_onions(self, plan_id: str, onions: Sequence[bytes]) -> None:
        """Take onions into a batch that is open, each once; durable when it returns.

        Of a batch that closed, those that are in it are taken still: nothing changes by them.
        """
        insert = "INSERT INTO onions (plan, onion) VALUES (?, ?) ON CONFLICT DO NOTHING"
        there = "SELECT 1 FROM onions WHERE plan = ? AND onion = ?"
        with self._writing() as db:
            row = db.execute("SELECT state FROM batches WHERE plan = ?", (plan_id,)).fetchone()
            if row is None:
                raise UnknownPlan("plan: this hop has no batch of it")
            if row[0] == BatchState.COLLECTING:
                db.executemany(insert, [(plan_id, onion) for onion in onions])
            elif not all(db.execute(there, (plan_id, onion)).fetchone() for onion in onions):
                raise BatchClosed("the batch of this plan is closed; it takes no more reports")

    def count(self, plan_id: str) -> int:
        """How many onions wait here that devices sent."""
        return int(self._rows("SELECT count(*) FROM onions WHERE plan = ?", plan_id)[0][0])

    def onions(self, plan_id: str) -> list[bytes]:
        """They, in the order of their bytes."""
        rows = self._rows("SELECT onion FROM onions WHERE plan = ? ORDER BY onion", plan_id)
        return [onion for (onion,) in rows]

    def add_chunk(
        self, plan_id: str, kind: str, state: BatchState, number: int, count: int, data: bytes
    ) -> None:
        """Take part of what another hop sends, once, if the batch is ``state``; later it is known.

        A chunk that contradicts what is here is refused.
        """
        any_count = "SELECT count FROM incoming WHERE plan = ? AND kind = ? LIMIT 1"
        same = "SELECT data = ? FROM incoming WHERE plan = ? AND kind = ? AND number = ?"
        insert = "INSERT INTO incoming (plan, kind, number, count, data) VALUES (?, ?, ?, ?, ?)"
        with self._writing() as db:
            row = db.execute("SELECT state FROM batches WHERE plan = ?", (plan_id,)).fetchone()
            if row is None:
                raise UnknownPlan("plan: this hop has no batch of it")
            if row[0] != state:
                return
            before = db.execute(any_count, (plan_id, kind)).fetchone()
            if before not in (None, (count,)):
                raise InvalidInput("chunk: its count is not that of the chunks before")
            known = db.execute(same, (data, plan_id, kind, number)).fetchone()
            if known == (0,):
                raise InvalidInput("chunk: another one has its number")
            if known is None:
                db.execute(insert, (plan_id, kind, number, count, data))

    def is_whole(self, plan_id: str, kind: str) -> bool:
        """Whether all chunks are there."""
        query = "SELECT count(*), max(count) FROM incoming WHERE plan = ? AND kind = ?"
        ((here, count),) = self._rows(query, plan_id, kind)
        return bool(here) and here == count

    def incoming(self, plan_id: str, kind: str) -> bytes:
        """What another hop sent so far, in order; see :meth:`is_whole`."""
        query = "SELECT data FROM incoming WHERE plan = ? AND kind = ? ORDER BY number"
        return b"".join(data for (data,) in self._rows(query, plan_id, kind))

    # -- what leaves

    def keep_outgoing(
        self,
        plan_id: str,
        kind: str,
        messages: Sequence[bytes],
        state: BatchState,
        **counts: int,
    ) -> None:
        """Keep what leaves, byte for byte, before any of it does; from then on it is ``state``."""
        insert = "INSERT INTO outgoing (plan, kind, number, data) VALUES (?, ?, ?, ?)"
        with self._writing() as db:
            rows = [(plan_id, kind, number, data) for number, data in enumerate(messages)]
            db.executemany(insert, rows)
            _set_state(db, plan_id, state, counts)

    def has_outgoing(self, plan_id: str, kind: str) -> bool:
        """Whether something of this kind is kept, taken or not."""
        query = "SELECT 1 FROM outgoing WHERE plan = ? AND kind = ? LIMIT 1"
        return bool(self._rows(query, plan_id, kind))

    def next_outgoing(self, plan_id: str, kind: str) -> tuple[int, bytes] | None:
        """(number, message) of the first that was not taken; None if all were."""
        query = """SELECT number, data FROM outgoing WHERE plan = ? AND kind = ? AND NOT taken
            ORDER BY number LIMIT 1"""
        rows = self._rows(query, plan_id, kind)
        return (int(rows[0][0]), rows[0][1]) if rows else None

    def taken(self, plan_id: str, kind: str, number: int) -> None:
        """Note that the next hop has a message."""
        change = "UPDATE outgoing SET taken = 1 WHERE plan = ? AND kind = ? AND number = ?"
        with self._writing() as db:
            db.execute(change, (plan_id, kind, number))

    # -- notes

    def note(self, plan_id: str, name: str, value: bytes) -> bytes:
        """Keep a value under a name; the one that is kept, which is the first."""
        insert = "INSERT INTO notes (plan, name, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        with self._writing() as db:
            db.execute(insert, (plan_id, name, value))
        kept = self.noted(plan_id, name)
        assert kept is not None
        return kept

    def noted(self, plan_id: str, name: str) -> bytes | None:
        """What is kept under a name."""
        query = "SELECT value FROM notes WHERE plan = ? AND name = ?"
        rows = self._rows(query, plan_id, name)
        return bytes(rows[0][0]) if rows else None

    # -- the end

    def finish(self, plan_id: str, state: BatchState, *kept: str, **counts: int) -> None:
        """Delete all that is here of a batch but its counts, and the notes of these names."""
        marks = ", ".join("?" * len(kept))
        with self._writing() as db:
            for table in ("onions", "incoming", "outgoing"):
                db.execute(f"DELETE FROM {table} WHERE plan = ?", (plan_id,))
            delete = f"DELETE FROM notes WHERE plan = ? AND name NOT IN ({marks})"
            db.execute(delete, (plan_id, *kept))
            _set_state(db, plan_id, state, counts)
        self._forget()

    def _forget(self) -> None:
        """Empty SQLite's log, which holds what was deleted from the file too."""
        with self._lock, translated(self._path):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _set_state(
    db: sqlite3.Connection, plan_id: str, state: BatchState, counts: Mapping[str, int]
) -> None:
    row = db.execute("SELECT counts FROM batches WHERE plan = ?", (plan_id,)).fetchone()
    told = json.dumps(json.loads(row[0]) | counts, sort_keys=True)
    change = "UPDATE batches SET state = ?, counts = ? WHERE plan = ?"
    db.execute(change, (state, told, plan_id))
