"""From sums to what was asked for: counts, sums, averages and spreads, each with an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.sql.linear import Linear
from sottovoce.results.cells import quantile

KNOWN_EXACTLY, UNSTABLE, UNDEFINED = "exact", "unstable", "undefined"
STABLE_ERRORS = 3.0  # a count below so many standard errors makes a ratio unstable
DEFINED_ERRORS = 1.0  # and below so many nothing is divided by it
NEGLIGIBLE_COUNT = 1e-9  # of a count: less is an error of rounding
NEGLIGIBLE_VARIANCE = 1e-12  # of the variance of a sum: less is an error of rounding
SMALL_STEP = 1e-4  # of a sum's error, over which a slope is taken


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
    return EstimatedNumber(value, error, *interval(linear, level, _first, value))


def counted(linear: Linear, level: float, people: int) -> EstimatedNumber:
    """The first of some sums, which is a count of people and so lies between 0 and all."""
    found = total(linear, level)
    low = max(found.low, min(0.0, found.value))
    high = min(found.high, max(float(people), found.value))
    return replace(found, low=low, high=high)


def _first(sums: Floats) -> Floats:
    return sums[..., 0]


def interval(
    linear: Linear, level: float, function: Callable[[Floats], Floats], value: float
) -> tuple[float, float]:
    """Where a smooth function of sums may be; its value is inside.

    It is normal around the unbiased sums if there are any, by the delta method; without them it
    follows from draws; and without draws it is normal around the value.

    Args:
        linear: the sums.
        level: of the interval.
        function: from sums, (..., quantities), to numbers, (...).
        value: of the estimated sums.
    """
    if linear.unbiased is None and linear.draws is not None:
        drawn = function(linear.draws)
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    else:
        sure = linear.sure
        middle = float(function(sure.values))
        slopes = gradient(function, sure)
        variance = float(slopes @ sure.covariance @ slopes)
        reach = quantile(level) * sqrt(max(0.0, variance))
        low, high = middle - reach, middle + reach
    return min(float(low), value), max(float(high), value)


def gradient(function: Callable[[Floats], Floats], linear: Linear) -> Floats:
    """The slopes of a function of sums, by differences over a small part of their errors."""
    steps = SMALL_STEP * np.sqrt(np.maximum(np.diag(linear.covariance), 0.0))
    slopes = np.zeros(len(linear.values))
    for place in np.flatnonzero(steps):
        moved = np.zeros(len(linear.values))
        moved[place] = steps[place]
        change = function(linear.values + moved) - function(linear.values - moved)
        slopes[place] = change / (2 * steps[place])
    return slopes


def doubt(count: float, error: float) -> str:
    """Whether one may divide by a count."""
    if count <= NEGLIGIBLE_COUNT or count < DEFINED_ERRORS * error:
        return UNDEFINED
    return UNSTABLE if count < STABLE_ERRORS * error else ""


def ratio(linear: Linear, level: float) -> EstimatedNumber:
    """The first of two sums over the second, which is a count.

    The interval is Fieller's set, which may have no end; a stable ratio that has draws, or nothing
    else, has theirs, or the one of the delta method. A sum that is a multiple of the count, with
    all its errors, has a ratio without error, however unsure the count is.
    """
    above, count = (float(each) for each in linear.values)
    covariance = linear.covariance
    mark = doubt(count, sqrt(max(0.0, float(covariance[1, 1]))))
    if mark == UNDEFINED:
        return REFUSED
    value = above / count
    # Var[S/C] = (Var S - 2 R Cov[S, C] + R^2 Var C) / C^2
    slopes = np.array([1.0, -value]) / count
    error = sqrt(max(0.0, float(slopes @ covariance @ slopes)))
    if linear.is_exact:
        return EstimatedNumber(value, 0.0, value, value, KNOWN_EXACTLY)
    if _is_multiple(linear, value) and _is_multiple(linear.sure, value):
        return EstimatedNumber(value, 0.0, value, value)
    if mark == UNSTABLE or linear.unbiased is not None:
        sure = linear.sure
        low, high = fieller(float(sure.values[0]), float(sure.values[1]), sure.covariance, level)
        return EstimatedNumber(value, error, min(low, value), max(high, value), mark)
    return EstimatedNumber(value, error, *interval(linear, level, _quotient, value))


def _is_multiple(linear: Linear, times: float) -> bool:
    """Whether the first of two sums is so many times the second, errors and all."""
    above, count = (float(each) for each in linear.values)
    slopes = np.array([1.0, -times])
    off = float(slopes @ linear.covariance @ slopes)  # Var[S - R C]
    variance = float(linear.covariance[0, 0])
    is_near = abs(above - times * count) <= NEGLIGIBLE_COUNT * abs(above)
    return is_near and off <= NEGLIGIBLE_VARIANCE * variance


def _quotient(sums: Floats) -> Floats:
    return sums[..., 0] / np.maximum(sums[..., 1], NEGLIGIBLE_COUNT)


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
    if a <= 0:
        return -inf, inf
    # of a count that is not 0 some ratio is always kept: less than 0 is an error of rounding
    root = sqrt(max(0.0, b**2 - a * c))
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
    slopes = np.array([1.0, -2 * added / count, added**2 / count**2 - value]) / below
    error = sqrt(max(0.0, float(slopes @ linear.covariance @ slopes)))

    def variance(sums: Floats) -> Floats:
        counts = np.maximum(sums[..., 2], 1.0 + NEGLIGIBLE_COUNT)
        found: Floats = (sums[..., 0] - sums[..., 1] ** 2 / counts) / (counts - (not population))
        return found

    low, high = 0.0, inf
    sure = linear.sure
    if doubt(float(sure.values[2]), sqrt(max(0.0, float(sure.covariance[2, 2])))) != UNDEFINED:
        low, high = interval(linear, level, variance, value)
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
