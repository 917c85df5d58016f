"""Where shipped reports lie: a folder, or whatever pyarrow reaches by a URL.

A file is there whole or not at all. Names are paths within the place, with ``/`` between parts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.ground.extras import imported
from sottovoce.ground.files import replacing, sync

_WHOLE_WRITES = ("s3", "gcs", "abfs")  # what is written there appears when it is whole
_RULE = (
    "must be a folder, or a URL of a kind that pyarrow knows: file://, s3://, gs://, abfs://, "
    "hdfs://"
)


class FileGone(StoreError):
    """A file that was listed is not there any more: somebody else removed it."""


class Place:
    """A folder somewhere; made by the first file that is put into it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Place.at(folder)
    ...     place.put("a/b", b"1")
    ...     place.names(), place.read("a/b")
    (['a/b'], b'1')
    """

    def __init__(self, files: Any, root: str, shown: str, server: str = "") -> None:
        self._files, self._root, self.shown = files, root.rstrip("/"), shown
        self._server = server  # if the URL names one
        self._is_local = files.type_name == "local"

    @classmethod
    def at(cls, address: str | os.PathLike[str]) -> Self:
        """The place at a path or a URL; one clear error for others, which shows no password."""
        fs = imported("pyarrow.fs")
        pa = imported("pyarrow")

        text = os.fspath(address)
        if "://" not in text:
            return cls(fs.LocalFileSystem(), str(Path(text).resolve()), text)
        shown = _without_secrets(text)
        try:
            files, root = fs.FileSystem.from_uri(text)
        except (pa.ArrowException, OSError, ValueError):
            raise InvalidInput(f"place ({shown}) {_RULE}") from None
        server = parse_qs(urlsplit(text).query).get("endpoint_override", [""])
        return cls(files, root, shown, server[0])

    @property
    def key(self) -> str:
        """A short name of the place, the same however its path is written."""
        text = self._root if self._is_local else f"{self._server} {self.shown}"
        return sha256(text.encode()).hexdigest()[:16]

    @property
    def folder(self) -> Path | None:
        """The folder itself, if it is one of this machine."""
        return Path(self._root) if self._is_local else None

    # -- reading

    def names(self, folder: str = "") -> list[str]:
        """All files in one of its folders or below, as paths within that; drafts are left out."""
        fs = imported("pyarrow.fs")

        start = self._path(folder)
        with self._translated(folder):
            infos = self._files.get_file_info(
                fs.FileSelector(start, recursive=True, allow_not_found=True)
            )
        paths = [info.path[len(start) + 1 :] for info in infos if info.type == fs.FileType.File]
        return sorted(path for path in paths if not path.rpartition("/")[2].startswith("."))

    def folders(self) -> list[str]:
        """The folders at its top; a file has none."""
        fs = imported("pyarrow.fs")

        with self._translated(""):
            try:
                infos = self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
            except NotADirectoryError:
                return []
        return sorted(info.base_name for info in infos if info.type == fs.FileType.Directory)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        fs = imported("pyarrow.fs")

        with self._translated(name):
            (info,) = self._files.get_file_info([self._path(name)])
        return bool(info.type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        with self._translated(name), self._files.open_input_file(self._path(name)) as file:
            return bytes(file.read())

    # -- writing

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all, in place of another one if there is one; durable when
        it returns.
        """
        path = self._path(name)
        with self._translated(name):
            if self._is_local:
                _put_file(Path(path), data)
            elif self._files.type_name in _WHOLE_WRITES:
                self._write(path, data)
            else:
                folder, _, file = path.rpartition("/")
                self._files.create_dir(folder, recursive=True)
                draft_path = f"{folder}/.{file}.{os.urandom(8).hex()}"
                self._write(draft_path, data)
                self._files.move(draft_path, path)

    def _write(self, path: str, data: bytes) -> None:
        with self._files.open_output_stream(path) as stream:
            stream.write(data)

    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        with self._translated(name):
            try:
                self._files.delete_file(self._path(name))
            except FileNotFoundError:
                return

    def move(self, name: str, target: str) -> None:
        """Give a file another name; killed on the way, it has one of them or both."""
        self.put(target, self.read(name))
        self.delete(name)

    def remove_if_empty(self, folder: str) -> None:
        """Remove a folder of this machine that holds nothing; object stores have none."""
        if self._is_local:
            try:
                os.rmdir(self._path(folder))
            except OSError:
                return

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        """What goes wrong there as our errors."""
        pa = imported("pyarrow")
        try:
            yield
        except FileNotFoundError:
            raise FileGone(f"place ({self.shown}): {name} is not there any more") from None
        except (pa.ArrowException, OSError) as wrong:
            words = " ".join(str(wrong).split())[:300] or type(wrong).__name__
            raise StoreError(f"place ({self.shown}) failed: {words}") from None


def _without_secrets(url: str) -> str:
    """A URL without user, password and options.

    >>> _without_secrets("s3://key:secret@bucket/a?region=x")
    's3://bucket/a'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition('://')[0]}://..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{re.sub('[?#].*', '', parts.path)}"


def _put_file(path: Path, data: bytes) -> None:
    """A file of this machine; once more if somebody removes its empty folder meanwhile."""
    for attempt in (1, 2):
        _make_folders(path.parent)
        try:
            with replacing(path) as draft:
                draft.write_bytes(data)
                return
        except (FileNotFoundError, InvalidInput):
            if attempt == 2:
                raise


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it; the disk has their names when it returns."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        sync(each.parent)
