"""Direct encoding: the value itself, or a random one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles.base import Integers, Noise, PureOracle, SummedOracle, tally, tally_groups
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, truth_threshold


@dataclass(frozen=True)
class GeneralizedRandomizedResponse(PureOracle, SummedOracle):
    """Report the value with a chance of E times that of any other.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.1, eq. (3.4); kairouz2016discrete, eq. (4).
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("grr", "de", "k-rr", "ps")
    about: ClassVar[str] = "generalized randomized response"
    largest: ClassVar[int] = 1 << 24

    truth: int = field(metadata={"coin": True})

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        return cls(size, epsilon, truth_threshold(size, epsilon))

    @property
    def exact_p(self) -> Fraction:
        return chance(self.truth) + self.exact_q

    @property
    def exact_q(self) -> Fraction:
        return (1 - chance(self.truth)) / self.size

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / self.exact_q

    def blanket(self) -> Blanket:
        # uniform over the values; an answer supports itself alone
        third = None if self.size == 2 else Fraction(0)
        return Blanket.of(self.worst_ratio, Fraction(1, self.size), Fraction(0), Fraction(0), third)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("answer", (self.size - 1).bit_length(), self.size),))

    def randomize(self, value: int, entropy: Entropy) -> int:
        value = self.check(value)
        return value if entropy.coin(self.truth) else entropy.below(self.size)

    @property
    def muted(self) -> Self:
        return replace(self, truth=0)  # never the value: uniform

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_direct

        answers = np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_direct(values[rows], answers[rows], self.size, np.uint64(self.truth), state)

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "answer", answers)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        answers = self.layout.read(payload, "answer").astype(np.int64)
        state += tally(answers, weights, self.size)
        return state

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        answers = self.layout.read(payload, "answer").astype(np.int64)
        tally_groups(states, groups, answers, weights)

    def supports(self, output: Any, value: int) -> bool:
        return bool(output == value)

    def sum_noise(self, people: int, count: int) -> Noise:
        # a report lies in S with chance a = p + (|S| - 1) q if the value does, b = |S| q if not:
        # one coin, so that at f = 0 the variance is |S| (E + L - 1 - |S|) / ((E - 1)^2 n):
        # docs/errata, 14
        inside, outside = self.p + (count - 1) * self.q, count * self.q
        floor = outside * (1 - outside)
        scale = people * self.gap**2
        return Noise(floor / scale, (inside * (1 - inside) - floor) / scale)


@dataclass(frozen=True)
class RandomizedResponse(GeneralizedRandomizedResponse):
    """Warner's randomized response for a yes-or-no question.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value 0 or 1.
    Source:    kairouz2016discrete, section 3, eq. (3), corrected, see docs/errata.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("rr",)
    about: ClassVar[str] = "Warner's randomized response, two values"
    largest: ClassVar[int] = 2

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        if size != 2:
            raise InvalidInput(f"size ({size}) must be 2 for rr; grr takes more values")
        return cls(2, epsilon, truth_threshold(2, epsilon))
