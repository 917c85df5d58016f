"""CRC-32 (IEEE 802.3, as in zlib) of many short rows at once."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_POLYNOMIAL = 0xEDB88320
_WORD = 4  # bytes that one step takes


def _tables() -> NDArray[np.uint32]:
    """What a byte adds when 0, 1, 2 or 3 more follow it in the same word."""
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(
            first & 1, np.uint32(_POLYNOMIAL) ^ (first >> np.uint32(1)), first >> np.uint32(1)
        )
    tables = [first]
    for _ in range(_WORD - 1):
        last = tables[-1]
        tables.append(first[last & np.uint32(255)] ^ (last >> np.uint32(8)))
    return np.array(tables, np.uint32)


CRC_TABLES = _tables()


@njit(cache=True, nogil=True)
def crc32_rows(rows, start, tables):  # type: ignore[no-untyped-def]
    """The checksum of each row, going on from those in ``start``, as ``zlib.crc32(row, start)``."""
    out = np.empty(rows.shape[0], np.uint32)
    width = rows.shape[1]
    whole = width - width % 4
    byte = np.uint32(255)
    for row in range(rows.shape[0]):
        crc = ~start[row]
        for place in range(0, whole, 4):  # four bytes a step
            one = (crc ^ rows[row, place]) & byte
            two = ((crc >> np.uint32(8)) ^ rows[row, place + 1]) & byte
            three = ((crc >> np.uint32(16)) ^ rows[row, place + 2]) & byte
            four = (crc >> np.uint32(24)) ^ rows[row, place + 3]
            crc = tables[3, one] ^ tables[2, two] ^ tables[1, three] ^ tables[0, four]
        for place in range(whole, width):
            crc = tables[0, (crc ^ rows[row, place]) & byte] ^ (crc >> np.uint32(8))
        out[row] = ~crc
    return out
