"""A small population, and methods for marginals compared on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sottovoce.measure import MarginalsComparison, Population, compare_marginals


def people(rows: int = 3000, seed: int = 1) -> Population:
    """Five attributes of unequal sizes that depend on each other."""
    draws = np.random.default_rng(seed)
    base = draws.integers(0, 4, rows)
    return Population.of(
        {
            "a": base % 2,
            "b": np.where(draws.random(rows) < 0.7, base, draws.integers(0, 4, rows)),
            "c": np.array(["x", "y", "z"])[draws.integers(0, 3, rows)],
            "d": (base > 1) ^ (draws.random(rows) < 0.2),
            "e": draws.integers(0, 2, rows) * 7,
        }
    )


def rows_of(
    population: Population, methods: list[str], **changes: Any
) -> list[MarginalsComparison]:
    arguments: dict[str, Any] = {
        "k": 2,
        "people": 2000,
        "epsilons": ["1"],
        "queries": 4,
        "runs": 2,
        "seed": 1,
    }
    return list(compare_marginals(population, methods=methods, **arguments | changes))
