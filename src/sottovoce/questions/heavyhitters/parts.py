"""Parts beside the whole: people tell parts of a value, and the whole of it tests what the parts
are joined to.

Two older methods share this: pairs of segments (``spm``) and channels by a public hash (``hash``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import WideLocalHashing
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.questions.heavyhitters.found import starred_from
from sottovoce.questions.heavyhitters.method import (
    Ranked,
    SearchTarget,
    oracle_of,
    sampled_variances,
)
from sottovoce.questions.heavyhitters.sensitivity import expected_false
from sottovoce.questions.method import BUDGET, SPLITS, Options

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

OTHERS = 9  # people who tell parts, for each one who tells the whole value only


@dataclass(frozen=True)
class PartsDesign(ABC):
    """Who tells parts of a value, and who tells the whole of it.

    ``split="budget"``: everybody tells parts and the whole, each at an equal part of epsilon.
    ``split="people"``: a tenth of people tell the whole at all of epsilon, the others tell parts.
    """

    told: ClassVar[int]  # parts of her value that a person tells

    target: SearchTarget
    split: str

    @abstractmethod
    def parts(self, epsilon: Decimal) -> list[tuple[Ask, ...]]:
        """The asks on parts, cohort by cohort, if each of them may cost ``epsilon``."""

    def cohorts(self, epsilon: Decimal) -> list[Cohort]:
        """The cohorts: those who tell the whole only, if there are any, come first."""
        if self.split == BUDGET:
            share = shared(epsilon, self.told + 1)
            test = self._whole(share)
            return [Cohort((test, *asks)) for asks in self.parts(share)]
        share = epsilon if self.told == 1 else shared(epsilon, self.told)
        parts = self.parts(share)
        testers = Cohort((self._whole(epsilon),), len(parts))
        return [testers, *(Cohort(asks, OTHERS) for asks in parts)]

    def _whole(self, epsilon: Decimal) -> Ask:
        """The ask on the whole value."""
        bits = self.target.bits
        window = Window(self.target.name, bits, 0, bits)
        return Ask(window, oracle("olh-wide", size=window.size, epsilon=epsilon))

    @property
    def first_cohort(self) -> int:
        """The first cohort that tells parts."""
        return 0 if self.split == BUDGET else 1

    @property
    def first_ask(self) -> int:
        """The first ask of such a cohort that is about a part."""
        return 1 if self.split == BUDGET else 0

    def explain(self, plan: Plan) -> str:
        """How the whole value is told."""
        source = _wide(plan)
        if self.split == BUDGET:
            told, people = "Everybody also tells the whole value", plan.round_people
        else:
            told, people = "Others tell the whole value", plan.cohort_people(0)
        error = source.std_error(people)
        return (
            f"{told} at epsilon {source.epsilon:.4g} ({people:,} people): it tests with a standard "
            f"error of {error:.2%}"
        )

    def tested(self, aggregate: Aggregate, numbers: Sequence[int]) -> Ranked:
        """Candidates, by the numbers of their spellings, with what people told of whole values."""
        from sottovoce.kernels.spelling import to_words

        source = _wide(aggregate.plan)
        # whose first ask is the whole value
        count = len(aggregate.plan.cohorts) if self.split == BUDGET else 1
        cohorts = range(count)
        people = sum(aggregate.cohort_people(index) for index in cohorts)
        require_heard(people, "the whole value")
        words = to_words(list(numbers))  # (candidates, 2)
        support = np.zeros(len(words), np.int64)
        for index in cohorts:
            support += aggregate.support(index, 0, words)
        frequencies = source.from_support(support, people)
        noise = source.noise(people)
        variances = sampled_variances(noise, frequencies, people, aggregate.people)
        # its coins are not those of the parts, so that only the candidates themselves were looked
        # at
        scores = source.buckets * support.astype(float) - people
        buckets = source.buckets
        chance_of = partial(expected_false, float(len(numbers)), people=people, buckets=buckets)
        # E[score] = n f (2^b p - 1), and 2^b q = 1
        gain = people * (buckets * source.p - 1)
        starred = starred_from(chance_of, scores, people * (buckets - 1)) / gain
        # what made them candidates are other coins: nothing was chosen by these yet
        unchosen = np.full(len(numbers), -np.inf)
        chances = chance_of(scores)
        return Ranked(
            numbers, frequencies, variances, chances, people, noise.floor, unchosen, starred
        )


def split_of(options: Options) -> str:
    """Whether people or the budget are shared out; by default the budget."""
    split = options.get("split", BUDGET)
    if split not in SPLITS:
        raise InvalidInput(f"split ({split}) must be one of {', '.join(SPLITS)}")
    return str(split)


def require_heard(people: int, of: str) -> None:
    """Refuse to go on before anybody told a part that is needed."""
    if not people:
        raise InvalidInput(
            f"aggregate: nobody who tells {of} was heard yet; more people are needed"
        )


def _wide(plan: Plan) -> WideLocalHashing:
    """The oracle of the whole value."""
    return oracle_of(plan.cohorts[0].asks[0], WideLocalHashing)
