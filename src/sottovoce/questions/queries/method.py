"""What every method for queries is: which grids people answer, and the table that follows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.oracles import oracle
from sottovoce.protocol.encodings import Ask, Grid
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import Method, Options, RoundResult
from sottovoce.questions.queries.evidence import Floats, GridEvidence, evidence_of
from sottovoce.questions.queries.fitted import FittedTable, Term
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_GRID_CELLS = 1 << 22  # of one grid, whose cells are all decoded
MOST_SUBSET = 64  # cells that a report names a subset of; of more it hashes
MAX_GRIDS = 1 << 12  # of a plan, which lists them all


def oracle_of_size(size: int) -> str:
    """The oracle that tells most of a grid of so many cells, in few bytes."""
    return "ss" if size <= MOST_SUBSET else "olh"


class QueryMethod(Method[Target]):
    """A way to collect dimensions and to answer queries over them.

    Beside what every method has: :meth:`fit` gives the table, of people or of their weights, and
    :meth:`predict_terms` how well it will answer.
    """

    is_unbiased: bool = False  # whether its answers are right on average, whatever people hold

    @abstractmethod
    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> FittedTable:
        """The table that answers.

        Args:
            target: the dimensions.
            aggregate: of all reports, or of them with weights.
            options: as settled.
            squares: of weighted reports the sums of squared weights, one for each cohort.
            counted: of weighted reports the table of the same reports without weights, for a
                method that estimates how weights deviate from it.
        """

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats | None:
        """The expected squared errors of the shares of some selections, if people were spread
        evenly over all codes; None if they are not known beforehand.
        """
        return None

    def predict(self, target: Target, terms: Terms, options: Options) -> float | None:
        """The expected squared error of a share, on average over the workload."""
        errors = self.predict_terms(target, terms, options, target.terms)
        return None if errors is None else float(np.mean(errors))

    def estimate(self, target: Target, aggregate: Aggregate, options: Options) -> RoundResult:
        from sottovoce.questions.queries.estimate import QueryEstimate  # which holds a method

        return RoundResult(QueryEstimate.of(target, self, aggregate, options))


@dataclass(frozen=True)
class PlannedGrid:
    """A grid that a cohort answers: which dimensions it cuts how, and its share of the people."""

    axes: tuple[int, ...]
    widths: tuple[int, ...]
    shifts: tuple[int, ...]
    weight: int = 1

    def encoding(self, schema: Schema, target: Target) -> Grid:
        """As a device reads it."""
        names = [target.names[axis] for axis in self.axes]
        return Grid.of(schema, names, self.widths, self.shifts)


class GridMethod(QueryMethod):
    """A method whose people each answer one grid, or all grids with a part of epsilon each.

    It gives :meth:`grids`, from the settled options alone, and :meth:`fit_grids`.
    """

    @abstractmethod
    def grids(self, target: Target, options: Options) -> tuple[PlannedGrid, ...]:
        """The grids of a plan."""

    def oracle_name(self, size: int, options: Options) -> str:
        """The oracle by which cells of a grid of this size are whispered."""
        return oracle_of_size(size)

    def ask(self, grid: Grid, epsilon: Decimal, options: Options) -> Ask:
        """How a grid is asked about."""
        name = self.oracle_name(grid.size, options)
        return Ask(grid, oracle(name, size=grid.size, epsilon=epsilon))

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        """One cohort for each grid."""
        cohorts = []
        for grid in self.grids(target, options):
            ask = self.ask(grid.encoding(schema, target), epsilon, options)
            cohorts.append(Cohort((ask,), grid.weight))
        return Listed(cohorts)

    @abstractmethod
    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> FittedTable:
        """The table that follows from what is known of each grid; ``counted`` as of :meth:`fit`."""

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> FittedTable:
        evidence = evidence_of(aggregate, target.names, squares)
        return self.fit_grids(target, evidence, options, counted)
