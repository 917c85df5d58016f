"""A piece's integers as bytes.

They are, in little endian: ``SVP`` and 1; the plan's id; two integers of 8 bytes that add up as
well, the check and the magnitude; the length of the content, in 4 bytes; the content, compressed by
zstd; a CRC-32 of the piece's number and all of this.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.cells import PlacedCells
from sottovoce.aggregation.rows import CountedRows
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.oracles.base import Integers

PIECE_CELLS = 1 << 16
MAX_PIECE_BYTES = 1 << 20

_MAGIC = b"SVP\x01"
_HEAD = struct.Struct("<4s32sQqI")  # magic, plan id, check, magnitude, length of the content
_CELLS = struct.Struct("<BBI")  # form, bytes of an integer and of a gap, how many cells
_ROWS = struct.Struct("<BBIH")  # form, bytes of an integer, how many rows, bytes of a row
_CRC = 4
_DENSE, _SPARSE, _KEPT = range(3)  # forms of content
_MAX_CONTENT = MAX_PIECE_BYTES - (1 << 14)  # before zstd, which adds less than 1% at worst


class PieceBody(NamedTuple):
    """What a piece's bytes say."""

    plan_id: str
    check: int  # modulo 2^64, see sottovoce.aggregation.pieces
    magnitude: int  # of all reports, in piece 0
    content: PlacedCells | CountedRows  # places count from the piece's first one


def packed(number: int, body: PieceBody) -> bytes:
    """The bytes of a body; one form for the same integers, with one build of zstd."""
    content = body.content
    raw = _cell_bytes(content) if isinstance(content, PlacedCells) else _row_bytes(content)
    if len(raw) > _MAX_CONTENT:  # which only rows can be
        raise InvalidInput(
            f"piece {number}: its rows would have {len(raw)} bytes, more than {_MAX_CONTENT}; "
            "the plan expects fewer people"
        )
    compressed: bytes = imported("pyarrow").compress(raw, codec="zstd", asbytes=True)
    plan = bytes.fromhex(body.plan_id)
    data = _HEAD.pack(_MAGIC, plan, body.check, body.magnitude, len(raw)) + compressed
    return data + _crc(number, data)


def body_of(number: int, data: bytes) -> PieceBody:
    """What the bytes of a piece say; refuses other bytes, and those of another number."""
    if len(data) < _HEAD.size + _CRC or data[:4] != _MAGIC:
        raise CorruptReport(f"piece {number}: these bytes are not a piece")
    if _crc(number, data[:-_CRC]) != data[-_CRC:]:
        raise CorruptReport(
            f"piece {number}: the checksum does not match; it was cut or damaged, or is another's"
        )
    _, plan, check, magnitude, length = _HEAD.unpack_from(data)
    try:
        if length > _MAX_CONTENT or magnitude < 0:
            raise ValueError
        raw = imported("pyarrow").decompress(
            data[_HEAD.size : -_CRC], decompressed_size=length, codec="zstd", asbytes=True
        )
        content = _rows_of(raw) if raw[0] == _KEPT else _cells_of(raw)
    except (ValueError, IndexError, OSError, struct.error):
        raise CorruptReport(f"piece {number}: its content is malformed") from None
    return PieceBody(plan.hex(), check, magnitude, content)


def _crc(number: int, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(number.to_bytes(8, "little"))).to_bytes(_CRC, "little")


def _cell_bytes(cells: PlacedCells) -> bytes:
    """All places' integers in a row, or the gaps between those that are not 0 and these integers,
    whichever is shorter.
    """
    values = _narrow(cells.values)
    width, count = values.dtype.itemsize, len(values)
    gaps = np.diff(cells.places, prepend=-1) - 1
    gap_bytes = 1 if int(gaps.max(initial=0)) < 1 << 8 else 2
    if (gap_bytes + width) * count <= width * PIECE_CELLS:
        head = _CELLS.pack(_SPARSE, width << 4 | gap_bytes, count)
        return head + gaps.astype(f"<u{gap_bytes}").tobytes() + values.tobytes()
    table = np.zeros(PIECE_CELLS, values.dtype)
    table[cells.places] = values
    return _CELLS.pack(_DENSE, width << 4, PIECE_CELLS) + table.tobytes()


def _cells_of(raw: bytes) -> PlacedCells:
    """The inverse of :func:`_cell_bytes`; a ValueError for what it does not write."""
    form, widths, count = _CELLS.unpack_from(raw)
    width, gap_bytes = widths >> 4, widths & 15
    values_at = _CELLS.size + gap_bytes * count
    values = np.frombuffer(raw, _integer(width), count, values_at).astype(np.int64)
    if values_at + width * count != len(raw) or count > PIECE_CELLS or form > _SPARSE:
        raise ValueError
    if form == _DENSE:
        places = np.flatnonzero(values)
        return PlacedCells(places, values[places])
    gaps = np.frombuffer(raw, f"<u{gap_bytes}", count, _CELLS.size)
    places = np.cumsum(gaps.astype(np.int64) + 1) - 1
    if count and int(places[-1]) >= PIECE_CELLS:
        raise ValueError
    return PlacedCells(places, values)


def _row_bytes(rows: CountedRows) -> bytes:
    """How often each row was sent, then the rows."""
    count, row_bytes = rows.payload.shape
    counts = _narrow(np.ones(count, np.int64) if rows.counts is None else rows.counts)
    head = _ROWS.pack(_KEPT, counts.dtype.itemsize, count, row_bytes)
    return head + counts.tobytes() + rows.payload.tobytes()


def _rows_of(raw: bytes) -> CountedRows:
    """The inverse of :func:`_row_bytes`; a ValueError for what it does not write."""
    _, width, count, row_bytes = _ROWS.unpack_from(raw)
    rows_at = _ROWS.size + width * count
    if rows_at + count * row_bytes != len(raw):
        raise ValueError
    counts = np.frombuffer(raw, _integer(width), count, _ROWS.size).astype(np.int64)
    payload = np.frombuffer(raw, np.uint8, count * row_bytes, rows_at).reshape(count, row_bytes)
    return CountedRows(payload, None if bool((counts == 1).all()) else counts)


def _narrow(values: Integers) -> NDArray[np.signedinteger]:
    """The same integers in the fewest bytes that hold all of them."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    widths = (width for width in (1, 2, 4, 8) if -least <= 1 << (8 * width - 1) > most)
    return values.astype(_integer(next(widths)))


def _integer(width: int) -> np.dtype:
    """The type of signed integers of so many bytes; a ValueError for other widths."""
    if width not in (1, 2, 4, 8):
        raise ValueError
    return np.dtype(f"<i{width}")
