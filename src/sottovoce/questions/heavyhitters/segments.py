"""Pairs of segments: each person tells two segments of her value, and frequent pairs of patterns
are joined to candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import LocalHashing
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.heavyhitters.method import (
    Floats,
    HeavyHitterMethod,
    SearchTarget,
    oracle_of,
)
from sottovoce.questions.heavyhitters.parts import PartsDesign, require_heard, split_of
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_SEGMENT = 16  # bits: every pattern of a segment is tested
MOST_SEGMENTS = 32
MOST_PATTERNS = 256  # of a segment that are paired: pairs grow with the square
MOST_JOINED = 16_384  # partial candidates that a join goes on with
MAX_TESTED_CANDIDATES = 4_096  # that are tested

Integers = NDArray[np.int64]
Pair = tuple[int, int]  # two segments, by their numbers
Pairs = Mapping[Pair, Floats]  # (patterns of the one, patterns of the other)


@dataclass(frozen=True)
class SegmentDesign(PartsDesign):
    """A value in segments of so many bits, the last one perhaps shorter."""

    told: ClassVar[int] = 2

    segment: int

    @classmethod
    def of(cls, target: SearchTarget, options: Options) -> Self:
        """The design that options describe; by default segments of one length, as long as can be
        enumerated.
        """
        bits, given = target.bits, options.get("segment")
        if given is None:
            count = max(2, -(-bits // MOST_SEGMENT))
            segment = -(-bits // count)
        else:
            least = -(-bits // MOST_SEGMENTS)  # rounded up
            most = min(MOST_SEGMENT, bits - 1)
            segment = whole("segment", given, least, most)
        return cls(target, split_of(options), segment)

    @cached_property
    def windows(self) -> list[Window]:
        """The segments."""
        name, bits = self.target.name, self.target.bits
        windows = []
        for start in range(0, bits, self.segment):
            fresh = min(self.segment, bits - start)
            windows.append(Window(name, bits, start, fresh))
        return windows

    @cached_property
    def pairs(self) -> list[Pair]:
        """The two segments of each cohort."""
        return list(combinations(range(len(self.windows)), 2))

    def parts(self, epsilon: Decimal) -> list[tuple[Ask, ...]]:
        asks = []
        for window in self.windows:
            source = oracle("olh", size=window.size, epsilon=epsilon)
            asks.append(Ask(window, source))
        return [(asks[one], asks[other]) for one, other in self.pairs]

    def cohort(self, pair: Pair) -> int:
        """The cohort that tells this pair."""
        return self.first_cohort + self.pairs.index(pair)


class SegmentPairs(HeavyHitterMethod):
    """Each person tells two segments of her value; frequent pairs of patterns are joined to
    candidates.

    A pattern's frequency comes from all cohorts that tell its segment, a pair's from the product of
    the two answers of one person. Pairs are added, the most frequent first, until they join to more
    candidates than are wanted.
    """

    name: ClassVar[str] = "spm"
    about: ClassVar[str] = "pairs of segments, joined to candidates, which the whole value tests"
    source: ClassVar[str] = "wang2021thesis, section 4.1.1"
    options: ClassVar[tuple[str, ...]] = ("split", "segment")

    def refuse(self, target: SearchTarget, terms: Terms) -> str | None:
        if target.bits < 2:
            return (
                f"attribute {target.name!r} has no two segments; spm needs values of 2 bits or more"
            )
        return super().refuse(target, terms)

    def settle(
        self, target: SearchTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        design = SegmentDesign.of(target, options)
        return {"split": design.split, "segment": design.segment}

    def cohorts(
        self, schema: Schema, target: SearchTarget, epsilon: Decimal, options: Options
    ) -> Family:
        return Listed(SegmentDesign.of(target, options).cohorts(epsilon), keep="rows")

    def explain(self, target: SearchTarget, plan: Plan, options: Options) -> list[str]:
        design = SegmentDesign.of(target, options)
        lengths = ", ".join(str(window.fresh) for window in design.windows)
        people = plan.cohort_people(len(plan.cohorts) - 1)
        return [
            f"Segments of {lengths} bits, in {len(design.pairs)} pairs of {people:,} people each",
            design.explain(plan),
        ]

    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        design = SegmentDesign.of(target, options)
        _require_pairs(design, aggregate)
        patterns = _frequent_patterns(design, aggregate)
        pairs = {}
        for one, other in design.pairs:
            listed = patterns[one], patterns[other]
            pairs[one, other] = _joint(design, aggregate, (one, other), listed)
        numbers, notes = _candidates(design, patterns, pairs)
        ranked = design.tested(aggregate, numbers)
        found = ranked.findings(target, self.name, aggregate.people, notes=notes)
        return RoundResult(found)


# -- what people told of segments


def _require_pairs(design: SegmentDesign, aggregate: Aggregate) -> None:
    """Refuse an aggregate in which a pair of segments was told by nobody, or with weights."""
    aggregate.require_counts("the joint law of two segments")
    for one, other in design.pairs:
        people = aggregate.cohort_people(design.cohort((one, other)))
        require_heard(people, f"segments {one + 1} and {other + 1}")


def _frequent_patterns(design: SegmentDesign, aggregate: Aggregate) -> list[Integers]:
    """The most frequent patterns of each segment, from all cohorts that tell it."""
    patterns = []
    for segment in range(len(design.windows)):
        sums: list[Integers] = []  # (patterns,) each
        for pair in design.pairs:
            if segment in pair:
                ask = design.first_ask + pair.index(segment)
                sums.append(aggregate.support(design.cohort(pair), ask))
        support = np.sum(sums, axis=0)
        count = min(design.target.top, MOST_PATTERNS, len(support))
        falling = np.argsort(-support, kind="stable")
        patterns.append(falling[:count])
    return patterns


def _joint(
    design: SegmentDesign,
    aggregate: Aggregate,
    pair: Pair,
    patterns: tuple[Integers, Integers],
) -> Floats:
    """The frequency of each pair of patterns, from the product of each person's two answers.

    Args:
        design: the segments and who tells which.
        aggregate: with the rows of reports.
        pair: two segments.
        patterns: those of either segment that are paired.

    Returns:
        Frequencies, (patterns of the first, patterns of the second).
    """
    index = design.cohort(pair)
    places = (design.first_ask, design.first_ask + 1)
    asks = aggregate.plan.cohorts[index].asks
    one, other = (oracle_of(asks[place], LocalHashing) for place in places)
    listed = [own.astype(np.uint64) for own in patterns]
    counts = aggregate.over_rows(index, places, partial(_pair_support, (one, other), listed))
    both = counts[:-1, :-1]  # (patterns, patterns)
    first = counts[:-1, -1]  # (patterns,)
    second = counts[-1, :-1]
    people = aggregate.cohort_people(index)
    # E[(1[a] - q)(1[b] - q')] = (p - q)(p' - q') f(a, b): the coins of the two answers are
    # independent; the sum over people is c(a, b) - q' c(a) - q c(b) + n q q'
    by_first = other.q * first[:, None]
    by_second = one.q * second[None, :]
    by_chance = people * one.q * other.q
    centred = both - by_first - by_second + by_chance
    frequencies: Floats = centred / (people * one.gap * other.gap)
    return frequencies


def _pair_support(
    sources: Sequence[LocalHashing],
    patterns: Sequence[NDArray[np.uint64]],
    payloads: Sequence[Payload],
    people: Integers | None,
) -> Integers:
    """How many people's reports support a pattern of each of two asks.

    Returns:
        Counts for :meth:`Aggregate.over_rows`, (patterns + 1, patterns + 1); the last column and
        row count those who support a pattern of either ask.
    """
    from sottovoce.kernels.segments import count_pairs

    if people is not None:  # a row for each person
        payloads = [np.repeat(payload, people, axis=0) for payload in payloads]
    shapes = [(source.width, source.hash_bits) for source in sources]
    both, first, second = count_pairs(payloads, shapes, patterns)
    counts = np.zeros((len(first) + 1, len(second) + 1), np.int64)
    counts[:-1, :-1] = both
    counts[:-1, -1] = first
    counts[-1, :-1] = second
    return counts


# -- from pairs to values


def joined(sizes: Sequence[int], pairs: Pairs) -> tuple[Integers, Floats, float]:
    """Ways to pick a pattern of each segment, those whose weakest pair is strongest first.

    Args:
        sizes: how many patterns each segment has.
        pairs: the frequency of each pair of patterns, by the two segments.

    Returns:
        The picks, (ways, segments); the frequency of each way's weakest pair, (ways,); and that of
        the strongest way left out, because only ``MOST_JOINED`` are carried on.
    """
    picks = np.arange(sizes[0])[:, None]  # (ways, segments so far)
    weakest = np.full(sizes[0], np.inf)  # (ways,)
    dropped = -np.inf
    for segment in range(1, len(sizes)):
        least = np.repeat(weakest[:, None], sizes[segment], axis=1)  # (ways, patterns)
        for before in range(segment):
            own = pairs[before, segment][picks[:, before]]
            np.minimum(least, own, out=least)
        flat = least.ravel()
        order = np.argsort(-flat, kind="stable")
        if len(order) > MOST_JOINED:
            dropped = max(dropped, float(flat[order[MOST_JOINED]]))
            order = order[:MOST_JOINED]
        rows, patterns = np.divmod(order, sizes[segment])
        picks = np.concatenate([picks[rows], patterns[:, None]], axis=1)
        weakest = flat[order]
    return picks, weakest, dropped


def _candidates(
    design: SegmentDesign, patterns: Sequence[Integers], pairs: Pairs
) -> tuple[list[int], list[str]]:
    """Values to test, by the numbers of their spellings, and what a reader should know of them."""
    top, attribute = design.target.top, design.target.attribute
    sizes = [len(own) for own in patterns]
    picks, weakest, dropped = joined(sizes, pairs)
    numbers: list[int] = []
    last = np.inf  # the weakest pair of the last candidate
    for pick, weight in zip(picks.tolist(), weakest.tolist(), strict=True):
        # pairs are added until more than k candidates are identified
        #     wang2021thesis, section 4.4.1
        is_enough = len(numbers) > top and weight < last
        if is_enough or len(numbers) == MAX_TESTED_CANDIDATES:
            break
        number = 0
        for window, own, row in zip(design.windows, patterns, pick, strict=True):
            number = number << window.fresh | int(own[row])
        if attribute.spelled(number) is not None:
            numbers.append(number)
            last = weight
    notes = []
    if top > MOST_PATTERNS:
        notes.append(f"only the {MOST_PATTERNS} most frequent patterns of a segment were paired")
    is_short = dropped > -np.inf and len(numbers) <= top
    if dropped > last or len(numbers) == MAX_TESTED_CANDIDATES or is_short:
        notes.append("there were more candidates than are looked at; some were left out")
    return numbers, notes
