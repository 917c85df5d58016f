"""How what is shipped is named: everything can be told from a list of names.

Under the folder of a plan, ``plan=<id>/``:

``plan.json``
    its text.
``closed``
    there once the survey is closed.
``minute=<m>/<store>-<first>-<last>-<digest>.parquet``
    a segment: reports whose ids are of the minute, from one store, between two of its sequence
    numbers. The digest is of the file, so that a name never means two contents.
``totals/<m>-<digest>.total``
    what the segments of a minute add up to; the digest is of their names.
``days/<day>-<generation>-<digest>.total``
    what the totals of a day's minutes add up to; the digest is of their names. The last generation
    counts. A day that is over for good has ``finished`` in place of the digest.
``set-aside/damaged/``, ``set-aside/late/``
    segments that count nowhere. After a time they are emptied: what is left has the same name with
    ``.forgotten`` after it, so that they are still counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Self

MINUTE_BITS = 16  # of the milliseconds that an id does not tell
LAST_SECOND = 253_402_300_799  # of the year 9999: later days have no name
PLAN_FILE, CLOSED, FINISHED = "plan.json", "closed", "finished"
DAMAGED_FOLDER, LATE_FOLDER = "set-aside/damaged", "set-aside/late"
FORGOTTEN_ENDING = ".forgotten"
_DIGITS = 16  # of a digest
_SEGMENT = re.compile(
    r"minute=([0-9a-f]{8})/(([0-9a-f]{32})-(\d{16})-(\d{16})-([0-9a-f]{16})\.parquet)"
)
_TOTAL = re.compile(r"totals/([0-9a-f]{8})-([0-9a-f]{16})\.total")
_ASIDE = re.compile(r"set-aside/(damaged|late)/([0-9a-f]{8})-[^/]*")
_DAY = re.compile(r"days/(\d{4}-\d\d-\d\d)-(\d{8})-([0-9a-f]{16}|finished)\.total")


def plan_folder(plan_id: str) -> str:
    """Where everything of a plan is."""
    return f"plan={plan_id}"


def digest(data: bytes) -> str:
    """The first digits of the SHA-256."""
    return sha256(data).hexdigest()[:_DIGITS]


def digest_of_names(names: Iterable[str]) -> str:
    """The same of names in any order."""
    return digest("\n".join(sorted(names)).encode())


def day_of(minute: int) -> str:
    """The day (UTC) in which a minute begins.

    >>> day_of(0x018bcfe5)
    '2023-11-14'
    """
    seconds = min((minute << MINUTE_BITS) / 1000, LAST_SECOND)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def minute_at(seconds: float) -> int:
    """The minute of a unix time, as ids tell it."""
    return int(seconds * 1000) >> MINUTE_BITS


@dataclass(frozen=True, order=True)
class Segment:
    """A file of reports; ``name`` is its path within the plan's folder."""

    minute: int
    file: str
    digest: str

    @property
    def name(self) -> str:
        return f"minute={self.minute:08x}/{self.file}"

    @classmethod
    def new(cls, minute: int, store: str, first: int, last: int, data: bytes) -> Self:
        """The name of a file's content."""
        own = digest(data)
        return cls(minute, f"{store}-{first:016d}-{last:016d}-{own}.parquet", own)

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """From a path; None of what is no segment."""
        found = _SEGMENT.fullmatch(name)
        return None if found is None else cls(int(found[1], 16), found[2], found[6])


@dataclass(frozen=True, order=True)
class MinuteTotal:
    """The sum of a minute's segments."""

    minute: int
    digest: str

    @property
    def name(self) -> str:
        return f"totals/{self.minute:08x}-{self.digest}.total"

    @classmethod
    def of(cls, minute: int, segments: Iterable[Segment]) -> Self:
        """That of these segments."""
        return cls(minute, digest_of_names(segment.file for segment in segments))

    @classmethod
    def parse(cls, name: str) -> Self | None:
        found = _TOTAL.fullmatch(name)
        return None if found is None else cls(int(found[1], 16), found[2])


@dataclass(frozen=True, order=True)
class DayTotal:
    """The sum of a day's minutes. Of several of a day the greatest counts."""

    day: str
    is_finished: bool
    generation: int
    digest: str

    @property
    def name(self) -> str:
        return f"days/{self.day}-{self.generation:08d}-{self.digest}.total"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        found = _DAY.fullmatch(name)
        if found is None:
            return None
        return cls(found[1], found[3] == FINISHED, int(found[2]), found[3])


@dataclass(frozen=True, order=True)
class AsideSegment:
    """A segment that counts nowhere; ``name`` is its path within the plan's folder."""

    kind: str  # damaged or late
    minute: int
    name: str

    @property
    def forgotten_name(self) -> str:
        """What is left of it when its reports are deleted."""
        return f"{self.name}{FORGOTTEN_ENDING}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """From a path; None of what is none, or is forgotten."""
        found = _ASIDE.fullmatch(name)
        if found is None or name.endswith(FORGOTTEN_ENDING):
            return None
        return cls(found[1], int(found[2], 16), name)


@dataclass(frozen=True)
class Listing:
    """What is in the folder of a plan."""

    segments: tuple[Segment, ...]
    minutes: tuple[MinuteTotal, ...]
    days: tuple[DayTotal, ...]
    damaged: int  # segments set aside because they are not as they were shipped
    late: int  # because their day was over for good
    aside: tuple[AsideSegment, ...]  # those of both that still hold reports

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """From paths within the folder; others are passed over."""
        listed = sorted(names)
        kept = {name.removesuffix(FORGOTTEN_ENDING) for name in listed}
        aside = [AsideSegment.parse(name) for name in listed]
        segments = [Segment.parse(name) for name in listed]
        minutes = [MinuteTotal.parse(name) for name in listed]
        days = [DayTotal.parse(name) for name in listed]
        return cls(
            tuple(each for each in segments if each is not None),
            tuple(each for each in minutes if each is not None),
            tuple(each for each in days if each is not None),
            sum(name.startswith(f"{DAMAGED_FOLDER}/") for name in kept),
            sum(name.startswith(f"{LATE_FOLDER}/") for name in kept),
            tuple(each for each in aside if each is not None),
        )

    @property
    def last_days(self) -> dict[str, DayTotal]:
        """The total of each day that counts."""
        return {each.day: each for each in sorted(self.days)}
