"""Coded windows: every person tells a hash of one window of her value; all people's evidence counts
for every value.

The value is scrambled by a public permutation of its bits. The first window is its first 24 bits;
each later one is a hash of all bits before it beside the next few. A window's values are whispered
by local hashing on a linear hash, so that reports add up to one table of integers a window, decoded
by one transform; reports may then be forgotten. The search goes from window to window with the best
candidates, and ranks whole values by the evidence of everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.hashes import unpermuted
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import LocalHashing
from sottovoce.protocol.encodings import Ask, Window
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.questions.heavyhitters.method import Floats, HeavyHitterMethod
from sottovoce.questions.heavyhitters.sensitivity import deviation_of, expected_false, sensitivity
from sottovoce.results.findings import Findings

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
MOST_SHORT = 3_000_000  # short values that are tested one by one


def fresh_bits(bits: int, width: int | None = None) -> list[int]:
    """How many new bits each window of ``width`` bits tells: as many as fit first, then fewer and
    fewer.

    >>> fresh_bits(48), fresh_bits(64)
    ([24, 12, 12], [24, 16, 14, 10])
    """
    width = _width(bits) if width is None else min(bits, width)
    if bits == width:
        return [bits]
    rest = bits - width
    later = ceil(rest / (width * (ADDED if bits <= LONG else LONG_ADDED)))
    slopes = np.linspace(TAPER, -TAPER, later) * width if later > 2 else np.zeros(later)
    ends = np.round(np.cumsum(rest / later + slopes)).astype(int)
    return [width, *sorted(np.diff([0, *ends.tolist()]).tolist(), reverse=True)]


def _width(bits: int) -> int:
    return min(bits, WIDTH if bits <= LONG else LONG_WIDTH)


class Windows(HeavyHitterMethod):
    """Coded windows: one report each, integer tables that merge, everybody's evidence for every
    value found.
    """

    name: ClassVar[str] = "windows"
    about: ClassVar[str] = "coded windows, one report each, everybody's evidence for every value"
    options: ClassVar[tuple[str, ...]] = ("fresh", "width")

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        return {"fresh": self.fresh, "width": self.width}

    @property
    def width(self) -> int:
        """Bits of a window."""
        given = self.given.get("width")
        return (
            _width(self.target.bits)
            if given is None
            else whole("width", given, min(4, self.target.bits), WIDTH)
        )

    @property
    def fresh(self) -> list[int]:
        """The new bits of each window."""
        given = self.given.get("fresh")
        if given is None:
            return fresh_bits(self.target.bits, self.width)
        if not isinstance(given, list | tuple) or not given:
            raise InvalidInput("fresh must list the new bits of each window")
        told = [whole("fresh", each, 1, self.width) for each in given]
        if sum(told) != self.target.bits:
            raise InvalidInput(
                f"fresh ({', '.join(map(str, told))}) must add up to the value's "
                f"{self.target.bits} bits"
            )
        return told

    @property
    def windows(self) -> list[Window]:
        made, start = [], 0
        for fresh in self.fresh:
            tag = self.width - fresh if start else 0
            tagged = start if tag else 0
            made.append(
                Window(
                    self.target.name, self.target.bits, start, fresh, tag, tagged, scrambled=True
                )
            )
            start += fresh
        return made

    def cohorts(self, terms: Terms) -> Family:
        return Listed(
            [
                Cohort((Ask(each, oracle("olh", size=each.size, epsilon=terms.epsilon)),))
                for each in self.windows
            ]
        )

    def threshold(self, plan: Plan, chance: float = 0.5) -> float:
        # f sqrt(n) / sigma_1 >= Phi_bar^-1(k/2^m): the search is nearly as good as testing every
        # value
        deviation = deviation_of(self._oracle(plan))
        limit = sensitivity(
            deviation, self.target.attribute.spellings, plan.people, self.target.top
        )
        ndtri = imported("scipy.special").ndtri
        return limit + float(ndtri(chance)) * deviation / sqrt(plan.people)

    @staticmethod
    def _oracle(plan: Plan, index: int = 0) -> LocalHashing:
        source = plan.cohorts[index].asks[0].oracle
        assert isinstance(source, LocalHashing)
        return source

    def explain(self, plan: Plan) -> list[str]:
        told = ", ".join(map(str, self.fresh))
        return [
            f"Windows of {told} new bits; the reports add up to integer tables and may be forgotten"
        ]

    def find(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        from sottovoce.questions.heavyhitters.beam import evidence, peel

        tables = self._tables(aggregate)
        target = self.target
        sources = self._sources(tables, candidates)
        found = sources[0][1]
        tested = np.full(len(found.words), float(sources[0][0]))
        for count, listed in sources[1:]:
            # a value that stands on a list is likelier than one that was just found
            found = listed.joined(found)
            tested = np.concatenate([np.full(len(listed.words), float(count)), tested])
        rows = found.firsts
        # the chance is shared out equally among the lists, and within a list among its values
        prior = log(target.top) - 1 - np.log(tested * len(sources))
        found, tested, prior = found[rows], tested[rows], prior[rows]
        rows, totals = peel(tables, found, 64 + 2 * target.top, prior)
        order = _by_odds(totals, evidence(totals, tables.total, tables.buckets) + prior[rows])[
            : target.top
        ]
        rows, totals = rows[order], totals[order]
        numbers = [
            unpermuted(high << 64 | low, target.bits) for high, low in found.words[rows].tolist()
        ]
        return self._findings(
            tables, self._oracle(aggregate.plan), numbers, totals, tested[rows] * len(sources)
        )

    def _sources(
        self, tables: Tables, candidates: Sequence[Any] | None
    ) -> list[tuple[int, Candidates]]:
        """What may be popular, and among how many it stands: whatever can be spelled, what is
        short, what is listed.
        """
        from sottovoce.kernels.spelling import permute_words, to_words
        from sottovoce.questions.heavyhitters.beam import LAST_KEPT, search

        target = self.target
        limit = log(target.attribute.spellings) - log(target.top)
        found = search(tables, target.top, limit)
        sources = [(target.attribute.spellings, self._spelled(found))]
        most = max(LAST_KEPT, 8 * target.top)  # of a list that may come into the answer
        short = target.attribute.short_spellings(MOST_SHORT)
        if len(short) > 1:
            sources.append((len(short), tables.best_of(permute_words(short, target.bits), most)))
        if candidates is not None:
            listed = self._listed(candidates)
            words = permute_words(to_words(listed), target.bits)
            sources.append((len(listed), tables.best_of(words, most)))
        return sources

    def _tables(self, aggregate: Aggregate) -> Tables:
        from sottovoce.questions.heavyhitters.beam import Tables

        places = range(len(aggregate.plan.cohorts))
        people = [aggregate.cohort_people(place) for place in places]
        if 0 in people:
            silent = people.index(0) + 1
            raise InvalidInput(
                f"aggregate: nobody of window {silent} was heard yet; more people are needed"
            )
        oracles = [self._oracle(aggregate.plan, place) for place in places]
        return Tables(self.windows, oracles, [aggregate.state(place) for place in places], people)

    def _spelled(self, found: Candidates) -> Candidates:
        """Candidates that are a value's spelling."""
        bits, attribute = self.target.bits, self.target.attribute
        numbers = [unpermuted(high << 64 | low, bits) for high, low in found.words.tolist()]
        return found[
            [place for place, number in enumerate(numbers) if attribute.spelled(number) is not None]
        ]

    def _listed(self, candidates: Sequence[Any]) -> list[int]:
        try:
            listed = list(dict.fromkeys(candidates))
        except TypeError:
            raise InvalidInput("candidates must be a list of single values") from None
        if not 1 <= len(listed) <= MAX_WINDOW_CANDIDATES:
            raise InvalidInput(
                f"candidates ({len(listed)}) must be 1 to {MAX_WINDOW_CANDIDATES} different values"
            )
        try:
            return [self.target.attribute.spell(value) for value in listed]
        except (ValueError, TypeError, KeyError):
            raise InvalidInput(f"candidates: {self.target.attribute.rule}") from None

    def _findings(
        self,
        tables: Tables,
        source: LocalHashing,
        numbers: list[int],
        totals: Floats,
        tested: Floats,
    ) -> Findings:
        people = tables.total
        # E[score] = n f (2^b p - 1), and 2^b q = 1
        frequencies = totals / (people * (source.buckets * source.p - 1))
        variances = source.noise(people).variance(np.clip(frequencies, 0, 1))
        chances = expected_false(tested, totals, people, tables.buckets)
        return self.findings(
            numbers, frequencies, variances, chances, people, source.noise(people).floor
        )


def _by_odds(totals: Floats, odds: Floats) -> Any:
    """The order of an answer: the likely ones by their counts, then the others by how likely they
    are.
    """
    return np.lexsort((-np.where(odds > 0, totals, odds), odds <= 0))
