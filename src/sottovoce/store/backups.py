"""Backups: a whole store in one file, which any store can be restored from.

The file is a SQLite store that takes nothing more, so whatever reads a store reads a backup. A manifest in it says what
each survey adds up to; both making and restoring a backup read every report and compare.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sottovoce.errors import InvalidInput, StoreError
from sottovoce.files import replacing
from sottovoce.store.keys import SIGNING_KEYS

if TYPE_CHECKING:
    from sottovoce.store.base import Store

FORMAT = 1
_MANIFEST = "backup"  # among the settings
_REST = ("plans", "tokens", "settings")  # tables that no aggregate vouches for
_SAVE = "INSERT INTO settings (name, value) VALUES (?, ?)"


@dataclass(frozen=True)
class Content:
    """What a backup holds of one survey."""

    reports: int
    damaged: int
    aggregate: str  # SHA-256 of what they add up to


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself."""

    made: float  # unix time
    has_keys: bool
    surveys: dict[str, Content]
    rest: str  # SHA-256 of titles, tokens and settings

    @property
    def reports(self) -> int:
        """Of all surveys."""
        return sum(content.reports for content in self.surveys.values())

    @property
    def damaged(self) -> int:
        """Reports that were damaged when the backup was made."""
        return sum(content.damaged for content in self.surveys.values())

    def to_json(self) -> str:
        """As it stands in the file."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read it; one clear error for another format."""
        try:
            body: dict[str, Any] = json.loads(text)
            version = body.pop("format", None)
            if version != FORMAT:
                raise InvalidInput(f"backup: format ({version}) must be {FORMAT}")
            surveys = {plan_id: Content(**content) for plan_id, content in body.pop("surveys").items()}
            return cls(surveys=surveys, **body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise StoreError("backup: what it says of itself is damaged; take another one") from None


def backup(store: Store, path: str | os.PathLike[str], *, with_keys: bool = True) -> Manifest:
    """Write all that a store holds at this moment, while others may write to it; the file is whole or not there.

    Without keys it lacks the analysts' tokens and the keys that sign assignments.
    """
    target = Path(path)
    if target.exists() and manifest_of(target) is None:
        raise InvalidInput(f"output ({target}) exists, and is not a backup that could be replaced")
    with replacing(target, private=True) as draft, _without_companions(draft):
        store._copy_to(draft)
        return _finish(draft, with_keys)


def restore(path: str | os.PathLike[str], store: Store, *, replace: bool = False, with_keys: bool = False) -> Manifest:
    """Fill an empty store from a backup that is as it was made, in one transaction.

    With ``replace`` a store that is not empty loses its surveys. Its tokens and keys stay as they are, since those of
    the backup may have been revoked since; with ``with_keys`` the backup's take their place.
    """
    source = Path(path)
    said = manifest_of(source)
    if said is None:
        raise InvalidInput(f"backup ({source}) must be a file that `sottovoce backup` wrote")
    if with_keys and not said.has_keys:
        raise InvalidInput(f"backup ({source}): it was made without keys, so none can be restored")
    with _opened(source) as copy:
        found = _measured(copy, source, said.has_keys, said.made)
    if found != said:
        raise StoreError(f"backup ({source}): it is not as it was made, something damaged it; take another one")
    store._load_from(source, replace, with_keys)
    for plan_id, content in said.surveys.items():
        if store.count(store.entry(plan_id).plan) != content.reports:
            raise StoreError("store: it does not hold what the backup does; somebody else wrote to it meanwhile")
    return said


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
        if not with_keys:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("DELETE FROM tokens")
            db.execute(f"DELETE FROM settings WHERE {SIGNING_KEYS}")
    with _opened(draft) as copy:
        manifest = _measured(copy, draft, with_keys, time.time(), save=True)
    with closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute(_SAVE, (_MANIFEST, manifest.to_json()))
    return manifest


def _measured(copy: Store, path: Path, has_keys: bool, made: float, save: bool = False) -> Manifest:
    """The manifest of a copy as it is; if wanted, checkpoints of all reports are saved on the way."""
    surveys = {}
    for entry in copy.entries():
        aggregate, damaged = copy.recount(entry.plan, save)
        digest = sha256(aggregate.to_bytes()).hexdigest()
        surveys[entry.plan.id] = Content(aggregate.people, damaged, digest)
    rest = sha256()
    with closing(sqlite3.connect(path)) as db:
        for table in _REST:
            for row in db.execute(f"SELECT * FROM {table} ORDER BY 1"):
                if row[0] != _MANIFEST:
                    rest.update(repr(row).encode())
    return Manifest(made, has_keys, surveys, rest.hexdigest())


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
