"""Zero-concentrated differential privacy: one number rho that adds up, in closed form.

It is here for comparison and for audits; what a ledger states is sharper. A Gaussian step costs
rho = mu^2/2, the exponential mechanism epsilon^2/8, any epsilon-private step epsilon^2/2
(bun2016concentrated).
"""

from __future__ import annotations

import math

import numpy as np

from sottovoce.accounting.gaussian import bisected, check_delta
from sottovoce.ground.errors import InvalidInput

_ORDERS = np.geomspace(1e-4, 1e7, 20_001)  # alpha - 1; any order gives a bound that holds


def rho_of(epsilon: float, delta: float) -> float:
    """Theorem 1.1 of gopi2021marginals, corrected: all of algorithm 1 is (epsilon, delta)-private
    if its steps cost no more than this.

    Half of delta is the threshold's; the other half converts rho.

    Args:
        epsilon: greater than 0.
        delta: above 0 and below 1.

    Returns:
        The largest rho that the closed form admits.

    >>> round(rho_of(1.0, 1e-6), 4)
    0.0167
    """
    # rho + 2 sqrt(rho L) <= eps, L = ln(2/delta)    <=>    rho <= (sqrt(eps + L) - sqrt L)^2
    root = _root_difference(epsilon, delta)
    return root * root


def misprinted_rho_of(epsilon: float, delta: float) -> float:
    """Theorem 1.1 of gopi2021marginals as it is printed, without its square. It is not private.

    For audits that convict it, and for the documents; see docs/errata.

    >>> round(misprinted_rho_of(1.0, 1e-6), 4)
    0.1291
    """
    return _root_difference(epsilon, delta)


def _root_difference(epsilon: float, delta: float) -> float:
    check_delta(delta)
    if not 0 < epsilon < math.inf:
        raise InvalidInput(f"epsilon ({epsilon}) must be finite and greater than 0")
    log_term = math.log(2 / delta)
    # sqrt(eps + L) - sqrt(L), without cancelling
    return epsilon / (math.sqrt(epsilon + log_term) + math.sqrt(log_term))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The least epsilon that the tight conversion gives for rho-zCDP at a delta.

    Args:
        rho: at least 0.
        delta: above 0 and below 1.

    >>> round(epsilon_of_rho(0.0229, 5e-7), 3)
    0.999
    """
    check_delta(delta)
    if not 0 <= rho < math.inf:
        raise InvalidInput(f"rho ({rho}) must be finite and at least 0")
    # rho alpha + ln(1/(alpha delta))/(alpha - 1) + ln(1 - 1/alpha)
    #     canonne2020discrete, corollary 13
    alpha = 1 + _ORDERS
    bounds = rho * alpha - np.log(alpha * delta) / _ORDERS + np.log(_ORDERS / alpha)
    return max(0.0, float(bounds.min()))


def tight_rho_of(epsilon: float, delta: float) -> float:
    """The largest rho for which the tight conversion gives (epsilon, delta), rounded down.

    >>> round(tight_rho_of(1.0, 5e-7), 4)
    0.0229
    """
    high = 1.0
    while epsilon_of_rho(high, delta) <= epsilon:
        high = 2 * high
    return bisected(high, 0.0, lambda rho: epsilon_of_rho(rho, delta) <= epsilon)
