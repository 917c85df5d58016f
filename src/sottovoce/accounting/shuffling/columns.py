"""Unary encoding whose bit positions are shuffled apart, or summed: RAP and RAP_R.

A person's value moves two columns: one where her bit is 1 with chance p or q, one where it is q or
p. What one column tells is exact (``bit_sums.py``); the losses of two columns add.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from sottovoce.accounting.gaussian import check_delta
from sottovoce.accounting.shuffling.bit_sums import BitSums
from sottovoce.accounting.shuffling.bounds import MAX_SHUFFLED, SOLVED_TO, solved_epsilon
from sottovoce.accounting.shuffling.expectation import LossPart
from sottovoce.accounting.shuffling.losses import exact_share
from sottovoce.accounting.shuffling.lower import Outcomes, best_threshold
from sottovoce.accounting.shuffling.rounds import composed_epsilon, loss_curve
from sottovoce.ground.arguments import whole

_COLUMN_POINTS = 300
_COLUMN_INFINITE = 0.02  # of delta, for losses beyond the last point of a column


def column_epsilon(
    one: Fraction,
    zero: Fraction,
    people: int,
    delta: float,
    fakes: int = 0,
    colluding: float = 0,
    *,
    is_removal: bool = False,
) -> float:
    """An upper bound of the epsilon of bit vectors whose positions are shuffled apart.

    Args:
        one: p, the chance that a 1 is reported as 1, as realised.
        zero: q, the chance that a 0 is reported as 1, below p.
        people: how many reports are shuffled.
        delta: above 0 and below 1.
        fakes: reports of nobody, all of whose bits are 1 with chance q, that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.
        is_removal: whether neighbours differ in one column only, as a value that is there or not.

    >>> from sottovoce.oracles import oracle
    >>> sue = oracle("sue", size=16, epsilon=4)
    >>> round(column_epsilon(sue.exact_p, sue.exact_q, 1_000_000, 1e-9), 4)
    0.0157
    """
    check_delta(delta)
    column = _column(one, zero, people, fakes, colluding)
    local = math.log(one * (1 - zero) / ((1 - one) * zero))
    if column.honest + column.fakes == 0:
        return math.nextafter(local, math.inf)
    sides = (cache(column.delta), cache(column.reversed_delta))  # two curves ask for the same
    longest = max(
        solved_epsilon(side, _COLUMN_INFINITE * delta, column.local, SOLVED_TO) for side in sides
    )
    if is_removal:
        worst = max(solved_epsilon(side, delta, column.local, SOLVED_TO) for side in sides)
        return min(worst, math.nextafter(local, math.inf))
    forward = loss_curve(sides[0], longest, _COLUMN_POINTS, sides[1])
    backward = loss_curve(sides[1], longest, _COLUMN_POINTS, sides[0])
    found = composed_epsilon([(forward, 1), (backward, 1)], delta)
    return min(found, math.nextafter(local, math.inf))


def column_lower_epsilon(
    one: Fraction,
    zero: Fraction,
    people: int,
    delta: float,
    fakes: int = 0,
    colluding: float = 0,
) -> float:
    """An epsilon below which no promise is true.

    The test compares the sums of the two columns of a person's value and of another.

    Args:
        one: as of :func:`column_epsilon`, and so all the others.
        zero: q.
        people: how many reports are shuffled.
        delta: above 0 and below 1.
        fakes: reports of nobody.
        colluding: the share of the other people who tell the analyst what they sent.

    >>> from sottovoce.oracles import oracle
    >>> sue = oracle("sue", size=16, epsilon=4)
    >>> round(column_lower_epsilon(sue.exact_p, sue.exact_q, 1_000_000, 1e-9), 4)
    0.0156
    """
    check_delta(delta)
    column = _column(one, zero, people, fakes, colluding)
    p, q = float(one), float(zero)
    # 1 in the first column alone, 1 in the second alone, as much in both
    first = np.array([p * (1 - q), q * (1 - p), 0.0])
    second = first[[1, 0, 2]]
    third = np.array([q * (1 - q), q * (1 - q), 0.0])
    for law in (first, second, third):
        law[2] = 1 - law[:2].sum()
    levels = np.array([1.0, -1.0, 0.0])
    # P(T > t) is near delta some sqrt(2 ln(1/delta)) deviations from the mean
    deviations = math.sqrt(-2 * math.log(delta))
    found = 0.0
    # everybody else holds a third value, or all the value of the first column
    for rest in (third, first):
        spread = math.sqrt(float(rest[:2].sum()) * max(column.honest, 1) + column.fakes)
        size = 1 << math.ceil(math.log2(40 * spread + 200))
        tilt = min(deviations / spread, 3.0)
        crowd = [LossPart(levels, rest, column.honest), LossPart(levels, third, column.fakes)]
        crowd = [part for part in crowd if part.count > 0]
        outcomes = Outcomes(first, second, rest, third)
        if crowd:
            found = max(found, best_threshold(outcomes, crowd, levels, tilt, size, delta))
    return found


def _column(one: Fraction, zero: Fraction, people: int, fakes: int, colluding: float) -> BitSums:
    people = whole("people", people, 1, MAX_SHUFFLED)
    honest = math.floor((people - 1) * (1 - exact_share(colluding)))
    return BitSums(one, zero, honest, whole("fakes", fakes, 0, MAX_SHUFFLED))
