"""How far a fitted cascade may be off: its posterior's covariance, to first order at its mode."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.kernels import cascade as kernel
from sottovoce.kernels import curvature
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.models.cascade import FREEDOM, Cascade, node_masses
from sottovoce.questions.queries.models.cells import Cells

TAIL_POINTS = 15  # of the mixture of normal distributions that Student's t is
SMALLEST_INFORMATION = 1e-6
SMALLEST_WEIGHT = 1e-3  # of a prior: the data alone then say how far a logit may be off


@lru_cache(maxsize=1)
def _tail_factors() -> Floats:
    """Equally likely precisions: Student's t is normal with variance scale^2 / factor."""
    gamma = imported("scipy.stats").gamma
    middles = (np.arange(TAIL_POINTS) + 0.5) / TAIL_POINTS
    factors: Floats = gamma.ppf(middles, FREEDOM / 2, scale=2 / FREEDOM)
    return factors


def tail_weights(fit: Cascade) -> Floats:
    """The precision that a normal prior would need for each logit to spread as it does, (leaves,).

    Around its mode Student's t looks as narrow as a normal distribution of 3/4 of its scale's
    square, though its variance is 3 times that. Where data are weak the mode's curvature therefore
    promises too much: here a logit's mean squared distance from its mode is integrated over the
    tails, given the data, and the prior's precision is what is left of it.
    """
    centres = np.zeros(fit.splits.leaves)
    kernel.fill_centres(node_masses(fit), fit.centre, fit.splits.log_sizes, fit.rho, centres)
    weights = fit.weights.copy()
    factors = _tail_factors()[:, None]  # (points, 1)
    for depth in range(fit.splits.depths):
        nodes = np.arange(1 << depth, 2 << depth)
        nodes = nodes[fit.splits.is_split[nodes]]
        information = np.maximum(fit.information[nodes], SMALLEST_INFORMATION)
        off = fit.logits[nodes] - centres[nodes]  # (nodes,)
        # the mode lies between data and prior: (information data + weight 0) / (both) = off
        data = off * (information + fit.weights[nodes]) / information
        prior = fit.scales[depth] ** 2 / factors  # (points, 1)
        spread = prior + 1.0 / information  # of the data around the centre, (points, nodes)
        fits = -0.5 * np.log(spread) - 0.5 * data**2 / spread
        chances = np.exp(fits - fits.max(axis=0))
        chances /= chances.sum(axis=0)
        means = data * prior / spread
        variances = prior / information / spread
        squares = (chances * (variances + (means - off) ** 2)).sum(axis=0)  # (nodes,)
        weights[nodes] = np.maximum(1.0 / squares - information, SMALLEST_WEIGHT)
    return weights


def logit_curvature(fit: Cascade, cells: Cells, weights: Floats) -> Floats:
    """How sharply the log posterior bends in all logits together, (leaves, leaves).

    Args:
        fit: Where it is looked at.
        cells: What was fitted.
        weights: The prior's precisions, (leaves,).
    """
    splits = fit.splits
    masses = node_masses(fit)
    lows = splits.places[cells.lows]
    highs = splits.places[cells.highs]
    precisions = 1.0 / cells.variances(cells.shares(fit.frequencies))
    products = curvature.cell_products(lows, highs, precisions, splits.leaves)
    bends: Floats = curvature.logit_products(products, masses)
    curvature.add_prior(weights, masses, splits.log_sizes, splits.is_split, fit.rho, bends)
    return bends


def covariance_root(fit: Cascade, cells: Cells) -> Floats:
    """A matrix R, (rank, size), with R' R the covariance of the errors of all frequencies."""
    linalg = imported("scipy.linalg")
    splits = fit.splits
    nodes = np.flatnonzero(splits.is_split)
    if nodes.size == 0:
        return np.zeros((1, splits.size))
    bends = logit_curvature(fit, cells, tail_weights(fit))
    root = np.linalg.cholesky(bends[np.ix_(nodes, nodes)])
    slopes = curvature.leaf_slopes(node_masses(fit))  # (leaves, leaves)
    slopes = slopes[np.ix_(nodes, splits.places[:-1])]  # (rank, size)
    spread: Floats = linalg.solve_triangular(root, slopes, lower=True, check_finite=False)
    return spread
