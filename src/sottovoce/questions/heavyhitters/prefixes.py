"""Prefix extending: group after group tells longer prefixes; the best are kept and extended.

One report each and no interaction: a linear hash of the whole prefix is told, and all ways in which
a kept prefix may go on are decoded by one transform.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.hashes import unpermuted
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import WideLocalHashing, best_hash_bits
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod, sampled_variances
from sottovoce.questions.heavyhitters.sensitivity import deviation_of, expected_false, sensitivity
from sottovoce.results.findings import Findings, PrefixStep

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_QUERIES = 1 << 20  # that the thesis allows itself
MOST_FRESH = 26  # bits that a round may add: a table of 2^26 integers
SECONDS_PER_STEP = 4e-9  # of decoding, for one step of one report or one cell; measured on one core


def prefix_lengths(bits: int, top: int, groups: int) -> list[int]:
    """The length of each group's prefix.

    >>> prefix_lengths(64, 16, 5)
    [16, 28, 40, 52, 64]
    """
    first = _first(bits, top)
    # s_i = ceil(log2 k) + ceil(i (m - ceil(log2 k)) / g)   wang2021thesis, section 4.2.1
    return [first + ceil(turn * (bits - first) / groups) for turn in range(1, groups + 1)]


def _first(bits: int, top: int) -> int:
    return min((top - 1).bit_length(), bits - 1)


class _Prefixes(HeavyHitterMethod):
    """Groups that tell prefixes of given lengths; after each, the ``keep`` best are kept."""

    options: ClassVar[tuple[str, ...]] = ("lengths", "keep", "scramble")

    @abstractmethod
    def lengths(self, terms: Terms) -> list[int]:
        """The length of each group's prefix, if it was not given."""

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        lengths = self.given.get("lengths")
        lengths = self.lengths(terms) if lengths is None else self._checked(lengths)
        scramble = self.given.get("scramble", False)
        if not isinstance(scramble, bool):
            raise InvalidInput(f"scramble ({scramble}) must be true or false")
        keep = self.given.get("keep", self.target.top)
        return {
            "lengths": lengths,
            "keep": whole("keep", keep, self.target.top, 1 << 16),
            "scramble": scramble,
        }

    def _checked(self, lengths: Any) -> list[int]:
        if not isinstance(lengths, list | tuple) or not lengths:
            raise InvalidInput("lengths must list the bits of each round's prefix")
        told = [whole("lengths", each, 1, self.target.bits) for each in lengths]
        if told[-1] != self.target.bits or any(
            not 0 < b - a <= MOST_FRESH for a, b in pairwise([0, *told])
        ):
            raise InvalidInput(
                f"lengths must rise to the value's {self.target.bits} bits, by at most "
                f"{MOST_FRESH} at a time"
            )
        return told

    @property
    def _lengths(self) -> list[int]:
        lengths: list[int] = self.given["lengths"]
        return lengths

    @property
    def _fresh(self) -> list[int]:
        """The bits that each round adds."""
        return [longer - shorter for shorter, longer in pairwise([0, *self._lengths])]

    def cohorts(self, terms: Terms) -> Family:
        scrambled = self.given["scramble"]
        windows = [
            Window(self.target.name, self.target.bits, 0, each, scrambled=scrambled)
            for each in self._lengths
        ]
        return Listed(
            [
                Cohort((Ask(each, oracle("olh-wide", size=each.size, epsilon=terms.epsilon)),))
                for each in windows
            ]
        )

    def threshold(self, plan: Plan, chance: float = 0.5) -> float:
        """A value must pass all rounds, each by its own people."""
        deviation = deviation_of(_source(plan, 0))
        people = plan.people / len(self._lengths)
        kept = [1, *(min(self.given["keep"], 1 << length) for length in self._lengths)]
        limits = np.array(
            [
                sensitivity(deviation, before * 2.0**fresh, people, self.given["keep"])
                for before, fresh in zip(kept, self._fresh, strict=False)
            ]
        )

        brentq = imported("scipy.optimize").brentq
        ndtr = imported("scipy.special").ndtr

        def missing(frequency: float) -> float:
            return float(np.prod(ndtr((frequency - limits) * sqrt(people) / deviation))) - chance

        widest = float(limits.max()) + 12 * deviation / sqrt(people)
        return float(brentq(missing, -widest, widest))

    def explain(self, plan: Plan) -> list[str]:
        told = ", ".join(map(str, self._lengths))
        queries = sum(
            min(self.given["keep"], 1 << length) << fresh for length, fresh in self._tested()
        )
        groups = len(self._lengths)
        return [
            f"{groups} group{'s' if groups > 1 else ''} tell prefixes of {told} bits; {queries:,} "
            "prefixes are tested",
            "Fewer groups have more people each, so that rarer values stand out, and take more "
            "computing",
        ]

    def _tested(self) -> list[tuple[int, int]]:
        """(bits before, bits added) of each round."""
        return [
            (longer - fresh, fresh)
            for longer, fresh in zip(self._lengths, self._fresh, strict=True)
        ]

    def find(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        self.no_candidates(candidates)
        from sottovoce.kernels.beam import append_bits
        from sottovoce.kernels.wide import extend_wide

        words = np.zeros((1, 2), np.uint64)
        steps: list[PrefixStep] = []
        before = [None]
        for index, fresh in enumerate(self._fresh):
            source = _source(aggregate.plan, index)
            people = aggregate.cohort_people(index)
            if not people:
                raise InvalidInput(
                    f"aggregate: nobody of group {index + 1} was heard yet; more people are needed"
                )
            seeds, answers, weights = source.columns(aggregate.state(index))
            tested = len(words) * 2.0**fresh
            keep = self.given["keep"]
            parents, suffixes, scores = extend_wide(
                seeds, answers, words, fresh, source.hash_bits, keep, weights
            )
            words = append_bits(words[parents], suffixes, fresh)
            # E[score] = n f (2^b p - 1), and 2^b q = 1
            frequencies = scores / (people * (source.buckets * source.p - 1))
            variances = sampled_variances(
                source.noise(people), frequencies, people, aggregate.people
            )
            first = len(steps)
            steps += [
                PrefixStep(
                    self._lengths[index],
                    label,
                    before[parent],
                    float(frequency),
                    float(np.sqrt(variance)),
                )
                for label, parent, frequency, variance in zip(
                    self._labels(words, self._lengths[index]),
                    parents.tolist(),
                    frequencies,
                    variances,
                    strict=True,
                )
            ]
            before = list(range(first, len(steps)))  # type: ignore[arg-type]
        numbers = [self._value(high << 64 | low) for high, low in words.tolist()]
        chances = expected_false(tested, scores.astype(float), people, source.buckets)
        floor = source.noise(people).floor
        return self.findings(
            numbers,
            frequencies,
            variances,
            chances,
            people,
            floor,
            heard=aggregate.people,
            steps=steps,
        )

    def _value(self, number: int) -> int:
        return unpermuted(number, self.target.bits) if self.given["scramble"] else number

    def _labels(self, words: Any, length: int) -> list[str]:
        numbers = [high << 64 | low for high, low in words.tolist()]
        if self.given["scramble"] and length < self.target.bits:
            return [f"{number:0{length}b}" for number in numbers]
        return [
            self.target.attribute.prefix_label(self._value(number), length) for number in numbers
        ]


def _source(plan: Plan, index: int) -> WideLocalHashing:
    source = plan.cohorts[index].asks[0].oracle
    assert isinstance(source, WideLocalHashing)
    return source


class PrefixExtending(_Prefixes):
    """Prefix extending with as few groups as the computing budget allows."""

    name: ClassVar[str] = "pem"
    about: ClassVar[str] = "prefix extending, as few groups as the budget allows"
    options: ClassVar[tuple[str, ...]] = (*_Prefixes.options, "queries", "seconds")

    def lengths(self, terms: Terms) -> list[int]:
        bits, top = self.target.bits, self.target.top
        queries, seconds = self.given.get("queries"), self.given.get("seconds")
        if queries is not None and seconds is not None:
            raise InvalidInput("pem takes queries or seconds as its budget, not both")
        if seconds is not None:
            budget = _seconds(seconds)
        else:
            most = whole("queries", MAX_QUERIES if queries is None else queries, 2, 1 << 40)
        for groups in range(1, bits - _first(bits, top) + 1):
            lengths = prefix_lengths(bits, top, groups)
            added = [longer - shorter for shorter, longer in pairwise([0, *lengths])]
            if max(added) > MOST_FRESH:
                continue
            if seconds is not None:
                if self._cost(added, terms.people / groups, terms.epsilon) <= budget:
                    return lengths
            # |D_i| = k 2^(s_i - s_(i-1)), in each of g groups   wang2021thesis, eq. (4.3)
            elif groups * top << -(-(bits - _first(bits, top)) // groups) <= most:
                return lengths
        named = f"seconds ({seconds})" if seconds is not None else f"queries ({queries})"
        raise InvalidInput(f"{named} is too small a budget even for one bit a group")

    def _cost(self, added: Sequence[int], people: float, epsilon: Decimal) -> float:
        """Seconds of decoding, as predicted."""
        steps = people * 2.0 ** best_hash_bits(epsilon)
        keep = whole("keep", self.given.get("keep", self.target.top), 1, 1 << 16)
        kept = [1, *([keep] * len(added))]
        return SECONDS_PER_STEP * sum(
            count * (steps + fresh * 2.0**fresh) for count, fresh in zip(kept, added, strict=False)
        )


def _seconds(value: Any) -> float:
    try:
        seconds = float(Decimal(str(value)))
    except ArithmeticError:
        raise InvalidInput(f"seconds ({value}) must be a number") from None
    if not 0 < seconds < 1e9:
        raise InvalidInput(f"seconds ({value}) must be finite and greater than 0")
    return seconds


class BitByBit(_Prefixes):
    """Prefix extending by one bit a group."""

    name: ClassVar[str] = "pem1"
    about: ClassVar[str] = "prefix extending by one bit a group"

    def lengths(self, terms: Terms) -> list[int]:
        bits = self.target.bits
        return prefix_lengths(bits, self.target.top, bits - _first(bits, self.target.top))


class TreeHistogram(_Prefixes):
    """Prefix extending by eight bits, one character, a group."""

    name: ClassVar[str] = "tree-hist"
    about: ClassVar[str] = "prefix extending by 8 bits a group"

    def lengths(self, terms: Terms) -> list[int]:
        bits = self.target.bits
        return [*range(8, bits, 8), bits]
