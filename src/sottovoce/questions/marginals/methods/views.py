"""Views: what methods share whose cohorts each report the table of a few attributes.

A view's table comes unbiased from its cohort. Where it is repaired afterwards no formula gives the
errors, so they are found by asking simulated crowds again that answer as the fitted tables say.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
from sottovoce.protocol.families import Family, Listed, views_of
from sottovoce.protocol.families.base import Cohort
from sottovoce.questions.marginals.method import BOOTSTRAP, Fit, Floats, PairEvidence
from sottovoce.questions.marginals.methods.view_evidence import ViewPair
from sottovoce.questions.marginals.models.structure import PAIR_TIE, UNKNOWN_TIE
from sottovoce.questions.marginals.models.ties import tie_variances
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
SMALLEST_ROOM = 1e-9  # for a tie, of attributes of which all people have one value
REPLICATE_SEED = 20_240_229


# -- what cohorts report


def listed(encodings: Iterable[Encoding], oracles: Iterable[Oracle]) -> Family:
    """One cohort per view, all of the same weight."""
    asks = [Ask(encoding, oracle) for encoding, oracle in zip(encodings, oracles, strict=True)]
    return Listed([Cohort((ask,)) for ask in asks])


def is_in_blocks(views: Any) -> bool:
    """Whether views are told by the runs of their ranks, as plans hold them. Plans of before list
    them, and so may a person.
    """
    return isinstance(views, Sequence) and len(views) > 0 and isinstance(views[0], Mapping)


def read_views(method: str, views: Any, points: int) -> tuple[Places, ...]:
    """Views as options hold them: in blocks or as lists."""
    if not is_in_blocks(views):
        return checked_views(method, views, points)
    try:
        return views_of(points, views)
    except (TypeError, ValueError):
        raise InvalidInput(f"{method}: views must be lists of places, or blocks of them") from None


def checked_views(method: str, views: Any, points: int) -> tuple[Places, ...]:
    """Views as options hold them: lists of increasing places, none of them twice."""
    try:
        made = tuple(tuple(whole("view", place, 0, points - 1) for place in view) for view in views)
    except (TypeError, ValueError):
        raise InvalidInput(f"{method}: views must be lists of places") from None
    for view in made:
        if not view or list(view) != sorted(set(view)):
            rule = f"must be increasing places below {points}"
            raise InvalidInput(f"{method}: view {list(view)} {rule}")
    if not made or len(set(made)) < len(made):
        raise InvalidInput(f"{method}: views must be one or more, each once")
    return made


@lru_cache(maxsize=1024)
def contrast_variance(oracle: Oracle, people: int) -> float:
    """Variance of a contrast of the estimated cells, all equally frequent.

    A contrast has weights that sum to 0 and whose squares sum to 1. Sums of cells over attributes
    differ by contrasts, and the total is known, so this is the noise that matters. It is a cell's
    own variance if cells are uncorrelated, and more where they share a fixed total.
    """
    # The covariance is a I + b 1 1^T: one cell has a + b, the sum of two 2 a + 4 b.
    # So  a = 2 Var(one) - Var(two)/2
    one = float(oracle.sum_noise(people, 1).variance(1 / oracle.size))
    two = float(oracle.sum_noise(people, 2).variance(2 / oracle.size))
    return 2 * one - two / 2


def view_weights(
    oracles: Sequence[Oracle], people: Sequence[int] | NDArray[np.int64], everybody: int
) -> Floats:
    """What the cells of each view weigh: the inverse of the variance of a contrast of them.

    Args:
        oracles: Of each view.
        people: Who report each view.
        everybody: All people, of whom those of a view are a random part.

    Returns:
        The weights, (views,).
    """
    noise: dict[Oracle, float] = {}  # for one person
    for oracle in oracles:
        if oracle not in noise:
            noise[oracle] = contrast_variance(oracle, 1)
    variances = []
    for oracle, count in zip(oracles, people, strict=True):
        respondents = int(count)
        # a random part of everybody:  (1/n_c - 1/n) f (1 - f) for each cell, in the mean 1/cells
        drawn = (1 / respondents - 1 / max(everybody, respondents)) / oracle.size
        variances.append(noise[oracle] / respondents + drawn)
    return 1 / np.maximum(variances, SMALLEST_VIEW_VARIANCE)


@dataclass(frozen=True)
class ViewsHeard:
    """What the cohorts of an aggregate said: the views that anybody reported, with their tables.

    Attributes:
        overlap: Those views.
        cells: Their unbiased tables in one row, as the overlap lays them out, (cells,).
        noise: Variances of the cells' privacy noise, (cells,).
        people: Who reported each view, (views,).
        everybody: How many they are together.
        oracles: Of each view.
    """

    overlap: Overlap
    cells: Floats
    noise: Floats
    people: NDArray[np.int64]
    everybody: int
    oracles: tuple[Oracle, ...]

    @classmethod
    def listen(
        cls, aggregate: Aggregate, sizes: Sequence[int], views: Sequence[Places]
    ) -> ViewsHeard:
        """What an aggregate holds, whose cohort i reports view i.

        Args:
            aggregate: The reports.
            sizes: Of the points that views are made of.
            views: All of them; those that nobody reported are left out.
        """
        kept, tables, noise, counts, oracles = [], [], [], [], []
        for index, view in enumerate(views):
            people = aggregate.cohort_people(index)
            if people:
                frequencies, variances = aggregate.frequencies(index)
                kept.append(view)
                tables.append(frequencies)
                noise.append(variances)
                counts.append(people)
                oracles.append(aggregate.plan.cohorts[index].oracles[0])
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
        """Variances of the cells' errors with respect to everybody who reported, (cells,)."""
        # the cohort is a random part of everybody:  (1/n_c - 1/n) f (1 - f)
        shares = np.clip(self.cells, 0, 1)
        sampling = (1 / self.people - 1 / self.everybody)[self.overlap.owner]
        return np.asarray(self.noise + sampling * shares * (1 - shares))

    @cached_property
    def weights(self) -> Floats:
        """What each view's cells weigh: the inverse of a typical variance, (views,)."""
        return view_weights(self.oracles, self.people, self.everybody)

    def again(self, fitted: Floats, replicates: int = CROWD_REPLICATES) -> Floats:
        """What crowds of the same size would tell, whose views' tables are the fitted ones.

        Args:
            fitted: Tables of all views in a row, (cells,).
            replicates: How many crowds.

        Returns:
            A row for each crowd, (replicates, cells).
        """
        draws = np.random.Generator(np.random.PCG64(REPLICATE_SEED))
        out = np.empty((replicates, self.overlap.cells))
        views_of: dict[Oracle, list[int]] = {}
        for view, oracle in enumerate(self.oracles):
            views_of.setdefault(oracle, []).append(view)
        tables = self.overlap.project(fitted)
        laws = {}
        for view, span in self.overlap.slices.items():
            # rounding may leave a sum just above one, which a generator refuses
            laws[view] = tables[span] / tables[span].sum()
        for oracle, views in views_of.items():
            for row in range(replicates):
                self._replay(oracle, views, laws, draws, out[row])
        return out

    def _replay(
        self,
        oracle: Oracle,
        views: Sequence[int],
        laws: Mapping[int, Floats],
        draws: np.random.Generator,
        row: Floats,
    ) -> None:
        """Ask a simulated crowd about all views of one oracle, and write what it tells into a row.

        Args:
            oracle: Of these views.
            views: Their numbers.
            laws: For each view its table, (cells of the view,).
            draws: Where the crowd's values and coins come from.
            row: What all views tell, (cells,).
        """
        crowds = [min(int(self.people[view]), MOST_REPLAYED) for view in views]
        counts = [
            draws.multinomial(crowd, laws[view]) for view, crowd in zip(views, crowds, strict=True)
        ]  # people of each value, for each view
        codes = np.tile(np.arange(oracle.size), len(views))
        values = np.repeat(codes, np.concatenate(counts))  # of one person after the other
        payload = oracle.simulate(values, int(draws.integers(1 << 62)))
        ends = np.cumsum(crowds).tolist()
        for view, crowd, end, held in zip(views, crowds, ends, counts, strict=True):
            told, _ = oracle.estimate_reports(payload[end - crowd : end])
            true = held / crowd
            # the noise of the reports, and by how much a random part of everybody differs from all
            part = np.sqrt(1 - self.people[view] / self.everybody)
            error = (told - true) + part * (true - laws[view])
            scale = np.sqrt(crowd / self.people[view])
            row[self.overlap.slices[view]] = laws[view] + scale * error


# -- tables from views


class Reconstruction:
    """Tables of any attributes from the coefficients that all views share.

    A table that lies in a view is read off; any other has maximum entropy given the tables of its
    parts that do.

    Args:
        overlap: The views.
        coefficients: Those that they share, (rows, coefficients).
        cells: The views' own tables, (rows, cells).
    """

    def __init__(self, overlap: Overlap, coefficients: Floats, cells: Floats) -> None:
        self.overlap = overlap
        self.coefficients = coefficients
        self._cells = cells
        self._masks = [sum(1 << place for place in view) for view in overlap.views]
        self._known: dict[Places, Floats] = {}

    def views(self) -> Floats:
        """The views' own tables, (rows, cells)."""
        return self._cells

    def known(self, places: Places) -> Floats:
        """A table that lies in a view, made non-negative, (rows, cells of the table)."""
        if places not in self._known:
            self._known[places] = norm_sub(self.overlap.table(self.coefficients, places))
        return self._known[places]

    def parts(self, places: Places) -> list[Places]:
        """The largest parts of a set that lie in views."""
        return parts_in(self._masks, places)

    def table(self, places: Places) -> Floats:
        """The table of a set of places, (rows, cells of the table)."""
        if self.overlap.knows(places):
            return self.known(places)
        shape = tuple(self.overlap.sizes[place] for place in places)
        parts = self.parts(places)
        rows = len(self.coefficients)
        if not parts:
            return np.full((rows, prod(shape)), 1 / prod(shape))
        axes = [tuple(places.index(place) for place in part) for part in parts]
        tables = [self.known(part) for part in parts]
        return proportional_fits(shape, axes, tables).reshape(rows, -1)

    def chosen(self, places: Places, values: NDArray[np.int64]) -> Floats:
        """The same for some cells alone, which are all there are.

        Args:
            places: The attributes of the table.
            values: Those of each cell, (places, cells).

        Returns:
            Frequencies, (rows, cells).
        """
        targets, maps = [], []
        for part in self.parts(places):
            shape = tuple(self.overlap.sizes[place] for place in part)
            own = tuple(values[places.index(place)] for place in part)
            targets.append(self.known(part))
            maps.append(np.ravel_multi_index(own, shape))  # each cell's cell of the part
        return fit_cells(values.shape[1], maps, targets, len(self.coefficients))


def parts_in(masks: Iterable[int], places: Places) -> list[Places]:
    """The largest sets of ``places`` that lie in one of some sets, which are given by their bits.

    >>> parts_in([0b0111, 0b1100, 0b0100], (0, 2, 3))
    [(0, 2), (2, 3)]
    """
    whole = sum(1 << place for place in places)
    inside = {mask & whole for mask in masks} - {0}
    kept: list[int] = []
    for mask in sorted(inside, key=lambda own: (-own.bit_count(), own)):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return [tuple(place for place in places if mask >> place & 1) for mask in kept]


class ViewFit(Fit):
    """Tables from views, with errors by a parametric bootstrap.

    The crowd is asked again, and fitted again.
    """

    errors: ClassVar[str] = BOOTSTRAP

    def __init__(self, work: Workload, heard: ViewsHeard) -> None:
        self.work, self.heard = work, heard

    @abstractmethod
    def source(self, cells: Floats, *, is_replayed: bool) -> Any:
        """What rows of the views' cells say.

        Args:
            cells: The views' tables as heard, (rows, cells).
            is_replayed: Whether simulated crowds told them.

        Returns:
            An object with ``table(places)`` in rows, ``known(places)`` of parts of views and
            ``views()``.
        """

    @cached_property
    def model(self) -> Any:
        """The fit of what was heard."""
        return self.source(self.heard.cells[None, :], is_replayed=False)

    @cached_property
    def replicas(self) -> Any:
        """The fits of simulated crowds that answer as the fit says."""
        fitted = self.model.views()[0]
        return self.source(self.heard.again(fitted), is_replayed=True)

    def answer(self, source: Any, places: Places) -> Floats:
        """The table of attributes from a source, (rows, cells of the table)."""
        return np.asarray(source.table(places))

    def is_known(self, places: Places) -> bool:
        """Whether attributes lie in one view."""
        return self.heard.overlap.knows(places)

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return [self.answer(self.model, places)[0] for places in sets]

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        out = []
        for places, table in zip(sets, self.tables(sets), strict=True):
            errors = self.answer(self.replicas, places) - table  # (replicates, cells)
            squares = (errors**2).mean(0)
            smooth = (1 - SMOOTHING) * squares + SMOOTHING * squares.mean()
            out.append(smooth + tie_variances(self.work, places, table, self.is_tied))
        return out

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        (table,) = self.tables([places])
        if tie_variances(self.work, places, table, self.is_tied).any():
            return None  # an assumption counts beside the crowds
        errors = self.answer(self.replicas, places) - table  # (replicates, cells)
        square = float((errors[:, cells].sum(axis=1) ** 2).mean())
        typical = float((errors**2).mean()) * cells.size  # if cells were alike and apart
        return (1 - SMOOTHING) * square + SMOOTHING * typical

    def evidence(self, pairs: Sequence[Places]) -> Sequence[PairEvidence] | None:
        """The views' averages, before any repair or model."""
        if not all(self.heard.overlap.knows(pair) for pair in pairs):
            return None
        return [ViewPair.of(self.heard, self._unrepaired, pair) for pair in pairs]

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
        # the square of a contrast of variance v has variance 2 v^2, and a pair has
        # (K_a - 1)(K_b - 1) contrasts
        variance = 0.0
        for own, noise in zip(known, noises, strict=True):
            contrasts = prod(self.heard.overlap.sizes[place] - 1 for place in own)
            variance += 2 * noise**2 / contrasts
        most = (sum(squares) - sum(noises) + 2 * sqrt(variance)) / sum(rooms)
        return float(max(PAIR_TIE**2, min(most, UNKNOWN_TIE)))

    def _squared_tie(self, pair: Places) -> tuple[float, float, float]:
        """Sums over a pair's cells: (of its squared tie as heard, of the noise in it, and of what
        r^2 = 1 would give).
        """
        # f_ab - f_a f_b = r sqrt(f_a (1 - f_a) f_b (1 - f_b))
        overlap = self.heard.overlap
        shape = tuple(overlap.sizes[place] for place in pair)
        table = overlap.table(self._unrepaired, pair).reshape(shape)
        ties = table - np.outer(table.sum(1), table.sum(0))
        square = float((ties**2).sum())
        one = self.model.known(pair[:1])[0]
        two = self.model.known(pair[1:])[0]
        singles = self._part_noise(pair[:1]) * float(two @ two)
        singles += self._part_noise(pair[1:]) * float(one @ one)
        noise = self._part_noise(pair) + singles
        room = float((one * (1 - one)).sum() * (two * (1 - two)).sum())
        return square, noise, room + SMALLEST_ROOM

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
