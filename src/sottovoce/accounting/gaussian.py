"""What Gaussian noise promises: the exact trade of epsilon for delta, and steps composed.

Any number of Gaussian steps, each chosen after the ones before, reveals as much as one Gaussian
step whose means lie ``mu`` standard deviations apart, mu^2 = sum of (sensitivity / sigma)^2
(dong2022gaussian, corollary 2). So one curve says all:

    delta = G(eps, mu) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)     balle2018improving, (6)

The curve is computed to a relative error of at most ``CURVE_ERROR``; what is solved from it is
rounded to the private side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported

Floats = NDArray[np.float64]

CURVE_ERROR = 1e-10  # relative, of delta: a hundred times what tests see against fifty digits
LARGEST_MU = 1e6
SMALLEST_MU = 1e-12
_VARIANCE_DIGITS = 41
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)  # on [-1, 1]
_NARROW = 1e-2  # spans, relative to max(1, |x|), that are integrated and not subtracted
_ASYMPTOTIC = 100.0  # beyond it four terms of the series of erfcx are exact to 1e-14
_SMALLEST_DOUBLE = 5e-324
_LOWEST = -20.0  # beyond it e^(x^2) comes near the largest double


def log_delta_curve(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """ln G(epsilon, mu), for arrays that broadcast; -inf where nothing is revealed.

    Args:
        epsilon: any real numbers; below 0 the curve is that of the complement.
        mu: distances of at least 0.

    Returns:
        The natural logarithm of delta, of the shape that both arguments broadcast to.
    """
    eps, distance = np.broadcast_arrays(np.asarray(epsilon, np.float64), np.asarray(mu, np.float64))
    result = np.full(eps.shape, -np.inf)
    # at mu = 0 both laws are equal: delta = max(0, 1 - e^eps)
    equal = distance == 0
    below = equal & (eps < 0)
    result[below] = np.log(-np.expm1(eps[below]))
    apart = ~equal
    if apart.any():
        result[apart] = _log_curve(eps[apart], distance[apart])
    return result


def _log_curve(eps: Floats, mu: Floats) -> Floats:
    """ln G for mu > 0, in one dimension.

    With x = (eps/mu - mu/2)/sqrt 2 and h = mu/sqrt 2, both terms of G share a factor, since
    e^eps e^-(x+h)^2 = e^-x^2:

        G = 1/2 e^-x^2 (erfcx(x) - erfcx(x + h))

    so nothing overflows, and what could cancel is the difference alone. Where x is far below 0, G
    is Phi minus a smaller term, which does not cancel.
    """
    special = imported("scipy.special")
    x = (eps / mu - mu / 2) / math.sqrt(2)
    h = mu / math.sqrt(2)
    result = np.empty_like(x)

    narrow = h <= _NARROW * np.maximum(1.0, np.abs(x))
    low = ~narrow & (x < 0)
    high = ~narrow & (x >= 0)
    deep = narrow & (x < _LOWEST)  # eps far below 0: 1 - e^eps up to what no double can hold
    narrow &= ~deep

    if narrow.any():
        difference = _integrated_slope(x[narrow], h[narrow])
        result[narrow] = np.log(difference / 2) - x[narrow] ** 2
    if high.any():
        difference = special.erfcx(x[high]) - special.erfcx(x[high] + h[high])
        result[high] = np.log(difference / 2) - x[high] ** 2
    plain = low | deep
    if plain.any():
        first = special.ndtr(-math.sqrt(2) * x[plain])
        second = np.exp(eps[plain] + special.log_ndtr(-math.sqrt(2) * (x[plain] + h[plain])))
        result[plain] = np.log(first - second)
    return result


def _integrated_slope(x: Floats, h: Floats) -> Floats:
    """erfcx(x) - erfcx(x + h) for small h, as the integral of -erfcx' by eight nodes."""
    middle = x + h / 2
    total = np.zeros_like(x)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * _slope(middle + node * h / 2)
    return total * h / 2


def _slope(z: Floats) -> Floats:
    """-erfcx'(z) = 2/sqrt(pi) - 2 z erfcx(z), and its series where that would cancel."""
    special = imported("scipy.special")
    far = z > _ASYMPTOTIC
    near = np.where(far, 0.0, z)
    direct = 2 / math.sqrt(math.pi) - 2 * near * special.erfcx(near)
    square = np.where(far, z, 1.0) ** -2
    # 2/sqrt(pi) (1/(2 z^2) - 3/(4 z^4) + 15/(8 z^6) - 105/(16 z^8))
    series = square / 2 * (1 - square * (3 / 2 - square * (15 / 4 - square * 105 / 8)))
    return np.asarray(np.where(far, 2 / math.sqrt(math.pi) * series, direct))


def delta_curve(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """G(epsilon, mu), for arrays that broadcast. See :func:`log_delta_curve`."""
    return np.asarray(np.exp(log_delta_curve(epsilon, mu)))


def delta_of(epsilon: float, mu: float) -> float:
    """The least delta for which Gaussian noise at distance ``mu`` is (epsilon, delta)-private.

    Args:
        epsilon: at least 0.
        mu: sensitivity over standard deviation, at least 0; see :func:`composed`.

    Returns:
        delta, nowhere below the truth and above it by at most 2 ``CURVE_ERROR`` of itself, or by
        the smallest double.

    >>> round(delta_of(1.0, 0.5), 6)
    0.00683
    >>> delta_of(0.0, 0.0)
    0.0
    """
    _check_at_least_zero("epsilon", epsilon)
    _check_at_least_zero("mu", mu)
    if mu == 0:
        return 0.0
    near = float(delta_curve(epsilon, mu))
    return min(1.0, near * (1 + CURVE_ERROR) + _SMALLEST_DOUBLE)


def epsilon_of(delta: float, mu: float) -> float:
    """The least epsilon for which Gaussian noise at distance ``mu`` is (epsilon, delta)-private.

    Args:
        delta: above 0 and below 1.
        mu: sensitivity over standard deviation, at least 0.

    Returns:
        epsilon, rounded up.

    >>> round(epsilon_of(1e-6, 0.2), 4)
    0.8341
    """
    check_delta(delta)
    _check_at_least_zero("mu", mu)
    if delta_of(0.0, mu) <= delta:
        return 0.0
    # Phi(mu/2 - eps/mu) <= delta is enough:  eps = mu^2/2 - mu Phi^-1(delta)
    quantile = float(imported("scipy.special").ndtri(delta))
    low, high = 0.0, mu * mu / 2 + mu * max(0.0, -quantile)
    while delta_of(high, mu) > delta:
        high = 2 * high
    return bisected(low, high, lambda epsilon: delta_of(epsilon, mu) <= delta)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest distance at which Gaussian noise is (epsilon, delta)-private.

    Args:
        epsilon: at least 0.
        delta: above 0 and below 1.

    Returns:
        mu, rounded down.

    >>> round(mu_of(1.0, 1e-6), 5)
    0.2367
    """
    check_delta(delta)
    _check_at_least_zero("epsilon", epsilon)
    high = 1.0
    while high < LARGEST_MU and delta_of(epsilon, high) <= delta:
        high = 2 * high
    low = high / 2
    while low > SMALLEST_MU and delta_of(epsilon, low) > delta:
        high, low = low, low / 2
    if delta_of(epsilon, low) > delta:
        raise InvalidInput(
            f"epsilon ({epsilon}) and delta ({delta}) leave no room for any Gaussian noise"
        )
    return bisected(high, low, lambda mu: delta_of(epsilon, mu) <= delta)


def variance_for(epsilon: float, delta: float, squared_sensitivity: Fraction) -> Fraction:
    """The least variance, as an exact fraction, that makes one Gaussian step private.

    Args:
        epsilon: at least 0.
        delta: above 0 and below 1.
        squared_sensitivity: of the step, in L2.

    Returns:
        A variance whose ``mu`` is at most ``mu_of(epsilon, delta)``, above the least one by at most
        one part in a million million.

    >>> float(variance_for(1.0, 1e-6, Fraction(1)))  # doctest: +ELLIPSIS
    17.847911...
    """
    return rounded_variance(squared_sensitivity / Fraction(mu_of(epsilon, delta)) ** 2)


def rounded_variance(variance: Fraction) -> Fraction:
    """A variance rounded up, the private side, to a fraction with some forty binary digits.

    >>> rounded_variance(Fraction(5)), rounded_variance(Fraction(1, 3)) - Fraction(1, 3) < 1e-12
    (Fraction(5, 1), True)
    """
    if variance <= 0:
        raise InvalidInput(f"variance ({float(variance)}) must be greater than 0")
    digits = variance.numerator.bit_length() - variance.denominator.bit_length()
    unit = Fraction(2) ** (digits - _VARIANCE_DIGITS)
    return math.ceil(variance / unit) * unit


def composed(steps: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """mu^2 of Gaussian steps together, exactly.

    Args:
        steps: (squared L2 sensitivity, variance) of each.

    Returns:
        The sum of their quotients.

    >>> composed([(Fraction(1), Fraction(4)), (Fraction(3), Fraction(4))])
    Fraction(1, 1)
    """
    total = Fraction(0)
    for squared_sensitivity, variance in steps:
        total += squared_sensitivity / variance
    return total


def root_up(square: Fraction) -> float:
    """The square root of a fraction as a double that is not below it.

    >>> root_up(Fraction(9, 4))
    1.5
    """
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def bisected(wrong: float, right: float, holds: Callable[[float], bool]) -> float:
    """The end of an interval at which ``holds``, moved to the other until no double lies between.

    Args:
        wrong: an end at which ``holds`` is False.
        right: an end at which ``holds`` is True.
        holds: from a number to whether it will do; it changes once between the ends.
    """
    while True:
        middle = (wrong + right) / 2
        if middle in (wrong, right):
            return right
        if holds(middle):
            right = middle
        else:
            wrong = middle


def check_delta(delta: float) -> None:
    """Refuse a delta that is no chance of failure."""
    if not 0 < delta < 1:
        raise InvalidInput(f"delta ({delta}) must be greater than 0 and less than 1")


def _check_at_least_zero(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InvalidInput(f"{name} ({value}) must be finite and at least 0")
