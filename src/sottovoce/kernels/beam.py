"""The search over coded windows: decode a window's table, find how candidates best go on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.hashes import SCRAMBLES
from sottovoce.ground.threads import thread_count
from sottovoce.kernels.compiled import njit
from sottovoce.kernels.hashing import _scrambled
from sottovoce.kernels.spelling import left, tag_of
from sottovoce.kernels.transform import narrow_transform

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
_PART = 1 << 20  # cells that one task gathers


@njit(cache=True, nogil=True)
def _gather(cells, width, people, start, out):  # type: ignore[no-untyped-def]
    """out[v] = cells[scrambled (start + v)] - people."""
    for place in range(out.size):
        out[place] = (
            cells[np.int64(_scrambled(np.uint64(start + place), np.uint64(width)))] - people
        )


def decode_scrambled(table: NDArray[Any], people: int) -> NDArray[Any]:
    """The score of each value at its scrambled place: 2^b times its support, less ``people``."""
    cells = narrow_transform(table)
    cells -= cells.dtype.type(people)
    return cells


def decode_window(table: NDArray[Any], width: int, people: int) -> NDArray[Any]:
    """The score of each of 2^width values, in order."""
    cells = narrow_transform(table)
    out = np.empty_like(cells)

    def one(start: int) -> None:
        _gather(cells, width, cells.dtype.type(people), start, out[start : start + _PART])

    _in_threads(one, range(0, out.size, _PART))
    return out


@njit(cache=True, nogil=True)
def _unscramble(places, width, factors, out):  # type: ignore[no-untyped-def]
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    half = np.uint64((width + 1) // 2)  # so large that shifting back is its own inverse
    for row in range(places.size):
        word = places[row]
        for factor in factors:
            word = ((word ^ (word >> half)) * factor) & mask
        out[row] = word


def unscramble(places: Words, width: int) -> Words:
    """The values that the linear hash's permutation takes to these places."""
    out = np.empty_like(places)
    factors = [pow(factor, -1, 1 << width) for factor in reversed(SCRAMBLES)]
    _unscramble(places, width, np.array(factors, np.uint64), out)
    return out


def _in_threads(work: Any, parts: Any) -> None:
    with ThreadPoolExecutor(thread_count()) as pool:
        for _ in pool.map(work, parts):
            pass


@njit(cache=True, nogil=True)
def _extend(scores, words, key, tag, fresh, best, suffixes):  # type: ignore[no-untyped-def]
    """For each candidate the largest scores of the block of its tag, and where they stand in it."""
    block = 1 << fresh
    most = best.shape[1]
    for row in range(words.shape[0]):
        start = (
            np.int64(tag_of(words[row, 0], words[row, 1], key, tag)) << fresh
            if tag
            else np.int64(0)
        )
        count = 0
        least = np.int64(-(1 << 62))
        for place in range(block):
            score = np.int64(scores[start + place])
            if count < most or score > least:
                slot = count if count < most else most - 1
                while slot > 0 and best[row, slot - 1] < score:
                    best[row, slot] = best[row, slot - 1]
                    suffixes[row, slot] = suffixes[row, slot - 1]
                    slot -= 1
                best[row, slot] = score
                suffixes[row, slot] = place
                if count < most:
                    count += 1
                least = best[row, count - 1]


def extend(
    scores: NDArray[Any], words: Words, key: int, tag: int, fresh: int, most: int
) -> tuple[Integers, Integers]:
    """(scores, suffixes): the ``most`` best ways each candidate goes on by ``fresh`` bits."""
    most = min(most, 1 << fresh)
    best = np.full((len(words), most), -(1 << 62), np.int64)
    suffixes = np.zeros((len(words), most), np.int64)
    step = max(1, -(-len(words) // (4 * thread_count())))

    def one(start: int) -> None:
        rows = slice(start, start + step)
        _extend(scores, words[rows], key, tag, fresh, best[rows], suffixes[rows])

    _in_threads(one, range(0, len(words), step))
    return best, suffixes


@njit(cache=True, nogil=True)
def append_bits(words, suffixes, fresh):  # type: ignore[no-untyped-def]
    """Each candidate with its suffix of ``fresh`` bits behind it."""
    out = np.empty_like(words)
    for row in range(words.shape[0]):
        high, low = left(words[row, 0], words[row, 1], fresh)
        out[row, 0] = high
        out[row, 1] = low | np.uint64(suffixes[row])
    return out
