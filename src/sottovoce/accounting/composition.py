"""Steps of any kind together, numerically: privacy loss distributions, by dp-accounting.

Every step is described by a pair of laws that no pair of neighbours is easier to tell apart than;
the losses of such pairs add up (the library's convolutions, always rounded up). Kinds of steps:

* Gaussian ones together: one Gaussian pair at their mu.
* Laplace, on integers: one integer that moves by all of the L1 sensitivity. Moving several by less
  reveals less: with s_c = 1 - delta_c at loss x, in steps of the lattice, the law of two that move
  by a and b has E[s_b(x - L_a)] >= s_b(x - a) >= s_(a+b)(x), as L_a <= a, wherever x - a >= -b,
  and else the same with a and b exchanged.
* the exponential mechanism: its losses range over an interval of length eta = epsilon only, so
  that delta(x) = (1 - e^-(eta - x)/2)^2 / (1 - e^-eta), the largest over all such intervals
  (dong2020exponential, bounded range).
* a pure step: randomized response.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sottovoce.accounting.gaussian import Floats, root_up
from sottovoce.accounting.steps import ExponentialStep, LaplaceStep, PureStep, Step
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported

LOSS_INTERVAL = 1e-4  # of the grid that losses are rounded up to
LARGEST_LOSS = 200  # of one step; beyond it nothing is private
_FOURIER_ERROR = 1e-14  # of delta, for each convolution: ten times the rounding of a transform
_LIBRARY = "dp_accounting.pld.privacy_loss_distribution"


def composed_delta(squared_mu: Fraction, steps: Sequence[Step]) -> Callable[[float], float]:
    """The curve of Gaussian steps together with steps of other kinds.

    Args:
        squared_mu: of all Gaussian steps, see :func:`sottovoce.accounting.gaussian.composed`.
        steps: the others: pure, Laplace and exponential ones.

    Returns:
        From any epsilon to delta, rounded up.

    >>> curve = composed_delta(Fraction(1, 25), [PureStep("votes", "whispers", Fraction(1, 2))])
    >>> round(curve(1.0), 4)
    0.0003
    """
    parts = [_distribution(step) for step in steps]
    if squared_mu > 0:
        parts.append(_gaussian(squared_mu))
    if not parts:
        return lambda epsilon: max(0.0, -math.expm1(min(0.0, epsilon)))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    rounding = _FOURIER_ERROR * (len(parts) - 1)
    return lambda epsilon: min(1.0, float(whole.get_delta_for_epsilon(epsilon)) + rounding)


def _gaussian(squared_mu: Fraction) -> Any:
    deviation = 1 / root_up(squared_mu)
    return imported(_LIBRARY).from_gaussian_mechanism(
        math.nextafter(deviation, 0.0), value_discretization_interval=LOSS_INTERVAL
    )


def _distribution(step: Step) -> Any:
    if not isinstance(step, PureStep | LaplaceStep | ExponentialStep):
        raise InvalidInput(f"step '{step.name}': {step.mechanism} is not composed numerically")
    if step.epsilon > LARGEST_LOSS:
        raise InvalidInput(f"step '{step.name}': epsilon must be at most {LARGEST_LOSS}")
    if isinstance(step, ExponentialStep):
        return _exponential(step.epsilon)
    if isinstance(step, LaplaceStep) and step.sensitivity.denominator == 1:
        return imported(_LIBRARY).from_discrete_laplace_mechanism(
            math.nextafter(float(1 / step.scale), math.inf),
            int(step.sensitivity),
            value_discretization_interval=LOSS_INTERVAL,
        )
    parameters = imported("dp_accounting.pld.common").DifferentialPrivacyParameters(
        math.nextafter(float(step.epsilon), math.inf)
    )
    return imported(_LIBRARY).from_privacy_parameters(
        parameters, value_discretization_interval=LOSS_INTERVAL
    )


def exponential_delta(epsilon: Floats, loss_range: float) -> Floats:
    """delta of any step whose privacy losses lie in an interval of a given length.

    Args:
        epsilon: at which delta is asked for, from ``-loss_range`` to ``loss_range``.
        loss_range: the length eta; that of the exponential mechanism is its epsilon.
    """
    # (1 - e^-(eta - x)/2)^2 / (1 - e^-eta)
    part = -np.expm1((epsilon - loss_range) / 2)
    return np.asarray(part**2 / -np.expm1(-loss_range))


def _exponential(epsilon: Fraction) -> Any:
    """The exponential mechanism's distribution, from its curve at the points of the grid."""
    last = math.ceil(float(epsilon) / LOSS_INTERVAL)
    loss_range = last * LOSS_INTERVAL  # rounded up
    points = np.arange(-last, last + 1)
    deltas = exponential_delta(np.asarray(points * LOSS_INTERVAL, np.float64), loss_range)
    deltas[-1] = 0.0
    pmf = imported("dp_accounting.pld.pld_pmf").create_pmf_pessimistic_connect_dots(
        LOSS_INTERVAL, points, np.minimum.accumulate(deltas)
    )
    return imported(_LIBRARY).PrivacyLossDistribution(pmf)
