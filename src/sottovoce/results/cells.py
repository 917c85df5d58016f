"""Single figures of a table: a cell by its label, and the sum of some of them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema import Label

CellLabel = Label | tuple[Label, ...]  # of a table of one attribute, or of several


@dataclass(frozen=True)
class Cell:
    """One value of a table, with its standard error and its 95% interval.

    >>> print(Cell("yes", 0.25, 0.01, 0.2304, 0.2696))
    yes: 0.2500 ± 0.0100 [0.2304, 0.2696]
    """

    label: CellLabel
    value: float
    std_error: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"{self.label}: {self.value:.4f} ± {self.std_error:.4f} [{self.low:.4f}, "
            f"{self.high:.4f}]"
        )


class Total(float):
    """A summed frequency: a number that carries its standard error.

    ``is_bound`` says that the standard error is the largest it can be, where it is not known how
    cells err together.

    >>> total = Total(0.5, 0.02)
    >>> total + 1, total.std_error, [round(end, 3) for end in total.interval(0.95)]
    (1.5, 0.02, [0.461, 0.539])
    """

    std_error: float
    is_bound: bool

    def __new__(cls, value: float, std_error: float, is_bound: bool = False) -> Total:
        made = super().__new__(cls, value)
        made.std_error = std_error
        made.is_bound = is_bound
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:  # copied and pickled with its error
        return float(self), self.std_error, self.is_bound

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """(low, high): a normal interval."""
        reach = quantile(level) * self.std_error
        return float(self) - reach, float(self) + reach

    def to_json(self, level: float = 0.95) -> dict[str, float]:
        """The sum as a row of a table has its figures."""
        low, high = self.interval(level)
        return {
            "frequency": float(self),
            "std_error": self.std_error,
            "low": low,
            "high": high,
        }


def quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    if not 0.5 < (1 + level) / 2 < 1:  # also refuses what a float cannot tell from 0 or 1
        raise InvalidInput(f"level ({level}) must lie between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)
