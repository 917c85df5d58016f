"""Normalizations: estimates that sum to one, with or without non-negativity.

All of them speak of the whole domain: a table that lists only some candidates need not sum to one.
Values are (..., d): every row of the last axis is a table by itself.
"""

from __future__ import annotations

import numpy as np

from sottovoce.results.cells import SUM_ROUNDING
from sottovoce.results.estimate import Floats


def norm(values: Floats) -> Floats:
    """Add one amount to every estimate so that they sum to one; unbiased (wang2021thesis, lemma 3).

    >>> norm(np.array([0.8, 0.3, -0.4])).round(6).tolist()
    [0.9, 0.4, -0.3]
    """
    # f_v = f~_v + delta,  delta = (1 - sum f~) / d   wang2021thesis, section 8.1.2
    missing = 1 - values.sum(axis=-1, keepdims=True)  # (..., 1)
    return np.asarray(values + missing / values.shape[-1])


def norm_mul(values: Floats) -> Floats:
    """Set negative estimates to 0 and scale the rest to sum to one; uniform if none is positive.

    >>> norm_mul(np.array([0.9, 0.3, -0.2])).round(6).tolist()
    [0.75, 0.25, 0.0]
    """
    # f_v = max(gamma f~_v, 0),  sum f_v = 1   wang2021thesis, section 8.1.2
    positive = np.maximum(values, 0.0)
    total = positive.sum(axis=-1, keepdims=True)  # (..., 1)
    uniform = np.full(values.shape, 1 / values.shape[-1])
    return np.asarray(np.divide(positive, total, out=uniform, where=total > 0))


def norm_sub(values: Floats) -> Floats:
    """The nearest point of the probability simplex (constrained least squares), in O(d log d).

    >>> norm_sub(np.array([0.9, 0.3, -0.2])).round(6).tolist()
    [0.8, 0.2, 0.0]
    >>> norm_sub(np.array([[0.9, 0.3, -0.2], [0.2, 0.3, 0.5]])).round(6).tolist()
    [[0.8, 0.2, 0.0], [0.2, 0.3, 0.5]]
    """
    # f_v = max(f~_v + delta, 0),  delta = (1 - sum over D1 of f~) / |D1|
    #     wang2021thesis, sections 8.1.2, 8.1.3
    # D1 is the largest k of the sorted estimates whose last one stays positive. The shift by the
    # maximum moves delta only, and keeps precision.
    below = values - values.max(axis=-1, keepdims=True)
    falling = np.sort(below, axis=-1)[..., ::-1]
    sums = np.cumsum(falling, axis=-1)
    counts = np.arange(1, values.shape[-1] + 1)
    kept = np.count_nonzero(counts * falling + (1 - sums) > 0, axis=-1, keepdims=True)  # |D1|
    delta = (1 - np.take_along_axis(sums, kept - 1, axis=-1)) / kept  # (..., 1)
    return np.asarray(np.maximum(below + delta, 0.0))


def norm_cut(values: Floats) -> Floats:
    """Set negative and small estimates to 0 until the rest, untouched, sum to at most one.

    The sum may be less than one (docs/errata, item 15), and is 0 if the largest estimate exceeds
    one.

    >>> norm_cut(np.array([0.7, 0.25, 0.2, -0.1])).tolist()
    [0.7, 0.25, 0.0, 0.0]
    """
    # the smallest theta with  sum over f~_v >= theta of f~_v  <= 1   wang2021thesis, section 8.1.2
    positive = np.maximum(values, 0.0)
    falling = np.sort(positive, axis=-1)[..., ::-1]
    sums = np.cumsum(falling, axis=-1)
    fitting = np.count_nonzero(sums <= 1 + SUM_ROUNDING, axis=-1, keepdims=True)  # so many fit
    is_whole = fitting == values.shape[-1]  # (..., 1)
    # equal estimates stay or go together, so all that equal the first one too many go
    first_gone = np.take_along_axis(falling, np.where(is_whole, 0, fitting), axis=-1)
    return np.where(is_whole | (positive > first_gone), positive, 0.0)
