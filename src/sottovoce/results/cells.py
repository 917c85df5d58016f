"""Single figures of a table: a cell by its label, and the sum of some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Protocol, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema import Label

Floats = NDArray[np.float64]
CellLabel = Label | tuple[Label, ...]  # of a table of one attribute, or of several
SMALLEST_SHARE = 1e-12  # whose error is relative to it
FACTOR_SPREAD = 0.75  # of a log-normal law's spread, what docs/intervals.md found on public data
SUM_ROUNDING = 1e-9  # sums that differ from one by less differ by rounding only


@dataclass(frozen=True)
class Cell:
    """One value of a table, with its standard error and its 95% interval.

    >>> print(Cell("yes", 0.25, 0.01, 0.2304, 0.2696))
    yes: 0.2500 ± 0.0100 [0.2304, 0.2696]
    """

    label: CellLabel
    value: float
    std_error: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"{self.label}: {self.value:.4f} ± {self.std_error:.4f} [{self.low:.4f}, "
            f"{self.high:.4f}]"
        )


class Total(float):
    """A summed frequency: a number that carries its standard error.

    ``is_bound`` says that the standard error is the largest it can be, where it is not known how
    cells err together. ``ends`` gives an interval of any level that is not symmetric.

    >>> total = Total(0.5, 0.02)
    >>> total + 1, total.std_error, [round(end, 3) for end in total.interval(0.95)]
    (1.5, 0.02, [0.461, 0.539])
    """

    std_error: float
    is_bound: bool
    ends: Callable[[float], tuple[float, float]] | None

    def __new__(
        cls,
        value: float,
        std_error: float,
        is_bound: bool = False,
        ends: Callable[[float], tuple[float, float]] | None = None,
    ) -> Total:
        made = super().__new__(cls, value)
        made.std_error = std_error
        made.is_bound = is_bound
        made.ends = ends
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:  # copied and pickled with its error
        return float(self), self.std_error, self.is_bound, self.ends

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """(low, high): a normal interval, unless the total knows a better one."""
        if self.ends is not None:
            return self.ends(level)
        reach = quantile(level) * self.std_error
        return float(self) - reach, float(self) + reach

    def to_json(self, level: float = 0.95) -> dict[str, float]:
        """The sum as a row of a table has its figures."""
        low, high = self.interval(level)
        return {
            "frequency": float(self),
            "std_error": self.std_error,
            "low": low,
            "high": high,
        }


class Spread(Protocol):
    """What is known of a table's errors beyond a variance for each value.

    A table that has one (``Table.spread``) takes its intervals, which need not be symmetric, and
    the errors of sums from it.
    """

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every value, two arrays of shape (values,)."""

    def total(self, places: Sequence[int], value: float) -> Total:
        """The sum of the values at these places, which is ``value``, with its error."""


@dataclass(frozen=True, eq=False)
class SpreadPart:
    """The spread of some of a table's values, in any order."""

    whole: Spread
    places: NDArray[np.int64]

    def interval(self, level: float) -> tuple[Floats, Floats]:
        low, high = self.whole.interval(level)
        return low[self.places], high[self.places]

    def total(self, places: Sequence[int], value: float) -> Total:
        return self.whole.total(self.places[list(places)].tolist(), value)


def bounded_interval(low: Floats, high: Floats, level: float) -> tuple[Floats, Floats]:
    """Intervals of frequencies, which lie in [0, 1], from those of unbiased values.

    They hold the truth at least as often as before, and miss it on one side only near 0 and 1. None
    is empty, also where a value lies far outside.

    >>> low, high = np.array([0.3, -0.1, -0.5]), np.array([0.7, 0.3, -0.1])
    >>> low, high = bounded_interval(low, high, 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.3, 0.0, 0.0], [0.7, 0.3, 0.168])
    """
    # what an interval to one side would reach: a frequency below it is never missed from above
    one_sided = max(NormalDist().inv_cdf(level), 0.0)
    least = (high - low) / 2 * one_sided / quantile(level)
    bottom = np.minimum(low, 1 - least)
    top = np.maximum(high, least)
    return np.clip(bottom, 0, 1), np.clip(top, 0, 1)


def bounded_ends(total: Total, level: float) -> tuple[float, float]:
    """The interval of a sum of frequencies, which lies in [0, 1], from that of an unbiased one.

    >>> [round(end, 3) for end in bounded_ends(Total(0.9, 0.1), 0.95)]
    [0.704, 1.0]
    """
    low, high = total.interval(level)
    bottom, top = bounded_interval(np.array(low), np.array(high), level)
    return float(bottom), float(top)


def cell_ends(spread: Spread, place: int, level: float) -> tuple[float, float]:
    """The interval of one value of a table, as its spread has it."""
    low, high = spread.interval(level)
    return float(low[place]), float(high[place])


def sums_to_one(values: Floats) -> bool:
    """Whether values that are all there can be sum to one, and so do by their method's nature."""
    return abs(float(values.sum()) - 1) < SUM_ROUNDING


def all_but(places: Sequence[int], size: int) -> NDArray[np.int64]:
    """All places of a table but these.

    >>> all_but([0, 2], 4).tolist()
    [1, 3]
    """
    return np.delete(np.arange(size), list(places))


def largest_total(
    values: Floats, std_error: Floats, places: Sequence[int], *, is_complete: bool
) -> Total:
    """A sum of cells of which it is not known how they err together: the largest error possible.

    Args:
        values: Of every cell of the table, (values,).
        std_error: Of them, (values,).
        places: Those that are summed.
        is_complete: Whether there are no other cells.

    >>> values, std_error = np.array([0.6, 0.395, 0.005]), np.array([0.03, 0.02, 0.01])
    >>> total = largest_total(values, std_error, [0, 1], is_complete=True)
    >>> total.std_error, total.is_bound, [round(end, 3) for end in total.interval(0.95)]
    (0.01, False, [0.975, 1.0])
    >>> largest_total(values, std_error, [0, 1, 2], is_complete=True).std_error
    0.0
    """
    value = float(values[list(places)].sum())
    # |Cov| <= product of standard errors: the standard error of a sum is at most their sum
    bound = float(std_error[list(places)].sum())
    if len(places) <= 1:
        return Total(value, bound)
    is_bound = True
    if is_complete and sums_to_one(values):
        rest = all_but(places, std_error.size)
        # a sum errs by as much as that of all others:  Var[sum] = Var[1 - sum]
        bound = min(bound, float(std_error[rest].sum()))
        is_bound = rest.size > 1
    plain = Total(value, bound)
    return Total(value, bound, is_bound, partial(bounded_ends, plain))


def share_interval(
    values: Floats, std_error: Floats, people: int, level: float, *, by_factor: bool = False
) -> tuple[Floats, Floats]:
    """Intervals of shares of some people, for a model's estimates, which lie in [0, 1].

    They are normal where both ends lie between 0 and 1. An end that would pass 0 or 1 stops there:
    the truth cannot be missed on that side, so the other end comes nearer (:func:`far_end`). A
    share is a whole number of people: ends move to the nearest one, yet never inside the estimate.

    Args:
        values: shares, (cells,).
        std_error: of them, (cells,).
        people: how many were heard.
        level: of the intervals.
        by_factor: whether small shares err by a factor, as products of several estimates do.

    >>> low, high = share_interval(np.array([0.3, 0.01]), np.array([0.05, 0.01]), 1000, 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.202, 0.0], [0.398, 0.028])
    """
    reach = quantile(level) * std_error
    low, high = values - reach, values + reach
    reaches_zero, reaches_one = low <= 0, high >= 1
    high = np.where(reaches_zero, far_end(values, std_error, level, by_factor=by_factor), high)
    rest = 1 - values
    low = np.where(reaches_one, 1 - far_end(rest, std_error, level, by_factor=by_factor), low)
    whole_low = np.ceil(low * people - 0.5) / people
    whole_high = np.floor(high * people + 0.5) / people
    low = np.where(reaches_zero, 0, np.minimum(whole_low, values))
    high = np.where(reaches_one, 1, np.maximum(whole_high, values))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def far_end(values: Floats, std_error: Floats, level: float, *, by_factor: bool) -> Floats:
    """The upper ends of intervals that begin at 0, for shares that are small beside their errors.

    An estimate of normal error has the end of an interval to one side if it is 0, and twice its
    share where the normal interval just touches 0. One that errs by a factor has about a normal
    logarithm of truth over estimate, with part of the spread of a log-normal law of this mean and
    error; yet it has twice its share at least, and a third of the end to one side, for what noise
    pushed to 0. So ends do not jump, and intervals of higher level hold those of lower level.

    Args:
        values: shares, (cells,).
        std_error: of them, (cells,).
        level: of the interval.
        by_factor: whether shares err by a factor.

    >>> share, error = np.array([0.001]), np.array([0.01])
    >>> [far_end(share, error, 0.95, by_factor=each).round(4).item() for each in (False, True)]
    [0.0176, 0.0142]
    """
    one_side = max(NormalDist().inv_cdf(level), 0.0)
    if not by_factor:
        # from one side's reach at 0 to both sides' where the other end just touches 0
        both_sides = quantile(level)
        nearer = one_side * std_error + (1 - one_side / both_sides) * values
        return values + np.minimum(nearer, both_sides * std_error)
    # of a log-normal law:  spread^2 = ln(1 + (std_error / mean)^2)
    relative = std_error / np.maximum(values, SMALLEST_SHARE)
    spread = np.sqrt(np.log1p(relative**2))
    multiplied = values * np.exp(FACTOR_SPREAD * one_side * spread)
    added = values + one_side * std_error / 3
    return np.maximum(np.maximum(multiplied, added), 2 * values)


def quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    if isinstance(level, bool) or not isinstance(level, SupportsFloat):
        raise InvalidInput(f"level ({level}) must be a number")
    if not 0.5 < (1 + level) / 2 < 1:  # also refuses what a float cannot tell from 0 or 1
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)


@dataclass(frozen=True)
class Mark:
    """How surely a value was found: how many that nobody holds would look as frequent by noise."""

    expected_false: float
    significant: bool


@dataclass(frozen=True)
class PureLaw:
    """The reports' own law behind a table: how many supported each value, and with what chances."""

    support: NDArray[np.int64]
    p: float
    q: float
    encoding: str  # "direct": one answer per report; "bits": one independent bit per value; "other"
