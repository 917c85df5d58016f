"""The Walsh-Hadamard transform, in place, on integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.kernels.compiled import njit

_BLOCK = 1 << 13  # a block of this many cells stays in the nearest cache


@njit(cache=True, nogil=True)
def _small(cells, span):  # type: ignore[no-untyped-def]
    """All butterflies of half-width ``span`` and more inside one block, two levels at a time."""
    size = cells.size
    while span * 4 <= size:
        for start in range(0, size, span * 4):
            for place in range(start, start + span):
                a = cells[place]
                b = cells[place + span]
                c = cells[place + 2 * span]
                d = cells[place + 3 * span]
                sum_ab = a + b
                gap_ab = a - b
                sum_cd = c + d
                gap_cd = c - d
                cells[place] = sum_ab + sum_cd
                cells[place + span] = gap_ab + gap_cd
                cells[place + 2 * span] = sum_ab - sum_cd
                cells[place + 3 * span] = gap_ab - gap_cd
        span *= 4
    if span * 2 <= size:
        for start in range(0, size, span * 2):
            for place in range(start, start + span):
                a = cells[place]
                b = cells[place + span]
                cells[place] = a + b
                cells[place + span] = a - b


@njit(cache=True, nogil=True)
def _transform(cells, block):  # type: ignore[no-untyped-def]
    if cells.size <= block:
        _small(cells, 1)
        return
    for start in range(0, cells.size, block):
        _small(cells[start : start + block], 1)
    _small(cells, block)


@njit(cache=True, nogil=True)
def _fits(cells, limit):  # type: ignore[no-untyped-def]
    """Whether the cells' absolute values add up to less than ``limit``; nothing is allocated."""
    total = np.int64(0)
    for cell in cells:
        total += abs(cell)
        if total >= limit:
            return False
    return True


def narrow_transform(cells: NDArray[np.int64]) -> NDArray[np.int32] | NDArray[np.int64]:
    """The transform in the narrowest integers that hold it, for a caller that reads cells once."""
    work: Any = cells.astype(np.int32 if _fits(cells, np.int64(1 << 31)) else np.int64)
    _transform(work, _BLOCK)
    return work


def walsh_hadamard(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The transform of ``cells`` (a power of two): out[v] = sum over u of (-1)^<u,v> cells[u].

    Exact: 32-bit integers are used where no partial sum can leave them, 64-bit ones otherwise.
    """
    return narrow_transform(cells).astype(np.int64, copy=False)


@njit(cache=True, nogil=True)
def transform_rows(table, block):  # type: ignore[no-untyped-def]
    """The transform of every row of a table, in place."""
    for row in range(table.shape[0]):
        _transform(table[row], block)
