"""The role of an estimator: what reports support, unbiased frequencies, and their errors' law."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.counter import Integers
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.shape import MAX_LISTED_VALUES, Shape

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """The law of an estimated frequency's error: its variance is ``floor + slope * frequency``."""

    floor: float
    slope: float

    def variance(self, frequency: ArrayLike) -> Floats:
        total = np.array(frequency, dtype=float)
        total *= self.slope
        total += self.floor
        return total


class Estimator(Shape):
    """Frequencies from the support of the values.

    A new one gives :meth:`from_support`, :meth:`noise`, :meth:`support_rows` and :meth:`supports`.
    """

    # whether the support of a value is the number of reports that :meth:`supports` says yes to
    counts_reports: ClassVar[bool] = True
    # whether estimates are unbiased, and variances hold, on average over salts alone
    holds_over_salts: ClassVar[bool] = False

    @abstractmethod
    def support_rows(
        self, payload: Payload, weights: Integers | None, values: NDArray[np.uint64] | None
    ) -> Integers:
        """How many of these reports, or how much of their weight, support each value.

        Args:
            payload: packed reports that were checked, one row each.
            weights: an integer beside each report; None for 1 each.
            values: codes that were checked; None for all.
        """

    @abstractmethod
    def from_support(self, support: Integers, people: int) -> Floats:
        """Unbiased frequencies from how many of ``people`` reports support each value."""

    def estimate_support(self, support: Integers, people: int) -> tuple[Floats, Floats]:
        """Unbiased frequencies of the values whose support is given, and the variances of their
        errors.
        """
        frequencies = self.from_support(support, people)
        return frequencies, self.noise(people).variance(np.clip(frequencies, 0, 1))

    @abstractmethod
    def noise(self, people: int) -> Noise:
        """The error's law at ``people`` reports, for post-processing and prediction."""

    def variance(self, n: int, f: ArrayLike = 0.0, *, population: bool = False) -> Any:
        """Variance of an estimated frequency whose true value is ``f``, given ``n`` people asked.

        ``population=True`` adds f(1 - f)/n: the people asked are themselves a sample.
        """
        frequency = np.asarray(f, dtype=float)
        if n < 1 or not (np.all(frequency >= 0) and np.all(frequency <= 1)):
            raise InvalidInput(f"n ({n}) must be at least 1 and f must lie between 0 and 1")
        total = self.noise(n).variance(frequency)
        if population:
            total = total + frequency * (1 - frequency) / n
        return float(total) if total.ndim == 0 else total

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        """The variance of every value's estimate when the distribution is known."""
        return np.asarray(self.variance(n, frequencies))

    def std_error(self, n: int, f: ArrayLike = 0.0, *, population: bool = False) -> Any:
        """Square root of :meth:`variance`, with ``f`` clipped to [0, 1]."""
        total = self.variance(n, np.clip(np.asarray(f, dtype=float), 0, 1), population=population)
        return sqrt(total) if isinstance(total, float) else np.sqrt(total)

    def sum_noise(self, people: int, count: int) -> Noise:
        """The error's law for the summed frequency of ``count`` values; cells are uncorrelated."""
        # f (p(1 - p) + (|S| - 1) q(1 - q)) + (1 - f) |S| q(1 - q), over n (p - q)^2:
        # only the floors add up
        cell = self.noise(people)
        return Noise(count * cell.floor, cell.slope)

    def sum_variance(self, n: int, count: int) -> float:
        """Variance of the summed frequency of ``count`` values that nobody holds."""
        return self.sum_noise(n, count).floor

    @abstractmethod
    def supports(self, output: Any, value: int) -> bool:
        """Whether one report speaks for ``value``."""

    def asked(self, values: ArrayLike | None) -> NDArray[np.uint64] | None:
        """The values asked for as codes; None for all, if they are few enough to list."""
        if values is not None:
            return self._column(values)
        if self.size > MAX_LISTED_VALUES:
            raise InvalidInput(
                f"size ({self.size}) is too large to estimate every value; name the values"
            )
        return None


def in_order(values: NDArray[np.uint64] | None, everything: Integers) -> Integers:
    """The entries asked for, of a vector of all: a copy, so that a growing state leaves it."""
    return everything.copy() if values is None else everything[values.astype(np.int64)]
