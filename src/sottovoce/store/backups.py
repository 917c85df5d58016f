"""Backups: a whole store in one file, which any store can be restored from.

The file is a SQLite store that takes nothing more, so whatever reads a store reads a backup. A
manifest in it has a digest of each survey's reports and of all else; both making and restoring a
backup read every report and compare. A digest is of what is stored, as it is stored, so that it is
the same with every version of every library.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.ground.files import replacing
from sottovoce.protocol.plan import Plan
from sottovoce.store.keys import SIGNING_KEYS
from sottovoce.store.shipped import OWN_SETTINGS
from sottovoce.store.sqlite_parts import good_rows

if TYPE_CHECKING:
    from hashlib import _Hash

    from sottovoce.store.base import Store

BACKUP_FORMAT = 2  # 2: digests of rows; backups of format 1 were never released
_MANIFEST = "backup"  # among the settings
_REST = ("plans", "set_aside", "checkpoints", "tokens", "settings")  # tables of all but the reports
_PARTS = (
    "SELECT seq, rows, people, ids, cohorts, payload, checksums FROM parts WHERE plan = ? ORDER "
    "BY seq"
)
_SAVE = "INSERT INTO settings (name, value) VALUES (?, ?)"


@dataclass(frozen=True)
class Content:
    """What a backup holds of one survey."""

    reports: int
    damaged: int  # reports that are in it and whose checksum does not hold
    set_aside: int  # those that were moved away, or left out
    rows: str  # SHA-256 of the reports, damaged ones included


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself."""

    made: float  # unix time
    has_keys: bool
    surveys: dict[str, Content]
    rest: str  # SHA-256 of texts, sums, tokens and settings

    @property
    def reports(self) -> int:
        """Of all surveys."""
        return sum(content.reports for content in self.surveys.values())

    @property
    def damaged(self) -> int:
        """Reports that were damaged when the backup was made."""
        return sum(content.damaged for content in self.surveys.values())

    @property
    def set_aside(self) -> int:
        """Reports that were set aside by then, damaged ones of a server among them."""
        return sum(content.set_aside for content in self.surveys.values())

    def to_json(self) -> str:
        """As it stands in the file."""
        return json.dumps({"format": BACKUP_FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read it; one clear error for another format."""
        try:
            body: dict[str, Any] = json.loads(text)
            version = body.pop("format", None)
            if version != BACKUP_FORMAT:
                raise InvalidInput(f"backup: format ({version}) must be {BACKUP_FORMAT}")
            surveys = {
                plan_id: Content(**content) for plan_id, content in body.pop("surveys").items()
            }
            return cls(surveys=surveys, **body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise StoreError(
                "backup: what it says of itself is damaged; take another one"
            ) from None


@dataclass(frozen=True)
class Restored:
    """What became of a backup that was restored."""

    manifest: Manifest
    # damaged reports that a server does not take; it counts them with those set aside
    left_out: int
    is_erased: bool  # whether the bytes of what was replaced are gone from the store's files


def backup(store: Store, path: str | os.PathLike[str], *, with_keys: bool = True) -> Manifest:
    """Write all that a store holds now, while others may write; the file is whole or not there.

    Without keys it lacks the analysts' tokens and the keys that sign assignments.
    """
    target = Path(path)
    if target.exists() and manifest_of(target) is None:
        raise InvalidInput(f"output ({target}) exists, and is not a backup that could be replaced")
    with replacing(target, private=True) as draft, _without_companions(draft):
        store._copy_to(draft)
        return _finish(draft, with_keys)


def restore(
    path: str | os.PathLike[str], store: Store, *, replace: bool = False, with_keys: bool = False
) -> Restored:
    """Fill an empty store from a backup that is as it was made, in one transaction.

    With ``replace`` a store that is not empty loses its surveys. Its tokens and keys stay as they
    are, since those of the backup may have been revoked since; with ``with_keys`` the backup's take
    their place.
    """
    source = Path(path)
    said = manifest_of(source)
    if said is None:
        raise InvalidInput(f"backup ({source}) must be a file that `sottovoce backup` wrote")
    if with_keys and not said.has_keys:
        raise InvalidInput(f"backup ({source}): it was made without keys, so none can be restored")
    found = _measured(source, said.has_keys, said.made)
    if found != said:
        raise StoreError(
            f"backup ({source}): it is not as it was made, something damaged it; take another one"
        )
    is_erased = store._load_from(source, replace, with_keys)
    return Restored(said, _left_out(store, said), is_erased)


def _left_out(store: Store, said: Manifest) -> int:
    """The damaged reports that a store did not take;
    one clear error if anything else is missing.
    """
    left_out = 0
    for plan_id, content in said.surveys.items():
        plan = store.entry(plan_id).plan
        kept = store.kept(plan)
        expected = content.reports
        if not kept.only_sums:
            expected += content.damaged + content.set_aside - kept.missing
        if store.count(plan) != expected:
            raise StoreError(
                "store: it does not hold what the backup does; somebody else wrote to it meanwhile"
            )
        left_out += kept.set_aside - content.set_aside
    return left_out


def manifest_of(path: Path) -> Manifest | None:
    """What a file says of itself if it is a backup."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(path)) as db:
            row = db.execute("SELECT value FROM settings WHERE name = ?", (_MANIFEST,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else Manifest.from_json(row[0])


def is_backup(db: sqlite3.Connection) -> bool:
    """Whether a SQLite store is a backup."""
    return db.execute("SELECT 1 FROM settings WHERE name = ?", (_MANIFEST,)).fetchone() is not None


def _finish(draft: Path, with_keys: bool) -> Manifest:
    """Measure a copy, and write into it what was found."""
    with closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute(f"DELETE FROM settings WHERE {OWN_SETTINGS}")
        if not with_keys:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("DELETE FROM tokens")
            db.execute(f"DELETE FROM settings WHERE {SIGNING_KEYS}")
        db.execute(
            "DELETE FROM checkpoints WHERE plan NOT IN (SELECT number FROM plans WHERE only_sums)"
        )
    manifest = _measured(draft, with_keys, time.time())
    with closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute(_SAVE, (_MANIFEST, manifest.to_json()))
    return manifest


# -- digests


def _measured(path: Path, has_keys: bool, made: float) -> Manifest:
    """The manifest of a copy as it is."""
    try:
        with _opened(path) as copy, closing(sqlite3.connect(path)) as db:
            db.text_factory = bytes
            surveys = {entry.plan.id: _content(copy, db, entry.plan) for entry in copy.entries()}
            rest = sha256()
            for table in _REST:
                _add(rest, [table.encode()])
                for row in _rows(db, table):
                    _add(rest, row)
    except sqlite3.Error as wrong:
        name = getattr(wrong, "sqlite_errorname", "") or type(wrong).__name__
        raise StoreError(
            f"backup ({path}): its file is damaged ({name}); take another one"
        ) from None
    return Manifest(made, has_keys, surveys, rest.hexdigest())


def _content(copy: Store, db: sqlite3.Connection, plan: Plan) -> Content:
    """What a copy holds of one survey: its reports are read, but not added up."""
    number, set_aside = db.execute(
        "SELECT number, set_aside FROM plans WHERE id = ?", (plan.id,)
    ).fetchone()
    digest = sha256()
    good = damaged = 0
    for part in db.execute(_PARTS, (number,)):
        _add(digest, part)
        _, rows, _, *columns = part
        is_good = good_rows(plan, rows, columns)
        good += int(is_good.sum())
        damaged += int((~is_good).sum())
    if copy.kept(plan).only_sums:
        good = copy.aggregate(plan).people
    return Content(good, damaged, set_aside, digest.hexdigest())


def _rows(db: sqlite3.Connection, table: str) -> Iterator[Sequence[Any]]:
    """All rows of a table but the manifest, in increasing order of their columns."""
    (count,) = db.execute("SELECT count(*) FROM pragma_table_info(?)", (table,)).fetchone()
    where = f"WHERE name <> '{_MANIFEST}'" if table == "settings" else ""
    order = ", ".join(str(column) for column in range(1, count + 1))
    yield from db.execute(f"SELECT * FROM {table} {where} ORDER BY {order}")


def _add(digest: _Hash, row: Sequence[Any]) -> None:
    """Take a row into a digest: the number of its cells, then the kind,
    length and bytes of each.
    """
    digest.update(len(row).to_bytes(8, "little"))
    for value in row:
        kind, body = _cell(value)
        digest.update(kind + len(body).to_bytes(8, "little"))
        digest.update(body)


def _cell(value: Any) -> tuple[bytes, bytes]:
    """What SQLite gives for one cell, as a kind and bytes; text is read as bytes."""
    if value is None:
        return b"n", b""
    if isinstance(value, int):
        return b"i", str(value).encode()
    if isinstance(value, float):
        return b"f", struct.pack("<d", value)
    return b"b", value


@contextmanager
def _opened(path: Path) -> Iterator[Store]:
    from sottovoce.store.sqlite import SqliteStore

    with SqliteStore(f"sqlite:///{quote(str(path.resolve()))}", create=False) as store:
        yield store


@contextmanager
def _without_companions(draft: Path) -> Iterator[None]:
    """No log of SQLite's stays beside a draft, however its making ends."""
    try:
        yield
    finally:
        for ending in ("-wal", "-shm", "-journal"):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)
