"""Equal things counted once: what merging does wherever counts are kept sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.oracles.base import Integers

Keys = Sequence[NDArray[Any]]  # columns by which things are told apart, the first decides first


def sum_equal(keys: Keys, counts: Integers | None) -> tuple[Integers, Integers]:
    """Which of many things stand for all that are equal to them, in increasing order, and what the
    counts of each add up to. What adds up to nothing is left out.

    Args:
        keys: columns, (things,) each.
        counts: beside each thing; None for 1.

    >>> sum_equal([np.array([7, 3, 7, 5])], np.array([1, 2, 3, 0]))
    (array([1, 0]), array([2, 4]))
    """
    count = len(keys[0])
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    is_new = np.zeros(count, bool)
    is_new[0] = True
    for key in keys:
        ordered = key[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    first = np.flatnonzero(is_new)
    repeats = np.diff(first, append=count)  # how often each different one stands there
    sums = repeats if counts is None else np.add.reduceat(counts[order], first)
    is_held = sums != 0
    return order[first[is_held]], sums[is_held]


def is_rising(keys: Keys, *, strictly: bool) -> bool:
    """Whether things stand in increasing order; ``strictly``: and no two of them are equal.

    >>> is_rising([np.array([1, 1, 2]), np.array([4, 5, 0])], strictly=True)
    True
    """
    count = len(keys[0])
    is_above = np.zeros(max(count - 1, 0), bool)
    is_equal = ~is_above
    for key in keys:
        is_above |= is_equal & (key[1:] > key[:-1])
        is_equal &= key[1:] == key[:-1]
    return bool((is_above if strictly else is_above | is_equal).all())
