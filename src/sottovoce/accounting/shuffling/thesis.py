"""The closed forms of wang2021thesis, chapter 9, for comparison: each with its conditions.

They are proved for a bounded epsilon of the analyst only; beyond it theorem 9.2.1 is false
(docs/errata, 3 and N20). All are for replace-one neighbours.
"""

from __future__ import annotations

import math

from sottovoce.accounting.gaussian import check_delta
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.base import Oracle

MAX_THESIS_EPSILON = 1.0  # of theorems 9.2.1 and 9.3.2 and their corollaries
MAX_UNARY_EPSILON = 2.0  # of theorem 9.3.1: two columns
_ONE_ANSWER = ("rr", "grr")
_HASHED = ("blh", "olh", "olh-field", "olh-seeded", "olh-wide")


def subsampled_epsilon(local: float, people: int, delta: float) -> float:
    """Table 9.1, first row: sqrt(144 ln(1/delta) eps_l^2/n), for eps_l < 1/2.

    >>> round(subsampled_epsilon(0.4, 1_000_000, 1e-9), 4)
    0.0219
    """
    _check(local, people, delta)
    if local >= 0.5:
        raise InvalidInput(f"local ({local}) must be below 1/2 for this bound")
    return math.sqrt(144 * math.log(1 / delta) * local**2 / people)


def binary_epsilon(local: float, people: int, delta: float) -> float:
    """Table 9.1, second row: sqrt(32 ln(4/delta) (E + 1)/n), for two values.

    Proved for an epsilon between sqrt(192 ln(4/delta)/n) and 1. The table prints e^(eps_l + 1).

    >>> round(binary_epsilon(4.0, 1_000_000, 1e-9), 4)
    0.1983
    """
    _check(local, people, delta)
    least = math.sqrt(192 / people * math.log(4 / delta))
    epsilon = math.sqrt(32 * math.log(4 / delta) * (math.exp(local) + 1) / people)
    if not least < epsilon < 1:
        raise InvalidInput(
            f"local ({local}) would give {epsilon:.4g}; this bound is proved between "
            f"{least:.4g} and 1"
        )
    return epsilon


def blanket_epsilon(size: int, local: float, people: int, delta: float, fakes: int = 0) -> float:
    """GRR over d values, and hashing to d' values: theorem 9.3.2, corollaries 9.5.2 and 9.5.3.

    sqrt(14 ln(2/delta) / ((n - 1)/(E + d - 1) + n_r/d)): two binomials as one, which corollary
    9.5.2 does not prove (docs/errata, N22).

    Args:
        size: d, or d' for hashing.
        local: eps_l.
        people: n.
        delta: above 0 and below 1.
        fakes: n_r.

    >>> round(blanket_epsilon(16, 4.0, 1_000_000, 1e-9), 4)
    0.1445
    """
    _check(local, people, delta)
    others = (people - 1) / (math.exp(local) + size - 1) + fakes / size
    return _bounded(_binomial(others, delta), MAX_THESIS_EPSILON)


def fakes_epsilon(size: int, delta: float, fakes: int) -> float:
    """eps_s of corollaries 9.5.2 and 9.5.3, sqrt(14 ln(2/delta) d/n_r): everybody else colludes.

    >>> round(fakes_epsilon(512, 1e-9, 1_000_000), 2)
    0.39
    """
    check_delta(delta)
    return _bounded(_binomial(whole("fakes", fakes, 1, 1 << 62) / size, delta), MAX_THESIS_EPSILON)


def unary_epsilon(local: float, people: int, delta: float) -> float:
    """Theorem 9.3.1: 2 sqrt(14 ln(4/delta) (e^(eps_l/2) + 1)/(n - 1)).

    Only if every bit position is shuffled apart; for whole vectors it is false (docs/errata, 2).

    >>> round(unary_epsilon(10.0, 1_000_000, 1e-9), 3)
    0.43
    """
    _check(local, people, delta)
    others = (people - 1) / (math.exp(local / 2) + 1)
    epsilon = 2 * math.sqrt(14 * math.log(4 / delta) / others) if others else math.inf
    return _bounded(epsilon, MAX_UNARY_EPSILON)


def best_hash_size(epsilon: float, people: int, delta: float, fakes: int = 0) -> float:
    """d' of least variance at an epsilon of the analyst: eq. (9.4), and with fakes.

    eps_c^2 (n - 1 + n_r)/(42 ln(2/delta)) + 2/3; printed with a minus (docs/errata, 7).

    >>> round(best_hash_size(0.5, 1_000_000, 1e-9, 200_000), 1)
    334.2
    """
    check_delta(delta)
    return epsilon**2 * (people - 1 + fakes) / (42 * math.log(2 / delta)) + 2 / 3


def local_for(epsilon: float, size: int, people: int, delta: float) -> float:
    """eps_l of theorem 9.3.2 for an epsilon of the analyst, E + d' - 1 = m = eps_c^2 (n - 1)/(14
    ln(2/delta)); refused unless m > d', below which shuffling is not counted at all.

    >>> round(local_for(0.1445, 16, 1_000_000, 1e-9), 2)
    4.0
    """
    check_delta(delta)
    m = epsilon**2 * (people - 1) / (14 * math.log(2 / delta))
    if not m > size:
        raise InvalidInput(f"size ({size}) must be below {m:.4g} at this epsilon")
    return math.log(m - size + 1)


def thesis_epsilon(
    oracle: Oracle, people: int, delta: float, fakes: int = 0
) -> tuple[float | None, str]:
    """What chapter 9 claims for an oracle's shuffled reports, or why it claims nothing.

    >>> from sottovoce.oracles import oracle
    >>> thesis_epsilon(oracle("oue", size=16, epsilon=4), 1_000_000, 1e-9)[0] is None
    True
    """
    name = oracle.names[0]
    if name == "sue":
        return None, "theorem 9.3.1 is false for whole bit vectors (docs/errata, 2)"
    if name in _ONE_ANSWER:
        size, source = oracle.size, "theorem 9.2.1 for GRR" if not fakes else "corollary 9.5.3"
    elif name in _HASHED:
        size = round(1 / oracle.blanket().q)
        source = "theorem 9.3.2" if not fakes else "corollary 9.5.2"
    else:
        return None, f"the thesis has no theorem for {name}"
    try:
        claimed = blanket_epsilon(size, oracle.epsilon, people, delta, fakes)
    except InvalidInput as wrong:
        return None, f"{source}: {wrong}"
    return min(claimed, oracle.epsilon), source


def _binomial(expected: float, delta: float) -> float:
    """Theorem 9.2.1: sqrt(14 ln(2/delta)/(n p)), for binomial noise of n p expected in a cell."""
    return math.sqrt(14 * math.log(2 / delta) / expected) if expected else math.inf


def _bounded(epsilon: float, most: float) -> float:
    if epsilon > most:
        raise InvalidInput(
            f"epsilon ({epsilon:.4g}) is what the formula gives; it is proved up to {most:g} only"
        )
    return epsilon


def _check(local: float, people: int, delta: float) -> None:
    check_delta(delta)
    whole("people", people, 1, 1 << 62)
    if not 0 < local < math.inf:
        raise InvalidInput(f"local ({local}) must be finite and greater than 0")
