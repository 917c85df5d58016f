"""Frechet bounds: all that a table's cells may be, given the intervals of its margins.

Where nobody was asked how attributes go together, any tie is possible: a cell lies between

    max(0, sum of its margins - (number of attributes - 1))    and    the least of its margins.

Margins are known up to their own errors, so the bounds take the ends of their intervals: of level
95% for two margins, of a higher one for more, so that all of them together miss no more often
(Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np

from sottovoce.questions.marginals.method import Fit, Floats
from sottovoce.questions.marginals.workload import Places, Workload

BOUND_LEVEL = 0.95
MISSES = (1 - BOUND_LEVEL) / 2  # on each side of an interval of this level
# standard errors from a share to an end at least, also if the other end is 0 or 1
ERRORS = NormalDist().inv_cdf(BOUND_LEVEL)

Ends = tuple[Floats, Floats]  # of the intervals of a margin's cells: low, high, (cells,) each


def parts_of(places: Places) -> list[Places]:
    """The attributes of a table, then the pairs of them.

    >>> parts_of((0, 2))
    [(0,), (2,), (0, 2)]
    """
    return [*combinations(places, 1), *combinations(places, 2)]


def interval_ends(table: Floats, variances: Floats, margins: int = 2) -> Ends:
    """The ends of the intervals of a margin's cells; frequencies lie between 0 and 1.

    Args:
        table: the margin's cells, (cells,).
        variances: theirs, (cells,).
        margins: how many margins a table has bounds from, which share the level.
    """
    # Bonferroni: of m margins each may miss by (1 - BOUND_LEVEL) / m on either side,
    # for two by MISSES
    misses = 2 * MISSES / max(margins, 2)
    reach = NormalDist().inv_cdf(1 - misses) * np.sqrt(variances)
    low = np.clip(table - reach, 0, 1)
    high = np.clip(table + reach, 0, 1)
    return low, high


def allowed_variances(
    shape: tuple[int, ...],
    table: Floats,
    margins: Mapping[Places, Ends],
) -> Floats:
    """The least variances with which the intervals of a table's cells hold all its margins allow.

    Args:
        shape: the sizes of the table's attributes.
        table: its cells, flat.
        margins: for positions in the shape (one or two of them), the ends of the intervals of that
            margin's cells. An attribute without any may hold anything.

    Returns:
        A variance for each cell, flat.

    >>> ends = interval_ends(np.array([0.5, 0.5]), np.zeros(2))
    >>> variances = allowed_variances((2, 2), np.full(4, 0.25), {(0,): ends, (1,): ends})
    >>> reaches = ERRORS * np.sqrt(variances)
    >>> [round(float(reach), 3) for reach in reaches]  # each cell lies between 0 and 0.5
    [0.25, 0.25, 0.25, 0.25]
    """
    # max(0, sum over attributes a of low_a - (k - 1))  <=  cell  <=  min over margins of high
    cells = table.reshape(shape)
    upper = np.ones(shape)
    lower = np.full(shape, 1.0 - len(shape))
    for positions, (low, high) in margins.items():
        # the margin's own axes, and 1 for the others, along which it is repeated
        axes = [size if axis in positions else 1 for axis, size in enumerate(shape)]
        upper = np.minimum(upper, high.reshape(axes))
        if len(positions) == 1:
            lower = lower + low.reshape(axes)
    lower = np.maximum(lower, 0)
    # an interval must reach the bound that is farther away
    farther = np.maximum(upper - cells, cells - lower)
    reach = np.maximum(farther, 0)
    return np.asarray((reach / ERRORS) ** 2).ravel()


def stated_variances(
    work: Workload,
    fit: Fit,
    sets: Sequence[Places],
    tables: Sequence[Floats],
) -> list[Floats]:
    """A fit's variances; where something was not asked, at least what the margins allow.

    Args:
        work: the attributes and their sizes.
        fit: what tables and variances come from.
        sets: the attributes of each table.
        tables: the fit's tables, (cells,) each.

    Returns:
        For each table the variances of its cells, (cells,).
    """
    variances = fit.variances(sets)
    heard = _heard_parts(fit, sets)
    unsure = {places for places in sets if not heard.issuperset(parts_of(places))}
    if not unsure:
        return variances

    # the margins of those tables, each estimated once
    needed = {part for places in unsure for part in parts_of(places)}
    margins = sorted(heard & needed)
    margin_tables = fit.tables(margins)
    margin_variances = fit.variances(margins)
    estimated = {}
    for part, table, variance in zip(margins, margin_tables, margin_variances, strict=True):
        estimated[part] = (table, variance)

    stated = []
    for places, table, variance in zip(sets, tables, variances, strict=True):
        if places not in unsure:
            stated.append(variance)
            continue
        inside = [part for part in parts_of(places) if part in heard]
        ends = {}
        for part in inside:
            positions = tuple(places.index(attribute) for attribute in part)
            ends[positions] = interval_ends(*estimated[part], len(inside))
        allowed = allowed_variances(work.shape(places), table, ends)
        stated.append(np.maximum(variance, allowed))
    return stated


def _heard_parts(fit: Fit, sets: Sequence[Places]) -> set[Places]:
    """The attributes and pairs of some tables that reports tell of.

    Of a pair whose attributes are not both told, nothing is known: products of signs need the
    signs' own means.
    """
    parts = {part for places in sets for part in parts_of(places)}
    singles = {part for part in parts if len(part) == 1 and fit.is_heard(part)}
    pairs = set()
    for part in parts - singles:
        one, two = part[:1], part[1:]
        if len(part) == 2 and {one, two} <= singles and fit.is_heard(part):
            pairs.add(part)
    return singles | pairs
