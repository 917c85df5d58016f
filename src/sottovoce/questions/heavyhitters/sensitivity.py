"""How frequent a value must be to stand out of the noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.extras import imported

Floats = NDArray[np.float64]


def free_places(wanted: int) -> float:
    """Of so many places those that noise may take: half, since others are taken by what is more
    frequent.

    >>> free_places(32), free_places(1)
    (16.0, 1.0)
    """
    return max(wanted / 2, 1.0)


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


def noise_score(tails: ArrayLike, people: ArrayLike, buckets: int) -> Floats:
    """The score that a value which nobody holds exceeds with these chances.

    Args:
        tails: the chances; what is certain, or more, has minus infinity.
        people: whose reports a score comes from, a shape that goes with ``tails``.
        buckets: the values of a hash.

    >>> noise_score([1.0, 0.001], 10_000, 4).round(1).tolist()
    [-inf, 538.1]
    """
    chances = np.asarray(tails, float)
    heard = np.asarray(people, float)
    is_certain = chances >= 1
    quantile = -imported("scipy.special").ndtri(np.where(is_certain, 0.5, chances))
    # the law is binomial: its skewness is (2^b - 2) / sqrt(n (2^b - 1)), and a quantile z lies at
    # z + skewness (z^2 - 1) / 6, the first term of Cornish and Fisher
    skewness = (buckets - 2) / np.sqrt(heard * (buckets - 1))
    shifted = quantile + skewness * (quantile**2 - 1) / 6
    scores = np.sqrt(heard * (buckets - 1)) * shifted
    return np.where(is_certain, -np.inf, scores)
