"""Pairs of attributes: the laws of their tables, and how much two attributes tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.models.pair_law import MARGIN_ROUNDING, PairLaw, margins_of
from sottovoce.results.estimate import Estimate, Floats
from sottovoce.results.joint import JointEstimate

if TYPE_CHECKING:
    from sottovoce.questions.marginals.workload import Places

MAX_DRAWN_CELLS = 1 << 23  # of all draws together; larger tables are drawn less often


class Released(Protocol):
    """What a curator released: whole tables, as of an estimate."""

    @property
    def joint(self) -> JointEstimate: ...


Source = Estimate | Aggregate | Released


def estimate_of(source: Source) -> JointEstimate:
    """The estimate that tells how attributes go together: itself, its aggregate's, a release's."""
    found = source.estimate() if isinstance(source, Aggregate) else source
    if not hasattr(found, "joint"):
        raise InvalidInput(
            "estimate must be that of a Marginals question, its aggregate, or a release"
        )
    return found.joint


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
