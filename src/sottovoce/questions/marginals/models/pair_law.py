"""A pair's table and the normal law of its errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.method import Floats

MARGIN_ROUNDING = 1e-7  # totals and margins that differ by less differ by rounding only


@dataclass(frozen=True, eq=False)
class PairLaw:
    """A pair's table and the normal law of its errors, from the variances of cells and margins.

    Cells err independently, with variances ``spread``, on condition that they sum to zero if the
    table's total is known. That is the law of direct answers exactly, and near that of signs. Where
    the pair's margins are better (or worse) known than so, the parts of rows, columns and
    interaction are scaled to what the single tables say.
    """

    table: Floats  # rows and columns: the values of the two attributes
    spread: Floats
    is_total_known: bool
    scales: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @classmethod
    def of(
        cls, table: Floats, variances: Floats, margins: tuple[Floats, Floats] | None = None
    ) -> PairLaw:
        """The law for these variances of the cells and, if single tables are margins, of those."""
        is_total_known = abs(float(table.sum()) - 1) < MARGIN_ROUNDING
        spread = conditioned(variances) if is_total_known else variances
        plain = cls(table, spread, is_total_known)
        if margins is None:
            return plain
        return cls(table, spread, is_total_known, plain._scales_for(variances, margins))

    def _scales_for(
        self, variances: Floats, margins: tuple[Floats, Floats]
    ) -> tuple[float, float, float]:
        """How much the parts of rows, columns and interaction are to be scaled.

        Args:
            variances: Those that are stated of the cells, (rows, columns).
            margins: Those that are stated of the two margins, (rows,) and (columns,).
        """
        # each part of an error e by itself:
        #   |e|^2 = |total|^2/(r c) + |rows|^2/c + |columns|^2/r + |interaction|^2
        rows, columns = self.table.shape
        total = 0.0 if self.is_total_known else float(self.spread.sum())
        common = total / self.table.size

        def parts(cells: Floats, of_rows: Floats, of_columns: Floats) -> Floats:
            """The mean squares of rows, columns and interaction, from sums of variances."""
            across = float(of_rows.sum()) / columns - common
            down = float(of_columns.sum()) / rows - common
            inner = float(cells.sum()) - across - down - common
            return np.array([across, down, inner])

        stated = parts(variances, margins[0], margins[1])
        own = parts(self._variance(()), self._variance((1,)), self._variance((0,)))
        if min(stated.min(), own.min()) <= 0:
            return 1.0, 1.0, 1.0  # margins and cells contradict each other: go by the cells
        scales = np.sqrt(stated / own)
        return float(scales[0]), float(scales[1]), float(scales[2])

    def _variance(self, summed: tuple[int, ...]) -> Floats:
        """Variances of the errors, before the scales, of sums over some axes."""
        spread = np.asarray(self.spread.sum(axis=summed)) if summed else self.spread
        total = float(self.spread.sum())
        if self.is_total_known and total > 0:
            # given that all errors sum to zero:  s - s^2/S
            return spread - spread**2 / total
        return spread

    def _scaled(self, errors: Floats) -> Floats:
        """Errors, (..., rows, columns), with their parts scaled."""
        if self.scales == (1.0, 1.0, 1.0):
            return errors
        common = errors.mean(axis=(-2, -1), keepdims=True)
        rows = errors.mean(axis=-1, keepdims=True) - common
        columns = errors.mean(axis=-2, keepdims=True) - common
        inner = errors - rows - columns - common
        of_rows, of_columns, of_inner = self.scales
        return np.asarray(common + of_rows * rows + of_columns * columns + of_inner * inner)

    def errors(self, count: int, draws: np.random.Generator) -> Floats:
        """Errors as they might have been, (count, rows, columns)."""
        errors = draws.standard_normal((count, *self.table.shape)) * np.sqrt(self.spread)
        total = float(self.spread.sum())
        if self.is_total_known and total > 0:
            # on condition that they sum to zero: each cell gives up its share of the sum
            excess = errors.sum(axis=(1, 2), keepdims=True)
            errors -= excess * (self.spread / total)
        return self._scaled(errors)

    def turned(self) -> PairLaw:
        """The same law with rows and columns exchanged."""
        rows, columns, inner = self.scales
        return PairLaw(self.table.T, self.spread.T, self.is_total_known, (columns, rows, inner))

    @property
    def independent(self) -> Floats:
        """The table of independent attributes with the same margins, as a distribution."""
        return independent_of(self.table)


def conditioned(variances: Floats) -> Floats:
    """Variances s of independent errors that become the given v once they sum to zero."""
    # s - s^2/S = v with S = sum of s:  s = S pi,  pi (1 - pi) = v/S,
    # pi = (1 -+ sqrt(1 - 4 v/S)) / 2;  at most one pi is above 1/2
    brentq = imported("scipy.optimize").brentq

    flat = np.maximum(variances.ravel(), 0.0)  # v, (cells,)
    largest = int(flat.argmax())
    if flat[largest] <= 0:
        return variances
    sign = np.full(flat.size, -1.0)

    def shares(total: float) -> Floats:
        """pi of each cell if S is ``total``."""
        roots = np.sqrt(np.maximum(1 - 4 * flat / total, 0))
        return np.asarray((1 + sign * roots) / 2)

    def excess(total: float) -> float:
        return float(shares(total).sum()) - 1

    # S is at least 4 v for every cell; where the pi then sum to less than one, the largest is the
    # one above 1/2
    low = high = 4 * float(flat[largest])
    start = excess(low)
    if start < 0:
        sign[largest] = 1.0
    for _ in range(60):
        high *= 2
        if excess(high) * start <= 0:
            break
    else:  # no independent errors have these variances; all but the sum's share
        return np.asarray(variances * (flat.size / (flat.size - 1)))
    total = float(brentq(excess, low, high, rtol=1e-12)) if start else low
    return np.asarray((total * shares(total)).reshape(variances.shape))


def margins_of(table: Floats) -> tuple[Floats, Floats]:
    """The two margins of a table, as distributions."""
    return norm_sub(table.sum(1)), norm_sub(table.sum(0))


def independent_of(table: Floats) -> Floats:
    """The table of independent attributes with the margins of a table, as a distribution."""
    rows, columns = margins_of(table)
    return np.outer(rows, columns)
