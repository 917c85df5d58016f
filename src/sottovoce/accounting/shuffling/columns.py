"""Unary encoding whose bit positions are shuffled apart, or summed: RAP and RAP_R.

A person's value moves two columns: one where her bit is 1 with chance p or q, one where it is q or
p. In a column others' bits add up to Z = Bin(a, p) + Bin(b, q), for a of them who hold the value.
Z is log-concave, so that the best test of a column is a threshold. Whatever a is, it lies in one
of a few intervals, and Z holds the noise that all of an interval have in common: data processing
makes that an upper bound. The losses of two columns add.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sottovoce.accounting.gaussian import Floats, check_delta
from sottovoce.accounting.shuffling.bounds import MAX_SHUFFLED, SOLVED_TO, solved_epsilon
from sottovoce.accounting.shuffling.expectation import LossPart
from sottovoce.accounting.shuffling.losses import exact_share
from sottovoce.accounting.shuffling.lower import Outcomes, best_threshold
from sottovoce.accounting.shuffling.rounds import composed_epsilon, loss_curve
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput

COLUMN_MARGIN = 1e-6  # relative, of delta: what double precision may have lost
COMMON_NOISE = Fraction(31, 32)  # of the least variance, that an interval of crowds keeps
_COLUMN_POINTS = 300
_COLUMN_INFINITE = 0.02  # of delta, for losses beyond the last point of a column
_TILT = 4.0  # standard deviations from the mean to where sums are looked at
_REACH = 12.0  # so many to each side of there are computed,
_CLEAR = 7.0  # so many after it are above the rounding of a transform,
_BEFORE = 1.0  # and so many before the mean


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
    0.0158
    """
    check_delta(delta)
    column = _Column(one, zero, people, fakes, colluding)
    local = math.log(one * (1 - zero) / ((1 - one) * zero))
    if column.honest + column.fakes == 0:
        return math.nextafter(local, math.inf)
    longest = max(
        solved_epsilon(side, _COLUMN_INFINITE * delta, column.local, SOLVED_TO)
        for side in (column.delta, column.reversed_delta)
    )
    if is_removal:
        worst = max(
            solved_epsilon(side, delta, column.local, SOLVED_TO)
            for side in (column.delta, column.reversed_delta)
        )
        return min(worst, math.nextafter(local, math.inf))
    sides = (column.delta, column.reversed_delta)
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
    column = _Column(one, zero, people, fakes, colluding)
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


@dataclass(frozen=True)
class _Side:
    """A crowd's column towards one end: chances of the sum, of what lies beyond, and ratios."""

    chances: Floats
    beyond: Floats
    ratios: Floats  # of a sum's chance to the next one's towards the end, never falling
    rest: float  # at least the chance of the last sum and of all beyond it


class _Column:
    """One person's bit among others': delta in both directions, over all crowds."""

    def __init__(
        self, one: Fraction, zero: Fraction, people: int, fakes: int, colluding: float
    ) -> None:
        if not 0 < zero < one < 1:
            raise InvalidInput(
                f"zero ({float(zero):.4g}) must be above 0 and below one ({float(one):.4g}), "
                "which must be below 1"
            )
        people = whole("people", people, 1, MAX_SHUFFLED)
        self.fakes = whole("fakes", fakes, 0, MAX_SHUFFLED)
        self.honest = math.floor((people - 1) * (1 - exact_share(colluding)))
        self.local = math.nextafter(math.log(max(one / zero, (1 - zero) / (1 - one))), math.inf)
        self._one, self._zero = float(one), float(zero)
        self._up, self._down = [], []
        for ones, zeros in _intervals(self.honest, self.fakes, one, zero):
            self._up.append(_side(ones, zeros, self._one, self._zero, 1))
            self._down.append(_side(ones, zeros, self._one, self._zero, -1))

    def delta(self, epsilon: float) -> float:
        """At most P(A) - e Q(A), the bit being 1 with chance p under P and q under Q."""
        return _worst(self._up, epsilon, self._one, self._zero)

    def reversed_delta(self, epsilon: float) -> float:
        """At most Q(A) - e P(A)."""
        return _worst(self._down, epsilon, 1 - self._zero, 1 - self._one)


def _intervals(honest: int, fakes: int, one: Fraction, zero: Fraction) -> Iterator[tuple[int, int]]:
    """(ones, zeros) that every crowd of an interval has: of ``honest`` people any number may hold
    the value.
    """
    spread_one, spread_zero = one * (1 - one), zero * (1 - zero)
    enough = COMMON_NOISE * (honest * min(spread_one, spread_zero) + fakes * spread_zero)
    first = 0
    while first <= honest:
        # the last crowd with first + enough noise:
        #   first spread_one + (honest - last + fakes) spread_zero >= enough
        room = (first * spread_one - enough) / spread_zero + honest + fakes
        last = min(honest, max(first, math.floor(room)))
        yield first, honest - last + fakes
        first = last + 1


def _side(ones: int, zeros: int, one: float, zero: float, towards: int) -> _Side:
    """The law of Bin(ones, one) + Bin(zeros, zero), tilted towards one end."""
    spread = math.sqrt(ones * one * (1 - one) + zeros * zero * (1 - zero))
    tilt = towards * min(_TILT / max(spread, 1e-9), 3.0)
    first, first_start, first_scale = _tilted_binomial(ones, one, tilt)
    second, second_start, second_scale = _tilted_binomial(zeros, zero, tilt)
    size = 1 << math.ceil(math.log2(len(first) + len(second)))
    law = np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second, size), size)
    law = np.maximum(law[: len(first) + len(second) - 1], 0)
    places = first_start + second_start + np.arange(len(law))
    chances = law * np.exp(first_scale + second_scale - tilt * places)
    # towards the end, from about the mean to where a transform's rounding is far below
    mean = ones * one + zeros * zero
    ahead = towards * (places - mean)
    clear = (ahead >= -_BEFORE * spread - 2) & (ahead <= (_TILT + _CLEAR) * spread + 40)
    if towards < 0:
        chances, places, clear = chances[::-1], places[::-1], clear[::-1]
    chances = chances[clear]
    last = int(places[clear][-1])
    beyond = np.concatenate([np.cumsum(chances[::-1])[::-1][1:], [0.0]])
    before = np.concatenate([[0.0], chances[:-1]])
    ratios = np.divide(before, chances, out=np.full(len(chances), np.inf), where=chances > 0)
    # P(Z >= last) <= E[e^(tilt (Z - last))]
    rest = math.exp(first_scale + second_scale - tilt * last)
    return _Side(chances, beyond, np.maximum.accumulate(ratios), rest)


def _tilted_binomial(count: int, chance: float, tilt: float) -> tuple[Floats, int, float]:
    """Bin(count, chance) tilted, over a window: its law, where it starts, ln E[e^(tilt Bin)]."""
    log_scale = count * math.log1p(chance * math.expm1(tilt))
    tilted = chance * math.exp(tilt) / (1 + chance * math.expm1(tilt))
    mean, spread = count * tilted, math.sqrt(count * tilted * (1 - tilted))
    start = max(0, math.floor(mean - _REACH * spread) - 40)
    stop = min(count, math.ceil(mean + _REACH * spread) + 40)
    # P(k + 1)/P(k) = (count - k)/(k + 1) tilted/(1 - tilted), from the window's start on
    k = np.arange(start, stop)
    steps = np.log((count - k) / (k + 1)) + math.log(tilted / (1 - tilted))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    law = np.exp(logs - logs.max())
    return np.asarray(law / law.sum()), start, log_scale


def _worst(sides: list[_Side], epsilon: float, likely: float, unlikely: float) -> float:
    """max over crowds of (1 - e) P(Z beyond t) + P(Z = t) (likely - e unlikely), t the best."""
    e = math.exp(epsilon)
    gain = likely - e * unlikely
    if gain <= 0:
        return 0.0
    # a sum s is in the event if  likely z(s - 1) + (1 - likely) z(s)
    #   > e (unlikely z(s - 1) + (1 - unlikely) z(s)),  that is by the ratio z(s - 1)/z(s)
    limit = (e * (1 - unlikely) - (1 - likely)) / gain
    worst = 0.0
    for side in sides:
        # the event begins at s = t + 1
        begin = int(np.searchsorted(side.ratios, limit, side="right"))
        if begin == len(side.chances):
            worst = max(worst, side.rest)
        elif begin > 0:
            at, beyond = side.chances[begin - 1], side.beyond[begin - 1]
            worst = max(worst, gain * float(at) - math.expm1(epsilon) * float(beyond))
    return worst * (1 + COLUMN_MARGIN)
