"""Local hashing of whole sets: an answer near any of a person's values is likelier than others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import bucket, keyed_hash
from sottovoce.ground.seeds import Seed, checked_seed
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.hashing import MOST_HASH_SIZE, SeededLocalHashing
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_down
from sottovoce.schema import OPEN, Sets

MAX_SET_LENGTH = MOST_HASH_SIZE // 8


def set_hash_size(length: int, odds: float) -> int:
    """The number of hash values with the least variance for sets of up to ``length`` values.

    >>> set_hash_size(1, 3.0), set_hash_size(5, 2.718)
    (4, 24)
    """
    # Var = (g - 1)(g + a)^2 / ((E - 1)^2 (g - l)^2), a = l(E - 1):
    # least where  g^2 - (a + 3l) g + 2l + 2a - al = 0
    extra = length * (odds - 1)
    half = (extra + 3 * length) / 2
    best = half + sqrt(max(0.0, half * half - 2 * length - 2 * extra + extra * length))
    return min(max(round(best), length + 1), MOST_HASH_SIZE)


@dataclass(frozen=True)
class SetLocalHashing(SeededLocalHashing):
    """Hash every value of a set with one seed; an answer that some value hashes to is E times as
    likely as can be.

    A set has at most ``length`` values, or none. Nothing need be padded: chances that a small set,
    or one whose values collide, leaves over go to the other answers. One value is a set of one, and
    ``length`` 1 is ``olh-seeded``.

    Guarantee: epsilon-LDP for one report of a whole set, for every seed.
    Assumes:   uniform entropy; at most length values in range(size); the keyed hash behaves as a
               random function.
    Source:    wang2020set, the wheel mechanism, on hash values instead of a circle.
    Checked:   tests/exact/test_set_hashing.py
    """

    names: ClassVar[tuple[str, ...]] = ("olh-sets",)
    about: ClassVar[str] = "local hashing of whole sets with a seeded hash"
    largest: ClassVar[int] = OPEN

    length: int

    @classmethod
    def build(
        cls, size: int, epsilon: Decimal, hash_size: int | None = None, length: int = 1
    ) -> Self:
        """``length``: the most values of a set. ``hash_size``: g; the best by default."""
        most = whole("length", length, 1, MAX_SET_LENGTH)
        odds = exp(epsilon)
        best = set_hash_size(most, float(min(odds, Fraction(MOST_HASH_SIZE))))
        count = (
            best if hash_size is None else whole("hash_size", hash_size, most + 1, MOST_HASH_SIZE)
        )
        # a slot of l is followed with chance l(E - 1)/(g + l(E - 1)), or else any answer is drawn
        truth = rounded_down(most * (odds - 1) / (count + most * (odds - 1)))
        if truth == 0:
            raise InvalidInput(
                f"epsilon ({epsilon}) is too small for length {most}: a report would say nothing"
            )
        return cls(size, epsilon, truth, count, most)

    def options(self) -> dict[str, Any]:
        return {"length": self.length, "hash_size": self.hash_size}

    @property
    def exact_p(self) -> Fraction:
        return chance(self.truth) / self.length + (1 - chance(self.truth)) / self.buckets

    @property
    def worst_ratio(self) -> Fraction:
        # (T/l + (1 - T)/g) / ((1 - T)/g):
        # an answer that a value hashes to, against one of a full set
        return self.exact_p * self.buckets / (1 - chance(self.truth))

    def blanket(self) -> Blanket:
        # a full set without collisions supports l of g answers; the law of any other set is a mean
        # of laws of such, with near answers that no value hashes to
        if self.length == 1:
            return super().blanket()
        return Blanket.of(self.worst_ratio, Fraction(self.length, self.buckets), Fraction(0))

    def randomize(self, value: int | Sequence[int], entropy: Entropy) -> tuple[int, int]:
        values = value if isinstance(value, Sequence) else (value,)
        if len(set(values)) > self.length:
            raise InvalidInput(f"value must be a set of at most {self.length} values")
        (seed,) = self.public_coins(entropy)
        near = sorted(
            {bucket(keyed_hash(seed, self.check(each)), self.hash_size) for each in values}
        )
        if not entropy.coin(self.truth):
            return seed, entropy.below(self.hash_size)
        slot = entropy.below(self.length)
        if slot < len(near):
            return seed, near[slot]
        answer = entropy.below(self.hash_size - len(near))
        for each in near:  # the answers that no value hashes to, in order
            answer += each <= answer
        return seed, answer

    def simulate(self, values: ArrayLike | Sets, seed: Seed) -> Payload:
        """The packed reports of many devices: of one value each, or of a column of sets."""
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.sets import whisper_sets

        if not isinstance(values, Sets):
            column = self._column(values)
            values = Sets(np.arange(len(column) + 1), column)
        if len(values) and int(values.lengths.max()) > self.length:
            raise InvalidInput(f"values must be sets of at most {self.length} values")
        starts, codes = values.starts, self._column(values.codes)
        seeds, answers = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            bounds = starts[rows.start : rows.stop + 1]
            coin = np.uint64(self.truth)
            whisper_sets(
                bounds, codes, seeds[rows], answers[rows], self.hash_size, self.length, coin, state
            )

        in_chunks(len(values), checked_seed(seed), work)
        payload = np.zeros((len(values), self.layout.bytes), np.uint8)
        self.layout.write(payload, "seed", seeds)
        self.layout.write(payload, "answer", answers)
        return payload


def least_variance(length: int, odds: float) -> float:
    """The variance of the frequency of a value that nobody holds, times the people, at the best g.

    >>> round(least_variance(1, 2.718281828), 2), round(least_variance(5, 2.718281828), 1)
    (3.69, 22.9)
    """
    size = set_hash_size(length, odds)
    # q(1 - q)/(p - q)^2 with p = E/(g + l(E - 1)), q = 1/g   wang2021thesis, eq. (3.3)
    return (size - 1) * (size + length * (odds - 1)) ** 2 / ((odds - 1) * (size - length)) ** 2
