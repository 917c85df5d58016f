"""The cells of many grids of one dimension, one beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers

SMALLEST_REST = 1e-6  # of all people: what is not in a cell, or not told by the cells alone
SMALLEST_VARIANCE = 1e-18  # of a share: what nobody strays from would have an infinite weight


@dataclass(frozen=True, eq=False)
class CellErrors:
    """How far the estimated shares of cells stray; all arrays are (cells,).

    By its coins a grid whose cells hold F errs with the covariance
    diag(floors + slopes F) + crosses 1 1' - ties (F 1' + 1 F'), see :func:`coin_law`.
    """

    values: Floats
    floors: Floats
    slopes: Floats
    people: Floats
    grids: Integers  # the number of each cell's grid
    adds_up: NDArray[np.bool_]  # whether the values of its grid always add up to 1
    crosses: Floats
    ties: Floats

    def precisions(self, shares: Floats) -> Floats:
        """What cells that hold these shares count in a fit, (cells,).

        The people of a grid are a sample: with a cell that has too many of them go cells that have
        too few. So the errors of a grid's cells have the covariance A - F F' / people, A diagonal
        with ``floors + slopes F + F / people``, and its inverse is
        A^-1 + A^-1 F F' A^-1 / (people - F' A^-1 F).
        If all estimates of a grid add up to 1, so do the errors to 0, and A^-1 is all that counts.
        If not, the second part is given to the cells one by one: to each what it adds for a change
        of that cell against all others together. That matters for a cell that holds nearly all.
        """
        held = np.clip(shares, 0.0, 1.0)
        variances = self.floors + held * self.slopes + held / self.people
        alone = 1.0 / np.maximum(variances, SMALLEST_VARIANCE)
        pulls = held * alone  # A^-1 F
        totals = np.bincount(self.grids, weights=held * pulls)[self.grids]  # F' A^-1 F
        rest = np.maximum(1.0 - held, SMALLEST_REST)
        change = pulls - (totals - held * pulls) / rest
        together = change**2 / np.maximum(self.people - totals, SMALLEST_REST * self.people)
        return alone + np.where(self.adds_up, 0.0, together)


@dataclass(frozen=True, eq=False)
class GridCells(CellErrors):
    """Intervals of codes with their estimated shares."""

    lows: Integers
    highs: Integers  # behind the last code

    def shares(self, frequencies: Floats) -> Floats:
        """What the cells hold of some frequencies, (cells,)."""
        sums = np.concatenate([[0.0], np.cumsum(frequencies)])
        held: Floats = sums[self.highs] - sums[self.lows]
        return held


def adds_up(values: Floats) -> bool:
    """Whether an oracle's estimates of all cells of a grid add up to 1, as subset selection's."""
    return values.size > 1 and abs(float(values.sum()) - 1.0) < 1e-9


@dataclass(frozen=True)
class CoinLaw:
    """How the shares of a grid's cells err together by their coins, as of CellErrors."""

    floor: float
    slope: float
    cross: float
    tie: float


def coin_law(grid: GridEvidence, cells: int) -> CoinLaw:
    """The law of ``cells`` cells, each the sum of equally many of the grid's own.

    An oracle treats all its values alike. With truth x the estimate of x varies by
    V = floor + slope, that of any other value by the floor, two others vary together by c, and x
    and another one by -g: if all estimates add up to 1, g = V / (k - 1) of k values. Over people
    who hold the shares F that is

        (floor - c) I + (slope + 2 (c + g)) diag(F) + c 1 1' - (c + g) (F 1' + 1 F').
    """
    count = grid.values.size
    joined = count // cells  # of the grid's cells in each
    tie = 0.0
    if adds_up(grid.values):
        tie = grid.cross + (grid.floor + grid.slope) / (count - 1)
    return CoinLaw(
        floor=joined * (grid.floor - grid.cross),
        slope=grid.slope + 2.0 * tie,
        cross=joined**2 * grid.cross,
        tie=joined * tie,
    )


def cells_of(evidence: Sequence[GridEvidence], axis: int) -> GridCells:
    """All that grids say of one axis; cells of several axes are summed over the others."""
    columns: list[tuple[NDArray[Any], ...]] = []
    for number, grid in enumerate(evidence):
        if axis not in grid.axes:
            continue
        place = grid.axes.index(axis)
        edges = grid.edges[place]
        others = tuple(k for k in range(len(grid.axes)) if k != place)
        values = grid.values.sum(axis=others)  # (cells of this axis,)
        law = coin_law(grid, values.size)
        whole = np.ones(values.size)
        settings = (law.floor, law.slope, grid.people, number, adds_up(values), law.cross, law.tie)
        columns.append((edges[:-1], edges[1:], values, *(whole * setting for setting in settings)))
    lows, highs, values, floors, slopes, people, grids, wholes, crosses, ties = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    keep = lows < highs
    return GridCells(
        values[keep],
        floors[keep],
        slopes[keep],
        people[keep],
        grids[keep].astype(np.int64),
        wholes[keep].astype(bool),
        crosses[keep],
        ties[keep],
        lows[keep].astype(np.int64),
        highs[keep].astype(np.int64),
    )
