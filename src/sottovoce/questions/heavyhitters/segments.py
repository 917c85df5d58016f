"""Segments beside the whole: people tell parts of a value, and the whole of it tests what the parts
are joined to.

Two older methods share this: pairs of segments (``spm``) and channels by a public hash (``hash``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.counts import RowCounts
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import LocalHashing, WideLocalHashing
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families import Family, Listed, Together
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import SPLITS, Question
from sottovoce.questions.heavyhitters.method import Floats, HeavyHitterMethod, sampled_variances
from sottovoce.questions.heavyhitters.sensitivity import expected_false
from sottovoce.results.findings import Findings

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

BUDGET = SPLITS[1]
OTHERS = 9  # people who tell parts, for each one who tells the whole value only
MOST_SEGMENT = 16  # bits: every pattern of a segment is tested
MOST_SEGMENTS = 32
MOST_PATTERNS = 256  # of a segment that are paired: pairs grow with the square
MOST_JOINED = 16_384  # partial candidates that a join goes on with
MAX_TESTED_CANDIDATES = 4_096  # that are tested
MAX_CELL_BITS = 22  # bits of a channel and a block together

Integers = NDArray[np.int64]
Pairs = Mapping[tuple[int, int], Floats]


class _Tested(HeavyHitterMethod):
    """Candidates come from parts of the value, and are tested by what people told of the whole of
    it.

    ``split="budget"``: everybody tells parts and the whole, each at an equal part of epsilon.
    ``split="people"``: a tenth of people tell the whole at all of epsilon, the others tell parts.
    """

    told: ClassVar[int]  # parts of her value that a person tells

    @abstractmethod
    def parts(self, epsilon: Decimal) -> list[tuple[Ask, ...]]:
        """The asks on parts, cohort by cohort, if each of them may cost ``epsilon``."""

    @property
    def split(self) -> str:
        split = self.given.get("split", BUDGET)
        if split not in SPLITS:
            raise InvalidInput(f"split ({split}) must be one of {', '.join(SPLITS)}")
        return str(split)

    def crowd(self, epsilon: Decimal) -> list[Cohort]:
        """The cohorts: those who tell the whole only, if there are any, come first."""
        complete = Window(self.target.name, self.target.bits, 0, self.target.bits)
        if self.split == BUDGET:
            each = shared(epsilon, self.told + 1)
            test = Ask(complete, oracle("olh-wide", size=complete.size, epsilon=each))
            return [Cohort((test, *asks)) for asks in self.parts(each)]
        test = Ask(complete, oracle("olh-wide", size=complete.size, epsilon=epsilon))
        told = self.parts(epsilon if self.told == 1 else shared(epsilon, self.told))
        return [Cohort((test,), len(told)), *(Cohort(asks, OTHERS) for asks in told)]

    @property
    def first(self) -> int:
        """The first cohort that tells parts."""
        return 0 if self.split == BUDGET else 1

    @property
    def place(self) -> int:
        """The first ask of such a cohort that is about a part."""
        return 1 if self.split == BUDGET else 0

    def threshold(self, plan: Plan, chance: float = 0.5) -> float | None:
        return None  # it depends on how the parts of other values are spread

    def explain(self, plan: Plan) -> list[str]:
        source = _wide(plan)
        if self.split == BUDGET:
            told, people = "Everybody also tells the whole value", plan.round_people
        else:
            told, people = "Others tell the whole value", plan.cohort_people(0)
        error = source.std_error(people)
        return [
            f"{told} at epsilon {source.epsilon:.4g} ({people:,} people): it tests with a standard "
            f"error of {error:.2%}"
        ]

    def _heard(self, people: int, of: str) -> int:
        if not people:
            raise InvalidInput(
                f"aggregate: nobody who tells {of} was heard yet; more people are needed"
            )
        return people

    def _tested(
        self, aggregate: Aggregate, numbers: Sequence[int], notes: Sequence[str]
    ) -> Findings:
        """The candidates with what people told of whole values."""
        from sottovoce.kernels.spelling import to_words

        source = _wide(aggregate.plan)
        # whose first ask is the whole value
        cohorts = range(len(aggregate.plan.cohorts) if self.split == BUDGET else 1)
        people = self._heard(
            sum(aggregate.cohort_people(index) for index in cohorts), "the whole value"
        )
        words = to_words(list(numbers))
        support = np.zeros(len(words), np.int64)
        for index in cohorts:
            support += aggregate.support(index, 0, words)
        frequencies = source.from_support(support, people)
        noise = source.noise(people)
        variances = sampled_variances(noise, frequencies, people, aggregate.people)
        # its coins are not those of the parts, so that only the candidates themselves were looked
        # at
        scores = source.buckets * support.astype(float) - people
        chances = expected_false(float(len(numbers)), scores, people, source.buckets)
        return self.findings(
            numbers,
            frequencies,
            variances,
            chances,
            people,
            noise.floor,
            heard=aggregate.people,
            notes=notes,
        )


def _wide(plan: Plan) -> WideLocalHashing:
    source = plan.cohorts[0].asks[0].oracle
    assert isinstance(source, WideLocalHashing)
    return source


class SegmentPairs(_Tested):
    """Each person tells two segments of her value; frequent pairs of patterns are joined to
    candidates.

    A pattern's frequency comes from all cohorts that tell its segment, a pair's from the product of
    the two answers of one person. Pairs are added, the most frequent first, until they join to more
    candidates than are wanted.
    """

    name: ClassVar[str] = "spm"
    about: ClassVar[str] = "pairs of segments, joined to candidates, which the whole value tests"
    options: ClassVar[tuple[str, ...]] = ("split", "segment")
    told: ClassVar[int] = 2

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        return {"split": self.split, "segment": self.segment}

    @property
    def segment(self) -> int:
        """Bits of a segment: by default as many as can be enumerated, in segments of one length."""
        bits = self.target.bits
        if bits < 2:
            raise InvalidInput(
                f"attribute {self.target.name!r} has no two segments; spm needs values of 2 bits "
                "or more"
            )
        given = self.given.get("segment")
        if given is None:
            return -(-bits // max(2, -(-bits // MOST_SEGMENT)))
        return whole("segment", given, -(-bits // MOST_SEGMENTS), min(MOST_SEGMENT, bits - 1))

    @property
    def windows(self) -> list[Window]:
        """The segments; the last one may be shorter."""
        bits, length = self.target.bits, self.segment
        return [
            Window(self.target.name, bits, start, min(length, bits - start))
            for start in range(0, bits, length)
        ]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The two segments of each cohort."""
        return list(combinations(range(len(self.windows)), 2))

    def parts(self, epsilon: Decimal) -> list[tuple[Ask, ...]]:
        asks = [Ask(each, oracle("olh", size=each.size, epsilon=epsilon)) for each in self.windows]
        return [(asks[one], asks[other]) for one, other in self.pairs]

    def cohorts(self, terms: Terms) -> Family:
        return Together(self.crowd(terms.epsilon))

    def explain(self, plan: Plan) -> list[str]:
        lengths = ", ".join(str(each.fresh) for each in self.windows)
        told = plan.cohort_people(len(plan.cohorts) - 1)
        return [
            f"Segments of {lengths} bits, in {len(self.pairs)} pairs of {told:,} people each",
            *super().explain(plan),
        ]

    def find(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        self.no_candidates(candidates)
        counts = aggregate.counts
        assert isinstance(counts, RowCounts)
        told = self._told(counts)
        patterns = self._patterns(aggregate)
        pairs = {
            pair: self._joint(aggregate.plan, pair, told[pair], patterns) for pair in self.pairs
        }
        numbers, notes = self._candidates(patterns, pairs)
        return self._tested(aggregate, numbers, notes)

    def _told(self, counts: RowCounts) -> dict[tuple[int, int], tuple[Payload, Payload]]:
        """What the people of each pair told of its two segments."""
        told = {}
        for index, (one, other) in enumerate(self.pairs, start=self.first):
            payloads = self._repeated(counts, index)
            self._heard(len(payloads[0]), f"segments {one + 1} and {other + 1}")
            told[one, other] = (payloads[self.place], payloads[self.place + 1])
        return told

    @staticmethod
    def _repeated(counts: RowCounts, index: int) -> list[Payload]:
        """What each person of a cohort told, one row for each."""
        payloads, people = counts.told(index)
        if bool((people == 1).all()):
            return payloads
        if bool((people < 0).any()):
            raise InvalidInput(
                "aggregate: pairs of segments need reports whose weights are not negative"
            )
        return [np.repeat(payload, people, axis=0) for payload in payloads]

    def _source(self, plan: Plan, pair: tuple[int, int], side: int) -> LocalHashing:
        source = plan.cohorts[self.first + self.pairs.index(pair)].asks[self.place + side].oracle
        assert isinstance(source, LocalHashing)
        return source

    def _patterns(self, aggregate: Aggregate) -> list[Integers]:
        """The most frequent patterns of each segment."""
        found = []
        for segment in range(len(self.windows)):
            own = [(pair, pair.index(segment)) for pair in self.pairs if segment in pair]
            cohorts = [
                (self.first + self.pairs.index(pair), self.place + side) for pair, side in own
            ]
            support = aggregate.support(*cohorts[0])
            for index, ask in cohorts[1:]:
                support += aggregate.support(index, ask)
            count = min(self.target.top, MOST_PATTERNS, len(support))
            found.append(np.argsort(-support, kind="stable")[:count])
        return found

    def _joint(
        self,
        plan: Plan,
        pair: tuple[int, int],
        told: tuple[Payload, Payload],
        patterns: Sequence[Integers],
    ) -> Floats:
        """The frequency of each pair of patterns, from the product of each person's two answers."""
        from sottovoce.kernels.segments import count_pairs

        sources = self._source(plan, pair, 0), self._source(plan, pair, 1)
        shapes = tuple((each.width, each.hash_bits) for each in sources)
        listed = tuple(patterns[segment].astype(np.uint64) for segment in pair)
        both, first, second = count_pairs(told, shapes, listed)  # type: ignore[arg-type]
        people = len(told[0])
        (q, gap), (other_q, other_gap) = ((each.q, each.gap) for each in sources)
        # E[(1[a] - q)(1[b] - q')] = (p - q)(p' - q') f(a, b): the coins of the two answers are
        # independent
        centred = both - other_q * first[:, None] - q * second[None, :] + people * q * other_q
        out: Floats = centred / (people * gap * other_gap)
        return out

    def _candidates(
        self, patterns: Sequence[Integers], pairs: Pairs
    ) -> tuple[list[int], list[str]]:
        picks, weakest, dropped = joined([len(each) for each in patterns], pairs)
        numbers: list[int] = []
        last = np.inf
        for pick, weight in zip(picks.tolist(), weakest.tolist(), strict=True):
            # pairs are added until more than k candidates are identified
            #     wang2021thesis, section 4.4.1
            if (len(numbers) > self.target.top and weight < last) or len(
                numbers
            ) == MAX_TESTED_CANDIDATES:
                break
            number = 0
            for window, own, place in zip(self.windows, patterns, pick, strict=True):
                number = number << window.fresh | int(own[place])
            if self.target.attribute.spelled(number) is not None:
                numbers.append(number)
                last = weight
        notes = []
        if self.target.top > MOST_PATTERNS:
            notes.append(
                f"only the {MOST_PATTERNS} most frequent patterns of a segment were paired"
            )
        if (
            dropped > last
            or len(numbers) == MAX_TESTED_CANDIDATES
            or (dropped > -np.inf and len(numbers) <= self.target.top)
        ):
            notes.append("there were more candidates than are looked at; some were left out")
        return numbers, notes


def joined(sizes: Sequence[int], pairs: Pairs) -> tuple[Integers, Floats, float]:
    """(picks, weakest, dropped): ways to pick a pattern of each segment, those whose weakest pair
    is strongest first.

    ``dropped``: the strongest that was left out on the way, because only ``MOST_JOINED`` are
    carried on.
    """
    picks = np.arange(sizes[0])[:, None]
    weakest = np.full(sizes[0], np.inf)
    dropped = -np.inf
    for segment in range(1, len(sizes)):
        least = np.repeat(weakest[:, None], sizes[segment], axis=1)
        for before in range(segment):
            np.minimum(least, pairs[before, segment][picks[:, before]], out=least)
        flat = least.ravel()
        order = np.argsort(-flat, kind="stable")
        if len(order) > MOST_JOINED:
            dropped = max(dropped, float(flat[order[MOST_JOINED]]))
            order = order[:MOST_JOINED]
        rows, places = np.divmod(order, sizes[segment])
        picks = np.concatenate([picks[rows], places[:, None]], axis=1)
        weakest = flat[order]
    return picks, weakest, dropped


class Channels(_Tested):
    """A public hash sends every value to a channel; each person tells a block of bits beside her
    channel.

    Where a channel has one frequent value, the most frequent block of each place spells it: one
    candidate a channel. ``strict``: only candidates that the hash does send to the channel where
    they were found, which leaves out most of what noise put together, and was not part of the
    method as published.
    """

    name: ClassVar[str] = "hash"
    about: ClassVar[str] = (
        "channels by a public hash, a candidate each, which the whole value tests"
    )
    options: ClassVar[tuple[str, ...]] = ("split", "block", "strict")
    told: ClassVar[int] = 1

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        return {"split": self.split, "block": self.block, "strict": self.strict}

    @property
    def strict(self) -> bool:
        strict = self.given.get("strict", False)
        if not isinstance(strict, bool):
            raise InvalidInput(f"strict ({strict}) must be true or false")
        return strict

    @property
    def block(self) -> int:
        """Bits that a person tells beside her channel."""
        return whole(
            "block", self.given.get("block", min(8, self.target.bits)), 1, min(16, self.target.bits)
        )

    @property
    def tag(self) -> int:
        """Bits of a channel's number."""
        # h >= k^1.5, so that two of k values seldom share a channel   wang2021thesis, section 4.4.1
        channels = isqrt(self.target.top**3 - 1) + 1
        return min((channels - 1).bit_length(), MAX_CELL_BITS - self.block)

    @property
    def windows(self) -> list[Window]:
        """The blocks, each beside the channel; the last one may be shorter."""
        bits, block, tag = self.target.bits, self.block, self.tag
        return [
            Window(self.target.name, bits, start, min(block, bits - start), tag, bits if tag else 0)
            for start in range(0, bits, block)
        ]

    def parts(self, epsilon: Decimal) -> list[tuple[Ask, ...]]:
        return [
            (Ask(each, oracle("olh", size=each.size, epsilon=epsilon)),) for each in self.windows
        ]

    def cohorts(self, terms: Terms) -> Family:
        return Listed(self.crowd(terms.epsilon))

    def explain(self, plan: Plan) -> list[str]:
        lengths = ", ".join(str(each.fresh) for each in self.windows)
        told = plan.cohort_people(len(plan.cohorts) - 1)
        return [
            f"{1 << self.tag:,} channels; blocks of {lengths} bits, {told:,} people each",
            *super().explain(plan),
        ]

    def find(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        self.no_candidates(candidates)
        numbers = [0] * (1 << self.tag)
        for index, window in enumerate(self.windows):
            self._heard(aggregate.cohort_people(self.first + index), f"block {index + 1}")
            support = aggregate.support(self.first + index, self.place).reshape(
                1 << self.tag, 1 << window.fresh
            )
            best = support.argmax(axis=1).tolist()
            numbers = [
                number << window.fresh | block for number, block in zip(numbers, best, strict=True)
            ]
        return self._tested(aggregate, self._candidates(numbers), [])

    def _candidates(self, numbers: Sequence[int]) -> list[int]:
        """Those of the channels' values that can be spelled, each once; if strict, those of their
        own channel.
        """
        last = self.windows[-1]
        spelled = self.target.attribute.spelled
        kept = [
            number
            for channel, number in enumerate(numbers)
            if not self.strict or last.of(number) >> last.fresh == channel
        ]
        return [number for number in dict.fromkeys(kept) if spelled(number) is not None]
