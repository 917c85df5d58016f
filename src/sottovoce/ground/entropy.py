"""Where coins come from: the operating system, a seed, a tape of bytes, or *every* outcome.

A coin lands heads when a uniform 64-bit integer is below an integer threshold, so its chance is
exactly ``threshold / 2**64``. No float takes part.
"""

from __future__ import annotations

import hashlib
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, islice
from math import comb
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput, NotEnumerable

COIN_BITS = 64
WHOLE = 1 << COIN_BITS  # the threshold of a coin that always lands heads

T = TypeVar("T")


class Entropy(ABC):
    """A source of uniform bits, and the few exact draws that randomizers are made of."""

    @abstractmethod
    def bits(self, count: int) -> int:
        """A uniform integer of ``count`` bits."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """``count`` uniform integers of 64 bits, for draws in bulk."""
        drawn = self.bits(COIN_BITS * count)
        return np.frombuffer(drawn.to_bytes(COIN_BITS // 8 * count, "little"), "<u8")

    @property
    def public(self) -> Entropy:
        """Where coins come from that tell nothing of a value: the same source, unless assigned."""
        return self

    def coin(self, threshold: int) -> bool:
        """Heads with probability ``threshold / 2**64``, exactly."""
        return self.bits(COIN_BITS) < threshold

    def below(self, limit: int) -> int:
        """A uniform integer of ``range(limit)``, by rejection."""
        width = (limit - 1).bit_length()
        while True:
            value = self.bits(width)
            if value < limit:
                return value

    def coins(self, threshold: int, count: int) -> int:
        """``count`` independent coins of one threshold, as the bits of an integer.

        All coins compare their own uniform integer with the threshold at once, most significant bit
        first; a coin is settled at the first bit that differs, so about log2(count) + 2 words
        settle them all.
        """
        if threshold >= WHOLE:
            return (1 << count) - 1
        heads = 0
        open_ = (1 << count) - 1
        for place in range(COIN_BITS - 1, -1, -1):
            if not open_:
                break
            drawn = self.bits(count)
            if threshold >> place & 1:
                heads |= open_ & ~drawn
                open_ &= drawn
            else:
                open_ &= ~drawn
        return heads

    def subset(self, total: int, chosen: int) -> int:
        """A uniform subset of ``chosen`` of ``range(total)``, as an integer's bits (Floyd)."""
        picked = 0
        for last in range(total - chosen, total):
            candidate = 1 << self.below(last + 1)
            picked |= 1 << last if picked & candidate else candidate
        return picked


class System(Entropy):
    """The operating system's generator, for devices. No buffer: a fork shares no coins."""

    def bits(self, count: int) -> int:
        width = (count + 7) // 8
        return int.from_bytes(os.urandom(width), "little") & ((1 << count) - 1)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(COIN_BITS // 8 * count), "<u8")


class Seeded(Entropy):
    """A reproducible stream for simulations and tests. Never for a person's report."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).getrandbits

    def bits(self, count: int) -> int:
        return self._draw(count) if count else 0


class Tape(Entropy):
    """Fixed bytes, read front to back: the randomness of a test vector."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def bits(self, count: int) -> int:
        width = (count + 7) // 8
        piece = self._data[self.position : self.position + width]
        if len(piece) < width:
            raise InvalidInput(
                f"tape ({len(self._data)} bytes) is too short for the draws asked of it"
            )
        self.position += width
        return int.from_bytes(piece, "little") & ((1 << count) - 1)


class Stream(Entropy):
    """Bytes that a seed determines and nobody else foresees: SHA-256 of the seed and a counter."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._block = 0
        self._ahead = b""

    def bits(self, count: int) -> int:
        width = (count + 7) // 8
        while len(self._ahead) < width:
            self._ahead += hashlib.sha256(self._seed + self._block.to_bytes(8, "little")).digest()
            self._block += 1
        piece, self._ahead = self._ahead[:width], self._ahead[width:]
        return int.from_bytes(piece, "little") & ((1 << count) - 1)


class Assigned(Entropy):
    """Public coins from one source, all others from another."""

    def __init__(self, public: Entropy, private: Entropy) -> None:
        self._public, self._private = public, private

    @property
    def public(self) -> Entropy:
        return self._public

    def bits(self, count: int) -> int:
        return self._private.bits(count)

    def coin(self, threshold: int) -> bool:
        return self._private.coin(threshold)

    def below(self, limit: int) -> int:
        return self._private.below(limit)

    def coins(self, threshold: int, count: int) -> int:
        return self._private.coins(threshold, count)

    def subset(self, total: int, chosen: int) -> int:
        return self._private.subset(total, chosen)


class _Branching(Entropy):
    """Replays one path of outcomes and notes the alternatives it passes. See :func:`exact_law`."""

    def __init__(self, path: list[int], limit: int) -> None:
        self._path = path
        self._limit = limit
        self.widths: list[int] = []
        self.top = 1  # the path's chance is top / bottom
        self.bottom = 1

    def _choose(self, count: int) -> int:
        depth = len(self.widths)
        if depth == len(self._path):
            self._path.append(0)
        self.widths.append(count)
        return self._path[depth]

    def bits(self, count: int) -> int:
        return self.below(1 << count)

    def below(self, limit: int) -> int:
        self._fits(limit)
        self.bottom *= limit
        return self._choose(limit)

    def _fits(self, outcomes: int) -> None:
        """Give up at once on a draw that alone has too many outcomes."""
        if outcomes > self._limit:
            raise NotEnumerable(
                f"one draw has more than {self._limit} outcomes; use a sampling audit"
            )

    def coin(self, threshold: int) -> bool:
        if threshold <= 0 or threshold >= WHOLE:
            return threshold > 0
        heads = self._choose(2) == 1
        self.top *= threshold if heads else WHOLE - threshold
        self.bottom *= WHOLE
        return heads

    def coins(self, threshold: int, count: int) -> int:
        self._fits(1 << count)
        return sum(1 << place for place in range(count) if self.coin(threshold))

    def subset(self, total: int, chosen: int) -> int:
        choice = self.below(comb(total, chosen))
        members = next(islice(combinations(range(total), chosen), choice, None))
        return sum(1 << member for member in members)


def exact_law(draw: Callable[[Entropy], T], limit: int) -> dict[T, Fraction]:
    """The law of ``draw``, from every way that its code can go (at most ``limit`` of them).

    >>> exact_law(lambda entropy: entropy.coin(1 << 62), limit=10)
    {False: Fraction(3, 4), True: Fraction(1, 4)}
    """
    law: dict[T, dict[int, int]] = {}  # output -> denominator -> sum of numerators
    path: list[int] = []
    for _ in range(limit):
        entropy = _Branching(path, limit)
        chances = law.setdefault(draw(entropy), {})
        chances[entropy.bottom] = chances.get(entropy.bottom, 0) + entropy.top
        while path and path[-1] == entropy.widths[len(path) - 1] - 1:
            path.pop()
        if not path:
            return {
                output: sum((Fraction(top, bottom) for bottom, top in chances.items()), Fraction(0))
                for output, chances in law.items()
            }
        path[-1] += 1
    raise NotEnumerable(f"the randomizer has more than {limit} ways to go; use a sampling audit")
