"""Plans whose reports are shuffled: from the analyst's epsilon to what a device may spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any

from sottovoce.accounting.shuffling import colluding_epsilon, least_people, local_epsilon_for
from sottovoce.accounting.shuffling.bounds import MAX_SHUFFLED
from sottovoce.accounting.shuffling.losses import Mixture
from sottovoce.api.descent import descended
from sottovoce.ground.arguments import LARGEST_INTEGER, share, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.series import Series
from sottovoce.protocol.shuffling import Shuffling, check_hops
from sottovoce.protocol.terms import SHUFFLED, Terms
from sottovoce.questions.base import Question, ShuffledChoice
from sottovoce.schema import Schema

DEFAULT_LOCAL_CAP = 8
EXPECTED_SHARE = Fraction(9, 10)  # of the people, that surely report unless it is said
MOST_SETTLED = 3  # times that a question is settled, each nearer to what it may spend
ROW_STRIDES = (16, 4, 1)  # in which a row of choices is gone along
ROUGHLY = 1.05  # times the least loss: what is solved roughly errs by a few percent
SETTLED_TO = Decimal("0.05")  # how much of its epsilon it may still gain then
TOLD = Context(prec=4, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class ShufflingTarget:
    """What an analyst is to be kept from learning, and by how many people.

    Attributes:
        epsilon: against the analyst.
        delta: of the same promise.
        people: how many are expected.
        least: how many surely report; fewer are not opened.
        cap: the most that a report may cost by itself.
        fakes: reports of nobody that the shufflers add.
        hops: public keys of the shufflers in turn and of the collector.
    """

    epsilon: Decimal
    delta: Fraction
    people: int
    least: int
    cap: Decimal
    fakes: int = 0
    hops: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        epsilon: Any,
        delta: Any,
        people: Any,
        least: Any = None,
        cap: Any = DEFAULT_LOCAL_CAP,
        fakes: Any = 0,
        hops: Any = (),
    ) -> ShufflingTarget:
        """A target as a caller gives it; anything else is refused."""
        if delta is None:
            raise InvalidInput(
                "delta is required for a shuffled plan: the chance that its promise fails, such "
                "as 1e-9"
            )
        expected = whole("people", people, 2, MAX_SHUFFLED)
        surely = max(2, math.floor(EXPECTED_SHARE * expected))
        if least is not None:
            surely = whole("least", least, 2, expected)
        asked = parse_epsilon(epsilon)
        try:
            most = parse_epsilon(cap)
        except InvalidInput as wrong:
            raise InvalidInput(f"cap: {wrong}") from None
        if most <= asked:
            raise InvalidInput(
                f"cap ({most}) must be above epsilon ({asked}): a report by itself always tells "
                "more than a shuffled one"
            )
        keys = tuple(hops) if isinstance(hops, Sequence) else hops
        check_hops(keys)
        added = whole("fakes", fakes, 0, LARGEST_INTEGER)
        chance = share("delta", delta)
        if chance.denominator > LARGEST_INTEGER:
            raise InvalidInput(
                f"delta ({delta}) must be at least 1e-15 and of few digits: a plan has it as a "
                "fraction of whole numbers up to 2^53"
            )
        return cls(asked, chance, expected, surely, most, added, keys)

    def of_round(self, series: Series) -> ShufflingTarget:
        """The same for the people of one round: those of a round are shuffled by themselves."""
        share, all_ = series.shares[series.number], sum(series.shares)
        return replace(self, least=max(2, self.least * share // all_))


@dataclass(frozen=True)
class Solved:
    """A settled question with the terms that keep a target."""

    question: Question
    terms: Terms
    mixture: Mixture
    loss: float


def shuffled(
    question: Question, schema: Schema, target: ShufflingTarget, total: int
) -> tuple[Question, Terms, Shuffling]:
    """The question as it is best asked of people whose reports are shuffled.

    Args:
        question: what is asked; it is settled here.
        schema: what people may answer.
        target: for the people of one round.
        total: how many people all rounds expect.

    Returns:
        The settled question, the terms of its plan (whose epsilon is what a report costs by
        itself), and what the plan says of shuffling.
    """
    if target.fakes and not question.takes_fakes:
        raise InvalidInput(
            f"fakes ({target.fakes}) must be 0: estimates of {question.kind} do not take them out"
        )
    choices = question.shuffled_choices(
        schema, float(target.epsilon), float(target.delta), target.least, target.fakes
    )
    best = _best(choices, schema, target, total)
    delta = float(target.delta)
    # the local epsilon was solved for so many; fewer may do, and the search for them ends near them
    found = least_people(best.mixture, target.epsilon, delta, target.fakes)
    least = min(found, target.least)
    if best.terms.epsilon <= target.epsilon:
        raise InvalidInput(
            f"people ({target.least} of them surely report) are too few to hide anybody at epsilon "
            f"{target.epsilon} and delta {delta:g}: plan with trust='local', or ask more people"
        )
    colluding = None
    if target.fakes:
        against = Decimal(colluding_epsilon(best.mixture, target.fakes, delta))
        colluding = parse_epsilon(min(TOLD.create_decimal(against), best.terms.epsilon))
    part = Shuffling(
        target.epsilon,
        target.delta,
        max(2, least),
        target.cap,
        target.fakes,
        colluding,
        target.hops,
    )
    return best.question, best.terms, part


def _best(
    choices: Sequence[ShuffledChoice], schema: Schema, target: ShufflingTarget, total: int
) -> Solved:
    """The way to ask that errs least.

    All are solved roughly, which is quick, and those that could be best exactly.
    """
    if len(choices) == 1:
        return _solved(choices[0], schema, target, total)
    found: list[tuple[float, ShuffledChoice]] = []
    for _, row in groupby(choices, key=lambda choice: choice.row or id(choice)):
        found += _rough_losses(list(row), schema, target, total)
    limit = ROUGHLY * min(loss for loss, _ in found)
    near = [choice for loss, choice in found if loss <= limit]
    return min(
        (_solved(choice, schema, target, total) for choice in near), key=lambda each: each.loss
    )


def _rough_losses(
    row: Sequence[ShuffledChoice], schema: Schema, target: ShufflingTarget, total: int
) -> list[tuple[float, ShuffledChoice]]:
    """Choices of a row around the best of them, with what they lose roughly."""
    known: dict[int, float] = {}

    def loss(place: int) -> float:
        if place not in known:
            known[place] = _solved(row[place], schema, target, total, rough=True).loss
        return known[place]

    loss(descended(loss, len(row) // 2, ROW_STRIDES, 0, len(row) - 1))
    return [(each, row[place]) for place, each in known.items()]


def _solved(
    choice: ShuffledChoice,
    schema: Schema,
    target: ShufflingTarget,
    total: int,
    *,
    rough: bool = False,
) -> Solved:
    """The most that a report may cost by itself, for one way to ask.

    What is best to ask may depend on that, so a question is settled, solved and settled again.
    """
    cap = target.cap if choice.cap is None else min(target.cap, choice.cap)
    trial = min(cap, 2 * target.epsilon + 2)
    terms = Terms(trial, total, trust=SHUFFLED, fakes=target.fakes)
    for _ in range(MOST_SETTLED):
        settled = choice.question.settled(schema, terms.costing(trial))
        local = _local(settled, schema, target, terms, cap, rough=rough)
        if settled == choice.question or abs(local - trial) <= SETTLED_TO * trial:
            break
        trial = local
    terms = terms.costing(local)
    mixture = settled.cohorts(schema, terms).mixture
    return Solved(settled, terms, mixture, settled.shuffled_loss(schema, terms, choice.focus))


def _local(
    settled: Question,
    schema: Schema,
    target: ShufflingTarget,
    terms: Terms,
    cap: Decimal,
    *,
    rough: bool,
) -> Decimal:
    def mixture(epsilon: Decimal) -> Mixture:
        return settled.cohorts(schema, terms.costing(epsilon)).mixture

    return local_epsilon_for(
        mixture, target.epsilon, float(target.delta), target.least, cap, target.fakes, rough=rough
    )
