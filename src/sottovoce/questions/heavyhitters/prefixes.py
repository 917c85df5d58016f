"""Prefix extending: group after group tells longer prefixes; the best are kept and extended.

One report each and no interaction: a linear hash of the whole prefix is told, and all ways in which
a kept prefix may go on are decoded by one transform.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.hashes import unpermuted
from sottovoce.ground.threads import thread_count
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import WideLocalHashing, best_hash_bits
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.heavyhitters.found import starred_from
from sottovoce.questions.heavyhitters.method import (
    Floats,
    HeavyHitterMethod,
    Ranked,
    SearchTarget,
    oracle_of,
    sampled_variances,
)
from sottovoce.questions.heavyhitters.sensitivity import expected_false, free_places, noise_score
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.results.findings import PrefixStep
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_QUERIES = 1 << 20  # that the thesis allows itself
MAX_BLOCK_CELLS = 1 << 24  # of the tables that are made at once, or one table a core
MOST_FRESH = 26  # bits that a round may add: a table of 2^26 integers
MAX_KEPT_PREFIXES = 1 << 16
SECONDS_PER_STEP = 4e-9  # of decoding, for one step of one report or one cell; measured on one core

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


# -- the lengths of prefixes


def prefix_lengths(bits: int, top: int, groups: int) -> list[int]:
    """The length of each group's prefix.

    >>> prefix_lengths(64, 16, 5)
    [16, 28, 40, 52, 64]
    """
    first = _first(bits, top)
    # s_i = ceil(log2 k) + ceil(i (m - ceil(log2 k)) / g)   wang2021thesis, section 4.2.1
    return [first + ceil(turn * (bits - first) / groups) for turn in range(1, groups + 1)]


def _first(bits: int, top: int) -> int:
    """ceil(log2 k): bits that nobody need be asked, since all their prefixes would be kept."""
    return min((top - 1).bit_length(), bits - 1)


def _added(lengths: Sequence[int]) -> list[int]:
    """The bits that each group's prefix has more than the one before."""
    return [longer - shorter for shorter, longer in pairwise([0, *lengths])]


def _checked_lengths(lengths: Any, bits: int) -> list[int]:
    if not isinstance(lengths, list | tuple) or not lengths:
        raise InvalidInput("lengths must list the bits of each round's prefix")
    checked = [whole("lengths", length, 1, bits) for length in lengths]
    is_rising = all(0 < added <= MOST_FRESH for added in _added(checked))
    if checked[-1] != bits or not is_rising:
        raise InvalidInput(
            f"lengths must rise to the value's {bits} bits, by at most {MOST_FRESH} at a time"
        )
    return checked


@dataclass(frozen=True)
class PrefixDesign:
    """Groups that tell prefixes of these ``lengths``; after each, the ``keep`` best go on."""

    target: SearchTarget
    lengths: Sequence[int]
    keep: int
    scramble: bool  # whether a public permutation of the bits comes first

    @classmethod
    def of(cls, target: SearchTarget, options: Options) -> Self:
        """The design that settled options describe."""
        return cls(target, options["lengths"], options["keep"], options["scramble"])

    @property
    def fresh(self) -> list[int]:
        """The bits that each group adds."""
        return _added(self.lengths)

    @property
    def kept(self) -> list[int]:
        """How many prefixes go into each group: one, of no bits, into the first."""
        kept = [min(self.keep, 1 << length) for length in self.lengths[:-1]]
        return [1, *kept]

    def asks(self, epsilon: Decimal) -> list[Ask]:
        """One ask for each group."""
        name, bits = self.target.name, self.target.bits
        asks = []
        for length in self.lengths:
            prefix = Window(name, bits, 0, length, scrambled=self.scramble)
            source = oracle("olh-wide", size=prefix.size, epsilon=epsilon)
            asks.append(Ask(prefix, source))
        return asks

    def number(self, prefix: int) -> int:
        """The spelling of a whole value, with the permutation undone."""
        return unpermuted(prefix, self.target.bits) if self.scramble else prefix

    def labels(self, prefixes: Sequence[int], length: int) -> list[str]:
        """How prefixes read: as text, or as bits where they are scrambled parts of a value."""
        if self.scramble and length < self.target.bits:
            return [f"{prefix:0{length}b}" for prefix in prefixes]
        label = self.target.attribute.prefix_label
        return [label(self.number(prefix), length) for prefix in prefixes]


# -- one group after the other


@dataclass(frozen=True, eq=False)
class GroupFound:
    """The best prefixes of one group, with what its people say of them."""

    words: Words  # (prefixes, 2)
    parents: Integers  # (prefixes,): rows of the group before
    scores: Integers  # (prefixes,)
    frequencies: Floats  # (prefixes,)
    variances: Floats  # (prefixes,)
    tested: float  # prefixes of which these are the best
    left_out: float  # the score of the best that is not among them
    people: int
    source: WideLocalHashing

    @property
    def numbers(self) -> list[int]:
        """The prefixes as integers."""
        return [high << 64 | low for high, low in self.words.tolist()]


def _group(design: PrefixDesign, aggregate: Aggregate, index: int, words: Words) -> GroupFound:
    """The best ways in which the prefixes ``words`` go on, by the people of one group."""
    from sottovoce.kernels.beam import append_bits

    people = aggregate.cohort_people(index)
    if not people:
        raise InvalidInput(
            f"aggregate: nobody of group {index + 1} was heard yet; more people are needed"
        )
    source = oracle_of(aggregate.plan.cohorts[index].asks[0], WideLocalHashing)
    fresh = design.fresh[index]
    parents, suffixes, scores = _extended(design, aggregate, index, words)  # (prefixes + 1,) each
    left_out = float(scores[design.keep]) if len(scores) > design.keep else -np.inf
    parents, suffixes, scores = (each[: design.keep] for each in (parents, suffixes, scores))
    # E[score] = n f (2^b p - 1), and 2^b q = 1
    frequencies = scores / (people * (source.buckets * source.p - 1))
    noise = source.noise(people)
    variances = sampled_variances(noise, frequencies, people, aggregate.people)
    longer = append_bits(words[parents], suffixes, fresh)
    tested = len(words) * 2.0**fresh
    return GroupFound(
        longer, parents, scores, frequencies, variances, tested, left_out, people, source
    )


def _extended(
    design: PrefixDesign, aggregate: Aggregate, index: int, words: Words
) -> tuple[Integers, Integers, Integers]:
    """The best ways in which any of the prefixes ``words`` goes on, the best first: one more than
    are kept.

    Returns:
        The prefix, the bits that it goes on by, and the score of each way, (ways,) each: 2^b times
        the reports that support the longer prefix, less all reports.
    """
    from sottovoce.kernels.wide import best_extensions

    source = oracle_of(aggregate.plan.cohorts[index].asks[0], WideLocalHashing)
    fresh = design.fresh[index]
    block = max(thread_count(), MAX_BLOCK_CELLS >> fresh)  # prefixes
    best_suffixes, best_scores = [], []  # (prefixes of a block, ways) each
    for start in range(0, len(words), block):
        own = words[start : start + block]
        count = partial(_extension_tables, source, own, fresh)
        tables = aggregate.over_rows(index, (0,), count)  # (prefixes, 2^fresh)
        suffixes, scores = best_extensions(tables, design.keep + 1)
        best_suffixes.append(suffixes)
        best_scores.append(scores)
    all_suffixes = np.concatenate(best_suffixes)  # (prefixes, ways)
    all_scores = np.concatenate(best_scores)
    order = np.argsort(-all_scores.ravel(), kind="stable")[: design.keep + 1]
    parents = order // all_scores.shape[1]
    return parents, all_suffixes.ravel()[order], all_scores.ravel()[order]


def _extension_tables(
    source: WideLocalHashing,
    prefixes: Words,
    fresh: int,
    payloads: Sequence[Payload],
    weights: Integers | None,
) -> Integers:
    """What rows say of every way in which each prefix goes on: for :meth:`Aggregate.over_rows`."""
    return source.extension_tables(payloads[0], weights, prefixes, fresh)


def _ranked(design: PrefixDesign, last: GroupFound) -> Ranked:
    """The prefixes of the last group, which are whole values."""
    numbers = [design.number(prefix) for prefix in last.numbers]
    scores = last.scores.astype(float)
    people, buckets = last.people, last.source.buckets
    chance_of = partial(expected_false, last.tested, people=people, buckets=buckets)
    gain = people * (buckets * last.source.p - 1)
    starred = starred_from(chance_of, scores, people * (buckets - 1)) / gain
    # other people chose the prefixes that they extend: only the last group's score was to pass
    limits = np.full(len(scores), last.left_out / gain)
    floor = last.source.noise(people).floor
    return Ranked(
        numbers,
        last.frequencies,
        last.variances,
        chance_of(scores),
        people,
        floor,
        limits,
        starred,
    )


def _steps(design: PrefixDesign, groups: Sequence[GroupFound]) -> list[PrefixStep]:
    """Every prefix that was kept on the way, and the one that it extends."""
    steps: list[PrefixStep] = []
    before: Sequence[int | None] = [None]  # the places of the group before, in the list of steps
    for length, group in zip(design.lengths, groups, strict=True):
        start = len(steps)
        labels = design.labels(group.numbers, length)
        errors = np.sqrt(group.variances)
        for row, label in enumerate(labels):
            parent = before[group.parents[row]]
            frequency = float(group.frequencies[row])
            error = float(errors[row])
            steps.append(PrefixStep(length, label, parent, frequency, error))
        before = range(start, len(steps))
    return steps


# -- the methods


class _Prefixes(HeavyHitterMethod):
    """Groups that tell prefixes of given lengths; after each, the ``keep`` best are kept."""

    options: ClassVar[tuple[str, ...]] = ("lengths", "keep", "scramble")

    @abstractmethod
    def lengths(self, target: SearchTarget, terms: Terms, options: Options) -> list[int]:
        """The length of each group's prefix, if it was not given."""

    def settle(
        self, target: SearchTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        if options.get("lengths") is None:
            lengths = self.lengths(target, terms, options)
        else:
            lengths = _checked_lengths(options["lengths"], target.bits)
        scramble = options.get("scramble", False)
        if not isinstance(scramble, bool):
            raise InvalidInput(f"scramble ({scramble}) must be true or false")
        keep = options.get("keep", target.top)
        keep = whole("keep", keep, target.top, MAX_KEPT_PREFIXES)
        return {"lengths": lengths, "keep": keep, "scramble": scramble}

    def cohorts(
        self, schema: Schema, target: SearchTarget, epsilon: Decimal, options: Options
    ) -> Family:
        asks = PrefixDesign.of(target, options).asks(epsilon)
        return Listed([Cohort((ask,)) for ask in asks])

    def threshold(
        self, target: SearchTarget, terms: Terms, options: Options, chance: float
    ) -> float:
        """A value must pass all rounds, each by its own people."""
        design = PrefixDesign.of(target, options)
        source = oracle_of(design.asks(terms.epsilon)[0], WideLocalHashing)
        people = terms.people / len(design.lengths)
        tested = np.array(design.kept) * 2.0 ** np.array(design.fresh)  # (groups,)
        # E[score] = n f (2^b p - 1), and 2^b q = 1
        gain = people * (source.buckets * source.p - 1)
        at_least = noise_score(free_places(design.keep) / tested, people, source.buckets) / gain
        noise = source.noise(people)  # type: ignore[arg-type]
        ndtr = imported("scipy.special").ndtr

        def missing(frequency: float) -> float:
            # P[found] = product over groups of Phi((f - f_i) sqrt(n) / sigma)
            held = np.clip(frequency, 0, 1)
            # a group is a sample of the people
            variance = noise.variance(held) + held * (1 - held) / people
            passing = ndtr((frequency - at_least) / np.sqrt(variance))
            return float(np.prod(passing)) - chance

        if missing(0.0) >= 0:
            return 0.0  # so few prefixes are tested that all are kept
        far = 12 * sqrt(noise.floor)  # from where no chance is left
        highest = float(at_least.max()) + far
        while missing(highest) < 0:  # the variance of a frequent value is larger
            highest *= 2
        found = float(imported("scipy.optimize").brentq(missing, 0.0, highest))
        return min(found, 1.0)

    def explain(self, target: SearchTarget, plan: Plan, options: Options) -> list[str]:
        design = PrefixDesign.of(target, options)
        groups = len(design.lengths)
        told = ", ".join(map(str, design.lengths))
        queries = 0
        for before, fresh in zip(design.kept, design.fresh, strict=True):
            queries += before << fresh
        return [
            f"{groups} group{'s' if groups > 1 else ''} tell prefixes of {told} bits; {queries:,} "
            "prefixes are tested",
            "Fewer groups have more people each, so that rarer values stand out, and take more "
            "computing",
        ]

    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        design = PrefixDesign.of(target, options)
        words = np.zeros((1, 2), np.uint64)  # the prefix of no bits
        groups: list[GroupFound] = []
        for index in range(len(design.lengths)):
            groups.append(_group(design, aggregate, index, words))
            words = groups[-1].words
        ranked = _ranked(design, groups[-1])
        steps = _steps(design, groups)
        found = ranked.findings(target, self.name, aggregate.people, steps)
        return RoundResult(found)


class PrefixExtending(_Prefixes):
    """Prefix extending with as few groups as the computing budget allows."""

    name: ClassVar[str] = "pem"
    about: ClassVar[str] = "prefix extending, as few groups as the budget allows"
    source: ClassVar[str] = "wang2021thesis, section 4.2"
    options: ClassVar[tuple[str, ...]] = (*_Prefixes.options, "queries", "seconds")

    def lengths(self, target: SearchTarget, terms: Terms, options: Options) -> list[int]:
        queries, seconds = options.get("queries"), options.get("seconds")
        if queries is not None and seconds is not None:
            raise InvalidInput("pem takes queries or seconds as its budget, not both")
        if seconds is not None:
            budget = _seconds(seconds)
        else:
            most = whole("queries", MAX_QUERIES if queries is None else queries, 2, 1 << 40)
        bits, top = target.bits, target.top
        rest = bits - _first(bits, top)
        for groups in range(1, rest + 1):
            lengths = prefix_lengths(bits, top, groups)
            added = _added(lengths)
            if max(added) > MOST_FRESH:
                continue
            if seconds is not None:
                keep = whole("keep", options.get("keep", top), 1, MAX_KEPT_PREFIXES)
                people = terms.people / groups
                if _cost(added, keep, people, terms.epsilon) <= budget:
                    return lengths
            # |D_i| = k 2^(s_i - s_(i-1)), in each of g groups   wang2021thesis, eq. (4.3)
            elif groups * top << -(-rest // groups) <= most:
                return lengths
        named = f"seconds ({seconds})" if seconds is not None else f"queries ({queries})"
        raise InvalidInput(f"{named} is too small a budget even for one bit a group")


def _cost(added: Sequence[int], keep: int, people: float, epsilon: Decimal) -> float:
    """Seconds of decoding, as predicted.

    Args:
        added: bits that each group adds.
        keep: prefixes that go on from group to group.
        people: of one group.
        epsilon: what a report may cost.
    """
    report_steps = people * 2.0 ** best_hash_bits(epsilon)
    steps, prefixes = 0.0, 1
    for fresh in added:
        steps += prefixes * (report_steps + fresh * 2.0**fresh)
        prefixes = keep
    return SECONDS_PER_STEP * steps


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
    source: ClassVar[str] = "wang2021thesis, section 4.2.3"

    def lengths(self, target: SearchTarget, terms: Terms, options: Options) -> list[int]:
        bits, top = target.bits, target.top
        return prefix_lengths(bits, top, bits - _first(bits, top))


class TreeHistogram(_Prefixes):
    """Prefix extending by eight bits, one character, a group."""

    name: ClassVar[str] = "tree-hist"
    about: ClassVar[str] = "prefix extending by 8 bits a group"
    source: ClassVar[str] = "wang2021thesis, section 9.6.3"

    def lengths(self, target: SearchTarget, terms: Terms, options: Options) -> list[int]:
        return [*range(8, target.bits, 8), target.bits]
