"""An aggregate as a column of numbered integers, its cells, and labelled rows: the form in which it
is cut into pieces.

A cell's place follows from the plan alone, so that two crowds' cells add up place by place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.oracles.base import Integers

BLOCK_CELLS = 1 << 16  # of a large table, that are looked at in one step


class PlacedCells(NamedTuple):
    """Some cells: their places, in increasing order, and their integers."""

    places: Integers  # (cells,)
    values: Integers  # (cells,)

    def between(self, first: int, end: int) -> PlacedCells:
        """Those from place ``first`` on, below ``end``."""
        start, stop = np.searchsorted(self.places, [first, end]).tolist()
        return PlacedCells(self.places[start:stop], self.values[start:stop])


def held_cells(table: NDArray[np.integer], first: int = 0) -> Iterator[PlacedCells]:
    """The cells of a table that are not 0, block by block, in the order of its memory; the places
    of the table begin at ``first``.

    >>> [cells.places.tolist() for cells in held_cells(np.array([4, 0, 5]), first=7)]
    [[7, 9]]
    """
    flat = table.reshape(-1)
    for start in range(0, flat.size, BLOCK_CELLS):
        block = flat[start : start + BLOCK_CELLS]
        places = np.flatnonzero(block != 0)  # of truths many times as fast as of integers
        if len(places):
            yield PlacedCells(places + (first + start), block[places].astype(np.int64))


def joined_cells(parts: Iterable[PlacedCells]) -> PlacedCells:
    """Parts that follow each other, in one."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    places, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part in parts:
        places.append(part.places)
        values.append(part.values)
    return PlacedCells(np.concatenate(places), np.concatenate(values))


def ranges_of(parts: Iterable[PlacedCells], width: int) -> Iterator[tuple[int, PlacedCells]]:
    """Cells in ranges of ``width`` places each: (the range's number, its cells), in order, of the
    ranges that have any.

    >>> cells = PlacedCells(np.array([1, 4, 5]), np.array([7, 8, 9]))
    >>> [(number, range.values.tolist()) for number, range in ranges_of([cells], 4)]
    [(0, [7]), (1, [8, 9])]
    """
    current, waiting = 0, list[PlacedCells]()
    for part in parts:
        numbers = part.places // width
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(numbers)]):
            if waiting and int(numbers[start]) != current:
                yield current, joined_cells(waiting)
                waiting = []
            current = int(numbers[start])
            waiting.append(PlacedCells(part.places[start:end], part.values[start:end]))
    if waiting:
        yield current, joined_cells(waiting)
