"""Where files of reports lie: paths of this machine, or URLs that pyarrow opens."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported

ReportPlace = Path | str  # a URL is a text

URL_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")
PLAN_FOLDER = re.compile(r"plan=([0-9a-f]{64})")  # of what was shipped
_ENDING = ".parquet"


def is_url(text: object) -> bool:
    """Whether a source of reports is a URL rather than a path.

    >>> is_url("s3://bucket/reports"), is_url("reports.parquet")
    (True, False)
    """
    return isinstance(text, str) and "://" in text


def place_of(source: str | os.PathLike[str]) -> ReportPlace:
    """A path, or the URL as it is."""
    if not isinstance(source, str) or not is_url(source):
        return Path(source)
    try:
        urlsplit(source)
    except ValueError:
        scheme = source.partition("://")[0]
        raise InvalidInput(f"reports ({scheme}://...) must be a URL that pyarrow opens") from None
    return source


def shown(place: ReportPlace) -> str:
    """A place as errors name it: without what may be a secret in a URL.

    >>> shown("s3://key:secret@bucket/reports?session_token=1")
    's3://bucket/reports'
    """
    if not is_url(place):
        return str(place)
    parts = urlsplit(str(place))
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, host if ":" in user else parts.netloc, parts.path, "", ""))


def is_folder(place: ReportPlace) -> bool:
    """Whether it is a folder; for an object store, whether anything lies below it."""
    if isinstance(place, Path):
        return place.is_dir()
    fs = imported("pyarrow.fs")
    with _reading(place):
        system, path = _opened_system(place)
        return bool(system.get_file_info(path).type == fs.FileType.Directory)


def parquet_files(place: ReportPlace) -> list[ReportPlace]:
    """The Parquet files of a folder, and of its folders named ``key=value``, by name; but not of
    those named ``plan=...``, where what was shipped lies, some of it twice; refused within one.
    """
    path = str(place.resolve()) if isinstance(place, Path) else unquote(urlsplit(place).path)
    if any(map(PLAN_FOLDER.fullmatch, path.split("/"))):
        raise InvalidInput(
            f"reports ({shown(place)}) must not be a folder of what was shipped, where some "
            "reports lie twice: `sottovoce fold-minutes` folds them, and the folder of all plans "
            "is what estimates are then made from"
        )
    if isinstance(place, Path):
        return [place / name for name in sorted(_local_names(place, ""))]
    fs = imported("pyarrow.fs")
    with _reading(place):
        system, root = _opened_system(place)
        found = system.get_file_info(fs.FileSelector(root, recursive=True))
    start = len(root.rstrip("/")) + 1
    names = [each.path[start:] for each in found if each.type == fs.FileType.File]
    parts = urlsplit(place)
    folder = parts.path.rstrip("/")
    return [
        urlunsplit(parts._replace(path=f"{folder}/{quote(name)}"))
        for name in sorted(filter(_is_listed, names))
    ]


def _local_names(folder: Path, prefix: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.is_dir() and _is_part(entry.name):
            yield from _local_names(folder / entry.name, f"{prefix}{entry.name}/")
        elif _is_listed(entry.name) and not entry.is_dir():
            yield f"{prefix}{entry.name}"


def _is_listed(name: str) -> bool:
    *folders, file = name.split("/")
    return file.endswith(_ENDING) and all(map(_is_part, folders))


def _is_part(folder: str) -> bool:
    return "=" in folder and not folder.startswith("plan=")


def opened(place: ReportPlace) -> Any:
    """What pyarrow reads a Parquet file from; one clear error if it is not there."""
    if isinstance(place, Path):
        if not place.is_file():
            raise InvalidInput(f"reports ({place}) must be a file that exists")
        return place
    with _reading(place):
        system, path = _opened_system(place)
        return system.open_input_file(path)


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """One clear error for a URL that cannot be read, without pyarrow's words, which quote it."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidInput(f"reports ({shown(place)}) must be a file that exists") from None
    except OSError as wrong:
        raise InvalidInput(
            f"reports ({shown(place)}) cannot be read: {type(wrong).__name__}; are the address, "
            "the network and the credentials right?"
        ) from None


def _opened_system(place: str) -> tuple[Any, str]:
    """(pyarrow's file system, the path in it) of a URL."""
    parts = urlsplit(place)
    if parts.scheme not in URL_SCHEMES:
        raise InvalidInput(
            f"reports ({shown(place)}) must be a path, a store, or a URL that begins with "
            + ", ".join(f"{scheme}://" for scheme in URL_SCHEMES)
        )
    pa = imported("pyarrow")
    try:
        system, root = _system(urlunsplit(parts._replace(path="/" * (parts.scheme == "file"))))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidInput(f"reports ({shown(place)}) must be a URL that pyarrow opens") from None
    return system, root.rstrip("/") + unquote(parts.path)


@lru_cache(maxsize=16)
def _system(base: str) -> tuple[Any, str]:
    """(a file system, its root), opened once: that of an object store asks where its bucket is."""
    system, root = imported("pyarrow.fs").FileSystem.from_uri(base)
    return system, str(root)
