"""The journal of `sottovoce send`: what was drawn for each row, durable before it leaves, so that
it is drawn once.
"""

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

from sottovoce.device.assignment import Assignment
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.protocol.reports import Report

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan

JOURNAL_FORMAT = 1
DIGEST_BYTES = 16
_LINE = re.compile(rb"[0-9a-f]{8} \{.*\}")
_HEAD = re.compile(rb'[0-9a-f]{8} \{"journal":')
_HEAD_BYTES = 20  # that the pattern needs
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class DrawnReport:
    """One row's report, with the id and the assignment that it is sent with, or its onion."""

    row: int  # of the people's file, from 1
    digest: bytes  # of the record that it was drawn from
    id: bytes
    report: Report
    assignment: Assignment | None = None
    onion: bytes = b""  # the report sealed, in a shuffled plan; its id is then the nonce inside

    def to_json(self) -> dict[str, Any]:
        sent: dict[str, Any] = {
            "id": self.id.hex(),
            "cohort": self.report.cohort,
            "payload": self.report.payload.hex(),
        }
        if self.report.public:
            sent["public"] = self.report.columns.to_json(self.report.public)
        if self.assignment is not None:
            sent |= {
                "expires": self.assignment.expires,
                "signature": self.assignment.signature.hex(),
            }
        if self.onion:
            sent["onion"] = self.onion.hex()
        return {"row": self.row, "digest": self.digest.hex(), **sent}

    @classmethod
    def from_json(cls, body: Mapping[str, Any], plan: Plan) -> DrawnReport:
        """The inverse of :meth:`to_json`."""
        id = bytes.fromhex(body["id"])
        given = None
        if "signature" in body:
            given = Assignment(plan.id, id, body["expires"], bytes.fromhex(body["signature"]))
        public = plan.public.from_json(body.get("public"))
        report = Report(
            plan.id, body["cohort"], bytes.fromhex(body["payload"]), public, plan.public
        )
        onion = bytes.fromhex(body.get("onion", ""))
        return cls(body["row"], bytes.fromhex(body["digest"]), id, report, given, onion)


def journal_beside(people: Path, plan: Plan) -> Path:
    """Where the journal of a people's file lies, unless somebody says otherwise;
    one for each plan.
    """
    real = people.resolve()
    return real.with_name(f"{real.name}.{plan.id[:16]}.journal")


class Record:
    """What a journal says: its people's file, its key, rows drawn, and rows the collector has."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self._plan = path, plan
        self.people: Path | None = None  # whose journal it is; of a new one nobody's
        # where its reports go; journals of earlier versions do not tell
        self.collector: str | None = None
        self.digests: dict[int, bytes] = {}  # of the rows that were drawn
        self._ids: dict[int, bytes] = {}  # theirs, if the plan is shuffled: the nonces
        self.acknowledged: set[int] = set()
        self._key = b""
        self._end = 0

    def read(self, file: int) -> None:
        """Take in all lines of an open file."""
        for count, (place, body) in enumerate(_lines(file, self.path), start=1):
            try:
                self._take_in(body, is_head=count == 1)
            except (AttributeError, KeyError, TypeError, ValueError) as wrong:
                if isinstance(wrong, PlanMismatch):
                    raise
                raise InvalidInput(
                    f"journal ({self.path}): line {count} is not one that send wrote"
                ) from None
            self._end = place

    def _take_in(self, body: Mapping[str, Any], is_head: bool) -> None:
        if is_head:
            self._check_head(body)
        elif "row" in body:
            drawn = DrawnReport.from_json(body, self._plan)
            if drawn.row in self.digests:
                raise ValueError
            self.digests[drawn.row] = drawn.digest
            if drawn.onion:
                self._ids[drawn.row] = drawn.id
        elif "people" in body:
            self.people = Path(body["people"])
        elif "collector" in body:
            if not isinstance(body["collector"], str):
                raise ValueError
            self.collector = body["collector"]
        else:
            rows = set(body["acknowledged"])
            if not rows <= self.digests.keys():
                raise ValueError
            self.acknowledged |= rows

    def _check_head(self, body: Mapping[str, Any]) -> None:
        if body["journal"] != JOURNAL_FORMAT:
            raise ValueError
        if body["plan"] != self._plan.id:
            raise PlanMismatch(
                f"journal ({self.path}) belongs to another plan; give --journal FILE, another one"
            )
        self._key = bytes.fromhex(body["key"])
        self.people = Path(body["people"])

    def read_file(self) -> None:
        """Take in the file as it is, beside a send that may be under way."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as wrong:
            raise InvalidInput(f"journal ({self.path}) cannot be read ({wrong.strerror})") from None
        try:
            self.read(file)
        finally:
            os.close(file)

    def acknowledged_ids(self) -> list[bytes]:
        """The nonces of the sealed reports that were taken."""
        return [self._ids[row] for row in sorted(self.acknowledged & self._ids.keys())]

    def digest(self, codes: Mapping[str, Any]) -> bytes:
        """By which a record is recognised; nothing without the journal's key."""
        text = json.dumps(codes, sort_keys=True, default=int)
        return hmac.digest(self._key, text.encode(), "sha256")[:DIGEST_BYTES]

    def is_of(self, people: Path) -> bool:
        """Whether it was made for this file, under this name or another that leads to it."""
        if self.people is None:
            return False
        try:
            return people.resolve() == self.people or os.path.samefile(people, self.people)
        except OSError:
            return False

    def is_left(self) -> bool:
        """Whether the file that it was made for is no longer there:
        it may have got another name.
        """
        try:
            os.lstat(self.people or "")
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # that cannot be told
            return False
        return False


def other_records(people: Path, plan: Plan) -> Iterator[Record]:
    """The other journals of a plan in the folder of a people's file."""
    own = journal_beside(people, plan)
    for path in sorted(own.parent.glob(f"*.{plan.id[:16]}.journal")):
        if path == own:
            continue
        found = Record(path, plan)
        try:
            _read_unlocked(found)
        except FileNotFoundError:  # another send has just removed it
            continue
        except OSError as wrong:
            raise InvalidInput(
                f"journal ({path}) cannot be read ({wrong.strerror}): it may be of these people; "
                "if it is not, give --journal FILE, a new one"
            ) from None
        yield found


def _read_unlocked(record: Record) -> None:
    file = os.open(record.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        record.read(file)
    finally:
        os.close(file)


class Journal(Record):
    """Lines of JSON with checksums, for its owner's eyes: a head, then draws and acknowledgements.

    A draw is on the disk when :meth:`write` returns. A last line that a crash tore was never sent,
    and is cut off. Whoever reads a journal can test guesses about a row against its digest: it is
    as secret as the people's file.
    """

    def __init__(self, path: Path, plan: Plan, people: Path) -> None:
        super().__init__(path, plan)
        self._lock = threading.Lock()
        self._file = _opened(path)
        self._is_own = False  # until it was read
        try:
            self._load(people)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    def _load(self, people: Path) -> None:
        self.read(self._file)
        if self._end and not self.is_of(people) and not self.is_left():
            raise InvalidInput(
                f"journal ({self.path}) is of another people's file, {self.people}; give each file "
                "a journal of its own with --journal FILE, or remove that file if it is a copy of "
                "this one"
            )
        os.fchmod(self._file, 0o600)
        os.ftruncate(self._file, self._end)
        os.fsync(self._file)  # an interrupted run may not have come to it
        if not self._end:
            self._key = os.urandom(32)
            self.people = people.resolve()
            head = {
                "journal": JOURNAL_FORMAT,
                "plan": self._plan.id,
                "people": str(self.people),
                "key": self._key.hex(),
            }
            self._append([head], durable=True)
            sync_folder(self.path)
        self._is_own = True

    def check_collector(self, address: str, is_moved: bool) -> None:
        """Refuse another collector than the one that acknowledged, unless that one has moved."""
        if self.collector not in (None, address) and not is_moved:
            raise InvalidInput(
                f"to ({address}): the reports of journal {self.path} go to {self.collector}; give "
                f"--to {self.collector}, or if that same collector now has this address --moved; "
                "nothing was drawn or sent"
            )

    def belong_to(self, people: Path, collector: str) -> None:
        """From here on it is the journal of this file, which has all rows of the other name.

        Its reports go to this collector.
        """
        if not self.is_of(people):
            self.people = people.resolve()
            self._append([{"people": str(self.people)}], durable=True)
        if self.collector != collector:
            self.collector = collector
            self._append([{"collector": collector}], durable=True)

    def write(self, draws: Sequence[DrawnReport]) -> None:
        """Keep what was drawn; on the disk when this returns."""
        with self._lock:
            self._append([drawn.to_json() for drawn in draws], durable=True)
            self.digests.update((drawn.row, drawn.digest) for drawn in draws)

    def acknowledge(self, rows: Sequence[int]) -> None:
        """Note what the collector has; if lost, a report is sent again, and counts once."""
        with self._lock:
            self._append([{"acknowledged": list(rows)}], durable=False)
            self.acknowledged.update(rows)

    def waiting(self) -> Iterator[DrawnReport]:
        """What was drawn before and is not acknowledged."""
        for _, body in _lines(self._file, self.path, self._end):
            if "row" in body and body["row"] not in self.acknowledged:
                yield DrawnReport.from_json(body, self._plan)

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
        if self._is_own and not self.digests and is_at(self._file, self.path):
            self.path.unlink()
        os.close(self._file)


def _opened(path: Path) -> int:
    """The file to append to, and no other process's meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        file = os.open(path, flags, 0o600)
    except OSError as wrong:
        raise InvalidInput(
            f"journal ({path}) cannot be written ({wrong.strerror}); --journal FILE names another "
            "place for it, the same in every run"
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
    if not is_locked(file, path):
        raise InvalidInput(f"journal ({path}) is in use: another send is under way")


def is_locked(file: int, path: Path) -> bool:
    """Lock a file against other processes; not if one of them has it, or has just removed it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return is_at(file, path)


def is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except OSError:
        return False


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


def _lines(file: int, path: Path, end: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(where it ends, what it says) of every line up to ``end``; the last may be torn."""
    end = os.fstat(file).st_size if end is None else end
    foreign = f"journal ({path}) must be a file that an earlier send wrote, or a new or empty one"
    if end and not _HEAD.match(os.pread(file, _HEAD_BYTES, 0)):
        raise InvalidInput(foreign)
    place = 0
    for count, line in enumerate(_split(file, end), start=1):
        body = _parsed(line)
        if body is None and place + len(line) < end:
            raise InvalidInput(
                f"journal ({path}): line {count} is damaged; what was drawn cannot be told"
            )
        if body is None and count == 1:
            raise InvalidInput(foreign)
        if body is None:
            return
        place += len(line)
        yield place, body


def _split(file: int, end: int) -> Iterator[bytes]:
    """The lines of an open file up to ``end``; others may append to it meanwhile."""
    place, rest = 0, b""
    while place < end and (data := os.pread(file, min(_READ_BYTES, end - place), place)):
        place += len(data)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A whole line that is as it was written."""
    text = line[:-1]
    if line[-1:] != b"\n" or not _LINE.fullmatch(text) or int(text[:8], 16) != zlib.crc32(text[9:]):
        return None
    body: dict[str, Any] = json.loads(text[9:])
    return body
