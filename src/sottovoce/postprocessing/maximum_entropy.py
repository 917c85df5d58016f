"""Maximum entropy: the table that agrees with some of its sums and says nothing beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.results.estimate import Floats

Axes = tuple[int, ...]
FIT_ROUNDS = 200
FEWEST_ROUNDS = 10
MOST_WORK = 1 << 30  # cells updated in all rounds, unless told otherwise
SUM_TOLERANCE = 1e-6  # how far a sum may be off; the noise of estimated frequencies is far above it
# stands for a target of 0, so that contradicting zeros cannot leave a table without mass
FLOOR = 1e-12
SMALL = 1 << 14  # cells up to which the compiled loop with its index maps is used


def proportional_fit(
    shape: Sequence[int],
    constraints: Sequence[tuple[Axes, Floats]],
    start: Floats | None = None,
    rounds: int | None = None,
    tolerance: float = SUM_TOLERANCE,
) -> Floats:
    """The table of ``shape`` nearest to ``start`` (in relative entropy) with given sums over axes.

    From the uniform start, the default, this is the table of maximum entropy. Constraints that
    contradict one another are met as well as a cycle of them does. Zeros of ``start`` stay.

    Args:
        shape: The size of each axis.
        constraints: Increasing axes, and the table of frequencies over them; it is clipped at 0 and
            scaled to sum to one.
        start: A table of ``shape``.
        rounds: At most so many, through all constraints each.
        tolerance: How far a sum may be off.

    Returns:
        A table of ``shape`` that sums to one.

    >>> constraints = [((0,), np.array([0.3, 0.7])), ((1,), np.array([0.5, 0.5]))]
    >>> proportional_fit((2, 2), constraints).round(4).tolist()
    [[0.15, 0.15], [0.35, 0.35]]
    """
    axes = [tuple(each) for each, _ in constraints]
    tables = [np.asarray(table, dtype=float).reshape(1, -1) for _, table in constraints]
    begin = None if start is None else np.asarray(start, dtype=float).reshape(1, -1)
    return np.asarray(proportional_fits(shape, axes, tables, begin, rounds, tolerance)[0])


def proportional_fits(
    shape: Sequence[int],
    axes: Sequence[Axes],
    tables: Sequence[Floats],
    start: Floats | None = None,
    rounds: int | None = None,
    tolerance: float = SUM_TOLERANCE,
) -> Floats:
    """The same for many tables of the same axes.

    Args:
        shape: The size of each axis.
        axes: Those of each constraint, increasing.
        tables: For each constraint the tables of all rows, (rows, cells of its axes).
        start: (rows, *shape), or one for all.
        rounds: At most so many, through all constraints each.
        tolerance: How far a sum may be off.

    Returns:
        An array of shape (rows, *shape).

    >>> both = np.array([[0.5, 0.5], [0.2, 0.8]])
    >>> proportional_fits((2, 2), [(0,), (1,)], [both, both])[1].round(2).tolist()
    [[0.04, 0.16], [0.16, 0.64]]
    """
    shape = tuple(shape)
    count = len(tables[0]) if tables else (1 if start is None else len(start))
    cells = prod(shape)
    out = np.full((count, cells), 1 / cells)
    if start is not None:
        out[:] = np.asarray(start, dtype=float).reshape(-1, cells)
        if not (bool((out >= 0).all()) and bool((out.sum(1) > 0).all())):
            raise InvalidInput(
                "start must be a table of numbers that are not negative, and not all 0"
            )
        out /= out.sum(1, keepdims=True)
    if not axes:
        return out.reshape(count, *shape)
    rounds = _rounds(count * cells * len(axes)) if rounds is None else rounds
    targets = [_target(shape, each, table) for each, table in zip(axes, tables, strict=True)]
    if cells > SMALL:
        for row in range(count):
            own = [table[row] for table in targets]
            _fit_large(out[row].reshape(shape), axes, own, rounds, tolerance)
    else:
        maps = np.stack([cell_map(shape, each) for each in axes])  # (constraints, cells)
        _fit_small(out, maps, targets, rounds, tolerance)
    out /= out.sum(1, keepdims=True)
    return out.reshape(count, *shape)


def fit_cells(
    cells: int,
    maps: Sequence[NDArray[np.int64]],
    tables: Sequence[Floats],
    rows: int,
    tolerance: float = SUM_TOLERANCE,
) -> Floats:
    """Maximum entropy over any cells. Mass that a constraint gives to no cell is left out.

    Args:
        cells: How many there are.
        maps: For each constraint which cell of it each of the cells adds to, (cells,).
        tables: For each constraint the tables of all rows, (rows, cells of the constraint).
        rows: How many tables are fitted.
        tolerance: How far a sum may be off.

    Returns:
        An array of shape (rows, cells).

    >>> fit_cells(3, [np.array([0, 0, 1])], [np.array([[0.5, 0.5]])], 1).tolist()
    [[0.25, 0.25, 0.5]]
    """
    out = np.full((rows, cells), 1 / cells)
    if not maps:
        return out
    targets = []
    for each, table in zip(maps, tables, strict=True):
        is_reached = np.bincount(each, minlength=table.shape[1]) > 0
        kept = np.maximum(table, FLOOR) * is_reached
        targets.append(kept / kept.sum(1, keepdims=True))
    rounds = _rounds(rows * cells * len(maps))
    _fit_small(out, np.stack(maps).astype(np.int32), targets, rounds, tolerance)
    return np.asarray(out / out.sum(1, keepdims=True))


def _fit_small(
    out: Floats,
    maps: NDArray[np.int32],
    targets: Sequence[Floats],
    rounds: int,
    tolerance: float,
) -> None:
    """Fit rows of cells in place, by the compiled loop.

    Args:
        out: (rows, cells).
        maps: Which cell of each constraint a cell adds to, (constraints, cells).
        targets: For each constraint (rows, cells of the constraint).
        rounds: At most so many, through all constraints each.
        tolerance: How far a sum may be off.
    """
    from sottovoce.kernels.fitting import fit_proportions

    starts = np.cumsum([0, *(table.shape[1] for table in targets)])  # of each constraint
    fit_proportions(out, maps, starts, np.concatenate(targets, axis=1), rounds, tolerance)


def _rounds(work: int) -> int:
    """How many rounds of so much work are worth it; the slowest are large or contradictory."""
    return max(FEWEST_ROUNDS, min(FIT_ROUNDS, MOST_WORK // work))


def _target(shape: tuple[int, ...], axes: Axes, table: Floats) -> Floats:
    """A constraint's tables as distributions, (rows, cells of its axes)."""
    if list(axes) != sorted(set(axes)) or (axes and not 0 <= axes[0] <= axes[-1] < len(shape)):
        raise InvalidInput(f"axes {axes} must be increasing axes of a table of {len(shape)}")
    flat = np.asarray(table, dtype=float).reshape(len(table), -1)
    expected = prod(shape[axis] for axis in axes)
    if flat.shape[1] != expected:
        raise InvalidInput(
            f"constraint on axes {axes} has {flat.shape[1]} cells; it must have {expected}"
        )
    flat = np.maximum(flat, FLOOR)
    return np.asarray(flat / flat.sum(1, keepdims=True))


@lru_cache(maxsize=2048)
def cell_map(shape: tuple[int, ...], axes: Axes) -> NDArray[np.int32]:
    """For each cell of ``shape``, the cell of the sum over all but ``axes`` that it adds to.

    >>> cell_map((2, 3), (0,)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    own = tuple(shape[axis] if axis in axes else 1 for axis in range(len(shape)))
    numbers = np.arange(prod(own), dtype=np.int32).reshape(own)
    made = np.ascontiguousarray(np.broadcast_to(numbers, shape)).ravel()
    made.setflags(write=False)
    return made


def _fit_large(
    table: Floats, axes: Sequence[Axes], targets: Sequence[Floats], rounds: int, tolerance: float
) -> None:
    """The same in place for one large table, whose index maps would not fit into a cache."""
    before = np.inf
    for _ in range(rounds):
        worst = 0.0
        for own, target in zip(axes, targets, strict=True):
            others = tuple(axis for axis in range(table.ndim) if axis not in own)
            sums = table.sum(axis=others, keepdims=True)
            wanted = target.reshape(sums.shape)
            worst = max(worst, float(np.abs(sums - wanted).max()))
            # t <- t wanted/sums, cells without mass stay so
            table *= np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)
        if worst < tolerance or abs(before - worst) < 0.1 * tolerance:
            return
        before = worst


def maximal(sets: Sequence[Axes]) -> list[Axes]:
    """Those of the sets that are in no other, in order of size, largest first.

    >>> maximal([(0,), (0, 1), (1, 2), (2,), (0, 1)])
    [(0, 1), (1, 2)]
    """
    kept: list[Axes] = []
    for each in sorted(set(sets), key=lambda one: (-len(one), one)):
        if not any(set(each) <= set(other) for other in kept):
            kept.append(each)
    return kept
