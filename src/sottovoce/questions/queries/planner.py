"""The planner: every method's predicted error over the workload, the best one first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.terms import Terms
from sottovoce.questions.prediction import UNPREDICTED, Rank
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.methods import METHODS, method
from sottovoce.questions.queries.target import Target

MAX_KEPT_ERRORS = 256


@dataclass(frozen=True)
class QueryChoice:
    """A method that fits, its settled options, and its predicted squared error of a share."""

    method: QueryMethod
    options: dict[str, Any]
    error: float
    reason: str


@lru_cache(maxsize=MAX_KEPT_ERRORS)
def squared_error(name: str, target: Target, terms: Terms, options: str) -> float | None:
    """What a method predicts, with its settled options as JSON; predictions may take a second."""
    return method(name).predict(target, terms, json.loads(options))


def ranking(target: Target, terms: Terms) -> tuple[tuple[QueryChoice, ...], tuple[Rank, ...]]:
    """The methods that can be predicted, the best first; and those that cannot, with reasons."""
    choices, others = [], []
    for each in METHODS:
        reason = each.refuse(target, terms)
        if reason is not None:
            others.append(unfit(each, reason))
            continue
        try:
            options = each.settle(target, terms)
        except InvalidInput as wrong:
            others.append(unfit(each, str(wrong)))
            continue
        error = squared_error(each.name, target, terms, json.dumps(options))
        if error is None:
            others.append(unfit(each, UNPREDICTED))
        else:
            choices.append(QueryChoice(each, options, error, each.reason(target, terms, options)))
    return tuple(sorted(choices, key=lambda choice: choice.error)), tuple(others)


def unfit(method: QueryMethod, reason: str) -> Rank:
    """How a method stands in a ranking that cannot be ranked."""
    return Rank(method.name, None, None, None, reason, False, None)


def best_of(choices: Sequence[QueryChoice]) -> QueryChoice:
    """The method that ``auto`` takes."""
    chosen = [choice for choice in choices if not choice.method.is_baseline]
    if not chosen:
        raise InvalidInput("method (auto): no method fits these dimensions")
    return chosen[0]


def ranks_of(
    choices: Sequence[QueryChoice], others: Sequence[Rank], chosen: str
) -> tuple[Rank, ...]:
    """A ranking as it is shown."""
    found = []
    for choice in choices:
        is_chosen = choice.method.name == chosen
        ratio = choice.error / choices[0].error
        found.append(
            Rank(
                choice.method.name,
                choice.error,
                sqrt(choice.error),
                ratio,
                choice.reason,
                is_chosen,
                0,
            )
        )
    marked = [
        Rank(each.method, None, None, None, each.reason, each.method == chosen, None)
        for each in others
    ]
    return (*found, *marked)
