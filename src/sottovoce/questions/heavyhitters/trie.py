"""A trie grown in rounds: a small batch of people at a time tells how the prefixes found so far go
on.

Every round has a cohort for each depth of the trie that still grows. What a prefix gathers over the
rounds that asked for it adds up; one that stands above the threshold is accepted and asked on. A
text that has ended is a value at once, however long others are.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import PureOracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.rules import CALM_RULE, oracle_by
from sottovoce.protocol.encodings import Ask, Extensions
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod, Target
from sottovoce.results.findings import Findings, PrefixStep
from sottovoce.schema import Text

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

BATCHES = 32  # unless they would be too small
BATCH_PEOPLE = 800  # people, over epsilon^2, that a batch should have
MOST_BATCHES = 1024
THRESHOLD_FACTOR = "4"  # of the threshold, as the paper has it
SYMBOL = 8  # bits by which whole numbers go on
LEAST_GROWN = 16  # prefixes of one depth that may go on, however few values are wanted
MOST_DOUBLED = 10  # depths over which the people asked double
UNJUDGED = (
    "prefixes are asked until they look frequent, so no chance of error is stated, and nothing is "
    "starred"
)
PROMISING = 1.0  # standard deviations from which a prefix is looked at for the first time
MOST_CARRIED = 256  # prefixes not yet accepted whose evidence goes into the next round

Place = tuple[int, int]  # a prefix: how many bits it has, and which


@dataclass(frozen=True)
class Node:
    """What is known of a prefix: of ``asked`` people so many seem to ``hold`` it, with that
    variance if none does.
    """

    length: int
    number: int
    asked: int = 0
    held: float = 0.0
    spread: float = 0.0
    accepted: bool = False

    @property
    def place(self) -> Place:
        return self.length, self.number

    @property
    def frequency(self) -> float:
        return self.held / self.asked

    @property
    def score(self) -> float:
        """Standard deviations above nothing."""
        return self.held / sqrt(self.spread)

    def to_json(self) -> list[Any]:
        """Decimal strings, since a plan holds no floats and no large integers."""
        return [
            self.length,
            str(self.number),
            self.asked,
            f"{self.held:.9g}",
            f"{self.spread:.9g}",
            self.accepted,
        ]

    @classmethod
    def from_json(cls, data: Any, bits: int) -> Node:
        try:
            length, number, asked, held, spread, accepted = data
            length = whole("known: length", length, 1, bits)
            sums = float(Decimal(held)), float(Decimal(spread))
            asked = whole("known: asked", asked, 1, LARGEST_INTEGER)
            if not isinstance(accepted, bool) or not np.isfinite(sums).all() or sums[1] <= 0:
                raise ValueError
            return cls(
                length, whole("known: prefix", number, 0, (1 << length) - 1), asked, *sums, accepted
            )
        except (ValueError, TypeError, ArithmeticError) as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise InvalidInput("known must be what the round before found") from None


class PrivTrie(HeavyHitterMethod):
    """A trie of prefixes, one character deeper at each step, tested batch by batch until each is
    surely frequent.

    ``batches``: rounds of equal shares of people, each of whom answers once. ``factor``: of the
    threshold factor / (epsilon sqrt(people asked)). ``known`` is what the rounds before found; a
    plan holds it, nobody gives it.
    """

    name: ClassVar[str] = "priv-trie"
    about: ClassVar[str] = "a trie grown in rounds, each prefix tested until it is surely frequent"
    options: ClassVar[tuple[str, ...]] = ("batches", "factor", "known")

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        known = [node.to_json() for node in self.known]
        return {"batches": self.batches(terms), "factor": str(self.factor), "known": known}

    def batches(self, terms: Terms) -> int:
        """How many rounds: by default so many that a batch is not too small, but one for each
        character.
        """
        given = self.given.get("batches")
        if given is None:
            # at least 800 / epsilon^2 people a batch   wang2021thesis, section 4.4.2
            fitting = min(BATCHES, int(terms.people * terms.epsilon**2 / BATCH_PEOPLE))
            given = max(fitting, -(-self.target.bits // self.step))
        batches = whole("batches", given, 1, MOST_BATCHES)
        if terms.people < batches:
            raise InvalidInput(
                f"people ({terms.people}) must be at least one for each of {batches} batches"
            )
        return batches

    @property
    def factor(self) -> Decimal:
        given = self.given.get("factor", THRESHOLD_FACTOR)
        try:
            factor = Decimal(str(given))
        except ArithmeticError:
            raise InvalidInput(f"factor ({given}) must be a number") from None
        if not 0 < factor <= 1000:
            raise InvalidInput(f"factor ({given}) must be greater than 0 and at most 1000")
        return factor

    @property
    def known(self) -> list[Node]:
        given = self.given.get("known", [])
        if not isinstance(given, list | tuple):
            raise InvalidInput("known must be what the round before found")
        return [Node.from_json(each, self.target.bits) for each in given]

    def rounds(self, terms: Terms) -> tuple[int, ...]:
        return (1,) * self.batches(terms)

    @property
    def step(self) -> int:
        """Bits by which a prefix goes on: one character."""
        attribute = self.target.attribute
        symbol = attribute.symbol_bits if isinstance(attribute, Text) else SYMBOL
        return min(symbol, self.target.bits)

    @property
    def grown(self) -> dict[int, list[Place]]:
        """The prefixes that are asked on, by their length: the accepted ones,
        if more can follow.
        """
        grown: dict[int, list[Place]] = {0: [(0, 0)]}
        for node in self.known:
            if node.accepted and not complete(self.target, node.place):
                grown.setdefault(node.length, []).append(node.place)
        return {length: sorted(grown[length]) for length in sorted(grown)}

    def cohorts(self, terms: Terms) -> Family:
        listed = []
        for length, places in self.grown.items():
            fresh = min(self.step, self.target.bits - length)
            encoding = Extensions(self.target.name, self.target.bits, fresh, tuple(places))
            source = oracle_by(CALM_RULE, encoding.size, terms.epsilon)
            listed.append(Cohort((Ask(encoding, source),), weight=self._weight(length)))
        return Listed(listed)

    def _weight(self, length: int) -> int:
        """Short prefixes are frequent ones, for which fewer people suffice:
        half as many a step up.
        """
        return 1 << min(length // self.step, MOST_DOUBLED)

    def threshold(self, plan: Plan, chance: float = 0.5) -> float | None:
        return None  # how many people are asked for a prefix depends on what is found

    def explain(self, plan: Plan) -> list[str]:
        count = sum(map(len, self.grown.values()))
        return [
            f"{len(plan.series.shares)} batches; this one is asked how {count:,} of the known "
            "prefixes go on",
            f"A prefix is accepted when its frequency exceeds {self.factor} / (epsilon sqrt(people "
            "asked for it))",
        ]

    def find(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        self.no_candidates(candidates)
        plan = aggregate.plan
        nodes = {node.place: node for node in self.known}
        for index in range(len(plan.cohorts)):
            people = aggregate.cohort_people(index)
            ask = plan.cohorts[index].asks[0]
            if people:
                told = self._heard(ask, people, aggregate.support(index), nodes, plan.epsilon)
                nodes.update((each.place, each) for each in told)
        kept, notes = self._kept(nodes.values())
        is_last = plan.series.number == len(plan.series.shares) - 1
        following = None if is_last else self._following(question, kept)
        return self._findings(aggregate, kept, following, notes)

    def _heard(
        self,
        ask: Ask,
        people: int,
        support: Integers,
        nodes: Mapping[Place, Node],
        epsilon: Decimal,
    ) -> list[Node]:
        """The children of a cohort's prefixes that are known or promising, with all evidence so
        far.
        """
        encoding, source = ask.encoding, ask.oracle
        assert isinstance(encoding, Extensions)
        assert isinstance(source, PureOracle)
        frequencies = source.from_support(support, people)[:-1]
        spread = source.noise(people).floor * people**2
        limit = float(self.factor / epsilon)
        rows = set(np.flatnonzero(frequencies * people > PROMISING * sqrt(spread)).tolist())
        fresh, order = encoding.fresh, {place: row for row, place in enumerate(encoding.prefixes)}
        for length, number in nodes:
            parent = order.get((length - fresh, number >> fresh))
            if parent is not None:
                rows.add(parent << fresh | number & (1 << fresh) - 1)
        found = []
        for row in sorted(rows):
            length, number = encoding.prefixes[row >> fresh]
            place = length + fresh, number << fresh | row & (1 << fresh) - 1
            before = nodes.get(place) or Node(*place)
            held = before.held + float(frequencies[row]) * people
            node = Node(*place, before.asked + people, held, before.spread + spread)
            found.append(replace(node, accepted=True) if self._accepts(node, limit) else node)
        return found

    def _accepts(self, node: Node, limit: float) -> bool:
        # f n > 4 n / (epsilon sqrt(sum of n_b))   wang2021thesis, section 4.2.4
        return node.held > limit * sqrt(node.asked) and possible(self.target, node.place)

    def _kept(self, nodes: Iterable[Node]) -> tuple[list[Node], list[str]]:
        """What goes on: the accepted nodes of each depth, if not too many, and the most promising
        others.
        """
        most = max(LEAST_GROWN, 2 * self.target.top)
        by_length: dict[int, list[Node]] = {}
        others: list[Node] = []
        for node in nodes:
            (by_length.setdefault(node.length, []) if node.accepted else others).append(node)
        kept, crowded = [], []
        for length, accepted in sorted(by_length.items()):
            accepted.sort(key=lambda node: (-node.score, node.number))
            kept += accepted[:most]
            crowded += [str(length)] if len(accepted) > most else []
        told = (
            f"more prefixes of {', '.join(crowded)} bits were accepted than are asked on: only the "
            f"{most} surest are"
        )
        notes = [told] if crowded else []
        others.sort(key=lambda node: (-node.score, node.place))
        return sorted([*kept, *others[:MOST_CARRIED]], key=lambda node: node.place), notes

    def _following(self, question: Question, kept: Sequence[Node]) -> Question:
        """The same question, with what is known by now."""
        data = question.to_json()
        data["options"] = {**data["options"], "known": [node.to_json() for node in kept]}
        return type(question).from_json(data)

    def _findings(
        self,
        aggregate: Aggregate,
        kept: Sequence[Node],
        following: Question | None,
        notes: Sequence[str],
    ) -> Findings:
        accepted = [node for node in kept if node.accepted]
        source = aggregate.plan.cohorts[0].asks[0].oracle
        slope = max(source.noise(1).slope, 0.0)
        values = [node for node in accepted if complete(self.target, node.place)]
        # people were asked for some more than for others, so that the largest frequencies are not
        # the surest
        values = sorted(values, key=lambda node: -node.score)[: self.target.top]
        rest = [self.target.bits - node.length for node in values]
        floor = (
            float(np.median([node.spread / node.asked**2 for node in values]))
            if values
            else source.noise(1).floor
        )
        return self.findings(
            [node.number << bits for node, bits in zip(values, rest, strict=True)],
            np.array([node.frequency for node in values]),
            np.array([self._variance(node, slope) for node in values]),
            np.full(len(values), float(self.target.attribute.spellings)),
            max((node.asked for node in values), default=aggregate.people),
            floor,
            heard=aggregate.people,
            next=following,
            steps=self._steps(accepted, slope),
            notes=[*notes, UNJUDGED],
        )

    @staticmethod
    def _variance(node: Node, slope: float) -> float:
        """That of the whispers, larger for those who hold a value, and of the people asked as a
        sample of all.
        """
        share = min(max(node.frequency, 0.0), 1.0)
        return node.spread / node.asked**2 + share * (slope + 1 - share) / node.asked

    def _steps(self, accepted: Sequence[Node], slope: float) -> list[PrefixStep]:
        """The trie: every accepted prefix, and the one that it extends."""
        order = {node.place: number for number, node in enumerate(accepted)}
        steps = []
        for node in accepted:
            length = (node.length - 1) // self.step * self.step
            parent = order.get((length, node.number >> (node.length - length)))
            rest = self.target.bits - node.length if complete(self.target, node.place) else 0
            label = self.target.attribute.prefix_label(node.number << rest, node.length + rest)
            steps.append(
                PrefixStep(
                    node.length, label, parent, node.frequency, sqrt(self._variance(node, slope))
                )
            )
        return steps


def complete(target: Target, place: Place) -> bool:
    """Whether a prefix is a whole value: of full length, or a text that has ended."""
    length, number = place
    attribute = target.attribute
    ended = (
        isinstance(attribute, Text) and length > 0 and not number & (1 << attribute.symbol_bits) - 1
    )
    return length == target.bits or ended


def possible(target: Target, place: Place) -> bool:
    """Whether any value begins like this."""
    length, number = place
    attribute = target.attribute
    if complete(target, place):
        return attribute.spelled(number << (target.bits - length)) is not None
    if not isinstance(attribute, Text):
        return True
    if attribute.alphabet is not None:
        return number & (1 << attribute.symbol_bits) - 1 <= len(attribute.alphabet)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(number.to_bytes(length // 8, "big"))
    except UnicodeDecodeError:
        return False
    return True
