"""The population and the plans that every group measures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv


def zipf(people: int, size: int, seed: int = 0) -> NDArray[np.int64]:
    """Values of a population in which the k-th value is 1/k as frequent as the first."""
    weights = 1.0 / np.arange(1, size + 1)
    bounds = np.cumsum(weights / weights.sum())
    drawn = np.searchsorted(bounds, np.random.default_rng(seed).random(people), side="right")
    return np.minimum(drawn, size - 1).astype(np.int64)


def plan_of(oracle: str, size: int, people: int, epsilon: float = 1.0) -> sv.Plan:
    """A plan with one attribute of ``size`` integers."""
    schema = sv.Schema(x=sv.Ordinal(0, size - 1))
    return sv.plan(schema, sv.Frequencies("x", oracle=oracle), epsilon=epsilon, people=people)


def estimated(plan: sv.Plan, reports: sv.Reports) -> sv.Table:
    """What a server does with reports: aggregate, and estimate all values."""
    return sv.Aggregate(plan).add(reports).estimate().marginal("x")


def batches(plan: sv.Plan, people: int, size: int, batch: int = 1 << 17) -> Iterator[sv.Reports]:
    """Reports of many people, never all at once."""
    values = zipf(batch, size)
    for start in range(0, people, batch):
        yield sv.simulate(plan, {"x": values[: min(batch, people - start)]}, seed=start)
