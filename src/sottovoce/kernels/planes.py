"""A cascade of two dimensions: a plane is split along one axis or the other, down to blocks.

Nodes are numbered as in :mod:`cascade`. Node i passes ``sigmoid(base[i] + logits[i])`` of its mass
to the left: ``base`` is what two independent axes would pass, ``logits`` how far it is from that.
Codes of each axis are joined to segments, between which no cell and no node begins or ends;
``bounds`` (nodes, 4) are the segments of a node, x from 0 to 1 and y from 2 to 3, the end excluded.
Within a block the two axes are independent: ``shares_x``, ``shares_y`` say how.
"""

from __future__ import annotations

import math

import numpy as np

from sottovoce.kernels.cascade import (
    DAMPING,
    FIRST_SCALE_STEP,
    LARGEST_SCALE,
    LARGEST_STEP,
    LAST_STEPS,
    SMALLEST_SPLIT_SCALE,
)
from sottovoce.kernels.compiled import njit
from sottovoce.kernels.latent import FAST

PLANE_INFORMATION_EVERY = 8  # steps: it changes slowly


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_plane_masses(base, logits, masses):  # type: ignore[no-untyped-def]
    """Fill the mass of every node, ``masses`` (2 blocks,)."""
    masses[1] = 1.0
    for node in range(1, base.size):
        left = 1.0 / (1.0 + math.exp(-base[node] - logits[node]))
        masses[2 * node] = masses[node] * left
        masses[2 * node + 1] = masses[node] * (1.0 - left)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_table(bounds, masses, shares_x, shares_y, table):  # type: ignore[no-untyped-def]
    """Fill the mass of every pair of segments, ``table`` (segments of x, segments of y)."""
    blocks = masses.size // 2
    for node in range(blocks, 2 * blocks):
        for x in range(bounds[node, 0], bounds[node, 1]):
            mass = masses[node] * shares_x[x]
            for y in range(bounds[node, 2], bounds[node, 3]):
                table[x, y] = mass * shares_y[y]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_corners(table, corners):  # type: ignore[no-untyped-def]
    """Fill the sums of all segments before, ``corners`` (segments of x + 1, of y + 1)."""
    for x in range(table.shape[0]):
        total = 0.0
        for y in range(table.shape[1]):
            total += table[x, y]
            corners[x + 1, y + 1] = corners[x, y + 1] + total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", inline="always")
def _held(corners, x0, x1, y0, y1):  # type: ignore[no-untyped-def]
    """The mass of a rectangle of segments."""
    return corners[x1, y1] - corners[x0, y1] - corners[x1, y0] + corners[x0, y0]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_plane_gradient(  # type: ignore[no-untyped-def]
    cells, values, precisions, bounds, masses, table, corners, pull, gradient
):
    """Fill the slope of the log likelihood in every logit; ``pull`` (2 blocks,) is room."""
    blocks = gradient.size
    width, height = table.shape
    steps = np.zeros((width + 1, height + 1))
    for cell in range(values.size):
        x0, x1, y0, y1 = cells[cell, 0], cells[cell, 1], cells[cell, 2], cells[cell, 3]
        miss = (values[cell] - _held(corners, x0, x1, y0, y1)) * precisions[cell]
        steps[x0, y0] += miss
        steps[x1, y0] -= miss
        steps[x0, y1] -= miss
        steps[x1, y1] += miss
    for x in range(width):
        total = 0.0
        for y in range(height):
            total += steps[x, y]
            steps[x, y] = total
            if x > 0:
                steps[x, y] += steps[x - 1, y]
    for node in range(blocks, 2 * blocks):
        total = 0.0
        for x in range(bounds[node, 0], bounds[node, 1]):
            for y in range(bounds[node, 2], bounds[node, 3]):
                total += steps[x, y] * table[x, y]
        pull[node] = total
    for node in range(blocks - 1, 0, -1):
        pull[node] = pull[2 * node] + pull[2 * node + 1]
        left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
        gradient[node] = (1.0 - left) * pull[2 * node] - left * pull[2 * node + 1]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_plane_information(cells, precisions, bounds, masses, corners, information):  # type: ignore[no-untyped-def]
    """Fill each logit's own Fisher information: see :func:`cascade.fill_information`.

    A cell goes down the tree from the root, past the nodes that it does not touch or holds whole.
    """
    blocks = information.size
    information[:] = 0.0
    waiting = np.empty(256, np.int64)
    for cell in range(precisions.size):
        waiting[0] = 1
        count = 1
        while count > 0:
            count -= 1
            node = waiting[count]
            x0 = max(cells[cell, 0], bounds[node, 0])
            x1 = min(cells[cell, 1], bounds[node, 1])
            y0 = max(cells[cell, 2], bounds[node, 2])
            y1 = min(cells[cell, 3], bounds[node, 3])
            if x0 >= x1 or y0 >= y1:
                continue
            is_wide = x0 == bounds[node, 0] and x1 == bounds[node, 1]
            if is_wide and y0 == bounds[node, 2] and y1 == bounds[node, 3]:
                continue
            left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
            inside = 0.0
            child = 2 * node
            a0, a1 = max(x0, bounds[child, 0]), min(x1, bounds[child, 1])
            b0, b1 = max(y0, bounds[child, 2]), min(y1, bounds[child, 3])
            if a0 < a1 and b0 < b1:
                inside = _held(corners, a0, a1, b0, b1)
            slope = inside - left * _held(corners, x0, x1, y0, y1)
            information[node] += precisions[cell] * slope * slope
            if child < blocks:
                waiting[count] = child
                waiting[count + 1] = child + 1
                count += 2


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fit_plane(  # type: ignore[no-untyped-def]
    cells,
    values,
    precisions,
    bounds,
    base,
    is_split,
    shares_x,
    shares_y,
    freedom,
    scale_guess,
    scale_weight,
    steps,
    logits,
    scales,
):
    """Newton's steps on all logits at once, their prior's scales by evidence in between.

    Args:
        cells: For each cell its segments, as in ``bounds``, (cells, 4).
        values: The cells' estimated shares, (cells,).
        precisions: One over their variances, (cells,).
        bounds: For each node its segments, (2 blocks, 4).
        base: The logits of independent axes, (blocks,).
        is_split: Whether a node has codes on both sides, (blocks,).
        shares_x: What a segment of x is of its block, (segments of x,).
        shares_y: The same of y.
        steps: How many.
        logits: Where to start; changed in place, (blocks,).
        scales: The same, one for each depth.

    Returns:
        Each logit's information and its prior's precision, (blocks,) each.
    """
    blocks = base.size
    masses = np.ones(2 * blocks)
    pull = np.zeros(2 * blocks)
    gradient = np.zeros(blocks)
    information = np.zeros(blocks)
    weights = np.ones(blocks)
    before = np.zeros(blocks)
    table = np.zeros((shares_x.size, shares_y.size))
    corners = np.zeros((shares_x.size + 1, shares_y.size + 1))
    for step in range(steps):
        fill_plane_masses(base, logits, masses)
        fill_table(bounds, masses, shares_x, shares_y, table)
        fill_corners(table, corners)
        fill_plane_gradient(
            cells, values, precisions, bounds, masses, table, corners, pull, gradient
        )
        if step % PLANE_INFORMATION_EVERY == 0:
            fill_plane_information(cells, precisions, bounds, masses, corners, information)
        for depth in range(scales.size):
            square = scales[depth] * scales[depth]
            squares = scale_weight * scale_guess * scale_guess
            known = scale_weight
            for node in range(1 << depth, 2 << depth):
                if not is_split[node]:
                    continue
                off = logits[node]
                weight = (freedom + 1) / (freedom + off * off / square) / square
                move = (gradient[node] - off * weight) / (information[node] + weight)
                move = max(-LARGEST_STEP, min(LARGEST_STEP, move))
                if move * before[node] < 0.0:
                    move *= 0.5
                before[node] = move
                logits[node] += 0.8 * DAMPING * move
                weights[node] = weight
                squares += weight * square * logits[node] * logits[node]
                known += information[node] / (information[node] + weight)
            if FIRST_SCALE_STEP <= step < steps - LAST_STEPS:
                blend = 0.7 * math.log(scales[depth]) + 0.15 * math.log(squares / known)
                scales[depth] = min(LARGEST_SCALE, max(SMALLEST_SPLIT_SCALE, math.exp(blend)))
    return information, weights
