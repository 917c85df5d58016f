"""One dimension: a cascade of splits fitted to the cells of many grids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.kernels import cascade as kernel
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.models.cells import GridCells
from sottovoce.questions.queries.models.splits import Splits, splits_of

FREEDOM = 3.0  # of the deviations' Student's t
NEIGHBOURS = 0.9  # how much of the neighbours' slope an ordinal's split takes over; rho
SCALE_GUESS = float(np.exp(-3.0))  # of a depth's deviations
SCALE_WEIGHT = 0.5  # how many logits that guess is worth
SCALE_LINK = 4.0  # how many logits the scales of the neighbouring depths are worth
FIRST_SCALE = 0.5
STEPS = 120
PASSES = 2  # the second with the variances that the first one found


@dataclass(frozen=True, eq=False)
class Cascade:
    """A fitted cascade: the frequencies of all codes, and how its logits err together."""

    splits: Splits
    logits: Floats  # (leaves,)
    centre: Floats  # what the prior expects of them before it looks at neighbours, (leaves,)
    scales: Floats  # by depth
    information: Floats  # what the cells say of each logit, (leaves,)
    weights: Floats  # what the prior says of it, (leaves,)
    rho: float

    @property
    def frequencies(self) -> Floats:
        """The share of each code, (size,)."""
        leaves = np.empty((1, self.splits.leaves))
        kernel.fill_leaves(self.logits[None, :], leaves)
        frequencies: Floats = leaves[0, self.splits.places[:-1]]
        return frequencies


def fit_cascade(
    cells: GridCells,
    size: int,
    *,
    is_ordered: bool = True,
    base: Floats | None = None,
    steps: int = STEPS,
) -> Cascade:
    """Fit a cascade to the cells of one dimension.

    Args:
        cells: What grids say of it.
        size: The number of its codes.
        is_ordered: Whether neighbouring codes are alike; not for categories.
        base: Frequencies around which the fit deviates, (size,); by default none.
        steps: Of Newton's method, in each pass.

    Returns:
        The fit, the same whenever it is asked for.
    """
    splits = splits_of(size)
    rho = NEIGHBOURS if is_ordered and base is None else 0.0
    frequencies = np.full(size, 1.0 / size) if base is None else base
    centre = splits.base if base is None else splits.logits(base)
    logits = centre.copy()
    scales = np.full(splits.depths, FIRST_SCALE)
    lows = splits.places[cells.lows]
    highs = splits.places[cells.highs]
    for _ in range(PASSES):
        precisions = cells.precisions(cells.shares(frequencies))
        information, weights = kernel.fit_splits(
            lows,
            highs,
            cells.values,
            precisions,
            centre,
            splits.log_sizes,
            splits.is_split,
            rho,
            FREEDOM,
            SCALE_GUESS,
            SCALE_WEIGHT,
            SCALE_LINK,
            steps,
            logits,
            scales,
        )
        fitted = Cascade(splits, logits, centre, scales, information, weights, rho)
        frequencies = fitted.frequencies
    return fitted


def node_masses(fit: Cascade) -> Floats:
    """The mass of every node, (2 leaves,)."""
    masses = np.empty(2 * fit.splits.leaves)
    kernel.fill_masses(fit.logits, masses)
    return masses
