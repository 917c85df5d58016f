"""Seeds that follow from a seed: one for each purpose, thousands at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole

SEED_LIMIT = 1 << 128

Words = NDArray[np.uint32]

# the constants of numpy's SeedSequence (O'Neill, "Developing a seed_seq alternative")
POOL = 4
SHIFT = np.uint32(16)
INIT_A, MULT_A = 0x43B0D7E5, 0x931E8875
INIT_B, MULT_B = 0x8B51F9DD, 0x58F38DED
MIX_LEFT, MIX_RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)


def subseed(seed: int, *purpose: int) -> int:
    """64 bits for a purpose, from a seed of up to 128 bits.

    >>> subseed(7, 1) == subseed(7, 1), subseed(7, 1) == subseed(7, 2)
    (True, False)
    """
    return subseeds([whole("seed", seed, 0, SEED_LIMIT), *purpose], [()])[0]


def subseeds(purpose: Sequence[int], rows: Sequence[Sequence[int]]) -> list[int]:
    """For each row the first 64 bits of ``SeedSequence([*purpose, *row])``, all in one pass.

    Args:
        purpose: a seed, and what all rows have in common.
        rows: numbers below 2^32, equally many in each.

    >>> subseeds([7, 1], [(0,), (1,)]) == [subseed(7, 1, 0), subseed(7, 1, 1)]
    True
    """
    if not rows:
        return []
    common = [word for number in purpose for word in _words(number)]
    tails = np.array(rows, np.uint32).reshape(len(rows), -1)  # (rows, numbers)
    heads = np.tile(np.array(common, np.uint32), (len(rows), 1))
    low, high = _state(np.concatenate([heads, tails], axis=1).T)
    seeds: list[int] = ((high.astype(np.uint64) << np.uint64(32)) | low).tolist()
    return seeds


def _words(number: int) -> list[int]:
    """A whole number in words of 32 bits, the lowest first, and at least one."""
    words = [number & 0xFFFFFFFF]
    while number := number >> 32:
        words.append(number & 0xFFFFFFFF)
    return words


class _Hash:
    """A multiplication by another constant at every call."""

    def __init__(self, constant: int, factor: int) -> None:
        self._constant, self._factor = constant, factor

    def __call__(self, words: Words) -> Words:
        words = words ^ np.uint32(self._constant)
        self._constant = self._constant * self._factor & 0xFFFFFFFF
        words = words * np.uint32(self._constant)
        return words ^ (words >> SHIFT)


def _mixed(left: Words, right: Words) -> Words:
    words: Words = MIX_LEFT * left - MIX_RIGHT * right
    return words ^ (words >> SHIFT)


def _state(entropy: Words) -> tuple[Words, Words]:
    """The first two words that a SeedSequence generates, of each column of ``entropy``."""
    hashed = _Hash(INIT_A, MULT_A)
    none = np.zeros(entropy.shape[1], np.uint32)
    pool = [hashed(entropy[place] if place < len(entropy) else none) for place in range(POOL)]
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                pool[target] = _mixed(pool[target], hashed(pool[source]))
    for words in entropy[POOL:]:
        for target in range(POOL):
            pool[target] = _mixed(pool[target], hashed(words))
    hashed = _Hash(INIT_B, MULT_B)
    return hashed(pool[0]), hashed(pool[1])
