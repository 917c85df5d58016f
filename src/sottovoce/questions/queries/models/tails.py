"""How far logits spread around their mode when their prior is Student's t."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.questions.queries.evidence import Floats

POINTS = 15  # of the mixture of normal distributions that Student's t is
SMALLEST_LOGIT_INFORMATION = 1e-6
SMALLEST_TAIL_WEIGHT = 1e-3  # the data alone then say how far a logit may be off


@lru_cache(maxsize=8)
def _factors(freedom: float) -> Floats:
    """Equally likely precisions: Student's t is normal with variance scale^2 / factor."""
    gamma = imported("scipy.stats").gamma
    middles = (np.arange(POINTS) + 0.5) / POINTS
    factors: Floats = gamma.ppf(middles, freedom / 2, scale=2 / freedom)
    return factors


def normal_weights(
    off: Floats, information: Floats, weights: Floats, scales: Floats, freedom: float
) -> Floats:
    """The precisions that normal priors would need for logits to spread as they do, (logits,).

    Around its mode Student's t with 3 degrees looks as narrow as a normal distribution of 3/4 of
    its scale's square, though its variance is 3 times that. Where data are weak the mode's
    curvature therefore promises too much: here a logit's mean squared distance from its mode is
    integrated over the tails, given the data, and the prior's precision is what is left of it.

    Args:
        off: How far each logit's mode is from its prior's centre, (logits,).
        information: What the data say of it.
        weights: The prior's precision at the mode.
        scales: The prior's scale.
        freedom: Its degrees of freedom.
    """
    known = np.maximum(information, SMALLEST_LOGIT_INFORMATION)
    # the mode lies between data and prior: (information data + weight 0) / (both) = off
    data = off * (known + weights) / known
    prior = scales**2 / _factors(freedom)[:, None]  # (points, logits)
    spread = prior + 1.0 / known  # of the data around the centre
    fits = -0.5 * np.log(spread) - 0.5 * data**2 / spread
    chances = np.exp(fits - fits.max(axis=0))
    chances /= chances.sum(axis=0)
    means = data * prior / spread
    variances = prior / known / spread
    squares = (chances * (variances + (means - off) ** 2)).sum(axis=0)  # (logits,)
    found: Floats = np.maximum(1.0 / squares - known, SMALLEST_TAIL_WEIGHT)
    return found
