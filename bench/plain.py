"""What the usual packages do, in plain numpy: a loop over people, a test of every value, a dense
channel matrix.

Each function takes few people (or iterations) and is scaled by its caller: the work is proportional
to them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int64]
Floats = NDArray[np.float64]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def unary_client(values: Values, size: int, p: float, q: float) -> list[NDArray[np.int64]]:
    """A noisy one-hot vector per person."""
    reports = []
    for value in values.tolist():
        report = np.random.binomial(1, q, size)
        report[value] = np.random.binomial(1, p)
        reports.append(report)
    return reports


def subset_client(values: Values, size: int, chosen: int, p: float) -> list[NDArray[np.int64]]:
    """A set of ``chosen`` values per person."""
    reports = []
    everything = np.arange(size)
    for value in values.tolist():
        others = everything[everything != value]
        if np.random.binomial(1, p):
            reports.append(np.append(np.random.choice(others, chosen - 1, replace=False), value))
        else:
            reports.append(np.random.choice(others, chosen, replace=False))
    return reports


def unary_server(reports: list[NDArray[np.int64]], p: float, q: float) -> Floats:
    """Column sums, corrected."""
    return np.asarray((np.sum(reports, axis=0) / len(reports) - q) / (p - q))


def subset_server(reports: list[NDArray[np.int64]], size: int, p: float, q: float) -> Floats:
    """Members counted report by report, corrected."""
    counts = np.zeros(size)
    for report in reports:
        counts[report] += 1
    return np.asarray((counts / len(reports) - q) / (p - q))


def hashing_server(
    seeds: NDArray[np.uint64], answers: NDArray[np.uint64], size: int, buckets: int
) -> Values:
    """For every report, hash every value and compare: people times values tests, on a cheap
    multiplicative hash.
    """
    counts = np.zeros(size, np.int64)
    values = np.arange(size, dtype=np.uint64)
    for seed, answer in zip(seeds, answers, strict=True):
        hashed = ((values ^ seed) * _MULTIPLIER) >> np.uint64(32)
        counts += hashed % np.uint64(buckets) == answer
    return counts


def dense_em(heard: Floats, epsilon: float, iterations: int) -> Floats:
    """Expectation maximization for randomized response with the whole channel matrix, d^2 per
    iteration.
    """
    p, q = response_chances(heard.size, epsilon)
    channel = np.full((heard.size, heard.size), q)
    np.fill_diagonal(channel, p)
    shares = np.full(heard.size, 1 / heard.size)
    for _ in range(iterations):
        shares = shares * (channel @ (heard / (shares @ channel)))
    return shares


def em_iterations(
    heard: Floats, epsilon: float, most: int = 10_000, tolerance: float = 1e-12
) -> int:
    """After how many iterations :func:`dense_em` stands still, from the same steps at O(d) each."""
    p, q = response_chances(heard.size, epsilon)
    shares = np.full(heard.size, 1 / heard.size)
    for done in range(1, most + 1):
        ratios = heard / (q + (p - q) * shares)
        moved = shares * ((p - q) * ratios + q * ratios.sum())
        if float(np.abs(moved - shares).max()) < tolerance:
            return done
        shares = moved
    return most


def response_chances(size: int, epsilon: float) -> tuple[float, float]:
    """(p, q) of generalized randomized response in floating point."""
    odds = math.exp(epsilon)
    return odds / (odds + size - 1), 1 / (odds + size - 1)
