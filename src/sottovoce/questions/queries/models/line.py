"""The fitted table of one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from sottovoce.questions.queries.evidence import Floats, GridEvidence
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.models.cascade import fit_cascade
from sottovoce.questions.queries.models.cells import cells_of
from sottovoce.questions.queries.models.posterior import covariance_root

DRAWS = 400
SEED = 7  # of the draws: an answer is the same whenever it is asked for


class LineTable(FittedTable):
    """Frequencies of one dimension's codes, with errors that are normal together.

    Args:
        frequencies: The share of each code, (size,).
        root: Gives a matrix R, (rank, size), with R' R the covariance of the frequencies' errors;
            it is asked for once, when somebody wants an error.
        is_unbiased: Whether the frequencies are right on average.
    """

    def __init__(
        self, frequencies: Floats, root: Callable[[], Floats], *, is_unbiased: bool
    ) -> None:
        self.sizes = (frequencies.size,)
        self.frequencies = frequencies
        self.is_unbiased = is_unbiased
        self._make_root = root

    @cached_property
    def root(self) -> Floats:
        """The matrix R, (rank, size), with R' R the covariance of the frequencies' errors."""
        return self._make_root()

    @cached_property
    def draws(self) -> Floats:
        """Frequencies as they might be, (draws, size); they add up to 1, and may be below 0."""
        coins = np.random.default_rng(SEED)
        return self.frequencies + coins.standard_normal((DRAWS, len(self.root))) @ self.root

    def joint(self, terms: Sequence[Term]) -> Joint:
        """The shares of some weighted selections, with their covariances."""
        whole = np.ones(self.sizes[0])
        weights = np.array([term.get(0, whole) for term in terms]).reshape(len(terms), -1)
        spread = self.root @ weights.T  # (rank, terms)
        return Joint(weights @ self.frequencies, spread.T @ spread, self.draws @ weights.T)


def fit_line(evidence: Sequence[GridEvidence], size: int, *, is_ordered: bool = True) -> LineTable:
    """Fit one dimension, number 0 of the evidence, by a cascade of splits.

    Args:
        evidence: What the people of each grid said.
        size: The number of codes.
        is_ordered: Whether neighbouring codes are alike; not for categories.
    """
    cells = cells_of(evidence, 0)
    fit = fit_cascade(cells, size, is_ordered=is_ordered)
    return LineTable(fit.frequencies, lambda: covariance_root(fit, cells), is_unbiased=False)
