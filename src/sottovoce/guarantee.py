"""What a person is promised: one number for a report, one for a lifetime."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """A bound on what reports reveal, in the sense of pure local differential privacy.

    ``per_report`` bounds the log ratio of the chances of any one report under any two records.
    ``lifetime`` bounds it for everything a client that keeps its state will ever send under the plan.

    >>> Guarantee(1.0, 1.0) + Guarantee(0.5, 2.0)
    Guarantee(per_report=1.5, lifetime=3.0)
    >>> Guarantee(1.0, 1.0).best_guess(0.5)
    0.7310585786300049
    """

    per_report: float
    lifetime: float

    def __add__(self, other: Guarantee) -> Guarantee:
        """Both are revealed: the losses add."""
        return Guarantee(self.per_report + other.per_report, self.lifetime + other.lifetime)

    def __or__(self, other: Guarantee) -> Guarantee:
        """One of the two is revealed, which one is public: the larger loss counts."""
        return Guarantee(max(self.per_report, other.per_report), max(self.lifetime, other.lifetime))

    def best_guess(self, prior: float) -> float:
        """The most that a lifetime of reports can raise a guess that was right with probability ``prior``."""
        return 1 / (1 + (1 - prior) / prior * math.exp(-self.lifetime))

    def __str__(self) -> str:
        return (
            f"{self.per_report:.4g}-LDP per report, {self.lifetime:.4g} over a lifetime "
            f"(a 50% guess about a person rises to at most {self.best_guess(0.5):.0%})"
        )
