"""Unary encoding: one bit per value, each by its own coin. Thresholded histograms too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import WHOLE, Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles.base import Integers, PureOracle, SummedOracle
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_up


@dataclass(frozen=True)
class UnaryEncoding(PureOracle, SummedOracle):
    """Report a bit vector: the value's own bit is 1 with chance p, every other bit with chance q.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.3, eq. (3.6).
    Checked:   tests/exact/test_channels.py
    """

    largest: ClassVar[int] = 1 << 20

    one: int = field(metadata={"coin": True})
    zero: int = field(metadata={"coin": True})

    @classmethod
    def _with(cls, size: int, epsilon: Decimal, one: int, zero: int, *rest: int) -> Self:
        if not zero < one < WHOLE:
            raise InvalidInput(f"epsilon ({epsilon}) is too small or too large for exact coins")
        return cls(size, epsilon, one, zero, *rest)

    @property
    def muted(self) -> Self:
        return replace(self, one=self.zero)

    @property
    def exact_p(self) -> Fraction:
        return chance(self.one)

    @property
    def exact_q(self) -> Fraction:
        return chance(self.zero)

    @property
    def worst_ratio(self) -> Fraction:
        # e^epsilon = p (1 - q) / ((1 - p) q)   wang2021thesis, eq. (3.6)
        p, q = self.exact_p, self.exact_q
        return p * (1 - q) / ((1 - p) * q)

    def blanket(self) -> Blanket:
        """Of whole bit vectors; positions that are shuffled apart have another law."""
        # every bit is 1 with chance q, each by itself: docs/errata, 2
        q = self.exact_q
        return Blanket.of(self.worst_ratio, q, q**2, q**2, None if self.size == 2 else q**3)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("bits", self.size),))

    def randomize(self, value: int, entropy: Entropy) -> int:
        return toss_bits(self.check(value), self.size, self.one, self.zero, entropy)

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        simulate_bits(values[:, None], payload, self.size, self.one, self.zero, seed)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        return count_bits(state, payload, weights)

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        count_grouped_bits(states, groups, payload, weights)

    def supports(self, output: Any, value: int) -> bool:
        return bool(output >> value & 1)


@dataclass(frozen=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Unary encoding with p + q = 1: basic RAPPOR.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.3; kairouz2016discrete, section 4.2.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("sue", "k-rappor", "prr")
    about: ClassVar[str] = "unary encoding, symmetric (basic RAPPOR)"

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        zero = rounded_up(1 / (exp(Fraction(epsilon) / 2) + 1))
        return cls._with(size, epsilon, WHOLE - zero, zero)


@dataclass(frozen=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """Unary encoding with p = 1/2 and q = 1/(E + 1): the least variance for rare values.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.3, eq. (3.10).
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("oue",)
    about: ClassVar[str] = "unary encoding, optimized"

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        return cls._with(size, epsilon, WHOLE // 2, rounded_up(1 / (exp(epsilon) + 1)))


def with_gap(bits: int, place: int) -> int:
    """The bits with a zero pushed in at ``place``: what the others did, with room for one's own."""
    return (bits & ((1 << place) - 1)) | (bits >> place << (place + 1))


def count_bits(state: Integers, payload: Payload, weights: Integers | None) -> Integers:
    """Add up how many reports, or how much weight, set each bit."""
    from sottovoce.kernels.bits import add_columns, weigh_columns

    if weights is None:
        add_columns(payload, state)
    else:
        weigh_columns(payload, weights, state)
    return state


def count_grouped_bits(
    states: Integers, groups: Integers, payload: Payload, weights: Integers | None
) -> None:
    """Add up, for each group of people, how many reports, or how much weight, set each bit."""
    from sottovoce.kernels.bits import add_grouped_columns, weigh_grouped_columns

    if weights is None:
        add_grouped_columns(payload, groups, states)
    else:
        weigh_grouped_columns(payload, weights, groups, states)


def toss_bits(place: int, width: int, one: int, zero: int, entropy: Entropy) -> int:
    """A noisy one-hot vector: coins of threshold ``zero``, then one of ``one`` at ``place``."""
    others = with_gap(entropy.coins(zero, width - 1), place)
    return others | entropy.coin(one) << place


def simulate_bits(
    positions: NDArray[np.uint64], payload: Payload, width: int, one: int, zero: int, seed: Seed
) -> None:
    """Fill rows with noisy bit vectors whose true ones are at ``positions`` (a row a person)."""
    from sottovoce.kernels.draws import in_chunks
    from sottovoce.kernels.whisper import whisper_bits

    def work(rows: slice, state: NDArray[np.uint64]) -> None:
        whisper_bits(positions[rows], payload[rows], width, np.uint64(one), np.uint64(zero), state)

    in_chunks(len(payload), seed, work)
