"""Pieces: an aggregate cut into ranges that are small enough to travel, and that add up by number.

A piece has the integers of 2^16 places, or rows of reports where those are kept. Which integer is
in which piece follows from the plan, so the pieces of parts of a crowd are added up number by
number, in any order and any grouping, by whoever holds them; nobody needs a whole aggregate but
the one who reads it.

The check of piece 0 is a linear function of all the aggregate's integers, negated, modulo 2^64, and
that of the others 0. So whoever adds up all pieces of some parts sees whether one was lost, or
taken twice; but not whether all pieces of a part were, which the number of people tells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.cells import PlacedCells, held_cells, joined_cells, ranges_of
from sottovoce.aggregation.piece_bytes import PIECE_CELLS, PieceBody, body_of, packed
from sottovoce.aggregation.rows import CountedRows, byte_keys, distinct_rows, joined_rows
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch
from sottovoce.oracles.base import Integers

if TYPE_CHECKING:
    from sottovoce.aggregation.counts import Counts

KEPT_CELLS = 1 << 22  # of small pieces, between the look at all of them and their use
JOINED_CELLS = 1 << 20  # of several pieces, that are added in one step
# of a piece of rows, if as many people come as the plan expects: 32 times as many still fit
ROW_PIECE_BYTES = 1 << 15

_WORD = 1 << 64
_GOLDEN = 0x9E3779B97F4A7C15


Content = PlacedCells | CountedRows


@dataclass(frozen=True)
class Piece:
    """One range of an aggregate: its number, and its integers as bytes (1 MiB at most)."""

    number: int
    body: bytes


# -- from an aggregate to its pieces


def pieces_of(plan_id: str, counts: Counts, people: int, rows: bool) -> Iterator[Piece]:
    """The pieces of counts, under a plan that expects so many people, with rows or without;
    ranges that are empty are left out, but piece 0 is always there, and comes last.
    """
    kept = _row_pieces(counts, people) if rows else ()
    return _cut(plan_id, counts.magnitude, chain(_ranges(counts.cells()), kept))


def vector_pieces(plan_id: str, integers: Integers) -> Iterator[Piece]:
    """The pieces of integers of any shape that a part of a plan's crowd gives, and that add up."""
    return _cut(plan_id, 0, _ranges(held_cells(integers)))


def _cut(plan_id: str, magnitude: int, contents: Iterable[tuple[int, Content]]) -> Iterator[Piece]:
    total = 0
    first: Content = joined_cells([])
    for number, content in contents:
        total += _linear(number, content)
        if number:
            yield Piece(number, packed(number, PieceBody(plan_id, 0, 0, content)))
        else:
            first = content
    yield Piece(0, packed(0, PieceBody(plan_id, -total % _WORD, magnitude, first)))


def _ranges(parts: Iterable[PlacedCells]) -> Iterator[tuple[int, PlacedCells]]:
    """(number, cells of that piece) of the pieces that have any."""
    for number, cells in ranges_of(parts, PIECE_CELLS):
        yield number, PlacedCells(cells.places - number * PIECE_CELLS, cells.values)


def first_row_piece(counts: Counts) -> int:
    """The number of the first piece of rows: those of cells come before."""
    return -(-counts.cell_count // PIECE_CELLS)


def _row_pieces(counts: Counts, people: int) -> Iterator[tuple[int, CountedRows]]:
    """Rows by a hash of their bytes: equal ones always get the same piece's number."""
    whole = counts.kept_rows()
    if not len(whole.payload):
        return
    pieces = max(1, people * whole.payload.shape[1] // ROW_PIECE_BYTES)
    numbers = _hashes(whole.payload) % np.uint64(pieces)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] + np.uint64(1)))
    first = first_row_piece(counts)
    for rows in np.split(order, starts[1:]):
        own = None if whole.counts is None else whole.counts[rows]
        part = distinct_rows(CountedRows(whole.payload[rows], own))
        yield first + int(numbers[rows[0]]), part


def _hashes(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A number for each row that depends on all of its bytes."""
    mixed = np.zeros(len(rows), np.uint64)
    for key in byte_keys(rows):
        mixed = (mixed ^ key) * np.uint64(_GOLDEN)
        mixed ^= mixed >> np.uint64(29)
    return mixed


# -- from pieces to an aggregate


def add_pieces(plan_id: str, counts: Counts, pieces: Sequence[Piece]) -> None:
    """Add all pieces of some aggregates of one plan to counts; if any is wrong, nothing changes."""
    bodies = _Bodies()
    magnitude = _checked(plan_id, pieces, bodies, partial(_check_content, counts))
    counts.grow(magnitude)
    for content in _contents(pieces, bodies):
        if isinstance(content, PlacedCells):
            counts.add_cells(content)
        else:
            counts.add_rows(content)


def vector_of(plan_id: str, pieces: Sequence[Piece], shape: tuple[int, ...]) -> Integers:
    """The sum of integers of one shape that were cut by :func:`vector_pieces`."""
    total = np.zeros(math.prod(shape), np.int64)

    def check(number: int, content: Content) -> None:
        last = content.places[-1:] if isinstance(content, PlacedCells) else None
        if last is None or (number * PIECE_CELLS + last >= len(total)).any():
            raise CorruptReport("the integers have no such piece")

    if not pieces:
        raise CorruptReport("pieces: all are missing")
    bodies = _Bodies()
    _checked(plan_id, pieces, bodies, check)
    most: dict[int, int] = defaultdict(int)
    for piece in pieces:
        content = bodies.of(piece).content
        assert isinstance(content, PlacedCells)
        most[piece.number] += _largest(content)
        if most[piece.number] >= 1 << 63:
            raise _too_large(piece.number)
        total[content.places + piece.number * PIECE_CELLS] += content.values
    return total.reshape(shape)


class _Bodies:
    """What pieces say. All of them are checked before any is used: small ones are kept meanwhile,
    others are read twice.
    """

    def __init__(self) -> None:
        self._kept: dict[Piece, PieceBody] = {}
        self._left = KEPT_CELLS

    def of(self, piece: Piece) -> PieceBody:
        """What one says."""
        known = self._kept.get(piece)
        if known is not None:
            return known
        body = body_of(piece.number, piece.body)
        size = len(body.content.places) if isinstance(body.content, PlacedCells) else KEPT_CELLS
        if size <= self._left:
            self._kept[piece] = body
            self._left -= size
        return body


def _checked(
    plan_id: str,
    pieces: Sequence[Piece],
    bodies: _Bodies,
    check_content: Callable[[int, Content], None],
) -> int:
    """The magnitude of pieces, all of which were looked at."""
    magnitude, check = 0, 0
    for piece in pieces:
        body = bodies.of(piece)
        if body.plan_id != plan_id:
            raise PlanMismatch(f"piece {piece.number}: it belongs to another plan")
        try:
            check_content(piece.number, body.content)
        except CorruptReport as wrong:
            raise CorruptReport(f"piece {piece.number}: {wrong}") from None
        magnitude += body.magnitude
        check += body.check + _linear(piece.number, body.content)
    if check % _WORD:
        raise CorruptReport("pieces: some are missing, or there twice")
    return magnitude


def _too_large(number: int) -> InvalidInput:
    return InvalidInput(f"piece {number}: the sums of its integers need over 64 bits")


def _check_content(counts: Counts, number: int, content: Content) -> None:
    is_cells = isinstance(content, PlacedCells)
    if is_cells is not (number < first_row_piece(counts)):
        raise CorruptReport("its plan has no such piece")
    if isinstance(content, PlacedCells):
        counts.check_cells(PlacedCells(content.places + number * PIECE_CELLS, content.values))
    else:
        counts.check_rows(content)


def _contents(pieces: Sequence[Piece], bodies: _Bodies) -> Iterator[Content]:
    """What pieces hold, at the places of the aggregate. Pieces of few cells are joined, since a
    sparse tally sorts all that it holds whenever it gets more.
    """
    last, waiting, cells = -1, list[PlacedCells](), 0
    for piece in sorted(pieces, key=lambda piece: piece.number):
        content = bodies.of(piece).content
        is_next = isinstance(content, PlacedCells) and piece.number > last
        if waiting and (not is_next or cells > JOINED_CELLS):
            yield joined_cells(waiting)
            waiting, cells = [], 0
        last = piece.number
        if isinstance(content, PlacedCells):
            waiting.append(PlacedCells(content.places + piece.number * PIECE_CELLS, content.values))
            cells += len(content.places)
        else:
            yield content
    if waiting:
        yield joined_cells(waiting)


# -- adding up


def sum_pieces(number: int, bodies: Iterable[bytes]) -> bytes:
    """The bodies of one piece added up: the body of that piece of all crowds together.

    It depends on nothing but its arguments, and needs no plan.

    Args:
        number: whose bodies they are; one of another piece is refused.
        bodies: one for each part of the crowd, or for sums of several parts.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> one = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [True] * 10}, seed=1))
    >>> (piece,) = one.pieces()
    >>> twice = Piece(0, sum_pieces(0, [piece.body, piece.body]))
    >>> sv.Aggregate(plan).add_pieces([twice]) == one.merge(one)
    True
    """
    total: _Sum | None = None
    for data in bodies:
        body = body_of(number, data)
        if total is None:
            total = _Sum(number, body)
        total.add(body)
    if total is None:
        raise InvalidInput(f"piece {number}: there are no bodies to add up")
    return total.packed()


class _Sum:
    """The sum of a piece's bodies so far."""

    def __init__(self, number: int, first: PieceBody) -> None:
        self._number = number
        self._like = first
        self._check = self._magnitude = self._most = 0
        self._table = np.zeros(PIECE_CELLS, np.int64)
        self._rows: list[CountedRows] = []

    def add(self, body: PieceBody) -> None:
        if body.plan_id != self._like.plan_id:
            raise PlanMismatch(f"piece {self._number}: its bodies are of different plans")
        content = body.content
        if isinstance(content, PlacedCells) is not isinstance(self._like.content, PlacedCells):
            raise CorruptReport(f"piece {self._number}: its bodies have different forms")
        self._check = (self._check + body.check) % _WORD
        self._magnitude += body.magnitude
        self._most += _largest(content)
        if max(self._most, self._magnitude) >= 1 << 63:
            raise _too_large(self._number)
        if isinstance(content, PlacedCells):
            self._table[content.places] += content.values
        else:
            self._add_rows(content)

    def _add_rows(self, rows: CountedRows) -> None:
        self._rows.append(rows)
        if self._rows[0].payload.shape[1] != rows.payload.shape[1]:
            raise CorruptReport(f"piece {self._number}: its bodies have different forms")
        if len(self._rows) > 1:
            self._rows = [distinct_rows(joined_rows(self._rows))]

    def packed(self) -> bytes:
        places = np.flatnonzero(self._table)
        content = self._rows[0] if self._rows else PlacedCells(places, self._table[places])
        body = PieceBody(self._like.plan_id, self._check, self._magnitude, content)
        return packed(self._number, body)


def _largest(content: Content) -> int:
    """The largest absolute value of its integers; 1 if they are rows that were sent once each."""
    values = content.values if isinstance(content, PlacedCells) else content.counts
    if values is None:
        return 1
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def _linear(number: int, content: Content) -> int:
    """A linear function of the integers of a piece, modulo 2^64; each piece has its own."""
    # sum over cells of value * (2 place + 1), or over rows of their counts, times an odd number
    if isinstance(content, PlacedCells):
        weights = (2 * content.places + 1).astype(np.uint64)
        total = int((content.values.astype(np.uint64) * weights).sum(dtype=np.uint64))
    elif content.counts is None:
        total = len(content.payload)
    else:
        total = int(content.counts.sum())
    return total * (number * _GOLDEN | 1) % _WORD
