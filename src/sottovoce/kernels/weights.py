"""Weights beside reports, added up."""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def weight_sums(weights):  # type: ignore[no-untyped-def]
    """(sum of weights, sum of their absolute values as a float: exact below 2^53), in one pass."""
    total = np.int64(0)
    absolute = 0.0
    for row in range(weights.size):
        total += weights[row]
        absolute += abs(np.float64(weights[row]))
    return total, absolute
