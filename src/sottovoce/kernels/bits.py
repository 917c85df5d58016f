"""Packed reports: bit fields in rows of bytes, least significant bit first."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Payload = NDArray[np.uint8]
_ROWS = 1 << 14  # rows that are widened to words at once


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
def _grouped_columns(words, ends, counts):  # type: ignore[no-untyped-def]
    """The same for groups of rows that stand one after another, group g ending before row ``ends[g]``."""
    start = 0
    for group in range(ends.size):
        if ends[group] > start:
            _add_columns(words[start : ends[group]], counts[group])
        start = ends[group]


def _words(payload: Payload) -> NDArray[np.uint64]:
    """Rows of bytes as rows of 64-bit words, padded with zeros where they do not fit."""
    if payload.shape[1] % 8 == 0 and payload.flags.c_contiguous:
        return payload.view(np.uint64)
    padded = np.zeros((len(payload), (payload.shape[1] + 7) // 8 * 8), np.uint8)
    padded[:, : payload.shape[1]] = payload
    return padded.view(np.uint64)


def add_columns(payload: Payload, counts: NDArray[np.int64]) -> None:
    """Add to ``counts`` how many rows have each of its bits set (bits beyond it are not looked at)."""
    for start in range(0, len(payload), _ROWS):
        words = _words(payload[start : start + _ROWS])
        found = np.zeros(words.shape[1] * 64, np.int64)
        _add_columns(words, found)
        counts += found[: counts.size]


def add_grouped_columns(payload: Payload, groups: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Add to ``counts[group]`` how many of the group's rows have each bit set."""
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=counts.shape[0]))
    words = _words(payload[order])
    found = np.zeros((counts.shape[0], words.shape[1] * 64), np.int64)
    _grouped_columns(words, ends, found)
    counts += found[:, : counts.shape[1]]


@njit(inline="always", nogil=True)
def ones(word):  # type: ignore[no-untyped-def]
    """How many bits of a word are set: sums of pairs, nibbles, bytes, then of the bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True)
def _ones_per_row(words, out):  # type: ignore[no-untyped-def]
    """How many bits are set in every row of 64-bit words."""
    for row in range(words.shape[0]):
        total = np.uint64(0)
        for place in range(words.shape[1]):
            total += ones(words[row, place])
        out[row] = total


def ones_per_row(payload: Payload) -> NDArray[np.int64]:
    """How many bits are set in every row."""
    out = np.zeros(len(payload), np.int64)
    for start in range(0, len(payload), _ROWS):
        _ones_per_row(_words(payload[start : start + _ROWS]), out[start : start + _ROWS])
    return out
