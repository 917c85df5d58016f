"""The joint fit of all tables: the nearest ones that are not negative and agree.

Noise makes counts negative. The repaired tables minimise the sum, over all tables of ``order``
attributes, of their squared distances to the unbiased ones, such that no cell is negative and that
any two tables have the same sums over what they share. The true tables are among those, so by
Pythagoras the repaired ones are nowhere farther from them, in that sum, than the unbiased ones.

(Weights by the variances of residuals look better and are not: they move the parts that many tables
share, since a few are cheap to move.)

Solved by alternating directions (boyd2011distributed): what tables share has a closed form, since
residuals are orthogonal; tables are projected one by one; gaps sum up by how much they disagree.
"""

from __future__ import annotations

from itertools import combinations
from math import prod, sqrt

import numpy as np

from sottovoce.central.method import Floats
from sottovoce.central.residuals import Residuals
from sottovoce.postprocessing.consistency import Overlap, contrasts, transform
from sottovoce.questions.marginals.methods.views import Reconstruction

MOST_JOINT_ROUNDS = 200
LEAST_JOINT_ROUNDS = 5
MOST_FIT_WORK = 1 << 28  # cells times rounds, unless told otherwise
FIT_TOLERANCE = 0.01  # by how many standard errors tables may disagree in the end
RELAXATION = 1.6  # between 1 and 2: fewer rounds


def fitted(residuals: Residuals, total: float, rounds: int | None = None) -> Reconstruction:
    """The repaired tables.

    Args:
        residuals: As they were measured.
        total: The number of people by which they become shares.
        rounds: At most so many; fewer of large tables unless given.

    Returns:
        The tables of up to ``order`` attributes, and of maximum entropy beyond.
    """
    sizes, order = residuals.plan.sizes, residuals.plan.order
    views = Overlap(sizes, list(combinations(range(len(sizes)), order)))
    if rounds is None:
        rounds = max(LEAST_JOINT_ROUNDS, min(MOST_JOINT_ROUNDS, MOST_FIT_WORK // views.cells))
    heard = shared_coefficients(views, residuals, total)
    widest = tuple(range(order))
    error = sqrt(residuals.plan.cell_variance(widest)) / total
    cells = projected(views, heard, FIT_TOLERANCE * error, rounds)
    averager = views.averager(np.ones(len(views.views)))
    coefficients = views.averages(cells, averager)
    return Reconstruction(views, coefficients[None, :], cells[None, :])


def projected(views: Overlap, heard: Floats, tolerance: float, rounds: int) -> Floats:
    """The nearest tables that are not negative and agree.

    Args:
        views: The tables.
        heard: The coefficients that they share before, (coefficients,).
        tolerance: By how much tables may disagree in the end.
        rounds: At most so many.

    Returns:
        The tables one after another, as the views lay them out, (cells,).
    """
    averager = views.averager(np.ones(len(views.views)))
    tables = views.tables(heard[views.numbers])
    shares = views.project(tables)
    gaps = np.zeros_like(shares)
    for _ in range(rounds):
        # |x - heard|^2 + |x - (z - u)|^2 is least half way, coefficient by coefficient
        coefficients = (heard + views.averages(shares - gaps, averager)) / 2
        tables = views.tables(coefficients[views.numbers])
        relaxed = RELAXATION * tables + (1 - RELAXATION) * shares
        shares = views.project(relaxed + gaps)
        gaps += relaxed - shares
        if float(np.abs(tables - shares).max()) < tolerance:
            break
    return shares


def shared_coefficients(views: Overlap, residuals: Residuals, total: float) -> Floats:
    """Residuals as the coefficients that some views share, of shares that sum to one."""
    heard = np.zeros(views.parts)
    heard[0] = 1.0
    for own, part in residuals.parts.items():
        if own:
            start = views.starts[own]
            span = slice(start, start + prod(size - 1 for size in part.shape))
            matrices = [contrasts(size)[1:] for size in part.shape]
            heard[span] = transform(part[None, ...], matrices).ravel() / total
    return heard
