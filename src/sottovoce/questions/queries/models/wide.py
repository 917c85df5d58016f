"""Two dimensions: answers that rest on a prior so wide that reports decide, for intervals.

No grid of two dimensions tells all combinations of codes apart, so that no answer is unbiased. But
most of what a fit is off by is that its prior draws it to independent dimensions. Here the same
cells are fitted once more, to first order around the fit, with logits that may deviate from it by
WIDE_SCALE: what reports tell is then told by them alone. What they do not tell is left as it was
fitted, and counted to be off by UNTOLD_SCALE.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.kernels import curvature
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers, crowd_worth
from sottovoce.questions.queries.fitted import Joint
from sottovoce.questions.queries.models.planes import (
    Halving,
    Plane,
    halving_of,
    part_sums,
    rectangles_of,
    split_plane,
)

WIDE_BLOCKS = 32  # parts of each axis at most: each block has an unknown of its own
# These constants were settled together: about fifteen settings were compared on all twelve sources
# of two dimensions, by how often intervals held, and then judged by other crowds of these sources.
# of a logit's deviation from the fit, usually 0.3 to 3
WIDE_SCALE = 16.0
UNTOLD_SCALE = 2.0  # of a logit's deviation where reports do not tell it: errors allow for so much
# of the masses around which it is fitted: what the fit takes for empty may move
PRODUCT_PART = 0.1
EVEN_PART = 0.01  # also where an axis has next to nothing
# within a part of an axis blocks are taken for products; the logarithm of a code's share strays by
CODE_SCALE = 0.1  # for each code of the part, and by no more than
MAX_CODE_SCALE = 1.0
SMALLEST_BLOCK_SHARE = 1e-12
SMALLEST_CUT = 1e-9  # of a weight from its part's mean


class WidePlane:
    """Sums over two dimensions that owe next to nothing to a prior, and how they err.

    Args:
        plane: How the fit cuts the axes.
        table: Its masses of blocks, (parts of x, parts of y).
        x: The frequencies of the first axis, (size,).
        y: Of the second.
        evidence: What the people of each grid said.
        axes: The numbers of the two dimensions.
    """

    def __init__(
        self,
        plane: Plane,
        table: Floats,
        x: Floats,
        y: Floats,
        evidence: Sequence[GridEvidence],
        axes: tuple[int, int],
    ) -> None:
        sizes = (plane.x.size, plane.y.size)
        self._halvings = [
            halving_of(each.size, min(WIDE_BLOCKS, 1 << each.depths)) for each in (plane.x, plane.y)
        ]
        self._frequencies = [np.maximum(each, 0.0) + SMALLEST_BLOCK_SHARE for each in (x, y)]
        tree = split_plane(*self._halvings)
        self._rows, self._columns = tree.rows, tree.columns
        summed = _joined(table, [1 << halving.depths for halving in self._halvings])
        self._masses = summed[tree.rows, tree.columns]  # g, (blocks,)
        rectangles, cells = rectangles_of(evidence, axes, sizes)
        self._axes, self._worth = axes, crowd_worth(evidence)
        self._cohorts = _cohorts(evidence)
        inside = [
            _parts_inside(rectangles[:, 2 * axis : 2 * axis + 2], frequencies, halving)
            for axis, (frequencies, halving) in enumerate(
                zip(self._frequencies, self._halvings, strict=True)
            )
        ]
        # A: the share of each block that lies in each cell, if it is a product inside
        held = inside[0][:, tree.rows] * inside[1][:, tree.columns]  # (cells, blocks)
        shares = held @ self._masses
        precisions = cells.precisions(shares)  # of V^-1
        parts = [
            part_sums(frequencies, halving)
            for frequencies, halving in zip(self._frequencies, self._halvings, strict=True)
        ]
        product = parts[0][tree.rows] * parts[1][tree.columns]
        mixed = (1 - PRODUCT_PART - EVEN_PART) * self._masses
        mixed += PRODUCT_PART * product / product.sum() + EVEN_PART / product.size
        slopes = curvature.leaf_slopes(_node_masses(mixed))  # L', (logits, blocks)
        with one_thread():
            bends = slopes @ (held.T @ (held * precisions[:, None])) @ slopes.T  # L' A' V^-1 A L
            bends[np.diag_indices_from(bends)] += 1.0 / WIDE_SCALE**2
            self._factor = imported("scipy.linalg").cho_factor(bends, check_finite=False)
        self._held, self._precisions, self._slopes = held, precisions, slopes
        self._logits = self._deviations(cells.values)
        self._spread = 1.0

    def _deviations(self, heard: Floats) -> Floats:
        """How far logits deviate from the fit, (logits,), by what cells say, (cells,)."""
        # t = (L' A' V^-1 A L + 1 / s^2)^-1 L' A' V^-1 (y - A g)
        misfits = self._precisions * (heard - self._held @ self._masses)
        with one_thread():
            return self._solved(self._slopes @ (self._held.T @ misfits))

    def of_weight(self, table: Floats, evidence: Sequence[GridEvidence]) -> WidePlane | None:
        """The same of a weight of these people; None if its reports are of other grids.

        Weights W^2 / sum w^2 of which are as good as n people have the errors of n people: all
        variances, the prior's too, are taken to grow alike, and the equations are solved already.

        Args:
            table: The masses of blocks of the weight's own fit, (parts of x, parts of y).
            evidence: What the reports say of the weight.
        """
        if _cohorts(evidence) != self._cohorts:
            return None
        sizes = (self._halvings[0].size, self._halvings[1].size)
        _, cells = rectangles_of(evidence, self._axes, sizes)
        found = copy(self)
        summed = _joined(table, [1 << halving.depths for halving in self._halvings])
        found._masses = summed[self._rows, self._columns]
        found._logits = found._deviations(cells.values)
        found._spread = self._worth / crowd_worth(evidence)
        return found

    def _solved(self, right: Floats) -> Floats:
        found: Floats = imported("scipy.linalg").cho_solve(self._factor, right, check_finite=False)
        return found

    def joint(self, selections: Sequence[tuple[Floats, Floats]]) -> Joint:
        """The shares of some selections, by weights of the codes of both axes."""
        weights = [np.stack([each[axis] for each in selections]) for axis in (0, 1)]
        means = [self._means(axis, each) for axis, each in enumerate(weights)]
        chosen = means[0][self._rows] * means[1][self._columns]  # (blocks, selections)
        with one_thread():
            pulls = self._slopes @ chosen  # P, (logits, selections)
            values = self._masses @ chosen + self._logits @ pulls
            solved = self._solved(pulls)  # Q = M^-1 P,  M = L' A' V^-1 A L + 1 / s^2
            # noise  Q' (M - 1 / s^2) Q,  and of logits t that are drawn to 0 by 1 / s^2
            # Q' E[t t'] Q / s^4  =  u^2 Q' Q / s^4
            untold = 1.0 / WIDE_SCALE**2 - UNTOLD_SCALE**2 / WIDE_SCALE**4
            covariance = self._spread * (pulls.T @ solved - untold * solved.T @ solved)
            covariance += self._inside(weights, means)
        return Joint(values, (covariance + covariance.T) / 2)

    def _inside(self, weights: Sequence[Floats], means: Sequence[Floats]) -> Floats:
        """What sums err by because blocks are no products inside, (selections, selections).

        A code k that holds the share f_k of its part strays by s_k in its logarithm, in each block
        by itself:  sum over blocks and codes of (m f_k (w_k - mean w) s_k)^2.

        Args:
            weights: Of the codes of both axes, (selections, codes).
            means: Of each part of both axes, (parts, selections).
        """
        table = np.zeros([1 << halving.depths for halving in self._halvings])
        table[self._rows, self._columns] = np.maximum(self._masses, 0.0)
        count = len(weights[0])
        found = np.zeros((count, count))
        for axis, masses in ((0, table), (1, table.T)):
            pulls, parts = self._code_pulls(axis, weights[axis].T, means[axis])
            if not pulls.size:
                continue
            for place, others in enumerate(means[1 - axis]):  # of each part of the other axis
                off = masses[parts, place, None] * pulls * others  # (codes, selections)
                found += off.T @ off
        return found

    def _code_pulls(self, axis: int, weights: Floats, means: Floats) -> tuple[Floats, Integers]:
        """f_k (w_k - mean w) s_k of the codes of parts that some selection cuts, (codes,
        selections), and the part of each such code.
        """
        halving, frequencies = self._halvings[axis], self._frequencies[axis]
        lengths = np.diff(halving.starts(halving.depths))
        parts = np.repeat(np.arange(lengths.size), lengths)  # (size,)
        off = weights - means[parts]
        is_cut = np.abs(off).max(axis=1) > SMALLEST_CUT
        cut = parts[is_cut]
        shares = frequencies[is_cut] / part_sums(frequencies, halving)[cut]
        strays = np.minimum(CODE_SCALE * lengths[cut], MAX_CODE_SCALE)
        return (shares * strays)[:, None] * off[is_cut], cut

    def _means(self, axis: int, weights: Floats) -> Floats:
        """The mean weight in each part of an axis, (parts, selections), of (selections, codes)."""
        frequencies, halving = self._frequencies[axis], self._halvings[axis]
        whole = np.maximum(part_sums(frequencies, halving), SMALLEST_BLOCK_SHARE)
        found: Floats = part_sums(frequencies * weights, halving) / whole
        return found.T


def _cohorts(evidence: Sequence[GridEvidence]) -> tuple[tuple[int, int], ...]:
    """Whose answers to which asks."""
    return tuple((grid.cohort, grid.ask) for grid in evidence)


def _joined(table: Floats, parts: Sequence[int]) -> Floats:
    """A table of parts that are halves, quarters... of those wanted, added up.

    >>> _joined(np.ones((4, 2)), [2, 2])
    array([[2., 2.],
           [2., 2.]])
    """
    rows, columns = parts
    split = table.reshape(rows, table.shape[0] // rows, columns, table.shape[1] // columns)
    found: Floats = split.sum(axis=(1, 3))
    return found


def _parts_inside(intervals: Integers, frequencies: Floats, halving: Halving) -> Floats:
    """How much of each part of an axis each interval holds, (intervals, parts)."""
    sums = np.append(0.0, np.cumsum(frequencies))
    starts = halving.starts(halving.depths)
    lows = np.maximum(intervals[:, :1], starts[:-1])
    highs = np.maximum(np.minimum(intervals[:, 1:], starts[1:]), lows)
    whole = sums[starts[1:]] - sums[starts[:-1]]
    found: Floats = (sums[highs] - sums[lows]) / np.maximum(whole, SMALLEST_BLOCK_SHARE)
    return found


def _node_masses(leaves: Floats) -> Floats:
    """The mass of every node above some leaves, (2 leaves,)."""
    masses = np.zeros(2 * leaves.size)
    masses[leaves.size :] = leaves
    for node in range(leaves.size - 1, 0, -1):
        masses[node] = masses[2 * node] + masses[2 * node + 1]
    return masses
