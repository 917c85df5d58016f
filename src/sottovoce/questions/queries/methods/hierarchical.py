"""Hierarchies of intervals, as the thesis has them: people or their budget shared over levels."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.oracles import Noise, oracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import Floats, GridEvidence, evidence_worth
from sottovoce.questions.queries.fitted import FittedTable, Term
from sottovoce.questions.queries.hierarchy import Hierarchies
from sottovoce.questions.queries.levels import LevelTable, squares_of
from sottovoce.questions.queries.method import (
    MAX_GRID_CELLS,
    MAX_GRIDS,
    GridMethod,
    PlannedGrid,
)
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

THESIS_FANOUT = 5  # wang2021thesis, section 7.3.2: it makes the error's bound least
MAX_FANOUT = 64
MAX_ASKS = 256  # of one person, who splits epsilon among them


class Hierarchical(GridMethod):
    """A method over the levels of hierarchies of one fan-out."""

    is_unbiased = True
    options: ClassVar[tuple[str, ...]] = ("fanout",)

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        return {"fanout": whole("fanout", options.get("fanout", THESIS_FANOUT), 2, MAX_FANOUT)}

    def hierarchies(self, target: Target, options: Options) -> Hierarchies:
        """Those of the settled fan-out."""
        fanout = whole("fanout", options.get("fanout", THESIS_FANOUT), 2, MAX_FANOUT)
        return Hierarchies.of(target, fanout)

    def refuse(self, target: Target, terms: Terms) -> str | None:
        trees = self.hierarchies(target, NO_OPTIONS)
        if trees.most_cells > MAX_GRID_CELLS:
            return f"a grid of {trees.most_cells:,} cells is more than {MAX_GRID_CELLS:,}"
        if trees.level_count > MAX_GRIDS:
            return f"{trees.level_count:,} levels are more than {MAX_GRIDS:,}"
        return None

    def oracle_name(self, size: int, options: Options) -> str:
        return "olh"  # the thesis's, whatever the size

    def grids(self, target: Target, options: Options) -> tuple[PlannedGrid, ...]:
        trees = self.hierarchies(target, options)
        found = []
        for level in trees.levels():
            axes = trees.axes(level)
            found.append(PlannedGrid(axes, trees.widths(level), (0,) * len(axes)))
        return tuple(found)

    def level_evidence(
        self, trees: Hierarchies, evidence: Sequence[GridEvidence]
    ) -> dict[tuple[int, ...], GridEvidence]:
        """By level what its people said; each stands at the place of its cohort, or of its ask."""
        levels = trees.levels()
        return {levels[grid.cohort + grid.ask]: grid for grid in evidence}

    def level_table(
        self, target: Target, evidence: Sequence[GridEvidence], options: Options, levels: int
    ) -> LevelTable:
        """The table of what levels say by themselves; ``levels`` as of :class:`LevelTable`."""
        trees = self.hierarchies(target, options)
        first = evidence[0]
        noise = Noise(first.floor * first.people, first.slope * first.people)
        people = evidence_worth(evidence)
        return LevelTable(trees, self.level_evidence(trees, evidence), levels, noise, people)


class LevelsByPeople(Hierarchical):
    """HIO: everybody answers one level, with all of epsilon.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    wang2021thesis, algorithms 3 and 4; theorem 7.4.2 corrected, see docs/errata.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "hio"
    about = "hierarchies of intervals, people shared over levels"
    source = "wang2021thesis, algorithms 3 and 4"

    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> LevelTable:
        levels = self.hierarchies(target, options).level_count
        return self.level_table(target, evidence, options, levels)

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        trees = self.hierarchies(target, options)
        levels = trees.level_count
        noise = _level_noise(terms.epsilon)
        count, held = _interval_sums(trees, selections)
        # sum over intervals of  L floor + f (L slope + L - 1), over n
        #     wang2021thesis, propositions 7.2.1 and 7.2.2, with equality
        per_held = levels * noise.slope + levels - 1
        return np.asarray((levels * noise.floor * count + per_held * held) / terms.people)


class LevelsByBudget(Hierarchical):
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
        asks = self.hierarchies(target, NO_OPTIONS).level_count
        if asks > MAX_ASKS:
            return f"{asks:,} levels share epsilon, more than {MAX_ASKS}"
        return super().refuse(target, terms)

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        grids = self.grids(target, options)
        part = shared(epsilon, len(grids))
        asks = [self.ask(grid.encoding(schema, target), part, options) for grid in grids]
        return Listed([Cohort(tuple(asks))])

    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> LevelTable:
        return self.level_table(target, evidence, options, 1)

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        trees = self.hierarchies(target, options)
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
