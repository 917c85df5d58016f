"""Sums of a weight: how it deviates from the count, fitted around the count's own table.

Every public expression is a weight. What reports say of it and of the count errs together; what
they say of the difference does not err with the count. So a weight that is the same for all gives
the count's table, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sottovoce.questions.queries.evidence import Floats, GridEvidence
from sottovoce.questions.queries.models.line import LineTable, fit_line
from sottovoce.questions.queries.models.several import SeveralTable, fit_several

LEAST_WEIGHT_SPREAD = (
    1e-9  # of weights around their mean, in squares: below it they are all the same
)


def deviation(weighted: GridEvidence, counted: GridEvidence, shares: Floats) -> GridEvidence:
    """What a grid says of a weight once the count is known.

    The difference y_w - y_1 of shares of weight and of people has the errors of weights w - W/n:
    per squared weight, 1 / people - 1 / n, with people = W^2 / sum w^2.

    Args:
        weighted: Shares of the weight.
        counted: Shares of the same grid's people.
        shares: What the count's table holds of each cell.
    """
    spread = max(
        1.0 / weighted.people - 1.0 / counted.people, LEAST_WEIGHT_SPREAD / weighted.people
    )
    return replace(
        weighted,
        values=shares + (weighted.values - counted.values),
        floor=counted.floor * counted.people * spread,
        slope=counted.slope * counted.people * spread,
        people=1.0 / spread,
        cross=counted.cross * counted.people * spread,
    )


def are_equal(weighted: Sequence[GridEvidence], counted: Sequence[GridEvidence]) -> bool:
    """Whether every person has the same weight."""
    numbers = {grid.cohort: grid for grid in weighted}
    totals = [numbers[grid.cohort].part / grid.part for grid in counted if grid.cohort in numbers]
    is_all = len(totals) == len(counted) and bool(np.ptp(totals) < LEAST_WEIGHT_SPREAD)
    return is_all and all(
        numbers[grid.cohort].people > grid.people * (1.0 - LEAST_WEIGHT_SPREAD) for grid in counted
    )


def fit_weighted(
    table: LineTable | SeveralTable,
    weighted: Sequence[GridEvidence],
    is_ordered: Sequence[bool],
) -> LineTable | SeveralTable:
    """The table of a weight: shares of it instead of shares of people.

    Args:
        table: The count's, fitted to all people.
        weighted: What the same reports say when they are weighed; grids go together by ``cohort``.
        is_ordered: Of each dimension whether neighbouring codes are alike.

    Returns:
        The table; its draws go with those of the count's table, row by row.
    """
    if are_equal(weighted, table.evidence):
        return table
    counted = {grid.cohort: grid for grid in table.evidence}
    evidence = []
    for grid in weighted:
        known = counted.get(grid.cohort)
        if known is not None:
            evidence.append(deviation(grid, known, table.cell_shares(grid)))
    if isinstance(table, LineTable):
        return fit_line(
            evidence, table.sizes[0], is_ordered=is_ordered[0], around=table, plain=weighted
        )
    return fit_several(evidence, table.sizes, is_ordered, table, weighted)
