"""The cells of many grids of one dimension, one beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers

SMALLEST_VARIANCE = 1e-18  # of a share: what nobody strays from would have an infinite weight


@dataclass(frozen=True, eq=False)
class Cells:
    """Intervals of codes with their estimated shares; all arrays are (cells,).

    The variance of a cell that holds the share f is ``floors + slopes f + f / people``. That is
    what counts in a fit of all cells of a grid together: they hold 1, and errors that add up to
    nothing are worth what independent ones with ``f / people`` are, not ``f (1 - f) / people``.
    """

    lows: Integers
    highs: Integers  # behind the last code
    values: Floats
    floors: Floats
    slopes: Floats
    people: Floats

    def variances(self, shares: Floats) -> Floats:
        """The variances of cells that hold these shares, (cells,)."""
        held = np.clip(shares, 0.0, 1.0)
        variances = self.floors + held * self.slopes + held / self.people
        return np.maximum(variances, SMALLEST_VARIANCE)

    def shares(self, frequencies: Floats) -> Floats:
        """What the cells hold of some frequencies, (cells,)."""
        sums = np.concatenate([[0.0], np.cumsum(frequencies)])
        held: Floats = sums[self.highs] - sums[self.lows]
        return held


def correlated_floor(grid: GridEvidence, values: Floats, floor: float) -> float:
    """The floor that cells have among those of their grid.

    Cells of an oracle whose estimates always add up to 1 (subset selection) err against each other:
    all variance lies in k - 1 of k directions, in each of which it is k / (k - 1) of a cell's.
    """
    count = values.size
    adds_up = count > 1 and abs(values.sum() - 1.0) < 1e-9
    return floor * count / (count - 1) if adds_up else floor


def cells_of(evidence: Sequence[GridEvidence], axis: int) -> Cells:
    """All that grids say of one axis; cells of several axes are summed over the others."""
    columns: list[tuple[Integers, Integers, Floats, Floats, Floats, Floats]] = []
    for grid in evidence:
        if axis not in grid.axes:
            continue
        place = grid.axes.index(axis)
        edges = grid.edges[place]
        others = tuple(k for k in range(len(grid.axes)) if k != place)
        values = grid.values.sum(axis=others)  # (cells of this axis,)
        summed = grid.values.size // values.size
        floor = correlated_floor(grid, grid.values, grid.floor) * summed
        whole = np.ones(values.size)
        columns.append(
            (
                edges[:-1],
                edges[1:],
                values,
                whole * floor,
                whole * grid.slope,
                whole * grid.people,
            )
        )
    lows, highs, values, floors, slopes, people = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    keep = lows < highs
    return Cells(
        lows[keep].astype(np.int64),
        highs[keep].astype(np.int64),
        values[keep],
        floors[keep],
        slopes[keep],
        people[keep],
    )
