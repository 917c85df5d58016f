"""How far a fitted cascade may be off: its posterior's covariance, to first order at its mode."""

from __future__ import annotations

from collections import deque
from typing import ClassVar
from weakref import ref

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.kernels import cascade as kernel
from sottovoce.kernels import curvature
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.models.cascade import (
    FREEDOM,
    SCALE_WEIGHT,
    Cascade,
    node_masses,
)
from sottovoce.questions.queries.models.cells import GridCells
from sottovoce.questions.queries.models.tails import normal_weights

USUAL_SCALE = float(np.exp(-2.0))  # of a depth's deviations
USUAL_WEIGHT = 2.0  # how many logits that is worth
SMALLEST_LEFT = 1e-6  # of a posterior's variance that the crowd's own may leave
FEW_SUMS = 64  # that are asked of a cascade without its matrices
SOLVED_TOLERANCE = 1e-11  # of a sum's slopes: what conjugate gradients leave of them
SOLVE_STEPS = 400
MAX_KEPT_MATRICES = 8  # fits of weights and groups that keep theirs, of 25 MB at 1,024 codes


def interval_scales(fit: Cascade) -> Floats:
    """The prior's scale of each depth as errors are to count it.

    Evidence takes the scale of a depth for nearly nothing when its logits are not told from the
    centre. That serves the estimate, but it is not sure: a usual scale, worth two logits, is held
    against the number of logits that the data have determined. It never makes a scale smaller.
    """
    nodes = np.flatnonzero(fit.splits.is_split)
    depths = np.log2(nodes).astype(np.int64)
    determined = fit.information[nodes] / (fit.information[nodes] + fit.weights[nodes])
    known = np.bincount(depths, determined, fit.splits.depths) + SCALE_WEIGHT
    usual = USUAL_WEIGHT * USUAL_SCALE**2
    squares = (known * fit.scales**2 + usual) / (known + USUAL_WEIGHT)
    scales: Floats = np.maximum(fit.scales, np.sqrt(squares))
    return scales


def tail_weights(fit: Cascade) -> Floats:
    """The precision of a normal prior with which each logit spreads as it does, (leaves,)."""
    splits = fit.splits
    centres = np.zeros(splits.leaves)
    kernel.fill_centres(node_masses(fit), fit.centre, splits.log_sizes, fit.rho, centres)
    nodes = np.flatnonzero(splits.is_split)
    depths = np.log2(nodes).astype(np.int64)
    weights = fit.weights.copy()
    weights[nodes] = normal_weights(
        fit.logits[nodes] - centres[nodes],
        fit.information[nodes],
        fit.weights[nodes],
        interval_scales(fit)[depths],
        FREEDOM,
    )
    return weights


def data_curvature(fit: Cascade, cells: GridCells) -> Floats:
    """How sharply the cells' log likelihood bends in all logits together, (leaves, leaves)."""
    splits = fit.splits
    lows = splits.places[cells.lows]
    highs = splits.places[cells.highs]
    precisions = cells.precisions(cells.shares(fit.frequencies))
    products = curvature.cell_products(lows, highs, precisions, splits.leaves)
    bends: Floats = curvature.logit_products(products, node_masses(fit))
    return bends


def prior_curvature(fit: Cascade, weights: Floats) -> Floats:
    """The same of the prior, with the precisions ``weights`` (leaves,) of each logit."""
    splits = fit.splits
    bends = np.zeros((splits.leaves, splits.leaves))
    masses = node_masses(fit)
    curvature.add_prior(weights, masses, splits.log_sizes, splits.is_split, fit.rho, bends)
    return bends


def crowd_variances(fit: Cascade, people: float) -> Floats:
    """The variance of each logit in a crowd drawn from frequencies as fitted, (leaves,)."""
    masses = node_masses(fit)
    left, right = masses[2::2], masses[3::2]  # (leaves - 1,), of the nodes from the root on
    products = np.maximum(people * left * right, kernel.TINY_MASS)
    return np.append(0.0, (left + right) / products)  # 1 / (people m S (1 - S))


class CascadeErrors:
    """How the frequencies of a fitted cascade err together.

    Errors are towards the crowd's own frequencies. All people are asked by one grid or another, so
    that what one grid's people have too much of, the others' have too little of. The posterior,
    which takes each grid's people for a fresh sample, therefore counts the crowd's own variance
    M too much, as far as the estimate follows the data: the covariance of logits is
    H^-1 - H^-1 J M J H^-1, H the curvature of the posterior and J that of the data.

    Args:
        fit: What was fitted.
        cells: To what.
        people: How many there are, in all grids, also in those about other dimensions.
        weights: The prior's precision of each logit, (leaves,).
    """

    def __init__(self, fit: Cascade, cells: GridCells, people: float, weights: Floats) -> None:
        splits = fit.splits
        nodes = np.flatnonzero(splits.is_split)
        inner = np.ix_(nodes, nodes)
        slopes = curvature.leaf_slopes(node_masses(fit))  # (leaves, leaves)
        self._slopes = slopes[np.ix_(nodes, splits.places[:-1])]  # (rank, size)
        self._data = data_curvature(fit, cells)[inner]  # J, (rank, rank)
        self._crowd = np.sqrt(crowd_variances(fit, people)[nodes])  # of M, (rank,)
        bends = self._data + prior_curvature(fit, weights)[inner]
        with one_thread():
            self._lower = np.linalg.cholesky(bends)  # L L' = H

    def _solved(self, right: Floats, *, transposed: bool = False) -> Floats:
        """L^-1 times a matrix, or L'^-1."""
        if not len(self._lower):
            return right  # of a dimension with a single code
        solve = imported("scipy.linalg").solve_triangular
        turned = "T" if transposed else "N"
        found: Floats = solve(self._lower, right, lower=True, trans=turned, check_finite=False)
        return found

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of the errors of weighted sums of frequencies, (sums, sums).

        Args:
            selections: A weight for each code, (size, sums).
        """
        with one_thread():
            spread = self._solved(self._slopes @ selections)  # L^-1 b, (rank, sums)
            moved = self._solved(spread, transposed=True)  # H^-1 b
            crowd = self._crowd[:, None] * (self._data @ moved)
            found: Floats = (1.0 + SMALLEST_LEFT) * spread.T @ spread - crowd.T @ crowd
        return found

    def root(self) -> Floats:
        """A matrix R, (rank, size), with R' R the covariance of the errors of all frequencies."""
        rank = len(self._lower)
        with one_thread():
            spread = self._solved(self._slopes)
            follow = self._solved(self._data) * self._crowd
            left = (1.0 + SMALLEST_LEFT) * np.eye(rank) - follow @ follow.T  # of its variance
            factor = np.linalg.cholesky(left)
            found: Floats = factor.T @ spread
        return found


class DeviationErrors:
    """The same errors of a cascade that deviates from another one, of few sums at a time.

    Its prior bends in each logit by itself, so that H x = b is solved by conjugate gradients, a
    sum at a time and without a matrix: a query of fifty groups fits fifty cascades, and asks one or
    two sums of each. Many sums, and the root, are left to :class:`CascadeErrors`.

    Args:
        fit: What was fitted; it takes nothing over from neighbours.
        cells: To what.
        people: How many there are, in all grids, also in those about other dimensions.
        weights: The prior's precision of each logit, (leaves,).
    """

    _with_matrices: ClassVar[deque[ref[DeviationErrors]]] = deque()  # the oldest first

    def __init__(self, fit: Cascade, cells: GridCells, people: float, weights: Floats) -> None:
        if fit.rho:
            raise ValueError("the prior's logits must not depend on neighbours")
        self._fit = fit
        self._cells = cells
        self._people = people
        self._weights = weights
        self._whole: CascadeErrors | None = None

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of the errors of weighted sums of frequencies, (sums, sums).

        Args:
            selections: A weight for each code, (size, sums).
        """
        if self._whole is None and selections.shape[1] <= FEW_SUMS:
            found = self._solved(selections)
            if found is not None:
                return found
        return self._matrices().covariance(selections)

    def _solved(self, selections: Floats) -> Floats | None:
        """The covariance without matrices; None if the steps do not come near enough."""
        fit, cells = self._fit, self._cells
        splits = fit.splits
        lines = np.zeros((selections.shape[1], splits.leaves))
        lines[:, splits.places[:-1]] = selections.T
        right, solved, bent, is_near = curvature.solve_logits(
            splits.places[cells.lows],
            splits.places[cells.highs],
            cells.precisions(cells.shares(fit.frequencies)),
            node_masses(fit),
            splits.is_split,
            self._weights,
            fit.information,
            lines,
            SOLVED_TOLERANCE,
            SOLVE_STEPS,
        )
        if not is_near:
            return None
        # b' H^-1 b - b' H^-1 J M J H^-1 b
        spread = right @ solved.T  # (sums, sums)
        crowd = bent * np.sqrt(crowd_variances(fit, self._people))  # (sums, leaves)
        found: Floats = (1.0 + SMALLEST_LEFT) * (spread + spread.T) / 2 - crowd @ crowd.T
        return found

    def root(self) -> Floats:
        """A matrix R, (rank, size), with R' R the covariance of the errors of all frequencies."""
        return self._matrices().root()

    def _matrices(self) -> CascadeErrors:
        """The errors by matrices, which only a few fits keep: they are large."""
        whole = self._whole
        if whole is None:
            whole = CascadeErrors(self._fit, self._cells, self._people, self._weights)
            self._whole = whole
            self._with_matrices.append(ref(self))
            while len(self._with_matrices) > MAX_KEPT_MATRICES:
                oldest = self._with_matrices.popleft()()
                if oldest is not None:
                    oldest._whole = None
        return whole
