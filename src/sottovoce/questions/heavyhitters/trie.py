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
from math import exp, inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

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
from sottovoce.questions.heavyhitters.method import (
    Floats,
    HeavyHitterMethod,
    Ranked,
    SearchTarget,
)
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.results.findings import SIGNIFICANT, Findings, PrefixStep
from sottovoce.schema import Schema, Text

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

BATCHES = 32  # unless they would be too small
BATCH_PEOPLE = 800  # people, over epsilon^2, that a batch should have
MOST_BATCHES = 1024
THRESHOLD_FACTOR = "4"  # of the threshold, as the paper has it
SYMBOL = 8  # bits by which whole numbers go on
LEAST_GROWN = 16  # prefixes of one depth that may go on, however few values are wanted
MOST_DOUBLED = 10  # depths over which the people asked double
PROMISING = 1.0  # standard deviations from which a prefix is looked at for the first time
MOST_CARRIED = 256  # prefixes not yet accepted whose evidence goes into the next round

Place = tuple[int, int]  # a prefix: how many bits it has, and which


# -- prefixes


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

    def variance(self, slope: float) -> float:
        """That of the whispers, larger by ``slope`` for those who hold a value, and of the people
        asked as a sample of all.
        """
        # s/n^2 + f (slope + 1 - f)/n
        share = min(max(self.frequency, 0.0), 1.0)
        of_nobody = self.spread / self.asked**2
        return of_nobody + share * (slope + 1 - share) / self.asked

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
        """The inverse of :meth:`to_json`, for values of so many ``bits``."""
        try:
            length, number, asked, held, spread, accepted = data
            length = whole("known: length", length, 1, bits)
            number = whole("known: prefix", number, 0, (1 << length) - 1)
            asked = whole("known: asked", asked, 1, LARGEST_INTEGER)
            held, spread = float(Decimal(held)), float(Decimal(spread))
            if not isfinite(held) or not 0 < spread < inf:
                raise ValueError
            if not isinstance(accepted, bool):
                raise ValueError
            return cls(length, number, asked, held, spread, accepted)
        except (ValueError, TypeError, ArithmeticError) as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise InvalidInput("known must be what the round before found") from None


def complete(target: SearchTarget, place: Place) -> bool:
    """Whether a prefix is a whole value: of full length, or a text that has ended."""
    length, number = place
    if length == target.bits:
        return True
    if not isinstance(target.attribute, Text) or length == 0:
        return False
    last_symbol = number & (1 << target.attribute.symbol_bits) - 1
    return last_symbol == 0


def possible(target: SearchTarget, place: Place) -> bool:
    """Whether any value begins like this."""
    length, number = place
    attribute = target.attribute
    if complete(target, place):
        return attribute.spelled(number << (target.bits - length)) is not None
    if not isinstance(attribute, Text):
        return True
    if attribute.alphabet is not None:
        last_symbol = number & (1 << attribute.symbol_bits) - 1
        return last_symbol <= len(attribute.alphabet)
    text = number.to_bytes(length // 8, "big")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return False
    return True


# -- the trie of one round


@dataclass(frozen=True)
class Trie:
    """What a round begins with: the prefixes known so far, and when another is accepted."""

    target: SearchTarget
    known: Sequence[Node]
    factor: Decimal  # of the threshold

    @classmethod
    def of(cls, target: SearchTarget, options: Options) -> Self:
        """The trie that options describe; by default nothing is known yet."""
        factor = _factor(options.get("factor", THRESHOLD_FACTOR))
        known = options.get("known", [])
        if not isinstance(known, list | tuple):
            raise InvalidInput("known must be what the round before found")
        nodes = [Node.from_json(node, target.bits) for node in known]
        return cls(target, nodes, factor)

    @property
    def step(self) -> int:
        """Bits by which a prefix goes on: one character."""
        attribute = self.target.attribute
        symbol = attribute.symbol_bits if isinstance(attribute, Text) else SYMBOL
        return min(symbol, self.target.bits)

    @property
    def growing(self) -> dict[int, list[Place]]:
        """The prefixes that are asked on, by their length: the accepted ones,
        if more can follow.
        """
        growing: dict[int, list[Place]] = {0: [(0, 0)]}
        for node in self.known:
            if node.accepted and not complete(self.target, node.place):
                growing.setdefault(node.length, []).append(node.place)
        return {length: sorted(growing[length]) for length in sorted(growing)}

    def weight(self, length: int) -> int:
        """Short prefixes are frequent ones, for which fewer people suffice: half as many a step
        up.
        """
        return 1 << min(length // self.step, MOST_DOUBLED)

    def cohorts(self, epsilon: Decimal) -> list[Cohort]:
        """One cohort for each depth that still grows."""
        name, bits = self.target.name, self.target.bits
        cohorts = []
        for length, places in self.growing.items():
            fresh = min(self.step, bits - length)
            encoding = Extensions(name, bits, fresh, tuple(places))
            source = oracle_by(CALM_RULE, encoding.size, epsilon)
            ask = Ask(encoding, source)
            cohorts.append(Cohort((ask,), weight=self.weight(length)))
        return cohorts

    def grown(self, aggregate: Aggregate) -> dict[Place, Node]:
        """What is known of every prefix once a round's answers are added."""
        plan = aggregate.plan
        nodes = {node.place: node for node in self.known}
        limit = float(self.factor / plan.epsilon)
        for index in range(len(plan.cohorts)):
            people = aggregate.cohort_people(index)
            if not people:
                continue
            ask = plan.cohorts[index].asks[0]
            for node in _children(ask, people, aggregate.support(index), nodes):
                accepted = self._accepts(node, limit)
                nodes[node.place] = replace(node, accepted=accepted)
        return nodes

    def _accepts(self, node: Node, limit: float) -> bool:
        # f n > 4 n / (epsilon sqrt(sum of n_b))   wang2021thesis, section 4.2.4
        is_frequent = node.held > limit * sqrt(node.asked)
        return is_frequent and possible(self.target, node.place)

    def kept(self, nodes: Iterable[Node]) -> tuple[list[Node], list[str]]:
        """What goes on: the accepted nodes of each depth, if not too many, and the most promising
        others.

        Returns:
            The nodes, by their places; and a note if some of the accepted ones are left out.
        """
        most = max(LEAST_GROWN, 2 * self.target.top)
        by_length: dict[int, list[Node]] = {}
        others: list[Node] = []
        for node in nodes:
            if node.accepted:
                by_length.setdefault(node.length, []).append(node)
            else:
                others.append(node)
        kept, crowded = [], []
        for length, accepted in sorted(by_length.items()):
            accepted.sort(key=lambda node: (-node.score, node.number))
            kept += accepted[:most]
            if len(accepted) > most:
                crowded.append(str(length))
        others.sort(key=lambda node: (-node.score, node.place))
        kept += others[:MOST_CARRIED]
        kept.sort(key=lambda node: node.place)
        if not crowded:
            return kept, []
        note = (
            f"more prefixes of {', '.join(crowded)} bits were accepted than are asked on: only the "
            f"{most} surest are"
        )
        return kept, [note]

    def findings(self, aggregate: Aggregate, method: str, kept: Sequence[Node]) -> Findings:
        """The whole values among the accepted prefixes, and the trie that led to them."""
        target = self.target
        source = aggregate.plan.cohorts[0].asks[0].oracle
        slope = max(source.noise(1).slope, 0.0)
        accepted = [node for node in kept if node.accepted]
        values = [node for node in accepted if complete(target, node.place)]
        # people were asked for some more than for others, so that the largest frequencies are not
        # the surest
        values = sorted(values, key=lambda node: -node.score)[: target.top]
        floor = source.noise(1).floor
        if values:
            floors = [node.spread / node.asked**2 for node in values]
            floor = float(np.median(floors))
        numbers = [node.number << (target.bits - node.length) for node in values]
        frequencies = np.array([node.frequency for node in values])
        variances = np.array([node.variance(slope) for node in values])
        asked = np.array([node.asked for node in values], float)
        held = frequencies * asked
        spread = np.array([node.spread for node in values])  # (values,)
        judge = self._judge(aggregate)
        limits = float(self.factor / aggregate.plan.epsilon) / np.sqrt(asked)
        ranked = Ranked(
            numbers,
            frequencies,
            variances,
            judge.chances(held, spread),
            int(asked.max(initial=0)) or aggregate.people,
            floor,
            limits,
            judge.starred_from(spread) / asked,
        )
        steps = self._steps(accepted, slope)
        return ranked.findings(target, method, aggregate.people, steps)

    def _judge(self, aggregate: Aggregate) -> TrieJudge:
        """What tells a prefix from noise, after all rounds so far."""
        most = max(LEAST_GROWN, 2 * self.target.top)
        depths = -(-self.target.bits // self.step)  # rounded up
        parents = 1 + (depths - 1) * most
        rounds = aggregate.plan.series.number + 1
        tested = float(rounds * parents << self.step)
        return TrieJudge(tested, _largest_answer(aggregate.plan.epsilon))

    def _steps(self, accepted: Sequence[Node], slope: float) -> list[PrefixStep]:
        """The trie: every accepted prefix, and the one that it extends."""
        target = self.target
        order = {node.place: row for row, node in enumerate(accepted)}
        steps = []
        for node in accepted:
            length, number = node.place
            above = (length - 1) // self.step * self.step  # bits of the prefix that it extends
            parent = order.get((above, number >> (length - above)))
            rest = target.bits - length if complete(target, node.place) else 0
            label = target.attribute.prefix_label(number << rest, length + rest)
            error = sqrt(node.variance(slope))
            steps.append(PrefixStep(length, label, parent, node.frequency, error))
        return steps


@dataclass(frozen=True)
class TrieJudge:
    """How many prefixes that nobody holds are expected to look as frequent, at most.

    A prefix gathers evidence from some round on, and what it gathers decides from which: nothing is
    left of a prefix that does not look promising. So every prefix of every round is counted as one
    that may have begun there.

    Attributes:
        tested: All prefixes of all rounds that could have begun there.
        largest: The most that one person's answer can add to a prefix that she does not hold.
    """

    tested: float
    largest: float

    def chances(self, held: Floats, spread: Floats) -> Floats:
        """By Bernstein's inequality, so that no law of large numbers is needed.

        Args:
            held: people who seem to hold each prefix, (prefixes,).
            spread: its variance if nobody does, (prefixes,).
        """
        # P[held >= t] <= exp(-t^2 / (2 (V + M t / 3)))
        above = np.maximum(held, 0)
        exponent = above**2 / (2 * (spread + self.largest * above / 3))
        return np.asarray(self.tested * np.exp(-exponent))

    def starred_from(self, spread: Floats) -> Floats:
        """From how many people on who seem to hold a prefix it gets a star, (prefixes,)."""
        # t^2 = 2 L (V + M t / 3) for L = log(tested / 0.05)
        nats = log(self.tested / SIGNIFICANT)
        linear = nats * self.largest / 3
        return np.asarray(linear + np.sqrt(linear**2 + 2 * nats * spread))


def _largest_answer(epsilon: Decimal) -> float:
    """(1 - q) / (p - q) of the oracles that the rule takes, at most."""
    # randomized response of fewer than 3E + 2 values: (E + L - 2) / (E - 1); the others have less
    ratio = exp(float(epsilon))
    return (4 * ratio + 1) / (ratio - 1)


def _factor(given: Any) -> Decimal:
    try:
        factor = Decimal(str(given))
    except ArithmeticError:
        raise InvalidInput(f"factor ({given}) must be a number") from None
    if not 0 < factor <= 1000:
        raise InvalidInput(f"factor ({given}) must be greater than 0 and at most 1000")
    return factor


def _children(ask: Ask, people: int, support: Integers, nodes: Mapping[Place, Node]) -> list[Node]:
    """The prefixes one step below a cohort's, those that are known or promising, with all evidence
    so far.

    Args:
        ask: what the cohort was asked: how some prefixes go on.
        people: of the cohort.
        support: (prefixes 2^fresh + 1,): of each way to go on, and of none of these prefixes.
        nodes: what is known of prefixes already.
    """
    encoding, source = ask.encoding, ask.oracle
    assert isinstance(encoding, Extensions)
    assert isinstance(source, PureOracle)
    frequencies = source.from_support(support, people)[:-1]
    held = frequencies * people  # (prefixes 2^fresh,)
    spread = source.noise(people).floor * people**2
    is_promising = held > PROMISING * sqrt(spread)
    rows = set(np.flatnonzero(is_promising).tolist())
    # row = (the prefix's place in the ask, its next bits)
    fresh = encoding.fresh
    mask = (1 << fresh) - 1
    order = {place: index for index, place in enumerate(encoding.prefixes)}
    for length, number in nodes:
        parent = order.get((length - fresh, number >> fresh))
        if parent is not None:
            rows.add(parent << fresh | number & mask)
    children = []
    for row in sorted(rows):
        length, number = encoding.prefixes[row >> fresh]
        place = length + fresh, number << fresh | row & mask
        before = nodes.get(place) or Node(*place)
        asked = before.asked + people
        total = before.held + float(held[row])
        children.append(Node(*place, asked, total, before.spread + spread))
    return children


class PrivTrie(HeavyHitterMethod):
    """A trie of prefixes, one character deeper at each step, tested batch by batch until each is
    surely frequent.

    ``batches``: rounds of equal shares of people, each of whom answers once. ``factor``: of the
    threshold factor / (epsilon sqrt(people asked)). ``known`` is what the rounds before found; a
    plan holds it, nobody gives it.
    """

    name: ClassVar[str] = "priv-trie"
    about: ClassVar[str] = "a trie grown in rounds, each prefix tested until it is surely frequent"
    source: ClassVar[str] = "wang2021thesis, section 4.2.4"
    options: ClassVar[tuple[str, ...]] = ("batches", "factor", "known")

    def settle(
        self, target: SearchTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        trie = Trie.of(target, options)
        return {
            "batches": _batches(trie, terms, options.get("batches")),
            "factor": str(trie.factor),
            "known": [node.to_json() for node in trie.known],
        }

    def rounds(self, target: SearchTarget, options: Options) -> tuple[int, ...]:
        return (1,) * int(options["batches"])

    def cohorts(
        self, schema: Schema, target: SearchTarget, epsilon: Decimal, options: Options
    ) -> Family:
        return Listed(Trie.of(target, options).cohorts(epsilon))

    def explain(self, target: SearchTarget, plan: Plan, options: Options) -> list[str]:
        trie = Trie.of(target, options)
        count = sum(map(len, trie.growing.values()))
        return [
            f"{len(plan.series.shares)} batches; this one is asked how {count:,} of the known "
            "prefixes go on",
            f"A prefix is accepted when its frequency exceeds {trie.factor} / (epsilon sqrt(people "
            "asked for it))",
        ]

    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        trie = Trie.of(target, options)
        series = aggregate.plan.series
        nodes = trie.grown(aggregate)
        kept, notes = trie.kept(nodes.values())
        found = trie.findings(aggregate, self.name, kept)
        found = replace(found, notes=(*notes, *found.notes))
        if series.number == len(series.shares) - 1:
            return RoundResult(found)
        return RoundResult(found, known=[node.to_json() for node in kept])


def _batches(trie: Trie, terms: Terms, given: Any) -> int:
    """How many rounds: by default so many that a batch is not too small, but one for each
    character.
    """
    if given is None:
        # at least 800 / epsilon^2 people a batch   wang2021thesis, section 4.4.2
        full = int(terms.people * terms.epsilon**2 / BATCH_PEOPLE)
        fitting = min(BATCHES, full)
        characters = -(-trie.target.bits // trie.step)  # rounded up
        given = max(fitting, characters)
    batches = whole("batches", given, 1, MOST_BATCHES)
    if terms.people < batches:
        raise InvalidInput(
            f"people ({terms.people}) must be at least one for each of {batches} batches"
        )
    return batches
