"""What the people of one grid said: noisy shares of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.protocol.encodings import Grid

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GridEvidence:
    """Unbiased shares of a grid's cells, and how far they stray.

    A grid cuts one or more dimensions into intervals of codes; its cells are all combinations.
    The variance of a cell that holds the share f of the grid's people is ``floor + slope * f``,
    for the coins alone; that these people stand for all adds ``f (1 - f) / people``.
    With weights, a share is one of the weight, and the same holds per squared weight.
    """

    axes: tuple[int, ...]  # which dimensions it is about
    # for each axis where its intervals begin, and the end: (cells + 1,)
    edges: tuple[Integers, ...]
    values: Floats  # (cells of the first axis, ...)
    floor: float
    slope: float
    people: float  # of this grid, or as many as its weights are worth: W^2 / sum w^2
    cross: float = 0.0  # the covariance of the errors of two cells that nobody holds
    part: float = 1.0  # of all people, or of all weight, those who answered this grid
    cohort: int = 0  # whose answers they are
    ask: int = 0


def crowd_worth(evidence: Sequence[GridEvidence]) -> float:
    """As how many equal people all who answered are worth together: W^2 / sum w^2.

    >>> edges = (np.array([0, 1]),)
    >>> grids = [
    ...     GridEvidence((0,), edges, np.ones(1), 0.0, 0.0, people, part=0.5, cohort=cohort)
    ...     for cohort, people in enumerate((100.0, 1.0))
    ... ]
    >>> round(crowd_worth(grids), 2)  # one person has half of the weight
    3.96
    """
    cohorts = {grid.cohort: grid for grid in evidence}.values()
    # sum w^2 / W^2 of all  =  sum over cohorts of  (W_g / W)^2 / people
    return 1.0 / sum(grid.part**2 / grid.people for grid in cohorts)


def evidence_of(
    aggregate: Aggregate, names: Sequence[str], squares: Floats | None = None
) -> list[GridEvidence]:
    """What an aggregate says of each grid of its plan, as far as anybody was heard.

    Args:
        aggregate: of reports, with weights or without.
        names: the dimensions, in order.
        squares: of weighted reports the sums of squared weights, one for each cohort; without
            them every report counts once.

    Returns:
        One for each grid whose people, or their weights, add up to more than 0; none of grids
        of so many cells that nobody lists them, and whose reports are kept as they are.
    """
    found = []
    total = aggregate.people
    for index, cohort in enumerate(aggregate.plan.cohorts):
        people = aggregate.cohort_people(index)
        if people < 0:
            raise InvalidInput("weights of a cohort's reports must not add up to less than 0")
        if people == 0:
            continue
        square = float(people if squares is None else squares[index])
        # as many equal reports would err as much:  n = W^2 / sum w^2
        worth = people**2 / square
        for place, ask in enumerate(cohort.asks):
            grid = ask.encoding
            if not isinstance(grid, Grid):
                raise InvalidInput(f"plan: an ask ({grid.kind}) must be about a grid")
            if not isinstance(ask.oracle, SummedOracle):
                continue
            shares, _ = aggregate.frequencies(index, place)
            floor, slope, cross = error_law(ask.oracle, worth)
            found.append(
                GridEvidence(
                    axes=tuple(names.index(name) for name in grid.attributes),
                    edges=tuple(np.array(each, np.int64) for each in grid.edges),
                    values=shares.reshape(grid.shape),
                    floor=floor,
                    slope=slope,
                    people=worth,
                    cross=cross,
                    part=people / total,
                    cohort=index,
                    ask=place,
                )
            )
    return found


def error_law(oracle: Oracle, people: float) -> tuple[float, float, float]:
    """How the shares of an oracle's values err: (floor, slope, cross) as of GridEvidence.

    The error of two values' sum tells how two of them go together.

    >>> from decimal import Decimal
    >>> from sottovoce.oracles import oracle
    >>> floor, slope, cross = error_law(oracle("rr", size=2, epsilon=Decimal(1)), 1000)
    >>> floor > 0, slope, floor + cross  # what one value has too much the other has too little
    (True, 0.0, 0.0)
    """
    one, two = oracle.noise(1), oracle.sum_noise(1, 2)
    if oracle.size == 2:
        # everybody holds one of two values:  Var[a + b] = 2 floor + slope + 2 cross
        cross = (two.floor + two.slope - 2 * one.floor - one.slope) / 2
    else:
        # Var[a + b] = 2 floor + 2 cross, of two values that nobody holds
        cross = (two.floor - 2 * one.floor) / 2
    return one.floor / people, one.slope / people, cross / people


def cohort_squares(cohorts: NDArray[np.uint32], weights: Integers, count: int) -> Floats:
    """Sums of squared weights, one for each of ``count`` cohorts: (count,)."""
    squares = np.asarray(weights, float) ** 2
    return np.bincount(cohorts, squares, minlength=count).astype(float)
