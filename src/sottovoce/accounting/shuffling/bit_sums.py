"""Sums of bits, exactly: one person's bit among those of others, over all crowds.

Others' bits add up to Z = Bin(a, p) + Bin(b, q), for a of them who hold the value. Z is
log-concave, so that the best test is a threshold. Whatever a is, it lies in one of a few intervals,
and Z holds the noise that all of an interval have in common: data processing makes that an upper
bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sottovoce.accounting.gaussian import Floats
from sottovoce.ground.errors import InvalidInput

COLUMN_MARGIN = 1e-6  # relative, of delta: what double precision may have lost
COMMON_NOISE = Fraction(31, 32)  # of the least variance, that an interval of crowds keeps
_TILT = 4.0  # standard deviations from the mean to where sums are looked at
_REACH = 12.0  # so many to each side of there are computed,
_CLEAR = 7.0  # so many after it are above the rounding of a transform,
_BEFORE = 1.0  # and so many before the mean


@dataclass(frozen=True)
class _Side:
    """A crowd's column towards one end: chances of the sum, of what lies beyond, and ratios."""

    chances: Floats
    beyond: Floats
    ratios: Floats  # of a sum's chance to the next one's towards the end, never falling
    rest: float  # at least the chance of the last sum and of all beyond it


class BitSums:
    """One person's bit among others': delta in both directions, over all crowds.

    Args:
        one: p, the chance that a 1 is reported as 1.
        zero: q, the chance that a 0 is reported as 1.
        honest: how many others there are.
        fakes: bits that are 1 with chance q.
    """

    def __init__(self, one: Fraction, zero: Fraction, honest: int, fakes: int = 0) -> None:
        if not 0 < zero < one < 1:
            raise InvalidInput(
                f"zero ({float(zero):.4g}) must be above 0 and below one ({float(one):.4g}), "
                "which must be below 1"
            )
        self.honest, self.fakes = honest, fakes
        self.local = math.nextafter(math.log(max(one / zero, (1 - zero) / (1 - one))), math.inf)
        self._one, self._zero = float(one), float(zero)
        self._crowds = list(_intervals(honest, fakes, one, zero))

    @cached_property
    def _up(self) -> list[_Side]:
        return [_side(*crowd, self._one, self._zero, 1) for crowd in self._crowds]

    @cached_property
    def _down(self) -> list[_Side]:
        return [_side(*crowd, self._one, self._zero, -1) for crowd in self._crowds]

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
