"""From sums to what was asked for: counts, sums, averages and spreads, each with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.sql.linear import Linear
from sottovoce.results.cells import quantile

KNOWN_EXACTLY, UNSTABLE, UNDEFINED = "exact", "unstable", "undefined"
STABLE_ERRORS = 3.0  # a count below so many standard errors makes a ratio unstable
DEFINED_ERRORS = 1.0  # and below so many nothing is divided by it
NEGLIGIBLE_COUNT = 1e-9  # of a count: less is an error of rounding


@dataclass(frozen=True)
class EstimatedNumber:
    """An estimated number. ``mark``: exact, unstable, undefined, or nothing."""

    value: float
    std_error: float
    low: float
    high: float
    mark: str = ""


REFUSED = EstimatedNumber(nan, nan, -inf, inf, UNDEFINED)


def total(linear: Linear, level: float) -> EstimatedNumber:
    """The first of some sums."""
    value = float(linear.values[0])
    error = sqrt(max(0.0, float(linear.covariance[0, 0])))
    if linear.is_exact:
        return EstimatedNumber(value, 0.0, value, value, KNOWN_EXACTLY)
    draws = None if linear.draws is None else linear.draws[:, 0]
    low, high = interval(value, error, level, draws)
    return EstimatedNumber(value, error, low, high)


def interval(
    value: float, error: float, level: float, draws: Floats | None = None
) -> tuple[float, float]:
    """Quantiles of draws if there are any, else a normal interval."""
    if draws is None:
        reach = quantile(level) * error
        return value - reach, value + reach
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return min(float(low), value), max(float(high), value)


def doubt(count: float, error: float) -> str:
    """Whether one may divide by a count."""
    if count <= NEGLIGIBLE_COUNT or count < DEFINED_ERRORS * error:
        return UNDEFINED
    return UNSTABLE if count < STABLE_ERRORS * error else ""


def ratio(linear: Linear, level: float) -> EstimatedNumber:
    """The first of two sums over the second, which is a count.

    A stable one has the interval of the delta method, or of draws; an unstable one Fieller's set,
    which may have no end.
    """
    above, count = (float(each) for each in linear.values)
    covariance = linear.covariance
    mark = doubt(count, sqrt(max(0.0, float(covariance[1, 1]))))
    if mark == UNDEFINED:
        return REFUSED
    value = above / count
    # Var[S/C] = (Var S - 2 R Cov[S, C] + R^2 Var C) / C^2
    gradient = np.array([1.0, -value]) / count
    error = sqrt(max(0.0, float(gradient @ covariance @ gradient)))
    if linear.is_exact:
        return EstimatedNumber(value, 0.0, value, value, KNOWN_EXACTLY)
    if mark == UNSTABLE:
        low, high = fieller(above, count, covariance, level)
        return EstimatedNumber(value, error, low, high, mark)
    draws = None
    if linear.draws is not None and (linear.draws[:, 1] > 0).all():
        draws = linear.draws[:, 0] / linear.draws[:, 1]
    low, high = interval(value, error, level, draws)
    return EstimatedNumber(value, error, low, high)


def fieller(above: float, count: float, covariance: Floats, level: float) -> tuple[float, float]:
    """The ratios R for which S - R C may be 0: an interval, or everything.

    (S - R C)^2 <= z^2 (Var S - 2 R Cov[S, C] + R^2 Var C)

    >>> fieller(10.0, 5.0, np.diag([1.0, 100.0]), 0.95)
    (-inf, inf)
    """
    square = quantile(level) ** 2
    a = count**2 - square * float(covariance[1, 1])
    b = above * count - square * float(covariance[0, 1])
    c = above**2 - square * float(covariance[0, 0])
    discriminant = b**2 - a * c
    if a <= 0 or discriminant < 0:
        return -inf, inf
    root = sqrt(discriminant)
    return (b - root) / a, (b + root) / a


def spread(linear: Linear, level: float, *, population: bool, root: bool) -> EstimatedNumber:
    """A variance, or its root, of (sum of squares, sum, count).

    V = (Q - S^2 / C) / (C - 1), or over C for a population.
    """
    squares, added, count = (float(each) for each in linear.values)
    error_of_count = sqrt(max(0.0, float(linear.covariance[2, 2])))
    mark = doubt(count, error_of_count)
    below = count if population else count - 1
    if mark == UNDEFINED or below <= NEGLIGIBLE_COUNT:
        return REFUSED
    value = (squares - added**2 / count) / below
    # the derivatives by Q, S and C; C - 1 and C differ by less than any error here
    gradient = np.array([1.0, -2 * added / count, added**2 / count**2 - value]) / below
    error = sqrt(max(0.0, float(gradient @ linear.covariance @ gradient)))
    draws = None
    if linear.draws is not None and (linear.draws[:, 2] > 1).all():
        drawn = linear.draws
        draws = (drawn[:, 0] - drawn[:, 1] ** 2 / drawn[:, 2]) / (drawn[:, 2] - (not population))
    low, high = interval(value, error, level, draws)
    low = max(low, 0.0)
    if root:
        return _root(EstimatedNumber(value, error, low, high, mark), linear.is_exact)
    if linear.is_exact:
        return EstimatedNumber(value, 0.0, value, value, KNOWN_EXACTLY)
    return EstimatedNumber(value, error, low, high, mark)


def _root(variance: EstimatedNumber, is_exact: bool) -> EstimatedNumber:
    """The standard deviation of a variance; noise below 0 has none, only a largest one."""
    high = sqrt(max(0.0, variance.high))
    if variance.value < -NEGLIGIBLE_COUNT:
        return EstimatedNumber(nan, nan, 0.0, high, UNDEFINED)
    value = sqrt(max(0.0, variance.value))
    if is_exact:
        return EstimatedNumber(value, 0.0, value, value, KNOWN_EXACTLY)
    # d sqrt(V) = dV / (2 sqrt(V))
    error = variance.std_error / (2 * value) if value > 0 else 0.0
    return EstimatedNumber(value, error, sqrt(variance.low), high, variance.mark)
