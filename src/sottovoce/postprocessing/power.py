"""Least expected squared error under a power law that is fitted to the estimates.

The prior of a frequency has the density x^-s on [x_min, 1]. Two rules fit it:

- its mean is 1/d, since frequencies sum to one; so x_min follows from s;
- s is the likeliest of a small grid: the density is convolved with the normal noise, one factor per
  estimate.

Compared with fitting s and x_min together, and with regressing the logarithms of the significant
estimates on those of their ranks, on Zipf, geometric and uniform data at n = 1e4 and 1e6: nowhere
more than 12% above the least error of the three, and clearly better where noise hides the head
(Zipf(1), d = 1024, n = 1e4: 7.5e-6; by ranks 1.1e-5). As s grows, the prior narrows to 1/d, so that
a flat distribution is fitted too.
"""

from __future__ import annotations

from functools import cache
from math import exp, expm1, log, sqrt

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.postprocessing.likelihood import noise_floor
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.results.estimate import Floats, Table

EXPONENTS = tuple(1 + float(excess) for excess in np.geomspace(0.2, 20.0, 16))
NEGLIGIBLE = 72.0  # an integral leaves out what is e^-72 of its largest part
# below sigma/16, where the noise's density is all but constant; below 2 sigma; above
NODES = (16, 20, 64)
GRAIN = 1 / 16  # standard deviations to which estimates are rounded for the fit, and for it only
ROWS = 4096  # estimates that are integrated at once
TINY = 1e-300  # the least weight: an interval too narrow for floats still counts as a point


def power(table: Table) -> Floats:
    """The expected frequency behind each estimate: frequencies by a power law, normal errors.

    >>> from sottovoce.oracles import Noise
    >>> values = np.array([0.7, 0.2, 0.1, 0.05, -0.05, 0.03, -0.03, 0.0])
    >>> table = Table(("x",), range(8), values, np.full(8, 0.001), 1000, Noise(0.001, 0.0))
    >>> power(table).round(3).tolist()
    [0.698, 0.194, 0.083, 0.032, 0.011, 0.023, 0.012, 0.015]
    """
    if table.values.shape[-1] < 2:
        raise InvalidInput("a power law is fitted to two values or more")
    sigma = sqrt(noise_floor(table))
    if table.values.ndim > 1:
        return _power_of_rows(table.values, sigma)
    s = _fit(table.values, sigma)
    return _posterior(table.values, sigma, s, _span(s, table.values.size))[0]


def power_ns(table: Table) -> Floats:
    """Power, then the nearest point of the simplex.

    >>> from sottovoce.oracles import Noise
    >>> values = np.array([0.7, 0.2, 0.1, 0.05, -0.05, 0.03, -0.03, 0.0])
    >>> table = Table(("x",), range(8), values, np.full(8, 0.001), 1000, Noise(0.001, 0.0))
    >>> round(float(power_ns(table).sum()), 9)
    1.0
    """
    return norm_sub(power(table))


def _power_of_rows(values: Floats, sigma: float) -> Floats:
    """:func:`power` of many tables, (rows, values), each with an exponent of its own.

    Estimates are rounded as for the fit, so that one integral serves all that are alike. It moves a
    result by less than 1/32 of the noise.
    """
    grains = np.rint(values / (GRAIN * sigma))
    steps, places = np.unique(grains, return_inverse=True)
    places = places.reshape(values.shape)
    rounded = steps * GRAIN * sigma
    means = np.empty((len(EXPONENTS), steps.size))
    likelihoods = np.empty((len(EXPONENTS), steps.size))  # their logarithms
    for number, s in enumerate(EXPONENTS):
        span = _span(s, values.shape[-1])
        means[number], likelihoods[number] = _posterior(rounded, sigma, s, span)
    # how often each step occurs in each row, (rows, steps)
    counts = np.stack([np.bincount(row, minlength=steps.size) for row in places])
    best = (counts @ likelihoods.T).argmax(axis=-1)  # (rows,)
    return np.asarray(means[best[:, None], places])


def _fit(values: Floats, sigma: float) -> float:
    """The likeliest exponent. Estimates that differ by little of the noise count as equal."""
    grains = np.rint(values / (GRAIN * sigma))
    steps, counts = np.unique(grains, return_counts=True)
    rounded = steps * GRAIN * sigma  # the different estimates, each with its count
    fits = []
    for s in EXPONENTS:
        _, likelihoods = _posterior(rounded, sigma, s, _span(s, values.size))
        fits.append(float(counts @ likelihoods))
    return EXPONENTS[int(np.argmax(fits))]


@cache
def _span(s: float, size: int) -> float:
    """L = log(1/x_min) of the power law x^-s on [x_min, 1] whose mean is 1/size."""
    brentq = imported("scipy.optimize").brentq

    def excess(span: float) -> float:
        # with x = x_min e^u:  E[x] = x_min int_0^L e^{(2-s)u} du / int_0^L e^{(1-s)u} du,
        # which falls from 1 to 0 with L
        mean = exp(-span) * _area(2 - s, span) / _area(1 - s, span)
        return mean - 1 / size

    return float(brentq(excess, 1e-9, 700.0))


def _area(rate: float, span: float) -> float:
    """The integral of e^{rate u} over [0, span]."""
    return span if rate == 0 else expm1(rate * span) / rate


def _posterior(values: Floats, sigma: float, s: float, span: float) -> tuple[Floats, Floats]:
    """For each estimate: the posterior mean, and its log-likelihood up to one constant.

    Args:
        values: Estimates, (values,).
        sigma: The standard deviation of their errors.
        s: The exponent of the power law.
        span: L, the logarithm of 1/x_min.

    Returns:
        Two arrays of shape (values,).
    """
    means, likelihoods = [], []
    for first in range(0, values.size, ROWS):
        mean, likelihood = _integrals(values[first : first + ROWS], sigma, s, span)
        means.append(mean)
        likelihoods.append(likelihood)
    return np.concatenate(means), np.concatenate(likelihoods)


def _integrals(values: Floats, sigma: float, s: float, span: float) -> tuple[Floats, Floats]:
    """:func:`_posterior` of so few estimates that their nodes fit into memory."""
    # f_v = int N(f~_v - x) Pr[x] x dx / int N(f~_v - y) Pr[y] dy   wang2021thesis, eq. (8.7)
    x, dx = _nodes(values, sigma, s, span)  # (values, nodes)
    prior = -s * (np.log(x) + span)  # log (x/x_min)^-s
    noise = ((values[:, None] - x) / sigma) ** 2 / 2  # -log N(f~_v - x), up to one constant
    logs = prior - noise
    largest = logs.max(axis=1, keepdims=True)  # taken off, so that no exponential overflows
    mass = np.maximum(dx, TINY) * np.exp(logs - largest)
    total = mass.sum(axis=1)  # (values,)
    means = (mass * x).sum(axis=1) / total
    # int x^-s dx over [x_min, 1] is  x_min^{1-s} int_0^L e^{(1-s)u} du
    likelihoods = np.log(total) + largest[:, 0] + span - log(_area(1 - s, span))
    return means, likelihoods


def _nodes(values: Floats, sigma: float, s: float, span: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes x and weights dx, a row per estimate, where [x_min, 1] matters.

    Returns:
        Two arrays of shape (values, nodes).
    """
    least = exp(-span)  # x_min
    centre = np.clip(values, least, 1.0)
    # towards 0 the prior may gain what the noise loses
    below = _reach(values - centre, sigma, NEGLIGIBLE + s * span)
    above = _reach(centre - values, sigma, NEGLIGIBLE)
    low = np.maximum(centre - below, least)
    high = np.minimum(centre + above, 1.0)
    # three panels, each where the integrand is smooth in log x or in x
    first = np.clip(sigma / 16, low, high)
    second = np.clip(2 * sigma, low, high)
    panels = [
        _logarithmic_panel(low, first, NODES[0]),
        _logarithmic_panel(first, second, NODES[1]),
        _panel(second, high, NODES[2]),
    ]
    x = np.concatenate([nodes for nodes, _ in panels], axis=1)
    dx = np.concatenate([weights for _, weights in panels], axis=1)
    return x, dx


def _panel(start: Floats, end: Floats, count: int) -> tuple[Floats, Floats]:
    """Nodes and weights of each interval from ``start`` to ``end``, (intervals, count) both."""
    places, weights = _legendre(count)
    width = (end - start)[:, None]
    return start[:, None] + width * (1 + places) / 2, width * weights / 2


def _logarithmic_panel(start: Floats, end: Floats, count: int) -> tuple[Floats, Floats]:
    """The same in u = log x, so that dx = e^u du."""
    u, du = _panel(np.log(start), np.log(end), count)
    return np.exp(u), np.exp(u) * du


def _reach(beyond: Floats, sigma: float, loss: float) -> Floats:
    """How far from its centre the noise's density lost e^-loss; less if it lies ``beyond``."""
    # t with  ((beyond + t)^2 - beyond^2) / (2 sigma^2) = loss
    away = np.maximum(beyond, 0.0)
    square = 2 * loss * sigma**2
    return np.asarray(square / (away + np.sqrt(away**2 + square)))


@cache
def _legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1]."""
    places, weights = np.polynomial.legendre.leggauss(count)
    return places, weights
