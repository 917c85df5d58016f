"""Sums of bits, exactly: one person's bit among those of others, over all crowds.

Others' bits add up to Z = Bin(a, p) + Bin(b, q) + Bin(fakes, c), for a of them who hold the value.
Whatever a is, it lies in one of many short intervals, and Z holds the noise that all of an interval
have in common. Data processing makes that an upper bound, and an interval of one crowd is exact.

Z is log-concave, so that the best test is S > t for the sum S of all bits. With R the ratio of
z(t)/z(t + 1) at which it does not matter whether t + 1 belongs to the event, and h the law of Z
tilted by ln R, so that z(t)/z(t + 1) = R h(t)/h(t + 1), the best t is the mode of h:

    delta = (p - e q) E[R^Z] R^-t sum over k > 0 of (R - 1) R^-k (h(t) - h(t + k))

The mode of a sum of bits is its mean rounded up or down (darroch1964mode). The sum is taken from
the characteristic function of h, of which a few hundred frequencies are not 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.accounting.gaussian import Floats
from sottovoce.ground.errors import InvalidInput

COLUMN_MARGIN = 1e-6  # relative, of delta: what double precision may have lost
FEW_CROWDS, MANY_CROWDS = (
    128,
    2048,
)  # intervals; each keeps all but one part in so many of the noise

_REACH = 13.0  # standard deviations of h that are looked at,
_LEAST_REACH = 40  # and at least so many places
_VANISHED = 45.0  # -ln of a characteristic function that is as good as 0
_MOST_EXPONENT = 700.0
_AT_ONCE = 1 << 20  # intervals times frequencies

Counts = NDArray[np.int64]
Spectrum = NDArray[Any]  # real or complex


class BitSums:
    """One person's bit among others': delta in both directions, over all crowds.

    Args:
        one: p, the chance that a 1 is reported as 1.
        zero: q, the chance that a 0 is reported as 1.
        honest: how many others there are.
        fakes: bits of nobody.
        fake: c, the chance that one of these is 1; by default that of a 0.
    """

    def __init__(
        self,
        one: Fraction,
        zero: Fraction,
        honest: int,
        fakes: int = 0,
        fake: Fraction | None = None,
    ) -> None:
        if not 0 < zero < one < 1:
            raise InvalidInput(
                f"zero ({float(zero):.4g}) must be above 0 and below one ({float(one):.4g}), "
                "which must be below 1"
            )
        self.honest, self.fakes = honest, fakes
        self.local = math.nextafter(math.log(max(one / zero, (1 - zero) / (1 - one))), math.inf)
        chances = (one, zero, zero if fake is None else fake)
        self._ones = np.array([float(chance) for chance in chances])
        self._zeros = np.array([float(1 - chance) for chance in chances])

    def delta(self, epsilon: float, crowds: int = FEW_CROWDS) -> float:
        """At most P(A) - e Q(A), the bit being 1 with chance p under P and q under Q.

        Args:
            epsilon: at least 0.
            crowds: how finely all crowds are divided; the more of them, the less above the truth.
        """
        return self._worst(epsilon, self._ones, self._zeros, crowds)

    def reversed_delta(self, epsilon: float, crowds: int = FEW_CROWDS) -> float:
        """At most Q(A) - e P(A)."""
        # the same of 0s, of which Q has more
        exchanged = [1, 0, 2]
        return self._worst(epsilon, self._zeros[exchanged], self._ones[exchanged], crowds, held=1)

    def _worst(
        self, epsilon: float, chances: Floats, others: Floats, crowds: int, held: int = 0
    ) -> float:
        """Over all intervals, for bits of these chances to be in the event's direction, and not.

        Args:
            held: which of the first two chances those have who hold the value.
        """
        likely, unlikely = chances[0], chances[1]
        e_less_one = math.expm1(epsilon)
        gain = float(likely - unlikely) - e_less_one * float(unlikely)
        if gain <= 0:
            return 0.0
        ratio_less_one = e_less_one / gain
        parts = _intervals(self.honest, self.fakes, crowds)[:, [held, 1 - held, 2]]
        tilted = chances * (1 + ratio_less_one) / (1 + chances * ratio_less_one)
        deviations = np.sqrt(_of_all(parts, tilted * others / (1 + chances * ratio_less_one)).real)
        worst = 0.0
        for rows in _alike(deviations):
            found = _sums(parts[rows], chances, tilted, deviations[rows], ratio_less_one)
            worst = max(worst, gain * float(found.max()))
        return min(1.0, worst * (1 + COLUMN_MARGIN))


def _intervals(honest: int, fakes: int, crowds: int) -> Counts:
    """(ones, zeros, fakes) that every crowd of an interval has: of ``honest`` people any number
    may hold the value. A row for each of ``crowds`` intervals, or of fewer crowds one each.
    """
    width = -(-(honest + 1) // crowds)
    first = np.arange(0, honest + 1, width)
    last = np.minimum(first + width - 1, honest)
    return np.column_stack([first, honest - last, np.full(len(first), fakes)])


def _alike(deviations: Floats) -> Iterator[slice]:
    """Neighbours whose deviations differ by a factor of two at most."""
    octaves = np.floor(np.log2(np.maximum(deviations, 1.0)))
    starts = np.flatnonzero(np.diff(octaves, prepend=-1.0))
    for start, stop in zip(starts, [*starts[1:], len(octaves)], strict=True):
        yield slice(int(start), int(stop))


def _of_all(counts: Counts, values: Spectrum) -> Spectrum:
    """What all bits add up to, a row for each interval, from a value for each kind of bit."""
    # without BLAS, whose threads take longer to wake than this takes
    return np.asarray(np.einsum("rk,k...->r...", counts, values))


def _sums(
    counts: Counts, chances: Floats, tilted: Floats, deviations: Floats, ratio_less_one: float
) -> Floats:
    """E[R^Z] R^-t sum over k > 0 of (R - 1) R^-k (h(t) - h(t + k)) of each row, t the best."""
    log_ratio = math.log1p(ratio_less_one)
    reach = math.ceil(_REACH * float(deviations.max())) + _LEAST_REACH
    points = 2 * reach
    # |h^(angle)| <= e^(-deviation^2 (1 - cos angle))
    edge = 1 - _VANISHED / max(float(deviations.min()) ** 2, 1e-9)
    last = math.acos(edge) if edge > -1 else math.pi
    frequencies = np.arange(1, min(reach, math.ceil(last / math.pi * reach)) + 1)
    angles = frequencies * (math.pi / reach)
    # ln E[e^(i angle (bit - chance))] of a tilted bit of each kind      (kinds, frequencies)
    waves = np.log1p(tilted[:, None] * np.expm1(1j * angles)) - 1j * tilted[:, None] * angles
    # sum over 0 < k <= reach of (R - 1) R^-k e^(-i angle k)
    inverse = np.exp(-1j * angles - log_ratio)
    if ratio_less_one > 0:
        beyond = ratio_less_one * inverse * (1 - inverse**reach) / (1 - inverse)
        whole = -math.expm1(-log_ratio * reach)
    else:
        beyond, whole = np.zeros(len(angles)), 0.0
    # the last frequency of an even number of points counts once
    weights = np.where(frequencies == reach, 1.0, 2.0)
    differences = weights * (1 - beyond)
    means = _of_all(counts, tilted).real
    moments = np.log1p(chances * ratio_less_one) - tilted * log_ratio
    log_moments = _of_all(counts, moments).real
    total = counts.sum(axis=1)
    best = np.zeros(len(counts))
    step = max(1, _AT_ONCE // len(angles))
    for start in range(0, len(counts), step):
        rows = slice(start, start + step)
        laws = np.exp(_of_all(counts[rows], waves))  # (rows, frequencies)
        for place in (np.floor(means[rows]), np.ceil(means[rows])):
            ahead = np.minimum(place, total[rows]) - means[rows]
            turned = np.exp(-1j * ahead[:, None] * angles)
            summed = np.einsum("rf,rf,f->r", laws, turned, differences)
            law = (1 - whole + summed.real) / points
            scale = np.exp(np.minimum(log_moments[rows] - log_ratio * ahead, _MOST_EXPONENT))
            best[rows] = np.maximum(best[rows], scale * law)
    return best
