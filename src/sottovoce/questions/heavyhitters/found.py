"""Intervals of values that were found, which hold given that they were large enough to be found.

What is found was chosen for being large, so its estimate is too large at the threshold. Whatever
else is known of a value (how its score is shared out among windows, what the others scored) does
not tell how frequent it is; given all that, it was found if its estimate passed one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.selection import least_passing, selected_interval
from sottovoce.results.cells import Total, cell_ends, largest_total, quantile
from sottovoce.results.findings import SIGNIFICANT

Floats = NDArray[np.float64]
FOUND_ERRORS = "closed form, given that a value was found"


@dataclass(frozen=True, eq=False)
class FoundSpread:
    """Intervals of found values, in [0, 1].

    Without a star noise alone may explain a value, so that its interval begins at 0. With one the
    interval holds given that the value got it.

    Attributes:
        values: Estimated frequencies, (values,).
        std_errors: (values,).
        thresholds: What each estimate had to pass to be found, and starred if it is, (values,).
        is_starred: (values,).

    >>> values, errors = np.array([0.30, 0.11, 0.11]), np.full(3, 0.01)
    >>> spread = FoundSpread(values, errors, np.full(3, 0.1), np.array([True, True, False]))
    >>> low, high = spread.interval(0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.28, 0.078, 0.0], [0.32, 0.129, 0.129])
    """

    values: Floats
    std_errors: Floats
    thresholds: Floats
    is_starred: NDArray[np.bool_]

    def interval(self, level: float) -> tuple[Floats, Floats]:
        low, high = selected_interval(self.values, self.std_errors, self.thresholds, level)
        # the estimate of a value that nobody holds may lie far below 0
        high = np.maximum(high, quantile(level) * self.std_errors)
        low = np.where(self.is_starred, low, 0.0)
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def total(self, places: Sequence[int], value: float) -> Total:
        if len(places) == 1:
            error = float(self.std_errors[places[0]])
            return Total(value, error, ends=partial(cell_ends, self, places[0]))
        return largest_total(self.values, self.std_errors, places, is_complete=False)


def starred_from(chances: Callable[[Floats], Floats], scores: Floats, most: float) -> Floats:
    """The score from which each value gets a star.

    Args:
        chances: how many values that nobody holds are expected to look as frequent, of scores
            (values,); it falls with the score.
        scores: those of the values, (values,).
        most: a score that certainly gets one.

    Returns:
        Scores, (values,), between 0 and ``most``.
    """
    ceiling = np.maximum(scores, most)
    return least_passing(lambda each: chances(each) <= SIGNIFICANT, np.zeros(len(scores)), ceiling)
