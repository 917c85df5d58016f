"""What a release says of a pair of attributes by itself: unbiased, with the law of its noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.pair_law import independent_of


@dataclass(frozen=True, eq=False)
class PairErrors:
    """A pair's unbiased table, and the noise of its rows, its columns and of both together.

    Attributes:
        table: shares, (values of one, values of two).
        deviations: of the noise of an orthonormal contrast of the rows' sums, of the columns' sums,
            and of both.
        people: how many there are, a sample of a population.
    """

    table: Floats
    deviations: tuple[float, float, float]
    people: int

    def errors(self, count: int, draws: np.random.Generator) -> Floats:
        """Errors as they might have been, were the two independent: (count, rows, columns)."""
        values, others = self.table.shape
        of_rows, of_columns, of_both = self.deviations
        rows = of_rows * _centred(draws.standard_normal((count, values, 1)), (1,))
        columns = of_columns * _centred(draws.standard_normal((count, 1, others)), (2,))
        both = of_both * _centred(draws.standard_normal((count, values, others)), (1, 2))
        noise = rows / others + columns / values + both
        return np.asarray(noise + self._sampled(count, draws))

    def _sampled(self, count: int, draws: np.random.Generator) -> Floats:
        """By how much people who are a sample differ from the population."""
        # Cov = (diag(f) - f f^T) / n: independent errors of variance f/n, made to sum to 0
        shares = independent_of(self.table)
        drawn = draws.standard_normal((count, *self.table.shape)) * np.sqrt(shares / self.people)
        excess = drawn.sum(axis=(1, 2), keepdims=True)
        return np.asarray(drawn - shares * excess)


def _centred(draws: Floats, axes: tuple[int, ...]) -> Floats:
    """Draws whose sums over each of these axes are 0."""
    for axis in axes:
        draws = draws - draws.mean(axis=axis, keepdims=True)
    return draws
