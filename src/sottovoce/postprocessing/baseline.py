"""The methods that repair each estimate by itself: sums are left as they fall."""

from __future__ import annotations

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.results.estimate import Floats, Table


def base_pos(values: Floats) -> Floats:
    """Set negative estimates to 0: each is nearer the truth, sums rise (wang2021thesis, lemma 1).

    >>> base_pos(np.array([0.6, 0.5, -0.1])).tolist()
    [0.6, 0.5, 0.0]
    """
    return np.maximum(values, 0.0)


def base_cut(table: Table, *, alpha: float = 2.0) -> Floats:
    """Set estimates below the threshold to 0. About ``alpha`` values that nobody holds pass it.

    >>> from sottovoce.oracles import Noise
    >>> values = np.array([0.6, 0.5, 0.05, -0.1, 0.0, 0.01, -0.02, 0.02])
    >>> table = Table(("x",), range(8), values, np.full(8, 0.01), 100, Noise(0.01, 0.0))
    >>> base_cut(table).tolist()
    [0.6, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    if not alpha > 0:
        raise InvalidInput(f"alpha ({alpha}) must be greater than 0")
    # T = Phi^-1(1 - alpha/d) sqrt(Var*)   wang2021thesis, eq. (8.1), corrected, see docs/errata
    # From alpha = d/2 on, T would not be positive and negative estimates would pass.
    threshold = table.threshold(alpha) if alpha < len(table.labels) / 2 else 0.0
    return np.where(table.values >= threshold, table.values, 0.0)
