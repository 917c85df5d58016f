"""One cohort for every table that is asked for: it reports the table's cell; nothing is shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from math import comb, prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Noise, Oracle
from sottovoce.oracles.rules import CALM_RULE, oracle_by
from sottovoce.postprocessing.maximum_entropy import FIT_ROUNDS, maximal, proportional_fits
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Family, Listed, Subsets
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import view_shares
from sottovoce.questions.marginals.method import BOOTSTRAP, Fit, Floats, MarginalMethod, Offer
from sottovoce.questions.marginals.methods.full import (
    ChosenCoins,
    margins,
    oracle_named,
)
from sottovoce.questions.marginals.methods.view_predictions import BOUND_ROUNDING
from sottovoce.questions.marginals.models.structure import TRIPLE_TIE, squared_mass
from sottovoce.questions.marginals.models.ties import unknown_variances
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options
from sottovoce.results.words import CLOSED_FORM
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_VIEWS = 1 << 16
MAX_STATE_NUMBERS = 1 << 26  # that the states of all cohorts hold
RESAMPLED = (8, 32)  # fits of a parametric bootstrap: at least, at most
MAX_FIT_CELLS = 1 << 28  # cells that one maximum-entropy fit touches, or all of a bootstrap
LEAST_ROUNDS = 16  # of a bootstrap's fit, if the steps allow


class Views:
    """The tables that are asked for, each by its own cohort: those listed, or all of one order."""

    def __init__(self, work: Workload) -> None:
        self._count = len(work.names)
        self._order = work.order
        self._is_complete = work.sets is None  # whether every set of this order is a view
        every = combinations(range(self._count), self._order)
        self.listed = tuple(every) if work.sets is None else work.sets
        self._index = {view: number for number, view in enumerate(self.listed)}
        self._known: dict[Places, tuple[int, ...]] = {}

    @cached_property
    def widest(self) -> int:
        return max(len(view) for view in self.listed)

    def containing(self, places: Places) -> tuple[int, ...]:
        """The views that contain a set, by their numbers."""
        if places not in self._known:
            self._known[places] = tuple(self._search(places))
        return self._known[places]

    def _search(self, places: Places) -> list[int]:
        if not self._is_complete:
            wanted = set(places)
            return [number for number, view in enumerate(self.listed) if wanted.issubset(view)]
        if len(places) > self._order:
            return []
        # all ways to fill the set up to a view
        others = [place for place in range(self._count) if place not in places]
        views = []
        for added in combinations(others, self._order - len(places)):
            views.append(tuple(sorted((*places, *added))))
        return sorted(self._index[view] for view in views)


class Source(NamedTuple):
    """A view that tells of a set: the people it asks, and the error's law of the set's cells."""

    people: float
    noise: Noise


def source_of(oracle: Oracle, people: float, cells: int, summed: int = 1) -> Source:
    """What a view's oracle tells of a set inside it with so many cells, or of a sum of them."""
    # of one person's report, for a cell or a sum
    person = oracle.sum_noise(1, oracle.size // cells * summed)
    return Source(people, Noise(person.floor / people, person.slope / people))


def shares(sources: Sequence[Source], cells: int) -> Floats:
    """What each source counts in the average of all: its precision at an even table.

    That is known before the answers, so that the average stays unbiased.

    Returns:
        Weights that sum to one, (sources,).
    """
    # 1/w_c = floor_c + slope_c f + f(1 - f)/n_c  at  f = 1/cells
    even = 1 / cells
    variances = []
    for people, noise in sources:
        variances.append(noise.floor + noise.slope * even + even * (1 - even) / people)
    weights = 1 / np.array(variances)
    return np.asarray(weights / weights.sum())


def average_noise(sources: Sequence[Source], weights: Floats, people: int) -> tuple[Noise, float]:
    """The error of an average of sources, given all the people asked.

    Args:
        sources: The views, c, of n_c people each.
        weights: w_c, which sum to one, (sources,).
        people: n, all of them.

    Returns:
        The law of its privacy noise, and what f(1 - f) counts: cohorts are random people.
    """
    # sum w_c^2 floor_c + f sum w_c^2 slope_c
    floor = slope = drawn = 0.0
    for weight, source in zip(weights, sources, strict=True):
        floor += weight**2 * source.noise.floor
        slope += weight**2 * source.noise.slope
        drawn += weight**2 / source.people
    # cohorts are drawn without replacement: Var[sum w_c f_c] = f(1 - f) (sum w_c^2/n_c - 1/n)
    return Noise(float(floor), float(slope)), max(float(drawn - 1 / people), 0.0)


class SubsetsFit(Fit):
    """A set's table from every view that contains it, averaged; others by maximum entropy."""

    errors: ClassVar[str] = f"{CLOSED_FORM}; {BOOTSTRAP} where reconstructed"

    def __init__(self, work: Workload, views: Views, aggregate: Aggregate) -> None:
        self._work, self._views, self._aggregate = work, views, aggregate
        self._people = aggregate.people
        self._asked = [aggregate.cohort_people(index) for index in range(len(views.listed))]
        self._oracles: dict[int, Oracle] = {}
        self._estimated: dict[int, Floats] = {}
        self._fitted: dict[Places, Floats] = {}
        self._spread: dict[Places, Floats] = {}

    # -- sets that were asked for

    def _heard(self, places: Places) -> list[int]:
        """The views with people that contain a set."""
        return [index for index in self._views.containing(places) if self._asked[index]]

    def _oracle(self, index: int) -> Oracle:
        """A view's oracle, which goes by the size of its table."""
        cells = self._work.cells(self._views.listed[index])
        if cells not in self._oracles:
            self._oracles[cells] = self._aggregate.plan.cohorts[index].oracles[0]
        return self._oracles[cells]

    def _view(self, index: int) -> Floats:
        """The estimate from one view's own cohort."""
        if index not in self._estimated:
            self._estimated[index] = self._aggregate.frequencies(index)[0]
        return self._estimated[index]

    def _sources(self, places: Places, heard: Sequence[int]) -> list[Source]:
        """What each of the views ``heard`` tells of a set's cells."""
        cells = self._work.cells(places)
        return [source_of(self._oracle(index), self._asked[index], cells) for index in heard]

    def _average(self, places: Places, heard: Sequence[int]) -> Floats:
        """The set's table, flat: an average of the sums of the views ``heard``."""
        if len(heard) == 1 and self._views.listed[heard[0]] == places:
            return self._view(heard[0]).copy()
        weights = shares(self._sources(places, heard), self._work.cells(places))
        total = np.zeros(self._work.cells(places))
        for weight, index in zip(weights, heard, strict=True):
            view = self._views.listed[index]
            inside = tuple(view.index(place) for place in places)
            (own,) = margins(self._view(index), self._work.shape(view), [inside])
            total += weight * own
        return total

    def _average_variance(self, places: Places, heard: Sequence[int], table: Floats) -> Floats:
        """The variances of the cells of :meth:`_average`, whose result is ``table``."""
        sources = self._sources(places, heard)
        noise, drawn = average_noise(sources, shares(sources, table.size), self._people)
        plausible = np.clip(table, 0, 1)
        return noise.variance(plausible) + drawn * plausible * (1 - plausible)

    # -- sets that were not

    def _pieces(self, places: Places) -> list[Places]:
        """The largest sets inside this one that somebody was asked about."""
        # from sets as large as a view down: what nobody was asked about is taken to pieces
        level = set(combinations(places, min(len(places), self._views.widest)))
        found: list[Places] = []
        while level:
            known = {each for each in level if self._heard(each)}
            found += sorted(known)
            smaller: set[Places] = set()
            for each in level - known:
                smaller.update(combinations(each, len(each) - 1))
            level = smaller - {()}
        is_even = len({len(each) for each in found}) <= 1  # then none holds another
        return found if is_even else maximal(found)

    def _maximum_entropy(
        self, places: Places, pieces: Sequence[Places], tables: Sequence[Floats]
    ) -> Floats:
        """A fit for each row of the pieces' tables, each first brought to the simplex.

        Args:
            places: The set to be fitted.
            pieces: Sets inside it.
            tables: Their tables, (rows, cells of the piece) each.

        Returns:
            The tables of largest entropy, (rows, cells).
        """
        shape, cells = self._work.shape(places), self._work.cells(places)
        axes = [tuple(places.index(place) for place in piece) for piece in pieces]
        rows = len(tables[0])
        rounds = min(max(MAX_FIT_CELLS // (cells * len(pieces) * rows), 2), FIT_ROUNDS)
        nearest = [norm_sub(table) for table in tables]
        return proportional_fits(shape, axes, nearest, rounds=rounds).reshape(rows, cells)

    def _reconstruction(self, places: Places) -> Floats:
        if places not in self._fitted:
            pieces = self._pieces(places)
            cells = self._work.cells(places)
            fitted = np.full(cells, 1 / cells)
            if pieces:
                tables = [each[None] for each in self.tables(pieces)]  # one row of each
                fitted = self._maximum_entropy(places, pieces, tables)[0]
            self._fitted[places] = fitted
        return self._fitted[places]

    def _reconstruction_variance(self, places: Places) -> Floats:
        """How far fits to noisy pieces fall from the fitted table; more if it was to be asked."""
        if places not in self._spread:
            pieces, fitted = self._pieces(places), self._reconstruction(places)
            spread = np.zeros(fitted.size)
            if pieces:
                spread = self._resampled(places, pieces, fitted)
            if len(places) <= self._views.widest or len(set().union(*pieces)) < len(places):
                # nobody was asked what could have been: as if one person had been, truthfully
                plausible = np.clip(fitted, 1 / fitted.size, 1 - 1 / fitted.size)
                spread = spread + plausible * (1 - plausible)
            if self._views.widest < 2:
                # nobody was asked how attributes go together
                pairs = combinations(places, 2)
                spread = spread + unknown_variances(self._work, places, fitted, pairs)
            elif len(places) > self._views.widest:
                # structure that smaller tables cannot show: a tie of each set of one more attribute
                unseen = comb(len(places), self._views.widest + 1)
                spread = spread + TRIPLE_TIE**2 * unseen * fitted**2
            self._spread[places] = spread
        return self._spread[places]

    def _resampled(self, places: Places, pieces: Sequence[Places], fitted: Floats) -> Floats:
        """A parametric bootstrap: fits to the fitted table's own pieces with new errors.

        Returns:
            The mean squared distance of those fits from ``fitted``, (cells,).
        """
        draws = np.random.Generator(np.random.PCG64([len(places), *places]))
        inside = [tuple(places.index(place) for place in piece) for piece in pieces]
        true = margins(fitted, self._work.shape(places), inside)
        errors = [np.sqrt(each) for each in self.variances(pieces)]
        steps = fitted.size * len(pieces) * LEAST_ROUNDS
        rows = min(max(MAX_FIT_CELLS // steps, RESAMPLED[0]), RESAMPLED[1])
        noisy = []  # for each piece (rows, cells of the piece)
        for table, error in zip(true, errors, strict=True):
            noisy.append(table + error * draws.standard_normal((rows, table.size)))
        fits = self._maximum_entropy(places, pieces, noisy)  # (rows, cells)
        return np.asarray(((fits - fitted) ** 2).mean(axis=0))

    # -- the fit

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places in sets:
            heard = self._heard(places)
            if heard:
                out.append(self._average(places, heard))
            else:
                out.append(self._reconstruction(places).copy())
        return out

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places, table in zip(sets, self.tables(sets), strict=True):
            heard = self._heard(places)
            if heard:
                out.append(self._average_variance(places, heard, table))
            else:
                out.append(self._reconstruction_variance(places).copy())
        return out

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        heard = self._heard(places)
        if not heard:
            return None
        (table,) = self.tables([places])
        weights = shares(self._sources(places, heard), table.size)
        sources = []
        for index in heard:
            oracle = self._oracle(index)
            sources.append(source_of(oracle, self._asked[index], table.size, cells.size))
        noise, drawn = average_noise(sources, weights, self._people)
        plausible = min(max(float(table[cells].sum()), 0.0), 1.0)
        return float(noise.variance(plausible)) + drawn * plausible * (1 - plausible)

    def is_unbiased(self, places: Places) -> bool:
        return bool(self._heard(places))

    def is_reconstructed(self, places: Places) -> bool:
        return not self._heard(places)

    def is_heard(self, part: Places) -> bool:
        return bool(self._heard(part))


class PerTable(MarginalMethod):
    """Every table of the workload has a cohort of its own, whose people report its cell."""

    oracle_name: ClassVar[str]
    most: ClassVar[int]  # cells of one table

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        count = comb(len(work.names), work.order) if work.sets is None else len(work.sets)
        if count > MOST_VIEWS:
            return f"there are {count:,} tables, more than {MOST_VIEWS:,}"
        if count > terms.people:
            return f"there are {count:,} tables and {terms.people:,} people, less than one for each"
        largest = prod(sorted(work.sizes)[-work.order :])  # cells of the largest table
        if work.sets:
            largest = max(work.cells(each) for each in work.sets)
        if largest > self.most or largest * count > MAX_STATE_NUMBERS:
            return (
                f"{count:,} tables of up to {largest:,} cells are too many numbers: "
                f"a table must have at most {self.most:,}, all together {MAX_STATE_NUMBERS:,}"
            )
        try:
            oracle_by(self.oracle_name, largest, terms.epsilon)
        except InvalidInput as wrong:
            return str(wrong)
        return None

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        name = oracle_named(self.oracle_name, options)
        if work.sets is None:
            return Subsets(schema, work.names, work.order, name, epsilon, oracle_by)
        encodings = [Cells.of(schema, *work.attributes(each)) for each in work.sets]
        asks = [Ask(each, oracle_by(name, each.size, epsilon)) for each in encodings]
        return Listed([Cohort((ask,)) for ask in asks])

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        return SubsetsFit(work, Views(work), aggregate)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        if work.sets is not None:
            return view_shares(work.sets, parts)
        # of the sets of k attributes, those that hold r given ones:  C(d - r, k - r) / C(d, k)
        count, order = len(work.names), work.order
        inside = [
            comb(count - len(part), order - len(part)) if len(part) <= order else 0
            for part in parts
        ]
        return [holding / comb(count, order) for holding in inside]

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        return float(np.mean(self.predict_tables(work, terms, options, work.sample)))

    def predict_tables(
        self, work: Workload, terms: Terms, options: Options, tables: Sequence[Places]
    ) -> list[float]:
        name = oracle_named(self.oracle_name, options)
        oracles: dict[int, Oracle] = {}  # by the cells of a view
        errors = []
        for places in tables:
            cells = work.cells(places)
            sources = []
            for size, views in _views_by_cells(work, places).items():
                if size not in oracles:
                    oracles[size] = oracle_by(name, size, terms.epsilon)
                # views of one size count alike, as one of all their people
                people = views * terms.people / work.count
                sources.append(source_of(oracles[size], people, cells))
            noise, drawn = average_noise(sources, shares(sources, cells), terms.people)
            # over the cells of a table:  sum f = 1  and  sum f(1 - f) = 1 - sum f^2
            unlike = 1 - squared_mass(work, places)
            errors.append(cells * noise.floor + noise.slope + drawn * unlike)
        return errors

    def offer(self, work: Workload, terms: Terms, most: float) -> Offer | None:
        """Nothing if the noise of reports alone is more than ``most``, which is soon found."""
        if work.sets is None and self._is_noisier(work, terms, most):
            return None
        return super().offer(work, terms, most)

    def _is_noisier(self, work: Workload, terms: Terms, most: float) -> bool:
        """Whether the noise of reports errs by more than this, if each table is told by itself."""
        respondents = terms.people / work.count
        limit = most * (1 + BOUND_ROUNDING) * respondents * len(work.sample)
        total = 0.0
        tables_of = Counter(work.sample_cells)
        for cells in sorted(tables_of, reverse=True):
            noise = oracle_by(self.oracle_name, cells, terms.epsilon).sum_noise(1, 1)
            total += tables_of[cells] * (cells * noise.floor + noise.slope)
            if total > limit:
                return True
        return False

    def reason(self, work: Workload, terms: Terms, options: Options) -> str:
        return f"each of {work.count:,} tables is told by {terms.people // work.count:,} people"


def _views_by_cells(work: Workload, places: Places) -> Mapping[int, int]:
    """How many views contain a set, by their numbers of cells."""
    if work.sets is not None:
        wanted = set(places)
        return Counter(work.cells(view) for view in work.sets if wanted.issubset(view))
    # all ways to add 0, 1, ... of the other attributes, by the cells of what results
    missing = work.order - len(places)
    ways: list[Counter[int]] = [Counter() for _ in range(missing + 1)]
    ways[0][work.cells(places)] = 1
    others = [size for place, size in enumerate(work.sizes) if place not in places]
    for size in others:
        for added in reversed(range(missing)):
            for cells, number in ways[added].items():
                ways[added + 1][cells * size] += number
    return ways[missing]


class MarginalRandomizedResponse(ChosenCoins, PerTable):
    """Parallel randomized response on one table: a bit for each of its cells.

    ``coins``: ``sue``, or ``oue``, with which the paper experiments.
    """

    name: ClassVar[str] = "marg-rr"
    about: ClassVar[str] = "each table by symmetric unary encoding"
    source: ClassVar[str] = "cormode2018marginal, section 4.3"


class MarginalPreferentialSampling(PerTable):
    """Preferential sampling on one table: one of its cells."""

    name: ClassVar[str] = "marg-ps"
    about: ClassVar[str] = "each table by generalized randomized response"
    source: ClassVar[str] = "cormode2018marginal, section 4.3; fact 3.1 corrected, see docs/errata"
    oracle_name: ClassVar[str] = "grr"
    most: ClassVar[int] = MAX_STATE_NUMBERS


class MarginalHadamard(PerTable):
    """The sign of one Hadamard coefficient of a table, filled up to a power of two cells."""

    name: ClassVar[str] = "marg-ht"
    about: ClassVar[str] = "each table by one of its Hadamard coefficients"
    source: ClassVar[str] = "cormode2018marginal, sections 4.3 and 6.3"
    oracle_name: ClassVar[str] = "hrr"
    most: ClassVar[int] = MAX_STATE_NUMBERS


class AllMarginals(PerTable):
    """Randomized response or unary encoding by each table's size; hashing for the largest."""

    name: ClassVar[str] = "am"
    about: ClassVar[str] = "each table by the better of two oracles"
    source: ClassVar[str] = "zhang2018calm, section 3.4"
    oracle_name: ClassVar[str] = CALM_RULE
    most: ClassVar[int] = MAX_STATE_NUMBERS


PER_TABLE: tuple[MarginalMethod, ...] = (
    MarginalRandomizedResponse(),
    MarginalPreferentialSampling(),
    MarginalHadamard(),
    AllMarginals(),
)
