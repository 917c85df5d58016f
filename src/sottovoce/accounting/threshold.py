"""Unknown domains: items are published if their noisy weight is above a threshold. Exactly.

A person adds weight to items, j of which nobody else has. Without her these cannot be published;
with her they stay hidden with chance pi. All other items differ by a shift, so that for
neighbours that differ by one person (wilkins2024gaussian, derived anew)

    ln pi = j ln Phi((threshold - w) / sigma)       mu^2 = (what she moves others by)^2 / sigma^2
    with her, against without:   delta = 1 - pi + pi G(eps - ln pi, mu)
    without her, against with:   delta = G(eps + ln pi, mu)

and delta is the largest over all that she may hold. Where a person is replaced by another, both
have items of their own:

    delta = 1 - pi_a + pi_a G(eps + ln pi_b - ln pi_a, mu),   mu^2 = mu_a^2 + mu_b^2

of which pi_b and mu_b are taken at their worst, each by itself. (pi_b is nearly 1, so this costs
next to nothing.) Both expressions rise with mu and fall with pi, so where weights range over an
interval its worse ends bound them.

Noise on a lattice has a lighter tail than Gaussian noise one step nearer (canonne2020discrete,
on tails), so the same formulas hold for it if weights and threshold are multiples of the
lattice's step; see ``lattice_loss`` of :mod:`sottovoce.accounting.steps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sottovoce.accounting.gaussian import CURVE_ERROR, Floats, check_delta, delta_curve, root_up
from sottovoce.accounting.steps import Neighbours, Weights, check_neighbours, check_weights
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported

LARGEST_LIMIT = 1 << 16  # of items that a person may contribute
_MOST_PAIRS = 1 << 20  # of (items, new items) that are listed one by one
_INTERVALS = 512  # of weights, for each number of new items
_ROUNDED_WEIGHT = 1e-3  # by which a weight may be lower, since it is rounded down to a lattice
_DEVIATIONS = 40  # beyond which no double holds the tail


@dataclass(frozen=True)
class Contributions:
    """All that a person may hold, as arrays of one length; in some only a bound of it."""

    new: Floats  # items that nobody else has
    weight: Floats  # of each of these; at most
    moved: Floats  # squared weight on all other items; at most

    def log_hidden(self, threshold: float, sigma: float) -> Floats:
        """ln pi: that no new item is published."""
        log_ndtr = imported("scipy.special").log_ndtr
        return np.asarray(self.new * log_ndtr((threshold - self.weight) / sigma))


@lru_cache(maxsize=8)
def contributions(limit: int, weights: Weights) -> Contributions:
    """What a person may hold under a rule of weights.

    Args:
        limit: the most items of one person.
        weights: "counts": 1 for each item. "equal": 1/sqrt(t) for each of a person's t items.
            "descent": at most 1 in L2, with equal weights of at least 1/sqrt(limit) on new items,
            or less by a thousandth, for weights that are rounded down to a lattice.

    >>> contributions(2, "counts").moved
    array([2., 1., 0.])
    """
    if not 1 <= limit <= LARGEST_LIMIT:
        raise InvalidInput(f"limit ({limit}) must lie between 1 and {LARGEST_LIMIT}")
    check_weights(weights)
    if weights == "counts":
        # a person with fewer than ``limit`` items moves others by less, with the same pi
        new = np.arange(limit + 1, dtype=np.float64)
        return Contributions(new, np.ones(limit + 1), limit - new)
    if weights == "equal" and limit * (limit + 3) // 2 <= _MOST_PAIRS:
        return _equal_contributions(limit)
    return _descent_contributions(limit)  # equal weights are among these


def _equal_contributions(limit: int) -> Contributions:
    """Every number of items t, and of new ones j."""
    items = np.arange(1, limit + 1)
    total = np.repeat(items, items + 1)  # t, once for each of j = 0 .. t
    starts = np.repeat(np.cumsum(items + 1) - (items + 1), items + 1)
    new = np.arange(len(total)) - starts
    return Contributions(new.astype(np.float64), 1 / np.sqrt(total), 1 - new / total)


def _descent_contributions(limit: int) -> Contributions:
    """Every number of new items j, and intervals of their weight from 1/sqrt(limit) to 1/sqrt(j).

    An interval stands with its highest weight, and with what its lowest one leaves for others.
    """
    intervals = max(8, min(_INTERVALS, _MOST_PAIRS // limit))
    new = np.arange(1, limit + 1, dtype=np.float64)[:, None]  # (limit, 1)
    lowest = (1 - _ROUNDED_WEIGHT) / math.sqrt(limit)
    highest = 1 / np.sqrt(new)
    ends = lowest + (highest - lowest) * np.linspace(0, 1, intervals + 1)  # (limit, intervals + 1)
    moved = np.maximum(0.0, 1 - new * ends[:, :-1] ** 2)
    every = np.broadcast_to(new, moved.shape)
    return Contributions(
        np.append(every.ravel(), 0.0),
        np.append(ends[:, 1:].ravel(), 0.0),
        np.append(moved.ravel(), 1.0),  # no new item
    )


def threshold_delta(
    epsilon: float,
    threshold: Fraction | float,
    variance: Fraction,
    limit: int,
    weights: Weights = "counts",
    neighbours: Neighbours = "add-remove",
    *,
    lattice_loss: float = 0.0,
    other_squared_mu: float = 0.0,
    other_log_hidden: float = 0.0,
) -> float:
    """delta of publishing what is above a threshold, and its noisy weights, at an epsilon.

    Args:
        epsilon: at least 0.
        threshold: a noisy weight must be greater to be published.
        variance: of the noise on a weight.
        limit: the most items of one person.
        weights: how much a person adds to an item, see :func:`contributions`.
        neighbours: who counts as a neighbour.
        lattice_loss: of all steps together, see :mod:`sottovoce.accounting.steps`.
        other_squared_mu: of Gaussian steps beside this one, for the same neighbours.
        other_log_hidden: the least ln pi of other thresholds, see :func:`least_log_hidden`.

    Returns:
        delta, rounded up.

    >>> round(threshold_delta(1.0, 24, Fraction(19), 1), 8)
    5.2e-07
    """
    check_neighbours(neighbours)
    held = contributions(limit, weights)
    sigma = math.sqrt(variance)
    log_pi = held.log_hidden(float(threshold), sigma) + other_log_hidden
    pi = np.exp(log_pi)
    seen = -np.expm1(log_pi)
    squared_mu = held.moved / float(variance) + other_squared_mu
    effective = epsilon - lattice_loss
    if neighbours == "add-remove":
        mu = np.sqrt(squared_mu)
        with_her = seen + pi * delta_curve(effective - log_pi, mu)
        without = delta_curve(effective + log_pi, mu)
        worst = max(float(with_her.max()), float(without.max()))
    else:
        mu = np.sqrt(squared_mu + largest_moved(limit, weights) / float(variance))
        other = float(log_pi.min())
        replaced = seen + pi * delta_curve(effective + other - log_pi, mu)
        worst = float(replaced.max())
    return min(1.0, worst * (1 + CURVE_ERROR))


def largest_moved(limit: int, weights: Weights) -> int:
    """The squared weight that one person adds, at most.

    >>> largest_moved(20, "counts"), largest_moved(20, "equal")
    (20, 1)
    """
    return limit if weights == "counts" else 1


def least_log_hidden(
    threshold: Fraction | float, variance: Fraction, limit: int, weights: Weights
) -> float:
    """The least ln pi, over all that a person may hold: how well a threshold hides at worst."""
    held = contributions(limit, weights)
    return float(held.log_hidden(float(threshold), math.sqrt(variance)).min())


def hiding_threshold(
    log_hidden: float, variance: Fraction, limit: int, weights: Weights, per_unit: int = 1
) -> Fraction:
    """The least threshold, on a lattice, that hides all new items with such a chance.

    Args:
        log_hidden: the logarithm of the chance.
        variance: of the noise on a weight.
        limit: the most items of one person, all of which may be new.
        weights: how much a person adds to an item, see :func:`contributions`.
        per_unit: how many steps of the lattice make a weight of 1.

    >>> hiding_threshold(math.log1p(-1e-6), Fraction(19), 1, "counts")
    Fraction(22, 1)
    """

    def hides(steps: int) -> bool:
        hidden = least_log_hidden(Fraction(steps, per_unit), variance, limit, weights)
        return hidden >= log_hidden

    return Fraction(_least(hides, 0, _highest(variance, per_unit)), per_unit)


def _highest(variance: Fraction, per_unit: int) -> int:
    """A threshold, in steps, that hides as much as doubles can tell."""
    return per_unit + math.ceil(per_unit * _DEVIATIONS * root_up(variance))


def threshold_for(
    epsilon: float,
    delta: float,
    variance: Fraction,
    limit: int,
    weights: Weights = "counts",
    neighbours: Neighbours = "add-remove",
    *,
    per_unit: int = 1,
    lattice_loss: float = 0.0,
    other_squared_mu: float = 0.0,
    other_log_hidden: float = 0.0,
) -> Fraction:
    """The least threshold, on a lattice, that makes publishing (epsilon, delta)-private.

    Args:
        epsilon: at least 0.
        delta: above 0 and below 1.
        variance: of the noise on a weight; it must leave some of delta to the threshold.
        limit: the most items of one person.
        weights: how much a person adds to an item, see :func:`contributions`.
        neighbours: who counts as a neighbour.
        per_unit: how many steps of the lattice make a weight of 1.
        lattice_loss: of all steps together, see :mod:`sottovoce.accounting.steps`.
        other_squared_mu: of Gaussian steps beside this one, for the same neighbours.
        other_log_hidden: the least ln pi of other thresholds.

    Returns:
        A multiple of ``1 / per_unit``.

    >>> threshold_for(1.0, 1e-6, Fraction(19), 1)
    Fraction(22, 1)
    """
    check_delta(delta)

    def holds(steps: int) -> bool:
        found = threshold_delta(
            epsilon,
            Fraction(steps, per_unit),
            variance,
            limit,
            weights,
            neighbours,
            lattice_loss=lattice_loss,
            other_squared_mu=other_squared_mu,
            other_log_hidden=other_log_hidden,
        )
        return found <= delta

    highest = _highest(variance, per_unit)
    if not holds(highest):
        raise InvalidInput(
            f"variance ({float(variance):.6g}) must be larger: its noise alone is not "
            f"({epsilon}, {delta})-private, and no threshold helps"
        )
    return Fraction(_least(holds, 0, highest), per_unit)


def _least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least integer from ``low`` on at which ``holds`` is True, as it is at ``high``."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high
