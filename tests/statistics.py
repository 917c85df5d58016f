"""Thresholds from theory for sampled tests: fixed seeds, exact quantiles, a shared error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, ncx2, norm

from sottovoce.ground.entropy import Tape

NO_COINS = Tape(b"")  # for encodings that draw none
ALPHA = 1e-6  # chance that one whole family of comparisons rejects code that is right


def chi_squared(
    outputs: list[Any], expected: NDArray[np.float64], drawn: Iterable[Any]
) -> tuple[float, int]:
    """(statistic, degrees of freedom) of draws, or of a counter of them, against the chances of
    ``outputs``; rare outputs are pooled.
    """
    counts = Counter(drawn)
    total = sum(counts.values())
    assert set(counts) <= set(outputs), "a draw is not among the outputs"
    observed = np.array([counts.get(output, 0) for output in outputs], float)
    mean = expected * total
    rare = mean < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        mean = np.append(mean[~rare], mean[rare].sum())
    keep = mean > 0
    statistic = float(((observed[keep] - mean[keep]) ** 2 / mean[keep]).sum())
    return statistic, int(keep.sum()) - 1


def chi_limit(degrees: int, comparisons: int = 1) -> float:
    """What a chi-squared statistic exceeds with chance ALPHA over all comparisons."""
    return float(chi2.isf(ALPHA / comparisons, degrees))


def z_limit(comparisons: int) -> float:
    """What the largest of many standard normal errors exceeds with chance ALPHA."""
    return float(norm.isf(ALPHA / (2 * comparisons)))


def zipf(size: int, exponent: float = 1.1) -> NDArray[np.float64]:
    """Frequencies of a Zipf law."""
    weights = 1 / np.arange(1, size + 1) ** exponent
    return weights / weights.sum()


def zipf_people(size: int, people: int, seed: int) -> NDArray[np.int64]:
    """People whose values follow a Zipf law."""
    return np.random.default_rng(seed).choice(size, people, p=zipf(size))


def sensitivity(deviation: float, tested: float, people: float, false: float = 1.0) -> float:
    """The frequency above which so many ``false`` ones, of ``tested`` that nobody holds, are seen.

    ``deviation``: the standard deviation of one person's estimate.
    """
    # Psi = (sigma / sqrt(n)) Phi_bar^-1(T/d)
    #     wang2021thesis, definition 4.3.1, corrected, see docs/errata
    tail = min(false / tested, 0.5)
    return deviation / sqrt(people) * float(norm.isf(tail))


def draws_needed(
    right: NDArray[np.float64], wrong: NDArray[np.float64], comparisons: int = 1
) -> int:
    """How many draws of the ``wrong`` chances a chi-squared test against the ``right`` ones needs
    to reject them, but for a chance of ALPHA.

    >>> draws_needed(np.array([0.5, 0.5]), np.array([0.6, 0.4])) > 2_000
    True
    """
    degrees = len(right) - 1
    limit = chi_limit(degrees, comparisons)
    # of n draws the statistic is noncentral chi-squared, with n times this
    each = float(((wrong - right) ** 2 / right).sum())
    draws = 1
    while ncx2.cdf(limit, degrees, draws * each) > ALPHA:
        draws = draws * 5 // 4 + 1
    return draws
