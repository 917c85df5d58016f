"""Counts of tuples that were found: of each person up to a limit, which is paid for too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sottovoce.accounting import GaussianStep, Ledger
from sottovoce.central.budget import Budget
from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.counting import sizes_held, summed, unit_weights
from sottovoce.central.limits import least_error_limit, noisy_sizes
from sottovoce.central.method import CentralTable, Floats, Integers
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.noise import discrete_gaussian


@dataclass(frozen=True)
class LimitedShares:
    """What counts get of mu^2: a part for the limit, and a part for themselves."""

    limit: Fraction
    counts: Fraction


@dataclass(frozen=True, eq=False)
class LimitedCounts:
    """Noisy counts, and how they came about."""

    counts: Floats
    variance: Fraction  # of their noise
    limit: int  # of tuples that a person was counted for


def limited_counts(
    table: CentralTable,
    numbers: Integers,
    found: TupleCandidates,
    keys: Integers,
    grid: Integers,
    name: str,
    budget: Budget,
    shares: LimitedShares,
    ledger: Ledger,
    entropy: Entropy,
) -> LimitedCounts:
    """Count, with a limit that is chosen for the error of the counts.

    Guarantee: two Gaussian steps, a histogram of what people hold and the counts.

    Args:
        table: what the curator holds.
        numbers: of its values, see :func:`sottovoce.central.records.records`.
        found: what is counted, which is public by now.
        keys: of all of it, ascending.
        grid: limits that may be chosen, ascending.
        name: of what is counted, for the ledger.
        budget: of the release.
        shares: of mu^2.
        ledger: where both are spent.
        entropy: where choices and noise come from.

    Returns:
        A count for each key.
    """
    sizes = sizes_held(table, numbers, found)
    variance = budget.variance(shares.limit, 1)
    histogram = noisy_sizes(sizes, grid, name, variance, budget.neighbours, ledger, entropy)
    unit = float(budget.variance(shares.counts, 1))
    limit = least_error_limit(histogram, grid, math.sqrt(variance), len(keys), unit)
    variance = budget.variance(shares.counts, limit)
    purpose = "how many people hold what was found"
    ledger.spend(GaussianStep.of_counts(name, purpose, limit, variance, budget.neighbours))
    held, sums = summed(table, numbers, found, limit, unit_weights(limit), entropy)
    counts = np.zeros(len(keys), np.int64)
    counts[np.searchsorted(keys, held)] = sums
    noisy = counts + discrete_gaussian(variance, len(keys), entropy)
    return LimitedCounts(noisy.astype(np.float64), variance, limit)
