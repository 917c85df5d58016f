"""From a condition to few products: values that no part of a query tells apart are one class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.queries.evidence import Floats, Integers
from sottovoce.questions.queries.sql.errors import SqlError

MAX_CLASS_CELLS = 1 << 20  # combinations of classes
MAX_SEARCHED_CELLS = 4096  # of a grid for which every order of axes is tried
MAX_TERMS = 4096  # products that one selection may become

Factors = tuple[Floats, ...]  # for each axis of a grid a weight for each of its classes


@dataclass(frozen=True, eq=False)
class Classes:
    """Values of a dimension in classes.

    ``of_value``: the class of each value, (values,). ``examples``: a value of each, (classes,).
    """

    of_value: Integers
    examples: Integers

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.examples)


def classes(size: int, tables: Iterable[tuple[NDArray[Any], int]]) -> Classes:
    """The classes of a dimension of ``size`` values.

    Args:
        size: the number of values.
        tables: arrays, each with the axis that is this dimension. Two values are of one class if
            every table has the same entries for both.

    >>> classes(4, [(np.array([0, 1, 1, 0]), 0)]).of_value.tolist()
    [0, 1, 1, 0]
    """
    joined = np.zeros(size, np.int64)
    for table, axis in tables:
        slices = np.moveaxis(table, axis, 0).reshape(size, -1)  # (values, other entries)
        if slices.shape[1] == 1:
            _, found = np.unique(slices[:, 0], return_inverse=True)
        else:
            _, found = np.unique(slices, axis=0, return_inverse=True)
        found = found.reshape(-1)
        joined = joined * (int(found.max()) + 1) + found
        _, joined = np.unique(joined, return_inverse=True)
    _, examples = np.unique(joined, return_index=True)
    return Classes(joined, examples)


@dataclass(frozen=True, eq=False)
class ClassGrid:
    """All combinations of the classes of some dimensions.

    ``dims``: which ones, increasing; each is an axis.
    """

    dims: tuple[int, ...]
    classes: tuple[Classes, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The classes of each axis."""
        return tuple(each.count for each in self.classes)

    def check(self) -> None:
        """Refuse a grid that is too large."""
        if prod(self.shape) > MAX_CLASS_CELLS:
            raise SqlError(
                f"the query tells {prod(self.shape):,} combinations of values apart; "
                f"at most {MAX_CLASS_CELLS:,}",
                hint="compare fewer columns, or group by fewer of them",
            )

    def lay(self, table: NDArray[Any], dims: Sequence[int]) -> NDArray[Any]:
        """A table over the values of some dimensions as one over the grid, which broadcasts."""
        if not dims:
            return table
        axes = [self.dims.index(number) for number in dims]
        picked = table[np.ix_(*(self.classes[axis].examples for axis in axes))]
        shape = [1] * len(self.dims)
        for axis in axes:
            shape[axis] = self.classes[axis].count
        return picked.reshape(shape)  # dims are increasing, and so are axes


def make_grid(
    sizes: Mapping[int, int], tables: Sequence[tuple[NDArray[Any], tuple[int, ...]]]
) -> ClassGrid:
    """The grid of the dimensions of some tables.

    Args:
        sizes: the number of values of each dimension.
        tables: arrays over the values of dimensions; those that have one axis more have it first.
    """
    dims = sorted({number for _, own in tables for number in own})
    found = []
    for number in dims:
        own = [
            (table, table.ndim - len(axes) + axes.index(number))
            for table, axes in tables
            if number in axes
        ]
        found.append(classes(sizes[number], own))
    grid = ClassGrid(tuple(dims), tuple(found))
    grid.check()
    return grid


def products(weights: NDArray[Any]) -> list[Factors]:
    """An array as a sum of products of one vector for each axis.

    Products of a 0/1 array are disjoint, and few: a box is one, ``a OR b`` over two axes are two.

    >>> products(np.array([[1, 0], [1, 1]]))[0]
    (array([1., 0.]), array([1., 0.]))
    """
    whole = np.asarray(weights, float)
    if not whole.any():
        return []
    if whole.ndim == 0:  # a condition about no whispered column
        return [()]
    # classes that hold nothing are left out first: most selections are small
    used = [np.unique(places) for places in np.nonzero(whole)]
    inner = _split(whole[np.ix_(*used)])
    found = [
        tuple(
            _spread(factor, places, size)
            for factor, places, size in zip(factors, used, whole.shape, strict=True)
        )
        for factors in inner
    ]
    if len(found) > MAX_TERMS:
        raise SqlError(
            f"the condition needs {len(found):,} products of conditions on single columns; "
            f"at most {MAX_TERMS:,}",
            hint="compare each column with numbers instead of with other columns",
        )
    return found


def _spread(factor: Floats, places: Integers, size: int) -> Floats:
    """A factor over some classes as one over all of them."""
    whole = np.zeros(size)
    whole[places] = factor
    return whole


def _split(weights: Floats) -> list[Factors]:
    if weights.ndim == 1:
        return [(weights,)]
    found = [_slices(weights, axis) for axis in range(weights.ndim)]
    axes = sorted(range(weights.ndim), key=lambda axis: len(found[axis][0]))
    if weights.size > MAX_SEARCHED_CELLS:
        axes = axes[:1]
    fewest: list[Factors] | None = None
    for axis in axes:
        different, which = found[axis]
        if fewest is not None and len(different) >= len(fewest):
            break  # every slice is a term at least
        terms = _along(axis, different, which)
        if fewest is None or len(terms) < len(fewest):
            fewest = terms
    assert fewest is not None
    return fewest


def _along(axis: int, different: Sequence[Floats], which: Integers) -> list[Factors]:
    """The products of every slice along an axis, times where it stands."""
    terms = []
    for number, part in enumerate(different):
        own = (which == number).astype(float)  # (classes of the axis,)
        for factors in _split(part):
            terms.append((*factors[:axis], own, *factors[axis:]))
    return terms


def _slices(weights: Floats, axis: int) -> tuple[list[Floats], Integers]:
    """(the different slices that are not 0 everywhere, which of them each is, or -1)."""
    moved = np.moveaxis(weights, axis, 0)
    different: dict[bytes, int] = {}
    slices: list[Floats] = []
    which = np.full(len(moved), -1)
    for place, part in enumerate(moved):
        if not part.any():
            continue
        number = different.setdefault(part.tobytes(), len(slices))
        if number == len(slices):
            slices.append(part)
        which[place] = number
    return slices, which
