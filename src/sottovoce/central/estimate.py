"""A release as an estimate: a table for any attributes, and all that analysis asks of one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from math import prod, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.central.domains import Places, TableDomain
from sottovoce.central.joint_fit import fitted
from sottovoce.central.pair_errors import PairErrors
from sottovoce.central.residuals import Residuals, spread_over, subsets_of
from sottovoce.postprocessing.maximum_entropy import proportional_fits
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.estimate import MarginalEstimate
from sottovoce.questions.marginals.method import Fit, Floats, PairEvidence
from sottovoce.questions.marginals.methods.views import Reconstruction
from sottovoce.questions.marginals.models.ties import tie_variances
from sottovoce.questions.marginals.workload import Workload
from sottovoce.results.words import CLOSED_FORM

NOISE_REPLICATES = 24  # of the noise, behind the errors of what maximum entropy fills in
NOISE_REPLICATE_SEED = 20_240_229
FILLED = "not measured: of maximum entropy given narrower tables; errors are a guess"
REPAIRED = "made non-negative together; errors are those before"


class ReleaseFit(Fit):
    """What a release says of any table, as shares of ``total``."""

    total: float  # people, as far as they are known

    @abstractmethod
    def count_errors(self, places: Places) -> Floats:
        """The standard errors of a table's counts, flat."""


class ResidualFit(ReleaseFit):
    """Tables added up from residuals; beyond ``order`` attributes, of maximum entropy."""

    errors: ClassVar[str] = CLOSED_FORM

    def __init__(self, work: Workload, residuals: Residuals) -> None:
        self.work = work
        self.residuals = residuals
        self.total = max(1.0, residuals.total)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return [self._shares(places) for places in sets]

    def _shares(self, places: Places) -> Floats:
        if self.is_reconstructed(places):
            return self._filled(places, 0)[0]
        return self._unbiased(places)

    def _unbiased(self, places: Places) -> Floats:
        """Shares that sum to one, flat."""
        counts = self.residuals.table(places).ravel()
        if self.residuals.total < 1:  # noise says that there is nobody
            counts = counts + (self.total - self.residuals.total) / counts.size
        return np.asarray(counts / self.total)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        found = []
        for places in sets:
            if self.is_reconstructed(places):
                found.append(self._reconstructed_variances(places))
            else:
                found.append(self._share_variances(places))
        return found

    def _share_variances(self, places: Places) -> Floats:
        """Of the shares count / total, where the noise of the total is in both."""
        # Var[c/T] = (Var c - Var T / N^2 + Var T (1/N - f)^2) / T^2, for N cells
        shares = self._shares(places)
        of_total = float(self.residuals.plan.variance(()))
        of_count = float(self.residuals.plan.cell_variance(places))
        even = 1 / shares.size
        shifted = of_total * (even - shares) ** 2
        return np.asarray((of_count - of_total * even**2 + shifted) / self.total**2)

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        if self.is_reconstructed(places):
            return None
        shape = self.work.shape(places)
        chosen = np.zeros(prod(shape))
        chosen[cells] = 1.0
        of_total = float(self.residuals.plan.variance(()))
        of_counts = self.residuals.sum_variance(places, chosen.reshape(shape))
        even = cells.size / chosen.size
        share = float(self._shares(places)[cells].sum())
        shifted = of_total * (even - share) ** 2
        return (of_counts - of_total * even**2 + shifted) / self.total**2

    def count_errors(self, places: Places) -> Floats:
        # of a table that was not measured: the noise of all of it that was
        variance = float(self.residuals.plan.cell_variance(places))
        if not self.is_reconstructed(places):
            return np.full(self.work.cells(places), sqrt(variance))
        # and what is usually missed of it, by which cells differ
        missed = tie_variances(self.work, places, self._shares(places), self.is_heard)
        return np.asarray(np.sqrt(variance + missed * self.total**2))

    def evidence(self, pairs: Sequence[Places]) -> Sequence[PairEvidence] | None:
        if any(self.is_reconstructed(pair) for pair in pairs):
            return None
        return [self._pair(pair) for pair in pairs]

    def _pair(self, pair: Places) -> PairErrors:
        table = self._unbiased(pair).reshape(self.work.shape(pair))
        parts = (pair[:1], pair[1:], pair)
        variance = self.residuals.plan.variance
        rows, columns, both = (sqrt(variance(part)) / self.total for part in parts)
        return PairErrors(table, (rows, columns, both), max(1, round(self.total)))

    def is_unbiased(self, places: Places) -> bool:
        return not self.is_reconstructed(places)

    def is_reconstructed(self, places: Places) -> bool:
        return len(places) > self.work.order

    def is_heard(self, part: Places) -> bool:
        return len(part) <= self.work.order

    # -- beyond what was measured

    def _filled(self, places: Places, replicates: int) -> list[Floats]:
        """Maximum entropy given all tables of ``order`` of some attributes.

        Args:
            places: More attributes than that.
            replicates: How many times noise is drawn again.

        Returns:
            The table of the release, and one for each replicate, (cells,) each.
        """
        parts = list(combinations(places, self.work.order))
        axes = [tuple(places.index(place) for place in part) for part in parts]
        tables = [norm_sub(self._replicated(part, replicates)) for part in parts]
        fits = proportional_fits(self.work.shape(places), axes, tables)
        return list(fits.reshape(1 + replicates, -1))

    def _replicated(self, places: Places, replicates: int) -> Floats:
        """A table as it was released, and with as much noise again, (rows, cells)."""
        shape = self.work.shape(places)
        table = self._to_fill_from(places).reshape(shape)
        rows = np.tile(table, (1 + replicates, *([1] * len(shape))))
        for own in subsets_of(places)[1:]:
            noise = self._noise_again(own, replicates)
            for row in range(replicates):
                rows[1 + row] += spread_over(noise[row], own, places, shape)
        return rows.reshape(1 + replicates, -1)

    def _to_fill_from(self, places: Places) -> Floats:
        """The shares of a table that was measured, as maximum entropy takes them."""
        return self._shares(places)

    def _noise_again(self, own: Places, replicates: int) -> Floats:
        """Noise like that of a residual, the same whichever table it is for."""
        draws = np.random.Generator(np.random.PCG64([NOISE_REPLICATE_SEED, *own]))
        deviation = sqrt(self.residuals.plan.variance(own)) / self.total
        noise = deviation * draws.standard_normal((replicates, *self.work.shape(own)))
        for axis in range(1, noise.ndim):
            noise -= noise.mean(axis=axis, keepdims=True)
        return noise

    def _reconstructed_variances(self, places: Places) -> Floats:
        table, *again = self._filled(places, NOISE_REPLICATES)
        spread = ((np.array(again) - table) ** 2).mean(axis=0)
        return np.asarray(spread + tie_variances(self.work, places, table, self.is_heard))


class FilledFit(ResidualFit):
    """Unbiased tables as far as they were measured; wider ones from those fitted together."""

    @cached_property
    def model(self) -> Reconstruction:
        """The repaired tables."""
        return fitted(self.residuals, self.total)

    def _to_fill_from(self, places: Places) -> Floats:
        return np.asarray(self.model.known(places)[0])

    def remark(self, places: Places) -> str:
        return FILLED if self.is_reconstructed(places) else ""


class FittedFit(FilledFit):
    """The same residuals fitted together, so that no count is negative."""

    errors: ClassVar[str] = f"{CLOSED_FORM}, before repair"

    def _shares(self, places: Places) -> Floats:
        if self.is_reconstructed(places):
            return self._filled(places, 0)[0]
        return np.asarray(self.model.known(places)[0])

    def is_unbiased(self, places: Places) -> bool:
        return False

    def remark(self, places: Places) -> str:
        return FILLED if self.is_reconstructed(places) else REPAIRED


def release_estimate(
    domain: TableDomain, fit: ReleaseFit, order: int, method: str
) -> MarginalEstimate:
    """What analysis takes for the estimate of a question for marginals.

    Args:
        domain: The attributes and their values.
        fit: What was released.
        order: How many attributes the largest released tables have.
        method: Its name.
    """
    work = workload_of(domain, order)
    people = max(1, round(fit.total))
    return MarginalEstimate.of_fit(work, fit, method, people, domain.schema)


def workload_of(domain: TableDomain, order: int) -> Workload:
    """All tables of ``order`` attributes."""
    return Workload(domain.names, domain.sizes, order)


def residual_fit(
    domain: TableDomain, residuals: Residuals, repair: str, is_filled: bool = False
) -> ResidualFit:
    """What residuals say of any table.

    Args:
        domain: The attributes and their values.
        residuals: As they were measured.
        repair: ``none``, or ``simplex`` for shares that are not negative.
        is_filled: whether wider tables than were measured are released, too.
    """
    work = workload_of(domain, residuals.plan.order)
    if repair == "simplex":
        return FittedFit(work, residuals)
    return FilledFit(work, residuals) if is_filled else ResidualFit(work, residuals)
