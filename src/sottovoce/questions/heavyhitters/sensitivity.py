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
    ndtri = imported("scipy.special").ndtri
    return deviation / sqrt(people) * float(-ndtri(min(false / tested, 0.5)))


def deviation_of(source: PureOracle) -> float:
    """The standard deviation of one person's estimate of a value that she does not hold."""
    return sqrt(source.noise(1).floor)


def expected_false(tested: Floats | float, scores: Floats, people: int, buckets: int) -> Floats:
    """How many of ``tested`` values that nobody holds are expected to score as high, exactly.

    A report supports such a value with chance 1/buckets, and a score is buckets times the support,
    less the people.
    """
    support = np.round((scores + people) / buckets)
    bdtrc = imported("scipy.special").bdtrc
    chances: Floats = tested * bdtrc(support - 1, people, 1 / buckets)
    return chances
