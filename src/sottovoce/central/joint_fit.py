"""The joint fit of all residuals: the nearest counts that are not negative and agree.

Noise makes counts negative. The repaired shares minimise

    sum over B of |x_B - r_B|^2 / s_B^2

where r_B is a residual as it was measured and x_B that of the shares, over all shares of which no
table has a negative cell. Where the table of all attributes is small, the shares are its margins.
Where it is not, the tables of ``order`` attributes each must not be negative, which is less.

Solved by alternating directions (boyd2011distributed): x has a closed form, since
residuals are orthogonal; tables are projected one by one; u sums up by how much they disagree.
"""

from __future__ import annotations

from itertools import combinations
from math import prod, sqrt

import numpy as np

from sottovoce.central.domains import Places
from sottovoce.central.method import Floats
from sottovoce.central.residuals import Residuals
from sottovoce.postprocessing.consistency import Overlap, contrasts, transform
from sottovoce.questions.marginals.methods.views import Reconstruction

MAX_JOINT_CELLS = 1 << 18  # of the table of all attributes, if it is fitted
FIT_ROUNDS = 300
FIT_TOLERANCE = 0.01  # by how many standard errors tables may disagree in the end
RELAXATION = 1.6  # between 1 and 2: fewer rounds


def fitted(residuals: Residuals, total: float, rounds: int = FIT_ROUNDS) -> Reconstruction:
    """The repaired tables.

    Args:
        residuals: As they were measured.
        total: The number of people by which they become shares.
        rounds: At most so many.

    Returns:
        The tables of up to ``order`` attributes, and of maximum entropy beyond.
    """
    sizes, order = residuals.plan.sizes, residuals.plan.order
    tables = Overlap(sizes, list(combinations(range(len(sizes)), order)))
    if prod(sizes) <= MAX_JOINT_CELLS:
        whole = Overlap(sizes, [tuple(range(len(sizes)))])
        shares = fitted_cells(whole, residuals, total, rounds)
        found = np.empty(whole.parts)
        found[whole.numbers] = whole.coefficients(shares)
        coefficients = np.empty(tables.parts)
        for own, start in tables.starts.items():
            count = prod(sizes[place] - 1 for place in own)
            wide = whole.starts[own]
            coefficients[start : start + count] = found[wide : wide + count]
    else:
        shares = fitted_cells(tables, residuals, total, rounds)
        coefficients = tables.averages(shares, tables.averager(np.ones(len(tables.views))))
    cells = tables.tables(coefficients[tables.numbers])
    return Reconstruction(tables, coefficients[None, :], cells[None, :])


def fitted_cells(views: Overlap, residuals: Residuals, total: float, rounds: int) -> Floats:
    """The shares of the views' tables, one after another, none of them negative.

    Args:
        views: The tables that must not be negative.
        residuals: As they were measured.
        total: The number of people.
        rounds: At most so many.
    """
    heard, precision = targets(views, residuals, total)
    own_weights = 1 / views.lengths[views.owner]  # (cells,)
    weights = views.weights(np.ones(len(views.views)))  # (coefficients,)
    measured = precision > 0
    # the step that weighs tables about as much as what was measured
    step = float(np.median(precision[measured] / weights[measured]))
    limit = FIT_TOLERANCE * _typical_error(residuals, total)

    coefficients = np.where(measured, heard, 0.0)
    tables = views.tables(coefficients[views.numbers])
    shares = views.project(tables)
    gaps = np.zeros_like(shares)
    for _ in range(rounds):
        # x_B = (r_B p_B + step sum over A of w_A c_B(z_A - u_A)) / (p_B + step sum of w_A)
        own = views.coefficients(shares - gaps)
        sums = np.bincount(views.numbers, own_weights * own, views.parts)
        coefficients = (heard * precision + step * sums) / (precision + step * weights)
        coefficients[0] = 1.0
        tables = views.tables(coefficients[views.numbers])
        relaxed = RELAXATION * tables + (1 - RELAXATION) * shares
        shares = views.project(relaxed + gaps)
        gaps += relaxed - shares
        if float(np.abs(tables - shares).max()) < limit:
            break
    return shares


def targets(views: Overlap, residuals: Residuals, total: float) -> tuple[Floats, Floats]:
    """What was measured of each coefficient of some views, as shares, and how well.

    Args:
        views: Whose coefficients they are.
        residuals: As they were measured.
        total: The number of people.

    Returns:
        The coefficients, and 1/(cells of its set times its variance) of each; 0 where nothing was
        measured.
    """
    heard = np.zeros(views.parts)
    precision = np.zeros(views.parts)
    for own, part in residuals.parts.items():
        if not own:
            continue
        span = _span(views, own)
        matrices = [contrasts(size)[1:] for size in part.shape]
        heard[span] = transform(part[None, ...], matrices).ravel() / total
        variance = float(residuals.plan.variance(own)) / total**2
        precision[span] = 1 / (part.size * variance)
    return heard, precision


def _span(views: Overlap, own: Places) -> slice:
    start = views.starts[own]
    return slice(start, start + prod(views.sizes[place] - 1 for place in own))


def _typical_error(residuals: Residuals, total: float) -> float:
    """The standard error of a share of the first widest table."""
    widest = tuple(range(residuals.plan.order))
    return sqrt(residuals.plan.cell_variance(widest)) / total
