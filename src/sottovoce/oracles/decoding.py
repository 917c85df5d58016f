"""Linear decoding: what cohorts with different hashes saw, solved for candidates' frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Which cell of which cohort a candidate touches: ``touched[cohort, cell, candidate]``, 0 or 1.

    A person of candidate x contributes a vector with mean ``touched[..., x] - offset``; the crowd's
    mean vector z estimates (touched - offset) f, and the frequencies f of a list that holds the
    support sum to 1.
    """

    touched: Floats
    # a constant taken from every cell (1/cells where one cell is reported, 0 where bits are)
    offset: float

    @property
    def candidates(self) -> int:
        return int(self.touched.shape[2])

    def matrix(self) -> Floats:
        """Rows: cells of cohorts; columns: candidates."""
        return self.touched.reshape(-1, self.candidates) - self.offset

    def solver(self) -> Floats:
        """B with f = 1/S + B (z - G/S): G f = z under sum f = 1 (kairouz2016discrete, eq. (18))."""
        design = self.matrix()
        centred = design - design.mean(axis=1, keepdims=True)
        gram = centred.T @ centred
        values, vectors = np.linalg.eigh(gram)
        if self.candidates > 1 and values[1] < 1e-9 * values[-1]:
            raise InvalidInput(
                f"candidates ({self.candidates}) cannot all be told apart: use more cohorts or "
                "buckets"
            )
        inverse = (vectors[:, 1:] / values[1:]) @ vectors[:, 1:].T
        solved: Floats = inverse @ centred.T
        return solved

    def solve(self, seen: Floats) -> Floats:
        """The least-squares frequencies for the observed mean vector."""
        even = self.matrix().mean(axis=1)
        solved: Floats = 1 / self.candidates + self.solver() @ (seen.reshape(-1) - even)
        return solved

    def solve_non_negative(self, seen: Floats) -> Floats:
        """Least squares under f >= 0: biased, never negative."""
        nnls = imported("scipy.optimize").nnls

        solved: Floats = nnls(self.matrix(), seen.reshape(-1), maxiter=50 * self.candidates)[0]
        return solved

    def solve_sparse(self, seen: Floats, sigma: float) -> Floats:
        """LASSO picks candidates, least squares under f >= 0 weighs them: biased, sparse.

        ``sigma``: standard error of a cell of ``seen``. The penalty is the universal one, sigma
        sqrt(2 ln S) times the norm of a column, so that a candidate nobody holds is picked seldom.
        """
        Lasso = imported("sklearn.linear_model").Lasso

        design = self.matrix()
        target = seen.reshape(-1)
        penalty = sigma * np.sqrt(
            2 * np.log(max(self.candidates, 2)) * (design**2).sum(axis=0).mean()
        )
        model: Any = Lasso(
            alpha=penalty / len(target),
            positive=True,
            fit_intercept=False,
            max_iter=20_000,
            tol=1e-6,
        )
        picked = np.flatnonzero(model.fit(design, target).coef_ > 0)
        out = np.zeros(self.candidates)
        if picked.size:
            part = Design(self.touched[:, :, picked], self.offset)
            out[picked] = part.solve_non_negative(seen)
        return out
