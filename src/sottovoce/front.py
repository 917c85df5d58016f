"""The front door: the one explicit tuple of questions, and the functions a person starts with."""

from __future__ import annotations

from typing import Any, Self

from sottovoce import plans
from sottovoce.client import simulate
from sottovoce.errors import InvalidInput
from sottovoce.frequencies import Frequencies
from sottovoce.marginals import Marginals
from sottovoce.plans import Question, Series
from sottovoce.schema import Schema

__all__ = ["QUESTIONS", "Plan", "plan", "simulate"]

# Every question there is. A new protocol is a module that implements Question and a line here.
QUESTIONS: tuple[type[Question], ...] = (Frequencies, Marginals)


class Plan(plans.Plan):
    """A frozen plan, public and named by its hash, that can be read back.

    >>> from sottovoce.schema import Boolean
    >>> made = plan(Schema(smoker=Boolean()), Frequencies("smoker"), epsilon=1.0, people=10_000)
    >>> Plan.from_json(made.to_json(), id=made.id) == made
    True
    """

    @classmethod
    def from_json(cls, text: str | bytes, id: str | None = None) -> Self:
        """Read a plan as stored. With ``id`` it is refused unless its bytes hash to it."""
        return cls.parse(text, QUESTIONS, id)


def plan(
    schema: Schema,
    question: Question,
    *,
    epsilon: Any,
    people: int,
    rounds: tuple[int, ...] = (1,),
    after: plans.Plan | None = None,
    coin: str = "device",
) -> Plan:
    """Freeze a question into a plan.

    ``rounds``: shares of the crowd for a series of plans, of which this is the first; nobody answers two.
    ``after``: the plan of the round before; the shares are its.
    ``coin``: ``device`` if devices draw their cohort and hashes themselves, ``assigned`` if the collector hands them
    out, signed, so that a liar cannot choose them (see :class:`sottovoce.Assignment`).

    >>> from sottovoce.schema import Boolean
    >>> made = plan(Schema(smoker=Boolean()), Frequencies("smoker"), epsilon=1.0, people=10_000)
    >>> Plan.from_json(made.to_json()) == made
    True
    """
    if not isinstance(question, Question):
        raise InvalidInput("question must be one of sottovoce's questions, such as Frequencies")
    if after is None:
        series = Series(tuple(rounds))
    else:
        before = after.series
        series = Series(before.shares, before.number + 1, before.origin or after.id, after.id)
    return Plan.make(schema, question, epsilon, people, series, coin)
