"""How the logits of a cascade err together: the curvature of their log posterior."""

from __future__ import annotations

import math

import numpy as np

from sottovoce.kernels.cascade import TINY_MASS
from sottovoce.kernels.compiled import njit
from sottovoce.kernels.latent import FAST


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def cell_products(lows, highs, precisions, leaves):  # type: ignore[no-untyped-def]
    """The matrix A' V^-1 A of all cells, (leaves, leaves): A says which leaves a cell holds.

    Each cell adds its precision to a square block, by its four corners and two running sums.
    """
    corners = np.zeros((leaves + 1, leaves + 1))
    for cell in range(precisions.size):
        low, high = lows[cell], highs[cell]
        corners[low, low] += precisions[cell]
        corners[high, high] += precisions[cell]
        corners[low, high] -= precisions[cell]
        corners[high, low] -= precisions[cell]
    products = np.empty((leaves, leaves))
    above = np.zeros(leaves)
    for row in range(leaves):
        total = 0.0
        for column in range(leaves):
            total += corners[row, column]
            above[column] += total
            products[row, column] = above[column]
    return products


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _to_logits(line, masses, pull, out):  # type: ignore[no-untyped-def]
    """The slopes in the logits of what has the slopes ``line`` in the leaves' masses."""
    leaves = line.size
    for leaf in range(leaves):
        pull[leaves + leaf] = line[leaf] * masses[leaves + leaf]
    out[0] = 0.0
    for node in range(leaves - 1, 0, -1):
        pull[node] = pull[2 * node] + pull[2 * node + 1]
        left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
        out[node] = (1.0 - left) * pull[2 * node] - left * pull[2 * node + 1]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def logit_products(products, masses):  # type: ignore[no-untyped-def]
    """The matrix T' K T, (leaves, leaves): K = ``products``, T the leaves' slopes in the logits."""
    leaves = products.shape[0]
    pull = np.zeros(2 * leaves)
    half = np.empty((leaves, leaves))
    for row in range(leaves):
        _to_logits(products[row], masses, pull, half[row])
    half = half.T.copy()  # K is symmetric
    whole = np.empty((leaves, leaves))
    for row in range(leaves):
        _to_logits(half[row], masses, pull, whole[row])
    return whole


@njit(cache=True, nogil=True, error_model="numpy")
def _add_ancestors(node, factor, masses, places, slopes, count):  # type: ignore[no-untyped-def]
    """Append the slopes of factor ln mass(node) in the logits above it."""
    while node > 1:
        above = node // 2
        left = masses[2 * above] / masses[above] if masses[above] > 0.0 else 0.5
        slope = 1.0 - left if node == 2 * above else -left
        places[count] = above
        slopes[count] = factor * slope
        count += 1
        node = above
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def add_prior(weights, masses, log_sizes, is_split, rho, curvature):  # type: ignore[no-untyped-def]
    """Add R' W R to ``curvature``, (leaves, leaves): R are the slopes of logit - centre.

    A centre depends on the masses of two neighbours, and these on all logits above them.
    """
    leaves = weights.size
    places = np.zeros(128, np.int64)
    slopes = np.zeros(128)
    first = 1
    while first < leaves:
        last = 2 * first - 1
        for node in range(first, last + 1):
            if not is_split[node]:
                continue
            places[0] = node
            slopes[0] = 1.0
            count = 1
            left = node if node == first else node - 1
            right = node if node == last else node + 1
            if rho > 0.0 and left < right:
                share = 0.25 if right - left == 2 else 0.5
                difference = math.log(masses[left] + TINY_MASS) - log_sizes[left]
                difference -= math.log(masses[right] + TINY_MASS) - log_sizes[right]
                bend = math.tanh(share * difference)
                factor = -rho * (1.0 - bend * bend) * share
                count = _add_ancestors(left, factor, masses, places, slopes, count)
                count = _add_ancestors(right, -factor, masses, places, slopes, count)
            for i in range(count):
                for j in range(count):
                    curvature[places[i], places[j]] += weights[node] * slopes[i] * slopes[j]
        first *= 2


@njit(cache=True, nogil=True, error_model="numpy")
def leaf_slopes(masses):  # type: ignore[no-untyped-def]
    """The slope of every leaf's mass in every logit, (leaves, leaves), one row for each logit."""
    leaves = masses.size // 2
    slopes = np.zeros((leaves, leaves))
    span = leaves
    first = 1
    while first < leaves:
        for place in range(first):
            node = first + place
            left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
            start = place * span
            middle = start + span // 2
            for leaf in range(start, middle):
                slopes[node, leaf] = masses[leaves + leaf] * (1.0 - left)
            for leaf in range(middle, start + span):
                slopes[node, leaf] = -masses[leaves + leaf] * left
        span //= 2
        first *= 2
    return slopes


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _multiply_data(lows, highs, precisions, masses, is_split, vector, pull, sums, line, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (leaves,) with T' K T times ``vector``, without the matrix.

    ``pull`` (2 leaves,), ``sums`` (leaves + 1,) and ``line`` (leaves,) are room to work in.
    """
    leaves = vector.size
    # T v: how much of itself each leaf gains, the sum over all nodes above it
    pull[1] = 0.0
    for node in range(1, leaves):
        left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
        step = vector[node] if is_split[node] else 0.0
        pull[2 * node] = pull[node] + (1.0 - left) * step
        pull[2 * node + 1] = pull[node] - left * step
    sums[0] = 0.0
    for leaf in range(leaves):
        sums[leaf + 1] = sums[leaf] + pull[leaves + leaf] * masses[leaves + leaf]
        line[leaf] = 0.0
    # K T v: each cell adds its precision times what it gains to all its leaves
    for cell in range(precisions.size):
        gained = precisions[cell] * (sums[highs[cell]] - sums[lows[cell]])
        line[lows[cell]] += gained
        if highs[cell] < leaves:
            line[highs[cell]] -= gained
    total = 0.0
    for leaf in range(leaves):
        total += line[leaf]
        line[leaf] = total
    _to_logits(line, masses, pull, out)
    for node in range(leaves):
        if not is_split[node]:
            out[node] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def solve_logits(  # type: ignore[no-untyped-def]
    lows, highs, precisions, masses, is_split, weights, information, lines, tolerance, steps
):
    """Solve H x = b by conjugate gradients: H = J + W, J = T' K T the data's curvature.

    Each step costs as much as there are cells and leaves, and no matrix is made.

    Args:
        lows: For each cell its first leaf, (cells,).
        highs: For each cell the leaf behind its last, (cells,).
        precisions: What each cell counts, (cells,).
        masses: Of all nodes, (2 leaves,).
        is_split: Whether a node has codes on both sides, (leaves,); the others have no logit.
        weights: The diagonal of W, (leaves,).
        information: The diagonal of J or nearly so, which makes steps few, (leaves,).
        lines: One weight for each leaf and right side, (sides, leaves): b = T' line.
        tolerance: Of what is left of b, as a share.
        steps: At most.

    Returns:
        b, x and J x, (sides, leaves) each, and whether all are as near as wanted.
    """
    sides, leaves = lines.shape
    right = np.zeros((sides, leaves))
    solved = np.zeros((sides, leaves))
    bent = np.zeros((sides, leaves))
    pull = np.zeros(2 * leaves)
    sums = np.zeros(leaves + 1)
    line = np.zeros(leaves)
    product = np.zeros(leaves)
    is_near = True
    for side in range(sides):
        _to_logits(lines[side], masses, pull, right[side])
        for node in range(leaves):
            if not is_split[node]:
                right[side, node] = 0.0
        rest = right[side].copy()
        solution = solved[side]
        scaled = rest / (information + weights)
        direction = scaled.copy()
        size = (rest * scaled).sum()
        wanted = tolerance * tolerance * size
        step = 0
        while size > wanted and step < steps:
            _multiply_data(
                lows, highs, precisions, masses, is_split, direction, pull, sums, line, product
            )
            product += weights * direction
            length = size / (direction * product).sum()
            solution += length * direction
            rest -= length * product
            scaled = rest / (information + weights)
            before = size
            size = (rest * scaled).sum()
            direction = scaled + (size / before) * direction
            step += 1
        is_near = is_near and size <= wanted
        _multiply_data(
            lows, highs, precisions, masses, is_split, solution, pull, sums, line, bent[side]
        )
    return right, solved, bent, is_near
