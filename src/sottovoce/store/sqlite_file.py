"""The file of a SQLite store: its tables, how it is opened and made, and its errors as ours."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sottovoce.ground.errors import InvalidInput, StoreError, StoreFull
from sottovoce.store import id_index

APPLICATION = 0x736F7474  # "sott", in the file's header
STORE_VERSION = 4  # 4: surveys have texts; stores of earlier versions were never released
LOCK_PATIENCE = 30.0  # seconds to wait for another process

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS plans (
       number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text BLOB NOT NULL,
       texts TEXT NOT NULL, created REAL NOT NULL, closed INTEGER NOT NULL DEFAULT 0,
       version INTEGER NOT NULL, only_sums INTEGER NOT NULL DEFAULT 0,
       set_aside INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS parts (
       seq INTEGER PRIMARY KEY, plan INTEGER NOT NULL, rows INTEGER NOT NULL,
       people INTEGER NOT NULL, ids BLOB NOT NULL, cohorts BLOB NOT NULL, payload BLOB NOT NULL,
       checksums BLOB NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS parts_of_plan ON parts (plan)",
    """CREATE TABLE IF NOT EXISTS set_aside (
       plan INTEGER NOT NULL, seq INTEGER NOT NULL, rows INTEGER NOT NULL, ids BLOB NOT NULL,
       cohorts BLOB NOT NULL, payload BLOB NOT NULL, checksums BLOB NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS checkpoints (
       plan INTEGER PRIMARY KEY, upto INTEGER NOT NULL, people INTEGER NOT NULL,
       damaged INTEGER NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS tokens (
       digest BLOB PRIMARY KEY, name TEXT NOT NULL, scope TEXT NOT NULL, expires REAL)""",
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value NOT NULL)",
    *id_index.SCHEMA,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {STORE_VERSION}",
)
# EFBIG, EDQUOT and the like are write errors to SQLite; to a collector the disk takes no more
_FULL = (
    "SQLITE_FULL",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_SHMSIZE",
    "SQLITE_IOERR_FSYNC",
    "SQLITE_IOERR_DIR_FSYNC",
)
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as wrong:
        name = getattr(wrong, "sqlite_errorname", "")
        if name in _FULL:
            raise StoreFull("store: its disk is full; nothing was stored") from None
        if name.startswith(_BUSY):
            raise StoreError(
                f"store: another process held it for {LOCK_PATIENCE:.0f} seconds"
            ) from None
        if name.startswith(_DAMAGED):
            raise _damaged_file(path, name) from None
        raise StoreError(f"store ({path}) failed: {name or type(wrong).__name__}") from None


def connect(path: Path, *settings: str) -> sqlite3.Connection:
    """A connection to the file; what is committed is durable."""
    db = sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None, check_same_thread=False)
    for setting in ("PRAGMA synchronous = FULL", *settings):
        db.execute(setting)
    return db


def prepare(path: Path, create: bool) -> None:
    """Make the file and its tables where missing; one clear error for a file of another kind."""
    if not path.parent.is_dir():
        raise InvalidInput(f"store ({path}) must lie in a folder that exists")
    try:
        if create and not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds a key
        if not path.is_file():
            raise InvalidInput(f"store ({path}) must be a file that exists")
        with closing(connect(path)) as db:
            if not _version(db, path):
                if not create:
                    raise InvalidInput(f"store ({path}) must be a store of sottovoce; it is empty")
                _make(db, path)
    except (sqlite3.Error, OSError) as wrong:
        name = getattr(wrong, "sqlite_errorname", "") or type(wrong).__name__
        if name in _FULL:
            raise StoreFull(f"store ({path}): its disk is full") from None
        if name.startswith("SQLITE_CORRUPT"):
            raise _damaged_file(path, name) from None
        raise InvalidInput(
            f"store ({path}) must be a SQLite file that can be written ({name})"
        ) from None


def _version(db: sqlite3.Connection, path: Path) -> int:
    """The version of the store in a file, 0 if the file is empty."""
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise InvalidInput(
            f"store ({path}) must be a store of sottovoce; it is the database of something else"
        )
    if version not in (0, STORE_VERSION):
        raise InvalidInput(
            f"store ({path}) has version {version}; this sottovoce reads version {STORE_VERSION}"
        )
    return int(version)


def _damaged_file(path: Path, name: str) -> StoreError:
    return StoreError(
        f"store ({path}): its file is damaged ({name}); put it aside and restore a backup with "
        "`sottovoce restore`"
    )


def _make(db: sqlite3.Connection, path: Path) -> None:
    """Switch to a write-ahead log and create the tables, beside other processes if need be."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as wrong:
            # another one is just switching; SQLite does not wait for that
            if not wrong.sqlite_errorname.startswith(_BUSY) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    db.execute("BEGIN IMMEDIATE")
    if not _version(db, path):
        for statement in _SCHEMA:
            db.execute(statement)
    db.execute("COMMIT")
