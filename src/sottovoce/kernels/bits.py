"""Packed reports: bit fields in rows of bytes, least significant bit first."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Payload = NDArray[np.uint8]


@njit(cache=True, nogil=True)
def read_field(payload, offset, width):  # type: ignore[no-untyped-def]
    """The unsigned integer of ``width`` <= 64 bits at bit ``offset`` of every row."""
    out = np.zeros(payload.shape[0], np.uint64)
    first = offset >> 3
    skip = np.uint64(offset & 7)
    pieces = (offset + width + 7) // 8 - first
    mask = ~np.uint64(0) if width == 64 else (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for row in range(payload.shape[0]):
        value = np.uint64(payload[row, first]) >> skip
        for piece in range(1, pieces):
            value |= np.uint64(payload[row, first + piece]) << (np.uint64(8 * piece) - skip)
        out[row] = value & mask
    return out


@njit(cache=True, nogil=True)
def write_field(payload, offset, width, values):  # type: ignore[no-untyped-def]
    """Or the ``width`` <= 64 low bits of every value into the rows, which must hold zeros there."""
    first = offset >> 3
    skip = np.uint64(offset & 7)
    pieces = (offset + width + 7) // 8 - first
    for row in range(payload.shape[0]):
        value = np.uint64(values[row])
        payload[row, first] |= np.uint8((value << skip) & np.uint64(255))
        for piece in range(1, pieces):
            payload[row, first + piece] |= np.uint8((value >> (np.uint64(8 * piece) - skip)) & np.uint64(255))


@njit(cache=True, nogil=True)
def _add_columns(words, counts):  # type: ignore[no-untyped-def]
    """Add the number of ones in each bit column of rows of 64-bit words: vertical counters, eight planes deep."""
    rows, width = words.shape
    planes = np.zeros((8, width), np.uint64)
    start = 0
    while start < rows:
        stop = min(rows, start + 255)
        planes[:] = np.uint64(0)
        for row in range(start, stop):
            for word in range(width):
                carry = words[row, word]
                for plane in range(8):
                    kept = planes[plane, word]
                    planes[plane, word] = kept ^ carry
                    carry &= kept
        for plane in range(8):
            for word in range(width):
                bits = planes[plane, word]
                for place in range(64):
                    counts[word * 64 + place] += np.int64((bits >> np.uint64(place)) & np.uint64(1)) << plane
        start = stop


@njit(cache=True, nogil=True)
def _grouped_columns(payload, groups, counts):  # type: ignore[no-untyped-def]
    """The same per group of rows, one byte at a time: for tables of cohorts, where each has few rows."""
    for row in range(payload.shape[0]):
        group = groups[row]
        for byte in range(payload.shape[1]):
            bits = payload[row, byte]
            while bits:
                low = bits & (~bits + np.uint8(1))
                place = 0
                while (low >> place) > 1:
                    place += 1
                counts[group, byte * 8 + place] += 1
                bits &= bits - np.uint8(1)


def add_columns(payload: Payload, counts: NDArray[np.int64]) -> None:
    """Add to ``counts`` how many rows have each of its bits set (bits beyond it are not looked at)."""
    width = (payload.shape[1] + 7) // 8
    for start in range(0, len(payload), 1 << 14):
        rows = payload[start : start + (1 << 14)]
        if rows.shape[1] % 8 == 0 and rows.flags.c_contiguous:
            words = rows.view(np.uint64)
        else:
            padded = np.zeros((len(rows), width * 8), np.uint8)
            padded[:, : rows.shape[1]] = rows
            words = padded.view(np.uint64)
        found = np.zeros(width * 64, np.int64)
        _add_columns(words, found)
        counts += found[: counts.size]


def add_grouped_columns(payload: Payload, groups: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Add to ``counts[group]`` how many of the group's rows have each bit set."""
    found = np.zeros((counts.shape[0], payload.shape[1] * 8), np.int64)
    _grouped_columns(payload, groups, found)
    counts += found[:, : counts.shape[1]]


@njit(cache=True, nogil=True)
def ones_per_row(payload):  # type: ignore[no-untyped-def]
    """How many bits are set in every row."""
    out = np.zeros(payload.shape[0], np.int64)
    for row in range(payload.shape[0]):
        total = 0
        for byte in range(payload.shape[1]):
            bits = payload[row, byte]
            while bits:
                bits &= bits - np.uint8(1)
                total += 1
        out[row] = total
    return out
