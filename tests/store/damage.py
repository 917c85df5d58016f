"""Bytes that change on a disk, in both stores."""

from __future__ import annotations

import sqlite3
from pathlib import Path

COLUMNS = {"payload": "payload", "cohort": "cohorts", "id": "ids", "checksum": "checksums"}
FLIPPED = {
    "payload": "payload = set_byte(payload, 0, get_byte(payload, 0) # 1)",
    "cohort": "cohort = cohort # 1",
    "wide cohort": "cohort = cohort + 4294967296",
    "id": "id = ('ff' || substr(id::text, 3))::uuid",
    "checksum": "checksum = checksum # 1",
    "cut": "payload = ''",
}


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def damage(url: str, kind: str, row: int) -> None:
    """Change the report that was stored as number ``row`` of the whole store, from 0."""
    if url.startswith("sqlite"):
        _damage_part(path_of(url), kind, row)
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as db:
            chosen = "(SELECT seq FROM sottovoce_reports ORDER BY seq OFFSET %s LIMIT 1)"
            db.execute(f"UPDATE sottovoce_reports SET {FLIPPED[kind]} WHERE seq = {chosen}", (row,))


def _damage_part(path: Path, kind: str, row: int) -> None:
    with sqlite3.connect(path) as db:
        seq, rows = db.execute(
            "SELECT seq, rows FROM parts WHERE seq > ? ORDER BY seq LIMIT 1", (row,)
        ).fetchone()
        if kind == "cut":
            db.execute("UPDATE parts SET payload = substr(payload, 2) WHERE seq = ?", (seq,))
            return
        name = COLUMNS[kind]
        (column,) = db.execute(f"SELECT {name} FROM parts WHERE seq = ?", (seq,)).fetchone()
        changed = bytearray(column)
        changed[(row - (seq - rows)) * (len(column) // rows)] ^= 1
        db.execute(f"UPDATE parts SET {name} = ? WHERE seq = ?", (bytes(changed), seq))
    db.close()
