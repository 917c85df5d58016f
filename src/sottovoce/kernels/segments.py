"""Answers of one person to two asks, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sottovoce.kernels.bits import ones
from sottovoce.kernels.compiled import njit
from sottovoce.kernels.hashing import _parity, scramble, unpack_linear


@njit(cache=True, nogil=True)
def _supported(payload, width, count, points, out):  # type: ignore[no-untyped-def]
    """out[pattern]: a bit per report of a linear hash, set if it supports the scrambled pattern."""
    rows = np.zeros(count, np.uint64)
    for person in range(payload.shape[0]):
        told = unpack_linear(payload, person, width, count, rows)
        for pattern in range(points.size):
            answer = told
            for place in range(count):
                answer ^= _parity(rows[place] & points[pattern]) << np.uint64(place)
            if answer == np.uint64(0):
                out[pattern, person >> 6] |= np.uint64(1) << np.uint64(person & 63)


@njit(cache=True, nogil=True)
def _together(first, second, out):  # type: ignore[no-untyped-def]
    """How many bits are set in a row of each of two tables."""
    for one in range(first.shape[0]):
        for other in range(second.shape[0]):
            total = np.uint64(0)
            for place in range(first.shape[1]):
                total += ones(first[one, place] & second[other, place])
            out[one, other] = np.int64(total)


def count_pairs(
    payloads: Sequence[NDArray[np.uint8]],
    shapes: Sequence[tuple[int, int]],
    patterns: Sequence[NDArray[np.uint64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(both, first, second): how many people support a pattern of each ask, or of either.

    ``shapes``: bits of a value and of a hash, for each of the two asks.
    """
    said = []
    for payload, (width, count), own in zip(payloads, shapes, patterns, strict=True):
        bits = np.zeros((own.size, -(-len(payload) // 64)), np.uint64)
        _supported(np.ascontiguousarray(payload), width, count, scramble(own, width), bits)
        said.append(bits)
    both = np.empty((len(said[0]), len(said[1])), np.int64)
    _together(said[0], said[1], both)
    first, second = (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for bits in said)
    return both, first, second
