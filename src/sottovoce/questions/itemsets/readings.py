"""What a round's answers say: candidates, sizes, or the frequencies of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.oracles import Noise, PureOracle
from sottovoce.protocol.encodings import Drawn, Held, Padded
from sottovoce.protocol.encodings.sets import Candidates
from sottovoce.questions.itemsets.associations import SetFindings
from sottovoce.questions.itemsets.choice import ChosenBy, expected_false, star_values
from sottovoce.questions.itemsets.known import ItemsHeard
from sottovoce.questions.itemsets.padding import counted
from sottovoce.questions.itemsets.size_law import OwnFactor
from sottovoce.questions.itemsets.sizes import Sizes
from sottovoce.questions.selection import ChosenSpread
from sottovoce.results.cells import CellLabel
from sottovoce.results.estimate import Table
from sottovoce.results.findings import SIGNIFICANT, Findings

Floats = NDArray[np.float64]
# repairs of what people were cut off at a length: none, or a factor
LENGTH_LIMIT, UPDATE_FACTOR = "length-limit", "update-factor"
CUT_REMARK = (
    "sets were cut at a length: frequencies are lower bounds, and their intervals have no upper end"
)
CHOSEN_ERRORS = "closed form, given that they were chosen for being large"


@dataclass(frozen=True, eq=False)
class Reading:
    """The frequencies of candidates that a round heard."""

    candidates: Candidates
    values: Floats  # (candidates,)
    variances: Floats  # (candidates,)
    chance: Floats  # (candidates,): how many that nobody holds look as frequent
    noise: Noise
    # people, and the chance that one of them supports a candidate she does not hold
    support: tuple[int, float]
    is_unbiased: bool
    repair: str | None  # what was done to the values
    choice: ChosenBy
    is_cut: bool  # sets were cut at a length, and nothing corrects for it
    above: float = -inf  # the largest value that was left out

    def best(self, count: int) -> Reading:
        """The most frequent ones, in order."""
        ranked = np.argsort(-self.values, kind="stable")
        order, left = ranked[:count], ranked[count:]
        candidates = tuple(self.candidates[row] for row in order)
        return replace(
            self,
            candidates=candidates,
            values=self.values[order],
            variances=self.variances[order],
            chance=self.chance[order],
            choice=self.choice.at(order),
            above=float(self.values[left[0]]) if len(left) else -inf,
        )

    def heard(self) -> tuple[ItemsHeard, ...]:
        """As a later plan holds them."""
        choice = self.choice
        estimate = (self.values, self.variances, self.chance)
        numbers = np.column_stack([*estimate, *choice.parts]).tolist()
        pairs = zip(self.candidates, numbers, strict=True)
        return tuple(ItemsHeard(candidate, *row) for candidate, row in pairs)

    def with_heard(self, heard: Sequence[ItemsHeard]) -> Reading:
        """Together with what was heard of other candidates before."""
        candidates = [item.candidate for item in heard]
        values = [item.frequency for item in heard]
        variances = [item.variance for item in heard]
        chance = [item.chance for item in heard]
        return replace(
            self,
            candidates=(*self.candidates, *candidates),
            values=np.concatenate([self.values, values]),
            variances=np.concatenate([self.variances, variances]),
            chance=np.concatenate([self.chance, chance]),
            choice=self.choice.beside(ChosenBy.heard(heard)),
        )


def read_frequencies(aggregate: Aggregate, own: OwnFactor | None = None) -> Reading:
    """The frequency of every candidate of a padded ask, multiplied by its update factor if that is
    given.
    """
    people = aggregate.cohort_people(0)
    ask = aggregate.plan.cohorts[0].asks[0]
    encoding, source = ask.encoding, ask.oracle
    assert isinstance(encoding, Padded | Drawn)
    assert isinstance(source, PureOracle)
    is_whole = encoding.length >= encoding.count  # nothing that a set holds is left out
    factor = OwnFactor(1.0, 0.0) if own is None or is_whole else own
    codes = np.arange(encoding.count, dtype=np.uint64)  # (candidates,)
    support = aggregate.support(0, 0, codes)
    told = counted(ask, support, people, factor)
    variances = told.variances + sampling_variances(told.values, factor.value, aggregate)
    floors = np.full(encoding.count, told.noise.floor)
    chance = expected_false(told.values, floors, encoding.count, people, source.q)
    stars = np.full(encoding.count, star_values(floors[:1], encoding.count, people, source.q))
    candidates = encoding.candidates
    if candidates is None:
        candidates = tuple((item,) for item in range(encoding.items))
    repair = None
    if not is_whole:
        repair = LENGTH_LIMIT if own is None else UPDATE_FACTOR
    return Reading(
        candidates,
        told.values,
        variances,
        chance,
        told.noise,
        (people, source.q),
        is_whole,
        repair,
        ChosenBy.once(stars, floors, told.doubt),
        is_cut=repair == LENGTH_LIMIT,
    )


def sampling_variances(values: Floats, factor: float, aggregate: Aggregate) -> Floats:
    """What frequencies vary by because draws decide who is asked, and what of a set is told."""
    shares, number = aggregate.plan.series.shares, aggregate.plan.series.number
    asked = shares[number] / sum(shares)
    frequencies = np.clip(values, 0, 1)
    # f (1 - f) / n for n people drawn, less what is left to draw
    of_people = frequencies * (1 - frequencies) * (1 - asked)
    # u^2 (f/u)(1 - 1/u) / n, if a holder tells it with chance 1/u
    of_parts = frequencies * max(factor - 1, 0.0)
    return (of_people + of_parts) / aggregate.cohort_people(0)


def read_sizes(aggregate: Aggregate) -> Sizes:
    """The law of sizes as heard, unfiltered."""
    ask = aggregate.plan.cohorts[0].asks[0]
    assert isinstance(ask.encoding, Held)
    assert isinstance(ask.oracle, PureOracle)
    shares, _ = aggregate.frequencies(0)
    noise = ask.oracle.noise(aggregate.cohort_people(0))
    return Sizes(shares, noise.floor)


def sizes_found(
    attribute: str, sizes: Sizes, aggregate: Aggregate, notes: Sequence[str]
) -> Findings:
    """The law of sizes as findings: how many candidates people hold."""
    source = aggregate.plan.cohorts[0].asks[0].oracle
    assert isinstance(source, PureOracle)
    people, method = aggregate.people, aggregate.plan.asked["method"]
    order = np.argsort(-sizes.shares, kind="stable")  # (sizes,)
    labels: list[CellLabel] = order.tolist()
    values = sizes.shares[order]
    variances = np.full(len(order), sizes.variance)
    noise = Noise(sizes.variance, 0.0)
    table = Table((attribute,), labels, values, variances, people, noise, method=method)
    chances = expected_false(values, noise.floor, len(order), people, source.q)
    return Findings({(attribute,): table}, people, chances, (), notes)


def frequencies_found(
    attribute: str,
    reading: Reading,
    labels: Sequence[CellLabel],
    aggregate: Aggregate,
    notes: Sequence[str],
) -> SetFindings:
    """Frequencies as findings, in the order of the reading.

    Intervals are those of what was chosen for being large; where sets were cut at a length and
    nothing corrects for it, they have no upper end but 1.
    """
    is_cut = reading.is_cut
    is_starred = reading.chance <= SIGNIFICANT
    above = np.full(len(reading.values), reading.above)
    choice = reading.choice
    spread = ChosenSpread(
        reading.values,
        reading.variances,
        choice.floor,
        choice.doubt,
        np.where(is_starred, np.maximum(choice.star, above), above),
        choice.earlier,
        choice.earlier_error,
        is_cut,
    )
    table = Table(
        (attribute,),
        labels,
        reading.values,
        reading.variances,
        aggregate.people,
        reading.noise,
        reading.is_unbiased,
        method=aggregate.plan.asked["method"],
        is_complete=False,
        repair=reading.repair,
        errors=CHOSEN_ERRORS,
        remark=CUT_REMARK if is_cut else "",
        spread=spread,
    )
    return SetFindings({(attribute,): table}, aggregate.people, reading.chance, (), notes)
