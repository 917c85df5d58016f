"""Local hashing over a prime field: a hash of any size, decoded by listing what a report names."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.hashes import scramble_below
from sottovoce.ground.seeds import Seed
from sottovoce.oracles.base import Integers, Noise, SummedOracle
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.hashing import HashedResponse
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, truth_threshold

MOST_LISTED = 1 << 13  # values that a report may support; so many cells of a state it moves


@lru_cache(maxsize=256)
def prime_from(size: int) -> int:
    """The least prime that is at least ``size``.

    >>> prime_from(2), prime_from(4), prime_from(42_178)
    (2, 5, 42179)
    """
    while any(size % factor == 0 for factor in range(2, isqrt(size) + 1)):
        size += 1
    return size


@dataclass(frozen=True)
class FieldLocalHashing(HashedResponse, SummedOracle):
    """Hash by a random line over the least field of prime order r >= d, cut into g intervals.

    H(v) is the interval of a v + b, for a not 0: a random order of the field, of which no two
    values are nearer than others. A report names an interval, and so about r/g values, which are
    listed. Fewer values collide than under a random function, and none if g = r.

    Guarantee: epsilon-LDP for one report, for every hash function.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.5, eq. (3.11), on the hash family of carter1979universal
               without the constant ones.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("olh-field",)
    public: ClassVar[tuple[str, ...]] = ("factor", "shift")
    about: ClassVar[str] = "local hashing over a prime field, to any number of hash values"

    hash_size: int

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hash_size: int | None = None) -> Self:
        """``hash_size``: g, how many intervals; near E + 1 by default."""
        least = max(2, -(-prime_from(size) // MOST_LISTED))
        best = min(max(least, round(exp(epsilon) + 1)), size)
        count = best if hash_size is None else whole("hash_size", hash_size, least, size)
        return cls(size, epsilon, truth_threshold(count, epsilon), count)

    def options(self) -> dict[str, Any]:
        return {"hash_size": self.hash_size}

    @property
    def buckets(self) -> int:
        return self.hash_size

    @cached_property
    def prime(self) -> int:
        """r, the order of the field."""
        return prime_from(self.size)

    def _together(self, count: int) -> Fraction:
        """The chance that so many points of the field, drawn without repetition, lie in the same
        interval.
        """
        # r mod g intervals hold one point more than the others
        points, longer = divmod(self.prime, self.hash_size)
        shares = [(longer, points + 1), (self.hash_size - longer, points)]
        total = Fraction(0)
        for intervals, held in shares:
            ways = Fraction(intervals)
            for drawn in range(count):
                ways *= Fraction(held - drawn, self.prime - drawn) if held > drawn else 0
            total += ways
        return total

    @cached_property
    def collision(self) -> Fraction:
        """The chance that two values have one hash: that of two points, as a v + b of two values
        are uniform over all pairs of points.
        """
        return self._together(2)

    @property
    def exact_q(self) -> Fraction:
        # the hash of another value with the chance of a collision, and a uniform one
        return chance(self.truth) * self.collision + (1 - chance(self.truth)) / self.hash_size

    def blanket(self) -> Blanket:
        # a uniform interval beside a uniform line: it holds two values with chance collision/g
        cell = Fraction(1, self.hash_size)
        both = self.collision * cell
        return Blanket.of(self.worst_ratio, cell, both, both, self._three_in_line())

    def _three_in_line(self) -> Fraction | None:
        """The chance that a report of the blanket supports the three values whose points are 0, 1
        and 2.
        """
        if self.size == 2:
            return None
        # u, u + a and u + 2a in an interval of m points, which is no longer than (r + 1)/2: the sum
        # of m - 2|a| over all a but 0 for which it is above 0
        points, longer = divmod(self.prime, self.hash_size)
        lines = 0
        for intervals, held in ((longer, points + 1), (self.hash_size - longer, points)):
            steps = max(0, (held - 1) // 2)
            lines += intervals * 2 * (steps * held - steps * (steps + 1))
        return Fraction(lines, self.prime * (self.prime - 1)) / self.hash_size

    @cached_property
    def layout(self) -> Layout:
        # the factor a is not 0: a - 1 is written
        return Layout(
            (
                Field("factor", (self.prime - 2).bit_length(), self.prime - 1),
                Field("shift", (self.prime - 1).bit_length(), self.prime),
                Field("answer", (self.hash_size - 1).bit_length(), self.hash_size),
            )
        )

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int, int]:
        point = scramble_below(self.check(value), self.size)
        factor, shift = self.public_coins(entropy)
        if entropy.coin(self.truth):
            return factor, shift, self._hash(factor, shift, point)
        return factor, shift, entropy.below(self.hash_size)

    def _hash(self, factor: int, shift: int, point: int) -> int:
        place = ((factor + 1) * point + shift) % self.prime
        return place * self.hash_size // self.prime

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.field_hashing import whisper_field

        factors, shifts, answers = (np.empty_like(values) for _ in range(3))

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_field(
                values[rows],
                factors[rows],
                shifts[rows],
                answers[rows],
                (self.size, self.prime, self.hash_size),
                np.uint64(self.truth),
                state,
            )

        in_chunks(values.size, seed, work)
        for name, column in (("factor", factors), ("shift", shifts), ("answer", answers)):
            self.layout.write(payload, name, column)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        self._accumulate_groups(state[None, :], np.zeros(len(payload), np.int64), payload, weights)
        return state

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        from sottovoce.kernels.field_hashing import list_supported

        columns = [self.layout.read(payload, field.name) for field in self.layout.fields]
        beside = np.ones(len(payload), np.int64) if weights is None else weights
        list_supported(*columns, groups, beside, self.prime, self.hash_size, states)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        # the state counts points
        from sottovoce.kernels.field_hashing import points_of

        asked = np.arange(self.size, dtype=np.uint64) if values is None else values
        found: Integers = state[points_of(asked, self.size)]
        return found

    def supports(self, output: Any, value: int) -> bool:
        factor, shift, answer = output
        return bool(self._hash(factor, shift, scramble_below(value, self.size)) == answer)

    def sum_noise(self, people: int, count: int) -> Noise:
        # [v supported] and [v' supported] of two values, of which the person holds
        #   neither: both with chance  t P(3 together) + (1 - t) P(2 together)/g, over all triples
        #   the first: both with chance  t P(2 together) + (1 - t) P(2 together)/g
        truth, cell = float(chance(self.truth)), 1 / self.hash_size
        two, three = float(self.collision), float(self._together(3))
        neither = truth * three + (1 - truth) * two * cell - self.q**2
        first = truth * two + (1 - truth) * two * cell - self.p * self.q
        others = count - 1
        floor = count * self.q * (1 - self.q) + count * others * neither
        inside = self.p * (1 - self.p) + others * self.q * (1 - self.q)
        inside += 2 * others * first + others * (others - 1) * neither
        scale = people * self.gap**2
        return Noise(floor / scale, (inside - floor) / scale)
