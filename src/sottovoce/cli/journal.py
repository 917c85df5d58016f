"""The journal of `sottovoce send`: what was drawn for each row, durable before it leaves, so that it is drawn once."""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import re
import stat
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.assignments import Assignment
from sottovoce.errors import InvalidInput, PlanMismatch
from sottovoce.reports import Report

if TYPE_CHECKING:
    from sottovoce.front import Plan

FORMAT = 1
DIGEST_BYTES = 16
_LINE = re.compile(rb"[0-9a-f]{8} \{.*\}")
_TORN_HEAD = re.compile(rb'[0-9a-f]{0,8}|[0-9a-f]{8} (\{("journal":.*)?)?')


@dataclass(frozen=True)
class Drawn:
    """One row's report, with the id and the assignment that it is sent with."""

    row: int  # of the people's file, from 1
    digest: bytes  # of the record that it was drawn from
    id: bytes
    report: Report
    assignment: Assignment | None = None

    def to_json(self) -> dict[str, Any]:
        sent: dict[str, Any] = {
            "id": self.id.hex(),
            "cohort": self.report.cohort,
            "payload": self.report.payload.hex(),
        }
        if self.assignment is not None:
            sent |= {"expires": self.assignment.expires, "signature": self.assignment.signature.hex()}
        return {"row": self.row, "digest": self.digest.hex(), **sent}

    @classmethod
    def from_json(cls, body: Mapping[str, Any], plan_id: str) -> Drawn:
        """The inverse of :meth:`to_json`."""
        id = bytes.fromhex(body["id"])
        given = None
        if "signature" in body:
            given = Assignment(plan_id, id, body["expires"], bytes.fromhex(body["signature"]))
        report = Report(plan_id, body["cohort"], bytes.fromhex(body["payload"]))
        return cls(body["row"], bytes.fromhex(body["digest"]), id, report, given)


def journal_beside(people: Path, plan: Plan) -> Path:
    """Where the journal of a people's file lies, unless somebody says otherwise; one for each plan."""
    real = people.resolve()
    return real.with_name(f"{real.name}.{plan.id[:16]}.journal")


class Journal:
    """Lines of JSON, each with its checksum, that only its owner may read: a head, then draws and acknowledgements.

    A draw is on the disk when :meth:`write` returns. A last line that a crash tore was never sent, and is cut off.
    Whoever reads a journal can test guesses about a row against its digest: it is as secret as the people's file.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self._plan = path, plan
        self.digests: dict[int, bytes] = {}  # of the rows that were drawn
        self.acknowledged: set[int] = set()
        self._lock = threading.Lock()
        self._file = _opened(path)
        self._is_own = False  # until it was read
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    def _load(self) -> None:
        self._end, count = 0, 0
        for count, (place, body) in enumerate(_lines(self.path), start=1):
            self._end = place
            try:
                if count == 1:
                    self._check_head(body)
                elif "row" in body:
                    drawn = Drawn.from_json(body, self._plan.id)
                    if drawn.row in self.digests:
                        raise ValueError
                    self.digests[drawn.row] = drawn.digest
                else:
                    self.acknowledged.update(map(int, body["acknowledged"]))
            except (KeyError, TypeError, ValueError) as wrong:
                if isinstance(wrong, PlanMismatch):
                    raise
                raise InvalidInput(f"journal ({self.path}): line {count} is not one that send wrote") from None
        os.ftruncate(self._file, self._end)
        os.fsync(self._file)  # an interrupted run may not have come to it
        if not count:
            self._key = os.urandom(32)
            self._append([{"journal": FORMAT, "plan": self._plan.id, "key": self._key.hex()}], durable=True)
            sync_folder(self.path)
        self._is_own = True

    def _check_head(self, body: Mapping[str, Any]) -> None:
        if body["journal"] != FORMAT:
            raise ValueError
        if body["plan"] != self._plan.id:
            raise PlanMismatch(f"journal ({self.path}) belongs to another plan; give --journal FILE, another one")
        self._key = bytes.fromhex(body["key"])

    def digest(self, codes: Mapping[str, Any]) -> bytes:
        """By which a record is recognised; nothing without the journal's key."""
        text = json.dumps(codes, sort_keys=True, default=int)
        return hmac.digest(self._key, text.encode(), "sha256")[:DIGEST_BYTES]

    def write(self, draws: Sequence[Drawn]) -> None:
        """Keep what was drawn; on the disk when this returns."""
        with self._lock:
            self._append([drawn.to_json() for drawn in draws], durable=True)
            self.digests.update((drawn.row, drawn.digest) for drawn in draws)

    def acknowledge(self, rows: Sequence[int]) -> None:
        """Note what the collector has. If this is lost, a report is sent again under its id, and counts once."""
        with self._lock:
            self._append([{"acknowledged": list(rows)}], durable=False)
            self.acknowledged.update(rows)

    def waiting(self) -> Iterator[Drawn]:
        """What was drawn before and is not acknowledged."""
        for _, body in _lines(self.path, self._end):
            if "row" in body and body["row"] not in self.acknowledged:
                yield Drawn.from_json(body, self._plan.id)

    def _append(self, bodies: Iterable[Mapping[str, Any]], durable: bool) -> None:
        data = b"".join(map(_line, bodies))
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._file, left) :]
            if durable:
                os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, self._end)  # nothing of it was sent
            raise
        self._end += len(data)

    def close(self) -> None:
        """Leave it to others; a journal of nothing is removed."""
        if self._is_own and not self.digests:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


def _opened(path: Path) -> int:
    """The file to append to, and no other process's meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        file = os.open(path, flags, 0o600)
    except OSError as wrong:
        raise InvalidInput(
            f"journal ({path}) cannot be written ({wrong.strerror}); --journal FILE names another place for it, "
            f"the same in every run"
        ) from None
    try:
        _take(file, path)
    except BaseException:
        os.close(file)
        raise
    return file


def _take(file: int, path: Path) -> None:
    """Refuse a file that others could read, or are writing to."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise InvalidInput(f"journal ({path}) must be a file of whoever sends")
    os.fchmod(file, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.path.samestat(found, os.stat(path))  # or else another send has just removed it
    except OSError:
        is_there = False
    if not is_there:
        raise InvalidInput(f"journal ({path}) is in use: another send is under way")


def sync_folder(path: Path) -> None:
    """Make a file's name durable."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _line(body: Mapping[str, Any]) -> bytes:
    data = json.dumps(body, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _lines(path: Path, end: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(where it ends, what it says) of every line up to ``end``; the last may be torn, and no other."""
    place = 0
    with path.open("rb") as file:
        for count, line in enumerate(file, start=1):
            if end is not None and place >= end:
                return
            body = _parsed(line)
            if body is None:
                if count == 1 and not _TORN_HEAD.fullmatch(line):
                    raise InvalidInput(f"journal ({path}) must be a file that an earlier send wrote, or a new one")
                if file.read(1):
                    raise InvalidInput(f"journal ({path}): line {count} is damaged; what was drawn cannot be told")
                return
            place += len(line)
            yield place, body


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A whole line that is as it was written."""
    text = line[:-1]
    if line[-1:] != b"\n" or not _LINE.fullmatch(text) or int(text[:8], 16) != zlib.crc32(text[9:]):
        return None
    body: dict[str, Any] = json.loads(text[9:])
    return body
