"""A store on PostgreSQL as a file for backups, and filled from one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from sottovoce.device.assignment import ID_BYTES
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.store.base import Ids, new_version
from sottovoce.store.checksums import checksums
from sottovoce.store.id_index import IdIndex
from sottovoce.store.keys import SIGNING_KEYS
from sottovoce.store.postgres_binary import rows_of, stream_of
from sottovoce.store.postgres_maintenance import Connection, next_stretch
from sottovoce.store.shipped import OWN_SETTINGS
from sottovoce.store.sqlite_backups import refuse_unless_empty
from sottovoce.store.sqlite_parts import EMPTY, columns_of, insert_part, rows_per_part
from sottovoce.store.sqlite_parts import next_stretch as next_in_file

COPY_BATCH = 1 << 14  # reports that are copied at once
# tables with the same columns in both stores
_ALIKE = (
    "plans",
    "set_aside",
    "checkpoints",
    "tokens",
    "settings",
)
_SELECT = {  # where not everything is copied: of checkpoints, those that are all there is
    "checkpoints": """SELECT saved.* FROM sottovoce_checkpoints saved
        JOIN sottovoce_plans plans ON plan = number
        WHERE only_sums AND saved.version = plans.version"""
}
# that mean something in one store only
_OWN_SETTINGS = (
    "version",
    "hash key",
    "register",
    "backup",
)

Row = tuple[Any, ...]


# -- to a file


def copy_to(db: Connection, draft: Path) -> None:
    """Write a snapshot of the server into a new SQLite store; damaged reports are only counted."""
    from sottovoce.store.sqlite import SqliteStore

    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    with SqliteStore(f"sqlite:///{quote(str(draft.resolve()))}") as made, made._writing() as file:
        for table in _ALIKE:
            cursor = db.execute(_SELECT.get(table, f"SELECT * FROM sottovoce_{table}"), binary=True)
            names = [column.name for column in cursor.description or ()]
            _insert_rows(file, table, names, cursor.fetchall())
        last = 0
        for number, plan_id, text in db.execute(
            "SELECT number, id, text FROM sottovoce_plans ORDER BY number"
        ):
            last = _copy_reports(db, file, number, Plan.from_json(bytes(text), id=plan_id), last)
        IdIndex.rebuild(file)
    db.execute("COMMIT")


def _insert_rows(
    file: sqlite3.Connection, table: str, names: Sequence[str], rows: Sequence[Row]
) -> None:
    """Rows whose columns have these names; those that the file's table lacks are left out."""
    known = {name for (name,) in file.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    places = [place for place, name in enumerate(names) if name in known]
    columns = ", ".join(names[place] for place in places)
    marks = ", ".join("?" for _ in places)
    insert = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
    for row in rows:
        if table != "settings" or row[0] not in _OWN_SETTINGS:
            file.execute(insert, [row[place] for place in places])


def _copy_reports(
    db: Connection, file: sqlite3.Connection, number: int, plan: Plan, last: int
) -> int:
    """The reports of a plan after the sequence number ``last`` of the file; the last number then.

    Damaged ones are left out, and counted with those that were set aside.
    """
    after = damaged = 0
    (set_aside,) = file.execute(
        "SELECT set_aside FROM plans WHERE number = ?", (number,)
    ).fetchone()
    people = set_aside  # as many as the plan has had up to the last part
    while (found := next_stretch(db, plan, number, after, COPY_BATCH)) is not None:
        after = found.last
        damaged += found.damaged
        most = rows_per_part(plan.row_bytes)
        for start in range(0, len(found.ids), most):
            some = slice(start, start + most)
            rows = len(found.ids[some])
            last, people = last + rows, people + rows
            insert_part(
                file, last, number, people, columns_of(found.ids[some], found.reports[some])
            )
    if damaged or people == set_aside > 0:  # a part without reports says how many there were
        last, people = last + 1, people + damaged
        insert_part(file, last, number, people, EMPTY)
        file.execute(
            "UPDATE plans SET set_aside = set_aside + ? WHERE number = ?", (damaged, number)
        )
    return last


# -- from a file


def load_from(db: Connection, source: Path, replace: bool, with_keys: bool) -> None:
    """Take over a backup, within a writer's transaction."""
    found = db.execute("SELECT count(*) FROM sottovoce_plans").fetchone()
    assert found is not None
    refuse_unless_empty(found[0], replace)
    for table in ("reports", "set_aside", "checkpoints", "plans"):
        db.execute(f"DELETE FROM sottovoce_{table}")
    db.execute(f"DELETE FROM sottovoce_settings WHERE {OWN_SETTINGS}")
    if with_keys:
        db.execute("DELETE FROM sottovoce_tokens")
        db.execute(f"DELETE FROM sottovoce_settings WHERE {SIGNING_KEYS}")
    with closing(sqlite3.connect(source)) as file:
        for table in _ALIKE:
            if table == "settings" and not with_keys:
                _take_rows(db, file, table, f"WHERE NOT {SIGNING_KEYS}")
            elif table != "tokens" or with_keys:
                _take_rows(db, file, table)
        for number, plan_id, text, set_aside in file.execute(
            "SELECT number, id, text, set_aside FROM plans"
        ):
            people, damaged = _take_reports(db, file, number, Plan.from_json(text, id=plan_id))
            _settle(db, number, people, set_aside + damaged)
    db.execute(
        "SELECT setval(pg_get_serial_sequence('sottovoce_plans', 'number'), max(number)) FROM "
        "sottovoce_plans"
    )


def _take_rows(db: Connection, file: sqlite3.Connection, table: str, where: str = "") -> None:
    cursor = file.execute(f"SELECT * FROM {table} {where}")
    names = [column[0] for column in cursor.description]
    marks = ", ".join("%s" for _ in names)
    kinds = "OVERRIDING SYSTEM VALUE" if table == "plans" else ""
    update = {"settings": "ON CONFLICT (name) DO UPDATE SET value = excluded.value"}.get(
        table, "ON CONFLICT DO NOTHING"
    )
    insert = f"INSERT INTO sottovoce_{table} ({', '.join(names)}) {kinds} VALUES ({marks}) {update}"
    for row in cursor:
        if table != "settings" or row[0] not in _OWN_SETTINGS:
            db.execute(
                insert, [_as_kind(name, value) for name, value in zip(names, row, strict=True)]
            )


def _as_kind(name: str, value: Any) -> Any:
    """SQLite has no truth values."""
    return bool(value) if name in ("closed", "only_sums") else value


def _take_reports(
    db: Connection, file: sqlite3.Connection, number: int, plan: Plan
) -> tuple[int, int]:
    """Take over the reports of a plan; how many are good, and how many are damaged and left out."""
    after = people = damaged = 0
    while (found := next_in_file(file, plan, number, after, COPY_BATCH)) is not None:
        after = found.last
        people += len(found.ids)
        damaged += found.damaged
        _copy_in(db, number, found.ids, found.reports)
    return people, damaged


def _copy_in(db: Connection, number: int, ids: Ids, reports: Reports) -> None:
    columns: dict[str, Any] = {
        "plan": np.full(len(ids), number),
        "id": ids,
        "cohort": reports.cohorts,
    }
    columns |= {"payload": reports.payload, "checksum": checksums(ids, reports)}
    width = reports.payload.shape[1]
    kinds = {
        "plan": ">i4",
        "id": f"V{ID_BYTES}",
        "cohort": ">i8",
        "payload": f"V{width}",
        "checksum": ">i8",
    }
    command = (
        "COPY sottovoce_reports (plan, id, cohort, payload, checksum) FROM STDIN (FORMAT BINARY)"
    )
    with db.cursor() as cursor, cursor.copy(command) as copy:
        copy.write(stream_of([rows_of(kinds, columns)]))


def _settle(db: Connection, number: int, people: int, set_aside: int) -> None:
    """Say how many reports of a plan there are, and how many set aside; its sums belong here."""
    version = new_version()
    change = (
        "UPDATE sottovoce_plans SET people = %s, set_aside = %s, version = %s WHERE number = %s"
    )
    db.execute(change, (people + set_aside, set_aside, version, number))
    db.execute("UPDATE sottovoce_checkpoints SET version = %s WHERE plan = %s", (version, number))
