"""Quantiles of a whispered column: the value that a share of the people do not exceed."""

from __future__ import annotations

from math import sqrt

import numpy as np

from sottovoce.questions.queries.evidence import Floats, Integers
from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.sql.linear import Linear
from sottovoce.questions.queries.sql.measures import (
    KNOWN_EXACTLY,
    REFUSED,
    UNDEFINED,
    EstimatedNumber,
    doubt,
)
from sottovoce.questions.queries.sql.source import WhisperedColumn
from sottovoce.results.cells import quantile as normal_quantile


def up_to_each_code(term: Term, number: int, size: int, order: Integers) -> list[Term]:
    """A selection cut to the first code of a dimension, to the first two, and so on to all.

    Args:
        term: the selection.
        number: the dimension.
        size: how many codes it has.
        order: the codes from the smallest value to the largest.
    """
    whole = term.get(number, np.ones(size))
    found = []
    kept = np.zeros(size)
    for code in order[:-1]:
        kept = kept.copy()
        kept[code] = whole[code]
        found.append({**term, number: kept})
    return [*found, dict(term)]


def quantile(
    linear: Linear, dimension: WhisperedColumn, share: float, level: float
) -> EstimatedNumber:
    """The smallest value that at least a share of the people do not exceed.

    Args:
        linear: people up to each code, in the order of values; the last is all of them.
        dimension: whose values they are.
        share: between 0 and 1.
        level: of the interval.
    """
    counts = linear.values  # (codes,)
    people = float(counts[-1])
    mark = doubt(people, sqrt(max(0.0, float(linear.covariance[-1, -1]))))
    if mark == UNDEFINED:
        return REFUSED
    firsts, lasts = _ends(dimension)
    above = counts - share * people  # (codes,): at least 0 from the quantile on
    tolerance = 1e-9 * people
    # noise may cross 0 several times: half way between the first and the last time
    first = int(np.argmax(above >= -tolerance))
    below = np.flatnonzero(above < -tolerance)
    last = min(int(below[-1]) + 1, len(counts) - 1) if len(below) else 0
    place = (first + last) // 2
    value = _within(place, counts, share * people, firsts, lasts)
    if linear.is_exact or not linear.covariance.any():
        return EstimatedNumber(value, 0.0, value, value, KNOWN_EXACTLY if linear.is_exact else mark)
    if linear.draws is not None and linear.unbiased is None:
        low, high, error = _by_draws(linear.draws, share, level, firsts, lasts)
    else:
        *_, error = _by_errors(linear.covariance, above, share, level, firsts, lasts)
        sure = linear.sure
        above = sure.values - share * sure.values[-1]
        low, high, _ = _by_errors(sure.covariance, above, share, level, firsts, lasts)
    return EstimatedNumber(value, error, min(low, value), max(high, value), mark)


def value_order(dimension: WhisperedColumn) -> Integers:
    """The codes of a dimension from the smallest value to the largest."""
    firsts = np.full(dimension.size, np.iinfo(np.int64).max)
    np.minimum.at(firsts, dimension.codes, dimension.values)
    return np.argsort(firsts, kind="stable")


def _ends(dimension: WhisperedColumn) -> tuple[Floats, Floats]:
    """(the smallest, the largest) value of each code, in the order of values."""
    order = value_order(dimension)
    firsts = np.full(dimension.size, np.inf)
    lasts = np.full(dimension.size, -np.inf)
    np.minimum.at(firsts, dimension.codes, dimension.values.astype(float))
    np.maximum.at(lasts, dimension.codes, dimension.values.astype(float))
    return firsts[order], lasts[order]


def _within(place: int, counts: Floats, wanted: float, firsts: Floats, lasts: Floats) -> float:
    """The value within a bin, whose people are taken as spread evenly."""
    values = int(lasts[place] - firsts[place]) + 1
    if values == 1:
        return float(firsts[place])
    before = float(counts[place - 1]) if place else 0.0
    inside = float(counts[place]) - before
    part = (wanted - before) / inside if inside > 0 else 0.5
    steps = int(np.ceil(np.clip(part, 0.0, 1.0) * values))
    return float(firsts[place]) + max(0, steps - 1)


def _by_draws(
    draws: Floats, share: float, level: float, firsts: Floats, lasts: Floats
) -> tuple[float, float, float]:
    """(low, high, standard error) of the quantiles of each draw."""
    reached = draws >= share * draws[:, -1:]  # (draws, codes)
    places = np.argmax(reached, axis=1)
    ends = np.quantile(places, [(1 - level) / 2, (1 + level) / 2])
    low, high = int(np.floor(ends[0])), int(np.ceil(ends[1]))
    middles = (firsts[places] + lasts[places]) / 2
    width = float(np.mean(lasts[places] - firsts[places] + 1))
    # a value that is known to a whole number only errs by 1/sqrt(12) of it
    error = sqrt(float(np.var(middles)) + (width**2 - 1) / 12)
    return float(firsts[low]), float(lasts[high]), error


def _by_errors(
    covariance: Floats, above: Floats, share: float, level: float, firsts: Floats, lasts: Floats
) -> tuple[float, float, float]:
    """(low, high, standard error): values whose share may be the wanted one (Woodruff 1952)."""
    # Var[F(c) - q T] = Var F(c) - 2 q Cov[F(c), T] + q^2 Var T
    variances = np.diag(covariance) - 2 * share * covariance[:, -1] + share**2 * covariance[-1, -1]
    z = normal_quantile(level)
    reach = z * np.sqrt(np.maximum(variances, 0.0))
    low = int(np.argmax(above + reach >= 0))
    surely_below = np.flatnonzero(above - reach < 0)
    high = min(int(surely_below[-1]) + 1, len(above) - 1) if len(surely_below) else 0
    low_value, high_value = float(firsts[low]), float(lasts[high])
    return low_value, high_value, (high_value - low_value) / (2 * z)
