"""Queries through marginals: the cells of a selection, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.protocol.families import Family
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit
from sottovoce.questions.marginals.methods import method as marginal_method
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.method import MAX_GRID_CELLS, QueryMethod
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MARGINALS = marginal_method("am")  # every table by itself, by the better of two oracles


class ThroughMarginals(QueryMethod):
    """MG: marginals of as many dimensions as the workload has; a selection is the sum of its cells.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    wang2021thesis, section 7.2.3; zhang2018calm, section 3.4.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "mg"
    about = "through marginals, a selection is the sum of its cells"
    source = "wang2021thesis, section 7.2.3"
    is_unbiased = True

    def refuse(self, target: Target, terms: Terms) -> str | None:
        work = tables_of(target)
        largest = max(work.sample_cells)
        if largest > MAX_GRID_CELLS:
            return f"a table of {largest:,} cells is more than {MAX_GRID_CELLS:,}"
        return MARGINALS.refuse(work, terms)

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        return MARGINALS.settle(tables_of(target), terms)

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        return MARGINALS.cohorts(schema, tables_of(target), epsilon, options)

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> MarginalTable:
        work = tables_of(target)
        total = aggregate.people
        square = float(total if squares is None else squares.sum())
        fit = MARGINALS.fit(work, aggregate, options)
        # its variances are those of as many people as there is weight
        return MarginalTable(work, fit, square / total)

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats | None:
        work = tables_of(target)
        if any(len(each) > work.order for each in selections):
            return None
        sets = sorted({tuple(sorted(each)) for each in selections})
        errors = MARGINALS.predict_tables(work, terms, options, sets)
        by_cell = {
            places: error / work.cells(places) for places, error in zip(sets, errors, strict=True)
        }
        found = []
        for each in selections:
            squares = prod(float((np.asarray(part) ** 2).sum()) for part in each.values())
            found.append(squares * by_cell[tuple(sorted(each))])
        return np.array(found)

    def reason(self, target: Target, terms: Terms, options: Options) -> str:
        work = tables_of(target)
        return f"{work.count} tables of {work.mean_cells:,.0f} cells, which err one by one"


def tables_of(target: Target) -> Workload:
    """All tables of as many dimensions as the workload's selections have at most."""
    order = min(max(target.workload.orders), len(target))
    return Workload(target.names, target.sizes, order)


@dataclass(frozen=True, eq=False)
class MarginalTable(FittedTable):
    """Selections as sums of cells of marginals.

    Cells of one table are taken to err independently, as those of hashing and unary encoding do,
    and so are tables of different dimensions.
    """

    work: Workload
    marginals: Fit
    per_weight: float  # by how much variances are larger than those of people
    is_unbiased: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.work.sizes

    def joint(self, terms: Sequence[Term]) -> Joint:
        values = np.ones(len(terms))
        covariance = np.zeros((len(terms), len(terms)))
        by_places: dict[Places, list[int]] = {}
        for row, term in enumerate(terms):
            by_places.setdefault(tuple(sorted(term)), []).append(row)
        for places, rows in by_places.items():
            if not places:
                continue  # the whole, which is known
            (table,) = self.marginals.tables([places])
            (variances,) = self.marginals.variances([places])
            weights = np.stack([_cell_weights(terms[row], places) for row in rows])
            values[rows] = weights @ table
            covariance[np.ix_(rows, rows)] = (weights * variances) @ weights.T * self.per_weight
        return Joint(values, covariance)


def _cell_weights(term: Term, places: Places) -> Floats:
    """The weights of a table's cells, flat, the last dimension varying fastest."""
    weights = np.ones(1)
    for place in places:
        weights = np.outer(weights, np.asarray(term[place], float)).ravel()
    return weights
