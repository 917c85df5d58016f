"""Two dimensions: how their table deviates from the product of its axes, split by split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.kernels import planes as kernel
from sottovoce.kernels.cascade import WHOLE_LOGIT
from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.models.cells import CellErrors, adds_up, coin_law
from sottovoce.questions.queries.models.splits import splits_of

PLANE_FREEDOM = 4.0  # of the deviations' Student's t
PLANE_SCALE_GUESS = float(np.exp(-1.0))
PLANE_SCALE_WEIGHT = 1.0
PLANE_FIRST_SCALE = 0.3
PLANE_PASSES = 2
FINEST_LINE = 256  # cells: finer grids of one axis say nothing of how two go together
SMALLEST_AXIS_SHARE = 1e-12  # of an axis in a block, so that every share has a logit


@dataclass(frozen=True, eq=False)
class Halving:
    """An axis that is halved some times: where each half of each depth begins."""

    size: int
    depths: int

    def starts(self, depth: int) -> Integers:
        """Where the 2^depth parts begin, and the end of the last, (parts + 1,); some are empty."""
        splits = splits_of(self.size)
        leaves = np.arange((1 << depth) + 1) << (splits.depths - depth)
        return np.searchsorted(splits.places, leaves).astype(np.int64)


def halving_of(size: int, blocks: int) -> Halving:
    """Halve an axis until it has ``blocks`` parts, a power of two, or a part for each code."""
    return Halving(size, min(splits_of(size).depths, blocks.bit_length() - 1))


@dataclass(frozen=True, eq=False)
class SplitTree:
    """Nodes of a plane, numbered as in a heap; x and y are split in turn."""

    bounds: Integers  # codes of x from and to, of y from and to, (2 blocks, 4)
    is_split: NDArray[np.bool_]  # (blocks,)
    axes: Integers  # which axis each node splits, (blocks,)
    rows: Integers  # of each block its part of x, (blocks,)
    columns: Integers  # and of y


def split_plane(x: Halving, y: Halving) -> SplitTree:
    """The tree of all blocks of two halved axes."""
    depths = x.depths + y.depths
    blocks = 1 << depths
    bounds = np.zeros((2 * blocks, 4), np.int64)
    parts = np.zeros((2 * blocks, 2), np.int64)  # which part of each axis a node is
    axes = np.zeros(blocks, np.int64)
    halved = [0, 0]
    halvings = (x, y)
    bounds[1] = (0, x.size, 0, y.size)
    for depth in range(depths):
        is_x_left = halved[0] < x.depths
        is_y_left = halved[1] < y.depths
        axis = 0 if is_x_left and (halved[0] <= halved[1] or not is_y_left) else 1
        halved[axis] += 1
        starts = halvings[axis].starts(halved[axis])
        nodes = np.arange(1 << depth, 2 << depth)
        axes[nodes] = axis
        for side in (0, 1):
            children = 2 * nodes + side
            parts[children] = parts[nodes]
            parts[children, axis] = 2 * parts[nodes, axis] + side
            bounds[children] = bounds[nodes]
            bounds[children, 2 * axis] = starts[parts[children, axis]]
            bounds[children, 2 * axis + 1] = starts[parts[children, axis] + 1]
    lengths = np.minimum(bounds[:, 1] - bounds[:, 0], bounds[:, 3] - bounds[:, 2])  # 0 if empty
    is_split = np.zeros(blocks, bool)
    is_split[1:] = (lengths[2::2] > 0) & (lengths[3::2] > 0)
    return SplitTree(bounds, is_split, axes, parts[blocks:, 0], parts[blocks:, 1])


def product_logits(tree: SplitTree, x: Floats, y: Floats) -> Floats:
    """The logits that two independent axes have, (blocks,).

    Args:
        tree: What splits what.
        x: Frequencies of the first axis, (size,), or many rows of them, (rows, size).
        y: Of the second.

    Returns:
        Logits (blocks,), or (rows, blocks).
    """
    blocks = tree.is_split.size
    nodes = np.arange(1, blocks)
    logits = np.zeros((*x.shape[:-1], blocks))
    for axis, frequencies in enumerate((x, y)):
        sums = np.zeros((*frequencies.shape[:-1], frequencies.shape[-1] + 1))
        np.cumsum(np.maximum(frequencies, 0.0), axis=-1, out=sums[..., 1:])
        own = nodes[tree.axes[nodes] == axis]
        low, high = 2 * axis, 2 * axis + 1
        left = sums[..., tree.bounds[2 * own, high]] - sums[..., tree.bounds[2 * own, low]]
        right = sums[..., tree.bounds[2 * own + 1, high]] - sums[..., tree.bounds[2 * own + 1, low]]
        # a side without codes gets nothing, a side with codes never exactly nothing
        has_left = tree.bounds[2 * own, high] > tree.bounds[2 * own, low]
        has_right = tree.bounds[2 * own + 1, high] > tree.bounds[2 * own + 1, low]
        left = np.log(left + SMALLEST_AXIS_SHARE) - np.where(has_left, 0.0, WHOLE_LOGIT)
        right = np.log(right + SMALLEST_AXIS_SHARE) - np.where(has_right, 0.0, WHOLE_LOGIT)
        logits[..., own] = left - right
    return logits


@dataclass(frozen=True, eq=False)
class Plane:
    """A fitted table of two dimensions: its axes elsewhere, here how it deviates from them."""

    x: Halving
    y: Halving
    tree: SplitTree
    logits: Floats  # deviations from the product, (blocks,)
    scales: Floats  # by depth
    information: Floats  # what the cells say of each logit, (blocks,)
    weights: Floats  # what the prior says of it, (blocks,)
    around: Plane | None = None  # the fit of the count, from which this one of a weight deviates

    @property
    def total_logits(self) -> Floats:
        """Deviations from the product, those of the count included, (blocks,)."""
        return self.logits if self.around is None else self.logits + self.around.total_logits

    def blocks(self, x: Floats, y: Floats, deviations: Floats) -> Floats:
        """The masses of all blocks.

        Args:
            x: Frequencies of the first axis in some draws, (draws, size).
            y: Of the second.
            deviations: The logits' deviations in these draws, (draws, blocks).

        Returns:
            Masses, (draws, parts of x, parts of y).
        """
        base = product_logits(self.tree, x, y)
        masses = np.empty(2 * self.tree.is_split.size)
        table = np.zeros((len(x), 1 << self.x.depths, 1 << self.y.depths))
        for row in range(len(x)):
            kernel.fill_plane_masses(base[row], deviations[row], masses)
            table[row, self.tree.rows, self.tree.columns] = masses[base.shape[1] :]
        return table


def part_sums(values: Floats, halving: Halving) -> Floats:
    """Sums over the parts of an axis, (..., parts)."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return np.diff(sums[..., halving.starts(halving.depths)], axis=-1)


def rake(tables: Floats, rows: Floats, columns: Floats, rounds: int = 12) -> Floats:
    """Scale tables until their margins are those given.

    Args:
        tables: (draws, rows, columns).
        rows: The sums over columns, (draws, rows).
        columns: The sums over rows, (draws, columns).
        rounds: How often.
    """
    tables = tables + SMALLEST_AXIS_SHARE * rows[:, :, None] * columns[:, None, :]
    for _ in range(rounds):
        sums = tables.sum(axis=2)
        tables *= np.divide(rows, sums, out=np.zeros_like(sums), where=sums > 0)[:, :, None]
        sums = tables.sum(axis=1)
        tables *= np.divide(columns, sums, out=np.zeros_like(sums), where=sums > 0)[:, None, :]
    return tables


def rectangles_of(
    evidence: Sequence[GridEvidence], axes: tuple[int, int], sizes: tuple[int, int]
) -> tuple[Integers, CellErrors]:
    """All cells that tell of two axes, as rectangles of codes (cells, 4), and what they say."""
    corners: list[Integers] = []
    columns: list[tuple[Floats, ...]] = []
    for number, grid in enumerate(evidence):
        if not set(grid.axes) <= set(axes) or not grid.axes:
            continue
        if len(grid.axes) == 1 and grid.values.size > FINEST_LINE:
            continue
        edges = [np.array([0, size]) for size in sizes]
        for axis, starts in zip(grid.axes, grid.edges, strict=True):
            edges[axes.index(axis)] = starts
        values = grid.values
        if len(grid.axes) == 2 and grid.axes != axes:
            values = values.T
        x0, y0 = np.meshgrid(edges[0][:-1], edges[1][:-1], indexing="ij")
        x1, y1 = np.meshgrid(edges[0][1:], edges[1][1:], indexing="ij")
        corners.append(np.stack([x0, x1, y0, y1], axis=-1).reshape(-1, 4))
        whole = np.ones(values.size)
        law = coin_law(grid, values.size)
        settings = (law.floor, law.slope, grid.people, number, adds_up(values), law.cross, law.tie)
        columns.append((values.ravel(), *(whole * setting for setting in settings)))
    rectangles = np.concatenate(corners).astype(np.int64)
    values, floors, slopes, people, grids, wholes, crosses, ties = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    keep = (rectangles[:, 0] < rectangles[:, 1]) & (rectangles[:, 2] < rectangles[:, 3])
    cells = CellErrors(
        values[keep],
        floors[keep],
        slopes[keep],
        people[keep],
        grids[keep].astype(np.int64),
        wholes[keep].astype(bool),
        crosses[keep],
        ties[keep],
    )
    return rectangles[keep], cells


def _segments(halving: Halving, cells: Integers) -> Integers:
    """Codes at which a cell or a part of an axis begins or ends, (segments + 1,)."""
    starts = halving.starts(halving.depths)
    return np.unique(np.concatenate([starts, cells.ravel(), [0, halving.size]]))


def _segment_shares(frequencies: Floats, halving: Halving, segments: Integers) -> Floats:
    """What each segment is of its part of the axis, (segments,)."""
    sums = np.append(0.0, np.cumsum(np.maximum(frequencies, 0.0) + SMALLEST_AXIS_SHARE))
    starts = halving.starts(halving.depths)
    parts = np.searchsorted(starts, segments[:-1], side="right") - 1
    whole = sums[starts[parts + 1]] - sums[starts[parts]]
    shares: Floats = np.diff(sums[segments]) / whole
    return shares


def fit_plane(
    evidence: Sequence[GridEvidence],
    axes: tuple[int, int],
    x: Floats,
    y: Floats,
    *,
    blocks: int = 32,
    steps: int = 80,
    around: Plane | None = None,
) -> Plane:
    """Fit how two dimensions go together, given the frequencies of each.

    Args:
        evidence: What grids of both, or of one of them, say; all others are passed over.
        axes: The numbers of the two dimensions.
        x: The fitted frequencies of the first, (size,).
        y: Of the second.
        blocks: Into how many parts each axis is split at most, a power of two.
        steps: Of Newton's method, in each of two passes.
        around: Of a weight the fit of the count, from which it deviates.
    """
    halvings = (halving_of(x.size, blocks), halving_of(y.size, blocks))
    tree = split_plane(*halvings)
    rectangles, cells = rectangles_of(evidence, axes, (x.size, y.size))
    segments_x = _segments(halvings[0], rectangles[:, :2])
    segments_y = _segments(halvings[1], rectangles[:, 2:])
    places = np.empty_like(rectangles)
    places[:, :2] = np.searchsorted(segments_x, rectangles[:, :2])
    places[:, 2:] = np.searchsorted(segments_y, rectangles[:, 2:])
    bounds = np.empty_like(tree.bounds)
    bounds[:, :2] = np.searchsorted(segments_x, tree.bounds[:, :2])
    bounds[:, 2:] = np.searchsorted(segments_y, tree.bounds[:, 2:])
    shares_x = _segment_shares(x, halvings[0], segments_x)
    shares_y = _segment_shares(y, halvings[1], segments_y)
    base = product_logits(tree, x, y)
    if around is not None:
        base = base + around.logits
    logits = np.zeros(base.size)
    scales = np.full(halvings[0].depths + halvings[1].depths, PLANE_FIRST_SCALE)
    masses = np.ones(2 * base.size)
    table = np.zeros((shares_x.size, shares_y.size))
    corners = np.zeros((shares_x.size + 1, shares_y.size + 1))
    information = weights = np.zeros(base.size)
    for _ in range(PLANE_PASSES):
        kernel.fill_plane_masses(base, logits, masses)
        kernel.fill_table(bounds, masses, shares_x, shares_y, table)
        kernel.fill_corners(table, corners)
        x0, x1, y0, y1 = places.T
        held = corners[x1, y1] - corners[x0, y1] - corners[x1, y0] + corners[x0, y0]
        information, weights = kernel.fit_plane(
            places,
            cells.values,
            cells.precisions(held),
            bounds,
            base,
            tree.is_split,
            shares_x,
            shares_y,
            PLANE_FREEDOM,
            PLANE_SCALE_GUESS,
            PLANE_SCALE_WEIGHT,
            steps,
            logits,
            scales,
        )
    return Plane(*halvings, tree, logits, scales, information, weights, around)
