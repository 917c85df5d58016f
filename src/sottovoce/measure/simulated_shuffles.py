"""Mechanisms of the shuffle model that no plan has, since their reports are not private by
themselves: their estimates are simulated from true counts, to compare with.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.accounting.gaussian import Floats
from sottovoce.accounting.shuffling.columns import column_epsilon
from sottovoce.ground.entropy import WHOLE
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import chance

_COIN_DIGITS = 1e-4  # relative, of a coin that is solved for
_REACH = 14.0  # standard deviations of a column's noise to each side,
_MORE = 60  # and so many more, beyond which there is less than _BEYOND
_BEYOND = 1e-20
_LARGEST_COIN = WHOLE // 2  # at which a column's noise varies most


@dataclass(frozen=True)
class SimulatedShuffle(ABC):
    """A mechanism by its one coin, an integer threshold: its chance times 2^64.

    Attributes:
        about: what it is, and what it does not promise.
        coin: the threshold.
        people: how many report.
    """

    about: ClassVar[str]
    coin: int
    people: int

    @classmethod
    def build(cls, epsilon: Decimal, delta: float, people: int) -> Self:
        """With the least noise that keeps (epsilon, delta) against the analyst."""
        goal = float(epsilon)
        low, high = 0, _LARGEST_COIN
        while high - low > max(1, _COIN_DIGITS * high):
            # of a coin between 0 and a half first its size is not known
            middle = (low + high) // 2 if low else high // 16
            if middle and cls(middle, people).keeps(goal, delta):
                high = middle
            else:
                low = max(middle, 1)
        if high == _LARGEST_COIN:
            raise InvalidInput(
                f"people ({people}) are too few for epsilon {epsilon} and delta {delta:g}"
            )
        return cls(high, people)

    @property
    def chance(self) -> Fraction:
        """The coin's, exactly."""
        return chance(self.coin)

    @property
    @abstractmethod
    def local(self) -> float | None:
        """What a report costs by itself if a value is replaced; None if there is no bound."""

    @abstractmethod
    def keeps(self, epsilon: float, delta: float) -> bool:
        """Whether the shuffled reports keep this promise, numerically."""

    @abstractmethod
    def simulate(self, counts: NDArray[np.int64], random: np.random.Generator) -> Floats:
        """Estimated frequencies of values that so many people hold."""


@dataclass(frozen=True)
class AppendedUnaryEncoding(SimulatedShuffle):
    """Everybody sends her true value in clear, and each value with a small chance beside it.

    Source: balcer2020separating; ``aue`` of wang2021thesis, chapter 9.

    >>> found = AppendedUnaryEncoding.build(Decimal(1), 1e-9, 1_000_000)
    >>> round(1e6 * float(found.chance)), found.local is None
    (72, True)
    """

    about: ClassVar[str] = (
        "appended unary encoding: not LDP, a report by itself holds the true value; simulation only"
    )

    @property
    def local(self) -> float | None:
        return None

    def keeps(self, epsilon: float, delta: float) -> bool:
        return two_columns_delta(self.people, float(self.chance), epsilon) <= delta

    def simulate(self, counts: NDArray[np.int64], random: np.random.Generator) -> Floats:
        fakes = random.binomial(self.people, float(self.chance), len(counts))
        # c(v) = n_v + Bin(n, gamma), less what is expected of the noise
        estimated: Floats = (counts + fakes) / self.people - float(self.chance)
        return estimated


@dataclass(frozen=True)
class RemovalUnaryEncoding(SimulatedShuffle):
    """Bit vectors with every bit flipped by a coin, and every bit position shuffled apart.

    The promise is about a value that is there or not; who replaces a value moves two columns.
    Source: ``rap-r`` of wang2021thesis, section 9.3; erlingsson2020encode.

    >>> found = RemovalUnaryEncoding.build(Decimal(1), 1e-6, 10_000)
    >>> 0 < found.chance < 1
    True
    """

    about: ClassVar[str] = (
        "RAP for removal: not LDP at these numbers, which hide whether a value was given and not "
        "which; replacing one costs twice as much; simulation only"
    )

    @property
    def local(self) -> float | None:
        flip = self.chance
        return 2 * math.log(float((1 - flip) / flip))

    def keeps(self, epsilon: float, delta: float) -> bool:
        flip = self.chance
        if flip >= Fraction(1, 2):
            return True  # a report says nothing
        found = column_epsilon(1 - flip, flip, self.people, delta, is_removal=True)
        return found <= epsilon

    def simulate(self, counts: NDArray[np.int64], random: np.random.Generator) -> Floats:
        flip = float(self.chance)
        ones = random.binomial(counts, 1 - flip) + random.binomial(self.people - counts, flip)
        # c(v) = (sum - n q)/(p - q), p = 1 - q       wang2021thesis, eq. (3.1)
        estimated: Floats = (ones / self.people - flip) / (1 - 2 * flip)
        return estimated


SIMULATED: dict[str, type[SimulatedShuffle]] = {
    "aue": AppendedUnaryEncoding,
    "rap-r": RemovalUnaryEncoding,
}


def two_columns_delta(people: int, share: float, epsilon: float) -> float:
    """delta(epsilon) of (1 + X, Y) against (X, 1 + Y), X and Y independent Bin(people, share).

    Args:
        people: whose coins make the noise of a column.
        share: the chance of each coin, above 0 and at most a half.
        epsilon: at least 0.

    >>> 1e-10 < two_columns_delta(1_000_000, 7.3e-5, 1.0) < 1e-9
    True
    """
    mean = people * share
    reach = _REACH * math.sqrt(mean * (1 - share)) + _MORE
    start, stop = max(0, math.floor(mean - reach)), min(people, math.ceil(mean + reach))
    k = np.arange(start, stop)
    # P(k + 1)/P(k) = (n - k)/(k + 1) share/(1 - share)
    steps = np.log((people - k) / (k + 1)) + math.log(share / (1 - share))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    law = np.exp(logs - logs.max())
    law /= law.sum()
    plus = np.concatenate([[0.0], law])  # of 1 + X
    plain = np.concatenate([law, [0.0]])  # of X
    # plus/plain = P(k - 1)/P(k), which rises with k
    with np.errstate(divide="ignore"):
        losses = np.log(plus) - np.log(plain)
    # delta = sum over a, b of (plus(a) plain(b) - e plain(a) plus(b))_+, where
    #   losses(b) < losses(a) - epsilon
    sum_plain = np.concatenate([[0.0], np.cumsum(plain)])
    sum_plus = np.concatenate([[0.0], np.cumsum(plus)])
    below = np.searchsorted(losses, losses - epsilon, side="left")
    terms = plus * sum_plain[below] - math.exp(epsilon) * plain * sum_plus[below]
    return float(np.maximum(terms, 0).sum()) + _BEYOND
