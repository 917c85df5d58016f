"""Files that are either whole or not there, and CSV that spreadsheets can open without harm."""

from __future__ import annotations

import csv
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.labels import csv_cell

PARQUET_ENDINGS = (".parquet", ".pq")  # of the names of such files
ORDINARY, PRIVATE = 0o666, 0o600  # the first is less what the umask takes away


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Write to a temporary neighbour, which takes the name ``path`` only if the block ends well.

    The file has the permissions of the one it replaces, or those that the umask leaves to a new
    one. A ``private`` one is for its owner alone.
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInput(f"output ({target}) must be a file, and is a folder")
    if not target.parent.is_dir():
        raise InvalidInput(f"output ({target}) must lie in a folder that exists")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    mode = PRIVATE if private else ORDINARY
    try:  # before the file is there: an interrupt may come as soon as it is
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield draft
        if target.is_file() and not private:
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        sync(draft)
        os.replace(draft, target)
        sync(target.parent)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a temporary neighbour, which becomes the folder ``path`` only if the block ends well.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with new_folder(f"{place}/out") as draft:
    ...         _ = (draft / "a.txt").write_text("a")
    ...     os.listdir(place)
    ['out']
    """
    target = Path(path)
    if target.exists() or target.is_symlink():
        raise InvalidInput(f"output ({target}) must not exist yet")
    if not target.parent.is_dir():
        raise InvalidInput(f"output ({target}) must lie in a folder that exists")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        draft.mkdir()
        yield draft
        for file in draft.iterdir():
            sync(file)
        sync(draft)
        os.rename(draft, target)
        sync(target.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def reading_table(name: str, path: Path) -> Iterator[None]:
    """One clear error for a table that Arrow cannot read, without its words: they quote the row."""
    pa = imported("pyarrow")
    try:
        yield
    except (pa.ArrowException, OSError) as wrong:
        if isinstance(wrong, OSError) and wrong.errno:
            raise
        kind = (
            "a whole Parquet file"
            if path.suffix.lower() in PARQUET_ENDINGS
            else "a CSV in UTF-8 with a header and rows of equal length "
            '(spreadsheets save it as "CSV UTF-8")'
        )
        raise InvalidInput(f"{name} ({path}) must be {kind}") from None


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_csv(file: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Rows as CSV; text is quoted, and nothing in it is a formula to a spreadsheet."""
    csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows(map(csv_cell, row) for row in rows)
