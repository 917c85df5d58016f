"""Two dimensions, hardly shrunk: what intervals rest on where nothing is quite unbiased.

No grid of two dimensions tells all combinations of codes apart, so that a range that cuts through
cells has no unbiased answer. Here every block of the fitted table may be off by as much as it
holds, or would hold if its axes were independent. What the reports say of that decides, and what
they do not say stays a part of the error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.models.planes import Halving, part_sums, rectangles_of
from sottovoce.questions.queries.models.unbiased import crowd_covariance, linear_covariance

SMALLEST_BLOCK = 1e-9  # of all people: how far an empty block may be off


class UnbiasedPlane:
    """Sums over two dimensions that follow the reports wherever these say something.

    Args:
        evidence: What the people of each grid said.
        axes: The two dimensions.
        frequencies: Of each of them, as fitted and as they might be, (1 + draws, size).
        halvings: How each is cut into parts.
        table: What the blocks hold as fitted, (parts, parts).
    """

    def __init__(
        self,
        evidence: Sequence[GridEvidence],
        axes: tuple[int, int],
        frequencies: tuple[Floats, Floats],
        halvings: tuple[Halving, Halving],
        table: Floats,
    ) -> None:
        sizes = (halvings[0].size, halvings[1].size)
        rectangles, self.cells = rectangles_of(evidence, axes, sizes)
        self.people = sum(grid.people for grid in evidence)
        self._frequencies = frequencies
        self._halvings = halvings
        self._table = table
        blocks = table.ravel()  # (blocks,)
        inside = [
            _inside(frequencies[axis][0], halvings[axis], rectangles[:, 2 * axis : 2 * axis + 2])
            for axis in range(2)
        ]
        # how much of each block each cell holds, (cells, blocks)
        self._holds = (inside[0][:, :, None] * inside[1][:, None, :]).reshape(len(rectangles), -1)
        self._held = self._holds @ blocks
        even = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel()
        spread = np.maximum(np.maximum(blocks, even), SMALLEST_BLOCK)
        self._prior = spread**-2.0  # precisions of the blocks, (blocks,)
        self._precisions = self.cells.precisions(self._held)
        weighted = self._holds * self._precisions[:, None]
        with one_thread():
            bends = self._holds.T @ weighted + np.diag(self._prior)
            self._factor = imported("scipy.linalg").cho_factor(bends, check_finite=False)

    def sums(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Weighted sums, (sums,), and the covariance of their errors, (sums, sums).

        Args:
            x: Weights of the first dimension's codes, (sums, size).
            y: The same of the second.
        """
        means = [
            _part_means(weights, rows, halving)
            for weights, rows, halving in zip(
                (x, y), self._frequencies, self._halvings, strict=True
            )
        ]  # (sums, 1 + draws, parts) each
        selections = np.einsum("si,sj->ijs", means[0][:, 0], means[1][:, 0])
        selections = selections.reshape(-1, len(x))  # (blocks, sums)
        blocks = self._table.ravel()
        with one_thread():
            solved = imported("scipy.linalg").cho_solve(
                self._factor, selections, check_finite=False
            )
            pulls = (self._holds @ solved) * self._precisions[:, None]  # (cells, sums)
            untold = solved.T @ (self._prior[:, None] * solved)
        values = blocks @ selections + (self.cells.values - self._held) @ pulls
        crowd = crowd_covariance(blocks, selections)
        covariance = linear_covariance(self.cells, self._held, pulls, crowd, self.people)
        return values, covariance + untold + self._within(means)

    def _within(self, means: Sequence[Floats]) -> Floats:
        """What the shares of codes within parts may be off, (sums, sums)."""
        drawn = np.einsum("sdi,ij,sdj->ds", means[0], self._table, means[1], optimize=True)
        off = drawn[1:] - drawn[0]
        found: Floats = off.T @ off / max(len(off), 1)
        return found


def _inside(frequencies: Floats, halving: Halving, ends: Integers) -> Floats:
    """How much of each part of an axis lies between two codes, (cells, parts)."""
    sums = np.append(0.0, np.cumsum(frequencies))
    starts = halving.starts(halving.depths)
    first = np.maximum(ends[:, :1], starts[:-1])
    last = np.maximum(np.minimum(ends[:, 1:], starts[1:]), first)
    whole = sums[starts[1:]] - sums[starts[:-1]]
    held: Floats = np.divide(
        sums[last] - sums[first],
        whole,
        out=np.zeros((len(ends), len(whole))),
        where=whole > 0,
    )
    return held


def _part_means(weights: Floats, rows: Floats, halving: Halving) -> Floats:
    """The mean weight in each part, by fitted and drawn frequencies, (sums, 1 + draws, parts)."""
    whole = part_sums(rows, halving)  # (1 + draws, parts)
    means = np.empty((len(weights), *whole.shape))
    for place, weight in enumerate(weights):
        held = part_sums(rows * weight, halving)
        means[place] = np.divide(held, whole, out=np.zeros_like(held), where=whole > 0)
    return means
