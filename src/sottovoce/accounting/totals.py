"""What all steps of a ledger promise together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sottovoce.accounting.composition import composed_delta
from sottovoce.accounting.gaussian import (
    CURVE_ERROR,
    check_delta,
    composed,
    delta_curve,
    root_up,
)
from sottovoce.accounting.steps import (
    GaussianStep,
    Neighbours,
    Step,
    ThresholdStep,
    check_neighbours,
)
from sottovoce.accounting.threshold import largest_moved, least_log_hidden, threshold_delta
from sottovoce.ground.errors import InvalidInput

LARGEST_TOTAL = 1e4  # of an epsilon that is solved for
_EPSILON_ERROR = 1e-9  # relative, of an epsilon that is solved for


def total_delta(steps: Sequence[Step], neighbours: Neighbours, epsilon: Fraction | float) -> float:
    """delta at an epsilon, rounded up.

    Gaussian steps and thresholds are exact but for their lattice; others are composed by a library.

    Args:
        steps: the steps, each with the sensitivity of the relation.
        neighbours: who counts as a neighbour.
        epsilon: at least 0.

    >>> total_delta([], "add-remove", 1.0)
    0.0
    """
    if not 0 <= epsilon < math.inf:
        raise InvalidInput(f"epsilon ({epsilon}) must be finite and at least 0")
    if _pure_delta(steps, epsilon) == 0:
        return 0.0
    return _total_curve(steps, neighbours)(epsilon)


def total_epsilon(steps: Sequence[Step], neighbours: Neighbours, delta: float) -> float:
    """epsilon at a delta, rounded up.

    Args:
        steps: the steps, each with the sensitivity of the relation.
        neighbours: who counts as a neighbour.
        delta: above 0 and below 1; or 0, for what is pure.

    >>> total_epsilon([], "add-remove", 1e-6)
    0.0
    """
    pure = _pure_sum(steps)
    if delta == 0 or not steps:
        return math.nextafter(float(pure), math.inf) if pure else 0.0
    check_delta(delta)
    curve = _total_curve(steps, neighbours)
    if curve(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while curve(high) > delta:
        low, high = high, 2 * high
        if high > LARGEST_TOTAL:
            raise InvalidInput(f"delta ({delta}) is below what the steps can keep at any epsilon")
    while high - low > _EPSILON_ERROR * high:
        middle = (low + high) / 2
        if curve(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _pure_sum(steps: Sequence[Step]) -> Fraction | float:
    """The sum of the epsilons if every step is pure, and else infinity."""
    total = Fraction(0)
    for step in steps:
        epsilon = getattr(step, "epsilon", None)
        if epsilon is None:
            return math.inf
        total += epsilon
    return total


def _pure_delta(steps: Sequence[Step], epsilon: Fraction | float) -> float:
    """delta of pure steps by their sum alone; 1 if a step is not pure."""
    pure = _pure_sum(steps)
    if not isinstance(pure, Fraction):
        return 1.0
    missing = pure - Fraction(epsilon)
    if missing <= 0:
        return 0.0
    # randomized response of the whole sum: (e^sum - e^eps) / (e^sum + 1)
    near = -math.expm1(-float(missing)) / (1 + math.exp(-float(pure)))
    return near * (1 + CURVE_ERROR)


def _total_curve(
    steps: Sequence[Step], neighbours: Neighbours
) -> Callable[[Fraction | float], float]:
    """From epsilon to delta, of all steps."""
    curve = _composed_curve(steps, neighbours)
    return lambda epsilon: min(_pure_delta(steps, epsilon), curve(float(epsilon)))


def _composed_curve(steps: Sequence[Step], neighbours: Neighbours) -> Callable[[float], float]:
    """From epsilon to delta, by the losses of all steps."""
    check_neighbours(neighbours)
    gaussian = [step for step in steps if isinstance(step, GaussianStep)]
    thresholds = [step for step in steps if isinstance(step, ThresholdStep)]
    others = [step for step in steps if not isinstance(step, GaussianStep | ThresholdStep)]
    squared_mu = composed((step.squared_sensitivity, step.variance) for step in gaussian)
    loss = _lattice_loss(gaussian, thresholds, neighbours)
    if others:
        return _numerical_curve(squared_mu, loss, thresholds, others, neighbours)
    if not thresholds:
        mu = root_up(squared_mu)
        return lambda epsilon: min(1.0, float(delta_curve(epsilon - loss, mu)) * (1 + CURVE_ERROR))
    return _threshold_curve(squared_mu, loss, thresholds, neighbours)


def _lattice_loss(
    gaussian: Sequence[GaussianStep], thresholds: Sequence[ThresholdStep], neighbours: Neighbours
) -> float:
    """The sum of lattice losses, rounded up; a threshold's is that of one person."""
    people = 1 if neighbours == "add-remove" else 2
    total = Fraction(0)
    for step in gaussian:
        total += step.lattice_loss or 0
    for threshold in thresholds:
        total += people * (threshold.lattice_loss or 0)
    return math.nextafter(float(total), math.inf) if total else 0.0


def _squared_mu_of(step: ThresholdStep, neighbours: Neighbours) -> Fraction:
    """mu^2 of a threshold's weights, if none of a person's items is new."""
    people = 1 if neighbours == "add-remove" else 2
    return people * largest_moved(step.limit, step.weights) / step.variance


def _log_hidden_of(step: ThresholdStep) -> float:
    return least_log_hidden(step.threshold, step.variance, step.limit, step.weights)


def _threshold_curve(
    squared_mu: Fraction,
    loss: float,
    thresholds: Sequence[ThresholdStep],
    neighbours: Neighbours,
) -> Callable[[float], float]:
    """One threshold exactly, the others at their worst; the best choice of the one counts."""

    def bound(index: int, epsilon: float) -> float:
        step = thresholds[index]
        rest = [*thresholds[:index], *thresholds[index + 1 :]]
        other = squared_mu + sum(_squared_mu_of(each, neighbours) for each in rest)
        return threshold_delta(
            epsilon,
            step.threshold,
            step.variance,
            step.limit,
            step.weights,
            neighbours,
            lattice_loss=loss,
            other_squared_mu=float(other),
            other_log_hidden=sum(map(_log_hidden_of, rest)),
        )

    return lambda epsilon: min(bound(index, epsilon) for index in range(len(thresholds)))


def _numerical_curve(
    squared_mu: Fraction,
    loss: float,
    thresholds: Sequence[ThresholdStep],
    others: Sequence[Step],
    neighbours: Neighbours,
) -> Callable[[float], float]:
    """Steps of other kinds among them: composed by a library, with all thresholds at their worst.

    The expressions are those of :mod:`sottovoce.accounting.threshold`.
    """
    for step in thresholds:
        squared_mu += _squared_mu_of(step, neighbours)
    curve = composed_delta(squared_mu, others)
    log_pi = sum(map(_log_hidden_of, thresholds))
    pi, seen = math.exp(log_pi), -math.expm1(log_pi)

    def total(epsilon: float) -> float:
        effective = epsilon - loss
        if neighbours == "replace-one":
            return min(1.0, seen + pi * curve(effective))
        with_her = seen + pi * curve(effective - log_pi)
        return min(1.0, max(with_her, curve(effective + log_pi)))

    return total
