"""The fitted table of one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from sottovoce.questions.queries.evidence import Floats, GridEvidence
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.models.cascade import fit_cascade
from sottovoce.questions.queries.models.cells import cells_of
from sottovoce.questions.queries.models.posterior import (
    CascadeErrors,
    DeviationErrors,
    tail_weights,
)
from sottovoce.questions.queries.models.unbiased import UnbiasedLine, unbiased_line

LINE_DRAWS = 400
LINE_SEED = 7  # of the draws: an answer is the same whenever it is asked for
MAX_KEPT_SUMS = 64  # whose answers a table keeps for whoever asks the same next
LEAST_DRAWN = 0.1  # of a frequency, where a draw must be positive


class LineErrors(Protocol):
    """How the frequencies of a dimension's codes err together."""

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of errors of weighted sums, (sums, sums), of weights (size, sums)."""

    def root(self) -> Floats:
        """A matrix R, (rank, size), with R' R the covariance of the errors of all frequencies."""


class LineTable(FittedTable):
    """Frequencies of one dimension's codes, with errors that are normal together.

    Args:
        frequencies: The share of each code, (size,).
        errors: Gives how they err together; it is asked for once, when somebody wants an error.
        is_unbiased: Whether the frequencies are right on average.
        number: Of the dimension; dimensions are drawn apart.
        evidence: What people said, for fits of weights and for intervals.
        around: Of a weight the table of the count, from which it deviates; what the count is off,
            the weight is off too, also in draws of the same number.
        correction: What is added to the frequencies in every answer, (size,): fits of weights
            start from what was fitted, which is not negative, and are corrected alike.
    """

    def __init__(
        self,
        frequencies: Floats,
        errors: Callable[[], LineErrors],
        *,
        is_unbiased: bool,
        number: int = 0,
        evidence: Sequence[GridEvidence] = (),
        around: LineTable | None = None,
        correction: Floats | None = None,
    ) -> None:
        self.sizes = (frequencies.size,)
        self.fitted = frequencies
        self.correction: Floats | None = correction if around is None else around.correction
        self.frequencies = frequencies
        if self.correction is not None:
            self.frequencies = frequencies + self.correction
        self.is_unbiased = is_unbiased
        self.number = number
        self.evidence = tuple(evidence)
        self.around = around
        self._make_errors = errors
        self._draws: Floats | None = None
        self._last: tuple[Floats, Floats] | None = None  # selections, and their covariance

    @cached_property
    def _errors(self) -> LineErrors:
        """How the frequencies err, without what the count is off."""
        return self._make_errors()

    @cached_property
    def unbiased(self) -> UnbiasedLine | None:
        """Unbiased sums of the same reports, for intervals; None where some codes were not told
        apart, or where the table is unbiased itself.
        """
        if self.is_unbiased or not self.evidence:
            return None
        like = None if self.around is None else self.around.unbiased
        return unbiased_line(
            self.evidence,
            self.sizes[0],
            axis=self.number,
            frequencies=self.fitted,
            like=like,
        )

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of errors of weighted sums, (sums, sums), of weights (size, sums).

        The last ones are kept: all groups of a query deviate from one table, and ask it the same.
        """
        last = self._last
        if last is None or not np.array_equal(last[0], selections):
            found = self._errors.covariance(selections)
            if self.around is not None:
                found = found + self.around.covariance(selections)
            last = (selections.copy(), found)
            self._last = last if selections.shape[1] <= MAX_KEPT_SUMS else None
        return last[1]

    def root(self) -> Floats:
        """A matrix R, (rank, size), with R' R the covariance of the errors of a count's
        frequencies.
        """
        return self._errors.root()

    @property
    def draws(self) -> Floats:
        """Frequencies as they might be, (draws, size); they add up to 1, and may be below 0.

        Only a count keeps them: there may be a thousand groups that deviate from it.
        """
        if self._draws is not None:
            return self._draws
        root = self.root()
        own: Floats = self.frequencies + self._noise(len(root)) @ root
        if self.around is not None:
            return own + self.around.draws - self.around.frequencies
        self._draws = own
        return own

    def _noise(self, count: int) -> Floats:
        """Standard normal draws, (draws, count), the same whenever they are asked for."""
        coins = np.random.default_rng([LINE_SEED, self.number, self.depth])
        return coins.standard_normal((LINE_DRAWS, count))

    @property
    def depth(self) -> int:
        """How many counts a weight deviates from, one after the other."""
        return 0 if self.around is None else self.around.depth + 1

    @cached_property
    def positive_draws(self) -> Floats:
        """The same, none below a tenth of what was fitted, for what needs logarithms of them."""
        positive = np.maximum(self.draws, LEAST_DRAWN * np.maximum(self.frequencies, 0.0))
        scaled: Floats = positive / positive.sum(axis=1, keepdims=True)
        return scaled

    def cell_shares(self, grid: GridEvidence) -> Floats:
        """What the cells of a grid hold as fitted, in the shape of its values."""
        shares: Floats = np.add.reduceat(self.fitted, grid.edges[0][:-1])
        return shares

    def joint(self, terms: Sequence[Term]) -> Joint:
        """The shares of some weighted selections, with their covariances."""
        whole = np.ones(self.sizes[0])
        weights = np.array([term.get(0, whole) for term in terms]).reshape(len(terms), -1)
        return self.sums(weights.T)

    def sums(self, selections: Floats) -> Joint:
        """The shares of weighted sums, of weights (size, sums)."""
        unbiased = None
        if self.unbiased is not None:
            unbiased = Joint(*self.unbiased.sums(selections))
        return Joint(self.frequencies @ selections, self.covariance(selections), unbiased=unbiased)


def fit_line(
    evidence: Sequence[GridEvidence],
    size: int,
    *,
    is_ordered: bool = True,
    axis: int = 0,
    around: LineTable | None = None,
    plain: Sequence[GridEvidence] | None = None,
) -> LineTable:
    """Fit one dimension by a cascade of splits.

    Args:
        evidence: What the people of each grid said.
        size: The number of codes.
        is_ordered: Whether neighbouring codes are alike; not for categories.
        axis: The number of the dimension; what grids say of others is summed over.
        around: Of a weight the table of the count, from which it deviates.
        plain: Of a weight what the people said of it, where ``evidence`` is how it deviates.
    """
    cells = cells_of(evidence, axis)
    # the whole crowd, also those who were asked about other dimensions alone: answers are about it
    people = sum(grid.people for grid in evidence)
    base = None if around is None else around.fitted
    fit = fit_cascade(cells, size, is_ordered=is_ordered, base=base)

    def errors() -> LineErrors:
        if around is None:
            return CascadeErrors(fit, cells, people, tail_weights(fit))
        return DeviationErrors(fit, cells, people, tail_weights(fit))

    table = LineTable(
        fit.frequencies,
        errors,
        is_unbiased=False,
        number=axis,
        evidence=evidence if plain is None else plain,
        around=around,
    )
    table.is_small = around is not None
    return table


def fit_unbiased(evidence: Sequence[GridEvidence], size: int) -> LineTable:
    """The unbiased table of one dimension, number 0 of the evidence."""
    line = UnbiasedLine(evidence, size)
    return LineTable(line.frequencies, lambda: line, is_unbiased=True)
