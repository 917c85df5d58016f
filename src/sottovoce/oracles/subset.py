"""Subset selection: a set of fixed size that is more likely to hold the value."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.kernels.fields import ones_per_row
from sottovoce.oracles.base import Integers, Noise, PureOracle, SummedOracle
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_down
from sottovoce.oracles.unary import count_bits, count_grouped_bits, with_gap


@dataclass(frozen=True)
class SubsetSelection(PureOracle, SummedOracle):
    """Report a set of exactly ``chosen`` values; sets that hold the true value are E times as
    likely as others.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    ye2018optimal; wang2016mutual. p = wE/(wE + d - w), w near d/(E + 1).
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("ss",)
    about: ClassVar[str] = "subset selection"
    largest: ClassVar[int] = 1 << 20

    include: int = field(metadata={"coin": True})
    chosen: int

    @classmethod
    def build(cls, size: int, epsilon: Decimal, chosen: int | None = None) -> Self:
        """``chosen``: values in a report; the count with the least variance by default."""
        if chosen is not None:
            return cls._with(size, epsilon, whole("chosen", chosen, 1, size - 1))
        best = float(size / (exp(epsilon) + 1))
        counts = {max(1, int(best)), min(size - 1, max(1, int(best) + 1))}
        return min(
            (cls._with(size, epsilon, count) for count in sorted(counts)),
            key=lambda o: float(o.noise(1).variance(1 / size)),
        )

    @classmethod
    def _with(cls, size: int, epsilon: Decimal, chosen: int) -> Self:
        weight = chosen * exp(epsilon)
        include = rounded_down(weight / (weight + size - chosen))
        if chance(include) * (size - chosen) <= (1 - chance(include)) * chosen:
            raise InvalidInput(
                f"epsilon ({epsilon}) is too small for size {size}: a report would say nothing"
            )
        return cls(size, epsilon, include, chosen)

    def options(self) -> dict[str, Any]:
        return {"chosen": self.chosen}

    @property
    def exact_p(self) -> Fraction:
        return chance(self.include)

    @property
    def exact_q(self) -> Fraction:
        # p (w - 1) + (1 - p) w = w - p  of the other values are members
        return (self.chosen - self.exact_p) / (self.size - 1)

    @property
    def worst_ratio(self) -> Fraction:
        # p / C(d-1, w-1) against (1 - p) / C(d-1, w)
        p = self.exact_p
        return p * (self.size - self.chosen) / ((1 - p) * self.chosen)

    @property
    def muted(self) -> Self:
        return self  # the subset of a uniform value is uniform, as fakes' values are

    def blanket(self) -> Blanket:
        # a uniform set of w values holds two of them with chance w(w - 1)/(d(d - 1)), and so on
        one = Fraction(self.chosen, self.size)
        two = one * Fraction(self.chosen - 1, self.size - 1)
        three = two * Fraction(self.chosen - 2, self.size - 2) if self.size > 2 else None
        return Blanket.of(self.worst_ratio, one, two, two, three)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("members", self.size),))

    def randomize(self, value: int, entropy: Entropy) -> int:
        value = self.check(value)
        joins = entropy.coin(self.include)
        others = entropy.subset(self.size - 1, self.chosen - joins)
        return with_gap(others, value) | joins << value

    def unpack(self, data: bytes) -> Any:
        members = super().unpack(data)
        if members.bit_count() != self.chosen:
            raise CorruptReport(f"payload: a report must hold exactly {self.chosen} values")
        return members

    def validate(self, payload: Payload) -> None:
        super().validate(payload)
        if len(payload) and bool((ones_per_row(payload) != self.chosen).any()):
            raise CorruptReport(f"payload: a report must hold exactly {self.chosen} values")

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_subset

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_subset(
                values[rows], payload[rows], self.size, self.chosen, np.uint64(self.include), state
            )

        in_chunks(values.size, seed, work)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        return count_bits(state, payload, weights)

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        count_grouped_bits(states, groups, payload, weights)

    def supports(self, output: Any, value: int) -> bool:
        return bool(output >> value & 1)

    def sum_noise(self, people: int, count: int) -> Noise:
        floor = self._members_variance(count, 0)
        scale = people * self.gap**2
        return Noise(floor / scale, (self._members_variance(count - 1, 1) - floor) / scale)

    def _members_variance(self, others: int, own: int) -> float:
        """Variance of how many of S a report holds: ``others``, and the value itself if ``own``."""
        # members of S among w drawn from the d - 1 others:
        # hypergeometric, with w - 1 draws if the value joined
        rest, p = self.size - 1, self.p
        means = [draws * others / rest for draws in (self.chosen - 1, self.chosen)]
        spreads = [
            mean * (1 - others / rest) * (rest - draws) / max(rest - 1, 1)
            for mean, draws in zip(means, (self.chosen - 1, self.chosen), strict=True)
        ]
        within = p * spreads[0] + (1 - p) * spreads[1]
        between = p * (1 - p) * (means[1] - means[0] - own) ** 2
        return within + between
