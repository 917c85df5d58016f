"""Descent towards a common level: how much weight each person adds to each of her items."""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit


@njit(cache=True, nogil=True)
def descend(starts, items, order, level, length, heights):  # type: ignore[no-untyped-def]
    """Add everybody's weights to ``heights``, one person after another.

    A person moves the gaps of her items towards 0 by at most ``length`` in L2, in proportion to
    the gaps.

    Args:
        starts: person i holds ``items[starts[i]:starts[i + 1]]``, all different.
        items: of all persons.
        order: of the persons.
        level: at which an item takes no more weight.
        length: of a person's move, at most.
        heights: of each item so far, which is changed.
    """
    for person in order:
        first = starts[person]
        last = starts[person + 1]
        square = 0.0
        for place in range(first, last):
            gap = level - heights[items[place]]
            if gap > 0:
                square += gap * gap
        if square <= 0:
            continue
        norm = np.sqrt(square)
        share = 1.0 if norm <= length else length / norm
        for place in range(first, last):
            gap = level - heights[items[place]]
            if gap > 0:
                heights[items[place]] += gap * share
