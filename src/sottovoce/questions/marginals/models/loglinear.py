"""Log-linear tables: maximum entropy given noisy means of features, many tables of one shape at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.marginals.method import Floats

SMALLEST_VARIANCE = 1e-7
ROUNDS = 60
ENOUGH = 1e-10


@dataclass(frozen=True, eq=False)
class Features:
    """Products of functions of a table's attributes.

    ``values``: cells x features. ``owners``: for each feature, ((position, function), ...).
    """

    shape: tuple[int, ...]
    values: Floats
    owners: tuple[tuple[tuple[int, int], ...], ...]


def features(shape: tuple[int, ...], bases: tuple[Floats, ...], sets: Sequence[tuple[int, ...]]) -> Features:
    """All products of functions of the positions in each of ``sets``; ``bases``: functions x values each."""
    grid = np.indices(shape).reshape(len(shape), prod(shape))
    columns: list[Floats] = []
    owners: list[tuple[tuple[int, int], ...]] = []
    for positions in sets:
        for functions in np.ndindex(*(len(bases[position]) for position in positions)):
            column = np.ones(prod(shape))
            for position, function in zip(positions, functions, strict=True):
                column = column * bases[position][function][grid[position]]
            columns.append(column)
            owners.append(tuple(zip(positions, functions, strict=True)))
    return Features(shape, np.array(columns).T.reshape(prod(shape), len(columns)), tuple(owners))


def maximum_entropy(values: Floats, targets: Floats, variances: Floats) -> Floats:
    """Tables of largest entropy whose features have the target means, as far as their variances insist.

    Minimises log sum_x exp(eta . F(x)) - eta . tau + 1/2 sum V eta^2 by damped Newton steps.
    ``values``: cells x features; ``targets``, ``variances``: tables x features. Returns tables x cells.
    """
    batch, count = targets.shape
    slack = np.maximum(variances, SMALLEST_VARIANCE)
    eta = np.zeros((batch, count))
    diagonal = np.arange(count)

    def objective(point: Floats, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        energy = point @ values.T
        top = energy.max(1, keepdims=True)
        table = np.exp(energy - top)
        total = table.sum(1, keepdims=True)
        table /= total
        penalty = 0.5 * (slack[rows] * point**2).sum(1) - (point * targets[rows]).sum(1)
        return (top + np.log(total))[:, 0] + penalty, table

    active = np.arange(batch)
    level, tables = objective(eta, active)
    for _ in range(ROUNDS):
        own = tables[active]
        mean = own @ values
        slope = mean - targets[active] + slack[active] * eta[active]
        curve = np.einsum("bx,xf,xg->bfg", own, values, values, optimize=True)
        curve -= mean[:, :, None] * mean[:, None, :]
        curve[:, diagonal, diagonal] += slack[active] + 1e-9
        step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
        gain = (slope * step).sum(1)
        going = gain > ENOUGH
        if not going.any():
            break
        active, step, gain = active[going], step[going], gain[going]
        length = np.ones(len(active))
        accepted = np.zeros(len(active), bool)
        for _ in range(25):
            trial = eta[active] - length[:, None] * step
            new_level, new_tables = objective(trial, active)
            accepted = new_level <= level[active] - 1e-4 * length * gain + 1e-12
            if accepted.all():
                break
            length = np.where(accepted, length, length / 2)
        rows = active[accepted]
        eta[rows], level[rows], tables[rows] = trial[accepted], new_level[accepted], new_tables[accepted]
        active = rows
        if not len(active):
            break
    return tables


def cell_variances(values: Floats, tables: Floats, variances: Floats) -> Floats:
    """Variances of the cells of maximum-entropy tables, to first order in the means' errors."""
    slack = np.maximum(variances, SMALLEST_VARIANCE)
    diagonal = np.arange(values.shape[1])
    out = np.empty_like(tables)
    for row, (table, own) in enumerate(zip(tables, slack, strict=True)):
        mean = table @ values
        tilt = table[:, None] * (values - mean)  # d cell / d eta
        curve = values.T @ tilt
        curve[diagonal, diagonal] += own + 1e-9
        solved = np.linalg.solve(curve, tilt.T).T  # d cell / d target
        out[row] = solved**2 @ own
    return out


def linear_variances(known: Features, variances: Floats) -> Floats:
    """Variances of cells as plain sums of orthonormal features, whatever their sign: tables x cells."""
    size = prod(known.shape)
    shares = np.array([prod(known.shape[position] for position, _ in owner) / size for owner in known.owners])
    return np.asarray(variances @ (known.values * shares).T ** 2)
