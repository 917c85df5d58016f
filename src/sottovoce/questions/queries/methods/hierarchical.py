"""Hierarchies of intervals, as the thesis has them: people or their budget shared over levels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.oracles import Noise, oracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import Floats, GridEvidence, evidence_of
from sottovoce.questions.queries.fitted import FittedTable, Term
from sottovoce.questions.queries.hierarchy import Hierarchies, Level
from sottovoce.questions.queries.levels import LevelTable, squares_of
from sottovoce.questions.queries.method import PlannedGrid, QueryMethod
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

THESIS_FANOUT = 5  # wang2021thesis, section 7.3.2: it makes the error's bound least
MAX_FANOUT = 64
MAX_HIERARCHY_LEVELS = 1 << 14  # of a plan, which lists them all
MAX_LEVEL_CELLS = 1 << 62  # so that a cell is a number of 64 bits
MAX_ASKS = 256  # of one person, who splits epsilon among them


def hierarchies_of(target: Target, options: Options) -> Hierarchies:
    """The hierarchies of the settled fan-out, or of the thesis's before it is settled."""
    fanout = whole("fanout", options.get("fanout", THESIS_FANOUT), 2, MAX_FANOUT)
    return Hierarchies.of(target, fanout)


def level_grids(trees: Hierarchies) -> tuple[PlannedGrid, ...]:
    """The grid of each level, in their order."""
    found = []
    for level in trees.levels():
        axes = trees.axes(level)
        found.append(PlannedGrid(axes, trees.widths(level), (0,) * len(axes)))
    return tuple(found)


def level_evidence(
    trees: Hierarchies, evidence: Sequence[GridEvidence]
) -> dict[Level, GridEvidence]:
    """By level what its people said; each stands at the place of its cohort, or of its ask."""
    levels = trees.levels()
    return {levels[grid.cohort + grid.ask]: grid for grid in evidence}


class SeparateLevels(QueryMethod):
    """A method of the thesis, that adds up what levels say by themselves.

    Levels of many cells are whispered by a hash of the same law whose reports are kept, and asked
    for the cells of a query.
    """

    is_unbiased = True
    options: ClassVar[tuple[str, ...]] = ("fanout",)

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        return {"fanout": whole("fanout", options.get("fanout", THESIS_FANOUT), 2, MAX_FANOUT)}

    def refuse(self, target: Target, terms: Terms) -> str | None:
        trees = hierarchies_of(target, NO_OPTIONS)
        if trees.level_count > MAX_HIERARCHY_LEVELS:
            return f"{trees.level_count:,} levels are more than {MAX_HIERARCHY_LEVELS:,}"
        if trees.most_cells > MAX_LEVEL_CELLS:
            return f"a grid of {trees.most_cells:,} cells is more than 2^62"
        return None

    @abstractmethod
    def shared_levels(self, trees: Hierarchies) -> int:
        """Among how many levels people are shared out; 1 if everybody answers every level."""

    def level_asks(
        self, schema: Schema, target: Target, epsilon: Decimal, options: Options
    ) -> list[Ask]:
        """One ask for each level, with so much of epsilon."""
        trees = hierarchies_of(target, options)
        asks = []
        for planned in level_grids(trees):
            grid = planned.encoding(schema, target)
            name = "olh" if grid.size <= trees.listed_cells else "olh-wide"
            asks.append(Ask(grid, oracle(name, size=grid.size, epsilon=epsilon)))
        return asks

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> LevelTable:
        trees = hierarchies_of(target, options)
        evidence = evidence_of(aggregate, target.names, squares)
        square = float(aggregate.people if squares is None else squares.sum())
        return LevelTable(
            trees,
            level_evidence(trees, evidence),
            self.shared_levels(trees),
            aggregate.plan.cohorts[0].oracles[0].noise(1),
            aggregate.people**2 / square,
            aggregate if trees.most_cells > trees.listed_cells else None,
        )


class LevelsByPeople(SeparateLevels):
    """HIO: everybody answers one level, with all of epsilon.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    wang2021thesis, algorithms 3 and 4; theorem 7.4.2 corrected, see docs/errata.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "hio"
    about = "hierarchies of intervals, people shared over levels"
    source = "wang2021thesis, algorithms 3 and 4"

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        asks = self.level_asks(schema, target, epsilon, options)
        return Listed([Cohort((ask,)) for ask in asks])

    def shared_levels(self, trees: Hierarchies) -> int:
        return trees.level_count

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        trees = hierarchies_of(target, options)
        levels = trees.level_count
        noise = _level_noise(terms.epsilon)
        count, held = _interval_sums(trees, selections)
        # sum over intervals of  L floor + f (L slope + L - 1), over n
        #     wang2021thesis, propositions 7.2.1 and 7.2.2, with equality
        per_held = levels * noise.slope + levels - 1
        return np.asarray((levels * noise.floor * count + per_held * held) / terms.people)


class LevelsByBudget(SeparateLevels):
    """HI: everybody answers every level, with an equal part of epsilon each.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    wang2021thesis, sections 7.3.1 and 7.4.1.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "hi"
    about = "hierarchies of intervals, epsilon shared over levels"
    source = "wang2021thesis, sections 7.3.1 and 7.4.1"

    def refuse(self, target: Target, terms: Terms) -> str | None:
        asks = hierarchies_of(target, NO_OPTIONS).level_count
        if asks > MAX_ASKS:
            return f"{asks:,} levels share epsilon, more than {MAX_ASKS}"
        return super().refuse(target, terms)

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        part = shared(epsilon, hierarchies_of(target, options).level_count)
        return Listed([Cohort(tuple(self.level_asks(schema, target, part, options)))])

    def shared_levels(self, trees: Hierarchies) -> int:
        return 1

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        trees = hierarchies_of(target, options)
        noise = _level_noise(shared(terms.epsilon, trees.level_count))
        count, held = _interval_sums(trees, selections)
        return np.asarray((noise.floor * count + noise.slope * held) / terms.people)


def _level_noise(epsilon: Decimal) -> Noise:
    """The error's law of one report; that of local hashing is the same for every size."""
    return oracle("olh", size=2, epsilon=epsilon).noise(1)


def _interval_sums(trees: Hierarchies, selections: Sequence[Term]) -> tuple[Floats, Floats]:
    """Over the intervals that a selection takes, the sums of squared weights, and of those times
    the share of codes inside; without the whole, which is known.
    """
    axes = squares_of(trees, selections)
    whole = np.prod([each.whole for each in axes], axis=0)
    count = np.prod([each.all for each in axes], axis=0) - whole
    held = np.prod([each.held for each in axes], axis=0) - whole
    return count, held
