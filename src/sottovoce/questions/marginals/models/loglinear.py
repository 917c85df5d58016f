"""Log-linear tables: maximum entropy given noisy means of features, many tables at a time.

A table of features F has cells p(x) = exp(eta . F(x)) / Z(eta), with one eta for each feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.marginals.method import Floats

SMALLEST_MEAN_VARIANCE = 1e-7  # of a mean: no target is met exactly, so eta stays finite
HESSIAN_RIDGE = 1e-9  # added to the Hessian's diagonal, which keeps it invertible
MAX_NEWTON_STEPS = 60
SMALLEST_DECREMENT = 1e-10  # slope . step below which a table is done
MAX_HALVINGS = 25  # of a step that does not lower the objective enough
ARMIJO_SLOPE = 1e-4  # of the decrease that the slope promises, the share that a step must bring
OBJECTIVE_ROUNDING = 1e-12  # of the objective: a step may seem to raise it by so much


@dataclass(frozen=True, eq=False)
class Features:
    """Products of functions of a table's attributes.

    Attributes:
        shape: of the table.
        values: (cells, features).
        owners: for each feature the functions it multiplies, ((position, function), ...).
    """

    shape: tuple[int, ...]
    values: Floats
    owners: tuple[tuple[tuple[int, int], ...], ...]


def features(
    shape: tuple[int, ...],
    bases: tuple[Floats, ...],
    sets: Sequence[tuple[int, ...]],
) -> Features:
    """All products of functions of the positions in each of some sets.

    Args:
        shape: of the table.
        bases: for each position its functions, (functions, values).
        sets: sets of positions; each gives a feature for every choice of a function per position.
    """
    cells = prod(shape)
    codes = np.indices(shape).reshape(len(shape), cells)  # (positions, cells): values of each cell
    columns: list[Floats] = []
    owners: list[tuple[tuple[int, int], ...]] = []
    for positions in sets:
        counts = [len(bases[position]) for position in positions]
        for functions in np.ndindex(*counts):
            owner = tuple(zip(positions, functions, strict=True))
            column = np.ones(cells)
            for position, function in owner:
                by_value = bases[position][function]  # (values,)
                column = column * by_value[codes[position]]
            columns.append(column)
            owners.append(owner)
    values = np.array(columns).T.reshape(cells, len(columns))
    return Features(shape, values, tuple(owners))


def maximum_entropy(values: Floats, targets: Floats, variances: Floats) -> Floats:
    """Tables of largest entropy whose features have the target means, as far as variances insist.

    Args:
        values: the features F, (cells, features).
        targets: the means tau that they should have, (tables, features).
        variances: of the targets, V, (tables, features); raised to at least 1e-7.

    Returns:
        Tables that sum to 1, (tables, cells).
    """
    # minimise  L(eta) = log sum_x exp(eta . F(x)) - eta . tau + 1/2 sum V eta^2  by Newton steps:
    #   slope    E[F] - tau + V eta
    #   Hessian  E[F F^T] - E[F] E[F]^T + diag(V)
    tables_count, features_count = targets.shape
    slack = np.maximum(variances, SMALLEST_MEAN_VARIANCE)  # (tables, features)
    eta = np.zeros((tables_count, features_count))
    diagonal = np.arange(features_count)

    def objective(point: Floats, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """L(eta), (rows,), and the tables, (rows, cells), at ``point``, (rows, features)."""
        energy = point @ values.T  # (rows, cells)
        largest = energy.max(1, keepdims=True)  # taken out, so that exp does not overflow
        table = np.exp(energy - largest)
        total = table.sum(1, keepdims=True)
        table /= total
        log_partition = (largest + np.log(total))[:, 0]
        penalty = 0.5 * (slack[rows] * point**2).sum(1) - (point * targets[rows]).sum(1)
        return log_partition + penalty, table

    active = np.arange(tables_count)  # tables that are not done yet
    level, tables = objective(eta, active)
    for _ in range(MAX_NEWTON_STEPS):
        current = tables[active]  # (active, cells)
        mean = current @ values  # (active, features)
        slope = mean - targets[active] + slack[active] * eta[active]
        hessian = np.einsum("bx,xf,xg->bfg", current, values, values, optimize=True)
        hessian -= mean[:, :, None] * mean[:, None, :]
        hessian[:, diagonal, diagonal] += slack[active] + HESSIAN_RIDGE
        step = np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]  # (active, features)
        decrement = (slope * step).sum(1)  # (active,)
        is_unfinished = decrement > SMALLEST_DECREMENT
        if not is_unfinished.any():
            break
        active = active[is_unfinished]
        step = step[is_unfinished]
        decrement = decrement[is_unfinished]

        # Armijo's rule, table by table: halve a step until L falls by a share of its promise
        length = np.ones(len(active))
        accepted = np.zeros(len(active), bool)
        for _ in range(MAX_HALVINGS):
            trial = eta[active] - length[:, None] * step
            trial_level, trial_tables = objective(trial, active)
            accepted = (
                trial_level
                <= level[active] - ARMIJO_SLOPE * length * decrement + OBJECTIVE_ROUNDING
            )
            if accepted.all():
                break
            length = np.where(accepted, length, length / 2)

        # a table whose step was never accepted stays as it is, and is done
        active = active[accepted]
        eta[active] = trial[accepted]
        level[active] = trial_level[accepted]
        tables[active] = trial_tables[accepted]
        if not len(active):
            break
    return tables


def cell_variances(values: Floats, tables: Floats, variances: Floats) -> Floats:
    """Variances of the cells of maximum-entropy tables, to first order in the means' errors.

    Args:
        values: the features F, (cells, features).
        tables: as :func:`maximum_entropy` returns them, (tables, cells).
        variances: of the targets, (tables, features).

    Returns:
        Variances of shape (tables, cells).
    """
    # d p/d eta = p (F - E[F]);  d eta/d tau = Hessian^-1;  Var[p] = sum V (d p/d tau)^2
    slack = np.maximum(variances, SMALLEST_MEAN_VARIANCE)
    diagonal = np.arange(values.shape[1])
    out = np.empty_like(tables)
    for row, (table, table_slack) in enumerate(zip(tables, slack, strict=True)):
        mean = table @ values  # (features,)
        by_eta = table[:, None] * (values - mean)  # (cells, features)
        hessian = values.T @ by_eta  # (features, features)
        hessian[diagonal, diagonal] += table_slack + HESSIAN_RIDGE
        by_target = np.linalg.solve(hessian, by_eta.T).T  # (cells, features)
        out[row] = by_target**2 @ table_slack
    return out
