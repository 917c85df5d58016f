"""A SQLite store as a file for backups, and filled from one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sottovoce.ground.errors import InvalidInput
from sottovoce.store.base import new_version
from sottovoce.store.id_index import IdIndex
from sottovoce.store.keys import SIGNING_KEYS
from sottovoce.store.shipped import OWN_SETTINGS

COPIED_TABLES = (
    "plans",
    "parts",
    "set_aside",
    "checkpoints",
    "tokens",
    "settings",
    "runs",
    "pieces",
)


def copy_to(path: Path, draft: Path) -> None:
    """Write what a store holds now into another file: one snapshot, while others go on writing."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("VACUUM INTO ?", (str(draft),))


def refuse_unless_empty(surveys: int, replace: bool) -> None:
    """One clear error for a store with surveys in it, unless they may go."""
    if surveys and not replace:
        raise InvalidInput(
            f"store: it holds {surveys} surveys; restore into an empty one, or with --replace to "
            "delete them"
        )


def load_from(db: sqlite3.Connection, replace: bool, with_keys: bool) -> None:
    """Take over the attached database ``copy``, within a writer's transaction."""
    refuse_unless_empty(db.execute("SELECT count(*) FROM plans").fetchone()[0], replace)
    db.execute(f"DELETE FROM main.settings WHERE {OWN_SETTINGS}")
    if with_keys:
        db.execute(f"DELETE FROM main.settings WHERE {SIGNING_KEYS}")
    for table in COPIED_TABLES:
        if table == "tokens" and not with_keys:
            continue
        if table != "settings":
            db.execute(f"DELETE FROM main.{table}")
        names = [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        columns = ", ".join(names)
        where = ""
        if table == "settings":
            where = "WHERE name <> 'backup'" + ("" if with_keys else f" AND NOT {SIGNING_KEYS}")
        db.execute(
            f"INSERT OR REPLACE INTO main.{table} ({columns}) SELECT {columns} FROM copy.{table} "
            f"{where}"
        )
    for (number,) in db.execute("SELECT number FROM plans").fetchall():
        version = new_version()
        db.execute("UPDATE plans SET version = ? WHERE number = ?", (version, number))
        db.execute("UPDATE checkpoints SET version = ? WHERE plan = ?", (version, number))
    IdIndex.rebuild(db)
