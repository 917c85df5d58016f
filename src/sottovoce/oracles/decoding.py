"""Linear decoding: what cohorts with different hashes saw, solved for candidates' frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported

Floats = NDArray[np.float64]

MAX_DESIGN_NUMBERS = 1 << 22  # numbers of the design that are held at once: 32 MiB
LEAST_EIGENVALUE = 1e-9  # of the largest: what is smaller, no report tells of


@dataclass(frozen=True, eq=False)
class Design:
    """Which cells of each cohort every candidate touches, and what follows for its frequency.

    T_x in {0, 1} are the cells of value x in all cohorts. What the cohorts saw, z, has the mean
    sum_x f_x T_x over all values that people hold.

    A list that holds them all (``is_complete``) has frequencies that sum to 1:

        f = 1/S + B (z - mean T),  B = (R'R)^+ R',  R = T - its mean over the candidates
                                                                kairouz2016discrete, eq. (18)

    Beside any other list there are people whose values are on none. Their hashes have nothing to do
    with the list's: on average over hashes they touch all cells of a cohort alike, and a constant
    for each cohort takes them up:

        f = B z,  B = (R'R)^+ R',  R = T - its mean over the cells of a cohort

    ^+ is the pseudo-inverse: with fewer cells than candidates, of all answers that fit equally well
    the smallest one.

    Args:
        places: the cell of each hash of each candidate, (cohorts, hashes, candidates).
        buckets: cells of a cohort.
        is_complete: whether the candidates hold all that people say.
    """

    places: NDArray[np.int32]
    buckets: int
    is_complete: bool

    @property
    def cohorts(self) -> int:
        return int(self.places.shape[0])

    @property
    def candidates(self) -> int:
        return int(self.places.shape[2])

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """T for some cohorts after the other: (cohorts, buckets, candidates), in {0, 1}."""
        step = max(1, MAX_DESIGN_NUMBERS // (self.buckets * self.candidates))
        column = np.arange(self.candidates)
        for start in range(0, self.cohorts, step):
            part = slice(start, min(start + step, self.cohorts))
            places = self.places[part]
            row = np.arange(len(places))[:, None]
            touched = np.zeros((len(places), self.buckets, self.candidates))
            for each in range(places.shape[1]):
                touched[row, places[:, each], column] = 1
            yield part, touched

    def rows(self, touched: Floats) -> Floats:
        """R for a block of T."""
        even = touched.mean(axis=2 if self.is_complete else 1, keepdims=True)
        return np.asarray(touched - even)

    # -- the normal equations, all (candidates, candidates)

    def _shared(self) -> tuple[Floats, Floats]:
        """T'T, the cells that two candidates share, and T'J T/k for J that sums a cohort's cells.

        Cells are counted in 32-bit floats, which are exact below 2^24.
        """
        shared = np.zeros((self.candidates, self.candidates))
        taken = np.empty((self.cohorts, self.candidates))
        for part, touched in self.blocks():
            cells = touched.reshape(-1, self.candidates).astype(np.float32)
            shared += cells.T @ cells
            taken[part] = touched.sum(axis=1)
        return shared, taken.T @ taken / self.buckets

    @cached_property
    def cross(self) -> Floats:
        """R'T."""
        shared, even = self._shared()
        return np.asarray(shared - (shared.mean(axis=0) if self.is_complete else even))

    @cached_property
    def gram(self) -> Floats:
        """R'R."""
        if not self.is_complete:
            return self.cross
        return np.asarray(self.cross - self.cross.mean(axis=1, keepdims=True))

    @cached_property
    def _eigen(self) -> tuple[Floats, Floats]:
        """The eigenvalues of R'R that are not zero, and their vectors, (candidates, rank)."""
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > LEAST_EIGENVALUE * max(float(values[-1]), 1.0)
        return values[kept], vectors[:, kept]

    @property
    def rank(self) -> int:
        """How many independent sums of frequencies the reports tell of."""
        return len(self._eigen[0])

    @property
    def is_identified(self) -> bool:
        """Whether the reports tell every candidate's frequency."""
        return self.rank >= self.candidates - self.is_complete

    @cached_property
    def inverse(self) -> Floats:
        """(R'R)^+."""
        values, vectors = self._eigen
        inverse: Floats = (vectors / values) @ vectors.T
        return inverse

    @cached_property
    def unseen(self) -> Floats:
        """The projection on what no report tells of."""
        vectors = self._eigen[1]
        left = np.eye(self.candidates) - vectors @ vectors.T
        return left - 1 / self.candidates if self.is_complete else left

    # -- answers

    def moments(self, seen: Floats) -> Floats:
        """R'z for what cohorts saw, (cohorts, buckets)."""
        total = np.zeros(self.candidates)
        for part, touched in self.blocks():
            total += np.tensordot(seen[part], self.rows(touched), axes=2)
        return total

    def solve(self, seen: Floats) -> Floats:
        """The least-squares frequencies for what cohorts saw, (cohorts, buckets)."""
        moments = self.moments(seen)
        if not self.is_complete:
            return np.asarray(self.inverse @ moments)
        return np.asarray(1 / self.candidates + self.inverse @ (moments - self.cross.mean(axis=1)))

    def _reduced(self, seen: Floats) -> tuple[Floats, Floats]:
        """(A, y) of ``rank`` rows with |A f - y|^2 = |R f - z|^2, up to a constant.

        Returns:
            A, (rank, candidates), and y, (rank,).
        """
        values, vectors = self._eigen
        scale = np.sqrt(values)
        return vectors.T * scale[:, None], vectors.T @ self.moments(seen) / scale

    def solve_non_negative(self, seen: Floats) -> Floats:
        """Least squares under f >= 0: biased, never negative."""
        nnls = imported("scipy.optimize").nnls

        design, target = self._reduced(seen)
        solved: Floats = nnls(design, target, maxiter=50 * self.candidates)[0]
        return solved

    def solve_sparse(self, seen: Floats, sigma: float) -> Floats:
        """LASSO picks candidates, least squares under f >= 0 weighs them: biased, sparse.

        ``sigma``: standard error of a cell of ``seen``. The penalty is the universal one, sigma
        sqrt(2 ln S) times the norm of a column, so that a candidate nobody holds is picked seldom.
        """
        Lasso = imported("sklearn.linear_model").Lasso

        design, target = self._reduced(seen)
        norm = np.diag(self.gram).mean()
        penalty = sigma * np.sqrt(2 * np.log(max(self.candidates, 2)) * norm)
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
            part = Design(self.places[:, :, picked], self.buckets, self.is_complete)
            out[picked] = part.solve_non_negative(seen)
        return out
