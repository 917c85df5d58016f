"""What a person is promised: one number for a report, one for a lifetime."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context, Decimal

TOLD_DIGITS = 4  # of a number that is told to people
DOUBLE_ERROR = 1e-12  # that a few operations on doubles may add


@dataclass(frozen=True)
class Promise:
    """One line of a guarantee: against whom, at what cost, and what a guess of 50% rises to."""

    against: str
    epsilon: float
    delta: float
    guess: float


@dataclass(frozen=True)
class Guarantee:
    """A bound on what reports reveal: local differential privacy, pure unless it has a delta.

    ``per_report`` bounds the log ratio of the chances of any one report under any two records.
    ``lifetime`` bounds it for everything a client that keeps its state will ever send under the
    plan.

    >>> Guarantee(1.0, 1.0) + Guarantee(0.5, 2.0)
    Guarantee(per_report=1.5, lifetime=3.0, delta=0.0)
    >>> Guarantee(1.0, 1.0).best_guess(0.5)
    0.7310585786300049
    >>> print(Guarantee(1.0, 1.0, 0.001))  # doctest: +ELLIPSIS
    (1, 0.001)-LDP per report, (1, 0.001) over a lifetime (... rises to at most 73.2%)
    """

    per_report: float  # epsilon of one report
    lifetime: float  # epsilon of all that a client with a state sends under the plan
    delta: float = 0.0  # the chance that the bound fails; 0 unless a plan says otherwise

    def __add__(self, other: Guarantee) -> Guarantee:
        """Both are revealed: the losses add."""
        return Guarantee(
            self.per_report + other.per_report,
            self.lifetime + other.lifetime,
            self.delta + other.delta,
        )

    def __or__(self, other: Guarantee) -> Guarantee:
        """One of the two is revealed, which one is public: the larger loss counts."""
        return Guarantee(
            max(self.per_report, other.per_report),
            max(self.lifetime, other.lifetime),
            max(self.delta, other.delta),
        )

    def best_guess(self, prior: float) -> float:
        """The most that a lifetime of reports can raise a guess of probability ``prior``.

        Of two records, reports are at best as if with chance delta they told which it is, and else
        kept epsilon.

        Args:
            prior: of the guess, before any report.
        """
        # delta + (1 - delta) / (1 + (1 - prior)/prior e^-eps)   kairouz2017composition
        kept = 1 / (1 + (1 - prior) / prior * math.exp(-self.lifetime))
        return self.delta + (1 - self.delta) * kept

    @property
    def promises(self) -> list[Promise]:
        """What is promised, adversary by adversary, the weakest first."""
        guess = self.best_guess(0.5)
        return [Promise("whoever sees a report", self.lifetime, self.delta, guess)]

    def to_json(self) -> dict[str, float]:
        """The numbers by name, for machines."""
        return asdict(self)

    def __str__(self) -> str:
        one, all_ = (
            f"({at_most(cost)}, {at_most(self.delta)})" if self.delta else at_most(cost)
            for cost in (self.per_report, self.lifetime)
        )
        return (
            f"{one}-LDP per report, {all_} over a lifetime "
            f"(a 50% guess about a person rises to at most {at_most_percent(self.best_guess(0.5))})"
        )


def at_most(value: float) -> str:
    """A number in four digits, rounded up: what is promised is never less than what is told.

    >>> at_most(0.1 + 0.2), at_most(0.00012341), at_most(1.5e-7)
    ('0.3', '0.0001235', '1.5e-7')
    """
    exact = Decimal(value * (1 - DOUBLE_ERROR))
    rounded = Context(prec=TOLD_DIGITS, rounding=ROUND_CEILING).create_decimal(exact).normalize()
    # as JavaScript writes it
    return f"{rounded:f}" if rounded.adjusted() >= -6 else str(rounded).lower()


def at_most_percent(share: float) -> str:
    """A share in percent, rounded up to one decimal.

    >>> at_most_percent(0.50250), at_most_percent(0.73106), at_most_percent(1.0)
    ('50.3%', '73.2%', '100%')
    """
    tenths = min(1000, math.ceil(1000 * (share + DOUBLE_ERROR)))
    return f"{tenths / 10:g}%"
