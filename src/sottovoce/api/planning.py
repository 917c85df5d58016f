"""The front door: the one explicit tuple of questions, and the functions a person starts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.device.client import simulate
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.results.estimate import Estimate
from sottovoce.schema import MEMBERS, Schema

__all__ = ["Plan", "next_plan", "plan", "simulate", "simulate_rounds"]


def plan(
    schema: Schema,
    question: Question,
    *,
    epsilon: Any,
    people: int,
    rounds: tuple[int, ...] | None = None,
    after: Plan | None = None,
    coin: str = COINS[0],
    public: Sequence[str] = (),
) -> Plan:
    """Freeze a question into a plan.

    ``rounds``: shares of the crowd for a series of plans, of which this is the first; nobody
    answers two. By default those of the question, which are one round for most. ``after``: the plan
    of the round before; the shares are its. ``coin``: ``device`` if devices draw their cohort and
    hashes themselves, ``assigned`` if the collector hands them out, signed, so that a liar cannot
    choose them (see :class:`sottovoce.Assignment`). ``public``: attributes that are not sensitive
    and travel in clear beside the whisper, in this order. The guarantee is about the attributes
    that are asked about, given these.

    >>> import sottovoce as sv
    >>> schema = Schema(smoker=sv.Boolean())
    >>> made = plan(schema, sv.Frequencies("smoker"), epsilon=1.0, people=10_000)
    >>> Plan.from_json(made.to_json()) == made
    True
    """
    if not isinstance(question, Question):
        raise InvalidInput("question must be one of sottovoce's questions, such as Frequencies")
    if coin not in COINS:
        raise InvalidInput(f"coin ({coin}) must be one of {', '.join(COINS)}")
    if isinstance(public, str):
        raise InvalidInput(f"public ({public}) must be a list of names, such as [{public!r}]")
    terms = Terms.of(epsilon, people)
    settled = question.settled(schema, terms)
    if after is None:
        series = Series(settled.rounds(schema) if rounds is None else tuple(rounds))
    else:
        before = after.series
        series = Series(before.shares, before.number + 1, before.origin or after.id, after.id)
    return settled.plan(schema, terms, series, coin, public)


def next_plan(after: Plan, estimate: Estimate) -> Plan | None:
    """The plan of the next round, for other people; None if the estimate is the last word.

    >>> import sottovoce as sv
    >>> schema = Schema(basket=sv.Items(range(100)))
    >>> first = plan(schema, sv.TopItems("basket", top=4), epsilon=2.0, people=1000)
    >>> reports = simulate(first, {"basket": [[1, 2], [2, 3]] * 500}, seed=1)
    >>> second = next_plan(first, Aggregate(first).add(reports).estimate())
    >>> second.series.number
    1
    """
    if estimate.next is None:
        return None
    # in a single round everybody is asked again, out of what is left of epsilon
    before = None if len(after.series.shares) == 1 else after
    return plan(
        after.schema,
        estimate.next,
        epsilon=after.epsilon,
        people=after.people,
        after=before,
        coin=after.coin,
        public=after.columns,
    )


def simulate_rounds(first: Plan, table: Any, seed: int) -> Estimate:
    """The last estimate of a plan and of all rounds after it, from a crowd of simulated devices.

    >>> import sottovoce as sv
    >>> schema = Schema(basket=sv.Items(range(100)))
    >>> first = plan(schema, sv.TopItems("basket", top=2), epsilon=4.0, people=10_000)
    >>> found = simulate_rounds(first, {"basket": [[1, 2], [2, 3]] * 5000}, seed=1)
    >>> found.table.labels[0]
    2
    """
    if first.cohorts.form == MEMBERS:  # sets are read once for all rounds
        in_clear = {name: table[name] for name in first.columns}
        table = first.schema.encode_table(table, first.cohorts.attributes, MEMBERS) | in_clear
    current: Plan | None = first
    while current is not None:
        estimate = Aggregate(current).add(simulate(current, table, seed)).estimate()
        if len(current.series.shares) == 1:
            seed += 1  # who is asked again draws new coins
        current = next_plan(current, estimate)
    return estimate
