"""All tables of known domains from residuals, each measured once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np

from sottovoce.accounting import Ledger
from sottovoce.central.cells import tuple_counts
from sottovoce.central.domains import Places, TableDomain, exact_counts, margins, sets_up_to
from sottovoce.central.estimate import ResidualFit, release_estimate, residual_fit
from sottovoce.central.measured_orders import (
    USUAL_MISS,
    USUAL_PEOPLE,
    best_order,
    known_people,
    measured_of,
    measured_orders,
    measured_terms,
    why_order,
)
from sottovoce.central.method import (
    CentralTable,
    Integers,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
    Settled,
)
from sottovoce.central.residual_plan import EQUALS, Equal, ResidualPlan, checked_weights
from sottovoce.central.residuals import Residuals, measured
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import LARGEST_NOISE_SCALE

MAX_RELEASED_CELLS = 1 << 25  # of all tables together
MAX_RELEASED_TABLES = 1 << 16
REPAIRS = ("none", "simplex")


class Residual(ReleaseMethod):
    """Noise on each orthogonal part of the tables, allotted by how many counts it serves.

    Options:
        weights: for 1, 2, ... attributes what the mean variance of a count is worth.
        equal: what weighs the same among tables of as many attributes, counts or tables.
        may_be_empty: the attributes for which to be empty counts as a value; by default none.
        repair: none or simplex; by default none.
        measured: up to how many attributes together are measured; by default as many as are asked.
        expected_people: a public guess by which auto chooses ``measured``.

    Guarantee: (epsilon, delta)-DP for one user, of whom one row counts; add-remove or replace-one.
    Assumes:   uniform entropy; attributes and their values are public.
    Source:    xiao2023optimal; noise on a lattice that holds every move.
    Checked:   tests/exact/test_residual_noise.py
    """

    name: ClassVar[str] = "residual"
    about: ClassVar[str] = "every count of known domains, from residuals measured once"
    source: ClassVar[str] = "xiao2023optimal"
    options: ClassVar[tuple[str, ...]] = (
        "weights",
        "equal",
        "may_be_empty",
        "repair",
        "measured",
        "expected_people",
    )

    def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        """Why the method does not fit.

        Args:
            table: Whose attributes and values count, not its rows.
            terms: What is promised, with the options of the class.
        """
        check_options(self, terms)
        checked_weights(terms.options.get("weights"), measured_of(terms))
        known_people(table, terms)
        equal_of(terms)
        repair_of(terms)
        why = why_not_known(table, terms)
        if why is not None:
            return why
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        why = domain.why_too_large(terms.up_to, MAX_RELEASED_CELLS)
        if why is not None:
            return why
        tables = comb(len(domain.names), terms.up_to)
        if tables > MAX_RELEASED_TABLES:
            return f"there are {tables:,} tables, more than {MAX_RELEASED_TABLES:,}"
        return _too_noisy(domain, self.plan(table, terms))

    def settle(self, table: CentralTable, terms: ReleaseTerms) -> Settled:
        """Up to how many attributes together to measure, unless options say so."""
        if {"measured", "weights"} & set(terms.options):
            return Settled()
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        people = known_people(table, terms)
        assumed = people or USUAL_PEOPLE
        orders = measured_orders(domain.sizes, terms, assumed, equal_of(terms))
        if len(orders) == 1:
            return Settled()  # nothing to choose
        why = why_order(orders, assumed, people is not None)
        order = best_order(orders).order
        return Settled({} if order == terms.up_to else {"measured": order}, why)

    def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
        plan = self.plan(table, terms)
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        people = known_people(table, terms) or USUAL_PEOPLE
        means = []
        for count in range(1, terms.up_to + 1):
            tables = comb(len(domain.sizes), count)
            missed = USUAL_MISS * max(0, count - plan.order) * people**2
            means.append(plan.mean_variance(count) + missed * tables / domain.all_cells(count))
        return float(np.mean(means))

    def plan(self, table: CentralTable, terms: ReleaseTerms) -> ResidualPlan:
        """The noise of every residual, from public facts alone."""
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        weights = terms.options.get("weights")
        return ResidualPlan.of(domain.sizes, measured_terms(terms), weights, equal_of(terms))

    def fit(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ResidualFit:
        """Spend and draw: what is released, before it is listed."""
        why = self.refuse(table, terms)
        if why is not None:
            raise InvalidInput(f"method (residual) does not fit: {why}")
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        plan = self.plan(table, terms)
        points = len(domain.names)
        widest = list(combinations(range(points), plan.order))
        counts = exact_counts(table, domain, widest, entropy)
        for step in plan.steps:
            ledger.spend(step)
        parts: dict[Places, Any] = {}
        for own in sets_up_to(points, plan.order):
            exact = _exact_table(counts, own, points)
            parts[own] = measured(exact, own, plan, entropy)
        is_filled = plan.order < terms.up_to
        return residual_fit(domain, Residuals(plan, parts), repair_of(terms), is_filled)

    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        fit = self.fit(table, terms, ledger, entropy)
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        tuples = tuple_counts(domain, terms.up_to, fit)
        name = method_name(repair_of(terms))
        estimate = release_estimate(domain, fit, measured_of(terms), name)
        return ReleasedCounts(tuples, _notes(terms), estimate)


def _exact_table(counts: Mapping[Places, Integers], own: Places, points: int) -> Integers:
    return counts[own] if own in counts else margins(counts, own, points)


def _too_noisy(domain: TableDomain, plan: ResidualPlan) -> str | None:
    """Whether the noise of the largest table, in steps of its lattice, is beyond the sampler."""
    largest = sorted(range(len(domain.sizes)), key=lambda place: domain.sizes[place])
    places = tuple(sorted(largest[-plan.order :]))
    variance = plan.variance(places) * plan.steps_per_unit(places) ** 2
    if variance >= LARGEST_NOISE_SCALE**2:
        return f"a table of {domain.cells(places):,} cells is too large for exact noise"
    return None


def check_options(method: ReleaseMethod, terms: ReleaseTerms) -> None:
    """Refuse an option that the method does not have."""
    for name in terms.options:
        if name not in method.options:
            known = ", ".join(method.options)
            raise InvalidInput(f"option ({name}) is not one of {method.name}'s ({known})")


def equal_of(terms: ReleaseTerms) -> Equal:
    """What weighs the same among tables of as many attributes."""
    asked = terms.options.get("equal", "counts")
    for known in EQUALS:
        if asked == known:
            return known
    raise InvalidInput(f"equal ({asked}) must be one of {', '.join(EQUALS)}")


def repair_of(terms: ReleaseTerms) -> str:
    """How counts are repaired after the release."""
    repair = str(terms.options.get("repair", "none"))
    if repair not in REPAIRS:
        raise InvalidInput(f"repair ({repair}) must be one of {', '.join(REPAIRS)}")
    return repair


def why_not_known(table: CentralTable, terms: ReleaseTerms) -> str | None:
    """Why a method for known domains does not fit, from public facts alone; None if it does."""
    if table.is_sets:
        return "it is for tables; of sets every item that nobody holds would cost"
    if terms.up_to > len(table.columns):
        return f"up_to ({terms.up_to}) is more than the {len(table.columns)} attributes"
    for name, values, is_known in zip(table.columns, table.values, table.is_known, strict=True):
        if not is_known:
            return f"the values of attribute {name!r} are not public"
        if len(values) < 2:
            return f"attribute {name!r} has fewer than two values"
    return None


def method_name(repair: str) -> str:
    """The method's name, with what was done to its counts."""
    return Residual.name if repair == "none" else f"{Residual.name}, repaired by {repair}"


def _notes(terms: ReleaseTerms) -> tuple[str, ...]:
    notes = [
        "Every combination of values is listed, also those that nobody may have.",
        "Of a user with several rows one row counts, drawn at random.",
    ]
    if repair_of(terms) == "simplex":
        notes.append(
            "Counts are the nearest ones that are not negative and agree with each other; "
            "their standard errors are those before this repair, which are larger."
        )
    order = measured_of(terms)
    if order < terms.up_to:
        notes.append(
            f"Tables of more than {order} attributes were not measured: they are filled in, of "
            f"maximum entropy given those of {order} made non-negative together, so they are "
            "biased, and their sums need not be the counts of fewer attributes to the last digit."
        )
        notes.append(
            f"Standard errors of more than {order} attributes are a guess: the noise of what was "
            "measured, and what maximum entropy misses of a usual table; of an unusual one it "
            "may miss more."
        )
    return tuple(notes)
