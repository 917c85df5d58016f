"""Weighted least squares on the same cells: right on average whatever the people are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.kernels.curvature import cell_products
from sottovoce.questions.queries.evidence import Floats, GridEvidence
from sottovoce.questions.queries.models.cells import GridCells, cells_of
from sottovoce.questions.queries.models.line import LineTable


def least_squares(cells: GridCells, size: int) -> tuple[Floats, Floats]:
    """Frequencies that add up to 1, with the least weighted squares of all cells' misfits.

    The weights are those of equal frequencies, so that they do not depend on what was heard.

    Args:
        cells: What grids say; together they must tell all codes apart.
        size: The number of codes.

    Returns:
        The frequencies, (size,), and their linear map from the cells' values: frequencies =
        map @ values + what does not depend on them, (size, cells).
    """
    equal = np.full(size, 1.0 / size)
    precisions = cells.precisions(cells.shares(equal))
    products = cell_products(cells.lows, cells.highs, precisions, size)  # A' V^-1 A
    # with a multiplier for the sum, f solves  [K 1; 1' 0] [f; u] = [A' V^-1 y; 1]
    system = np.ones((size + 1, size + 1))
    system[:size, :size] = products
    system[size, size] = 0.0
    inverse = np.linalg.inv(system)
    sums = np.zeros((size + 1, size))
    sums[1:] = np.cumsum(inverse[:size, :size], axis=0)  # over codes, (size + 1, size)
    pulls = (sums[cells.highs] - sums[cells.lows]) * precisions[:, None]  # (cells, size)
    frequencies = pulls.T @ cells.values + inverse[:size, size]
    return frequencies, pulls.T


def linear_covariance(cells: GridCells, linear: Floats, frequencies: Floats) -> Floats:
    """The covariance of a linear estimate's errors towards the crowd's frequencies, (size, size).

    Coins: cells err by themselves, or against each other where they add up to 1. People: those of
    a grid are a sample of the crowd, and all grids together are the crowd.

    Args:
        cells: What the estimate is of.
        linear: The map from the cells' values to frequencies, (size, cells).
        frequencies: Where the variances are looked at, (size,).
    """
    held = np.clip(cells.shares(frequencies), 0.0, 1.0)
    alone = cells.floors + held * cells.slopes + held / cells.people
    covariance = (linear * np.maximum(alone, 0.0)) @ linear.T
    people = 0.0
    for grid in np.unique(cells.grids):
        own = cells.grids == grid
        asked = cells.people[own][0]
        sample = linear[:, own] @ held[own]
        covariance -= np.outer(sample, sample) / asked
        if cells.adds_up[own][0]:
            total = linear[:, own].sum(axis=1)
            covariance -= np.outer(total, total) * (cells.floors[own][0] / own.sum())
        people += asked
    positive = np.clip(frequencies, 0.0, None)
    crowd = np.diag(positive) - np.outer(positive, positive)
    result: Floats = covariance - crowd / people
    return result


def planned_covariance(evidence: Sequence[GridEvidence], size: int) -> Floats:
    """The covariance of the unbiased table's errors, if people are spread evenly: (size, size)."""
    cells = cells_of(evidence, 0)
    _, linear = least_squares(cells, size)
    return linear_covariance(cells, linear, np.full(size, 1.0 / size))


def fit_unbiased(evidence: Sequence[GridEvidence], size: int) -> LineTable:
    """The unbiased table of one dimension, number 0 of the evidence."""
    cells = cells_of(evidence, 0)
    frequencies, linear = least_squares(cells, size)

    def errors() -> LinearErrors:
        return LinearErrors(linear_covariance(cells, linear, frequencies))

    return LineTable(frequencies, errors, is_unbiased=True)


@dataclass(frozen=True, eq=False)
class LinearErrors:
    """Errors of frequencies whose covariance is known as a matrix."""

    matrix: Floats  # (size, size)

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of errors of weighted sums, (sums, sums), of weights (size, sums)."""
        found: Floats = selections.T @ self.matrix @ selections
        return found

    def root(self) -> Floats:
        """A matrix R, (size, size), with R' R the covariance of the errors of all frequencies."""
        squares, axes = np.linalg.eigh(self.matrix)
        found: Floats = np.sqrt(np.maximum(squares, 0.0))[:, None] * axes.T
        return found
