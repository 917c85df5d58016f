"""Totals: what a minute's or a day's reports add up to, as files; and the sum of all days."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.piece_bytes import PIECE_CELLS
from sottovoce.aggregation.pieces import Piece
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_places import PLAN_FOLDER
from sottovoce.shipping.layout import PLAN_FILE, Listing, plan_folder
from sottovoce.shipping.places import FileGone, Place

_MAGIC = b"SVT\x01"
_WHOLE, _PIECES = b"A", b"P"  # what a file's content begins with
_PIECE = struct.Struct("<QI")  # the number of a piece, and the length of its body
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
        body = _MAGIC + len(text).to_bytes(_LENGTH, "little") + text + _content(self.aggregate)
        return body + zlib.crc32(body).to_bytes(_LENGTH, "little")

    def plus(self, data: bytes) -> Self:
        """This and what a file says; the aggregate of this one grows. Refuses what was damaged, and
        changes nothing then.
        """
        body, check = data[:-_LENGTH], data[-_LENGTH:]
        if body[:4] != _MAGIC or zlib.crc32(body).to_bytes(_LENGTH, "little") != check:
            raise CorruptReport("total: the checksum does not match; it was cut or damaged")
        start = 4 + _LENGTH
        end = start + int.from_bytes(body[4:start], "little")
        head = json.loads(zlib.decompress(body[start:end]))
        _add_content(self.aggregate, body[end:], head["people"])
        return replace(
            self,
            duplicates=self.duplicates + head["duplicates"],
            conflicts=self.conflicts + head["conflicts"],
            parts=tuple(head["parts"]),
            segments=tuple(head["segments"]),
        )


def _content(aggregate: Aggregate) -> bytes:
    """An aggregate as it stands in a file: a large table in pieces, which leave out what is zero,
    anything else whole.
    """
    counts = aggregate.counts
    if counts.cell_count < PIECE_CELLS or len(counts.kept_rows().payload):
        return _WHOLE + aggregate.to_bytes()
    pieces = [_PIECE.pack(each.number, len(each.body)) + each.body for each in aggregate.pieces()]
    return _PIECES + b"".join(pieces)


def _add_content(aggregate: Aggregate, content: bytes, people: int) -> None:
    """Add what :func:`_content` wrote."""
    if content[:1] == _WHOLE:
        aggregate.absorb(Aggregate.from_bytes(aggregate.plan, content[1:], people))
        return
    pieces, place = [], 1
    while place < len(content):
        number, length = _PIECE.unpack_from(content, place)
        place += _PIECE.size + length
        pieces.append(Piece(number, content[place - length : place]))
    aggregate.add_pieces(pieces)


def add_part(total: PartTotal, place: Place, name: str) -> PartTotal:
    """A total and one more file of its plan's; one clear error names a damaged one."""
    path = f"{plan_folder(total.aggregate.plan.id)}/{name}"
    data = place.read(path)
    try:
        return total.plus(data)
    except CorruptReport:
        raise CorruptReport(
            f"total ({path}) is damaged; remove it, and fold its minutes again"
        ) from None


def read_part(plan: Plan, place: Place, name: str) -> PartTotal:
    """The same of a file by itself."""
    return add_part(PartTotal(Aggregate(plan)), place, name)


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
        total = add_part(total, place, day.name)
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
