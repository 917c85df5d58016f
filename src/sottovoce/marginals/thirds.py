"""Three-way structure by evidence: what is left of products of three signs beyond what their pairs say.

The residual of attribute triples, scaled by the spread of their signs, has a prior of a mass at zero and normals of
several widths; the weights are fitted to all triples at once, so that structure is believed where there is some.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.marginals.method import Floats

WIDTHS = np.concatenate([[0.0], np.geomspace(0.02, 0.8, 10)])
PSEUDO_COUNTS = np.concatenate([[3.0], np.full(10, 0.2)])
ROUNDS = 200


@dataclass(frozen=True)
class Shrunk:
    """Posterior means and variances of effects, and the fitted weight of each width."""

    mean: Floats
    variance: Floats
    weights: Floats


def shrink(effects: Floats, variances: Floats, groups: NDArray[np.int64]) -> Shrunk:
    """Effects seen with noise, shrunk toward zero; those of one group share their width."""
    squares = WIDTHS[:, None] ** 2
    wide = squares + variances
    logs = -0.5 * np.log(wide) - 0.5 * effects**2 / wide
    count = int(groups.max()) + 1 if len(groups) else 0
    by_group = np.array([np.bincount(groups, row, minlength=count) for row in logs])
    likelihood = np.exp(by_group - by_group.max(0))
    weights = np.full(len(WIDTHS), 0.5 / (len(WIDTHS) - 1))
    weights[0] = 0.5
    for _ in range(ROUNDS):
        share = weights[:, None] * likelihood
        share /= share.sum(0)
        weights = share.sum(1) + PSEUDO_COUNTS
        weights /= weights.sum()
    share = weights[:, None] * likelihood
    share = (share / share.sum(0))[:, groups]
    keep = squares / wide
    mean = (share * keep).sum(0) * effects
    variance = (share * (keep * variances + (keep * effects) ** 2)).sum(0) - mean**2
    return Shrunk(mean, np.maximum(variance, 0), weights)
