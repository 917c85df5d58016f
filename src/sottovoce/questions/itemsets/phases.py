"""Two phases: candidates are found first, then counted; rounds that tell sizes say to which length
sets are padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE, oracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Held
from sottovoce.protocol.encodings.sets import Candidates
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.itemsets import readings
from sottovoce.questions.itemsets.combining import combined
from sottovoce.questions.itemsets.guesses import guessed_sets
from sottovoce.questions.itemsets.known import Known
from sottovoce.questions.itemsets.lengths import (
    counting_factor,
    counting_length,
    finding_length,
)
from sottovoce.questions.itemsets.method import (
    MAX_ITEM_CANDIDATES,
    ItemMethod,
    checked_oracle,
    shortfall,
)
from sottovoce.questions.itemsets.padding import PLAIN, best_oracle, padded_ask
from sottovoce.questions.itemsets.readings import Reading
from sottovoce.questions.itemsets.size_law import SizeLaw
from sottovoce.questions.itemsets.sizes import Sizes
from sottovoce.questions.itemsets.target import (
    BEST,
    CANDIDATES,
    COUNT,
    FIND,
    FROM_SIZES,
    PERCENTILE,
    SIZES,
    ItemTarget,
    RoundStep,
)
from sottovoce.questions.method import BUDGET, NO_OPTIONS, PEOPLE, SPLITS, Options, RoundResult
from sottovoce.results.findings import SIGNIFICANT

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_SIZES = 32  # that are told apart to choose a length by predicted error
LEAST_SIZES = 64  # that are told apart when whole sets are counted
SET_PART = 1 / 3  # of the frequencies of items, as a guess of those of sets of them

# Shares of people in percent, by the rounds of the items' part   wang2021thesis, section 5.4.2
ROUND_SHARES = {
    (SIZES, FIND, COUNT): (10, 40, 50),
    (FIND, COUNT): (50, 50),
    (FIND, SIZES, COUNT): (50, 10, 40),
    (SIZES, FIND, SIZES, COUNT): (5, 60, 5, 30),
    (SIZES, COUNT): (10, 90),
    (COUNT,): (100,),
}
NO_SIZES = "No size of sets rose above the noise: they were taken to hold one candidate at most."
NO_SETS = "Too few items were found to build sets of them."


class TwoPhases(ItemMethod):
    """Candidates are found, then counted; of itemsets, items first and then sets of them.

    An option that names a phase has the phase's oracle, or the length to which sets are padded in
    it: a number, or what follows from the sizes heard. With ``split="budget"`` everybody answers
    both phases, each with half of epsilon.
    """

    first_oracle: ClassVar[str]
    first_length: ClassVar[int | str]
    second_oracle: ClassVar[str]
    second_length: ClassVar[int | str]
    update: ClassVar[bool]  # whether counts are corrected by the sizes heard
    combine: ClassVar[bool] = False  # whether both phases' evidence is used
    sizes_oracle: ClassVar[str] = "olh"
    options: ClassVar[tuple[str, ...]] = (
        "split",
        "sizes_oracle",
        "combine",
        "first_oracle",
        "first_length",
        "second_oracle",
        "second_length",
        "update",
        "candidates",
        "shares",
    )

    # -- settling

    def settle(
        self, target: ItemTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        settled = {
            "split": PEOPLE,
            "sizes_oracle": self.sizes_oracle,
            "combine": self.combine,
            "first_oracle": self.first_oracle,
            "first_length": self.first_length,
            "second_oracle": self.second_oracle,
            "second_length": self.second_length,
            "update": self.update,
            "candidates": 2 * min(target.top, target.items),
            "shares": None,
            **options,
        }
        _check_words(settled)
        settled["first_oracle"] = checked_oracle("first_oracle", settled)
        settled["second_oracle"] = checked_oracle("second_oracle", settled)
        settled["first_length"] = _length("first_length", settled, FROM_SIZES)
        settled["second_length"] = _length("second_length", settled, (*FROM_SIZES, CANDIDATES))
        asks_sizes = {settled["first_length"], settled["second_length"]} & set(FROM_SIZES)
        if settled["split"] == BUDGET and (target.sets or asks_sizes):
            raise InvalidInput(
                "split (budget) has two phases for items: first_length and second_length must be "
                "given"
            )
        settled["candidates"] = whole("candidates", settled["candidates"], 1, MAX_ITEM_CANDIDATES)
        settled["shares"] = _shares(settled["shares"], _names(target, settled), target.sets)
        return settled

    # -- asking

    def steps(self, target: ItemTarget, options: Options) -> tuple[RoundStep, ...]:
        pairs = zip(_names(target, options), options["shares"], strict=True)
        return tuple(RoundStep(name, share) for name, share in pairs)

    def rounds(self, target: ItemTarget, options: Options) -> tuple[int, ...]:
        if options["split"] == BUDGET:
            return (1,)  # everybody answers every plan
        return super().rounds(target, options)

    def explain_rounds(self, steps: Sequence[RoundStep], plan: Plan, options: Options) -> list[str]:
        if options["split"] == BUDGET:
            return [
                f"Phases: two plans of half of epsilon; everybody answers both, at {plan.epsilon} "
                "in all"
            ]
        return super().explain_rounds(steps, plan, options)

    def ask(self, target: ItemTarget, epsilon: Decimal, options: Options) -> Ask:
        step = self.step(target, options)
        if options["split"] == BUDGET:
            epsilon = shared(epsilon, 2)
        if step.name == SIZES:
            return self._ask_sizes(target, epsilon, options)
        phase = "first" if step.name == FIND else "second"
        name = options[f"{phase}_oracle"]
        length = options[f"{phase}_length"]
        if length in FROM_SIZES:
            length = target.known.length
        elif length == CANDIDATES:
            length = target.candidates
        if name == BEST:
            name, _ = best_oracle(target.candidates, length, epsilon)
        candidates = target.known.candidates
        return padded_ask(target.name, target.items, candidates, length, name, epsilon)

    def _ask_sizes(self, target: ItemTarget, epsilon: Decimal, options: Options) -> Ask:
        """How many candidates a set holds, up to the most that the next round can use."""
        later = self._next(target, options)
        if later is not None and _wanted_length(later, options) == BEST:
            most = MOST_SIZES
        else:
            most = max(options["candidates"], LEAST_SIZES)
        candidates = target.known.candidates
        most = min(target.candidates, most)
        held = Held(target.name, target.items, candidates, most)
        source = oracle(options["sizes_oracle"], size=held.size, epsilon=epsilon)
        return Ask(held, source)

    def _next(self, target: ItemTarget, options: Options) -> RoundStep | None:
        """The round after the target's, if there is one."""
        later = self.steps(target, options)[target.round + 1 :]
        return later[0] if later else None

    # -- what a round says

    def estimate(self, target: ItemTarget, aggregate: Aggregate, options: Options) -> RoundResult:
        step = self.step(target, options)
        if step.name == SIZES:
            return self._sizes(target, aggregate, options)
        if step.name == FIND:
            return self._found(target, aggregate, options)
        return self._counted(target, aggregate, options)

    def _sizes(self, target: ItemTarget, aggregate: Aggregate, options: Options) -> RoundResult:
        """Sizes were told: they give the next round its length."""
        sizes = readings.read_sizes(aggregate)
        later = self._next(target, options)
        assert later is not None  # a count always comes after sizes
        known = _after_sizes(target, sizes, later, aggregate.plan, options)
        found = readings.sizes_found(target.name, sizes, aggregate, known.notes)
        return RoundResult(found, known)

    def _found(self, target: ItemTarget, aggregate: Aggregate, options: Options) -> RoundResult:
        """Items were told: the most frequent are the candidates of all later rounds."""
        before = target.known
        best = readings.read_frequencies(aggregate).best(options["candidates"])
        known = Known(tuple(sorted(best.candidates)), notes=before.notes)
        if options["combine"]:
            known = replace(known, heard=best.heard(), factor=_first_factor(before))
        return RoundResult(self.findings(target, aggregate, best, known.notes), known)

    def _counted(self, target: ItemTarget, aggregate: Aggregate, options: Options) -> RoundResult:
        """Candidates were counted: that is the answer, or the items of which sets are made."""
        known = target.known
        is_last = self._next(target, options) is None
        reading = readings.read_frequencies(aggregate, counting_factor(known, options))
        if known.factor is not None:
            reading = combined(reading, known.heard, known.factor, target.items)
        elif is_last:
            reading = reading.with_heard(known.heard)
        best = reading.best(target.top)
        if is_last:
            notes = (*known.notes, *shortfall(target, best))
            return RoundResult(self.findings(target, aggregate, best, notes))
        guessed = _guessed(target, best, options["candidates"])
        if not guessed:
            notes = (*known.notes, NO_SETS)
            return RoundResult(self.findings(target, aggregate, best, notes))
        found = self.findings(target, aggregate, best, known.notes)
        return RoundResult(found, Known(guessed, heard=best.heard(), notes=known.notes))


# -- settings


def _check_words(settled: Options) -> None:
    """Refuse words that an option does not know."""
    if settled["split"] not in SPLITS:
        raise InvalidInput(f"split ({settled['split']}) must be one of {', '.join(SPLITS)}")
    name, known = settled["sizes_oracle"], ("adaptive", "grr", *PLAIN)
    if name not in known:
        raise InvalidInput(f"sizes_oracle ({name}) must be one of {', '.join(known)}")
    for option in ("update", "combine"):
        if not isinstance(settled[option], bool):
            raise InvalidInput(f"{option} ({settled[option]}) must be true or false")


def _length(option: str, settled: Options, words: Sequence[str]) -> int | str:
    """A length: one of the words that say where it comes from, or a number."""
    length = settled[option]
    if length in words:
        return str(length)
    return whole(option, length, 1, MAX_ITEM_CANDIDATES)


def _names(target: ItemTarget, options: Options) -> tuple[str, ...]:
    """What the rounds are for, in order."""
    finds: tuple[str, ...] = (FIND,)
    if options["first_length"] in FROM_SIZES:
        finds = (SIZES, FIND)
    if target.items <= options["candidates"]:
        finds = ()  # every item is a candidate, and none need be found
    counts: tuple[str, ...] = (COUNT,)
    if options["second_length"] in FROM_SIZES:
        counts = (SIZES, COUNT)
    sets = counts if target.sets else ()
    return (*finds, *counts, *sets)


def _shares(given: Any, names: tuple[str, ...], of_sets: bool) -> list[int]:
    """The shares of people of the rounds."""
    if given is not None:
        if not isinstance(given, list | tuple) or len(given) != len(names):
            raise InvalidInput(
                f"shares must be {len(names)} whole numbers, for the rounds: {', '.join(names)}"
            )
        return [whole("shares", share, 1, 1 << 20) for share in given]
    if not of_sets:
        return list(ROUND_SHARES[names])
    # half of the people find items; sizes of sets 10% and their counts 40% of all
    #     wang2021thesis, section 5.4.3
    later = (20, 80) if names[-2:] == (SIZES, COUNT) else (100,)
    return [*ROUND_SHARES[names[: -len(later)]], *later]


# -- from round to round


def _wanted_length(later: RoundStep, options: Options) -> Any:
    """What the round after a round of sizes takes for its length."""
    return options["first_length" if later.name == FIND else "second_length"]


def _after_sizes(
    target: ItemTarget, sizes: Sizes, later: RoundStep, plan: Plan, options: Options
) -> Known:
    """What is known once sizes were told: the sizes that count, and the next round's length."""
    known = replace(target.known, sizes=sizes)
    if _wanted_length(later, options) == PERCENTILE:
        kept = sizes.filtered()
        notes = known.notes if kept.is_known else (*known.notes, NO_SIZES)
        return replace(known, length=kept.percentile(), notes=notes)
    if later.name == FIND:
        # where items are sought a long tail matters
        length = finding_length(sizes.projected(), target.candidates, plan.epsilon)
        return replace(known, length=length)
    law = SizeLaw.of(sizes)
    people = max(1, plan.people * later.share // sum(plan.series.shares))
    square = _typical_square(target, law)
    length = counting_length(law, target.candidates, plan.terms.among(people), square)
    return replace(known, length=length)


def _typical_square(target: ItemTarget, law: SizeLaw) -> float:
    """The mean square of the frequencies to be counted, as far as it is known.

    Of what was heard before only what noise does not explain counts: the largest of noise are
    large. If nothing was heard, everything is taken to be as frequent.
    """
    known = target.known
    if not known.heard:
        return (law.held / target.candidates) ** 2
    largest = sorted(known.heard, key=lambda item: -item.frequency)[: target.top]
    squares = [item.frequency**2 if item.chance <= SIGNIFICANT else 0.0 for item in largest]
    part = known.factor or SET_PART  # frequencies of sets are guessed from those of items
    return float(np.mean(squares)) * part**2


def _first_factor(known: Known) -> float:
    """What a first round's frequencies must be multiplied by, as far as sizes tell."""
    if known.sizes is None:
        return 1.0
    return SizeLaw.of(known.sizes).own_factor(known.length or 1).value


def _guessed(target: ItemTarget, singles: Reading, wanted: int) -> Candidates:
    """The sets of these items that are likely frequent."""
    items = [candidate[0] for candidate in singles.candidates]
    frequencies = dict(zip(items, singles.values.tolist(), strict=True))
    return guessed_sets(frequencies, target.top, wanted)


# -- the methods


class LdpMiner(TwoPhases):
    """Candidates by binary hashing, then counts by unary encoding, padded to all candidates."""

    name: ClassVar[str] = "ldpminer"
    about: ClassVar[str] = "candidates, then counts padded to their number"
    source: ClassVar[str] = "wang2021thesis, sections 5.1.1 and 5.4"
    first_oracle: ClassVar[str] = "blh"
    first_length: ClassVar[int | str] = PERCENTILE
    second_oracle: ClassVar[str] = "sue"
    second_length: ClassVar[int | str] = CANDIDATES
    update: ClassVar[bool] = False


class Svim(TwoPhases):
    """One item each finds candidates; sizes among them say to which length counts are padded."""

    name: ClassVar[str] = "svim"
    about: ClassVar[str] = "candidates, sizes, then counts padded to the 90th percentile"
    source: ClassVar[str] = "wang2021thesis, section 5.3.1"
    for_sets: ClassVar[bool] = False
    first_oracle: ClassVar[str] = ADAPTIVE
    first_length: ClassVar[int | str] = 1
    second_oracle: ClassVar[str] = ADAPTIVE
    second_length: ClassVar[int | str] = PERCENTILE
    update: ClassVar[bool] = True


class Wheel(TwoPhases):
    """Whole sets through one hash, lengths by predicted error, and both rounds' evidence."""

    name: ClassVar[str] = "wheel"
    about: ClassVar[str] = (
        "whole sets through one hash, lengths by predicted error, both rounds' evidence"
    )
    source: ClassVar[str] = "wang2020set"
    first_oracle: ClassVar[str] = BEST
    first_length: ClassVar[int | str] = BEST
    second_oracle: ClassVar[str] = BEST
    second_length: ClassVar[int | str] = BEST
    update: ClassVar[bool] = True
    combine: ClassVar[bool] = True
    sizes_oracle: ClassVar[str] = "adaptive"


class Svsm(Svim):
    """Items as svim finds them, then the sets of them that are likely frequent."""

    name: ClassVar[str] = "svsm"
    about: ClassVar[str] = "items as by svim, then sets of them by guessed frequency"
    source: ClassVar[str] = "wang2021thesis, section 5.3.2"
    for_items: ClassVar[bool] = False
    for_sets: ClassVar[bool] = True
