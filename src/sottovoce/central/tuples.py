"""Which tuples exist, and how many people hold them: algorithms 1 and 2 of gopi2021marginals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sottovoce.accounting import Ledger
from sottovoce.central.budget import check_ledger
from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.finding import Curator, Found
from sottovoce.central.limits import limit_note
from sottovoce.central.method import (
    CentralTable,
    Integers,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
    TupleCounts,
)
from sottovoce.central.records import ABSENT, each_value
from sottovoce.central.tuple_settings import (
    TupleSettings,
    is_unbounded,
    most_tuples,
    tuple_plan,
)
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput

LARGEST_UP_TO = 8


class DpMarginals(ReleaseMethod):
    """Values first, then tuples all of whose subtuples were found; noise and a threshold for each.

    A value is published only if somebody holds it. Of more values together, at most a share eta of
    what was found may be held by nobody; ``no_spurious`` rules that out (remark 1.1).

    Options:
        limit: how many tuples of a person count, a number or one for each k; by default chosen.
        shares: of the budget, for each k; by default they grow with k.
        eta: the largest share of what is found that nobody may hold, by default 1/100.
        find: counts or weighted, how values of sets are found; by default by the other options.
        percentile: histogram or exponential, how a limit is chosen; by default histogram.
        accounting: exact or zcdp; by default exact.
        no_spurious: whether nothing that nobody holds may be found, by default false.

    Guarantee: (epsilon, delta) for one person with all of her rows, by the steps of the ledger.
    Assumes:   the noise's entropy is uniform.
    Source:    gopi2021marginals, algorithms 1 and 2, corrected, see docs/errata.
    Checked:   tests/exact/test_tuples.py
    """

    name: ClassVar[str] = "dp-marginals"
    about: ClassVar[str] = "tuples of unknown domains, found one value after another"
    source: ClassVar[str] = "gopi2021marginals, with exact accounting"
    options: ClassVar[tuple[str, ...]] = (
        "limit",
        "shares",
        "eta",
        "find",
        "percentile",
        "accounting",
        "no_spurious",
    )

    def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        if terms.up_to < 1 or terms.up_to > LARGEST_UP_TO:
            return f"up_to ({terms.up_to}) must lie between 1 and {LARGEST_UP_TO}"
        if not table.is_sets and terms.up_to > len(table.columns):
            return f"up_to ({terms.up_to}) must be at most the {len(table.columns)} columns"
        tuple_plan(
            table, terms, TupleSettings.of(table, terms)
        )  # refuses what does not go together
        return None

    def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
        """The noise's variance at public limits; without them it depends on the data."""
        settings = TupleSettings.of(table, terms)
        if settings.find == "weighted" or (is_unbounded(table) and None in settings.limits):
            return None
        plan = tuple_plan(table, terms, settings)
        total = 0.0
        for k, limit in enumerate(settings.limits, 1):
            variance = plan.budget.variance(plan.find[k - 1], limit or most_tuples(table, k))
            total += float(variance)
        return total / terms.up_to

    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        reason = self.refuse(table, terms)
        if reason:
            raise InvalidInput(reason)
        check_ledger(terms, ledger)
        settings = TupleSettings.of(table, terms)
        curator = Curator(table, settings, tuple_plan(table, terms, settings), ledger, entropy)
        attributes, codes = each_value(table)

        first = curator.find_first(np.arange(len(attributes)))
        values = first.keys
        numbers = np.full(len(attributes), ABSENT)
        numbers[values] = np.arange(len(values))
        attributes, codes = attributes[values], codes[values]
        found = {1: first}
        listed = {1: np.arange(len(values))[:, None]}
        candidates = TupleCandidates.single(_after(attributes, table.is_sets))
        keys = np.arange(len(values))
        for k in range(2, terms.up_to + 1):
            candidates = candidates.grown(keys)
            if not candidates.total:
                break
            found[k] = curator.find_more(numbers, candidates, len(keys))
            keys = found[k].keys
            listed[k] = candidates.tuples(keys)
        tuples = {}
        for k in range(1, terms.up_to + 1):
            which = listed.get(k, np.zeros((0, k), np.int64))
            may_be_spurious = k > 1 and not settings.no_spurious
            tuples[k] = _released(attributes, codes, which, found.get(k), may_be_spurious)
        notes = _notes(settings, {k: len(listed.get(k, ())) for k in tuples})
        limits = _limit_notes(table, found)
        return ReleasedCounts(tuples, (*notes, *limits))


def _after(attributes: Integers, is_sets: bool) -> Integers:
    """Of each value the first one that may stand beside it in a tuple."""
    if is_sets:
        return np.arange(1, len(attributes) + 1)
    return np.searchsorted(attributes, attributes, side="right")


def _released(
    attributes: Integers,
    codes: Integers,
    which: Integers,
    found: Found | None,
    may_be_spurious: bool,
) -> TupleCounts:
    counts = np.zeros(0) if found is None else found.counts
    deviation = math.nan if found is None else math.sqrt(found.variance)
    return TupleCounts(
        attributes[which],
        codes[which],
        counts,
        np.full(len(which), deviation),
        np.full(len(which), may_be_spurious),
    )


def _limit_notes(table: CentralTable, found: Mapping[int, Found]) -> list[str]:
    """Of each k whose limit may have left something out, by public facts, what that means."""
    notes = []
    for k, each in found.items():
        may_bind = is_unbounded(table) or each.limit < math.comb(len(table.columns), k)
        if may_bind and len(each.keys):
            notes.append(limit_note(each.limit, k))
    return notes


def _notes(settings: TupleSettings, numbers: dict[int, int]) -> tuple[str, ...]:
    notes = [f"{number:,} tuples of {k} values were found." for k, number in numbers.items()]
    notes[0] = f"{numbers[1]:,} values were found; every one is held by somebody."
    if settings.find == "counts":
        notes.append("A count was published because it is high, so low ones lean upwards.")
    if len(numbers) > 1 and not settings.no_spurious:
        notes.append(
            f"Of tuples of several values, in expectation at most a share of "
            f"{float(settings.eta):g} of those found with one value less is held by nobody."
        )
    return tuple(notes)
