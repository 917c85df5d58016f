"""Weights of reports: integers in fixed point, which may be negative."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.errors import InvalidInput

Integers = NDArray[np.int64]
MOST_WEIGHT = 1 << 50  # absolute weights of all reports, added up


class Weighed(NamedTuple):
    """Weights of reports added up, and their absolute values added up: without weights both are the
    reports.
    """

    total: int
    magnitude: int


def weighed(weights: Integers) -> Weighed:
    """What weights add up to; a magnitude is exact below 2^53, which is more than any state takes.

    >>> weighed(np.array([3, -4]))
    Weighed(total=-1, magnitude=7)
    """
    from sottovoce.kernels.weights import weight_sums

    total, magnitude = weight_sums(weights)
    return Weighed(int(total), int(magnitude))


def magnitude_of(counts: Integers) -> int:
    """The absolute values of counts added up, exact below 2^53, whatever the counts are.

    >>> magnitude_of(np.array([3, -4]))
    7
    """
    return int(np.abs(counts.astype(np.float64)).sum())


def whole_weights(weights: ArrayLike, count: int) -> Integers:
    """``weights`` as a column of 64-bit integers, one for each of ``count`` reports.

    >>> whole_weights([2, -1], 2).tolist()
    [2, -1]
    """
    column = np.asarray(weights)
    if column.size == 0 and count == 0:
        return np.zeros(0, np.int64)
    is_whole = column.dtype.kind == "i" or (column.dtype.kind == "u" and column.dtype.itemsize < 8)
    if not is_whole or column.shape != (count,):
        raise InvalidInput(
            f"weights must be a column of {count} signed integers, one for each report"
        )
    return column.astype(np.int64, copy=False)


def too_much(most: int) -> InvalidInput:
    """The error of weights with which a sum might overflow."""
    return InvalidInput(
        f"weights: with all reports so far their absolute values must add up to at most {most}"
    )
