"""Iterative proportional fitting of small tables, many of them at once."""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit


@njit(cache=True, nogil=True)
def fit_proportions(tables, maps, starts, targets, rounds, tolerance):  # type: ignore[no-untyped-def]
    """Scale each row of ``tables`` in place until its sums agree with its row of ``targets``.

    ``maps[c, cell]`` is the cell of constraint c that a cell adds to, and ``starts[c]`` where the
    constraint's targets begin. A row is done when no sum is off by ``tolerance``, or when a round
    improves the worst sum by a tenth of that.
    """
    cells = tables.shape[1]
    constraints = maps.shape[0]
    sums = np.empty(targets.shape[1])
    for row in range(tables.shape[0]):
        before = np.inf
        for _ in range(rounds):
            worst = 0.0
            for c in range(constraints):
                first, last = starts[c], starts[c + 1]
                for place in range(first, last):
                    sums[place] = 0.0
                for cell in range(cells):
                    sums[first + maps[c, cell]] += tables[row, cell]
                for place in range(first, last):
                    worst = max(worst, abs(sums[place] - targets[row, place]))
                    sums[place] = targets[row, place] / sums[place] if sums[place] > 0.0 else 0.0
                for cell in range(cells):
                    tables[row, cell] *= sums[first + maps[c, cell]]
            if worst < tolerance or abs(before - worst) < 0.1 * tolerance:
                break
            before = worst
