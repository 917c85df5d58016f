"""Whether a file is a copy of another one in which some rows were changed, added or removed."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_MOVED = 3  # rows that were added or removed before a half of the file
# with which other people in any order are taken for a copy, in each comparison
LARGEST_CHANCE = 1e-5


def is_copy(rows: NDArray[np.int64], drawn: NDArray[Any], here: NDArray[Any]) -> bool:
    """Whether many more rows are equal at one distance than at the next ones.

    Rows of other people are as often equal at the same places as one place further up or down: that
    holds if there are few values, and if both files are sorted. Of a copy those at the same places
    are equal, and others by chance. Where rows were added or removed, a half of the file is
    compared, and at distances of up to ``MOST_MOVED``.

    Args:
        rows: the numbers, from 0 and ascending, of the rows that were drawn of the first file
        drawn: what they were, of each a number
        here: all rows of the other file, in the same numbers

    >>> first = np.random.default_rng(1).integers(0, 4, 100)
    >>> mended = np.where(np.arange(100) == 7, 3 - first, first)
    >>> others = np.random.default_rng(2).integers(0, 4, 100)
    >>> [is_copy(np.arange(100), first, each) for each in (mended, others)]
    [True, False]
    """
    distances = range(-MOST_MOVED - 1, MOST_MOVED + 2)
    equal = {
        distance: _equal(rows + distance, drawn, here) for distance in distances
    }  # each (rows,)
    half = len(rows) // 2
    for part in (slice(None), slice(half), slice(half, None)):
        for distance in distances[1:-1]:
            at, above, below = (
                equal[each][part] for each in (distance, distance - 1, distance + 1)
            )
            if _is_more(at, above) and _is_more(at, below):
                return True
    return False


def _equal(places: NDArray[np.int64], drawn: NDArray[Any], here: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are equal to those at other places; none is to one outside of the file."""
    equal = np.zeros(len(drawn), np.bool_)
    inside = (places >= 0) & (places < len(here))
    equal[inside] = drawn[inside] == here[places[inside]]
    return equal


def _is_more(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """A sign test: of the rows equal in one comparison alone, too many are in the first."""
    ones = int(np.count_nonzero(one & ~other))
    others = int(np.count_nonzero(other & ~one))
    both = ones + others
    if ones <= others:
        return False
    # P[Bin(n, 1/2) >= k]  <=  (n / 2k)^k (n / 2(n-k))^(n-k)        Chernoff's bound
    exponent = ones * log(2 * ones / both)
    if others:
        exponent += others * log(2 * others / both)
    return exponent >= -log(LARGEST_CHANCE)
