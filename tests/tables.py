"""Small tables with known errors, for tests of repairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.oracles import Noise
from sottovoce.results.cells import PureLaw


def plain(values: list[float] | NDArray[np.float64], variance: float = 0.01) -> sv.Table:
    """Values whose errors are alike, and no counts behind them."""
    column = np.asarray(values, float)
    return sv.Table(
        ("x",),
        range(column.size),
        column,
        np.full(column.size, variance),
        100,
        Noise(variance, 0.0),
    )


def pure(
    support: NDArray[np.int64] | list[int], people: int, p: float, q: float, encoding: str = "bits"
) -> sv.Table:
    """What so many reports of a pure oracle say, with their counts."""
    counts = np.asarray(support, np.int64)
    values = (counts / people - q) / (p - q)
    noise = Noise(q * (1 - q) / (people * (p - q) ** 2), (1 - p - q) / (people * (p - q)))
    variances = noise.variance(np.clip(values, 0, 1))
    law = PureLaw(counts, p, q, encoding)
    return sv.Table(("x",), range(counts.size), values, variances, people, noise, law=law)
