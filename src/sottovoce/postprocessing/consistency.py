"""Consistency: noisy tables are made to agree on what they share, then non-negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.results.estimate import Floats

Places = tuple[int, ...]
CONSISTENCY_ROUNDS = 5  # of agreement and non-negativity in turn


@lru_cache(maxsize=256)
def contrasts(size: int) -> Floats:
    """Rows: the sum over ``size`` values, then orthonormal contrasts (Helmert's).

    Row r > 0 sets the mean of the first r values against the next one.

    >>> (contrasts(2) * [[1], [2**0.5]]).round(6).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    made = np.zeros((size, size))
    made[0] = 1.0
    for row in range(1, size):
        made[row, :row] = 1 / np.sqrt(row * (row + 1))
        made[row, row] = -row / np.sqrt(row * (row + 1))
    made.setflags(write=False)
    return made


@lru_cache(maxsize=256)
def inverse_contrasts(size: int) -> Floats:
    """The inverse of :func:`contrasts`: its transpose, but for the share 1/size of the sum."""
    made = contrasts(size).T.copy()
    made[:, 0] = 1 / size
    made.setflags(write=False)
    return made


def transform(tables: Floats, matrices: Sequence[Floats]) -> Floats:
    """Apply one matrix along each axis of stacked tables.

    Args:
        tables: (tables, columns of matrix 0, columns of matrix 1, ...).
        matrices: Each (rows, columns).

    Returns:
        (tables, rows of matrix 0, rows of matrix 1, ...).
    """
    for axis, matrix in enumerate(matrices, start=1):
        image = np.moveaxis(tables, axis, -1) @ matrix.T
        tables = np.moveaxis(image, -1, axis)
    return tables


def subsets(places: Places) -> list[Places]:
    """All subsets, the empty one first, those with the last place alternating.

    >>> subsets((3, 5))
    [(), (5,), (3,), (3, 5)]
    """
    made: list[Places] = [()]
    for place in reversed(places):
        made += [(place, *own) for own in made]
    return made


@lru_cache(maxsize=1024)
def _layout(shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each coefficient of a table: its subset of axes, and its number among that subset's.

    A coefficient belongs to the axes along which its row of :func:`contrasts` is not the sum.

    Returns:
        The subset, as a place in the list of :func:`subsets`, and the number; both flat.
    """
    which = np.zeros(shape, np.int64)
    inner = np.zeros(shape, np.int64)
    for axis, size in enumerate(shape):
        along = [-1 if each == axis else 1 for each in range(len(shape))]
        row = np.arange(size).reshape(along)  # of the contrasts along this axis
        is_contrast = row > 0
        which += is_contrast << (len(shape) - 1 - axis)  # the last axis is the lowest bit
        inner = np.where(is_contrast, inner * (size - 1) + row - 1, inner)
    return which.ravel(), inner.ravel()


class Overlap:
    """What some views of attributes share, worked out once and used for many tables.

    A view is given by increasing places of attributes, which have ``sizes`` values.

    A view's table is split into one part for each set S of its attributes: the sums over S less
    what smaller sets say of them, as coefficients of orthonormal contrasts. Averaging the sums over
    S for sets of increasing size, as zhang2018calm, section 4.4 does, changes only the part of S
    each time. So the parts can be averaged one and all at once. In a view of L cells of variance
    Var0 the sums over S add C = L / (cells of S) cells, so the weight w ~ 1/(C Var0) goes as 1/(L
    Var0) for every S.

    Tables are kept as rows of ``cells`` numbers: the views one after another, in the order of
    ``order``.

    >>> overlap = Overlap((2, 2, 2), [(0, 1), (1, 2)])
    >>> noisy = overlap.pack([np.array([0.4, 0.2, 0.2, 0.2]), np.array([0.5, 0.1, 0.2, 0.2])])
    >>> one, two = overlap.unpack(overlap.agree(noisy, np.ones(2)))
    >>> one.reshape(2, 2).sum(0).round(6).tolist(), two.reshape(2, 2).sum(1).round(6).tolist()
    ([0.6, 0.4], [0.6, 0.4])
    """

    def __init__(self, sizes: Sequence[int], views: Sequence[Places]) -> None:
        if not views:
            raise InvalidInput("views must be one or more sets of attributes")
        self.sizes = tuple(sizes)
        self.views = [tuple(view) for view in views]
        self.shapes = [tuple(self.sizes[place] for place in view) for view in self.views]
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for number, shape in enumerate(self.shapes):
            by_shape.setdefault(shape, []).append(number)
        self.order = [number for numbers in by_shape.values() for number in numbers]
        lengths = [prod(self.shapes[number]) for number in self.order]
        starts = np.cumsum([0, *lengths]).tolist()
        self.cells = starts[-1]
        self.slices = {
            number: slice(starts[at], starts[at + 1]) for at, number in enumerate(self.order)
        }
        self.groups = []  # (shape, where its tables lie, how many they are)
        for shape, numbers in by_shape.items():
            span = slice(self.slices[numbers[0]].start, self.slices[numbers[-1]].stop)
            self.groups.append((shape, span, len(numbers)))
        self.lengths = np.array([prod(shape) for shape in self.shapes], float)
        self.owner = np.repeat(np.array(self.order), lengths)  # the view of each cell
        self._name_parts()

    def _name_parts(self) -> None:
        """Number the coefficients: those of the same attributes and contrasts are the same one."""
        # where each set's coefficients begin; the first one is the total
        self.starts: dict[Places, int] = {(): 0}
        self.parts = 1  # how many coefficients there are
        self.numbers = np.empty(self.cells, np.int64)  # which one stands where a view has a cell
        for number, view in enumerate(self.views):
            for own in subsets(view):
                if own not in self.starts:
                    self.starts[own] = self.parts
                    self.parts += prod(self.sizes[place] - 1 for place in own)
            self.numbers[self.slices[number]] = self.numbers_of(view)

    def numbers_of(self, places: Places) -> NDArray[np.int64]:
        """The coefficients of a table over known places, in the order of its cells."""
        which, inner = _layout(tuple(self.sizes[place] for place in places))
        starts = np.array([self.starts[own] for own in subsets(places)])
        return np.asarray(starts[which] + inner)

    def knows(self, places: Places) -> bool:
        """Whether some view holds these places."""
        return places in self.starts

    def table(self, coefficients: Floats, places: Places) -> Floats:
        """The flat table over known places that all views' coefficients give.

        Args:
            coefficients: As :meth:`averages` gives them, (parts,) or (rows, parts).
            places: Increasing, inside one of the views.

        Returns:
            The table, (cells,) or (rows, cells).
        """
        shape = tuple(self.sizes[place] for place in places)
        rows = np.atleast_2d(coefficients)
        own = rows[:, self.numbers_of(places)].reshape(-1, *shape)
        tables = transform(own, [inverse_contrasts(size) for size in shape])
        return tables.reshape(*np.shape(coefficients)[:-1], prod(shape))

    def pack(self, tables: Sequence[Floats]) -> Floats:
        """One row of cells from the views' tables."""
        return np.concatenate([np.ravel(tables[number]) for number in self.order])

    def unpack(self, cells: Floats) -> list[Floats]:
        """The views' flat tables from a row of cells (or from rows: then each has rows too)."""
        return [cells[..., self.slices[number]] for number in range(len(self.views))]

    def coefficients(self, cells: Floats) -> Floats:
        """Every view's own coefficients, laid out as its cells."""
        return self._each(cells, contrasts)

    def tables(self, coefficients: Floats) -> Floats:
        """The inverse of :meth:`coefficients`."""
        return self._each(coefficients, inverse_contrasts)

    def _each(self, cells: Floats, matrix: Callable[[int], Floats]) -> Floats:
        """Every view's table multiplied along each axis by the matrix of its size."""
        rows = np.atleast_2d(cells)
        out = np.empty_like(rows, dtype=float)
        for shape, span, count in self.groups:
            stacked = rows[:, span].reshape(len(rows) * count, *shape)  # tables of one shape
            images = transform(stacked, [matrix(size) for size in shape])
            out[:, span] = images.reshape(len(rows), -1)
        return out.reshape(np.shape(cells))

    def averager(self, weights: Floats) -> Any:
        """The matrix from views' coefficients to their averages.

        Args:
            weights: 1/(variance of a cell) of each view, (views,).

        Returns:
            A sparse matrix, (parts, cells).
        """
        csr_matrix = imported("scipy.sparse").csr_matrix
        # w_i = (1/C_i) / sum of 1/C_i, here with 1/(C_i Var_i)   zhang2018calm, section 4.4
        own = self._own_weights(weights)
        totals = self.weights(weights)
        shares = own / np.where(totals > 0, totals, 1.0)[self.numbers]  # (cells,)
        places = (self.numbers, np.arange(self.cells))
        return csr_matrix((shares, places), shape=(self.parts, self.cells))

    def _own_weights(self, weights: Floats) -> Floats:
        """1/(L Var) of the view that each cell belongs to, (cells,)."""
        by_view = np.asarray(weights, float) / self.lengths
        return np.asarray(by_view[self.owner])

    def weights(self, weights: Floats) -> Floats:
        """Each coefficient's weight over all views; its variance is 1/(cells of its set * this).

        Args:
            weights: 1/(variance of a cell) of each view, (views,).

        Returns:
            An array of shape (parts,).
        """
        sums = np.bincount(self.numbers, self._own_weights(weights), self.parts)
        return np.asarray(sums, dtype=np.float64)

    def averages(self, cells: Floats, averager: Any) -> Floats:
        """The coefficients of all views together, numbered as in ``starts``; the total is 1.

        Args:
            cells: The views' tables, (cells,) or (rows, cells).
            averager: See :meth:`averager`.

        Returns:
            Coefficients, (parts,) or (rows, parts).
        """
        rows = self.coefficients(np.atleast_2d(cells))  # every view's own
        out = np.ascontiguousarray((averager @ rows.T).T)
        out[:, 0] = 1.0
        return np.asarray(out.reshape(*np.shape(cells)[:-1], self.parts))

    def agree(self, cells: Floats, weights: Floats) -> Floats:
        """The tables made consistent: equal sums over all shared attributes, and 1 in all."""
        averages = self.averages(cells, self.averager(weights))
        return self.tables(averages[..., self.numbers])

    def project(self, cells: Floats) -> Floats:
        """Every table's nearest point of the simplex (norm-sub), table by table."""
        rows = np.atleast_2d(cells)
        out = np.empty_like(rows)
        for shape, span, count in self.groups:
            tables = rows[:, span].reshape(len(rows) * count, prod(shape))  # of one shape
            out[:, span] = norm_sub(tables).reshape(len(rows), -1)
        return out.reshape(np.shape(cells))

    def repair(self, cells: Floats, weights: Floats, rounds: int = CONSISTENCY_ROUNDS) -> Floats:
        """Consistency and non-negativity in turn; in the end non-negative, all but consistent."""
        averager = self.averager(weights)
        for _ in range(rounds):
            averages = self.averages(cells, averager)
            cells = self.project(self.tables(averages[..., self.numbers]))
        return cells
