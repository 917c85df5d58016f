"""How far a cascade's answers will be off, before anybody has answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.models.cascade import NEIGHBOURS, Cascade
from sottovoce.questions.queries.models.cells import GridCells, cells_of
from sottovoce.questions.queries.models.planes import Halving, SplitTree, fit_plane
from sottovoce.questions.queries.models.posterior import CascadeErrors
from sottovoce.questions.queries.models.splits import splits_of

# What real people's logits deviate by, in the squared error's terms: with it forecasts were, on
# the mean over twenty sources, within a third of what was measured for ranges of a tenth and more.
TYPICAL_SCALE = 0.2
PAIR_SCALE = 0.4  # the same, of how two dimensions go together
PAIR_PARTS = 16  # of each axis of a pair
SMALLEST_FORECAST_MASS = 1e-300
FINEST_PARTS = 1024  # parts of a dimension


def forecast_root(
    cells: GridCells, size: int, people: float, *, is_ordered: bool, scale: float = TYPICAL_SCALE
) -> Floats:
    """A matrix R, (rank, size), with R' R the covariance of the frequencies' errors to come.

    Args:
        cells: Those that will be asked; what they say does not matter.
        size: The number of codes.
        people: How many will be asked, in all grids.
        is_ordered: Whether neighbouring codes are alike.
        scale: What logits deviate by from what is expected of them.
    """
    splits = splits_of(size)
    rho = NEIGHBOURS if is_ordered else 0.0
    scales = np.full(splits.depths, scale)
    weights = np.full(splits.leaves, 1.0 / scale**2)
    none = np.zeros(splits.leaves)
    even = Cascade(splits, splits.base, splits.base, scales, none, weights, rho)
    return CascadeErrors(even, cells, people, weights).root()


def forecast_errors(
    planned: Sequence[GridEvidence],
    sizes: Sequence[int],
    is_ordered: Sequence[bool],
    selections: Sequence[Term],
) -> Floats:
    """The expected squared errors of the shares of some selections, (selections,).

    Args:
        planned: Grids that will be asked, with the values of even frequencies.
        sizes: The number of codes of each dimension.
        is_ordered: Of each whether neighbouring codes are alike.
        selections: Weights of codes by dimension.
    """
    lines: dict[int, Floats] = {}
    pairs: dict[tuple[int, int], PairForecast] = {}
    errors = np.zeros(len(selections))
    for place, term in enumerate(selections):
        axes = [axis for axis in sorted(term) if not np.all(term[axis] == 1.0)]
        if len(axes) == 1:
            axis = axes[0]
            if axis not in lines:
                lines[axis] = line_forecast(planned, axis, sizes[axis], is_ordered[axis])
            spread = lines[axis] @ part_means(term[axis], lines[axis].shape[1])
            errors[place] = spread @ spread
        for x, y in combinations(axes, 2):
            if (x, y) not in pairs:
                pairs[x, y] = pair_forecast(planned, (x, y), (sizes[x], sizes[y]))
            # with all others independent, a pair's error counts by the share that they leave
            others = [float(np.mean(term[axis])) for axis in axes if axis not in (x, y)]
            share = float(np.prod(others)) if others else 1.0
            errors[place] += share**2 * pairs[x, y].error(term[x], term[y])
    return errors


def part_means(weights: Floats, parts: int) -> Floats:
    """The mean weight in each of some equal parts of an axis, (parts,).

    >>> part_means(np.array([0.0, 0.0, 1.0, 1.0]), 2)
    array([0., 1.])
    """
    if parts == weights.size:
        return weights
    starts = np.arange(parts + 1) * weights.size // parts
    means: Floats = np.add.reduceat(weights, starts[:-1]) / np.diff(starts)
    return means


def line_forecast(
    planned: Sequence[GridEvidence], axis: int, size: int, is_ordered: bool
) -> Floats:
    """:func:`forecast_root` of one dimension; large ones in FINEST_PARTS parts, not codes."""
    cells = cells_of(planned, axis)
    people = sum(grid.people for grid in planned)  # the whole crowd, as in fit_line
    parts = min(size, FINEST_PARTS)
    if parts < size:
        lows, highs = cells.lows * parts // size, cells.highs * parts // size
        cells = replace(cells, lows=lows, highs=np.maximum(highs, lows + 1))
    return forecast_root(cells, parts, people, is_ordered=is_ordered)


@dataclass(frozen=True, eq=False)
class PairForecast:
    """How well the splits of two dimensions will be known."""

    x: Halving
    y: Halving
    tree: SplitTree
    variances: Floats  # of the logits, (blocks,)

    def error(self, x: Floats, y: Floats) -> float:
        """The expected squared error of a selection with these weights of codes."""
        blocks = self.variances.size
        lengths = self.tree.bounds[blocks:]
        mass = (lengths[:, 1] - lengths[:, 0]) * (lengths[:, 3] - lengths[:, 2])
        mass = mass / mass.sum()
        held = [
            _means(weights, halving.starts(halving.depths))
            for weights, halving in ((x, self.x), (y, self.y))
        ]
        pull = np.zeros(2 * blocks)
        masses = np.zeros(2 * blocks)
        pull[blocks:] = mass * held[0][self.tree.rows] * held[1][self.tree.columns]
        masses[blocks:] = mass
        for node in range(blocks - 1, 0, -1):
            pull[node] = pull[2 * node] + pull[2 * node + 1]
            masses[node] = masses[2 * node] + masses[2 * node + 1]
        whole = np.maximum(masses[1:blocks], SMALLEST_FORECAST_MASS)
        left = masses[2::2] / whole
        slopes = (1.0 - left) * pull[2::2] - left * pull[3::2]
        return float((slopes**2 * self.variances[1:]).sum())


def _means(weights: Floats, starts: Integers) -> Floats:
    """The mean weight between starts, 0 where nothing is between, (parts,)."""
    sums = np.append(0.0, np.cumsum(weights))
    lengths = np.diff(starts)
    held: Floats = np.diff(sums[starts]) / np.maximum(lengths, 1)
    return held


def pair_forecast(
    planned: Sequence[GridEvidence], axes: tuple[int, int], sizes: tuple[int, int]
) -> PairForecast:
    """How well two dimensions will be known together."""
    even = [np.full(size, 1.0 / size) for size in sizes]
    plane = fit_plane(planned, axes, even[0], even[1], blocks=PAIR_PARTS, steps=1)
    variances = np.zeros(plane.logits.size)
    split = plane.tree.is_split
    variances[split] = 1.0 / (plane.information[split] + 1.0 / PAIR_SCALE**2)
    return PairForecast(plane.x, plane.y, plane.tree, variances)
