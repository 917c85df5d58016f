"""The joint fit: one table of all attributes (or of those asked for) that explains all views at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.oracles import Oracle
from sottovoce.postprocessing.consistency import Overlap, contrasts
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Floats
from sottovoce.questions.marginals.methods.calm import (
    MOST_CELLS,
    Calm,
    Domain,
    covering,
    derived_noise,
    half_sum_oracle,
    is_sure,
    surest,
    views_coverage,
)
from sottovoce.questions.marginals.methods.views import ViewFit, tie_square
from sottovoce.questions.marginals.models.designs import MOST_BLOCKS, completed, cover, drawn
from sottovoce.questions.marginals.models.loglinear import maximum_entropy
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.workload import Places, Workload

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_JOINT = 1 << 20  # cells up to which one table of all attributes is fitted
MOST_REPLAYED_JOINT = 1 << 14  # the same for simulated crowds; beyond, each table asked for is fitted by itself
MOST_NEWTON = 4e6  # cells x features^2 of one table up to which it is solved by Newton steps
ENOUGH = 0.05  # standard errors that a fitted coefficient may still be off its optimum
STEPS = 600
LARGEST_SIZE = 8  # of a view, among those tried


def unit_contrasts(size: int) -> Floats:
    """The contrasts of an attribute with mean square 1, which makes their products alike for every size."""
    return np.asarray(contrasts(size)[1:] * np.sqrt(size))


class Halves:
    """Means of products of contrasts under a large table, and their adjoint, by two small matrices.

    The table is cut into two halves of its axes. A product of contrasts is a row of the one matrix times a row of the
    other, so all means come from two matrix products, and only those of the halves' own parts are ever listed.
    """

    def __init__(self, shape: tuple[int, ...], sets: Sequence[Places]) -> None:
        cuts = range(len(shape) + 1)
        cut = min(cuts, key=lambda at: max(prod(shape[:at]), prod(shape[at:])))
        self.shape = shape
        self.flat = (prod(shape[:cut]), prod(shape[cut:]))
        rows: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
        pairs = []
        for own in sets:
            for functions in product(*(range(shape[axis] - 1) for axis in own)):
                parts = tuple(zip(own, functions, strict=True))
                first = tuple(part for part in parts if part[0] < cut)
                last = tuple(part for part in parts if part[0] >= cut)
                pairs.append((rows[0].setdefault(first, len(rows[0])), rows[1].setdefault(last, len(rows[1]))))
        self.pairs: NDArray[np.int64] = np.array(pairs, np.int64).reshape(-1, 2).T
        kind: Any = np.float64 if prod(shape) <= MOST_REPLAYED_JOINT else np.float32
        self.left: Any = _products(shape, range(cut), rows[0]).astype(kind)
        self.right: Any = _products(shape, range(cut, len(shape)), rows[1]).astype(kind)

    def means(self, table: Floats) -> Floats:
        """The features' means under a table of two halves."""
        return np.asarray((self.left @ table @ self.right.T)[self.pairs[0], self.pairs[1]], dtype=np.float64)

    def energy(self, eta: Floats) -> Floats:
        """The sum of the features, each times its own factor, in every cell."""
        factors = np.zeros((len(self.left), len(self.right)), self.left.dtype)
        factors[self.pairs[0], self.pairs[1]] = eta
        return np.asarray(self.left.T @ factors @ self.right)


def _products(shape: tuple[int, ...], axes: Sequence[int], names: Mapping[Any, int]) -> Floats:
    out = []
    for name in names:
        chosen = dict(name)
        row = np.ones(1)
        for axis in axes:
            values = unit_contrasts(shape[axis])[chosen[axis]] if axis in chosen else np.ones(shape[axis])
            row = np.outer(row, values).ravel()
        out.append(row)
    return np.array(out)


def solve(halves: Halves, targets: Floats, variances: Floats, start: Floats | None = None) -> tuple[Floats, Floats]:
    """(table, factors): the least of relative entropy to uniform plus sum of (mean - target)^2 / (2 variance).

    This is the dual, minimised in the features' factors eta: log sum exp(eta . F) - eta . target + sum V eta^2 / 2.
    Exponentials of factors are what entropic mirror descent walks through too; here the steps are quasi-Newton ones.
    """
    optimize = imported("scipy.optimize")

    errors = np.sqrt(variances)
    slope = np.zeros(len(targets))

    def table_of(eta: Floats) -> tuple[float, Floats]:
        energy = halves.energy(eta)
        top = float(energy.max())
        table = np.exp(energy - energy.dtype.type(top))
        total = float(table.sum(dtype=float))
        table /= energy.dtype.type(total)
        return top + float(np.log(total)), table

    def objective(eta: Floats) -> tuple[float, Floats]:
        level, table = table_of(eta)
        slope[:] = halves.means(table) - targets + variances * eta
        return level - float(eta @ targets) + 0.5 * float(variances @ eta**2), slope.copy()

    def enough(_: Floats) -> None:
        if float(np.abs(slope / errors).max(initial=0.0)) < ENOUGH:
            raise StopIteration

    begin = np.zeros(len(targets)) if start is None else start
    with one_thread():
        minimize: Any = optimize.minimize
        found = minimize(
            objective,
            begin,
            jac=True,
            method="L-BFGS-B",
            callback=enough,
            options={"maxiter": STEPS, "maxcor": 30, "ftol": 1e-13, "gtol": 1e-9},
        )
        return table_of(found.x)[1].astype(float).reshape(halves.shape), found.x


class Entropic:
    """Tables of any attributes that explain shared coefficients best and are else as even as can be."""

    def __init__(self, overlap: Overlap, coefficients: Floats, weights: Floats, most_joint: int) -> None:
        self.overlap = overlap
        self._all = [own for own in overlap.starts if own]
        self._masks = [sum(1 << place for place in own) for own in self._all]
        scales = np.ones(overlap.parts)
        variances = np.ones(overlap.parts)
        shared = overlap.weights(weights)
        for own in self._all:
            span = self.span(own)
            cells = prod(overlap.sizes[place] for place in own)
            scales[span] = np.sqrt(cells)
            # of the coefficient 1/(cells x weight), times the square of the scale of a unit contrast
            variances[span] = 1 / shared[span]
        self.targets = np.atleast_2d(coefficients) * scales
        self.variances = variances
        self.rows = len(self.targets)
        self.is_joint = prod(overlap.sizes) <= most_joint
        self._tables: dict[Places, Floats] = {}

    def span(self, own: Places) -> slice:
        """Where the coefficients of a set lie."""
        start = self.overlap.starts[own]
        return slice(start, start + prod(self.overlap.sizes[place] - 1 for place in own))

    @cached_property
    def joint(self) -> Floats | None:
        """The tables of all attributes, if there are not too many cells."""
        everything = tuple(range(len(self.overlap.sizes)))
        return self._fitted(everything).reshape(self.rows, *self.overlap.sizes) if self.is_joint else None

    def table(self, places: Places) -> Floats:
        """The table of a set of places, one row per row of coefficients."""
        if places not in self._tables:
            joint = self.joint
            if joint is None:
                self._tables[places] = self._fitted(places)
            else:
                others = tuple(axis + 1 for axis in range(joint.ndim - 1) if axis not in places)
                self._tables[places] = joint.sum(axis=others).reshape(self.rows, -1)
        return self._tables[places]

    known = table

    def views(self) -> Floats:
        """The fitted tables of all views, in the overlap's layout."""
        return np.concatenate([self.table(self.overlap.views[number]) for number in self.overlap.order], axis=1)

    def _fitted(self, places: Places) -> Floats:
        whole = sum(1 << place for place in places)
        sets = [own for own, mask in zip(self._all, self._masks, strict=True) if mask & whole == mask]
        shape = tuple(self.overlap.sizes[place] for place in places)
        if not sets:
            return np.full((self.rows, prod(shape)), 1 / prod(shape))
        axes = [tuple(places.index(place) for place in own) for own in sets]
        chosen = np.concatenate([np.arange(self.span(own).start, self.span(own).stop) for own in sets])
        targets, variances = self.targets[:, chosen], self.variances[chosen]
        if prod(shape) * len(chosen) ** 2 <= MOST_NEWTON:
            slack = np.broadcast_to(variances, targets.shape)
            with one_thread():
                return maximum_entropy(_features(shape, tuple(axes)), targets, slack)
        halves, start, tables = Halves(shape, axes), None, []
        for row in targets:
            table, start = solve(halves, row, variances, start)
            tables.append(table.ravel())
        return np.stack(tables)


@lru_cache(maxsize=64)
def _features(shape: tuple[int, ...], sets: tuple[Places, ...]) -> Floats:
    """Cells x features: the products of unit contrasts of each set of axes."""
    halves = Halves(shape, sets)
    left, right = halves.left[halves.pairs[0]], halves.right[halves.pairs[1]]
    return np.ascontiguousarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1).T, dtype=float)


class JointFit(ViewFit):
    """One table behind all views; ``joint`` is that table if it has few enough cells."""

    def source(self, cells: Floats, *, is_replayed: bool) -> Entropic:
        overlap, weights = self.heard.overlap, self.heard.weights
        coefficients = overlap.averages(cells, overlap.averager(weights))
        return Entropic(overlap, coefficients, weights, MOST_REPLAYED_JOINT if is_replayed else MOST_JOINT)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        """What the simulated crowds say, and what the pull toward even tables may hide from all of them alike."""
        return [found + self._pull(places) for places, found in zip(sets, super().variances(sets), strict=True)]

    def _pull(self, places: Places) -> float:
        """The expected squared bias of a cell."""
        # a unit contrast of variance V is pulled from c to about c / (1 + V), so the bias is c V / (1 + V)
        total = 0.0
        for count in range(1, min(3, len(places)) + 1):
            for own in combinations(places, count):
                if self.model.overlap.knows(own):
                    square = self.pair_tie if count == 2 else tie_square(self.work, own)
                    variance = self.model.variances[self.model.span(own)]
                    total += square * float(((variance / (1 + variance)) ** 2).sum())
        return total / self.work.cells(places) ** 2

    @property
    def joint(self) -> Floats | None:
        """The fitted table of all attributes, one axis each, from which records can be drawn; None if too large."""
        found = self.model.joint
        return None if found is None else np.asarray(found[0])


class Joint(Calm):
    """Views as CALM's, of the size that predicts the least error, explained by one table all at once.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 4 for the views; relative entropy and squared errors over variances for the fit.
    """

    name: ClassVar[str] = "joint"
    about: ClassVar[str] = "views of a few attributes explained by one table at once"
    source: ClassVar[str] = "docs/marginals.md"

    def noise(self, domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
        return derived_noise(domain, epsilon, size, people)

    def oracle(self, size: int, epsilon: Decimal) -> Oracle:
        return half_sum_oracle(size, epsilon)

    def choose(self, work: Workload, terms: Terms, theta: Fraction) -> tuple[Places, ...]:
        """Of the views of every size, random or covering, those with the least predicted error.

        Every pair of the workload lies in one of them, and is all but sure to be heard of; or as nearly so as can be.
        """
        domain = self.domain(work)
        limit = min(MOST_BLOCKS, terms.people, max(1, int(theta * terms.people)))
        best = np.inf
        views: tuple[Places, ...] | None = None
        others: list[tuple[Places, ...]] = []  # designs of which some pairs may not be heard
        for size in range(min(2, domain.order), min(domain.points, LARGEST_SIZE) + 1):
            if domain.largest_view(size) > MOST_CELLS:
                break
            errors = {}
            for design in self._designs(work, size, limit):
                if not is_sure(work, design, terms.people):
                    others.append(design)
                    continue
                parts = self.expected(work, terms, design)
                errors[parts.noise + parts.reconstruction] = design
            if errors and min(errors) > 2 * best:
                break  # larger views only bring more noise
            if errors and min(errors) < best:
                best, views = min(errors), errors[min(errors)]
        return views or surest(work, others, terms.people) or drawn(domain.points, min(2, domain.points), limit)

    def _designs(self, work: Workload, size: int, limit: int) -> list[tuple[Places, ...]]:
        """Views of a size that hold every pair of the workload: at random if that does, and by covering designs."""
        points, order = len(work.sizes), work.order
        random = drawn(points, size, limit)
        designs = {random}
        if views_coverage(work, random).left_out:
            designs = {completed(points, size, random, work.parts), covering(work, size)}
        if size >= order:
            designs.add(cover(points, size, order, limit) or random)
        return sorted(design for design in designs if not views_coverage(work, design).left_out)

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Fit:
        return JointFit(work, self.heard(work, aggregate, options))
