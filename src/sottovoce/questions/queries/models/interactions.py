"""A selection by three dimensions or more as a sum over its dimensions and pairs of them.

What maximum entropy makes of pairs is, to first order, linear in what the pairs hold. So answers
that owe next to nothing to a prior, of each dimension and of each pair, give one of the selection.
How three dimensions go together beyond their pairs nobody was asked: it is counted as wide as it
usually is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np

from sottovoce.questions.queries.evidence import Floats

# how three states go together beyond pairs: the logarithm of a cell's share strays by so much
INTERACTION_SCALE = 0.5
MAX_EXPANDED = 1 << 19  # combinations of states times functions of pairs: least squares take .1 s
SMALLEST_STATE = 1e-9  # of a state's share, so that every state counts in the regression


@dataclass(frozen=True, eq=False)
class Expansion:
    """A selection as ``constant`` + sums over dimensions + sums over pairs of them.

    States of a dimension are counted from their shares as fitted, so that a pair's part does not
    err with the dimensions' own.
    """

    constant: float
    singles: dict[int, Floats]  # by axis the weight of each state
    # by pair products of weights of states, whose sum is meant, without the part that either
    # dimension has alone
    pairs: dict[tuple[int, int], list[tuple[Floats, Floats]]]
    variance: float  # of what pairs do not tell


def is_small(counts: Sequence[int]) -> bool:
    """Whether a selection by so many states of each dimension is expanded at all."""
    others = [count - 1 for count in counts]
    functions = 1 + sum(others) + sum(one * two for one, two in combinations(others, 2))
    return prod(counts) * functions <= MAX_EXPANDED


def expanded(axes: Sequence[int], shares: Floats, weights: Sequence[Floats]) -> Expansion:
    """Expand a selection around a table that maximum entropy made of pairs.

    If log p moves by h, and all pairs' shares are kept, then p' w moves by the sum of p r h, where
    r is what is left of w in the regression, weighted by p, on functions of pairs: those of maximum
    entropy are all that p is. For the same reason the coefficients are the slopes of p' w in what
    the pairs hold.

    Args:
        axes: The numbers of the dimensions.
        shares: Of all combinations of their states, (states of the first, ...).
        weights: Of the states of each dimension.
    """
    p = np.maximum(shares, SMALLEST_STATE)
    p = p / p.sum()
    target = weights[0]
    for each in weights[1:]:
        target = np.multiply.outer(target, each)
    centred = [_centred(p, place) for place in range(len(axes))]
    columns: list[Floats] = [np.ones(p.shape)]
    for place, functions in enumerate(centred):
        columns += [_along(row, (place,), p.ndim) * np.ones(p.shape) for row in functions]
    for i, j in combinations(range(len(axes)), 2):
        for one, other in product(centred[i], centred[j]):
            columns.append(_along(np.multiply.outer(one, other), (i, j), p.ndim) * np.ones(p.shape))
    design = np.stack([each.ravel() for each in columns], axis=1)  # (combinations, functions)
    roots = np.sqrt(p.ravel())
    found = np.linalg.lstsq(design * roots[:, None], target.ravel() * roots, rcond=None)[0]
    left = p.ravel() * (target.ravel() - design @ found)  # p r
    singles, pairs = {}, {}
    at = 1
    for place, functions in enumerate(centred):
        count = len(functions)
        singles[axes[place]] = found[at : at + count] @ functions
        at += count
    for i, j in combinations(range(len(axes)), 2):
        count = len(centred[i]) * len(centred[j])
        own = found[at : at + count].reshape(len(centred[i]), len(centred[j]))
        pairs[axes[i], axes[j]] = list(zip(centred[i], own @ centred[j], strict=True))
        at += count
    spread = INTERACTION_SCALE**2 * _interactions(left.reshape(p.shape))
    return Expansion(float(found[0]), singles, pairs, spread)


def _centred(p: Floats, place: int) -> Floats:
    """Indicators of the states of a dimension less their means, (states - 1, states).

    Without the first: it is what the others leave.
    """
    others = tuple(axis for axis in range(p.ndim) if axis != place)
    means = p.sum(axis=others)
    found: Floats = (np.eye(means.size) - means[:, None])[1:]
    return found


def _along(values: Floats, places: tuple[int, ...], count: int) -> Floats:
    """Values of some axes of a table, shaped to be multiplied with all of it."""
    shape = [1] * count
    for place, length in zip(places, values.shape, strict=True):
        shape[place] = length
    return values.reshape(shape)


def _interactions(left: Floats) -> float:
    """The sum of (h' left)^2 over functions h of three dimensions, one for each combination."""
    total = 0.0
    for places in combinations(range(left.ndim), 3):
        others = tuple(axis for axis in range(left.ndim) if axis not in places)
        total += float((left.sum(axis=others) ** 2).sum())
    return total
