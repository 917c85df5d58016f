"""Where the coins of many devices come from: the operating system, or a seed and those that follow
from it, one for each purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy, Seeded, System

SEED_LIMIT = 1 << 128

# of a simulated crowd; None for people's own reports, whose every coin is the operating system's
Seed = int | None

Words = NDArray[np.uint32]
Rows = Sequence[Sequence[int]]

# the constants of numpy's SeedSequence (O'Neill, "Developing a seed_seq alternative")
POOL = 4
SHIFT = np.uint32(16)
INIT_A, MULT_A = 0x43B0D7E5, 0x931E8875
INIT_B, MULT_B = 0x8B51F9DD, 0x58F38DED
MIX_LEFT, MIX_RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)


class ColumnDraws(Protocol):
    """Uniform draws by the column, as numpy's generators give them."""

    def integers(self, low: int, high: Any, size: int | None = None, dtype: Any = ...) -> Any:
        """Whole numbers from ``low`` to below ``high``, one limit for all or one for each."""

    def random(self, size: int) -> Any:
        """Numbers whose order is a uniform one."""


class SystemDraws:
    """The operating system's: exact, by rejection. No buffer: a fork shares no draws.

    >>> bool((SystemDraws().integers(0, 6, 100) < 6).all())
    True
    """

    def integers(self, low: int, high: Any, size: int | None = None, dtype: Any = np.int64) -> Any:
        limits = np.asarray(high, np.uint64) - np.uint64(low)
        if size is not None:
            limits = np.broadcast_to(limits, size)
        masks = limits - np.uint64(1)
        for shift in (1, 2, 4, 8, 16, 32):
            masks = masks | masks >> np.uint64(shift)
        drawn = System().words(len(limits)) & masks
        while len(again := np.flatnonzero(drawn >= limits)):
            drawn[again] = System().words(len(again)) & masks[again]
        return (drawn + np.uint64(low)).astype(dtype)

    def random(self, size: int) -> Any:
        # without ties: given that there are none, every order is as likely
        while len(np.unique(words := System().words(size))) < size:
            pass
        return words


def draws(seed: Seed, *purpose: int) -> ColumnDraws:
    """For a purpose: from a generator of that seed, or from the operating system."""
    if seed is None:
        return SystemDraws()
    return np.random.Generator(np.random.PCG64([seed, *purpose] if purpose else seed))


def entropy_of(seed: Seed) -> Entropy:
    """One coin after another, from either."""
    return System() if seed is None else Seeded(seed)


def checked_seed(seed: Seed) -> Seed:
    """The seed, if it can be one."""
    return None if seed is None else whole("seed", seed, 0, SEED_LIMIT)


def shifted(seed: Seed, by: int) -> Seed:
    """Another seed, for what is drawn apart."""
    return None if seed is None else seed + by


def subseed(seed: int, *purpose: int) -> int:
    """64 bits for a purpose, from a seed of up to 128 bits.

    >>> subseed(7, 1) == subseed(7, 1), subseed(7, 1) == subseed(7, 2)
    (True, False)
    """
    (own,) = subseeds(whole("seed", seed, 0, SEED_LIMIT), purpose, [()])
    return own


@overload
def subseeds(seed: int, purpose: Sequence[int], rows: Rows) -> list[int]: ...


@overload
def subseeds(seed: Seed, purpose: Sequence[int], rows: Rows) -> Sequence[Seed]: ...


def subseeds(seed: Seed, purpose: Sequence[int], rows: Rows) -> Sequence[Seed]:
    """For each row the first 64 bits of ``SeedSequence([seed, *purpose, *row])``, all in one pass.

    Args:
        seed: of up to 128 bits; None gives None.
        purpose: what all rows have in common.
        rows: numbers below 2^32, equally many in each.

    >>> subseeds(7, [1], [(0,), (1,)]) == [subseed(7, 1, 0), subseed(7, 1, 1)]
    True
    """
    if seed is None or not rows:
        return [None] * len(rows)
    common = [word for number in (seed, *purpose) for word in _words(number)]
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
