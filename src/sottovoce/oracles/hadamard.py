"""Hadamard matrices: a column that agrees with the value's row, or one coefficient's sign."""

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
from sottovoce.oracles.base import (
    Integers,
    Noise,
    PureOracle,
    SummedOracle,
    in_order,
    tally,
    tally_groups,
)
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_down


def agree_threshold(epsilon: Decimal) -> int:
    """The chance that a sign is the true one, E/(E + 1), rounded down."""
    odds = exp(epsilon)
    agree = rounded_down(odds / (odds + 1))
    if agree <= WHOLE // 2:
        raise InvalidInput(f"epsilon ({epsilon}) is too small: a report would say nothing")
    return agree


@dataclass(frozen=True)
class HadamardResponse(PureOracle, SummedOracle):
    """Value v owns row v + 1 of a Hadamard matrix; its columns of sign +1 are E times as likely as
    the others.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    acharya2019hadamard. p = E/(E + 1), q = 1/2.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("hr",)
    about: ClassVar[str] = "Hadamard response"

    agree: int = field(metadata={"coin": True})

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        return cls(size, epsilon, agree_threshold(epsilon))

    @cached_property
    def order(self) -> int:
        """The smallest power of two above the size."""
        return 1 << self.size.bit_length()

    @property
    def exact_p(self) -> Fraction:
        return chance(self.agree)

    @property
    def exact_q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / (1 - self.exact_p)

    @property
    def muted(self) -> Self:
        return replace(self, agree=WHOLE // 2)

    def blanket(self) -> Blanket:
        # a uniform column agrees with two different rows, none of them 0, with chance 1/4, and
        # with three, such as the first, second and fourth, with 1/8
        half = Fraction(1, 2)
        three = half**3 if self.size >= 4 else half**2 if self.size == 3 else None
        return Blanket.of(self.worst_ratio, half, half**2, half**2, three)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("column", self.order.bit_length() - 1),))

    def randomize(self, value: int, entropy: Entropy) -> int:
        row = self.check(value) + 1
        column = entropy.bits(self.order.bit_length() - 1)
        agrees = entropy.coin(self.agree)
        if ((row & column).bit_count() & 1 == 0) != agrees:
            # the lowest bit of the row: from one half of the columns onto the other
            column ^= row & -row
        return column

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_columns

        columns = np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            own = values[rows] + np.uint64(1)
            whisper_columns(own, columns[rows], self.order, np.uint64(self.agree), state)

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "column", columns)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.order,)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        columns = self.layout.read(payload, "column").astype(np.int64)
        state += tally(columns, weights, self.order)
        return state

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        columns = self.layout.read(payload, "column").astype(np.int64)
        tally_groups(states, groups, columns, weights)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        from sottovoce.kernels.transform import walsh_hadamard

        transformed = walsh_hadamard(state)
        everything: Integers = (transformed[0] + transformed[1 : self.size + 1]) >> 1
        return everything if values is None else everything[values.astype(np.int64)]

    def sum_noise(self, people: int, count: int) -> Noise:
        # two rows multiply to a third: of count (count - 1) pairs, 1 in (order - 1) meets the row
        # of a person outside, and of the pairs without her own row, 1 in (order - 2) that of a
        # person inside: a mean over sets of values
        outside = count + count * (count - 1) / (self.order - 1) * 2 * self.gap
        inside = (
            count
            + (count - 1) * (count - 2) / max(self.order - 2, 1) * 2 * self.gap
            - 4 * self.gap**2
        )
        scale = people * 4 * self.gap**2
        return Noise(outside / scale, (inside - outside) / scale)

    def supports(self, output: Any, value: int) -> bool:
        return bool((output & (value + 1)).bit_count() & 1 == 0)


@dataclass(frozen=True)
class HadamardRandomizedResponse(PureOracle, SummedOracle):
    """Draw a coefficient of the value's Hadamard transform, never the constant one; send its sign
    through a coin.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    cormode2018marginal, section 4.3 (the Hadamard transform of one marginal). p = E/(E +
               1).
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("hrr",)
    public: ClassVar[tuple[str, ...]] = ("coefficient",)
    about: ClassVar[str] = "randomized response on one Hadamard coefficient"

    agree: int = field(metadata={"coin": True})

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        return cls(size, epsilon, agree_threshold(epsilon))

    @cached_property
    def order(self) -> int:
        """The smallest power of two that holds the size."""
        return 1 << (self.size - 1).bit_length()

    @property
    def exact_p(self) -> Fraction:
        return chance(self.agree)

    @property
    def exact_q(self) -> Fraction:
        # two values have one sign in (K/2 - 1) of the K - 1 coefficients that are not constant
        alike = Fraction(self.order // 2 - 1, self.order - 1)
        return alike * self.exact_p + (1 - alike) * (1 - self.exact_p)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / (1 - self.exact_p)

    @property
    def muted(self) -> Self:
        return replace(self, agree=WHOLE // 2)

    def blanket(self) -> Blanket:
        # of K - 1 coefficients K/2 - 1 give two values one sign, and K/4 - 1 three; the sign of
        # the blanket is that one with chance 1/2
        two = Fraction(self.order // 2 - 1, 2 * (self.order - 1))
        three = Fraction(self.order // 4 - 1, 2 * (self.order - 1)) if self.size > 2 else None
        return Blanket.of(self.worst_ratio, Fraction(1, 2), two, two, three)

    @cached_property
    def layout(self) -> Layout:
        """The coefficient counted from the first that is not constant, and its sign."""
        return Layout(
            (Field("coefficient", (self.order - 2).bit_length(), self.order - 1), Field("sign", 1))
        )

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        value = self.check(value)
        (coefficient,) = self.public_coins(entropy)
        sign = (coefficient + 1 & value).bit_count() & 1
        return coefficient, sign if entropy.coin(self.agree) else 1 - sign

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_coefficients

        coefficients, signs = np.empty_like(values), np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            own = (values[rows], coefficients[rows], signs[rows])
            whisper_coefficients(*own, self.order, np.uint64(self.agree), state)

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "coefficient", coefficients)
        self.layout.write(payload, "sign", signs)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.order,)  # people, then for each coefficient its signs added up

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        coefficients = self.layout.read(payload, "coefficient").astype(np.int64) + 1
        signs = 1 - 2 * self.layout.read(payload, "sign").astype(np.int64)
        state[0] += len(payload) if weights is None else weights.sum()
        state += tally(coefficients, signs if weights is None else signs * weights, self.order)
        return state

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        coefficients = self.layout.read(payload, "coefficient").astype(np.int64) + 1
        signs = 1 - 2 * self.layout.read(payload, "sign").astype(np.int64)
        states[:, 0] += tally(groups, weights, len(states))
        tally_groups(states, groups, coefficients, signs if weights is None else signs * weights)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        # a report supports v if its sign is that of v:
        # (n + sum over c of (-1)^<c, v> signs of c) / 2
        from sottovoce.kernels.transform import walsh_hadamard

        return in_order(values, walsh_hadamard(state)[: self.size] >> 1)

    def sum_noise(self, people: int, count: int) -> Noise:
        # T_c = sum over v in S of (-1)^<c, v>
        # by Parseval the mean of T_c^2 over c > 0 is  |S|(K - |S|)/(K - 1)  for every S
        # a report's sign times T_c has the mean  (2p - 1)(K [x in S] - |S|)/(K - 1)
        rest, truth = self.order - 1, 2 * self.p - 1
        square = count * (self.order - count) / rest
        outside, inside = (truth * (mine - count) / rest for mine in (0, self.order))
        scale = people * 4 * self.gap**2
        return Noise((square - outside**2) / scale, (outside**2 - inside**2) / scale)

    def supports(self, output: Any, value: int) -> bool:
        coefficient, sign = output
        return bool((coefficient + 1 & value).bit_count() & 1 == sign)
