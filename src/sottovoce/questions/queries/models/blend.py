"""A few codes: the cascade's table moved towards the unbiased one where the reports contradict it.

Where reports are clear a cascade has little to gain and something to lose: shares are not negative,
so that each of many empty codes keeps a little, and codes that hold nearly all lose it.
"""

from __future__ import annotations

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.models.line import LineErrors, LineTable

BLENDED_CODES = 64  # a dimension of more has much to gain by a model, also where reports are clear
# times what is expected of the squared distance between the two tables: less may be chance
USUAL_EXCESS = 3.0


class BlendedErrors:
    """How the frequencies of a blend err together.

    If the model holds, the unbiased table is off by what the model's is, and by noise that goes
    with nothing else: with the share w of the unbiased one the covariance of errors is
    w^2 unbiased + (1 - w^2) model.

    Args:
        unbiased: The errors of the unbiased table.
        model: Those of the model's.
        share: Of the unbiased table, w.
    """

    def __init__(self, unbiased: LineErrors, model: LineErrors, share: float) -> None:
        self._parts = ((share**2, unbiased), (1.0 - share**2, model))

    def covariance(self, selections: Floats) -> Floats:
        """The covariance of errors of weighted sums, (sums, sums), of weights (size, sums)."""
        (first, unbiased), (second, model) = self._parts
        return first * unbiased.covariance(selections) + second * model.covariance(selections)

    def root(self) -> Floats:
        """A matrix R, (rank, size), with R' R the covariance of the errors of all frequencies."""
        return np.vstack([np.sqrt(part) * errors.root() for part, errors in self._parts])


def unbiased_share(squares: float, expected: float) -> float:
    """How much of the unbiased table to take, from the squared distance of the two.

    The unbiased table errs around the truth, and a model's best guess is uncorrelated with what is
    left between them. Then the expected squared distance is the difference of their variances, V;
    if the model is off by b besides, it is V + b^2, and the least squared error is that of the
    share b^2 / (V + b^2) = 1 - V / distance (James and Stein's). Sums of few codes err together, so
    that the distance is often twice what is expected: only what is beyond USUAL_EXCESS counts.

    >>> unbiased_share(2.0, 1.0), unbiased_share(12.0, 1.0)
    (0.0, 0.75)
    """
    if squares <= USUAL_EXCESS * expected:
        return 0.0
    return 1.0 - USUAL_EXCESS * max(expected, 0.0) / squares


def blended(table: LineTable) -> LineTable:
    """The table of a count, moved towards the unbiased one of the same reports if that is due.

    How far the two are apart is judged by all sums of the first codes: one share for the whole
    table, so that its answers still add up.
    """
    size = table.sizes[0]
    if size > BLENDED_CODES or table.unbiased is None:
        return table
    first_codes = np.tri(size)[:-1].T  # (size, sums)
    values, covariance = table.unbiased.sums(first_codes)
    distances = values - table.frequencies @ first_codes
    expected = np.trace(covariance) - np.trace(table.covariance(first_codes))
    share = unbiased_share(float(distances @ distances), float(expected))
    if share == 0.0:
        return table
    off = np.diff(distances, prepend=0.0, append=0.0)  # of each code, (size,)
    unbiased = table.unbiased
    return LineTable(
        table.fitted,
        lambda: BlendedErrors(unbiased, table, share),
        is_unbiased=False,
        number=table.number,
        evidence=table.evidence,
        correction=share * off,
    )
