"""CALM: people report a few chosen views, and maximum entropy answers what no view holds.

In the paper's symbols d attributes have tables of k attributes each, answered from m views of l
attributes and L cells, and E = e^epsilon. The d "points" that views are made of are attributes, or
the bits of their codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb, exp, inf, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import plain_option, share, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle, oracle
from sottovoce.protocol.encodings import Cells, Encoding
from sottovoce.protocol.families import Family, ViewFamily, blocks_of
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import view_shares
from sottovoce.questions.marginals.method import Fit, Floats, MarginalMethod, Offer
from sottovoce.questions.marginals.methods.view_bounds import AlikeViews
from sottovoce.questions.marginals.methods.view_designs import (
    Views,
    covering,
    is_sure,
    surest,
    views_coverage,
)
from sottovoce.questions.marginals.methods.view_predictions import Expected, TypicalTables, expected
from sottovoce.questions.marginals.methods.views import (
    Reconstruction,
    ViewFit,
    ViewsHeard,
    contrast_variance,
    is_in_blocks,
    listed,
    read_views,
    view_weights,
)
from sottovoce.questions.marginals.models.designs import MOST_BLOCKS, completed, cover, drawn
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


THETA = "0.001"  # the error that noise or sampling alone may bring, unless a plan says otherwise
MAX_VIEW_CELLS = 1 << 14  # of one view; a report by unary encoding has as many bits


def mean_cells(sizes: Sequence[int], size: int) -> float:
    """L: the expected number of cells of a random set of ``size`` attributes.

    >>> mean_cells((2, 2, 2), 2), round(mean_cells((2, 3, 4), 2), 4)
    (4.0, 8.6667)
    """
    # the elementary symmetric polynomial of that degree over its number of terms
    sums = [1.0] + [0.0] * size
    for values in sizes:
        for degree in range(size, 0, -1):
            sums[degree] += values * sums[degree - 1]
    return sums[size] / comb(len(sizes), size)


@dataclass(frozen=True)
class Domain:
    """Attributes as views see them: their sizes, and how many a table of the workload has."""

    sizes: tuple[int, ...]  # of each point
    order: int  # k

    @property
    def points(self) -> int:
        """d: how many there are to make views of."""
        return len(self.sizes)

    def largest_view(self, size: int) -> int:
        """The most cells that a view of so many attributes has."""
        return prod(sorted(self.sizes)[-size:])


def printed_noise(domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
    """The squared error of one attribute's table, averaged over all views that hold it.

    Args:
        domain: What views are made of.
        epsilon: That of one report.
        size: l, the number of attributes of a view.
        people: n, all of them; each of the m views gets n/m.
    """
    # NE = min(4E/(E-1)^2, (L-2+E)/(E-1)^2) (L/l) (d/n)                   zhang2018calm, eq. (7)
    odds = exp(epsilon)  # E
    cells = mean_cells(domain.sizes, size)  # L
    cell = min(4 * odds, cells - 2 + odds) / (odds - 1) ** 2
    return cell * cells / size * domain.points / people


def derived_noise(domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
    """The same with what sums of correlated cells really vary by, and the better oracle.

    See docs/errata (14). Arguments are those of :func:`printed_noise`.
    """
    # An attribute of K values has K - 1 contrasts, each a sum with variance a C, of C = L/K cells:
    # together a L (1 - 1/K), where a is the variance of a contrast of single cells.
    cells = mean_cells(domain.sizes, size)
    typical_oracle = half_sum_oracle(max(2, round(cells)), epsilon)
    noise = contrast_variance(typical_oracle, 1)  # a, for one person
    share_of_contrasts = 1 - sum(1 / values for values in domain.sizes) / domain.points
    return noise * cells * share_of_contrasts / size * domain.points / people


def printed_oracle(size: int, epsilon: Decimal) -> Oracle:
    """Direct encoding for small views, unary encoding for large ones."""
    # GRR if L - 2 < 3E, else OUE                                         zhang2018calm, section 2
    name = "grr" if size - 2 < 3 * exp(epsilon) else "oue"
    return oracle(name, size=size, epsilon=epsilon)


@lru_cache(maxsize=1024)
def half_sum_oracle(size: int, epsilon: Decimal) -> Oracle:
    """The oracle whose half sums vary least, among those with a small report (docs/errata, 14)."""
    return oracle("adaptive", size=size, epsilon=epsilon, target="half-sum")


@lru_cache(maxsize=32)
def _tables(work: Workload, longest: int) -> TypicalTables:
    return TypicalTables.of(work.sample, work.sizes, longest)


class CalmFit(ViewFit):
    """Views made consistent and non-negative in turn."""

    def source(self, cells: Floats, *, is_replayed: bool) -> Reconstruction:
        overlap, weights = self.heard.overlap, self.heard.weights
        repaired = overlap.repair(cells, weights)  # (rows, cells of all views)
        coefficients = overlap.averages(repaired, overlap.averager(weights))
        return Reconstruction(overlap, coefficients, repaired)


class Calm(MarginalMethod):
    """Random or covering views, their size and number by the noise they bring.

    Where views overlap, weighted averages make them agree.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 4, algorithm 1; wang2021thesis, chapter 6, docs/errata (13).
    """

    name: ClassVar[str] = "calm"
    about: ClassVar[str] = "views of a few attributes made consistent, maximum entropy beyond them"
    source: ClassVar[str] = "zhang2018calm, section 4"
    options: ClassVar[tuple[str, ...]] = ("theta", "views", "size", "count")

    # -- what a variant changes

    def domain(self, work: Workload) -> Domain:
        return Domain(work.sizes, work.order)

    def noise(self, domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
        return printed_noise(domain, epsilon, size, people)

    def oracle(self, size: int, epsilon: Decimal) -> Oracle:
        return printed_oracle(size, epsilon)

    def encoding(self, schema: Schema, work: Workload, view: Places) -> Encoding:
        return Cells.of(schema, *work.attributes(view))

    # -- the choice of views

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        domain = self.domain(work)
        least = -(-domain.points // 2)  # views of pairs, rounded up
        if terms.people < least:
            return f"it needs at least {least} views, more than the {terms.people} people"
        cells = domain.largest_view(min(2, domain.points))
        if cells > MAX_VIEW_CELLS:
            return f"a view of two attributes has {cells:,} cells, more than {MAX_VIEW_CELLS:,}"
        try:
            self.oracle(cells, terms.epsilon)
        except InvalidInput as wrong:
            return str(wrong)
        return None

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Which views are reported: ``theta`` and ``views``, as a plan holds them.

        Args:
            work: The tables asked for.
            terms: Epsilon and the number of people.
            options: ``theta``, the error that noise or sampling alone may bring, greater than 0;
                ``views``, lists of places or blocks of them, to choose them; or ``size`` and
                ``count``, to draw so many of so many attributes, as in the paper's figure 7.
        """
        self.check_options(options)
        theta = share("theta", options.get("theta", THETA))
        if not theta:
            raise InvalidInput("theta (0) must be greater than 0")
        points = self.domain(work).points
        if "views" in options:
            views = read_views(self.name, options["views"], points)
        elif "size" in options or "count" in options:
            views = self._drawn(work, options)
        else:
            views = self.choose(work, terms, theta)
        if len(views) > terms.people:
            rule = f"must not be more than the people ({terms.people})"
            raise InvalidInput(f"views ({len(views)}) {rule}")
        return {
            "theta": plain_option(options.get("theta", THETA)),
            "views": blocks_of(points, views),
        }

    def _drawn(self, work: Workload, options: Options) -> Views:
        """So many random views of so many attributes; more if it takes more to hold all."""
        if not {"size", "count"} <= options.keys():
            raise InvalidInput(f"{self.name} takes size and count together, or neither")
        points = self.domain(work).points
        size = whole("size", options["size"], min(2, points), points)
        return drawn(points, size, whole("count", options["count"], 1, MOST_BLOCKS))

    def choose(self, work: Workload, terms: Terms, theta: Fraction) -> Views:
        """The views of zhang2018calm, algorithm 1: their number m and size l, then which ones.

        Of sizes with a covering design it takes that with the least of the larger of noise and
        sampling error, as the text says. It looks for one only if sets of one attribute less
        cover everything too, as line 8 does and the text does not, docs/errata (N2).
        """
        domain = self.domain(work)
        d, k, n = domain.points, domain.order, terms.people
        bound = float(theta)
        limit = min(MOST_BLOCKS, int(theta * n))  # of m, since the sampling error is m/n

        def noise(size: int) -> float:
            """k NE: the noise of a table, one NE for each of its attributes."""
            return k * self.noise(domain, terms.epsilon, size, n)

        # the largest size whose noise is within the bound
        upper = min(2, d)
        while upper < d and domain.largest_view(upper + 1) <= MAX_VIEW_CELLS:
            if noise(upper + 1) > bound:
                break
            upper += 1
        # the smallest size from which on few enough views hold every set of k
        lower = upper
        while lower > k and cover(d, lower - 1, k, limit) is not None:
            lower -= 1
        if upper < k or lower == upper:
            return drawn(d, upper, min(limit, n))

        best, views = 1.0, drawn(d, upper, limit)
        for size in range(lower, upper + 1):
            design = cover(d, size, k, limit)
            if design is None:
                continue
            # SE = m/n                                                    zhang2018calm, eq. (8)
            error = max(len(design) / n, noise(size))
            if error < best:
                best, views = error, design
        return views

    # -- asking and answering

    def _views(self, work: Workload, options: Options) -> Views:
        """The views of a plan, refused where one has too many cells."""
        domain = self.domain(work)
        views = read_views(self.name, options["views"], domain.points)
        for view in views:
            cells = prod(domain.sizes[point] for point in view)
            if cells > MAX_VIEW_CELLS:
                rule = f"has {cells:,} cells, more than {MAX_VIEW_CELLS:,}"
                raise InvalidInput(f"{self.name}: view {list(view)} {rule}")
        return views

    def _oracles(self, work: Workload, epsilon: Decimal, views: Sequence[Places]) -> list[Oracle]:
        """The oracle of each view; those of as many cells share one."""
        sizes = self.domain(work).sizes
        cells = [prod(sizes[point] for point in view) for view in views]
        by_cells = {size: self.oracle(size, epsilon) for size in dict.fromkeys(cells)}
        return [by_cells[size] for size in cells]

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        if not is_in_blocks(options["views"]):
            return self._listed(schema, work, epsilon, options)  # a plan that lists its views
        views = self._views(work, options)
        oracles = dict.fromkeys(self._oracles(work, epsilon, views))
        return ViewFamily(schema, work.names, views, oracles)

    def _listed(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        """A cohort for each view, one by one."""
        views = self._views(work, options)
        encodings = [self.encoding(schema, work, view) for view in views]
        return listed(encodings, self._oracles(work, epsilon, views))

    def heard(self, work: Workload, aggregate: Aggregate, options: Options) -> ViewsHeard:
        return ViewsHeard.listen(aggregate, self.domain(work).sizes, self._views(work, options))

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        return CalmFit(work, self.heard(work, aggregate, options))

    # -- what is asked

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        return view_shares(self._views(work, options), parts)

    def is_whole(self, work: Workload, options: Options, places: Places) -> bool:
        return any(set(places) <= set(view) for view in self._views(work, options))

    # -- prediction

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        parts = self.expected(work, terms, self._views(work, options))
        assert parts is not None  # no error is more than any
        return parts.error

    def offer(self, work: Workload, terms: Terms, most: float) -> Offer | None:
        if self._errs_more(work, terms, most):
            return None
        options = self.settle(work, terms)
        if most < inf and self.coverage(work, options).left_out:
            return None
        parts = self.expected(work, terms, self._views(work, options), most)
        return None if parts is None else Offer(options, parts.error)

    def _errs_more(self, work: Workload, terms: Terms, most: float) -> bool:
        """Whether all views that it may choose are sure to err more than ``most``.

        Those alone count that leave out nothing. False if that takes choosing them.
        """
        if most == inf or work.order != 2 or not AlikeViews.fits(work):
            return False
        domain = self.domain(work)
        points = domain.points
        alike = self._alike(work, terms)
        tables = self.tables(work, work.order)
        widths = [
            width for width in range(2, points + 1) if domain.largest_view(width) <= MAX_VIEW_CELLS
        ]
        if widths[-1] == points:
            widths.pop()
            if not alike.err_more(tables, [points], 1, most):
                return False
        # those that are drawn, or as few as hold all points, and then one for each part
        most_views = max(self._limit(terms), points) + len(work.parts)
        return not widths or alike.err_more(tables, widths, most_views, most)

    def _limit(self, terms: Terms) -> int:
        """How many views are drawn at most, unless a plan says otherwise."""
        return min(MOST_BLOCKS, terms.people, max(1, int(Fraction(THETA) * terms.people)))

    def _alike(self, work: Workload, terms: Terms) -> AlikeViews:
        return AlikeViews(work, terms.people, lambda cells: self.oracle(cells, terms.epsilon))

    def expected(
        self, work: Workload, terms: Terms, views: Views, most: float = inf
    ) -> Expected | None:
        """What the error of a table is expected to be made of; None if it is more than ``most``."""
        respondents = [max(1, terms.people // len(views))] * len(views)
        oracles = self._oracles(work, terms.epsilon, views)
        weights = view_weights(oracles, respondents, terms.people)  # (views,)
        cells = np.array([oracle.size for oracle in oracles])
        longest = max(3, *(len(view) for view in views))
        tables = self.tables(work, longest)
        return expected(tables, views, tuple((weights / cells).tolist()), most)

    def tables(self, work: Workload, longest: int) -> TypicalTables:
        """The workload's tables, for views of up to ``longest`` points."""
        return _tables(work, min(longest, work.order))

    def reason(self, work: Workload, terms: Terms, options: Options) -> str:
        views = self._views(work, options)
        respondents = max(1, terms.people // len(views))
        return f"{len(views)} views of {len(views[0])} attributes, {respondents:,} people each"


class CalmPlus(Calm):
    """The same with the oracle that is best for sums of cells, and the noise of correlated ones.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 4; docs/errata (14).
    """

    name: ClassVar[str] = "calm+"
    about: ClassVar[str] = "calm with subset selection and the noise of sums"
    source: ClassVar[str] = "zhang2018calm, section 4; docs/errata, 14"

    def noise(self, domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
        return derived_noise(domain, epsilon, size, people)

    def oracle(self, size: int, epsilon: Decimal) -> Oracle:
        return half_sum_oracle(size, epsilon)

    def choose(self, work: Workload, terms: Terms, theta: Fraction) -> Views:
        """The same views, or a covering design of their size if that is predicted to err less; and
        more or larger ones until every pair of the workload is asked for.
        """
        chosen = self._better(work, terms, theta, super().choose(work, terms, theta))
        if not views_coverage(work, chosen).left_out:
            return chosen
        domain = self.domain(work)
        size = len(chosen[0])
        views = completed(domain.points, size, chosen, work.parts)
        designs = [views]
        while not is_sure(work, views, terms.people):
            size += 1
            if size > domain.points or domain.largest_view(size) > MAX_VIEW_CELLS:
                return surest(work, designs, terms.people) or chosen
            views = covering(work, size)
            designs.append(views)
        return views

    def _better(self, work: Workload, terms: Terms, theta: Fraction, views: Views) -> Views:
        """The views, or as few of their size as hold every set of k: by predicted error.

        Line 8 of algorithm 1 overlooks them, docs/errata (N2).
        """
        domain = self.domain(work)
        size = len(views[0])
        if size < domain.order:
            return views
        limit = min(MOST_BLOCKS, int(theta * terms.people))
        design = cover(domain.points, size, domain.order, limit)
        if design is None or set(design) == set(views):
            return views
        given, found = (self.expected(work, terms, each) for each in (views, design))
        assert given is not None
        assert found is not None  # no error is more than any
        return design if found.error < given.error else views
