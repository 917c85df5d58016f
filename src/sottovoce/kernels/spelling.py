"""Spellings by the column: rows of two 64-bit words, the high one first; the bits of one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.hashes import TURNS
from sottovoce.kernels.compiled import njit
from sottovoce.kernels.hashing import keyed_hash

Words = NDArray[np.uint64]


@njit(inline="always", nogil=True)
def right(high, low, count):  # type: ignore[no-untyped-def]
    """A 128-bit number shifted right by 0 to 128 bits."""
    if count == 0:
        return high, low
    if count < 64:
        return high >> np.uint64(count), (low >> np.uint64(count)) | (high << np.uint64(64 - count))
    if count < 128:
        return np.uint64(0), high >> np.uint64(count - 64)
    return np.uint64(0), np.uint64(0)


@njit(inline="always", nogil=True)
def left(high, low, count):  # type: ignore[no-untyped-def]
    """A 128-bit number shifted left by 0 to 128 bits."""
    if count == 0:
        return high, low
    if count < 64:
        return (high << np.uint64(count)) | (low >> np.uint64(64 - count)), low << np.uint64(count)
    if count < 128:
        return low << np.uint64(count - 64), np.uint64(0)
    return np.uint64(0), np.uint64(0)


@njit(inline="always", nogil=True)
def lowest(high, low, count):  # type: ignore[no-untyped-def]
    """The lowest bits of a 128-bit number, 0 to 128 of them."""
    if count >= 128:
        return high, low
    if count >= 64:
        if count == 64:
            return np.uint64(0), low
        return high & ((np.uint64(1) << np.uint64(count - 64)) - np.uint64(1)), low
    return np.uint64(0), low & ((np.uint64(1) << np.uint64(count)) - np.uint64(1))


@njit(inline="always", nogil=True)
def tag_of(high, low, key, bits):  # type: ignore[no-untyped-def]
    """``bits`` of a public hash of a 128-bit number."""
    return keyed_hash(keyed_hash(np.uint64(key), high), low) >> np.uint64(64 - bits)


@njit(cache=True, nogil=True)
def _permute(words, bits, turns, backwards):  # type: ignore[no-untyped-def]
    out = np.empty_like(words)
    below = bits - bits // 2
    above = bits // 2
    for row in range(words.shape[0]):
        _, upper = right(words[row, 0], words[row, 1], below)
        _, lower = lowest(words[row, 0], words[row, 1], below)
        for step in range(turns):
            turn = turns - 1 - step if backwards else step
            if turn & 1:
                lower ^= keyed_hash(np.uint64(turn), upper) >> np.uint64(64 - below)
            elif above:
                upper ^= keyed_hash(np.uint64(turn), lower) >> np.uint64(64 - above)
        high, low = left(np.uint64(0), upper, below)
        out[row, 0] = high
        out[row, 1] = low | lower
    return out


def permute_words(words: Words, bits: int) -> Words:
    """Where the public permutation takes each spelling."""
    out: Words = _permute(np.ascontiguousarray(words), bits, TURNS, False)
    return out


def unpermute_words(words: Words, bits: int) -> Words:
    """The inverse of :func:`permute_words`."""
    out: Words = _permute(np.ascontiguousarray(words), bits, TURNS, True)
    return out


@njit(cache=True, nogil=True)
def window_words(words, bits, start, fresh, tag, tagged):  # type: ignore[no-untyped-def]
    """``fresh`` bits from bit ``start`` on, after a tag: bits of a hash of the first ``tagged``."""
    out = np.empty_like(words)
    for row in range(words.shape[0]):
        high, low = right(words[row, 0], words[row, 1], bits - start - fresh)
        high, low = lowest(high, low, fresh)
        if tag:
            first_high, first_low = right(words[row, 0], words[row, 1], bits - tagged)
            low |= tag_of(first_high, first_low, tagged, tag) << np.uint64(fresh)
        out[row, 0] = high
        out[row, 1] = low
    return out


def to_words(numbers: list[int]) -> Words:
    """Numbers of up to 128 bits as rows of words."""
    return np.array(
        [(number >> 64, number & (1 << 64) - 1) for number in numbers], np.uint64
    ).reshape(-1, 2)


def to_numbers(words: Words) -> list[int]:
    """Rows of words as numbers."""
    return [high << 64 | low for high, low in words.tolist()]
