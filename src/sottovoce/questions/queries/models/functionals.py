"""Quantiles of a dimension itself, from a fitted table; a mean is a term with weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import FittedTable, Term

DRAWS = 400  # of a table that has none of its own
SEED = 7
LEAST_VARIANCE = 1e-15  # so that a covariance has a root


@dataclass(frozen=True, eq=False)
class Functional:
    """A number that follows from a table, and what it might be."""

    value: float
    draws: Floats  # (draws,)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """(low, high): quantiles of the draws."""
        low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def quantile_codes(
    table: FittedTable, axis: int, share: float, within: Term | None = None
) -> Functional:
    """The point up to which a share of the people are, in codes of a dimension.

    A code c stands for the interval from c to c + 1, within which people are spread evenly; the
    median of a dimension whose people all have code 3 is therefore 3.5.

    Args:
        table: A method's table; its draws are used, or normal ones in their place.
        axis: The dimension.
        share: From 0 to 1.
        within: A selection of the other dimensions; by default everybody.
    """
    size = table.sizes[axis]
    others = dict(within or {})
    terms = [{**others, axis: row} for row in np.tri(size)]  # everybody up to each code
    joint = table.joint(terms)
    draws = joint.draws
    if draws is None:
        root = np.linalg.cholesky(joint.covariance + LEAST_VARIANCE * np.eye(size))
        noise = np.random.default_rng(SEED).standard_normal((DRAWS, size))
        draws = joint.values + noise @ root.T
    found = np.array([_crossing(row, share) for row in (joint.values, *draws)])
    return Functional(float(found[0]), found[1:])


def _crossing(sums: Floats, share: float) -> float:
    """Where sums that should rise reach a share of their last."""
    rising = np.maximum.accumulate(np.append(0.0, sums))
    target = share * max(rising[-1], 0.0)
    place = int(np.searchsorted(rising, target, side="left"))
    if place == 0:
        return 0.0
    place = min(place, sums.size)
    step = rising[place] - rising[place - 1]
    part = (target - rising[place - 1]) / step if step > 0 else 1.0
    return float(place - 1 + part)
