"""The joint fit: a table of all attributes, or of those asked for, explains all views.

A table is described by the means of its features: products of contrasts, one contrast for each
attribute of a set. The fit is the most even table whose means lie near those estimated by views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import inf, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.oracles import Oracle
from sottovoce.postprocessing.consistency import Overlap, contrasts
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Floats
from sottovoce.questions.marginals.methods.calm import (
    MAX_VIEW_CELLS,
    Calm,
    Domain,
    derived_noise,
    half_sum_oracle,
)
from sottovoce.questions.marginals.methods.view_bounds import AlikeViews
from sottovoce.questions.marginals.methods.view_designs import (
    Views,
    at_random,
    is_sure,
    searches,
    surest,
    views_coverage,
)
from sottovoce.questions.marginals.methods.views import ViewFit
from sottovoce.questions.marginals.models.designs import MOST_BLOCKS, drawn
from sottovoce.questions.marginals.models.loglinear import maximum_entropy
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.models.ties import tie_square
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Product = tuple[tuple[int, int], ...]  # (axis, contrast) of each factor

MOST_JOINT = 1 << 20  # cells up to which one table of all attributes is fitted
MOST_REPLAYED_JOINT = 1 << 14  # the same for simulated crowds; beyond, table by table
MOST_NEWTON = 4e6  # cells x features^2 of one table up to which it is solved by Newton steps
ENOUGH = 0.05  # standard errors that a fitted coefficient may still be off its optimum
MOST_OFF = 1.0  # the same beyond which a table of all attributes was not found
MAX_LBFGS_STEPS = 600
LBFGS_MEMORY = 30  # past steps from which the curvature is estimated
QUICK_CELLS = 64  # of a table up to which its error is quickly predicted
LARGEST_VIEW_SIZE = 8  # attributes of a view, among those tried


def unit_contrasts(size: int) -> Floats:
    """The contrasts of an attribute with mean square 1, (size - 1, size).

    That makes their products alike for every size.
    """
    orthonormal = contrasts(size)[1:]  # without the constant
    return np.asarray(orthonormal * np.sqrt(size))


class Halves:
    """Means of products of contrasts under a large table, and their adjoint, by two small matrices.

    The table is cut into two halves of its axes. A product of contrasts is a row of the one matrix
    times a row of the other, so all means come from two matrix products, and only the products
    within each half are ever listed.

    Args:
        shape: That of the table.
        sets: Sets of its axes, increasing; all products of their contrasts are features.

    Attributes:
        flat: (left cells, right cells), the table's shape as a matrix.
        left: The products within the first half, (left rows, left cells).
        right: The products within the second half, (right rows, right cells).
        pairs: For each feature its row of ``left`` and of ``right``, (2, features).
    """

    def __init__(self, shape: tuple[int, ...], sets: Sequence[Places]) -> None:
        # cut where the larger half is smallest
        cuts = range(len(shape) + 1)
        cut = min(cuts, key=lambda at: max(prod(shape[:at]), prod(shape[at:])))
        self.shape = shape
        self.flat = (prod(shape[:cut]), prod(shape[cut:]))

        # a product within a half is named by its (axis, contrast) factors, and numbered as it comes
        left_rows: dict[Product, int] = {}
        right_rows: dict[Product, int] = {}
        pairs = []
        for axes in sets:
            for chosen in product(*(range(shape[axis] - 1) for axis in axes)):
                factors = tuple(zip(axes, chosen, strict=True))
                left_factors = tuple(factor for factor in factors if factor[0] < cut)
                right_factors = tuple(factor for factor in factors if factor[0] >= cut)
                left_row = left_rows.setdefault(left_factors, len(left_rows))
                right_row = right_rows.setdefault(right_factors, len(right_rows))
                pairs.append((left_row, right_row))
        self.pairs: NDArray[np.int64] = np.array(pairs, np.int64).reshape(-1, 2).T

        # large tables in single precision, which takes half the memory
        kind: Any = np.float64 if prod(shape) <= MOST_REPLAYED_JOINT else np.float32
        self.left: Any = _products(shape, range(cut), left_rows).astype(kind)
        self.right: Any = _products(shape, range(cut, len(shape)), right_rows).astype(kind)

    def means(self, table: Floats) -> Floats:
        """The features' means, (features,), under a table of two halves, ``flat``."""
        all_means = self.left @ table @ self.right.T  # (left rows, right rows)
        return np.asarray(all_means[self.pairs[0], self.pairs[1]], dtype=np.float64)

    def energy(self, eta: Floats) -> Floats:
        """The sum of the features, each times its factor of ``eta``, in every cell, ``flat``."""
        factors = np.zeros((len(self.left), len(self.right)), self.left.dtype)
        factors[self.pairs[0], self.pairs[1]] = eta
        return np.asarray(self.left.T @ factors @ self.right)


def _products(shape: tuple[int, ...], axes: Sequence[int], names: Mapping[Product, int]) -> Floats:
    """The products of contrasts that are named, one a row, in all cells of some axes."""
    rows = []
    for factors in names:
        contrast_of = dict(factors)
        row = np.ones(1)
        for axis in axes:
            values = np.ones(shape[axis])
            if axis in contrast_of:
                values = unit_contrasts(shape[axis])[contrast_of[axis]]
            row = np.outer(row, values).ravel()
        rows.append(row)
    return np.array(rows)


def solve(
    halves: Halves,
    targets: Floats,
    variances: Floats,
    start: Floats | None = None,
) -> tuple[Floats, Floats]:
    """The most even table that explains the means of features.

    It has the least relative entropy to uniform + sum of (mean - target)^2 / (2 variance), and is
    found by the dual, in the features' factors eta.
    Exponentials of factors are what entropic mirror descent walks through too; here the steps are
    quasi-Newton ones.

    Args:
        halves: The features F of the table.
        targets: Their estimated means, (features,).
        variances: Those of the estimates, (features,), greater than 0.
        start: The factors to begin with, (features,); zeros, the uniform table, by default.

    Returns:
        The table, of the shape of ``halves``, and the factors of its features, (features,).
    """
    optimize = imported("scipy.optimize")
    errors = np.sqrt(variances)
    slope = np.zeros(len(targets))  # of the last objective, which the callback looks at

    def table_of(eta: Floats) -> tuple[float, Floats]:
        """(log sum exp(eta . F), the table exp(eta . F) / its sum)."""
        energy = halves.energy(eta)
        top = float(energy.max())  # taken out, so that no exponential overflows
        table = np.exp(energy - energy.dtype.type(top))
        total = float(table.sum(dtype=float))
        table /= energy.dtype.type(total)
        return top + float(np.log(total)), table

    def objective(eta: Floats) -> tuple[float, Floats]:
        """The dual and its gradient."""
        # log sum exp(eta . F) - eta . target + sum of V eta^2 / 2
        level, table = table_of(eta)
        slope[:] = halves.means(table) - targets + variances * eta
        value = level - float(eta @ targets) + 0.5 * float(variances @ eta**2)
        return value, slope.copy()

    def stop_when_near(_: Floats) -> None:
        """Noise hides what is left: the means are off by a small part of their standard errors."""
        if float(np.abs(slope / errors).max(initial=0.0)) < ENOUGH:
            raise StopIteration

    begin = np.zeros(len(targets)) if start is None else start
    limits = {"maxiter": MAX_LBFGS_STEPS, "maxcor": LBFGS_MEMORY, "ftol": 1e-13, "gtol": 1e-9}
    with one_thread():
        minimize: Any = optimize.minimize
        optimum = minimize(
            objective,
            begin,
            jac=True,
            method="L-BFGS-B",
            callback=stop_when_near,
            options=limits,
        )
        _, table = table_of(optimum.x)
        return table.astype(float).reshape(halves.shape), optimum.x


class Entropic:
    """Tables of any attributes that explain shared coefficients and are else as even as can be.

    Args:
        overlap: The views and the coefficients that they share.
        coefficients: Averages over views, (coefficients,), or many rows of them.
        weights: What each view's cells weigh: the inverse of a typical variance, (views,).
        most_joint: Cells up to which one table of all attributes is fitted; others are its sums.

    Attributes:
        targets: Means of unit contrasts and their products, (rows, coefficients).
        variances: Those of their errors, (coefficients,).
    """

    def __init__(
        self,
        overlap: Overlap,
        coefficients: Floats,
        weights: Floats,
        most_joint: int,
    ) -> None:
        self.overlap = overlap
        self._sets = [places for places in overlap.starts if places]
        self._masks = [_mask(places) for places in self._sets]
        scales = np.ones(overlap.parts)
        variances = np.ones(overlap.parts)
        shared = overlap.weights(weights)  # (coefficients,)
        for places in self._sets:
            span = self.span(places)
            cells = prod(overlap.sizes[place] for place in places)
            scales[span] = np.sqrt(cells)
            # that of the coefficient, 1/(cells x weight), times the square of its scale
            variances[span] = 1 / shared[span]
        self.targets = np.atleast_2d(coefficients) * scales
        self.variances = variances
        self.rows = len(self.targets)
        self.is_joint = prod(overlap.sizes) <= most_joint
        self._is_off = False  # whether a table that was fitted last does not explain its targets
        self._tables: dict[Places, Floats] = {}

    def span(self, own: Places) -> slice:
        """Where the coefficients of a set lie."""
        start = self.overlap.starts[own]
        count = prod(self.overlap.sizes[place] - 1 for place in own)
        return slice(start, start + count)

    @cached_property
    def joint(self) -> Floats | None:
        """The tables of all attributes, (rows, *sizes); None if there are too many cells, or if
        the steps of the search do not suffice: then every table is fitted by itself.
        """
        if not self.is_joint:
            return None
        everything = tuple(range(len(self.overlap.sizes)))
        table = self._fitted(everything)
        if self._is_off:
            # wide views of large epsilons have more features, and less noise, than the steps allow
            self.is_joint = False
            return None
        return table.reshape(self.rows, *self.overlap.sizes)

    def table(self, places: Places) -> Floats:
        """The table of a set of places, one row per row of coefficients, (rows, cells)."""
        if places not in self._tables:
            joint = self.joint
            if joint is None:
                self._tables[places] = self._fitted(places)
            else:
                attributes = range(joint.ndim - 1)
                others = tuple(axis + 1 for axis in attributes if axis not in places)
                self._tables[places] = joint.sum(axis=others).reshape(self.rows, -1)
        return self._tables[places]

    known = table

    def views(self) -> Floats:
        """The fitted tables of all views, in the overlap's layout, (rows, cells of all views)."""
        tables = [self.table(self.overlap.views[number]) for number in self.overlap.order]
        return np.concatenate(tables, axis=1)

    def _fitted(self, places: Places) -> Floats:
        """The tables of a set of places that explain the coefficients within it, (rows, cells)."""
        whole = _mask(places)
        shape = tuple(self.overlap.sizes[place] for place in places)
        cells = prod(shape)
        inside = []
        for subset, mask in zip(self._sets, self._masks, strict=True):
            if mask & whole == mask:
                inside.append(subset)
        if not inside:
            return np.full((self.rows, cells), 1 / cells)

        axes = [tuple(places.index(place) for place in subset) for subset in inside]
        spans = [self.span(subset) for subset in inside]
        columns = np.concatenate([np.arange(span.start, span.stop) for span in spans])
        targets = self.targets[:, columns]  # (rows, features)
        variances = self.variances[columns]  # (features,)
        if cells * len(columns) ** 2 <= MOST_NEWTON:
            slack = np.broadcast_to(variances, targets.shape)
            with one_thread():
                return maximum_entropy(_features(shape, tuple(axes)), targets, slack)

        halves = Halves(shape, axes)
        factors = None
        tables = []
        self._is_off = False
        for row in targets:
            # simulated crowds lie near one another, so each starts where the last one ended
            table, factors = solve(halves, row, variances, factors)
            tables.append(table.ravel())
            # at the optimum  mean - target + V eta = 0
            slope = halves.means(table.reshape(halves.flat)) - row + variances * factors
            self._is_off |= bool(np.abs(slope / np.sqrt(variances)).max() > MOST_OFF)
        return np.stack(tables)


def _mask(places: Places) -> int:
    """A set of places as the bits of a number."""
    return sum(1 << place for place in places)


@lru_cache(maxsize=64)
def _features(shape: tuple[int, ...], sets: tuple[Places, ...]) -> Floats:
    """The products of unit contrasts of each set of axes, (cells, features)."""
    halves = Halves(shape, sets)
    left = halves.left[halves.pairs[0]]  # (features, left cells)
    right = halves.right[halves.pairs[1]]  # (features, right cells)
    values = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)  # (features, cells)
    return np.ascontiguousarray(values.T, dtype=float)


class JointFit(ViewFit):
    """One table behind all views; ``joint`` is that table if it has few enough cells."""

    def source(self, cells: Floats, *, is_replayed: bool) -> Entropic:
        overlap, weights = self.heard.overlap, self.heard.weights
        coefficients = overlap.averages(cells, overlap.averager(weights))
        most_joint = MOST_REPLAYED_JOINT if is_replayed else MOST_JOINT
        return Entropic(overlap, coefficients, weights, most_joint)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        """What the simulated crowds say, and the pull toward even tables.

        That pull is alike in all crowds, so that they may not show it.
        """
        replayed = super().variances(sets)
        return [errors + self._pull(places) for places, errors in zip(sets, replayed, strict=True)]

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        """Not known: nobody knows which way the pull toward even tables moves a sum."""
        return None

    def _pull(self, places: Places) -> float:
        """The expected squared bias of a cell."""
        # a unit contrast of variance V is pulled from c to c / (1 + V): a bias of c V / (1 + V)
        total = 0.0
        for count in range(1, min(3, len(places)) + 1):
            for subset in combinations(places, count):
                if not self.model.overlap.knows(subset):
                    continue
                square = self.pair_tie if count == 2 else tie_square(self.work, subset)  # c^2
                variance = self.model.variances[self.model.span(subset)]
                pulled = (variance / (1 + variance)) ** 2
                total += square * float(pulled.sum())
        return total / self.work.cells(places) ** 2

    @property
    def joint(self) -> Floats | None:
        """The fitted table of all attributes, one axis each; None if it is too large.

        Records can be drawn from it.
        """
        tables = self.model.joint
        return None if tables is None else np.asarray(tables[0])


def _sizes(domain: Domain) -> list[int]:
    """How many attributes a view may have, of those that are tried."""
    sizes = range(min(2, domain.order), min(domain.points, LARGEST_VIEW_SIZE) + 1)
    return [size for size in sizes if domain.largest_view(size) <= MAX_VIEW_CELLS]


class JointViews(Calm):
    """Views as CALM's, of the size that predicts the least error, explained by one table.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 4, for the views; docs/marginals.md for the fit.
    """

    name: ClassVar[str] = "joint"
    about: ClassVar[str] = "views of a few attributes explained by one table at once"
    source: ClassVar[str] = "docs/marginals.md"

    def noise(self, domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
        return derived_noise(domain, epsilon, size, people)

    def oracle(self, size: int, epsilon: Decimal) -> Oracle:
        return half_sum_oracle(size, epsilon)

    def choose(self, work: Workload, terms: Terms, theta: Fraction) -> Views:
        """Of the views of every size, random or covering, those with the least predicted error.

        Every pair of the workload lies in one of them, and is all but sure to be heard of; or as
        nearly so as can be.
        """
        domain = self.domain(work)
        limit = min(MOST_BLOCKS, terms.people, max(1, int(theta * terms.people)))
        best_error = inf
        best: Views | None = None
        unsure: list[Views] = []  # designs of which some pairs may not be heard
        for size in _sizes(domain):
            by_error: dict[float, Views] = {}
            is_tried = False
            for design in self._designs(work, size, limit):
                if not is_sure(work, design, terms.people):
                    unsure.append(design)
                    continue
                is_tried = True
                parts = self.expected(work, terms, design, 2 * best_error)
                if parts is not None:
                    by_error[parts.error] = design
            if not is_tried:
                continue
            error = min(by_error, default=inf)
            if error > 2 * best_error:
                break  # larger views only bring more noise
            if error < best_error:
                best_error, best = error, by_error[error]
        if best:
            return best
        pairs = min(2, domain.points)
        return surest(work, unsure, terms.people) or drawn(domain.points, pairs, limit)

    def _designs(self, work: Workload, size: int, limit: int) -> list[Views]:
        """Views of a size that hold every pair of the workload."""
        designs = {at_random(work, size, limit)}
        for search in searches(work, size, limit):
            designs.add(search.views() or drawn(len(work.sizes), size, limit))
        return sorted(design for design in designs if not views_coverage(work, design).left_out)

    def _errs_more(self, work: Workload, terms: Terms, most: float) -> bool:
        """The designs that :meth:`choose` looks at are judged, without asking how much each errs.

        Where predictions are quick this stops where :meth:`choose` does. Where attributes are alike
        it makes no long search for covering designs that can be judged beforehand.
        """
        if most == inf:
            return False
        if super()._errs_more(work, terms, most):
            return True
        limit = self._limit(terms)
        alike = self._alike(work, terms) if AlikeViews.fits(work) else None
        is_quick = alike is not None or max(work.sample_cells) <= QUICK_CELLS
        best_error = inf
        for size in _sizes(self.domain(work)):
            designs = {at_random(work, size, limit)}
            is_complete = is_quick  # whether these are all, and their errors are known
            for search in searches(work, size, limit):
                if alike and search.is_long:
                    tables = self.tables(work, max(3, size))
                    if alike.err_more(tables, [size], search.most_views, most):
                        is_complete = False
                        continue
                designs.add(search.views() or drawn(len(work.sizes), size, limit))

            least = inf  # of those that are sure to be heard of
            beyond = max(most, 2 * best_error) if is_quick else most
            for design in designs:
                if views_coverage(work, design).left_out:
                    continue
                parts = self.expected(work, terms, design, beyond)
                if parts is None:
                    continue
                if parts.error <= most:
                    return False
                if is_sure(work, design, terms.people):
                    least = min(least, parts.error)
            if is_complete and least > 2 * best_error:
                break
            best_error = min(best_error, least)
        return True

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        return JointFit(work, self.heard(work, aggregate, options))
