"""Split and conjunction: every level of every dimension from everybody, joined person by person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.oracles import PureOracle, oracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Grid
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.hierarchy import Hierarchies
from sottovoce.questions.queries.levels import squares_of
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.methods.hierarchical import MAX_FANOUT, THESIS_FANOUT
from sottovoce.questions.queries.models.product_sums import LevelWeights, ProductSums
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_BITS = 1 << 14  # of a report


class SplitAndConjunction(QueryMethod):
    """SC: everybody answers every level of every dimension, with an equal part of epsilon each.

    A bit for each interval tells whether a person may be in it; what several dimensions say of
    one person is multiplied (the conjunctive estimator).

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    wang2021thesis, section 7.4.3, eqs. (7.28) to (7.30).
    Checked:   tests/exact/test_query_plans.py
    """

    name = "sc"
    about = "every dimension by itself, answers of one person multiplied"
    source = "wang2021thesis, section 7.4.3"
    is_unbiased = True
    options: ClassVar[tuple[str, ...]] = ("fanout",)

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        return {"fanout": whole("fanout", options.get("fanout", THESIS_FANOUT), 2, MAX_FANOUT)}

    def refuse(self, target: Target, terms: Terms) -> str | None:
        bits = sum(sum(one.counts[1:]) for one in Hierarchies.of(target, THESIS_FANOUT).each)
        if bits > MAX_BITS:
            return f"a report has {bits:,} bits, more than {MAX_BITS:,}"
        return None

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        trees = Hierarchies.of(target, int(options["fanout"]))
        part = shared(epsilon, ask_count(trees))
        asks = []
        for name, one in zip(target.names, trees.each, strict=True):
            for width in one.widths[1:]:
                grid = Grid.of(schema, [name], [width])
                asks.append(Ask(grid, oracle("oue", size=grid.size, epsilon=part)))
        return Listed([Cohort(tuple(asks))], keep="rows")

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> ConjunctionTable:
        trees = Hierarchies.of(target, int(options["fanout"]))
        square = float(aggregate.people if squares is None else squares.sum())
        return ConjunctionTable(trees, aggregate, aggregate.people**2 / square)

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        trees = Hierarchies.of(target, int(options["fanout"]))
        coins = unary_bits(terms.epsilon, trees)
        absent, present = coins.noise(1).floor, coins.p * (1 - coins.p) / coins.gap**2
        # of one person:  E[prod over dimensions of g^2] - E[prod of w^2], with
        # E[g^2] = V0 sum c^2 + (V1 - 1 - V0) sum over the person's intervals of c^2 + w^2
        squared, known = np.ones(len(selections)), np.ones(len(selections))
        sums = squares_of(trees, selections)
        for axis, one in enumerate(trees.each):
            weights = np.stack(
                [np.asarray(each.get(axis, np.ones(one.size)), float) for each in selections]
            )
            exact = (weights**2).mean(axis=1)
            count = sums[axis].all - sums[axis].whole
            held = sums[axis].held - sums[axis].whole
            squared = squared * (absent * count + (present - absent) * held + exact)
            known = known * exact
        return np.asarray((squared - known) / terms.people)


def ask_count(trees: Hierarchies) -> int:
    """How many levels share epsilon: all below the whole, of every dimension."""
    return sum(one.height for one in trees.each)


def unary_bits(epsilon: Decimal, trees: Hierarchies) -> PureOracle:
    """The coins of one level's bits, which are the same for every size."""
    return cast(PureOracle, oracle("oue", size=2, epsilon=shared(epsilon, ask_count(trees))))


@dataclass(frozen=True, eq=False)
class ConjunctionTable(FittedTable):
    """The conjunctive estimator over the rows of all people.

    Each dimension gives one person the sum g of (bit - q)/(p - q) over the intervals of a
    selection, which is right on average; g of several dimensions are independent given the
    person, so their product is right too. Errors are those of the mean of these products, and
    hold the drawing of people from a population.
    """

    hierarchies: Hierarchies
    aggregate: Aggregate
    worth: float  # how many equal reports would err as much
    is_unbiased: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(one.size for one in self.hierarchies.each)

    def joint(self, terms: Sequence[Term]) -> Joint:
        parts = self.hierarchies.decompose(terms)
        plan = self.aggregate.plan
        used = self._used(parts)
        if not used:  # the whole along every dimension, which is known
            values = np.prod([of_axis[0][:, 0] for of_axis in parts], axis=0)
            return Joint(values, np.zeros((len(terms), len(terms))))
        sources = plan.cohorts[0].oracles
        levels = [
            LevelWeights.of(axis, cast(PureOracle, sources[ask]), parts[axis][depth])
            for axis, depth, ask in used
        ]
        wholes = [of_axis[0][:, 0] for of_axis in parts]
        sums = ProductSums.of(wholes, levels, self.aggregate.magnitude)
        asks = [ask for _, _, ask in used]
        first, second = sums.read(self.aggregate.over_rows(0, asks, sums))
        people = self.aggregate.people
        means = first / people
        return Joint(means, (second / people - np.outer(means, means)) / self.worth)

    def _used(self, parts: Sequence[Sequence[Floats]]) -> list[tuple[int, int, int]]:
        """(dimension, level, ask) of all levels of which any term takes an interval."""
        found = []
        ask = 0
        for axis, of_axis in enumerate(parts):
            for depth in range(1, len(of_axis)):
                if of_axis[depth].any():
                    found.append((axis, depth, ask))
                ask += 1
        return found
