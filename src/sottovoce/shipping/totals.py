"""Totals: what a minute's or a day's reports add up to, as files; and the sum of all days."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.shipping.layout import PLAN_FILE, PLAN_FOLDER, Listing, plan_folder
from sottovoce.shipping.places import FileGone, Place

_MAGIC = b"SVT\x01"
_LENGTH = 4  # bytes of the length of the head, and of the checksum
ATTEMPTS = 5  # at reading what somebody replaces meanwhile


@dataclass(frozen=True)
class PartTotal:
    """A sum, and what it is of."""

    aggregate: Aggregate
    duplicates: int = 0  # reports left out because their id counts already
    conflicts: int = 0  # ids that came with different contents
    parts: tuple[str, ...] = ()  # of a day: the totals of its minutes
    segments: tuple[str, ...] = ()  # of a day that is over for good: what was deleted since

    def plus(self, other: PartTotal) -> PartTotal:
        """Both; the aggregate of this one grows."""
        return replace(
            self,
            aggregate=self.aggregate.absorb(other.aggregate),
            duplicates=self.duplicates + other.duplicates,
            conflicts=self.conflicts + other.conflicts,
        )

    def to_bytes(self) -> bytes:
        """As a file."""
        head = {
            "people": self.aggregate.people,
            "duplicates": self.duplicates,
            "conflicts": self.conflicts,
            "parts": self.parts,
            "segments": self.segments,
        }
        text = zlib.compress(json.dumps(head).encode())
        body = _MAGIC + len(text).to_bytes(_LENGTH, "little") + text + self.aggregate.to_bytes()
        return body + zlib.crc32(body).to_bytes(_LENGTH, "little")

    @classmethod
    def from_bytes(cls, plan: Plan, data: bytes) -> Self:
        """The inverse of :meth:`to_bytes`; refuses what was damaged."""
        body, check = data[:-_LENGTH], data[-_LENGTH:]
        if body[:4] != _MAGIC or zlib.crc32(body).to_bytes(_LENGTH, "little") != check:
            raise CorruptReport("total: the checksum does not match; it was cut or damaged")
        start = 4 + _LENGTH
        length = int.from_bytes(body[4:start], "little")
        head = json.loads(zlib.decompress(body[start : start + length]))
        aggregate = Aggregate.from_bytes(plan, body[start + length :], head["people"])
        return cls(
            aggregate,
            head["duplicates"],
            head["conflicts"],
            tuple(head["parts"]),
            tuple(head["segments"]),
        )


def read_part(plan: Plan, place: Place, name: str) -> PartTotal:
    """One file of a plan's totals; one clear error for a damaged one, which names it."""
    path = f"{plan_folder(plan.id)}/{name}"
    try:
        return PartTotal.from_bytes(plan, place.read(path))
    except CorruptReport:
        raise CorruptReport(
            f"total ({path}) is damaged; remove it, and fold its minutes again"
        ) from None


@dataclass(frozen=True)
class Collected:
    """All that was folded of a plan."""

    aggregate: Aggregate
    days: int
    duplicates: int
    conflicts: int
    damaged: int  # segments that were set aside because they are not as they were shipped
    late: int  # because their day was over for good

    @property
    def people(self) -> int:
        return self.aggregate.people


def collected(
    plan: Plan, place: Place, advance: Callable[[int], None] | None = None, *, empty: bool = False
) -> Collected:
    """The sum of a plan's days; refused where nothing of the plan was folded, unless it may be
    ``empty``.

    While somebody folds, it is of before or after; never of half a change.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _collected(plan, place, advance, empty)
        except FileGone:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _collected(
    plan: Plan, place: Place, advance: Callable[[int], None] | None, empty: bool
) -> Collected:
    listing = Listing.of(place.names(plan_folder(plan.id)))
    days = list(listing.last_days.values())
    if not days and not empty:
        raise InvalidInput(
            f"totals ({place.shown}) must hold a total of the plan; see `sottovoce fold-minutes`"
        )
    total = PartTotal(Aggregate(plan))
    for done, day in enumerate(days):
        total = total.plus(read_part(plan, place, day.name))
        if advance is not None:
            advance(done + 1)
    return Collected(
        total.aggregate,
        len(days),
        total.duplicates,
        total.conflicts,
        listing.damaged,
        listing.late,
    )


def plan_ids(place: Place) -> list[str]:
    """The plans that were shipped to a place."""
    found = [PLAN_FOLDER.fullmatch(name) for name in place.folders()]
    return [match[1] for match in found if match is not None]


def read_plan(place: Place, plan_id: str) -> Plan:
    """A plan as its collectors shipped it."""
    return Plan.from_json(place.read(f"{plan_folder(plan_id)}/{PLAN_FILE}"), id=plan_id)
