"""Constrained inference over hierarchies: the least squares estimate from all levels together.

Let B(l) be the matrix over codes that is 1 where two codes share an interval of level l. Levels of
one hierarchy are nested, so that all B(l), and their products over dimensions, share their
eigenspaces: differences between the intervals of a level within those of the level above. Hence
the least squares estimate, and its errors, need no matrix to be inverted (hay2010boosting has it
for one dimension and equal errors).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.queries.evidence import Floats, GridEvidence
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.hierarchy import Hierarchies, Hierarchy, Level

MAX_BLOCK = 1 << 22  # weights of cells that are held at once


def padded_size(one: Hierarchy) -> int:
    """The codes of a dimension, and those that nobody has, up to a whole number of intervals."""
    return one.widths[0]


def contrasts(one: Hierarchy, weights: Floats) -> list[Floats]:
    """The parts of weights that differ at each level: their means over its intervals, less those
    over the intervals above.

    Codes beyond the last weigh as much as the last one: nobody has them, and what is even over
    all is known exactly.

    Args:
        one: the hierarchy.
        weights: (terms, size).

    Returns:
        For each level (terms, intervals of the padded codes).
    """
    extra = padded_size(one) - one.size
    full = np.pad(weights, ((0, 0), (0, extra)), mode="edge")
    found = []
    above: Floats | None = None
    for width in one.widths:
        means = full.reshape(len(full), -1, width).mean(axis=2)
        if above is None:
            found.append(means)
        else:
            found.append(means - np.repeat(above, means.shape[1] // above.shape[1], axis=1))
        above = means
    return found


def stacked(one: Hierarchy, selections: Sequence[Term], axis: int) -> Floats:
    """The weights of a dimension's codes in each selection, (selections, size)."""
    whole = np.ones(one.size)
    return np.stack([np.asarray(each.get(axis, whole), float) for each in selections])


@dataclass(frozen=True)
class Precisions:
    """How well each level is known, and what follows for each eigenspace.

    ``by_level``: 1 / the variance of a cell, (levels of the first dimension, ...); 0 where nobody
    answered.
    """

    hierarchies: Hierarchies
    by_level: Floats

    @cached_property
    def inverse(self) -> Floats:
        """1 / eigenvalue of the information about the codes, for each eigenspace; 0 for the
        whole, which is known. Eigenspaces are numbered as levels are.
        """
        # lambda(j) = sum over levels l >= j of  precision(l) x codes in an interval of l
        information = self.by_level.copy()
        for axis, one in enumerate(self.hierarchies.each):
            shape = [1] * information.ndim
            shape[axis] = -1
            information = information * np.array(one.widths, float).reshape(shape)
        for axis in range(information.ndim):
            backwards = np.flip(information, axis)
            information = np.flip(np.cumsum(backwards, axis), axis)
        information[(0,) * information.ndim] = np.inf
        with np.errstate(divide="ignore"):
            inverse = 1 / information
        return np.where(np.isfinite(inverse), inverse, 0.0)

    @cached_property
    def unheard(self) -> NDArray[np.bool_]:
        """The eigenspaces of which nobody said anything, as too few people answered."""
        unheard = self.inverse == 0
        unheard[(0,) * unheard.ndim] = False
        return np.asarray(unheard)

    def variances(self, selections: Sequence[Term]) -> Floats:
        """Of the estimates of some selections, (selections,)."""
        total = np.broadcast_to(self.inverse, (len(selections), *self.inverse.shape))
        for axis, one in enumerate(self.hierarchies.each):
            weights = stacked(one, selections, axis)
            # |Q(j) u|^2 for each level j: (selections, levels)
            parts = contrasts(one, weights)
            squared = [
                (part**2).sum(axis=1) * width for part, width in zip(parts, one.widths, strict=True)
            ]
            total = np.einsum("ij...,ij->i...", total, np.stack(squared, axis=1))
        return np.asarray(total)


@dataclass(frozen=True, eq=False)
class LatticeTable(FittedTable):
    """The least squares estimate from what people said of all levels; the whole is known.

    A level's cell errs by ``floor``, as coins have it, and as if people were spread evenly by
    what grows with its share; errors of answers are then computed with the shares estimated.
    Differences of which nobody said anything are taken for 0, and may err by all they can be.
    """

    hierarchies: Hierarchies
    evidence: Mapping[Level, GridEvidence]

    @property
    def is_unbiased(self) -> bool:  # type: ignore[override]
        return not self.precisions.unheard.any()

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(one.size for one in self.hierarchies.each)

    @cached_property
    def precisions(self) -> Precisions:
        """Of all levels."""
        by_level = np.zeros([one.height + 1 for one in self.hierarchies.each])
        for level, grid in self.evidence.items():
            by_level[level] = 1 / even_variance(grid, grid.values.size)
        return Precisions(self.hierarchies, by_level)

    def joint(self, terms: Sequence[Term]) -> Joint:
        parts = [
            contrasts(one, stacked(one, terms, axis))
            for axis, one in enumerate(self.hierarchies.each)
        ]
        # what is even over all is known
        values = np.asarray(prod(each[0][:, 0] for each in parts))
        covariance = np.zeros((len(terms), len(terms)))
        for level, grid in self.evidence.items():
            means = np.zeros(len(terms))
            for rows in self._blocks(level, len(terms)):
                cells = self._weights(level, parts, rows)  # (terms, cells)
                own = grid.values[rows].ravel()
                values = values + cells @ own
                covariance += _block_covariance(grid, cells, own)
                means += cells @ np.clip(own, 0, 1)
            # who of all people answers this grid: shares of a sample go together
            covariance -= np.outer(means, means) * (1 - grid.part) / grid.people
        for space in np.argwhere(self.precisions.unheard):
            # (u . Q f)^2 <= |Q u|^2 |f|^2, and shares have |f|^2 <= 1
            missed = np.ones((len(terms), len(terms)))
            for axis, depth in enumerate(space):
                part = parts[axis][depth]  # (terms, intervals)
                missed = missed * (part @ part.T) * self.hierarchies.each[axis].widths[depth]
            covariance += missed
        return Joint(values, covariance)

    def _blocks(self, level: Level, terms: int) -> list[slice]:
        """Slices of a level's first cut dimension, so that not too much is held at once."""
        counts = [self.hierarchies.each[axis].counts[depth] for axis, depth in enumerate(level)]
        first = next(counts[axis] for axis in self.hierarchies.axes(level))
        rest = prod(counts) // first
        step = max(1, MAX_BLOCK // (rest * terms))
        return [slice(start, min(start + step, first)) for start in range(0, first, step)]

    def _weights(self, level: Level, parts: Sequence[Sequence[Floats]], rows: slice) -> Floats:
        """How much each cell of a level counts in each term, (terms, cells).

        a(l) = precision(l) x sum over eigenspaces j <= l of (contrast j of u, summed over the
        codes of each cell) / lambda(j)
        """
        terms = len(parts[0][0])
        inverse = self.precisions.inverse[tuple(slice(0, depth + 1) for depth in level)]
        total = np.broadcast_to(inverse, (terms, *inverse.shape))
        is_first = True
        for axis, depth in enumerate(level):
            one = self.hierarchies.each[axis]
            # the contrast of each level above, on the intervals of this one: (terms, j, intervals)
            spread = []
            for part in parts[axis][: depth + 1]:
                times = one.widths[0] // one.widths[depth] // part.shape[1]
                spread.append(np.repeat(part, times, axis=1)[:, : one.counts[depth]])
            summed = np.stack(spread, axis=1) * one.widths[depth]
            if depth and is_first:
                summed = summed[:, :, rows]
                is_first = False
            # (terms, j of this axis, others...) -> (terms, others..., intervals)
            others = total.shape[2:]
            flat = total.reshape(terms, total.shape[1], -1).transpose(0, 2, 1)
            total = (flat @ summed).reshape(terms, *others, -1)
        return np.asarray(total.reshape(terms, -1) * self.precisions.by_level[level])


def even_variance(grid: GridEvidence, cells: int) -> float:
    """The variance of a cell beside the others, if people were spread evenly over all of them."""
    per_share = grid.slope + (1 - grid.part) / grid.people
    return max(grid.floor - grid.cross + per_share / cells, np.finfo(float).tiny)


def _block_covariance(grid: GridEvidence, cells: Floats, own: Floats) -> Floats:
    """What some cells of a grid add to the covariance of terms that weigh them so.

    Args:
        grid: of the cells.
        cells: their weights, (terms, cells).
        own: their estimated shares, (cells,).
    """
    shares = np.clip(own, 0, 1)
    per_share = grid.slope + (1 - grid.part) / grid.people
    by_cell = grid.floor - grid.cross + per_share * shares
    return np.asarray((cells * by_cell) @ cells.T)


def expected_precisions(
    hierarchies: Hierarchies, grids: Mapping[Level, tuple[float, float, float]], people: float
) -> Precisions:
    """Those of a plan, if people are shared out evenly over its levels.

    Args:
        hierarchies: whose levels they are.
        grids: by level (floor, slope, cross) of one report.
        people: of all levels.
    """
    by_level = np.zeros([one.height + 1 for one in hierarchies.each])
    part = 1 / len(grids)
    for level in product(*(range(count) for count in by_level.shape)):
        if level not in grids:
            continue
        floor, slope, cross = grids[level]
        cells = prod(one.counts[depth] for one, depth in zip(hierarchies.each, level, strict=True))
        variance = floor - cross + (slope + 1 - part) / cells
        by_level[level] = people * part / max(variance, np.finfo(float).tiny)
    return Precisions(hierarchies, by_level)
