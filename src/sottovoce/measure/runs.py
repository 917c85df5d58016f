"""What repeated runs share: their seeds, and how much their figures vary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WARM_UP_PEOPLE = 64  # whose reports are thrown away, so that no clock measures a compiler


def seeded(*seeds: int) -> np.random.Generator:
    """A generator of its own for each purpose."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(list(seeds))))


def deviation(figures: Sequence[float]) -> float | None:
    """The standard deviation of a figure over runs; None of a single one."""
    return float(np.std(figures, ddof=1)) if len(figures) > 1 else None
