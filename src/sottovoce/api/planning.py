"""The front door: the one explicit tuple of questions, and the functions a person starts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.api.shuffled import DEFAULT_LOCAL_CAP, ShufflingTarget, shuffled
from sottovoce.device.simulation import simulate
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import LOCAL, SHUFFLED, Terms
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
    trust: str = LOCAL,
    delta: Any = None,
    cap: Any = DEFAULT_LOCAL_CAP,
    fakes: int = 0,
    least: int | None = None,
    hops: Sequence[str] = (),
) -> Plan:
    """Freeze a question into a plan.

    With ``trust="shuffled"`` somebody mixes the reports before anybody opens them; ``epsilon`` and
    ``delta`` then bound what the analyst learns, and what a report may cost by itself (the plan's
    own epsilon) is solved for.

    Args:
        schema: what people may answer.
        question: what is to be learnt, such as :class:`sottovoce.Marginals`.
        epsilon: what a person's report may cost; a number, a text or a fraction.
        people: how many are expected, in all rounds.
        rounds: shares of the crowd for a series of plans, of which this is the first; nobody
            answers two. By default those of the question, which are one round for most.
        after: the plan of the round before; the shares are its.
        coin: ``device`` if devices draw their cohort and hashes themselves, ``assigned`` if the
            collector hands them out, signed, so that a liar cannot choose them (see
            :class:`sottovoce.Assignment`).
        public: attributes that are not sensitive and travel in clear beside the whisper, in this
            order. The guarantee is about the attributes that are asked about, given these.
        trust: ``local``, or ``shuffled``.
        delta: of a shuffled plan: the chance that its bound fails.
        cap: of a shuffled plan: the most that a report may cost by itself.
        fakes: of a shuffled plan: how many reports of nobody the shufflers add, which hide a person
            even if everybody else tells the analyst what she sent.
        least: of a shuffled plan: how many people surely report, nine in ten unless it is given;
            fewer are not opened.
        hops: of a shuffled plan: public keys (``sottovoce key``) of the shufflers in turn and of
            the collector; without them the plan is for simulations.

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
    if trust != SHUFFLED:
        _check_local(trust, delta, cap, fakes, least, hops)
        terms = Terms.of(epsilon, people)
        settled = question.settled(schema, terms)
        series = _series(settled, schema, rounds, after)
        return settled.plan(schema, terms, series, coin, public)
    if coin != COINS[0]:
        raise InvalidInput(
            f"coin ({coin}) must be {COINS[0]} in a shuffled plan: an assigned coin names its "
            "sender"
        )
    target = ShufflingTarget.of(epsilon, delta, people, least, cap, fakes, hops)
    # how the crowd is split does not depend on what a report may cost
    at_most = Terms.of(target.cap, people, trust=SHUFFLED)
    split = _series(question.settled(schema, at_most), schema, rounds, after)
    target = target.of_round(split)
    settled, terms, part = shuffled(question, schema, target, people)
    return settled.plan(schema, terms, split, coin, public, part)


def _series(
    settled: Question, schema: Schema, rounds: tuple[int, ...] | None, after: Plan | None
) -> Series:
    """The rounds of a settled question's plan: its own, those that were named, or the next one."""
    if after is None:
        return Series(settled.rounds(schema) if rounds is None else tuple(rounds))
    before = after.series
    return Series(before.shares, before.number + 1, before.origin or after.id, after.id)


def _check_local(
    trust: str, delta: Any, cap: Any, fakes: int, least: int | None, hops: Sequence[str]
) -> None:
    """Refuse what only a shuffled plan has."""
    Terms.of(1, 1, trust=trust)
    parts = {
        "delta": delta is not None,
        "cap": cap != DEFAULT_LOCAL_CAP,
        "fakes": fakes != 0,
        "least": least is not None,
        "hops": bool(hops),
    }
    for name, is_given in parts.items():
        if is_given:
            raise InvalidInput(f"{name} is for trust='shuffled', not for trust={trust!r}")


def next_plan(after: Plan, estimate: Estimate) -> Plan | None:
    """The plan of the next round, for other people; None if the estimate is the last word.

    Args:
        after: the plan of the round that was heard.
        estimate: what it said.

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
    if after.shuffling is not None:
        return _next_shuffled(after, estimate.next, before)
    return plan(
        after.schema,
        estimate.next,
        epsilon=after.epsilon,
        people=after.people,
        after=before,
        coin=after.coin,
        public=after.columns,
    )


def _next_shuffled(after: Plan, question: Question, before: Plan | None) -> Plan:
    """The next round of a shuffled plan, among people who were not asked yet."""
    part = after.shuffling
    assert part is not None
    if before is None:
        raise InvalidInput(
            f"question ({question.kind}): its method asks everybody again, and what two shuffled "
            "reports of one person tell together is not counted; name another method"
        )
    return plan(
        after.schema,
        question,
        epsilon=part.epsilon,
        people=after.people,
        after=before,
        trust=SHUFFLED,
        delta=part.delta,
        cap=part.cap,
        fakes=part.fakes,
        hops=part.hops,
    )


def simulate_rounds(first: Plan, table: Any, seed: int) -> Estimate:
    """The last estimate of a plan and of all rounds after it, from a crowd of simulated devices.

    Args:
        first: the plan of the first round.
        table: a dict of columns, a pandas or an Arrow table; a row is a person.
        seed: the same seed gives the same reports.

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
