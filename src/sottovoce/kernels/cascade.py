"""A cascade of splits: mass goes down a binary tree, each node passes a share of it to the left.

Nodes are numbered as in a heap: the root is 1, the children of i are 2 i and 2 i + 1, and the
leaves are ``leaves .. 2 leaves - 1``. Node i passes ``sigmoid(logits[i])`` of its mass to the left.
A node with codes on one side alone (``is_split`` false) keeps a logit of +- ``WHOLE_LOGIT``.
"""

from __future__ import annotations

import math

import numpy as np

from sottovoce.kernels.compiled import njit
from sottovoce.kernels.latent import FAST

LARGEST_STEP = 1.0  # in a logit
DAMPING = 0.5
INFORMATION_EVERY = 5  # steps: it changes slowly
FIRST_SCALE_STEP = 6  # before it the logits have not yet moved
LAST_STEPS = 10  # with the scales held, so that the logits come to rest
SMALLEST_SPLIT_SCALE, LARGEST_SCALE = 1e-3, 8.0
WHOLE_LOGIT = 800.0  # the logit of passing everything to one side: its exponential is infinite
TINY_MASS = 1e-300  # keeps logarithms of empty masses finite


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_masses(logits, masses):  # type: ignore[no-untyped-def]
    """Fill the mass of every node, ``masses`` (2 leaves,); the root holds 1."""
    masses[1] = 1.0
    for node in range(1, logits.size):
        left = 1.0 / (1.0 + math.exp(-logits[node]))
        masses[2 * node] = masses[node] * left
        masses[2 * node + 1] = masses[node] * (1.0 - left)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_leaves(logits, out):  # type: ignore[no-untyped-def]
    """Fill the leaves' masses of many rows of logits, ``out`` (rows, leaves)."""
    leaves = logits.shape[1]
    masses = np.empty(2 * leaves)
    for row in range(logits.shape[0]):
        fill_masses(logits[row], masses)
        for leaf in range(leaves):
            out[row, leaf] = masses[leaves + leaf]


@njit(cache=True, nogil=True, error_model="numpy")
def _slope(node, first, last, masses, log_sizes):  # type: ignore[no-untyped-def]
    """What the neighbours' densities suggest for the logit of a node of the depth first..last."""
    left = node if node == first else node - 1
    right = node if node == last else node + 1
    if left == right:
        return 0.0
    difference = math.log(masses[left] + TINY_MASS) - log_sizes[left]
    difference -= math.log(masses[right] + TINY_MASS) - log_sizes[right]
    # a node's halves are half a width apart: neighbours on both sides are two widths apart
    return difference * (0.25 if right - left == 2 else 0.5)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_centres(masses, base, log_sizes, rho, centres):  # type: ignore[no-untyped-def]
    """Fill what the prior expects of every logit: base + rho tanh(slope of the neighbours)."""
    leaves = base.size
    first = 1
    while first < leaves:
        last = 2 * first - 1
        for node in range(first, last + 1):
            centres[node] = base[node]
            if rho > 0.0:
                slope = _slope(node, first, last, masses, log_sizes)
                centres[node] += rho * math.tanh(slope)
        first *= 2


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_sums(masses, sums):  # type: ignore[no-untyped-def]
    """Fill the masses left of every leaf, ``sums`` (leaves + 1,)."""
    leaves = masses.size // 2
    sums[0] = 0.0
    for leaf in range(leaves):
        sums[leaf + 1] = sums[leaf] + masses[leaves + leaf]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_gradient(lows, highs, values, precisions, masses, sums, pull, gradient):  # type: ignore[no-untyped-def]
    """Fill the slope of the log likelihood in every logit.

    A cell's misfit pulls at all its leaves, d/dt_i = (1 - S) pull(left) - S pull(right); ``pull``
    (2 leaves,) and ``sums`` (leaves + 1,) are room to work in.
    """
    leaves = gradient.size
    steps = np.zeros(leaves + 1)
    for cell in range(values.size):
        held = sums[highs[cell]] - sums[lows[cell]]
        miss = (values[cell] - held) * precisions[cell]
        steps[lows[cell]] += miss
        steps[highs[cell]] -= miss
    total = 0.0
    for leaf in range(leaves):
        total += steps[leaf]
        pull[leaves + leaf] = total * masses[leaves + leaf]
    for node in range(leaves - 1, 0, -1):
        pull[node] = pull[2 * node] + pull[2 * node + 1]
        left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
        gradient[node] = (1.0 - left) * pull[2 * node] - left * pull[2 * node + 1]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fill_information(lows, highs, precisions, masses, sums, information):  # type: ignore[no-untyped-def]
    """Fill each logit's own Fisher information.

    It is the sum over the cells that cut a node of ((1 - S) m(cell, left) - S m(cell, right))^2
    times the cell's precision. Cells within one child of a node are added up once, from the leaves
    to the root. A cell that holds a node whole tells nothing of its split, so that from the last
    node around a cell downwards only the nodes at its two ends are looked at.
    """
    leaves = information.size
    information[:] = 0.0
    inside = np.zeros(2 * leaves)  # precision times squared mass of the cells within each node
    for cell in range(precisions.size):
        low, high = lows[cell], highs[cell]
        if low >= high:
            continue
        begin, end = leaves + low, leaves + high - 1
        span = 1
        while begin != end:
            begin //= 2
            end //= 2
            span *= 2
        held = sums[high] - sums[low]
        inside[begin] += precisions[cell] * held * held
        first = leaves // span
        is_cut = True
        while span > 1 and is_cut:
            is_cut = False
            begin = low // span
            end = (high - 1) // span
            for turn in range(2 if end > begin else 1):
                place = begin if turn == 0 else end
                start = max(low, place * span)
                stop = min(high, place * span + span)
                if stop - start == span:
                    continue
                is_cut = True
                node = first + place
                middle = place * span + span // 2
                left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
                part = sums[min(stop, middle)] - sums[start] if start < middle else 0.0
                slope = part - left * (sums[stop] - sums[start])
                information[node] += precisions[cell] * slope * slope
            span //= 2
            first *= 2
    for node in range(leaves - 1, 0, -1):
        left = masses[2 * node] / masses[node] if masses[node] > 0.0 else 0.5
        right = 1.0 - left
        information[node] += right * right * inside[2 * node]
        information[node] += left * left * inside[2 * node + 1]
        inside[node] += inside[2 * node] + inside[2 * node + 1]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fit_splits(  # type: ignore[no-untyped-def]
    lows,
    highs,
    values,
    precisions,
    base,
    log_sizes,
    is_split,
    rho,
    freedom,
    scale_guess,
    scale_weight,
    scale_link,
    steps,
    logits,
    scales,
):
    """Newton's steps on all logits at once, their prior's scales by evidence in between.

    The prior of a logit is Student's t with ``freedom`` around what :func:`fill_centres` says, with
    one scale for each depth. ``scale_guess`` is as good as ``scale_weight`` logits that are known,
    and what the depths above and below have as ``scale_link``: the first have few nodes.

    Args:
        lows: For each cell its first leaf, (cells,).
        highs: For each cell the leaf behind its last, (cells,).
        values: The cells' estimated shares, (cells,).
        precisions: One over their variances, (cells,).
        base: The prior's centres without neighbours, (leaves,).
        log_sizes: The logarithm of the number of codes below each node, (2 leaves,).
        is_split: Whether a node has codes on both sides, (leaves,).
        rho: How much the neighbours' slope counts, 0 to 1.
        steps: How many.
        logits: Where to start; changed in place, (leaves,).
        scales: The same, one for each depth.

    Returns:
        Each logit's information and its prior's precision, (leaves,) each.
    """
    leaves = base.size
    masses = np.ones(2 * leaves)
    pull = np.zeros(2 * leaves)
    sums = np.zeros(leaves + 1)
    gradient = np.zeros(leaves)
    information = np.zeros(leaves)
    weights = np.ones(leaves)
    before = np.zeros(leaves)
    centres = base.copy()
    for step in range(steps):
        fill_masses(logits, masses)
        fill_centres(masses, base, log_sizes, rho, centres)
        fill_sums(masses, sums)
        fill_gradient(lows, highs, values, precisions, masses, sums, pull, gradient)
        if step % INFORMATION_EVERY == 0:
            fill_information(lows, highs, precisions, masses, sums, information)
        for depth in range(scales.size):
            square = scales[depth] * scales[depth]
            squares = scale_weight * scale_guess * scale_guess
            known = scale_weight  # the number of logits that the data have determined
            last = scales.size - 1
            above = scales[depth - 1 if depth > 0 else min(1, last)]
            below = scales[depth + 1 if depth < last else max(last - 1, 0)]
            squares += scale_link * above * below
            known += scale_link
            for node in range(1 << depth, 2 << depth):
                if not is_split[node]:
                    continue
                off = logits[node] - centres[node]
                weight = (freedom + 1) / (freedom + off * off / square) / square
                move = (gradient[node] - off * weight) / (information[node] + weight)
                move = max(-LARGEST_STEP, min(LARGEST_STEP, move))
                if move * before[node] < 0.0:
                    move *= 0.5
                before[node] = move
                logits[node] += DAMPING * move
                weights[node] = weight
                off = logits[node] - centres[node]
                squares += weight * square * off * off
                known += information[node] / (information[node] + weight)
            if FIRST_SCALE_STEP <= step < steps - LAST_STEPS:
                # a geometric step, 30% of the way
                blend = 0.7 * math.log(scales[depth]) + 0.15 * math.log(squares / known)
                scales[depth] = min(LARGEST_SCALE, max(SMALLEST_SPLIT_SCALE, math.exp(blend)))
    return information, weights
