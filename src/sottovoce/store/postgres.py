"""The store on a PostgreSQL server, for several collectors at once.

Tables have the prefix ``sottovoce_`` and lie in the first schema of the connection's search path. A
writer holds one advisory lock from before its sequence numbers are drawn until its transaction has
ended, so that they grow in the order of commits, whichever collector writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import psycopg
from psycopg.conninfo import conninfo_to_dict

from sottovoce.device.assignment import ID_BYTES
from sottovoce.ground.errors import InvalidInput, SottovoceError, StoreError, StoreFull, UnknownPlan
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import STREAM_BATCH, Reports
from sottovoce.store import postgres_backups as copies
from sottovoce.store import postgres_maintenance as upkeep
from sottovoce.store.base import (
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
from sottovoce.store.checksums import checksum_of, checksums
from sottovoce.store.duplicates import (
    DAMAGED,
    Content,
    IncomingBatch,
    admitted,
    rows_to_store,
    settle,
)
from sottovoce.store.keys import Execute, Result
from sottovoce.store.pool import Pool
from sottovoce.store.postgres_binary import rows_of, stream_of
from sottovoce.store.postgres_maintenance import next_stretch

VERSION = 4  # 4: surveys have texts; stores of earlier versions were never released
ADVISORY_LOCK = 0x736F7474  # "sott"
CONNECT_SECONDS = 10  # seconds to reach the server, unless the address says otherwise
# a server that is gone without a word is noticed in half a minute; the last one in milliseconds
ALIVE = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sottovoce_settings (name text PRIMARY KEY, value bytea NOT NULL)",
    """CREATE TABLE IF NOT EXISTS sottovoce_plans (
       number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE,
       text bytea NOT NULL, texts text NOT NULL, created double precision NOT NULL,
       closed boolean NOT NULL DEFAULT false, people bigint NOT NULL DEFAULT 0,
       version bigint NOT NULL,
       only_sums boolean NOT NULL DEFAULT false, set_aside bigint NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS sottovoce_reports (
       seq bigint GENERATED ALWAYS AS IDENTITY, plan integer NOT NULL, id uuid NOT NULL UNIQUE,
       cohort bigint NOT NULL, payload bytea NOT NULL, checksum bigint NOT NULL,
       PRIMARY KEY (plan, seq))""",
    """CREATE TABLE IF NOT EXISTS sottovoce_set_aside (
       plan integer NOT NULL, seq bigint NOT NULL, rows bigint NOT NULL, ids bytea NOT NULL,
       cohorts bytea NOT NULL, payload bytea NOT NULL, checksums bytea NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS sottovoce_checkpoints (
       plan integer PRIMARY KEY, upto bigint NOT NULL, people bigint NOT NULL,
       damaged bigint NOT NULL, version bigint NOT NULL, data bytea NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS sottovoce_tokens (digest bytea PRIMARY KEY, name text NOT NULL,
       scope text NOT NULL, expires double precision)""",
)
_INCOMING = """CREATE TEMPORARY TABLE IF NOT EXISTS sottovoce_incoming (
    place integer, plan integer, id uuid, cohort bigint, payload bytea, checksum bigint)
    ON COMMIT DELETE ROWS"""
_INSERT = """INSERT INTO sottovoce_reports (plan, id, cohort, payload, checksum)
    SELECT plan, id, cohort, payload, checksum FROM sottovoce_incoming ORDER BY place
    ON CONFLICT (id) DO NOTHING"""
# a planner that has not counted the rows yet would sort all of them for each batch, or read all to
# find a few ids
_IN_ORDER = "SET enable_sort = off; SET enable_bitmapscan = off; SET jit = off"
_BY_INDEX = (
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"
)
# a collector that hangs must not hold the others up for ever
_NEVER_HANG = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'"
_TAKEN = """SELECT DISTINCT have.id, have.plan, have.cohort, have.payload, have.checksum, plans.id
    FROM sottovoce_reports have JOIN sottovoce_incoming new ON have.id = new.id
    JOIN sottovoce_plans plans ON have.plan = plans.number"""

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore(Store):
    """Reports on a server. One connection writes, guarded by a lock; readers have their own."""

    _prefix = "sottovoce_"

    def __init__(self, url: str, create: bool = True) -> None:
        self._options, shown = _parsed(url)
        super().__init__(shown, url)
        self._lock = Lock()
        self._closed = False
        self._writer: Connection | None = None
        self._readers = Pool(lambda: self._connect(_IN_ORDER))
        try:
            with self._readers.lend() as db, self._translated():
                _prepare(db, shown, create)
        except BaseException:
            self.close()
            raise

    # -- connections

    def _connect(self, *settings: str) -> Connection:
        try:
            db = psycopg.connect(**self._options, autocommit=True)
            for setting in settings:
                db.execute(setting)
            return db
        except psycopg.Error as wrong:
            words = " ".join(str(wrong).split())
            for secret in filter(
                None, (self._options.get("password"), self._options.get("sslpassword"))
            ):
                words = words.replace(str(secret), "***")
            raise StoreError(f"store ({self.url}) cannot be reached: {words}") from None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """PostgreSQL's errors as ours; their words could quote a row."""
        try:
            yield
        except psycopg.errors.DiskFull:
            raise StoreFull("store: the server's disk is full; nothing was stored") from None
        except psycopg.Error as wrong:
            raise StoreError(f"store ({self.url}) failed: {type(wrong).__name__}") from None

    def _write(self, work: Callable[[Connection], Result]) -> Result:
        """Do ``work`` in a transaction with the lock held; once more if the connection was lost, so
        it must be the same done twice.
        """
        with self._lock, self._translated():
            for attempt in (1, 2):
                db = self._writer = self._writer or self._connected_writer()
                try:
                    with db.transaction():
                        db.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
                        return work(db)
                except psycopg.Error:
                    if not db.closed:
                        raise
                    self._writer = None
                    if attempt == 2:
                        raise
        raise AssertionError("either attempt returns or raises")

    def _connected_writer(self) -> Connection:
        if self._closed:
            raise StoreError("store: it is closed")
        return self._connect("SET synchronous_commit = on", _BY_INDEX, _INCOMING, _NEVER_HANG)

    def _read(self, work: Callable[[Connection], Result]) -> Result:
        """The same for a query, without the lock."""
        with self._translated():
            try:
                with self._readers.lend() as db:
                    return work(db)
            except psycopg.Error:
                if not db.broken:
                    raise
            self._readers.clear()  # the others were lost with it
            with self._readers.lend() as db:
                return work(db)

    def ping(self) -> None:
        self._read(lambda db: db.execute("SELECT 1").fetchone())

    def close(self) -> None:
        self._readers.close()
        with self._lock:
            self._closed = True
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # -- surveys

    def _add_plan(self, plan_id: str, text: bytes, texts: str, created: float) -> None:
        insert = """INSERT INTO sottovoce_plans (id, text, texts, created, version)
            VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"""
        self._write(lambda db: db.execute(insert, (plan_id, text, texts, created, new_version())))

    def plan_ids(self, start: str = "") -> list[str]:
        query = "SELECT id FROM sottovoce_plans WHERE starts_with(id, %s) ORDER BY number"
        return [
            str(plan_id)
            for (plan_id,) in self._read(lambda db: db.execute(query, (start,)).fetchall())
        ]

    def _plan_text(self, plan_id: str) -> bytes:
        query = "SELECT text FROM sottovoce_plans WHERE id = %s"
        found = self._read(lambda db: db.execute(query, (plan_id,)).fetchone())
        assert found is not None
        return bytes(found[0])

    def _survey_rows(self, plan_id: str | None) -> list[tuple[Any, ...]]:
        columns = "SELECT id, texts, created, closed FROM sottovoce_plans"
        if plan_id is None:
            return self._read(lambda db: db.execute(f"{columns} ORDER BY number").fetchall())
        return self._read(lambda db: db.execute(f"{columns} WHERE id = %s", (plan_id,)).fetchall())

    def close_survey(self, plan_id: str) -> None:
        change = "UPDATE sottovoce_plans SET closed = true WHERE id = %s"
        if not self._write(lambda db: db.execute(change, (plan_id,)).rowcount):
            raise UnknownPlan("plan: the store has no plan with this id")

    # -- appending

    def append_many(self, parts: Sequence[Part]) -> list[Outcomes | SottovoceError]:
        parts, results = as_rows(parts)
        try:
            if any(result is None for result in results):
                results = self._write(lambda db: _append(db, parts, list(results)))
        except StoreError as wrong:
            return [wrong for _ in parts]
        return results

    # -- reading

    def scan(self, plan: Plan, after: int = 0, batch: int = STREAM_BATCH) -> Iterator[Stretch]:
        if self.kept(plan).only_sums:
            raise no_reports_left()
        number, most = self._survey(plan)[0], batch_size(plan, batch)
        while True:
            found = self._read(
                partial(next_stretch, plan=plan, number=number, after=after, batch=most)
            )
            if found is None:
                return
            after = found.last
            yield from_rows(plan, found)

    def count(self, plan: Plan) -> int:
        kept = self.kept(plan)
        if kept.only_sums:
            query = """SELECT saved.people FROM sottovoce_checkpoints saved
                JOIN sottovoce_plans ON plan = number WHERE id = %s"""
            found = self._read(lambda db: db.execute(query, (plan.id,)).fetchone())
            return 0 if found is None else int(found[0])
        return self._survey(plan)[1] - kept.missing

    def kept(self, plan: Plan) -> Kept:
        query = """SELECT plans.version, only_sums, damaged, set_aside FROM sottovoce_plans plans
            LEFT JOIN sottovoce_checkpoints saved
            ON saved.plan = number AND saved.version = plans.version
            WHERE id = %s"""
        found = self._read(lambda db: db.execute(query, (plan.id,)).fetchone())
        if found is None:
            raise UnknownPlan("plan: the store has no plan with this id")
        version, only_sums, damaged, set_aside = found
        return Kept(version, only_sums, damaged or 0, set_aside)

    def _survey(self, plan: Plan) -> tuple[int, int]:
        """(number, people) of a plan."""
        query = "SELECT number, people FROM sottovoce_plans WHERE id = %s"
        found = self._read(lambda db: db.execute(query, (plan.id,)).fetchone())
        if found is None:
            raise UnknownPlan("plan: the store has no plan with this id")
        return found[0], found[1]

    # -- checkpoints

    def load_checkpoint(self, plan: Plan) -> Checkpoint | None:
        query = """SELECT upto, saved.people, damaged, saved.version, data
            FROM sottovoce_checkpoints saved JOIN sottovoce_plans ON plan = number WHERE id = %s"""
        found = self._read(lambda db: db.execute(query, (plan.id,), binary=True).fetchone())
        return None if found is None else Checkpoint(*found)

    def save_checkpoint(self, plan: Plan, checkpoint: Checkpoint, force: bool) -> None:
        save = """INSERT INTO sottovoce_checkpoints AS have
            (plan, upto, people, damaged, version, data)
            SELECT number, %s, %s, %s, version, %b FROM sottovoce_plans
            WHERE id = %s AND version = %s
            ON CONFLICT (plan) DO UPDATE SET upto = excluded.upto, people = excluded.people,
            damaged = excluded.damaged, version = excluded.version, data = excluded.data
            WHERE %s OR excluded.upto > have.upto OR excluded.version <> have.version"""
        counts = (checkpoint.upto, checkpoint.people, checkpoint.damaged, checkpoint.data)
        self._write(lambda db: db.execute(save, (*counts, plan.id, checkpoint.version, force)))

    # -- taking away

    def set_aside(self, plan: Plan) -> int:
        number = self._survey(plan)[0]
        return self._write(lambda db: upkeep.set_aside(db, plan, number))

    def _delete(self, plan: Plan) -> None:
        number = self._survey(plan)[0]
        self._write(lambda db: upkeep.delete(db, number))

    def _keep_sums(self, plan: Plan) -> None:
        number = self._survey(plan)[0]
        self._write(lambda db: upkeep.keep_sums(db, number))

    def _erase(self) -> bool:
        with self._translated(), closing(self._connect(_NEVER_HANG)) as db:
            return upkeep.erase(db)

    # -- copies

    def _copy_to(self, draft: Path) -> None:
        with self._translated(), closing(self._connect(_IN_ORDER)) as db:
            copies.copy_to(db, draft)

    def _load_from(self, source: Path, replace: bool, with_keys: bool) -> bool:
        self._write(lambda db: copies.load_from(db, source, replace, with_keys))
        return self._erase() if replace else True

    # -- keys

    def _look(self, work: Callable[[Execute], Result]) -> Result:
        return self._read(lambda db: work(_execute(db)))

    def _change(self, work: Callable[[Execute], Result]) -> Result:
        return self._write(lambda db: work(_execute(db)))


def _execute(db: Connection) -> Execute:
    """How a statement is run that has ? for its values."""
    return lambda statement, values=(): db.execute(statement.replace("?", "%s"), values)


# -- in a writer's transaction


def _append(db: Connection, parts: Sequence[Part], results: list[Any]) -> list[Any]:
    """Fill in the results that are still None."""
    batches = admitted(parts, results, lambda plan_id: _open_survey(db, plan_id))
    rows = sum(len(batch.ids) for batch in batches)
    outcomes = [np.zeros(len(batch.ids), np.uint8) for batch in batches]
    if rows:
        _copy_in(db, batches)
        db.execute("SAVEPOINT attempt")
        if db.execute(_INSERT).rowcount < rows:  # some are there already: which?
            db.execute("ROLLBACK TO SAVEPOINT attempt")
            outcomes = settle(batches, _taken(db))
            chosen = np.concatenate([rows_to_store(outcome) for outcome in outcomes])
            drop = "DELETE FROM sottovoce_incoming WHERE place = ANY(%s)"
            db.execute(drop, (np.flatnonzero(~chosen).tolist(),))
            db.execute(_INSERT)
    people: Counter[int] = Counter()
    for batch, outcome in zip(batches, outcomes, strict=True):
        results[batch.place] = outcome
        people[batch.number] += int(rows_to_store(outcome).sum())
    for number, more in people.items():
        if more:
            db.execute(
                "UPDATE sottovoce_plans SET people = people + %s WHERE number = %s", (more, number)
            )
    return results


def _open_survey(db: Connection, plan_id: str) -> tuple[int, bool] | None:
    found = db.execute(
        "SELECT number, closed FROM sottovoce_plans WHERE id = %s", (plan_id,)
    ).fetchone()
    return None if found is None else (found[0], found[1])


def _copy_in(db: Connection, batches: Sequence[IncomingBatch]) -> None:
    """All rows into the temporary table, numbered as they come; a plan's are laid out together."""
    starts = np.cumsum([0, *(len(batch.ids) for batch in batches)])
    by_plan: dict[int, list[tuple[int, IncomingBatch]]] = {}
    for start, batch in zip(starts.tolist(), batches, strict=False):
        by_plan.setdefault(batch.number, []).append((start, batch))
    pieces = []
    for number, own in by_plan.items():
        reports = Reports.concat(batch.reports for _, batch in own)
        places = np.concatenate([np.arange(start, start + len(batch.ids)) for start, batch in own])
        columns = {"place": places, "plan": np.full(len(places), number)}
        columns |= {"id": np.concatenate([batch.ids for _, batch in own])}
        columns |= {"cohort": reports.cohorts, "payload": reports.payload}
        columns |= {"checksum": checksums(columns["id"], reports)}
        width = reports.payload.shape[1]
        kinds = {
            "place": ">i4",
            "plan": ">i4",
            "id": f"V{ID_BYTES}",
            "cohort": ">i8",
            "payload": f"V{width}",
        }
        pieces.append(rows_of(kinds | {"checksum": ">i8"}, columns))
    command = (
        "COPY sottovoce_incoming (place, plan, id, cohort, payload, checksum) FROM STDIN (FORMAT "
        "BINARY)"
    )
    with db.cursor() as cursor, cursor.copy(command) as copy:
        copy.write(stream_of(pieces))


def _taken(db: Connection) -> dict[bytes, Content]:
    """What the store has under the ids that came in."""
    found: dict[bytes, Content] = {}
    for key, plan, cohort, payload, checksum, plan_id in db.execute(_TAKEN):
        is_good = checksum_of(plan_id, key.bytes, cohort, payload) == checksum
        found[key.bytes] = (plan, cohort, bytes(payload)) if is_good else DAMAGED
    return found


# -- opening


def _parsed(url: str) -> tuple[dict[str, Any], str]:
    """The connection's options, and the address without anything secret."""
    try:
        options: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # libpq's words would quote the address
        raise InvalidInput(
            "store must be a PostgreSQL address such as postgresql://user@host/name"
        ) from None
    if "@" in str(options.get("host") or ""):
        raise InvalidInput(
            "store: an @ within a user or a password of the address must be written %40"
        )
    options = {"connect_timeout": CONNECT_SECONDS, **ALIVE} | options
    options.setdefault("application_name", "sottovoce")
    port = f":{options['port']}" if options.get("port") else ""
    return options, f"postgresql://{options.get('host') or ''}{port}/{options.get('dbname') or ''}"


def _prepare(db: Connection, shown: str, create: bool) -> None:
    """Make the tables where they are missing, at once with others if need be."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        there = db.execute("SELECT to_regclass('sottovoce_settings')").fetchone()
        if there == (None,):
            if not create:
                raise InvalidInput(
                    f"store ({shown}) must be a store of sottovoce; it has no tables"
                )
            for statement in _SCHEMA:
                db.execute(statement)
            insert = "INSERT INTO sottovoce_settings (name, value) VALUES ('version', %s)"
            db.execute(insert, (str(VERSION).encode(),))
        found = db.execute("SELECT value FROM sottovoce_settings WHERE name = 'version'").fetchone()
    version = 0 if found is None else int(bytes(found[0]))
    if version != VERSION:
        raise InvalidInput(
            f"store ({shown}) has version {version}; this sottovoce reads version {VERSION}"
        )
