"""Every count of every table of known domains, as a release lists it."""

from __future__ import annotations

from itertools import combinations
from math import prod
from statistics import NormalDist

import numpy as np

from sottovoce.central.domains import TableDomain
from sottovoce.central.estimate import ReleaseFit
from sottovoce.central.method import TupleCounts

SPURIOUS_LEVEL = 0.95  # of the one-sided interval that tells a count from 0


def tuple_counts(domain: TableDomain, order: int, fit: ReleaseFit) -> dict[int, TupleCounts]:
    """The counts of all combinations of 1, 2, ... ``order`` values.

    A combination that holds an empty value is no tuple, and is left out.

    Args:
        domain: The attributes and their values.
        order: How many attributes a table has at most.
        fit: What was released of each table.
    """
    return {count: _counts_of(domain, count, fit) for count in range(1, order + 1)}


def _counts_of(domain: TableDomain, count: int, fit: ReleaseFit) -> TupleCounts:
    """The counts of all tables of so many attributes."""
    sets = list(combinations(range(len(domain.names)), count))
    shapes = [tuple(len(domain.values[place]) for place in own) for own in sets]
    rows = sum(prod(shape) for shape in shapes)
    attributes = np.empty((rows, count), np.int64)
    codes = np.empty((rows, count), np.int64)
    counts = np.empty(rows)
    std_errors = np.empty(rows)
    total = fit.total
    start = 0
    for own, shape in zip(sets, shapes, strict=True):
        span = slice(start, start + prod(shape))
        start = span.stop
        (shares,) = fit.tables([own])
        errors = fit.count_errors(own)
        whole = tuple(domain.sizes[place] for place in own)
        listed = tuple(slice(size) for size in shape)  # without the empty value
        attributes[span] = own
        codes[span] = np.indices(shape).reshape(count, -1).T
        counts[span] = total * shares.reshape(whole)[listed].ravel()
        std_errors[span] = errors.reshape(whole)[listed].ravel()
    reach = NormalDist().inv_cdf(SPURIOUS_LEVEL)
    may_be_spurious = counts <= reach * std_errors
    return TupleCounts(attributes, codes, counts, std_errors, may_be_spurious)
