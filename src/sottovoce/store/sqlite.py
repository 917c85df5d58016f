"""The embedded store: one SQLite file.

Reports arrive in parts and rest in parts: a row of ``parts`` holds the ids, cohorts and payloads of
some reports of one plan, one column after another, and the checksum of each. Its ``seq`` is the
sequence number of its last report, and ``people`` how many reports its plan has had up to there.
Ids are kept apart, see :mod:`sottovoce.store.id_index`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from sottovoce.device.assignment import ID_BYTES
from sottovoce.ground.errors import SottovoceError, StoreError, UnknownPlan
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import STREAM_BATCH
from sottovoce.store import id_index
from sottovoce.store import sqlite_backups as copies
from sottovoce.store import sqlite_maintenance as upkeep
from sottovoce.store.backups import is_backup
from sottovoce.store.base import (
    Ids,
    Kept,
    Outcomes,
    Part,
    Store,
    Stretch,
    as_rows,
    batch_size,
    from_rows,
    new_version,
    no_reports_left,
)
from sottovoce.store.checkpoints import Checkpoint
from sottovoce.store.duplicates import (
    Content,
    IncomingBatch,
    admitted,
    by_plan,
    keys_of,
    repeated,
    settle,
)
from sottovoce.store.keys import Execute, Result
from sottovoce.store.pool import Pool
from sottovoce.store.sqlite_file import connect, prepare, translated
from sottovoce.store.sqlite_parts import (
    Contents,
    columns_of,
    insert_part,
    next_stretch,
    rows_per_part,
)
from sottovoce.store.urls import SqliteAddress

PAGE_CACHE = 16 << 10  # KiB; nearly all that is written is written once
WAL_PAGES = 4096  # pages in the write-ahead log before they go to the file
MOST_WAL = 64 << 20  # bytes of it that are left on the disk then


class SqliteStore(Store):
    """Reports in a file. One connection writes, under a lock; readers have their own, unlocked."""

    def __init__(self, url: str, create: bool = True) -> None:
        address = SqliteAddress.parse(url)
        super().__init__(url)
        self._path = address.path
        self._lock = RLock()
        self._register = id_index.IdIndex()
        self._closed = False
        self._known: _Known | None = None
        prepare(address.path, create)
        with self._translated():
            self._writer = connect(address.path)
            self._writer.execute(f"PRAGMA cache_size = -{PAGE_CACHE}")
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
            self._writer.execute(f"PRAGMA journal_size_limit = {MOST_WAL}")
            self._writer.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
            self._is_backup = is_backup(self._writer)
            if address.most_pages is not None:
                self._writer.execute(f"PRAGMA max_page_count = {address.most_pages}")
        self._readers = Pool(lambda: connect(address.path, "PRAGMA query_only = ON"))

    # -- connections

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._path)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is durable when the block is left, or leaves nothing behind."""
        with self._lock, self._translated():
            if self._closed:
                raise StoreError("store: it is closed")
            if self._is_backup:
                raise StoreError(
                    f"store ({self._path}) is a backup, which takes nothing more; restore it "
                    "elsewhere"
                )
            db = self._writer
            self._known = None  # whatever happens here, unless it says what is known afterwards
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._translated(), self._readers.lend() as db:
            yield db

    def ping(self) -> None:
        with self._reading() as db:
            db.execute("SELECT 1").fetchone()

    def close(self) -> None:
        self._readers.close()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._writer.close()

    # -- surveys

    def _add_plan(self, plan_id: str, text: bytes, texts: str, created: float) -> None:
        insert = """INSERT INTO plans (id, text, texts, created, version) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO NOTHING"""
        with self._writing() as db:
            db.execute(insert, (plan_id, text, texts, created, new_version()))

    def plan_ids(self, start: str = "") -> list[str]:
        # "g" follows every digit
        query = "SELECT id FROM plans WHERE id >= ? AND id < ? ORDER BY number"
        with self._reading() as db:
            return [str(plan_id) for (plan_id,) in db.execute(query, (start, f"{start}g"))]

    def _plan_text(self, plan_id: str) -> bytes:
        with self._reading() as db:
            return bytes(
                db.execute("SELECT text FROM plans WHERE id = ?", (plan_id,)).fetchone()[0]
            )

    def _survey_rows(self, plan_id: str | None) -> list[tuple[Any, ...]]:
        columns = "SELECT id, texts, created, closed FROM plans"
        with self._reading() as db:
            if plan_id is None:
                return db.execute(f"{columns} ORDER BY number").fetchall()
            return db.execute(f"{columns} WHERE id = ?", (plan_id,)).fetchall()

    def close_survey(self, plan_id: str) -> None:
        with self._writing() as db:
            if not db.execute("UPDATE plans SET closed = 1 WHERE id = ?", (plan_id,)).rowcount:
                raise UnknownPlan("plan: the store has no plan with this id")

    # -- appending

    def append_many(self, parts: Sequence[Part]) -> list[Outcomes | SottovoceError]:
        parts, results = as_rows(parts)
        try:
            self._append(parts, results)
        except StoreError as wrong:
            return [wrong for _ in parts]
        return results

    def _append(self, parts: Sequence[Part], results: list[Any]) -> None:
        """Fill in the results that are still None."""
        if all(result is not None for result in results):
            return
        with self._lock:
            known = self._known
            with self._writing() as db:
                self._register.begin()
                # moves when another connection writes
                version = db.execute("PRAGMA data_version").fetchone()[0]
                if known is None or known.version != version:
                    known = _Known(version, self._register.refresh(db))
                batches = admitted(parts, results, lambda plan_id: known.survey(db, plan_id))
                outcomes = self._outcomes(db, batches)
                ids = _insert(db, batches, outcomes, known)
                if len(ids):  # others see by the last sequence number that something changed
                    self._register.write_run(db)
            self._register.committed(ids)
            self._known = known
        for batch, outcome in zip(batches, outcomes, strict=True):
            results[batch.place] = outcome

    def _outcomes(self, db: sqlite3.Connection, batches: Sequence[IncomingBatch]) -> list[Outcomes]:
        if not batches:
            return []
        ids = np.concatenate([batch.ids for batch in batches])
        known = _contents(db, ids, self._register.find(db, ids))
        if not known and not len(repeated(keys_of(ids))):
            return [np.zeros(len(batch.ids), np.uint8) for batch in batches]
        return settle(batches, known)

    # -- reading

    def scan(self, plan: Plan, after: int = 0, batch: int = STREAM_BATCH) -> Iterator[Stretch]:
        if self.kept(plan).only_sums:
            raise no_reports_left()
        number = self._number(plan)
        while True:
            with self._reading() as db:  # no query stays open while a caller thinks
                found = next_stretch(db, plan, number, after, batch_size(plan, batch))
            if found is None:
                return
            after = found.last
            yield from_rows(plan, found)

    def count(self, plan: Plan) -> int:
        number, kept = self._number(plan), self.kept(plan)
        with self._reading() as db:
            if kept.only_sums:
                return int(
                    db.execute(
                        "SELECT people FROM checkpoints WHERE plan = ?", (number,)
                    ).fetchone()[0]
                )
            return _people(db, number) - kept.missing

    def kept(self, plan: Plan) -> Kept:
        query = """SELECT version, only_sums, set_aside, (SELECT damaged FROM checkpoints saved
            WHERE saved.plan = number AND saved.version = plans.version) FROM plans WHERE id = ?"""
        with self._reading() as db:
            found = db.execute(query, (plan.id,)).fetchone()
        if found is None:
            raise UnknownPlan("plan: the store has no plan with this id")
        version, only_sums, set_aside, damaged = found
        return Kept(version, bool(only_sums), damaged or 0, set_aside)

    def _number(self, plan: Plan) -> int:
        with self._reading() as db:
            found = _survey(db, plan.id)
        if found is None:
            raise UnknownPlan("plan: the store has no plan with this id")
        return found[0]

    # -- taking away

    def set_aside(self, plan: Plan) -> int:
        with self._writing() as db:
            return upkeep.set_aside(db, plan, self._number(plan))

    def _delete(self, plan: Plan) -> None:
        with self._writing() as db:
            upkeep.delete(db, self._number(plan))

    def _keep_sums(self, plan: Plan) -> None:
        with self._writing() as db:
            upkeep.keep_sums(db, self._number(plan))

    def _erase(self) -> bool:
        with self._lock, self._translated():
            return upkeep.erase(self._writer)

    # -- copies

    def _copy_to(self, draft: Path) -> None:
        with self._translated():
            copies.copy_to(self._path, draft)

    def _load_from(self, source: Path, replace: bool, with_keys: bool) -> bool:
        with self._lock, self._translated():
            self._writer.execute("ATTACH ? AS copy", (str(source),))
            try:
                with self._writing() as db:
                    copies.load_from(db, replace, with_keys)
            finally:
                self._writer.execute("DETACH copy")
            return upkeep.erase(self._writer)

    # -- checkpoints

    def load_checkpoint(self, plan: Plan) -> Checkpoint | None:
        with self._reading() as db:
            query = """SELECT upto, people, damaged, saved.version, data FROM checkpoints saved
                JOIN plans ON plan = number WHERE id = ?"""
            found = db.execute(query, (plan.id,)).fetchone()
        return None if found is None else Checkpoint(*found)

    def save_checkpoint(self, plan: Plan, checkpoint: Checkpoint, force: bool) -> None:
        save = """INSERT INTO checkpoints (plan, upto, people, damaged, version, data)
            SELECT number, ?, ?, ?, version, ? FROM plans WHERE id = ? AND version = ?
            ON CONFLICT (plan) DO UPDATE SET upto = excluded.upto, people = excluded.people,
            damaged = excluded.damaged, version = excluded.version, data = excluded.data
            WHERE ? OR excluded.upto > upto OR excluded.version <> version"""
        counts = (checkpoint.upto, checkpoint.people, checkpoint.damaged, checkpoint.data)
        with self._writing() as db:
            db.execute(save, (*counts, plan.id, checkpoint.version, force))

    # -- keys

    def _look(self, work: Callable[[Execute], Result]) -> Result:
        with self._reading() as db:
            return work(db.execute)

    def _change(self, work: Callable[[Execute], Result]) -> Result:
        with self._writing() as db:
            return work(db.execute)


@dataclass
class _Known:
    """What the writer has read, good while nobody else writes: a commit is then one insert."""

    version: int  # of the data, as SQLite counts what other connections change
    last: int  # sequence number
    surveys: dict[str, tuple[int, bool] | None] = field(default_factory=dict)
    heard: dict[int, int] = field(default_factory=dict)  # people of a plan

    def survey(self, db: sqlite3.Connection, plan_id: str) -> tuple[int, bool] | None:
        if self.surveys.get(plan_id) is None:
            self.surveys[plan_id] = _survey(db, plan_id)
        return self.surveys[plan_id]

    def people(self, db: sqlite3.Connection, number: int) -> int:
        if number not in self.heard:
            self.heard[number] = _people(db, number)
        return self.heard[number]


# -- queries


def _survey(db: sqlite3.Connection, plan_id: str) -> tuple[int, bool] | None:
    found = db.execute("SELECT number, closed FROM plans WHERE id = ?", (plan_id,)).fetchone()
    return None if found is None else (int(found[0]), bool(found[1]))


def _people(db: sqlite3.Connection, number: int) -> int:
    found = db.execute(
        "SELECT people FROM parts WHERE plan = ? ORDER BY seq DESC LIMIT 1", (number,)
    ).fetchone()
    return 0 if found is None else int(found[0])


def _insert(
    db: sqlite3.Connection,
    batches: Sequence[IncomingBatch],
    outcomes: Sequence[Outcomes],
    known: _Known,
) -> Ids:
    """Store what is new after the last sequence number; the ids in the order of their numbers."""
    stored = [np.zeros((0, ID_BYTES), np.uint8)]
    for number, ids, reports in by_plan(batches, outcomes):
        known.heard[number] = known.people(db, number)
        most = rows_per_part(reports.payload.shape[1])
        for start in range(0, len(ids), most):
            some = slice(start, start + most)
            rows = len(ids[some])
            known.last, known.heard[number] = known.last + rows, known.heard[number] + rows
            insert_part(
                db, known.last, number, known.heard[number], columns_of(ids[some], reports[some])
            )
        stored.append(ids)
    return np.concatenate(stored)


def _contents(
    db: sqlite3.Connection, ids: Ids, candidates: list[tuple[int, int]]
) -> dict[bytes, Content]:
    """What the store has under some of ``ids``: where a candidate, row and number, is right."""
    contents = Contents(db)
    found: dict[bytes, Content] = {}
    for row, seq in sorted(candidates, key=itemgetter(1)):
        key = ids[row].tobytes()
        content = contents.at(seq, key)
        if content is not None:
            found[key] = content
    return found
