"""Answers of one person to two asks, side by side; and many values asked of one crowd's reports."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sottovoce.kernels.bits import ones
from sottovoce.kernels.hashing import _parity, keyed_hash, scramble, unpack_linear


@njit(cache=True, nogil=True)
def _supported(payload, width, count, points, out):  # type: ignore[no-untyped-def]
    """out[pattern]: a bit for each report of a linear hash, set if it supports the (scrambled) pattern."""
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
    payloads: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    shapes: tuple[tuple[int, int], tuple[int, int]],
    patterns: tuple[NDArray[np.uint64], NDArray[np.uint64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(both, first, second): how many people's reports support a pattern of each ask, and how many support either.

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


@njit(cache=True, nogil=True)
def _count_wide(seeds, answers, words, count, out):  # type: ignore[no-untyped-def]
    rows = np.zeros((count, 2), np.uint64)
    for person in range(seeds.size):
        for place in range(count):
            rows[place, 0] = keyed_hash(seeds[person], np.uint64(2 * place))
            rows[place, 1] = keyed_hash(seeds[person], np.uint64(2 * place + 1))
        for value in range(words.shape[0]):
            agrees = True
            for place in range(count):
                ones = (rows[place, 0] & words[value, 0]) ^ (rows[place, 1] & words[value, 1])
                if _parity(ones) != (answers[person] >> np.uint64(place)) & np.uint64(1):
                    agrees = False
                    break
            out[value] += agrees


def count_many(
    seeds: NDArray[np.uint64], answers: NDArray[np.uint64], words: NDArray[np.uint64], count: int
) -> NDArray[np.int64]:
    """How many reports of a wide linear hash support each value; a report's rows are made once for all values."""
    parts = max(1, min(os.cpu_count() or 1, seeds.size >> 14))
    sums = np.zeros((parts, len(words)), np.int64)
    ends = np.linspace(0, seeds.size, parts + 1).astype(int).tolist()

    def one(part: int) -> None:
        rows = slice(ends[part], ends[part + 1])
        _count_wide(seeds[rows], answers[rows], words, count, sums[part])

    with ThreadPoolExecutor(parts) as pool:
        for _ in pool.map(one, range(parts)):
            pass
    out: NDArray[np.int64] = sums.sum(axis=0)
    return out
