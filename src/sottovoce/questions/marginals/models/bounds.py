"""Frechet bounds: all that a table's cells may be, given the intervals of those of its margins that reports tell of.

Where nobody was asked how attributes go together, any tie is possible: a cell lies between

    max(0, sum of its margins - (number of attributes - 1))    and    the least of its margins.

Margins are known up to their own errors, so the bounds take the ends of their intervals: of level 95% for two
margins, of a higher one for more, so that all of them together miss no more often (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np

from sottovoce.questions.marginals.method import Fit, Floats
from sottovoce.questions.marginals.workload import Places, Workload

LEVEL = 0.95
MISSES = (1 - LEVEL) / 2  # on each side of an interval of this level
ERRORS = NormalDist().inv_cdf(1 - MISSES)  # standard errors on each side

Ends = tuple[Floats, Floats]  # of the intervals of a margin's cells: low, high


def parts_of(places: Places) -> list[Places]:
    """The attributes of a table, then the pairs of them.

    >>> parts_of((0, 2))
    [(0,), (2,), (0, 2)]
    """
    return [part for size in (1, 2) for part in combinations(places, size)]


def interval_ends(table: Floats, variances: Floats, margins: int = 2) -> Ends:
    """The ends of the intervals of a margin's cells, one of so many margins; frequencies lie between 0 and 1."""
    each = 2 * MISSES / max(margins, 2)
    reach = NormalDist().inv_cdf(1 - each) * np.sqrt(variances)
    return np.clip(table - reach, 0, 1), np.clip(table + reach, 0, 1)


def allowed_variances(shape: tuple[int, ...], table: Floats, margins: Mapping[Places, Ends]) -> Floats:
    """The least variances with which the intervals of a table's cells hold all that its margins allow.

    Args:
        shape: the sizes of the table's attributes.
        table: its cells, flat.
        margins: for positions in the shape (one or two of them), the ends of the intervals of that margin's cells.
            An attribute without any may hold anything.

    Returns:
        A variance for each cell, flat.

    >>> ends = interval_ends(np.array([0.5, 0.5]), np.zeros(2))
    >>> variances = allowed_variances((2, 2), np.full(4, 0.25), {(0,): ends, (1,): ends})
    >>> [round(float(reach), 3) for reach in ERRORS * np.sqrt(variances)]  # each cell lies between 0 and 0.5
    [0.25, 0.25, 0.25, 0.25]
    """
    cells = table.reshape(shape)
    most = np.ones(shape)
    least = np.full(shape, 1.0 - len(shape))
    for positions, (low, high) in margins.items():
        sizes = [size if position in positions else 1 for position, size in enumerate(shape)]
        most = np.minimum(most, high.reshape(sizes))
        if len(positions) == 1:
            least = least + low.reshape(sizes)
    least = np.maximum(least, 0)
    reach = np.maximum(np.maximum(most - cells, cells - least), 0)
    return np.asarray((reach / ERRORS) ** 2).ravel()


def stated_variances(work: Workload, fit: Fit, sets: Sequence[Places], tables: Sequence[Floats]) -> list[Floats]:
    """A fit's variances; where nobody was asked about an attribute or pair, at least what the margins allow."""
    variances = fit.variances(sets)
    heard = _heard_parts(fit, sets)
    unsure = {places for places in sets if not heard.issuperset(parts_of(places))}
    if not unsure:
        return variances
    told = sorted(heard & {part for places in unsure for part in parts_of(places)})
    estimated = dict(zip(told, zip(fit.tables(told), fit.variances(told), strict=True), strict=True))
    stated = []
    for places, table, least in zip(sets, tables, variances, strict=True):
        if places not in unsure:
            stated.append(least)
            continue
        inside = [part for part in parts_of(places) if part in heard]
        ends = [interval_ends(*estimated[part], len(inside)) for part in inside]
        positions = [tuple(places.index(place) for place in part) for part in inside]
        allowed = allowed_variances(work.shape(places), table, dict(zip(positions, ends, strict=True)))
        stated.append(np.maximum(least, allowed))
    return stated


def _heard_parts(fit: Fit, sets: Sequence[Places]) -> set[Places]:
    """The attributes and pairs of some tables that reports tell of.

    Of a pair whose attributes are not both told, nothing is known: products of signs need the signs' own means.
    """
    parts = {part for places in sets for part in parts_of(places)}
    singles = {part for part in parts if len(part) == 1 and fit.is_heard(part)}
    pairs = {part for part in parts if len(part) == 2 and {part[:1], part[1:]} <= singles and fit.is_heard(part)}
    return singles | pairs
