"""The planner: every method's predicted error for the numbers at hand, the best one first."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sottovoce.marginals.method import Method
from sottovoce.marginals.methods import METHODS
from sottovoce.marginals.workload import Workload


@dataclass(frozen=True)
class Choice:
    """A method that fits, its settled options, and the squared error that it is predicted to make per table."""

    method: Method
    options: dict[str, Any]
    error: float
    reason: str


def ranking(work: Workload, epsilon: Decimal, people: int) -> list[Choice]:
    """The methods that fit, by predicted error."""
    choices = []
    for method in METHODS:
        if method.refuse(work, epsilon, people) is None:
            options = method.settle(work, epsilon, people)
            error = method.predict(work, epsilon, people, options)
            choices.append(Choice(method, options, error, method.reason(work, epsilon, people, options)))
    return sorted(choices, key=lambda choice: choice.error)
