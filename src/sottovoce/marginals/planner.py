"""The planner: every method's predicted error for the numbers at hand, the best one first."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sottovoce.errors import InvalidInput
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
            try:
                options = method.settle(work, epsilon, people)
                error = method.predict(work, epsilon, people, options)
            except InvalidInput:
                continue  # it cannot be settled for these numbers, so it does not fit
            choices.append(Choice(method, options, error, method.reason(work, epsilon, people, options)))
    return sorted(choices, key=lambda choice: choice.error)


def best(work: Workload, epsilon: Decimal, people: int) -> Choice:
    """The method with the least predicted error of those that are made to be chosen."""
    for choice in ranking(work, epsilon, people):
        if not choice.method.is_baseline:
            return choice
    raise InvalidInput("no method fits these attributes and people; ask about fewer or smaller attributes")
