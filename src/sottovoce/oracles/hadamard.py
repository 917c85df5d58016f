"""Hadamard response: one column of a Hadamard matrix, from the half that agrees with the value's row."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.entropy import WHOLE, Entropy
from sottovoce.errors import InvalidInput
from sottovoce.oracles.base import Integers, PureOracle
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_down


@dataclass(frozen=True)
class HadamardResponse(PureOracle):
    """Value v owns row v + 1 of a Hadamard matrix; its columns of sign +1 are E times as likely as the others.

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
        odds = exp(epsilon)
        agree = rounded_down(odds / (odds + 1))
        if agree <= WHOLE // 2:
            raise InvalidInput(f"epsilon ({epsilon}) is too small: a report would say nothing")
        return cls(size, epsilon, agree)

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

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("column", self.order.bit_length() - 1),))

    def randomize(self, value: int, entropy: Entropy) -> int:
        row = self.check(value) + 1
        column = entropy.bits(self.order.bit_length() - 1)
        agrees = entropy.coin(self.agree)
        if ((row & column).bit_count() & 1 == 0) != agrees:
            column ^= row & -row  # the lowest bit of the row: from one half of the columns onto the other
        return column

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: int) -> None:
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

    def _accumulate(self, state: Integers, payload: Payload) -> None:
        columns = self.layout.read(payload, "column").astype(np.int64)
        state += np.bincount(columns, minlength=self.order)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        from sottovoce.kernels.transform import walsh_hadamard

        transformed = walsh_hadamard(state)
        everything: Integers = (transformed[0] + transformed[1 : self.size + 1]) >> 1
        return everything if values is None else everything[values.astype(np.int64)]

    def sum_variance(self, n: int, count: int) -> float:
        # two rows multiply to a third: of count (count - 1) pairs, 1 in (order - 1) meets the row of a person outside
        pairs = count * (count - 1) / (self.order - 1)
        return (count + pairs * 2 * self.gap) / (n * 4 * self.gap**2)

    def supports(self, output: Any, value: int) -> bool:
        return bool((output & (value + 1)).bit_count() & 1 == 0)
