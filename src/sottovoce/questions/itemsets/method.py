"""What a method for popular items is: rounds, each of which follows from what the ones before
told.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE, PureOracle
from sottovoce.protocol.encodings import Ask, Drawn, Held, Padded
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.questions.itemsets.lengths import counting_factor
from sottovoce.questions.itemsets.padding import PLAIN, WHOLE_SETS
from sottovoce.questions.itemsets.prediction import HELD, least_frequency, rare_error
from sottovoce.questions.itemsets.readings import Reading, frequencies_found
from sottovoce.questions.itemsets.target import BEST, COUNT, ItemTarget, RoundStep
from sottovoce.questions.method import Method, Options
from sottovoce.results.findings import SIGNIFICANT, Findings
from sottovoce.schema import Label, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_ITEM_CANDIDATES = 1 << 16


class ItemMethod(Method[ItemTarget]):
    """A way to find items, or sets of them, that many people hold.

    Beside what every method has: :meth:`steps` says what each round is for, and :meth:`ask` what
    people are asked in the round that the target is at.
    """

    for_items: ClassVar[bool] = True
    for_sets: ClassVar[bool] = True

    @abstractmethod
    def steps(self, target: ItemTarget, options: Options) -> tuple[RoundStep, ...]:
        """The rounds there are."""

    @abstractmethod
    def ask(self, target: ItemTarget, epsilon: Decimal, options: Options) -> Ask:
        """What everybody of the target's round is asked."""

    def step(self, target: ItemTarget, options: Options) -> RoundStep:
        """What the target's round is for."""
        steps = self.steps(target, options)
        return steps[whole("plan: round", target.round, 0, len(steps) - 1)]

    def rounds(self, target: ItemTarget, options: Options) -> tuple[int, ...]:
        return tuple(step.share for step in self.steps(target, options))

    def cohorts(
        self, schema: Schema, target: ItemTarget, epsilon: Decimal, options: Options
    ) -> Family:
        return Listed([Cohort((self.ask(target, epsilon, options),))])

    # -- in words

    def explain(self, target: ItemTarget, plan: Plan, options: Options) -> list[str]:
        steps = self.steps(target, options)
        shares = []
        for held in HELD:
            least = least_frequency(target, steps, options, plan.terms, held)
            shares.append(f"{least:.2%} if they hold {held}")
        return [
            *self.explain_rounds(steps, plan, options),
            _explain_ask(steps[target.round], target, plan, options),
            "Found with even chances: an item that this share of people holds: "
            f"{', '.join(shares)}",
        ]

    def explain_rounds(self, steps: Sequence[RoundStep], plan: Plan, options: Options) -> list[str]:
        """How people are shared out, if there are several rounds."""
        if len(steps) == 1:
            return []
        total = sum(step.share for step in steps)
        shares = ", ".join(f"{step.name} {step.share / total:.0%}" for step in steps)
        return [f"Rounds: {shares} of the people; what a round asks follows from those before"]

    # -- an answer

    def findings(
        self, target: ItemTarget, aggregate: Aggregate, reading: Reading, notes: Sequence[str]
    ) -> Findings:
        """What a reading says, with items called by their values, and sets by those of theirs."""
        values = aggregate.plan.schema[target.name].labels()
        labels = [_label(values, candidate, target.sets) for candidate in reading.candidates]
        return frequencies_found(target.name, reading, labels, aggregate, notes)


def _label(
    values: Sequence[Label], candidate: Sequence[int], is_set: bool
) -> Label | tuple[Label, ...]:
    if is_set:
        return tuple(values[item] for item in candidate)
    return values[candidate[0]]


def shortfall(target: ItemTarget, best: Reading) -> list[str]:
    """What a reader should know of an answer: that it is short, or that noise may be in it."""
    notes = []
    count = len(best.candidates)
    if count < target.top:
        notes.append(f"Only {count} of the {target.top} wanted: there were no more candidates.")
    weak = int((best.chance > SIGNIFICANT).sum())
    if weak:
        notes.append(
            f"{weak} of the {count} are not significant: noise alone may have put them here."
        )
    return notes


def checked_oracle(option: str, options: Mapping[str, Any]) -> str:
    """The name of an oracle through which candidates are told."""
    known = (ADAPTIVE, BEST, "grr", WHOLE_SETS, *PLAIN)
    name = options[option]
    if name not in known:
        raise InvalidInput(f"{option} ({name}) must be one of {', '.join(known)}")
    return str(name)


def _explain_ask(step: RoundStep, target: ItemTarget, plan: Plan, options: Options) -> str:
    ask, people = plan.cohorts[0].asks[0], plan.round_people
    encoding, source = ask.encoding, ask.oracle
    tail = f"{source.names[0]} ({source.about}), {people:,} people, {source.bits:,} bits per report"
    if isinstance(encoding, Held):
        return (
            f"Asked: how many of {encoding.count:,} candidates a set holds, up to "
            f"{encoding.most}; {tail}"
        )
    assert isinstance(encoding, Padded | Drawn)
    assert isinstance(source, PureOracle)
    used = counting_factor(target.known, options) if step.name == COUNT else None
    factor = 1.0 if used is None else used.value
    part = "one, after padding to" if isinstance(encoding, Padded) else "all, at most"
    error = rare_error(ask, people, factor)
    return (
        f"Asked: of {encoding.count:,} candidates that a set holds {part} {encoding.length}; "
        f"{tail}; "
        f"predicted standard error {error:.2g} for a rare one"
    )
