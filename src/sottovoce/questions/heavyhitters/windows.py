"""Coded windows: every person tells a hash of one window of her value; all people's evidence counts
for every value.

The value is scrambled by a public permutation of its bits. The first window is its first 24 bits;
each later one is a hash of all bits before it beside the next few. A window's values are whispered
by local hashing on a linear hash, so that reports add up to one table of integers a window, decoded
by one transform; reports may then be forgotten. The search goes from window to window with the best
candidates, and ranks whole values by the evidence of everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from math import ceil, log
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import unpermuted
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import LocalHashing
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
)
from sottovoce.questions.heavyhitters.passing import Passage
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.questions.selection import least_passing
from sottovoce.schema import Schema, Text

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.questions.heavyhitters.beam import Candidates, Tables

WIDTH = 24  # bits of a window: a table of 2^24 integers
ADDED = 0.56  # of its bits that a later window adds, on average, at most; the others are a tag
# bits of a value from which there would be so many windows that narrower ones are as good, and
# cheaper
LONG = 72
LONG_WIDTH, LONG_ADDED = 22, 0.5
# of a window's bits: by how much the first later window adds more than the average, the last less
TAPER = 0.125
MAX_WINDOW_CANDIDATES = 1 << 24
LOST_FOR_FOUND = 4  # popular values for each that is likely, if so many are wanted: others are lost
MOST_SHORT = 3_000_000  # short values that are tested one by one

Integers = NDArray[np.int64]


def fresh_bits(bits: int, width: int | None = None) -> list[int]:
    """How many new bits each window of ``width`` bits tells: as many as fit first, then fewer and
    fewer.

    >>> fresh_bits(48), fresh_bits(64)
    ([24, 12, 12], [24, 16, 14, 10])
    """
    width = _usual_width(bits) if width is None else min(bits, width)
    if bits == width:
        return [bits]
    rest = bits - width  # that the later windows share out
    most_added = width * (ADDED if bits <= LONG else LONG_ADDED)
    later = ceil(rest / most_added)
    slopes = np.zeros(later)  # by how much each adds more than the average
    if later > 2:
        slopes = np.linspace(TAPER, -TAPER, later) * width
    ends = np.cumsum(rest / later + slopes)  # (later,)
    whole_ends = np.round(ends).astype(int).tolist()
    added: list[int] = np.diff([0, *whole_ends]).tolist()
    return [width, *sorted(added, reverse=True)]


def _usual_width(bits: int) -> int:
    return min(bits, WIDTH if bits <= LONG else LONG_WIDTH)


@dataclass(frozen=True)
class WindowDesign:
    """How a value is cut into windows of ``width`` bits, of which ``fresh`` are new."""

    target: SearchTarget
    width: int
    fresh: tuple[int, ...]

    @classmethod
    def of(cls, target: SearchTarget, options: Options) -> Self:
        """The design that options describe; what they leave out follows from the bits."""
        bits, fresh = target.bits, options.get("fresh")
        width = whole("width", options.get("width", _usual_width(bits)), min(4, bits), WIDTH)
        if fresh is None:
            return cls(target, width, tuple(fresh_bits(bits, width)))
        if not isinstance(fresh, list | tuple) or not fresh:
            raise InvalidInput("fresh must list the new bits of each window")
        checked = tuple(whole("fresh", count, 1, width) for count in fresh)
        if sum(checked) != bits:
            raise InvalidInput(
                f"fresh ({', '.join(map(str, checked))}) must add up to the value's {bits} bits"
            )
        return cls(target, width, checked)

    @cached_property
    def windows(self) -> list[Window]:
        """The windows: all but the first begin with a tag, a hash of the bits before them."""
        name, bits = self.target.name, self.target.bits
        windows, start = [], 0
        for fresh in self.fresh:
            tag = self.width - fresh if start else 0
            tagged = start if tag else 0
            windows.append(Window(name, bits, start, fresh, tag, tagged, scrambled=True))
            start += fresh
        return windows

    def asks(self, epsilon: Decimal) -> list[Ask]:
        """One ask for each window."""
        asks = []
        for window in self.windows:
            source = oracle("olh", size=window.size, epsilon=epsilon)
            asks.append(Ask(window, source))
        return asks


class Windows(HeavyHitterMethod):
    """Coded windows: one report each, integer tables that merge, everybody's evidence for every
    value found.
    """

    name: ClassVar[str] = "windows"
    about: ClassVar[str] = "coded windows, one report each, everybody's evidence for every value"
    source: ClassVar[str] = "ours"
    options: ClassVar[tuple[str, ...]] = ("fresh", "width")
    takes_candidates: ClassVar[bool] = True

    def settle(
        self, target: SearchTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        design = WindowDesign.of(target, options)
        return {"fresh": list(design.fresh), "width": design.width}

    def cohorts(
        self, schema: Schema, target: SearchTarget, epsilon: Decimal, options: Options
    ) -> Family:
        asks = WindowDesign.of(target, options).asks(epsilon)
        return Listed([Cohort((ask,)) for ask in asks])

    def threshold(
        self, target: SearchTarget, terms: Terms, options: Options, chance: float
    ) -> float:
        from sottovoce.questions.heavyhitters.beam import kept_counts

        design = WindowDesign.of(target, options)
        source = oracle_of(design.asks(terms.epsilon)[0], LocalHashing)
        count = len(design.fresh)
        people = [max(terms.people // count, 1)] * count
        passage = Passage(
            design.fresh, people, source.buckets, kept_counts(count, target.top), design.width
        )
        noise = source.noise(1)
        gain = source.buckets * source.p - 1
        tested = float(target.attribute.spellings * _lists(target))
        slope = max(noise.slope / noise.floor, 0.0)
        return passage.threshold(tested, target.top, gain, slope, chance)

    def explain(self, target: SearchTarget, plan: Plan, options: Options) -> list[str]:
        bits = ", ".join(map(str, WindowDesign.of(target, options).fresh))
        return [
            f"Windows of {bits} new bits; the reports add up to integer tables and may be forgotten"
        ]

    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        from sottovoce.questions.heavyhitters.beam import peel

        tables = window_tables(WindowDesign.of(target, options), aggregate)
        sources = _sources(target, tables, candidates)
        pool = _pooled(target, sources)
        # more than are wanted, since what shares cells with others looks stronger than it is
        count = 64 + 2 * target.top
        rows, scores = peel(tables, pool.candidates, count, pool.prior)
        chosen = pool[rows].with_scores(scores)
        order, limits = _answered(target, tables, chosen)
        ranked = _ranked(target, tables, chosen[order], limits)
        found = ranked.findings(target, self.name, tables.total)
        return RoundResult(found)


def window_tables(design: WindowDesign, aggregate: Aggregate) -> Tables:
    """What the crowd said of each window; refused while nobody was heard of one."""
    from sottovoce.questions.heavyhitters.beam import Tables

    cohorts = aggregate.plan.cohorts
    people = [aggregate.cohort_people(number) for number in range(len(cohorts))]
    if 0 in people:
        raise InvalidInput(
            f"aggregate: nobody of window {people.index(0) + 1} was heard yet; more people are "
            "needed"
        )
    oracles = [oracle_of(cohort.asks[0], LocalHashing) for cohort in cohorts]
    states = [aggregate.state(number) for number in range(len(cohorts))]
    return Tables(design.windows, oracles, states, people)


# -- where candidates come from


@dataclass(frozen=True, eq=False)
class CandidateSource:
    """Candidates, and among how many values they were looked for."""

    tested: int
    candidates: Candidates


def _sources(
    target: SearchTarget, tables: Tables, candidates: Sequence[Any] | None
) -> list[CandidateSource]:
    """What may be popular: whatever can be spelled, what is short, what is listed."""
    from sottovoce.kernels.spelling import permute_words, to_words
    from sottovoce.questions.heavyhitters.beam import LAST_KEPT, search

    attribute = target.attribute
    limit = log(attribute.spellings) - log(target.top)
    found = search(tables, target.top, limit)
    sources = [CandidateSource(attribute.spellings, _spelled(target, found))]
    most = max(LAST_KEPT, 8 * target.top)  # of a list that may come into the answer
    short = attribute.short_spellings(MOST_SHORT)
    if len(short) > 1:
        words = permute_words(short, target.bits)
        best = tables.best_of(words, most)
        sources.append(CandidateSource(len(short), best))
    if candidates is not None:
        listed = _listed(target, candidates)
        words = permute_words(to_words(listed), target.bits)
        best = tables.best_of(words, most)
        sources.append(CandidateSource(len(listed), best))
    return sources


def _lists(target: SearchTarget) -> int:
    """How many lists share the chance that a value is popular: all that is spelled, and what is
    short.
    """
    return 2 if isinstance(target.attribute, Text) else 1


def _numbers(target: SearchTarget, candidates: Candidates) -> list[int]:
    """The spellings of candidates: their words, unscrambled."""
    numbers = [high << 64 | low for high, low in candidates.words.tolist()]
    return [unpermuted(number, target.bits) for number in numbers]


def _spelled(target: SearchTarget, found: Candidates) -> Candidates:
    """Candidates that are a value's spelling."""
    numbers = _numbers(target, found)
    spelled = target.attribute.spelled
    rows = [row for row, number in enumerate(numbers) if spelled(number) is not None]
    return found[rows]


def _listed(target: SearchTarget, candidates: Sequence[Any]) -> list[int]:
    """The spellings of a list of values, each once."""
    try:
        listed = list(dict.fromkeys(candidates))
    except TypeError:
        raise InvalidInput("candidates must be a list of single values") from None
    if not 1 <= len(listed) <= MAX_WINDOW_CANDIDATES:
        raise InvalidInput(
            f"candidates ({len(listed)}) must be 1 to {MAX_WINDOW_CANDIDATES} different values"
        )
    try:
        return [target.attribute.spell(value) for value in listed]
    except (ValueError, TypeError, KeyError):
        raise InvalidInput(f"candidates: {target.attribute.rule}") from None


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """The candidates of all sources, each value once."""

    candidates: Candidates
    prior: Floats  # (candidates,): nats beside the evidence
    tested: Floats  # (candidates,): how many values had the chance that this one had
    is_listed: NDArray[np.bool_]  # (candidates,): tested one by one, not searched for

    def __getitem__(self, rows: Any) -> CandidatePool:
        return CandidatePool(
            self.candidates[rows], self.prior[rows], self.tested[rows], self.is_listed[rows]
        )

    def with_scores(self, scores: Floats) -> CandidatePool:
        """The same candidates with other scores, (candidates, windows)."""
        return replace(self, candidates=replace(self.candidates, scores=scores))

    def odds(self, totals: Floats, tables: Tables) -> Floats:
        """How likely each is to be popular with these ``totals``, in nats, (candidates,)."""
        from sottovoce.questions.heavyhitters.beam import evidence

        return evidence(totals, tables.total, tables.buckets) + self.prior


def _pooled(target: SearchTarget, sources: Sequence[CandidateSource]) -> CandidatePool:
    pool = sources[0].candidates
    tested = np.full(len(pool.words), float(sources[0].tested))
    is_listed = np.zeros(len(pool.words), bool)
    for source in sources[1:]:
        # a value that stands on a list is likelier than one that was just found: it comes first
        pool = source.candidates.joined(pool)
        own = np.full(len(source.candidates.words), float(source.tested))
        tested = np.concatenate([own, tested])
        is_listed = np.concatenate([np.ones(len(own), bool), is_listed])
    # the chance is shared out equally among the lists, and within a list among its values:
    # log(k / (lists d)) - 1
    tested = tested * len(sources)
    prior = log(target.top) - 1 - np.log(tested)
    rows = pool.firsts
    return CandidatePool(pool[rows], prior[rows], tested[rows], is_listed[rows])


# -- the answer


def _by_odds(totals: Floats, odds: Floats) -> Integers:
    """The order of an answer: the likely ones by their counts, then the others by how likely they
    are.
    """
    is_unlikely = odds <= 0
    strength = np.where(is_unlikely, odds, totals)
    order: Integers = np.lexsort((-strength, is_unlikely))  # by the last key first
    return order


def _answered(
    target: SearchTarget, tables: Tables, chosen: CandidatePool
) -> tuple[Integers, Floats]:
    """Which of the candidates are the answer, and the total from which each of them is in it.

    Returns:
        Rows of ``chosen`` and totals, (answers,) each.
    """
    totals = chosen.candidates.totals
    odds = chosen.odds(totals, tables)
    order = _by_odds(totals, odds)
    answer, left_out = order[: target.top], order[target.top :]
    limits = np.full(len(answer), -np.inf)
    if len(left_out):
        best = left_out[0]
        inside = chosen[answer]
        # an unlikely one must be likelier than the best that is left out; a likely one larger
        needed = min(float(odds[best]), 0.0)
        passes = partial(_is_likelier, inside, tables, needed)
        limits = least_passing(passes, np.zeros(len(answer)), totals[answer])
        if odds[best] > 0:
            limits = np.maximum(limits, totals[best])
    return answer, limits


def _is_likelier(
    pool: CandidatePool, tables: Tables, odds: float, totals: Floats
) -> NDArray[np.bool_]:
    """Whether candidates would have more than these odds with these totals."""
    return np.asarray(pool.odds(totals, tables) > odds)


def _ranked(target: SearchTarget, tables: Tables, answer: CandidatePool, limits: Floats) -> Ranked:
    """The values of an answer, with their estimates.

    Args:
        target: what is looked for.
        tables: what the crowd said.
        answer: the values, with their scores.
        limits: the total from which each is in the answer, given that the search came by it.
    """
    from sottovoce.questions.heavyhitters.beam import kept_counts

    source, people = tables.oracles[0], tables.total
    fresh = [window.fresh for window in tables.windows]
    counts = kept_counts(len(fresh), target.top)
    passage = Passage(fresh, tables.people, tables.buckets, counts, tables.oracles[0].width)
    scores, totals = answer.candidates.scores, answer.candidates.totals

    likely = int((answer.odds(totals, tables) > 0).sum())
    popular = min(LOST_FOR_FOUND * likely, target.top)  # that have ghosts

    def chances(sums: Floats) -> Floats:
        return passage.chances(passage.moved(scores, sums), answer.tested, popular)

    searched = passage.least_totals(scores, answer.tested)
    limits = np.where(answer.is_listed, limits, np.maximum(limits, searched))
    starred = starred_from(chances, totals, people * (tables.buckets - 1))
    # E[score] = n f (2^b p - 1), and 2^b q = 1
    gain = people * (source.buckets * source.p - 1)
    frequencies = totals / gain
    noise = source.noise(people)
    return Ranked(
        _numbers(target, answer.candidates),
        frequencies,
        noise.variance(np.clip(frequencies, 0, 1)),
        chances(totals),
        people,
        noise.floor,
        limits / gain,
        starred / gain,
    )
