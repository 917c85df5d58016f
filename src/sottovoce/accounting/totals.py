"""What all steps of a ledger promise together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sottovoce.accounting.gaussian import composed, delta_of, epsilon_of, root_up
from sottovoce.accounting.steps import GaussianStep, Neighbours, Step
from sottovoce.ground.errors import InvalidInput


def total_delta(steps: Sequence[Step], neighbours: Neighbours, epsilon: float) -> float:
    """delta at an epsilon, rounded up.

    Args:
        steps: the steps, each with the sensitivity of the relation.
        neighbours: who counts as a neighbour.
        epsilon: at least 0.

    >>> total_delta([], "add-remove", 1.0)
    0.0
    """
    mu = root_up(_squared_mu(steps))
    return delta_of(epsilon, mu)


def total_epsilon(steps: Sequence[Step], neighbours: Neighbours, delta: float) -> float:
    """epsilon at a delta, rounded up.

    Args:
        steps: the steps, each with the sensitivity of the relation.
        neighbours: who counts as a neighbour.
        delta: above 0 and below 1.

    >>> total_epsilon([], "add-remove", 1e-6)
    0.0
    """
    mu = root_up(_squared_mu(steps))
    return epsilon_of(delta, mu)


def _squared_mu(steps: Sequence[Step]) -> Fraction:
    gaussian = [step for step in steps if isinstance(step, GaussianStep)]
    if len(gaussian) < len(steps):
        raise InvalidInput("steps must be Gaussian")
    return composed((step.squared_sensitivity, step.variance) for step in gaussian)
