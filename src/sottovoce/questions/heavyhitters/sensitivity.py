"""How frequent a value must be to stand out of the noise."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.oracles import PureOracle

Floats = NDArray[np.float64]


def sensitivity(deviation: float, tested: float, people: float, false: float = 1.0) -> float:
    """The frequency above which ``false`` of ``tested`` values that nobody holds are expected to be
    estimated.

    ``deviation``: the standard deviation of one person's estimate.

    >>> from math import e
    >>> round(sensitivity(sqrt(4 * e) / (e - 1), 2.0**48, 1e6), 4)
    0.0149
    """
    # Psi = (sigma / sqrt(n)) Phi_bar^-1(T/d)
    #     wang2021thesis, definition 4.3.1, corrected, see docs/errata
    tail = min(false / tested, 0.5)
    quantile = float(-imported("scipy.special").ndtri(tail))
    return deviation / sqrt(people) * quantile


def deviation_of(source: PureOracle) -> float:
    """The standard deviation of one person's estimate of a value that she does not hold."""
    return sqrt(source.noise(1).floor)


def expected_false(tested: Floats | float, scores: Floats, people: int, buckets: int) -> Floats:
    """How many values that nobody holds are expected to score as high, exactly.

    A report supports such a value with chance 1/buckets, and a score is buckets times the support,
    less the people.

    Args:
        tested: how many values were looked at, one number or one for each score.
        scores: (values,).
        people: whose reports they come from.
        buckets: the values of a hash.
    """
    support = np.round((scores + people) / buckets)
    # P[X >= support] of a binomial law
    tail = imported("scipy.special").bdtrc(support - 1, people, 1 / buckets)
    expected: Floats = tested * tail
    return expected
