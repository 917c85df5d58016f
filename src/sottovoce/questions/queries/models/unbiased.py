"""Weighted least squares on the same cells: right on average whatever the people are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.kernels.curvature import cell_products
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.queries.evidence import Floats, GridEvidence, crowd_worth
from sottovoce.questions.queries.models.cells import CellErrors, GridCells, cells_of


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Sums of frequencies as they follow from the values of cells: values @ pulls + constants."""

    pulls: Floats  # (cells, sums)
    constants: Floats  # (sums,)


class LeastSquares:
    """Frequencies that add up to 1, with the least weighted squares of all cells' misfits.

    The weights are those of equal frequencies, so that they do not depend on what was heard. Any
    weights give an unbiased answer: what was solved for one crowd also serves its groups, and sums
    of a public weight, as long as they have answered the same grids.

    Args:
        cells: What grids say; together they must tell all codes apart.
        size: The number of codes.
    """

    def __init__(self, cells: GridCells, size: int) -> None:
        self.cells = cells
        self.size = size
        equal = np.full(size, 1.0 / size)
        self.precisions = cells.precisions(cells.shares(equal))
        products = cell_products(cells.lows, cells.highs, self.precisions, size)  # K = A' V^-1 A
        with one_thread():
            self._factor = imported("scipy.linalg").cho_factor(products, check_finite=False)
        self._ones = self._solved(np.ones((size, 1)))[:, 0]  # K^-1 1

    def _solved(self, right: Floats) -> Floats:
        """K^-1 times a matrix."""
        with one_thread():
            found: Floats = imported("scipy.linalg").cho_solve(
                self._factor, right, check_finite=False
            )
        return found

    def map(self, selections: Floats) -> LinearMap:
        """The map to weighted sums, of weights (size, sums)."""
        # with a multiplier u for the sum, f = K^-1 (A' V^-1 y + u 1) and 1' f = 1
        solved = self._solved(selections)  # (size, sums)
        constants = solved.sum(axis=0) / self._ones.sum()
        solved -= np.outer(self._ones, constants)
        sums = np.zeros((self.size + 1, selections.shape[1]))
        np.cumsum(solved, axis=0, out=sums[1:])
        held = sums[self.cells.highs] - sums[self.cells.lows]  # (cells, sums)
        return LinearMap(held * self.precisions[:, None], constants)


def linear_covariance(
    cells: CellErrors, held: Floats, pulls: Floats, crowd: Floats, people: float
) -> Floats:
    """The covariance of a linear estimate's errors towards the crowd's own sums, (sums, sums).

    Coins: cells err as CellErrors has it. People: those of a grid are a sample of the crowd, which
    all are who answered some grid.

    Args:
        cells: What the estimate is of.
        held: What the cells hold, (cells,).
        pulls: The map from the cells' values to sums, (cells, sums).
        crowd: The covariance of the sums over one person drawn from the crowd, (sums, sums).
        people: How many there are, in all grids, also in those about other dimensions.
    """
    held = np.clip(held, 0.0, 1.0)
    alone = np.maximum(cells.floors + held * cells.slopes + held / cells.people, 0.0)
    firsts = np.flatnonzero(np.diff(cells.grids, prepend=-1))  # of each grid its first cell
    asked = cells.people[firsts]  # (grids,)
    # people of a grid:  - (F' pulls)' (F' pulls) / people
    samples = np.add.reduceat(pulls * held[:, None], firsts, axis=0)  # (grids, sums)
    totals = np.add.reduceat(pulls, firsts, axis=0)  # 1' pulls, (grids, sums)
    crosses, ties = cells.crosses[firsts], cells.ties[firsts]
    covariance = (pulls * alone[:, None]).T @ pulls
    covariance -= (samples / asked[:, None]).T @ samples
    # coins of two cells:  cross (1' pulls)' (1' pulls) - tie (F' pulls)' (1' pulls) - ...
    covariance += (totals * crosses[:, None]).T @ totals
    tied = (samples * ties[:, None]).T @ totals
    covariance -= tied + tied.T
    result: Floats = covariance - crowd / people
    return result


def crowd_covariance(frequencies: Floats, selections: Floats) -> Floats:
    """The covariance of weighted sums over one person of a crowd, (sums, sums).

    Args:
        frequencies: Of the crowd, (codes,).
        selections: Weights of codes, (codes, sums).
    """
    positive = np.clip(frequencies, 0.0, None)
    means = positive @ selections
    found: Floats = (selections * positive[:, None]).T @ selections - np.outer(means, means)
    return found


def planned_covariance(evidence: Sequence[GridEvidence], selections: Floats) -> Floats:
    """The covariance of unbiased sums' errors, if people are spread evenly: (sums, sums).

    Args:
        evidence: Grids that will be asked, of one dimension.
        selections: Weights of codes, (size, sums).
    """
    cells = cells_of(evidence, 0)
    size = len(selections)
    pulls = LeastSquares(cells, size).map(selections).pulls
    people = sum(grid.people for grid in evidence)
    even = np.full(size, 1.0 / size)
    crowd = crowd_covariance(even, selections)
    return linear_covariance(cells, cells.shares(even), pulls, crowd, people)


class UnbiasedLine:
    """Unbiased sums of one dimension's frequencies, and how they err.

    Args:
        evidence: What the people of each grid said.
        size: The number of codes.
        axis: The number of the dimension.
        frequencies: As another fit has them, where variances are looked at; by default its own.
        like: One of the same grids, whose equations are solved already.
    """

    def __init__(
        self,
        evidence: Sequence[GridEvidence],
        size: int,
        *,
        axis: int = 0,
        frequencies: Floats | None = None,
        like: UnbiasedLine | None = None,
    ) -> None:
        self.cells = cells_of(evidence, axis)
        self.size = size
        self.people = sum(grid.people for grid in evidence)
        self.cohorts = tuple((grid.cohort, grid.ask) for grid in evidence if axis in grid.axes)
        self._errors: CellErrors = self.cells
        self._squares: LeastSquares
        if like is not None and like.cohorts == self.cohorts:
            self._squares = like._squares
            # of a weight: which cohort drew those who hold much of it was chance, so that the
            # cohorts that did not are as far from the crowd as those that did
            self.people = crowd_worth(evidence)
            asked = like.cells.people * (self.people / like.people)
            self._errors = replace(self.cells, people=asked)
        else:
            self._squares = LeastSquares(self.cells, size)
        self._frequencies = frequencies

    @property
    def frequencies(self) -> Floats:
        """Where variances are looked at, (size,)."""
        if self._frequencies is None:
            self._frequencies = self.values(np.eye(self.size))
        return self._frequencies

    def values(self, selections: Floats) -> Floats:
        """Weighted sums, (sums,), of weights (size, sums)."""
        linear = self._squares.map(selections)
        found: Floats = self.cells.values @ linear.pulls + linear.constants
        return found

    def sums(self, selections: Floats) -> tuple[Floats, Floats]:
        """Weighted sums, (sums,), and the covariance of their errors, of weights (size, sums)."""
        linear = self._squares.map(selections)
        values = self.cells.values @ linear.pulls + linear.constants
        held = self.cells.shares(self.frequencies)
        crowd = crowd_covariance(self.frequencies, selections)
        return values, linear_covariance(self._errors, held, linear.pulls, crowd, self.people)

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of errors of weighted sums, (sums, sums), of weights (size, sums)."""
        return self.sums(selections)[1]

    def root(self) -> Floats:
        """A matrix R, (size, size), with R' R the covariance of the errors of all frequencies."""
        squares, axes = np.linalg.eigh(self.covariance(np.eye(self.size)))
        found: Floats = np.sqrt(np.maximum(squares, 0.0))[:, None] * axes.T
        return found


def unbiased_line(
    evidence: Sequence[GridEvidence],
    size: int,
    *,
    axis: int = 0,
    frequencies: Floats | None = None,
    like: UnbiasedLine | None = None,
) -> UnbiasedLine | None:
    """The same as :class:`UnbiasedLine`, or None if the grids heard do not tell codes apart."""
    try:
        return UnbiasedLine(evidence, size, axis=axis, frequencies=frequencies, like=like)
    except np.linalg.LinAlgError:
        return None
