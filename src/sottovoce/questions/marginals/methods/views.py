"""Views: what methods share whose cohorts each report the table of a few attributes.

A view's table comes unbiased from its cohort. Where it is repaired afterwards no formula gives the
errors, so they are found by asking simulated crowds again that answer as the fitted tables say.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle
from sottovoce.postprocessing.consistency import Overlap
from sottovoce.postprocessing.maximum_entropy import fit_cells, proportional_fits
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.encodings import Ask, Encoding
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.questions.marginals.method import BOOTSTRAP, Fit, Floats
from sottovoce.questions.marginals.models.structure import (
    EVENNESS,
    PAIR_TIE,
    TRIPLE_TIE,
    UNKNOWN_TIE,
)
from sottovoce.questions.marginals.workload import Places, Workload

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

CROWD_REPLICATES = 24  # simulated crowds behind the errors
# people of a view in a simulated crowd; with more, their errors are scaled down to size
MOST_REPLAYED = 2048
# of a cell's variance is the mean of its table: few replicates say little of cells held at 0
SMOOTHING = 0.2
MAX_TIE_PAIRS = 100  # that the usual tie of a pair is taken from
SMALLEST_VIEW_VARIANCE = 1e-15  # epsilon may be so large that nothing is noisy
REPLICATE_SEED = 20_240_229


def listed(encodings: Iterable[Encoding], oracles: Iterable[Oracle]) -> Family:
    """One cohort per view, all of the same weight."""
    return Listed(
        [Cohort((Ask(each, oracle),)) for each, oracle in zip(encodings, oracles, strict=True)]
    )


def checked_views(method: str, views: Any, points: int) -> tuple[Places, ...]:
    """Views as options hold them: lists of increasing places, none of them twice."""
    try:
        made = tuple(tuple(whole("view", place, 0, points - 1) for place in view) for view in views)
    except (TypeError, ValueError):
        raise InvalidInput(f"{method}: views must be lists of places") from None
    for view in made:
        if not view or list(view) != sorted(set(view)) or view[0] < 0 or view[-1] >= points:
            raise InvalidInput(
                f"{method}: view {list(view)} must be increasing places below {points}"
            )
    if not made or len(set(made)) < len(made):
        raise InvalidInput(f"{method}: views must be one or more, each once")
    return made


def contrast_variance(oracle: Oracle, people: int) -> float:
    """Variance of a contrast (weights that sum to 0, their squares to 1) of the estimated cells,
    all equally frequent.

    Sums of cells over attributes differ by contrasts, and the total is known, so this is the noise
    that matters. It is a cell's own variance if cells are uncorrelated, and more where they share a
    fixed total.
    """
    # covariance a I + b 1 1^T:  one cell a + b, two cells 2 a + 4 b,  so  a = 2 Var(one) -
    # Var(two)/2
    one = float(oracle.sum_noise(people, 1).variance(1 / oracle.size))
    two = float(oracle.sum_noise(people, 2).variance(2 / oracle.size))
    return 2 * one - two / 2


@dataclass(frozen=True)
class ViewsHeard:
    """What the cohorts of an aggregate said: the views that anybody reported, with their unbiased
    tables.
    """

    overlap: Overlap
    cells: Floats  # the tables in one row, as the overlap lays them out
    noise: Floats  # variances of the cells' privacy noise
    people: NDArray[np.int64]  # of each view
    everybody: int
    oracles: tuple[Oracle, ...]

    @classmethod
    def listen(
        cls, aggregate: Aggregate, sizes: Sequence[int], views: Sequence[Places]
    ) -> ViewsHeard:
        """Cohort i reports view i, over attributes of ``sizes``. Views that nobody reported are
        left out.
        """
        kept, tables, noise, counts, oracles = [], [], [], [], []
        for index, view in enumerate(views):
            people = aggregate.cohort_people(index)
            if people:
                oracle = aggregate.plan.cohorts[index].oracles[0]
                frequencies, variances = aggregate.frequencies(index)
                kept.append(view)
                tables.append(frequencies)
                noise.append(variances)
                counts.append(people)
                oracles.append(oracle)
        overlap = Overlap(sizes, kept)
        return cls(
            overlap,
            overlap.pack(tables),
            overlap.pack(noise),
            np.array(counts, np.int64),
            int(sum(counts)),
            tuple(oracles),
        )

    @cached_property
    def cell_variances(self) -> Floats:
        """Variances of the cells' errors with respect to everybody who reported."""
        # the cohort is a random part of everybody:  (1/n_c - 1/n) f (1 - f)
        shares = np.clip(self.cells, 0, 1)
        sampling = (1 / self.people - 1 / self.everybody)[self.overlap.owner]
        return np.asarray(self.noise + sampling * shares * (1 - shares))

    @cached_property
    def weights(self) -> Floats:
        """What each view's cells weigh: the inverse of a typical variance."""
        return view_weights(self.oracles, self.people, self.everybody)

    def again(self, fitted: Floats, replicates: int = CROWD_REPLICATES) -> Floats:
        """The rows of cells that crowds of the same size would give whose views' tables are the
        fitted ones.
        """
        draws = np.random.Generator(np.random.PCG64(REPLICATE_SEED))
        out = np.empty((replicates, self.overlap.cells))
        alike: dict[Oracle, list[int]] = {}
        for number, oracle in enumerate(self.oracles):
            alike.setdefault(oracle, []).append(number)
        tables = self.overlap.project(fitted)
        for oracle, numbers in alike.items():
            crowds = [min(int(self.people[number]), MOST_REPLAYED) for number in numbers]
            ends = np.cumsum(crowds)
            laws = [_summing_to_one(tables[self.overlap.slices[number]]) for number in numbers]
            codes = np.arange(oracle.size)
            for row in range(replicates):
                counts = [
                    draws.multinomial(crowd, law) for crowd, law in zip(crowds, laws, strict=True)
                ]
                values = np.repeat(np.tile(codes, len(numbers)), np.concatenate(counts))
                payload = oracle.simulate(values, int(draws.integers(1 << 62)))
                for number, crowd, end, law, held in zip(
                    numbers, crowds, ends.tolist(), laws, counts, strict=True
                ):
                    found, _ = oracle.estimate_reports(payload[end - crowd : end])
                    # the noise of the reports, and by what a random part of everybody differs from
                    # all of them
                    part = np.sqrt(1 - self.people[number] / self.everybody)
                    error = (found - held / crowd) + part * (held / crowd - law)
                    out[row, self.overlap.slices[number]] = (
                        law + np.sqrt(crowd / self.people[number]) * error
                    )
        return out


def view_weights(
    oracles: Sequence[Oracle], people: Sequence[int] | NDArray[np.int64], everybody: int
) -> Floats:
    """The inverse of the variance of a contrast of each view's cells: noise, and that of a random
    part of everybody.
    """
    noise: dict[Oracle, float] = {}
    for oracle in oracles:
        if oracle not in noise:
            noise[oracle] = contrast_variance(oracle, 1)
    each = [
        noise[oracle] / int(count) + (1 / int(count) - 1 / max(everybody, int(count))) / oracle.size
        for oracle, count in zip(oracles, people, strict=True)
    ]
    return 1 / np.maximum(each, SMALLEST_VIEW_VARIANCE)


def _summing_to_one(table: Floats) -> Floats:
    """A law that a generator takes: rounding may leave a sum just above one."""
    return np.asarray(table / table.sum())


class Reconstruction:
    """Tables of any attributes from the coefficients that all views share; rows of them give rows
    of tables.

    A table that lies in a view is read off; any other has maximum entropy given the tables of its
    parts that do.
    """

    def __init__(self, overlap: Overlap, coefficients: Floats, cells: Floats) -> None:
        self.overlap, self.coefficients, self._cells = overlap, coefficients, cells
        self._masks = [sum(1 << place for place in view) for view in overlap.views]
        self._known: dict[Places, Floats] = {}

    def views(self) -> Floats:
        """The views' own tables, in rows of cells."""
        return self._cells

    def known(self, places: Places) -> Floats:
        """A table that lies in a view, made non-negative."""
        if places not in self._known:
            self._known[places] = norm_sub(self.overlap.table(self.coefficients, places))
        return self._known[places]

    def parts(self, places: Places) -> list[Places]:
        """The largest parts of a set that lie in views."""
        return parts_in(self._masks, places)

    def table(self, places: Places) -> Floats:
        """The table of a set of places, one row per row of coefficients."""
        if self.overlap.knows(places):
            return self.known(places)
        shape = tuple(self.overlap.sizes[place] for place in places)
        parts = self.parts(places)
        axes = [tuple(places.index(place) for place in part) for part in parts]
        rows = len(self.coefficients)
        if not parts:
            return np.full((rows, prod(shape)), 1 / prod(shape))
        return proportional_fits(shape, axes, [self.known(part) for part in parts]).reshape(
            rows, -1
        )

    def chosen(self, places: Places, values: NDArray[np.int64]) -> Floats:
        """The same for some cells alone, which are all there are: column c holds the values of cell
        c's places.
        """
        targets, maps = [], []
        for part in self.parts(places):
            shape = tuple(self.overlap.sizes[place] for place in part)
            targets.append(self.known(part))
            maps.append(
                np.ravel_multi_index(tuple(values[places.index(place)] for place in part), shape)
            )
        return fit_cells(values.shape[1], maps, targets, len(self.coefficients))


def parts_in(masks: Iterable[int], places: Places) -> list[Places]:
    """The largest sets of ``places`` that lie in one of some sets,
    which are given by their bits.
    """
    whole = sum(1 << place for place in places)
    kept: list[int] = []
    for mask in sorted(
        {mask & whole for mask in masks} - {0}, key=lambda own: (-own.bit_count(), own)
    ):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return [tuple(place for place in places if mask >> place & 1) for mask in kept]


class ViewFit(Fit):
    """Tables from views, with errors by a parametric bootstrap: the crowd asked again, fitted
    again.
    """

    errors: ClassVar[str] = BOOTSTRAP

    def __init__(self, work: Workload, heard: ViewsHeard) -> None:
        self.work, self.heard = work, heard

    @abstractmethod
    def source(self, cells: Floats, *, is_replayed: bool) -> Any:
        """What rows of the views' cells say: ``table(places)`` in rows, ``known`` of parts of
        views, ``views()``.
        """

    @cached_property
    def model(self) -> Any:
        """The fit of what was heard."""
        return self.source(self.heard.cells[None, :], is_replayed=False)

    @cached_property
    def replicas(self) -> Any:
        """The fits of simulated crowds that answer as the fit says."""
        return self.source(self.heard.again(self.model.views()[0]), is_replayed=True)

    def answer(self, source: Any, places: Places) -> Floats:
        """The table of attributes from a source, in rows."""
        return np.asarray(source.table(places))

    def is_known(self, places: Places) -> bool:
        """Whether attributes lie in one view."""
        return self.heard.overlap.knows(places)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return [self.answer(self.model, places)[0] for places in sets]

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places, table in zip(sets, self.tables(sets), strict=True):
            squares = ((self.answer(self.replicas, places) - table) ** 2).mean(0)
            smooth = (1 - SMOOTHING) * squares + SMOOTHING * squares.mean()
            out.append(smooth + tie_variances(self.work, places, table, self.is_tied))
        return out

    def pairs(self) -> list[Places]:
        """Pairs that some view holds."""
        return [own for own in self.heard.overlap.starts if len(own) == 2]

    @cached_property
    def pair_tie(self) -> float:
        """The most that the mean squared tie of the pairs that views hold may well be."""
        known = self.pairs()
        known = known[:: max(1, len(known) // MAX_TIE_PAIRS)]
        if not known:
            return UNKNOWN_TIE
        squares, noises, rooms = zip(*(self._squared_tie(own) for own in known), strict=True)
        # the square of a contrast of variance v has variance 2 v^2, and a pair has (K_a - 1)(K_b -
        # 1) contrasts
        free = [prod(self.heard.overlap.sizes[place] - 1 for place in own) for own in known]
        error = sqrt(sum(2 * noise**2 / count for noise, count in zip(noises, free, strict=True)))
        most = (sum(squares) - sum(noises) + 2 * error) / sum(rooms)
        return float(max(PAIR_TIE**2, min(most, UNKNOWN_TIE)))

    def _squared_tie(self, pair: Places) -> tuple[float, float, float]:
        """Sums over a pair's cells: of (f_ab - f_a f_b)^2 as heard, of its noise, and of what r^2 =
        1 gives.
        """
        # f_ab - f_a f_b = r sqrt(f_a (1 - f_a) f_b (1 - f_b))
        overlap, raw = self.heard.overlap, self._unrepaired
        shape = tuple(overlap.sizes[place] for place in pair)
        table = overlap.table(raw, pair).reshape(shape)
        one, two = self.model.known(pair[:1])[0], self.model.known(pair[1:])[0]
        square = float(((table - np.outer(table.sum(1), table.sum(0))) ** 2).sum())
        noise = self._part_noise(pair)
        noise += self._part_noise(pair[:1]) * float(two @ two) + self._part_noise(pair[1:]) * float(
            one @ one
        )
        return square, noise, float((one * (1 - one)).sum() * (two * (1 - two)).sum()) + 1e-9

    @cached_property
    def _unrepaired(self) -> Floats:
        overlap = self.heard.overlap
        return overlap.averages(self.heard.cells, overlap.averager(self.heard.weights))

    def _part_noise(self, places: Places) -> float:
        """The summed variance of what is heard of some places beyond what fewer of them say."""
        overlap = self.heard.overlap
        shape = [overlap.sizes[place] for place in places]
        weight = overlap.weights(self.heard.weights)[overlap.starts[places]]
        return prod(size - 1 for size in shape) / (prod(shape) * float(weight))

    def is_heard(self, part: Places) -> bool:
        return self.is_tied(part)

    def is_tied(self, places: Places) -> bool:
        """Whether views tell how attributes go together, so that maximum entropy need not guess."""
        return self.is_known(places)

    def is_reconstructed(self, places: Places) -> bool:
        return not self.is_known(places)


def tie_variances(
    work: Workload, places: Places, table: Floats, is_tied: Callable[[Places], bool]
) -> Floats:
    """What maximum entropy may be off by, per cell, for all up to three attributes that no view
    holds together.
    """
    if is_tied(places):
        return np.zeros(table.size)
    parts = [
        own for count in range(1, min(3, len(places)) + 1) for own in combinations(places, count)
    ]
    return unknown_variances(work, places, table, [own for own in parts if not is_tied(own)])


def unknown_variances(
    work: Workload,
    places: Places,
    table: Floats,
    parts: Iterable[Places],
    shares: Mapping[Places, float] | None = None,
) -> Floats:
    """What a table may be off by, per cell, because nothing was heard of some parts of it.

    ``shares``: of a part, the share of its variance that is unknown; all of it unless given.

    Of two attributes that nobody was asked about together any tie is as likely as any other; of
    three, what goes beyond their pairs is as is usual.
    """
    shape = work.shape(places)
    cube = table.reshape(shape)
    out = np.zeros(shape)
    odds = {}
    for axis, (place, size) in enumerate(zip(places, shape, strict=True)):
        share = np.clip(
            cube.sum(axis=tuple(other for other in range(len(shape)) if other != axis)),
            0.5 / size**2,
            1,
        )
        odds[place] = ((1 - share) / share).reshape(
            [-1 if other == axis else 1 for other in range(len(shape))]
        )
    for own in parts:
        # f_S = prod f_a + r prod sqrt(f_a (1 - f_a)):  relative to f_S, r prod sqrt((1 - f_a) /
        # f_a)
        square = UNKNOWN_TIE if len(own) == 2 else tie_square(work, own)
        unknown = 1.0 if shares is None else shares.get(own, 1.0)
        out += square * unknown * prod((odds[place] for place in own), start=np.ones(1))
    return np.asarray((out * cube**2).ravel())


def tie_square(work: Workload, places: Places) -> float:
    """The mean squared tie of attributes beyond what fewer of them say; of one, its own distance
    from uniform.
    """
    if len(places) == 1:
        # Var f / (f (1 - f)) at f = 1/K for a Dirichlet law of parameter a over K values
        return 1 / (work.sizes[places[0]] * EVENNESS + 1)
    return {2: PAIR_TIE**2, 3: TRIPLE_TIE**2}.get(len(places), 0.0)
