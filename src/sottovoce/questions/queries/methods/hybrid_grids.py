"""HDG: fine grids of single dimensions beside coarse grids of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import exp
from typing import Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import GridEvidence
from sottovoce.questions.queries.fitted import FittedTable
from sottovoce.questions.queries.hybrid import HybridTable, hybrid_fit
from sottovoce.questions.queries.method import MAX_GRID_CELLS, GridMethod, PlannedGrid
from sottovoce.questions.queries.target import Target

# how uneven people are within a cell: the paper's constants     yang2020ranges, section 4.6
FINE_UNEVENNESS = 0.7
COARSE_UNEVENNESS = 0.03
MAX_CELLS_PER_AXIS = 1 << 12


class HybridGrids(GridMethod):
    """Everybody answers one grid with all of epsilon: of one dimension, or of two.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    yang2020ranges.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "hdg"
    about = "hybrid grids: fine ones of each dimension, coarse ones of each pair"
    source = "yang2020ranges"
    is_baseline = True
    options: ClassVar[tuple[str, ...]] = ("fine", "coarse")

    def refuse(self, target: Target, terms: Terms) -> str | None:
        if len(target) < 2:
            return "hybrid grids are for two dimensions or more"
        unordered = [one.size for one in target.dimensions if not one.is_ordered]
        largest = sorted(unordered)[-2:]
        if len(largest) == 2 and largest[0] * largest[1] > MAX_GRID_CELLS:
            return f"a grid of {largest[0] * largest[1]:,} cells is more than {MAX_GRID_CELLS:,}"
        return None

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        fine, coarse = grid_sizes(len(target), float(terms.epsilon), terms.people)
        chosen = whole("coarse", options.get("coarse", coarse), 2, MAX_CELLS_PER_AXIS)
        return {
            "fine": whole("fine", options.get("fine", max(fine, chosen)), chosen, 1 << 20),
            "coarse": chosen,
        }

    def oracle_name(self, size: int, options: Options) -> str:
        return "olh"  # the paper's

    def grids(self, target: Target, options: Options) -> tuple[PlannedGrid, ...]:
        widths = [
            cell_widths(one.size, int(options["fine"]), int(options["coarse"]))
            if one.is_ordered
            else (1, 1)
            for one in target.dimensions
        ]
        singles = [PlannedGrid((axis,), (fine,), (0,)) for axis, (fine, _) in enumerate(widths)]
        pairs = [
            PlannedGrid((one, two), (widths[one][1], widths[two][1]), (0, 0))
            for one, two in combinations(range(len(target)), 2)
        ]
        return (*singles, *pairs)

    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> HybridTable:
        planned = self.grids(target, options)
        heard = {grid.cohort: grid for grid in evidence}
        known = [
            heard.get(place) or unheard(grid, target.sizes) for place, grid in enumerate(planned)
        ]
        return hybrid_fit(target.sizes, known)


def unheard(grid: PlannedGrid, sizes: Sequence[int]) -> GridEvidence:
    """What a grid tells that nobody answered: all cells alike, as far off as they can be."""
    edges = tuple(
        np.array([*range(0, sizes[axis], width), sizes[axis]], np.int64)
        for axis, width in zip(grid.axes, grid.widths, strict=True)
    )
    values = np.ones(())
    for cuts in edges:
        values = np.multiply.outer(values, np.diff(cuts) / cuts[-1])
    return GridEvidence(grid.axes, edges, values, floor=1.0, slope=0.0, people=1.0)


def grid_sizes(dimensions: int, epsilon: float, people: int) -> tuple[int, int]:
    """How many cells a fine grid has, and a coarse one along each dimension: powers of two.

    >>> grid_sizes(6, 1.0, 1_000_000)
    (16, 4)
    """
    groups = dimensions + dimensions * (dimensions - 1) // 2
    each = people / groups
    odds = exp(epsilon)
    # g1 = (n1 (E - 1)^2 a1^2 / (2 m1 E))^(1/3),  g2 = sqrt(2 a2 (E - 1) sqrt(n2 / (m2 E))),
    #   where n1/m1 = n2/m2 people answer a grid          yang2020ranges, section 4.6
    fine = (each * (odds - 1) ** 2 * FINE_UNEVENNESS**2 / (2 * odds)) ** (1 / 3)
    coarse = (2 * COARSE_UNEVENNESS * (odds - 1) * (each / odds) ** 0.5) ** 0.5
    coarse_cells = max(2, _power_of_two(coarse))
    return max(_power_of_two(fine), coarse_cells), coarse_cells


def _power_of_two(number: float) -> int:
    """The nearest one, of those a grid may have."""
    return min((1 << power for power in range(13)), key=lambda each: abs(each - number))


def cell_widths(size: int, fine: int, coarse: int) -> tuple[int, int]:
    """Of the intervals of a fine and of a coarse grid; a coarse one holds whole fine ones.

    >>> cell_widths(64, 16, 4), cell_widths(100, 16, 4), cell_widths(3, 16, 4)
    ((4, 16), (7, 28), (1, 1))
    """
    narrow = -(-size // min(fine, size))
    times = -(-size // (narrow * min(coarse, size)))
    wide = narrow * times
    return (narrow, wide) if wide < size else (narrow, narrow)
