"""Constrained inference: hierarchies of the best fan-out, all levels made consistent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import prod
from typing import Any, ClassVar

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import Floats, GridEvidence, error_law
from sottovoce.questions.queries.fitted import FittedTable, Term
from sottovoce.questions.queries.hierarchy import Hierarchies, Level
from sottovoce.questions.queries.lattice import LatticeTable, Precisions, expected_precisions
from sottovoce.questions.queries.method import (
    MAX_GRID_CELLS,
    MAX_GRIDS,
    GridMethod,
    PlannedGrid,
    oracle_of_size,
)
from sottovoce.questions.queries.methods.hierarchical import (
    MAX_FANOUT,
    hierarchies_of,
    level_evidence,
    level_grids,
)
from sottovoce.questions.queries.target import Target

FANOUTS = (2, 3, 4, 5, 6, 8, 10, 16, 32)


class ConsistentTree(GridMethod):
    """Everybody answers one level; least squares over all levels, whose total is known.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    cormode2019ranges, section 4.4; hay2010boosting, theorem 3.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "tree"
    about = "hierarchies of the best fan-out, all levels made consistent by least squares"
    source = "cormode2019ranges"
    is_unbiased = True
    options: ClassVar[tuple[str, ...]] = ("fanout",)

    def refuse(self, target: Target, terms: Terms) -> str | None:
        if prod(target.sizes) > MAX_GRID_CELLS:
            return f"a grid of {prod(target.sizes):,} cells is more than {MAX_GRID_CELLS:,}"
        if not self._fanouts(target):
            return f"its levels are more than {MAX_GRIDS:,} for every fan-out"
        return None

    def _fanouts(self, target: Target) -> list[int]:
        """Fan-outs whose levels a plan can list; one is enough if nothing has an order."""
        if not any(one.is_ordered for one in target.dimensions):
            return [FANOUTS[0]]
        largest = max(one.size for one in target.dimensions if one.is_ordered)
        few = [fanout for fanout in FANOUTS if fanout < 2 * largest]
        return [each for each in few if Hierarchies.of(target, each).level_count <= MAX_GRIDS]

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        if "fanout" in options:
            given = whole("fanout", options["fanout"], 2, MAX_FANOUT)
            if Hierarchies.of(target, given).level_count > MAX_GRIDS:
                raise InvalidInput(f"fanout ({given}) gives more than {MAX_GRIDS:,} levels")
            return {"fanout": given}
        errors = {
            fanout: self._precisions(target, terms, fanout).variances(target.terms).mean()
            for fanout in self._fanouts(target)
        }
        return {"fanout": min(errors, key=lambda fanout: float(errors[fanout]))}

    def grids(self, target: Target, options: Options) -> tuple[PlannedGrid, ...]:
        return level_grids(hierarchies_of(target, options))

    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> LatticeTable:
        trees = hierarchies_of(target, options)
        return LatticeTable(trees, level_evidence(trees, evidence))

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        return self._precisions(target, terms, int(options["fanout"])).variances(selections)

    def reason(self, target: Target, terms: Terms, options: Options) -> str:
        levels = Hierarchies.of(target, int(options["fanout"])).level_count
        return f"fan-out {options['fanout']}, {levels} levels made consistent"

    def _precisions(self, target: Target, terms: Terms, fanout: int) -> Precisions:
        """How well each level will be known."""
        trees = Hierarchies.of(target, fanout)
        grids = {level: self._law(trees, level, terms.epsilon) for level in trees.levels()}
        return expected_precisions(trees, grids, terms.people)

    def _law(
        self, trees: Hierarchies, level: Level, epsilon: Decimal
    ) -> tuple[float, float, float]:
        """How one report to a level errs."""
        counts = [one.counts[depth] for one, depth in zip(trees.each, level, strict=True)]
        size = prod(counts)
        return error_law(oracle(oracle_of_size(size), size=size, epsilon=epsilon), 1)
