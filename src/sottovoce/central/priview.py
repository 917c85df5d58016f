"""PriView: a few views that cover all pairs, made consistent, and maximum entropy beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from sottovoce.accounting import GaussianStep, LaplaceStep, Ledger, Step, mu_of, rounded_variance
from sottovoce.central.cells import tuple_counts
from sottovoce.central.domains import Places, TableDomain, exact_counts
from sottovoce.central.estimate import ReleaseFit, release_estimate, workload_of
from sottovoce.central.measured_orders import USUAL_PEOPLE, known_people
from sottovoce.central.method import (
    CentralTable,
    Integers,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
)
from sottovoce.central.pair_errors import PairErrors
from sottovoce.central.priview_views import (
    MAX_RELEASED_VIEW_CELLS,
    candidates,
    chosen_views,
    expected_error,
)
from sottovoce.central.residual import check_options, why_not_known
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import discrete_gaussian, discrete_laplace
from sottovoce.postprocessing.consistency import Overlap
from sottovoce.questions.marginals.method import Floats, PairEvidence
from sottovoce.questions.marginals.methods.calm import CalmFit
from sottovoce.questions.marginals.methods.view_designs import Views
from sottovoce.questions.marginals.methods.views import (
    CROWD_REPLICATES,
    REPLICATE_SEED,
    ViewsHeard,
    checked_views,
)
from sottovoce.questions.marginals.workload import Workload

Noise = Literal["laplace", "gaussian"]
NOISES = ("auto", "laplace", "gaussian")
MAX_PRIVIEW_CELLS = 1 << 22  # of all tables together: each cell's error is found by replicates


@dataclass(frozen=True)
class ViewNoise:
    """The noise of every cell of every view.

    Attributes:
        kind: of the noise.
        scale: of Laplace noise its scale, of Gaussian noise its variance.
        step: what a ledger holds.
    """

    kind: Noise
    scale: Fraction
    step: Step

    @property
    def variance(self) -> float:
        """Of a cell; of Laplace noise of scale b it is 2 b^2."""
        scale = float(self.scale)
        return 2 * scale**2 if self.kind == "laplace" else scale

    def draw(self, count: int, entropy: Entropy) -> Integers:
        """Exact noise, once a ledger has the step."""
        if self.kind == "laplace":
            return discrete_laplace(self.scale, count, entropy)
        return discrete_gaussian(self.scale, count, entropy)

    def again(self, shape: tuple[int, ...], draws: np.random.Generator) -> Floats:
        """Noise like it, for replicates; not for a release."""
        if self.kind == "laplace":
            return draws.laplace(0.0, float(self.scale), shape)
        return sqrt(self.scale) * draws.standard_normal(shape)


def laplace_noise(terms: ReleaseTerms, views: int) -> ViewNoise:
    """Pure: Lap(m / eps) for m views, twice that if people are replaced (docs/errata, 13)."""
    moved = views if terms.neighbours == "add-remove" else 2 * views
    scale = Fraction(moved) / Fraction(terms.epsilon)
    step = LaplaceStep("views", f"{views} views", Fraction(moved), scale)
    return ViewNoise("laplace", scale, step)


def gaussian_noise(terms: ReleaseTerms, views: int) -> ViewNoise:
    """The least variance that keeps epsilon and delta."""
    moved = views if terms.neighbours == "add-remove" else 2 * views
    epsilon, delta = float(terms.epsilon), float(terms.delta)
    variance = moved / Fraction(mu_of(epsilon, delta)) ** 2
    while True:
        variance = rounded_variance(variance)
        step = GaussianStep.of_counts("views", f"{views} views", views, variance, terms.neighbours)
        # what the noise's lattice costs is taken off first; more variance makes it cost less
        left = epsilon - float(step.lattice_loss or 0) * (1 + 1e-9)
        if left > 0:
            break
        variance *= 2
    variance = max(variance, rounded_variance(moved / Fraction(mu_of(left, delta)) ** 2))
    step = GaussianStep.of_counts("views", f"{views} views", views, variance, terms.neighbours)
    return ViewNoise("gaussian", variance, step)


def view_noise(terms: ReleaseTerms, views: int) -> ViewNoise:
    """The noise for so many views; where the choice is open, the one that varies less."""
    asked = str(terms.options.get("noise", "auto"))
    if asked not in NOISES:
        raise InvalidInput(f"noise ({asked}) must be one of {', '.join(NOISES)}")
    if asked == "laplace" or terms.delta == 0:
        if asked == "gaussian":
            raise InvalidInput("noise (gaussian) needs a delta greater than 0")
        return laplace_noise(terms, views)
    gaussian = gaussian_noise(terms, views)
    if asked == "gaussian":
        return gaussian
    laplace = laplace_noise(terms, views)
    return min(laplace, gaussian, key=lambda noise: noise.variance)


@dataclass(frozen=True)
class NoisyViews(ViewsHeard):
    """The views' noisy tables as shares, where local methods have those of their cohorts."""

    law: ViewNoise
    total: float  # people, as far as they are known

    @classmethod
    def of(
        cls, sizes: Sequence[int], views: Views, counts: Sequence[Integers], law: ViewNoise
    ) -> NoisyViews:
        """The views from their noisy counts.

        Args:
            sizes: Of the attributes.
            views: Their attributes.
            counts: Of each view, flat.
            law: Of the noise.
        """
        overlap = Overlap(sizes, views)
        # every view tells how many people there are, with the noise of all its cells
        sums = np.array([float(cells.sum()) for cells in counts])
        total = max(1.0, float(np.average(sums, weights=1 / overlap.lengths)))
        cells = overlap.pack([own / total for own in counts])
        people = max(1, round(total))
        noise = np.full(overlap.cells, law.variance / total**2)
        each = np.full(len(views), people)
        return cls(overlap, cells, noise, each, people, (), law, total)

    @cached_property
    def weights(self) -> Floats:
        return np.full(len(self.overlap.views), self.total**2 / self.law.variance)

    def again(self, fitted: Floats, replicates: int = CROWD_REPLICATES) -> Floats:
        draws = np.random.Generator(np.random.PCG64(REPLICATE_SEED))
        noise = self.law.again((replicates, self.overlap.cells), draws)
        return np.asarray(self.overlap.project(fitted) + noise / self.total)


class PriViewFit(CalmFit, ReleaseFit):
    """Consistent views that are not negative; maximum entropy for what no view holds."""

    heard: NoisyViews

    def __init__(self, work: Workload, heard: NoisyViews) -> None:
        super().__init__(work, heard)
        self.total = heard.total

    def count_errors(self, places: Places) -> Floats:
        (variances,) = self.variances([places])
        return np.asarray(self.total * np.sqrt(variances))

    def evidence(self, pairs: Sequence[Places]) -> Sequence[PairEvidence] | None:
        if not all(self.is_known(pair) for pair in pairs):
            return None
        return [self._pair(pair) for pair in pairs]

    def _pair(self, pair: Places) -> PairErrors:
        """The average of the views that hold a pair, before any repair."""
        overlap = self.heard.overlap
        shape = self.work.shape(pair)
        table = overlap.table(self._unrepaired, pair).reshape(shape)
        rows, columns, both = (self._deviation(part) for part in (pair[:1], pair[1:], pair))
        return PairErrors(table, (rows, columns, both), self.heard.everybody)

    def _deviation(self, part: Places) -> float:
        """Of an orthonormal contrast of some attributes."""
        contrasts = prod(size - 1 for size in self.work.shape(part))
        return sqrt(self._part_noise(part) / contrasts)


class PriView(ReleaseMethod):
    """Tables of a few covering views with noise, and others by maximum entropy.

    Options:
        views: lists of places, to choose them.
        noise: laplace, gaussian, or auto for what varies less; by default auto.
        expected_people: a public guess by which views are chosen.
        may_be_empty: the attributes for which to be empty counts as a value; by default none.

    Guarantee: epsilon-DP with Laplace noise, (epsilon, delta)-DP with Gaussian noise, for one user,
               of whom one row counts; add-remove or replace-one.
    Assumes:   uniform entropy; attributes and their values are public.
    Source:    qardaji2014priview; zhang2018calm, section 4.1; its scale by docs/errata (13).
    Checked:   tests/unit/test_priview.py
    """

    name: ClassVar[str] = "priview"
    about: ClassVar[str] = "covering views made consistent, maximum entropy beyond them"
    source: ClassVar[str] = "qardaji2014priview"
    options: ClassVar[tuple[str, ...]] = ("views", "noise", "expected_people", "may_be_empty")

    def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        """Why the method does not fit.

        Args:
            table: Whose attributes and values count, not its rows.
            terms: What is promised, with the options of the class.
        """
        why = self._refuse_views(table, terms)
        if why is not None:
            return why
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        return domain.why_too_large(terms.up_to, MAX_PRIVIEW_CELLS)

    def _refuse_views(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        """Why no views can be counted, however many tables are listed from them."""
        check_options(self, terms)
        why = why_not_known(table, terms)
        if why is not None:
            return why
        view_noise(terms, 1)
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        work = workload_of(domain, terms.up_to)
        if "views" in terms.options:
            return _too_wide(work, self.views(work, terms))
        if not candidates(work):
            return (
                f"no views of up to {MAX_RELEASED_VIEW_CELLS:,} cells cover all pairs of attributes"
            )
        return None

    def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
        people = known_people(table, terms)
        if people is None:
            return None
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        views = self.views(workload_of(domain, terms.up_to), terms, people)
        errors = []
        for count in range(1, terms.up_to + 1):
            work = workload_of(domain, count)
            error = expected_error(work, views, _variance_by(terms), people)
            errors.append(error * people**2 / work.mean_cells)
        return float(np.mean(errors))

    def views(self, work: Workload, terms: ReleaseTerms, people: int | None = None) -> Views:
        """Those that are asked for, or the best ones by public facts.

        Args:
            work: The tables that matter.
            terms: What is promised, with the options.
            people: About how many there are; a usual number if nothing is known.
        """
        if "views" in terms.options:
            return checked_views(self.name, terms.options["views"], len(work.names))
        return chosen_views(work, _variance_by(terms), people or USUAL_PEOPLE)

    def fit(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> PriViewFit:
        """Spend and draw: what is released, before it is listed."""
        why = self._refuse_views(table, terms)
        if why is not None:
            raise InvalidInput(f"method (priview) does not fit: {why}")
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        work = workload_of(domain, terms.up_to)
        views = self.views(work, terms, known_people(table, terms))
        law = view_noise(terms, len(views))
        exact = exact_counts(table, domain, views, entropy)
        ledger.spend(law.step)
        noisy = []
        for view in views:
            counts = exact[view].ravel()
            noisy.append(counts + law.draw(counts.size, entropy))
        return PriViewFit(work, NoisyViews.of(domain.sizes, views, noisy, law))

    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        why = self.refuse(table, terms)
        if why is not None:
            raise InvalidInput(f"method (priview) does not fit: {why}")
        domain = TableDomain.of(table, terms.options.get("may_be_empty", ()))
        fit = self.fit(table, terms, ledger, entropy)
        tuples = tuple_counts(domain, terms.up_to, fit)
        estimate = release_estimate(domain, fit, terms.up_to, self.name)
        return ReleasedCounts(tuples, _notes(fit.heard), estimate)


def _variance_by(terms: ReleaseTerms) -> Any:
    """From how many views there are to the variance of a cell's noise."""
    return lambda views: view_noise(terms, views).variance


def _too_wide(work: Workload, views: Views) -> str | None:
    for view in views:
        if work.cells(view) > MAX_RELEASED_VIEW_CELLS:
            return f"a view has {work.cells(view):,} cells, more than {MAX_RELEASED_VIEW_CELLS:,}"
    return None


def _notes(heard: NoisyViews) -> tuple[str, ...]:
    law, views = heard.law, heard.overlap.views
    kind = "Laplace noise (pure privacy)" if law.kind == "laplace" else "Gaussian noise"
    widths = sorted({len(view) for view in views})
    wide = " to ".join(str(width) for width in dict.fromkeys((widths[0], widths[-1])))
    return (
        f"{len(views)} views of {wide} attributes were counted, with {kind}.",
        "Counts are made consistent and not negative, so they are biased; tables that no view "
        "holds are of maximum entropy.",
        "Every combination of values is listed, also those that nobody may have.",
        "Of a user with several rows one row counts, drawn at random.",
    )
