"""Pairs of attributes: tables, the normal law of their errors, how much two attributes tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.results.estimate import Estimate, Floats
from sottovoce.results.joint import JointEstimate

if TYPE_CHECKING:
    from sottovoce.questions.marginals.workload import Places

MAX_DRAWN_CELLS = 1 << 23  # of all draws together; larger tables are drawn less often
MARGIN_ROUNDING = 1e-7  # totals and margins that differ by less differ by rounding only
Source = Estimate | Aggregate


def estimate_of(source: Source) -> JointEstimate:
    """The estimate that tells how attributes go together, from itself or from its aggregate."""
    found = source.estimate() if isinstance(source, Aggregate) else source
    if not isinstance(found, Estimate):
        raise InvalidInput("estimate must be that of a Marginals question, or its aggregate")
    return found.joint


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
        spread = _conditioned(variances) if is_total_known else variances
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
        rows, columns = margins_of(self.table)
        return np.outer(rows, columns)


def _conditioned(variances: Floats) -> Floats:
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


def pair_laws(
    estimate: JointEstimate, pairs: Sequence[Places], *, population: bool = False
) -> list[PairLaw]:
    """The laws of pairs' tables, given by increasing places.

    ``population`` takes the people asked as a sample of a population in which the two attributes
    are independent.
    """
    work = estimate.work
    if work.order < 2:
        raise InvalidInput(
            "the plan asked for single attributes only (up_to = 1), so its pairs say nothing"
        )
    mentioned = sorted({place for pair in pairs for place in pair})
    singles: list[Places] = [(place,) for place in mentioned]
    alone = dict(zip(singles, estimate.fit.tables(singles), strict=True))
    alone_errors = dict(zip(singles, estimate.fit.variances(singles), strict=True))
    tables, errors = estimate.fit.tables(pairs), estimate.fit.variances(pairs)
    laws = []
    for pair, flat, flat_errors in zip(pairs, tables, errors, strict=True):
        table = flat.reshape(work.shape(pair))  # (values of one, values of two)
        variances = flat_errors.reshape(work.shape(pair))
        one, two = pair[:1], pair[1:]
        # the single tables' errors tell of the pair's margins only if they are its margins
        margins: tuple[Floats, Floats] | None = None
        gaps = (table.sum(1) - alone[one], table.sum(0) - alone[two])
        if max(float(np.abs(gap).max()) for gap in gaps) < MARGIN_ROUNDING:
            margins = alone_errors[one], alone_errors[two]
        if population:
            variances, margins = _sampled(table, variances, margins, estimate.people)
        laws.append(PairLaw.of(table, variances, margins))
    return laws


def _sampled(
    table: Floats, variances: Floats, margins: tuple[Floats, Floats] | None, people: int
) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """The variances with those of a sample of ``people`` added, the attributes independent."""
    # f(1 - f)/n
    rows, columns = margins_of(table)
    cells = np.outer(rows, columns)
    variances = variances + cells * (1 - cells) / people
    if margins is not None:
        margins = (
            margins[0] + rows * (1 - rows) / people,
            margins[1] + columns * (1 - columns) / people,
        )
    return variances, margins


def margins_of(table: Floats) -> tuple[Floats, Floats]:
    """The two margins of a table, as distributions."""
    return norm_sub(table.sum(1)), norm_sub(table.sum(0))


def repaired_tables(tables: Floats) -> Floats:
    """The nearest distributions, one for each table of the last two axes."""
    flat = tables.reshape(*tables.shape[:-2], -1)  # (..., rows times columns)
    return norm_sub(flat).reshape(tables.shape)


def interaction(tables: Floats) -> Floats:
    """What each table of the last two axes has beyond its margins: about 0 if independent."""
    # D = f - p f_.j - f_i. q + p q f_..:
    # f - f_i. f_.j to first order, and steady where noise makes a margin negative
    p, q = _columns_of(tables)
    return _without_margins(tables, p, q)


def standardized(law: PairLaw, tables: Floats) -> Floats:
    """Squared interactions, each over its variance under the law, given the table's own margins.

    Args:
        law: Of the errors, s its spread.
        tables: f, (tables, rows, columns).

    Returns:
        An array of the same shape.
    """
    p, q = _columns_of(tables)
    # D = A f B^T with A = I - p 1^T, B = I - q 1^T;
    # Var D_ij = sum A_ik^2 B_jl^2 s_kl - (A s B^T)_ij^2 / s_..
    # sum over k of A_ik^2 s_kl = s_il (1 - 2 p_i) + p_i^2 s_.l,  and the same for columns
    over_rows = law.spread * (1 - 2 * p) + p**2 * law.spread.sum(0)
    variances = over_rows * (1 - 2 * q) + q**2 * over_rows.sum(-1, keepdims=True)
    total = float(law.spread.sum())
    if law.is_total_known and total > 0:
        variances = variances - _without_margins(law.spread, p, q) ** 2 / total
    squares = _without_margins(tables, p, q) ** 2
    ratios = np.divide(squares, variances, out=np.zeros_like(squares), where=variances > 0)
    return np.asarray(ratios)


def _columns_of(tables: Floats) -> tuple[Floats, Floats]:
    """The margins of tables as distributions: p, (..., rows, 1), and q, (..., 1, columns)."""
    rows, columns = tables.sum(-1), tables.sum(-2)
    return norm_sub(rows)[..., :, None], norm_sub(columns)[..., None, :]


def _without_margins(tables: Floats, p: Floats, q: Floats) -> Floats:
    """D = (I - p 1^T) f (I - q 1^T)^T, of each table f of the last two axes."""
    rows = tables.sum(-1, keepdims=True)  # f_i.
    columns = tables.sum(-2, keepdims=True)  # f_.j
    total = rows.sum(-2, keepdims=True)  # f_..
    return np.asarray(tables - p * columns - rows * q + p * q * total)


def mutual_information(tables: Floats) -> Any:
    """In nats, of each table of the last two axes, once made a distribution."""
    # MI(A, B) = sum Pr[i, j] log(Pr[i, j] / (Pr[i] Pr[j]))   cormode2018marginal, section 6.2
    cells = repaired_tables(tables)
    expected = cells.sum(-1, keepdims=True) * cells.sum(-2, keepdims=True)
    ratio = np.divide(cells, expected, out=np.ones_like(cells), where=cells > 0)
    information = (cells * np.log(ratio)).sum(axis=(-2, -1))
    return np.maximum(information, 0.0)


def contingency(tables: Floats) -> Any:
    """Chi-squared per person of each table of the last two axes, once made a distribution."""
    # sum (f - e)^2 / e,  e = f_i. f_.j
    cells = repaired_tables(tables)
    expected = cells.sum(-1, keepdims=True) * cells.sum(-2, keepdims=True)
    squares = (cells - expected) ** 2
    parts = np.divide(squares, expected, out=np.zeros_like(cells), where=expected > 0)
    return parts.sum(axis=(-2, -1))
