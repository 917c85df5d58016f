"""The planner: every method's predicted error for the numbers at hand, the best one first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import MOST_UNHEARD
from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.marginals.methods import METHODS
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.prediction import Rank

CHOOSABLE = tuple(method for method in METHODS if not method.is_baseline)
BASELINES = tuple(method for method in METHODS if method.is_baseline)
# times the squared error, for a method that is sure to hear of every table where others are not
MOST_DEARER = 2.0


@dataclass(frozen=True)
class Choice:
    """A method that fits, its settled options, and the squared error that it is predicted to make
    per table.
    """

    method: MarginalMethod
    options: dict[str, Any]
    error: float
    reason: str
    left_out: tuple[Places, ...]  # attributes and pairs of the workload that nobody is asked about
    unheard: float  # the expected number of coefficients of others that nobody is heard on


def ranking(
    work: Workload, terms: Terms, methods: Sequence[MarginalMethod] = METHODS
) -> list[Choice]:
    """The methods that fit, by predicted error."""
    choices = []
    for method in methods:
        if method.refuse(work, terms) is None:
            try:
                options = method.settle(work, terms)
                error = method.predict(work, terms, options)
            except InvalidInput:
                continue  # it cannot be settled for these numbers, so it does not fit
            coverage = method.coverage(work, options)
            choices.append(
                Choice(
                    method,
                    options,
                    error,
                    method.reason(work, terms, options),
                    coverage.left_out,
                    coverage.unheard(terms.people),
                )
            )
    return sorted(choices, key=lambda choice: choice.error)


def ranks_of(work: Workload, choices: Sequence[Choice], chosen: str) -> list[Rank]:
    """Ranked choices as people read them; ``chosen`` is the method that a plan took."""
    least = choices[0].error if choices else 0.0
    return [
        Rank(
            method=choice.method.name,
            predicted_sse=choice.error,
            per_cell=sqrt(choice.error / work.mean_cells),
            ratio=choice.error / least if least > 0 else None,
            reason=choice.reason,
            chosen=choice.method.name == chosen,
            never_asked=len(choice.left_out),
        )
        for choice in choices
    ]


def best(work: Workload, terms: Terms) -> Choice:
    """The method to choose, with its settled options."""
    return best_of(ranking(work, terms, CHOOSABLE))


def best_of(choices: Sequence[Choice]) -> Choice:
    """Of ranked methods the one with the least predicted error of those that leave out no table of
    the workload.

    With few people those come first that are all but sure to hear of every table, unless they err
    much more.
    """
    fitting = [choice for choice in choices if not choice.method.is_baseline]
    if not fitting:
        raise InvalidInput(
            "no method fits these attributes and people; ask about fewer or smaller attributes"
        )
    covering = [choice for choice in fitting if not choice.left_out]
    if not covering:
        raise InvalidInput(
            "no method asks for every table of so few people; ask for fewer tables (workload) or "
            "attributes, or name a "
            "method, whose plan then says what it leaves out"
        )
    sure = [choice for choice in covering if choice.unheard <= MOST_UNHEARD]
    if sure and sure[0].error <= MOST_DEARER * covering[0].error:
        return sure[0]
    return covering[0]
