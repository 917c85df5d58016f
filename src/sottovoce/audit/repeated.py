"""Estimates of one crowd, again and again: whether they are right on average, and as far off as
they say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.results.estimate import Table

Floats = NDArray[np.float64]

REPEATS = 48  # estimates of one crowd
REPEAT_ALARM = 1e-6  # chance that a law rejects a table that is right
MOST_SPREAD = 1.25  # times that measured and stated variances may differ beyond chance


@dataclass
class RepeatedTable:
    """What one table said, run after run."""

    values: list[Floats] = field(default_factory=list)  # (cells,) of each run
    variances: list[Floats] = field(default_factory=list)  # stated, (cells,) of each run

    def add(self, table: Table) -> None:
        """One more run."""
        self.values.append(np.asarray(table.values))
        self.variances.append(np.asarray(table.variances))

    @property
    def runs(self) -> int:
        return len(self.values)

    def mean(self) -> Floats:
        """The mean over runs, (cells,)."""
        return np.asarray(np.mean(self.values, axis=0))

    def error(self) -> Floats:
        """The variance of that mean as the runs show it, (cells,)."""
        return np.asarray(np.var(self.values, axis=0, ddof=1) / self.runs)


def worst_bias(
    found: RepeatedTable, truth: Floats, error: Floats | float = 0.0
) -> tuple[float, float]:
    """How many standard errors the mean of a cell is off at most, and how many chance allows.

    Args:
        found: runs of one table.
        truth: of its cells, (cells,).
        error: the variance of what is taken for the truth, (cells,).
    """
    stats = imported("scipy.stats")
    spread = np.sqrt(found.error() + error)  # (cells,)
    off = np.abs(found.mean() - truth)
    distances = np.divide(off, spread, out=np.where(off > 1e-12, np.inf, 0.0), where=spread > 0)
    limit = float(stats.t.isf(REPEAT_ALARM / 2 / truth.size, df=found.runs - 1))
    return float(distances.max()), limit


def variance_ratio(found: RepeatedTable, truth: Floats) -> float:
    """Measured over stated variance of a whole table: of the sums of squared errors."""
    measured = float(np.mean([float(((values - truth) ** 2).sum()) for values in found.values]))
    stated = float(np.mean([float(each.sum()) for each in found.variances]))
    if stated <= 0:
        return 1.0 if measured < 1e-20 else np.inf
    return measured / stated


def is_off(ratio: float, runs: int) -> bool:
    """Whether a ratio of variances is further from 1 than it may be, on either side.

    The mean of squared normal errors varies most where all cells err as one: then it is that of a
    chi-squared variable of as many degrees of freedom as there are runs.

    >>> is_off(1.2, 48), is_off(4.0, 48), is_off(0.2, 48)
    (False, True, True)
    """
    stats = imported("scipy.stats")
    most = stats.chi2.isf(REPEAT_ALARM / 2, runs) / runs * MOST_SPREAD
    least = stats.chi2.ppf(REPEAT_ALARM / 2, runs) / runs / MOST_SPREAD
    return not least <= ratio <= most
