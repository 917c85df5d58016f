"""The planner: every method's predicted error for the numbers at hand, the best one first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import MOST_UNHEARD
from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.marginals.methods import METHODS
from sottovoce.questions.marginals.methods.latent import Latent
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.prediction import Rank

# of ours alone: whoever installs a package does not change what auto is
CHOOSABLE = tuple(method for method in METHODS if not method.is_baseline)
BASELINES = tuple(method for method in METHODS if method.is_baseline)
# the one that mostly wins comes first, so that most others need not be settled
SEARCHED = tuple(sorted(CHOOSABLE, key=lambda method: method.name != Latent.name))
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
    work: Workload,
    terms: Terms,
    methods: Sequence[MarginalMethod] = METHODS,
    known: Sequence[Choice] = (),
) -> list[Choice]:
    """The methods that fit, by predicted error; what is ``known`` is not predicted again."""
    by_method = {choice.method.name: choice for choice in known}
    choices = []
    for method in methods:
        choice = by_method.get(method.name) or _offered(method, work, terms, inf)
        if choice is not None:
            choices.append(choice)
    return sorted(choices, key=lambda choice: choice.error)


def _offered(method: MarginalMethod, work: Workload, terms: Terms, most: float) -> Choice | None:
    """What a method offers; None if it does not fit, or is sure to have nothing below ``most``."""
    if method.refuse(work, terms) is not None:
        return None
    try:
        offer = method.offer(work, terms, most)
    except InvalidInput:
        return None  # it cannot be settled for these numbers, so it does not fit
    if offer is None:
        return None
    coverage = method.coverage(work, offer.options)
    return Choice(
        method,
        offer.options,
        offer.error,
        method.reason(work, terms, offer.options),
        coverage.left_out,
        coverage.unheard(terms.people),
    )


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
    """The method to choose, with its settled options: the best of the ranked ones."""
    return best_of(searched(work, terms))


def searched(work: Workload, terms: Terms) -> list[Choice]:
    """Those of the ranked methods of which :func:`best_of` chooses the same as of all.

    Methods that cannot be chosen are not settled if they can tell so beforehand. Of a method that
    asks for every table :func:`best_of` takes none that errs more, if it is sure to hear of them;
    or else none that errs more than ``MOST_DEARER`` times as much.
    """
    most = inf  # the error beyond which nothing is chosen
    choices = []
    for method in SEARCHED:
        choice = _offered(method, work, terms, most)
        if choice is None:
            continue
        choices.append(choice)
        if not choice.left_out:
            is_sure = choice.unheard <= MOST_UNHEARD
            most = min(most, choice.error if is_sure else MOST_DEARER * choice.error)
    return sorted(choices, key=lambda choice: (choice.error, CHOOSABLE.index(choice.method)))


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
