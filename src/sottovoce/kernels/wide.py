"""Local hashing of values of up to 128 bits by parities whose rows a seed gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.threads import thread_count
from sottovoce.kernels.compiled import njit
from sottovoce.kernels.draws import uniform_word
from sottovoce.kernels.hashing import _parity, keyed_hash, scatter_signs
from sottovoce.kernels.spelling import right
from sottovoce.kernels.transform import narrow_transform


@njit(inline="always", nogil=True)
def _hash(seed, high, low, count):  # type: ignore[no-untyped-def]
    """Bit i: the parity of the value's bits that row i selects."""
    answer = np.uint64(0)
    for place in range(count):
        ones = keyed_hash(seed, np.uint64(2 * place + 1)) & low
        if high:
            ones ^= keyed_hash(seed, np.uint64(2 * place)) & high
        answer |= _parity(ones) << np.uint64(place)
    return answer


@njit(cache=True, nogil=True)
def whisper_wide(words, seeds, answers, count, truth, state):  # type: ignore[no-untyped-def]
    """A uniform 64-bit seed, and generalized randomized response on the hash that it gives."""
    for row in range(words.shape[0]):
        seed = uniform_word(state)
        answer = _hash(seed, words[row, 0], words[row, 1], count)
        if uniform_word(state) >= np.uint64(truth):
            answer = uniform_word(state) & ((np.uint64(1) << np.uint64(count)) - np.uint64(1))
        seeds[row] = seed
        answers[row] = answer


@njit(cache=True, nogil=True)
def _count_wide(seeds, answers, weights, words, count, out):  # type: ignore[no-untyped-def]
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
            if agrees:
                out[value] += weights[person]


def count_wide(
    seeds: NDArray[np.uint64],
    answers: NDArray[np.uint64],
    words: NDArray[np.uint64],
    count: int,
    weights: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """How many reports of a wide linear hash support each value, or how much weight they have.

    A report's rows are made once for all values.
    """
    if weights is None:
        weights = np.ones(seeds.size, np.int64)
    parts = max(1, min(thread_count(), seeds.size >> 14))
    sums = np.zeros((parts, len(words)), np.int64)
    ends = np.linspace(0, seeds.size, parts + 1).astype(int).tolist()

    def one(part: int) -> None:
        rows = slice(ends[part], ends[part + 1])
        _count_wide(seeds[rows], answers[rows], weights[rows], words, count, sums[part])

    with ThreadPoolExecutor(parts) as pool:
        for _ in pool.map(one, range(parts)):
            pass
    out: NDArray[np.int64] = sums.sum(axis=0)
    return out


@njit(cache=True, nogil=True)
def split_rows(seeds, count, fresh, highs, lows):  # type: ignore[no-untyped-def]
    """Every report's rows in two: the lowest ``fresh`` bits, and the rest as words."""
    mask = (np.uint64(1) << np.uint64(fresh)) - np.uint64(1)
    for person in range(seeds.size):
        for place in range(count):
            high = keyed_hash(seeds[person], np.uint64(2 * place))
            low = keyed_hash(seeds[person], np.uint64(2 * place + 1))
            lows[person, place] = low & mask
            highs[person, place, 0], highs[person, place, 1] = right(high, low, fresh)


@njit(cache=True, nogil=True)
def scatter_wide(highs, lows, answers, weights, high, low, table):  # type: ignore[no-untyped-def]
    """What the reports say of every way the prefix (high, low) goes on, before the transform.

    For each report and each non-empty subset of its rows: table[xor of their low bits] += weight
    (-1)^<subset, answer>, where the prefix's share of the hash is taken off the answer.
    """
    for person in range(answers.size):
        answer = np.int64(answers[person])
        for place in range(lows.shape[1]):
            ones = (highs[person, place, 0] & high) ^ (highs[person, place, 1] & low)
            answer ^= np.int64(_parity(ones)) << place
        scatter_signs(lows[person], answer, weights[person], table)


def scatter_extensions(
    seeds: NDArray[np.uint64],
    answers: NDArray[np.uint64],
    prefixes: NDArray[np.uint64],
    fresh: int,
    count: int,
    weights: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """What the reports say of every way in which each prefix goes on by ``fresh`` bits, before the
    transform: :func:`scatter_wide` for many prefixes.

    With ``weights``, one beside each report, their weight counts. Tables add up over reports.
    """
    if weights is None:
        weights = np.ones(seeds.size, np.int64)
    highs = np.empty((seeds.size, count, 2), np.uint64)
    lows = np.empty((seeds.size, count), np.uint64)
    split_rows(seeds, count, fresh, highs, lows)
    tables = np.zeros((len(prefixes), 1 << fresh), np.int64)

    def one(place: int) -> None:
        high, low = prefixes[place]
        scatter_wide(highs, lows, answers, weights, high, low, tables[place])

    with ThreadPoolExecutor(thread_count()) as pool:
        for _ in pool.map(one, range(len(prefixes))):
            pass
    return tables


def best_extensions(
    tables: NDArray[np.int64], keep: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(suffixes, scores) of the ``keep`` best ways in which each prefix goes on, in any order.

    A score is 2^b times the reports that support the longer prefix, less the number of reports.
    """
    kept = min(keep, tables.shape[1])
    suffixes = np.empty((len(tables), kept), np.int64)
    scores = np.empty((len(tables), kept), np.int64)

    def one(place: int) -> None:
        heard = narrow_transform(tables[place])
        best = np.argpartition(heard, len(heard) - kept)[len(heard) - kept :]
        suffixes[place], scores[place] = best, heard[best]

    with ThreadPoolExecutor(thread_count()) as pool:
        for _ in pool.map(one, range(len(tables))):
            pass
    return suffixes, scores
