"""Packed reports: bits of rows of bytes, counted by column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sottovoce.kernels.compiled import njit
from sottovoce.kernels.fields import words_of

Payload = NDArray[np.uint8]
_ROWS = 1 << 14  # rows that are widened to words at once


@njit(cache=True, nogil=True)
def _add_columns(words, counts):  # type: ignore[no-untyped-def]
    """Add the number of ones in each bit column of rows of 64-bit words: eight vertical planes."""
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
                    counts[word * 64 + place] += (
                        np.int64((bits >> np.uint64(place)) & np.uint64(1)) << plane
                    )
        start = stop


@njit(cache=True, nogil=True)
def _grouped_columns(words, groups, counts):  # type: ignore[no-untyped-def]
    """counts[group of a row, bit column] += 1, where the row has the bit set: one pass."""
    for row in range(words.shape[0]):
        cells = counts[groups[row]]
        for word in range(words.shape[1]):
            bits = words[row, word]
            columns = cells[word * 64 : word * 64 + 64]
            for place in range(columns.size):
                columns[place] += np.int64((bits >> np.uint64(place)) & np.uint64(1))


def add_columns(payload: Payload, counts: NDArray[np.int64]) -> None:
    """Add to ``counts`` how many rows have each of its bits set (bits beyond it do not count)."""
    for start in range(0, len(payload), _ROWS):
        words = words_of(payload[start : start + _ROWS])
        found = np.zeros(words.shape[1] * 64, np.int64)
        _add_columns(words, found)
        counts += found[: counts.size]


def add_grouped_columns(
    payload: Payload, groups: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """Add to ``counts[group]`` how many of the group's rows have each bit set."""
    # the loop over columns is only fast where they lie side by side
    table = counts if counts.flags.c_contiguous else np.zeros(counts.shape, np.int64)
    for start in range(0, len(payload), _ROWS):
        rows = slice(start, start + _ROWS)
        _grouped_columns(words_of(payload[rows]), groups[rows], table)
    if table is not counts:
        counts += table


@njit(cache=True, nogil=True)
def _weigh_columns(words, weights, groups, counts):  # type: ignore[no-untyped-def]
    """counts[group of a row, bit column] += the row's weight, where the row has the bit set."""
    for row in range(words.shape[0]):
        cells = counts[groups[row]]
        weight = weights[row]
        for word in range(words.shape[1]):
            bits = words[row, word]
            for place in range(64):
                cells[word * 64 + place] += weight * np.int64(
                    (bits >> np.uint64(place)) & np.uint64(1)
                )


def weigh_columns(payload: Payload, weights: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Add to ``counts`` the weight of the rows with each of its bits set: weighted columns."""
    groups = np.zeros(len(payload), np.int64)
    weigh_grouped_columns(payload, weights, groups, counts[None, :])


def weigh_grouped_columns(
    payload: Payload,
    weights: NDArray[np.int64],
    groups: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add to ``counts[group]`` the weight of the group's rows that have each bit set."""
    width = -(-payload.shape[1] // 8) * 64  # bits of the words of a row
    found = np.zeros((counts.shape[0], width), np.int64)
    for start in range(0, len(payload), _ROWS):
        rows = slice(start, start + _ROWS)
        _weigh_columns(words_of(payload[rows]), weights[rows], groups[rows], found)
    counts += found[:, : counts.shape[1]]


@njit(inline="always", nogil=True)
def ones(word):  # type: ignore[no-untyped-def]
    """How many bits of a word are set: sums of pairs, nibbles, bytes, then of the bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
