"""What is promised to the people in a released table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from sottovoce.accounting import Neighbours
from sottovoce.protocol.guarantee import at_most_percent


@dataclass(frozen=True)
class CentralGuarantee:
    """Differential privacy with a trusted curator, who has seen everything.

    Whoever reads a release learns nearly the same whether or not any one user is in the table:
    no event's chance is more than e^epsilon times larger, but for delta. It protects against
    readers alone, not against the curator.

    >>> told = CentralGuarantee(Decimal(1), Decimal("1e-6"))
    >>> print(told)  # doctest: +ELLIPSIS
    (1, 0.000001)-differential privacy with a trusted curator, for each row, added or removed ...
    """

    epsilon: Decimal
    delta: Decimal
    neighbours: Neighbours = "add-remove"
    user: str | None = None  # the column that says whose a row is; None if each row is a user

    @property
    def unit(self) -> str:
        """Who is protected, in words."""
        if self.user is None:
            return "each row"
        return f"each {self.user!r} with all of its rows"

    def best_guess(self, prior: float) -> float:
        """The most that a release can raise a guess of probability ``prior`` about a user.

        Two guesses that differ in one user are at best told apart as if with chance delta the
        release told which is true, and else kept epsilon.
        """
        # delta + (1 - delta) / (1 + (1 - prior)/prior e^-eps)   kairouz2017composition
        delta = float(self.delta)
        kept = 1 / (1 + (1 - prior) / prior * math.exp(-float(self.epsilon)))
        return delta + (1 - delta) * kept

    def to_json(self) -> dict[str, Any]:
        """The guarantee as plain values."""
        return {
            "model": "central",
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "neighbours": self.neighbours,
            "user": self.user,
            "text": str(self),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        epsilon, delta = Decimal(data["epsilon"]), Decimal(data["delta"])
        return cls(epsilon, delta, data["neighbours"], data["user"])

    def __str__(self) -> str:
        numbers = f"({self.epsilon}, {self.delta})" if self.delta else f"{self.epsilon}"
        change = "added or removed" if self.neighbours == "add-remove" else "replaced by another"
        guess = at_most_percent(self.best_guess(0.5))
        return (
            f"{numbers}-differential privacy with a trusted curator, for {self.unit}, {change} "
            f"(a 50% guess about a user rises to at most {guess})"
        )
