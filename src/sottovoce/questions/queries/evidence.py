"""What the people of one grid said: noisy shares of its cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GridEvidence:
    """Unbiased shares of a grid's cells, and how far they stray.

    A grid cuts one or more dimensions into intervals of codes; its cells are all combinations.
    The variance of a cell that holds the share f of the grid's people is ``floor + slope * f``,
    for the coins alone; that these people stand for all adds ``f (1 - f) / people``.
    With weights, a share is one of the weight, and the same holds per squared weight.
    """

    axes: tuple[int, ...]  # which dimensions it is about
    edges: tuple[
        Integers, ...
    ]  # for each axis where its intervals begin, and the end: (cells + 1,)
    values: Floats  # (cells of the first axis, ...)
    floor: float
    slope: float
    people: float  # of this grid, or as many as its weights are worth: W^2 / sum w^2
