"""CALM: people report a few chosen views; views are made consistent, and maximum entropy answers the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb, exp, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import plain_option, share
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle, oracle
from sottovoce.postprocessing.consistency import Overlap
from sottovoce.protocol.encodings import Cells, Encoding, Parities
from sottovoce.protocol.families import Family
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import MOST_UNHEARD, Coverage, view_shares
from sottovoce.questions.marginals.method import Fit, Floats, Method
from sottovoce.questions.marginals.methods.views import (
    Expected,
    Heard,
    Reconstruction,
    ViewFit,
    checked_views,
    contrast_variance,
    expected,
    listed,
    view_weights,
)
from sottovoce.questions.marginals.models.designs import MOST_BLOCKS, completed, cover, drawn
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

THETA = "0.001"
MOST_CELLS = 1 << 14  # of one view; a report by unary encoding has as many bits


def mean_cells(sizes: Sequence[int], size: int) -> float:
    """The expected number of cells of a random set of ``size`` attributes.

    >>> mean_cells((2, 2, 2), 2), round(mean_cells((2, 3, 4), 2), 4)
    (4.0, 8.6667)
    """
    # the elementary symmetric polynomial of that degree over its number of terms
    sums = [1.0] + [0.0] * size
    for each in sizes:
        for degree in range(size, 0, -1):
            sums[degree] += each * sums[degree - 1]
    return sums[size] / comb(len(sizes), size)


@dataclass(frozen=True)
class Domain:
    """Attributes as views see them: their sizes, and how many of them a table of the workload has."""

    sizes: tuple[int, ...]
    order: int

    @property
    def points(self) -> int:
        return len(self.sizes)

    def largest_view(self, size: int) -> int:
        """The most cells that a view of so many attributes has."""
        return prod(sorted(self.sizes)[-size:])


def printed_noise(domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
    """The squared error of one attribute's table after averaging over all views of ``size`` that hold it."""
    # NE = min(4E/(E-1)^2, (L-2+E)/(E-1)^2) (L/l) (d/n)                     zhang2018calm, eq. (7)
    odds, cells = exp(epsilon), mean_cells(domain.sizes, size)
    cell = min(4 * odds, cells - 2 + odds) / (odds - 1) ** 2
    return cell * cells / size * domain.points / people


def derived_noise(domain: Domain, epsilon: Decimal, size: int, people: int) -> float:
    """The same with what sums of correlated cells really vary by, and the better oracle (docs/errata, 14)."""
    # an attribute of K values has K - 1 contrasts, each a sum with variance a C, C = L/K cells:  a L (1 - 1/K)
    cells = mean_cells(domain.sizes, size)
    noise = contrast_variance(half_sum_oracle(max(2, round(cells)), epsilon), 1)
    share_of_contrasts = 1 - sum(1 / each for each in domain.sizes) / domain.points
    return noise * cells * share_of_contrasts / size * domain.points / people


def printed_oracle(size: int, epsilon: Decimal) -> Oracle:
    """Direct encoding for small views, unary encoding for large ones."""
    # GRR if L - 2 < 3E, else OUE                                           zhang2018calm, section 2
    return oracle("grr" if size - 2 < 3 * exp(epsilon) else "oue", size=size, epsilon=epsilon)


@lru_cache(maxsize=1024)
def half_sum_oracle(size: int, epsilon: Decimal) -> Oracle:
    """The oracle whose half sums vary least, among those with a small report (docs/errata, 14)."""
    return oracle("adaptive", size=size, epsilon=epsilon, target="half-sum")


def views_coverage(work: Workload, views: Sequence[Places]) -> Coverage:
    """Which attributes and pairs of the workload's tables lie in views."""
    return Coverage(work.parts, tuple(view_shares(views, work.parts)))


def covering(work: Workload, size: int) -> tuple[Places, ...]:
    """Views of up to ``size`` attributes that hold every pair of the workload's tables."""
    known = None
    if work.sets is None and work.order > 1:
        known = cover(len(work.sizes), size, 2)
    return known or completed(len(work.sizes), size, (), work.parts)


def is_sure(work: Workload, views: Sequence[Places], people: int) -> bool:
    """Whether people are enough for all views, so that every pair that they hold is all but sure to be heard of."""
    return len(views) <= people and views_coverage(work, views).unheard(people) <= MOST_UNHEARD


def surest(work: Workload, designs: Sequence[tuple[Places, ...]], people: int) -> tuple[Places, ...] | None:
    """Of designs that are not too large, the one of which the fewest pairs are expected to be heard from nobody."""
    fitting = [views for views in designs if len(views) <= min(people, MOST_BLOCKS)]
    return min(fitting, key=lambda views: views_coverage(work, views).unheard(people), default=None)


class CalmFit(ViewFit):
    """Views made consistent and non-negative in turn."""

    def source(self, cells: Floats, *, is_replayed: bool) -> Reconstruction:
        overlap, weights = self.heard.overlap, self.heard.weights
        repaired = overlap.repair(cells, weights)
        return Reconstruction(overlap, overlap.averages(repaired, overlap.averager(weights)), repaired)


class Calm(Method):
    """Random or covering views, their size and number by the noise they bring; weighted averages where they overlap.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 4, algorithm 1; wang2021thesis, chapter 6, corrected, see docs/errata (13).
    """

    name: ClassVar[str] = "calm"
    about: ClassVar[str] = "views of a few attributes made consistent, maximum entropy beyond them"
    source: ClassVar[str] = "zhang2018calm, section 4"

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
        least = -(-domain.points // 2)
        if terms.people < least:
            return f"it needs at least {least} views, more than the {terms.people} people"
        pair = min(2, domain.points)
        if domain.largest_view(pair) > MOST_CELLS:
            return f"a view of two attributes has {domain.largest_view(pair):,} cells, more than {MOST_CELLS:,}"
        try:
            self.oracle(domain.largest_view(pair), terms.epsilon)
        except InvalidInput as wrong:
            return str(wrong)
        return None

    def settle(self, work: Workload, terms: Terms, **options: Any) -> dict[str, Any]:
        """``theta``: the error that noise or sampling alone may bring; ``views``: lists of places, to choose them."""
        unknown = [key for key in options if key not in ("theta", "views")]
        if unknown:
            raise InvalidInput(f"option {unknown[0]!r} is not one of {self.name}'s (theta, views)")
        theta = share("theta", options.get("theta", THETA))
        if not theta:
            raise InvalidInput("theta (0) must be greater than 0")
        domain = self.domain(work)
        if "views" in options:
            views = checked_views(self.name, options["views"], domain.points)
        else:
            views = self.choose(work, terms, theta)
        if len(views) > terms.people:
            raise InvalidInput(f"views ({len(views)}) must not be more than the people ({terms.people})")
        return {"theta": plain_option(options.get("theta", THETA)), "views": [list(view) for view in views]}

    def choose(self, work: Workload, terms: Terms, theta: Fraction) -> tuple[Places, ...]:
        """The views of zhang2018calm, algorithm 1: their number m and size l, then which ones."""
        domain = self.domain(work)
        d, k = domain.points, domain.order
        bound, limit = float(theta), min(MOST_BLOCKS, int(theta * terms.people))

        def noise(size: int) -> float:
            return k * self.noise(domain, terms.epsilon, size, terms.people)

        upper = min(2, d)
        while upper < d and domain.largest_view(upper + 1) <= MOST_CELLS and noise(upper + 1) <= bound:
            upper += 1
        lower = upper
        while lower > k and cover(d, lower - 1, k, limit) is not None:
            lower -= 1
        if upper < k or lower == upper:
            return drawn(d, upper, min(limit, terms.people))
        best, views = 1.0, drawn(d, upper, limit)
        for size in range(lower, upper + 1):
            design = cover(d, size, k, limit)
            if design is not None:
                error = max(len(design) / terms.people, noise(size))  # sampling error m/n, eq. (8)
                if error < best:
                    best, views = error, design
        return views

    # -- asking and answering

    def _views(self, work: Workload, options: Mapping[str, Any]) -> tuple[Places, ...]:
        domain = self.domain(work)
        views = checked_views(self.name, options["views"], domain.points)
        for view in views:
            cells = prod(domain.sizes[place] for place in view)
            if cells > MOST_CELLS:
                raise InvalidInput(f"{self.name}: view {list(view)} has {cells:,} cells, more than {MOST_CELLS:,}")
        return views

    def _oracles(self, work: Workload, epsilon: Decimal, views: Sequence[Places]) -> list[Oracle]:
        sizes = self.domain(work).sizes
        made: dict[int, Oracle] = {}
        for view in views:
            cells = prod(sizes[place] for place in view)
            if cells not in made:
                made[cells] = self.oracle(cells, epsilon)
        return [made[prod(sizes[place] for place in view)] for view in views]

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> Family:
        views = self._views(work, options)
        encodings = [self.encoding(schema, work, view) for view in views]
        return listed(encodings, self._oracles(work, epsilon, views))

    def heard(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Heard:
        return Heard.listen(aggregate, self.domain(work).sizes, self._views(work, options))

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Fit:
        return CalmFit(work, self.heard(work, aggregate, options))

    # -- what is asked

    def shares(self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]) -> list[float]:
        return view_shares(self._views(work, options), parts)

    def is_whole(self, work: Workload, options: Mapping[str, Any], places: Places) -> bool:
        return any(set(places) <= set(view) for view in options["views"])

    # -- prediction

    def groups(self, work: Workload) -> Mapping[int, Places] | None:
        """The places of the domain that each attribute has, if they are not the attributes themselves."""
        return None

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        parts = self.expected(work, terms, self._views(work, options))
        return parts.noise + parts.reconstruction

    def expected(self, work: Workload, terms: Terms, views: Sequence[Places]) -> Expected:
        """What the error of a table is expected to be made of."""
        overlap = Overlap(self.domain(work).sizes, views)
        crowd = max(1, terms.people // len(views))
        weights = view_weights(self._oracles(work, terms.epsilon, views), [crowd] * len(views), terms.people)
        return expected(work, overlap, weights, self.groups(work))

    def reason(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> str:
        views = options["views"]
        return f"{len(views)} views of {len(views[0])} attributes, {max(1, terms.people // len(views)):,} people each"


class CalmPlus(Calm):
    """The same with the oracle that is best for sums of cells, and noise that knows of their correlation.

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

    def choose(self, work: Workload, terms: Terms, theta: Fraction) -> tuple[Places, ...]:
        """The same views, and as many more, or larger ones, as it takes to ask for every pair of the workload."""
        chosen = super().choose(work, terms, theta)
        if not views_coverage(work, chosen).left_out:
            return chosen
        domain = self.domain(work)
        size = len(chosen[0])
        designs = [completed(domain.points, size, chosen, work.parts)]
        while size < domain.points and domain.largest_view(size + 1) <= MOST_CELLS:
            size += 1
            designs.append(covering(work, size))
        sure = (views for views in designs if is_sure(work, views, terms.people))
        return next(sure, None) or surest(work, designs, terms.people) or chosen


class BitFit(CalmFit):
    """Tables of categories from views of their bits."""

    def __init__(self, work: Workload, heard: Heard, groups: Mapping[int, Places]) -> None:
        super().__init__(work, heard)
        self.groups = groups

    def _bits(self, places: Places) -> Places:
        return tuple(bit for place in places for bit in self.groups[place])

    def is_known(self, places: Places) -> bool:
        return super().is_known(self._bits(places))

    def pairs(self) -> list[Places]:
        owner = {bit: place for place, own in self.groups.items() for bit in own}
        return [own for own in super().pairs() if owner[own[0]] != owner[own[1]]]

    def is_tied(self, places: Places) -> bool:
        return all(super(BitFit, self).is_known(bits) for bits in product(*(self.groups[place] for place in places)))

    def is_heard(self, part: Places) -> bool:
        return all(super(BitFit, self).is_known(bits) for bits in _bit_parts(self._bits(part)))

    def answer(self, source: Any, places: Places) -> Floats:
        """Maximum entropy over the categories there are, given the tables of all bits that views hold together."""
        bits = self._bits(places)
        values = np.indices(self.work.shape(places)).reshape(len(places), -1)
        digits = np.concatenate(
            [(values[row] >> np.arange(len(self.groups[place]))[::-1, None]) & 1 for row, place in enumerate(places)]
        )
        return np.asarray(source.chosen(bits, digits))


@lru_cache(maxsize=64)
def _bits_of(sizes: tuple[int, ...]) -> Mapping[int, Places]:
    """The places of each attribute's bits, the highest bit first."""
    made, start = {}, 0
    for place, size in enumerate(sizes):
        width = max(1, (size - 1).bit_length())
        made[place] = tuple(range(start, start + width))
        start += width
    return made


@lru_cache(maxsize=64)
def _bit_domain(work: Workload) -> Domain:
    groups = _bits_of(work.sizes)
    bits = [sum(len(groups[place]) for place in places) for places in work.sample]
    return Domain((2,) * sum(len(own) for own in groups.values()), round(sum(bits) / len(bits)))


def _bit_parts(bits: Places) -> list[Places]:
    """What must be told of some attributes' bits: every two together, or the only one."""
    return [bits] if len(bits) == 1 else list(combinations(bits, 2))


class CalmBinary(Calm):
    """CALM on attributes written in bits, each of them a yes-or-no attribute.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 5.3 (BE).
    """

    name: ClassVar[str] = "calm-binary"
    about: ClassVar[str] = "calm on the bits of the attributes' codes"
    source: ClassVar[str] = "zhang2018calm, section 5.3"

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        """At least calm's: the bits of one attribute are tied more than two attributes, which predictions leave out."""
        whole = Calm()
        usual = 0.0
        if whole.refuse(work, terms) is None:
            usual = whole.predict(work, terms, whole.settle(work, terms))
        return max(usual, super().predict(work, terms, options))

    def groups(self, work: Workload) -> Mapping[int, Places]:
        return _bits_of(work.sizes)

    def domain(self, work: Workload) -> Domain:
        return _bit_domain(work)

    def shares(self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]) -> list[float]:
        """Of an attribute or pair, the share for the two of its bits that the fewest are asked about."""
        groups = self.groups(work)
        inside = [_bit_parts(tuple(bit for place in part for bit in groups[place])) for part in parts]
        listed = list({bits for own in inside for bits in own})
        told = dict(zip(listed, super().shares(work, options, listed), strict=True))
        return [min(told[bits] for bits in own) for own in inside]

    def is_whole(self, work: Workload, options: Mapping[str, Any], places: Places) -> bool:
        groups = self.groups(work)
        return super().is_whole(work, options, tuple(bit for place in places for bit in groups[place]))

    def encoding(self, schema: Schema, work: Workload, view: Places) -> Encoding:
        owners = {bit: (place, own) for place, own in self.groups(work).items() for bit in own}
        places = sorted({owners[bit][0] for bit in view})
        products = []
        for bit in view:
            owner, own = owners[bit]
            mask = 1 << (len(own) - 1 - own.index(bit))
            products.append(tuple(mask if place == owner else 0 for place in places))
        return Parities(work.attributes(tuple(places)), work.shape(tuple(places)), tuple(products))

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Fit:
        return BitFit(work, self.heard(work, aggregate, options), self.groups(work))
