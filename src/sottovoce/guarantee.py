"""What a person is promised: one number for a report, one for a lifetime."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """A bound on what reports reveal, in the sense of local differential privacy, pure unless it has a delta.

    ``per_report`` bounds the log ratio of the chances of any one report under any two records.
    ``lifetime`` bounds it for everything a client that keeps its state will ever send under the plan.

    >>> Guarantee(1.0, 1.0) + Guarantee(0.5, 2.0)
    Guarantee(per_report=1.5, lifetime=3.0, delta=0.0)
    >>> Guarantee(1.0, 1.0).best_guess(0.5)
    0.7310585786300049
    >>> print(Guarantee(1.0, 1.0, 0.001))
    (1, 0.001)-LDP per report, (1, 0.001) over a lifetime (a 50% guess about a person rises to at most 73%)
    """

    per_report: float
    lifetime: float
    delta: float = 0.0  # the chance that the bound fails; 0 unless a plan says otherwise

    def __add__(self, other: Guarantee) -> Guarantee:
        """Both are revealed: the losses add."""
        return Guarantee(self.per_report + other.per_report, self.lifetime + other.lifetime, self.delta + other.delta)

    def __or__(self, other: Guarantee) -> Guarantee:
        """One of the two is revealed, which one is public: the larger loss counts."""
        return Guarantee(
            max(self.per_report, other.per_report), max(self.lifetime, other.lifetime), max(self.delta, other.delta)
        )

    def best_guess(self, prior: float) -> float:
        """The most that a lifetime of reports can raise a guess that was right with probability ``prior``.

        Of two records, reports are at best as if with chance delta they told which it is, and else kept epsilon.
        """
        # delta + (1 - delta) / (1 + (1 - prior)/prior e^-eps)                  kairouz2017composition
        kept = 1 / (1 + (1 - prior) / prior * math.exp(-self.lifetime))
        return self.delta + (1 - self.delta) * kept

    def __str__(self) -> str:
        one, all_ = (
            f"({cost:.4g}, {self.delta:.4g})" if self.delta else f"{cost:.4g}"
            for cost in (self.per_report, self.lifetime)
        )
        return (
            f"{one}-LDP per report, {all_} over a lifetime "
            f"(a 50% guess about a person rises to at most {self.best_guess(0.5):.0%})"
        )
