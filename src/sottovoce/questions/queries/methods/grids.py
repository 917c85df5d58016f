"""Shifted grids, and a cascade of splits fitted to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log10
from typing import Any, ClassVar

import numpy as np

from sottovoce.oracles import oracle
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.questions.queries.evidence import Floats, GridEvidence, error_law
from sottovoce.questions.queries.fitted import FittedTable, Term
from sottovoce.questions.queries.method import GridMethod, PlannedGrid, oracle_of_size
from sottovoce.questions.queries.models.blend import blended
from sottovoce.questions.queries.models.forecast import forecast_errors
from sottovoce.questions.queries.models.line import LineTable, fit_line, fit_unbiased
from sottovoce.questions.queries.models.several import SeveralTable, fit_several
from sottovoce.questions.queries.models.unbiased import planned_covariance
from sottovoce.questions.queries.models.weights import fit_weighted
from sottovoce.questions.queries.target import Target

MAX_SIZE = 4096  # codes of a dimension: the errors of all of them are known together
MAX_DIMENSIONS = 12  # so that all pairs can be asked about
SHIFTS = 8  # of each grid, as far as it has codes to shift by
WEIGHT_PARTS = 840  # of a grid's weight, so that any number of shifts up to 8 divides it
MOST_COMPARED = 256  # codes of a dimension for which ways to share people out are compared
CLEARLY = 0.75  # of the usual squared error: forecasts are not good enough for less
SMALLEST_ERROR = 1e-30
CODES = 0  # a number of cells: one for each code
FEW_CELLS = (4, 8, 32, 128)
STRONG_CELLS = (8, 32, 128)  # from STRONG on; but of not so many codes:
STRONG_MIDDLE_CELLS = (8, 32)  # 128 cells tell of ranges hardly more than 256 codes themselves
MIDDLE_CODES = 256
STRONG = 2.5  # epsilon
# where reports of all codes are clear, each finer grid has twice the people: single codes are told
# best by those who answer for all of them
FEW_CODES = 64
STRONG_RISE = 2.0
# where means matter: two cells, in many shifts, tell of a mean as much as a weak report can, and
# four as much as a clear one
MEAN_CELLS = (2, 4, 8, 32, 128)
MEAN_FALL = 0.75
MEAN_WEAK_FALL = 0.65  # below an epsilon of WEAK
MEAN_STRONG_CELLS = (4, 8, 32)
MEAN_STRONG_FALL = 0.8
WEAK = 1.0  # epsilon
FALL = 0.75  # each finer grid has so many of the people of the one before, unless signals are clear
UNCLEAR, CLEAR = 300.0, 3000.0  # signal to noise between which all grids become alike

# (cells, parts of the people): of each axis, and of each pair
PAIR_LINES = ((8, 150), (32, 100), (CODES, 50))
PAIR_PLANES = ((4, 200), (8, 150), (16, 100))
MANY_LINES = ((8, 500), (32, 300), (CODES, 200))
MANY_PLANES = ((4, 550), (8, 450))
MANY_SINGLES = 300  # of 1000 people, those who are asked about one axis, where there are more


@dataclass(frozen=True)
class Cut:
    """How one axis is cut: a width and a shift."""

    width: int
    shift: int


def cuts_of(size: int, cells: int, is_ordered: bool) -> list[Cut]:
    """An axis in about so many cells, in every shift; categories are never joined.

    >>> [(cut.width, cut.shift) for cut in cuts_of(8, 4, True)]
    [(2, 0), (2, 1)]
    """
    if not is_ordered or cells == CODES or cells >= size:
        return [Cut(1, 0)]
    width = max(1, round(size / cells))
    shifts = min(SHIFTS, width)
    return [Cut(width, width * place // shifts) for place in range(shifts)]


class ShiftedGrids(GridMethod):
    """Everybody answers one grid: a few cells or many, shifted by a public amount.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    ours
    Checked:   tests/exact/test_query_plans.py
    """

    name = "grids"
    about = "grids of several widths in several shifts, a cascade of splits fitted to all of them"
    source = "ours"
    options: ClassVar[tuple[str, ...]] = ()

    def refuse(self, target: Target, terms: Terms) -> str | None:
        largest = max(target.sizes)
        if largest > MAX_SIZE:
            return f"a dimension of {largest:,} values is more than {MAX_SIZE:,}"
        if len(target) > MAX_DIMENSIONS:
            return f"{len(target)} dimensions are more than {MAX_DIMENSIONS}"
        return None

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Numbers of cells with their parts of the people, of each axis and of each pair."""
        self.check_options(options)
        if len(target) == 1:
            return {"lines": self._best_lines(target, terms), "planes": []}
        if max(target.workload.orders) == 1:  # nobody asks for two dimensions at once
            return {"lines": _line_parts(max(target.sizes), terms), "planes": []}
        if len(target) == 2:
            return {"lines": _listed(PAIR_LINES), "planes": _listed(PAIR_PLANES)}
        pairs = len(target) * (len(target) - 1) // 2
        # parts are of each axis and of each pair: singles and pairs keep 300 and 700 of 1000
        lines = [[cells, parts * MANY_SINGLES * pairs] for cells, parts in MANY_LINES]
        planes = [
            [cells, parts * (1000 - MANY_SINGLES) * len(target)] for cells, parts in MANY_PLANES
        ]
        return {"lines": lines, "planes": planes}

    def _best_lines(self, target: Target, terms: Terms) -> list[list[int]]:
        """How the people of one dimension are shared out: another way than the usual one if it is
        expected to be clearly better, by its share of the usual error on average over the workload.
        """
        dimension = target.dimensions[0]
        if dimension.is_ordered and target.workload.has_mean:
            return _mean_parts(dimension.size, terms)
        usual = _line_parts(dimension.size, terms)
        if not dimension.is_ordered or dimension.size > MOST_COMPARED:
            return usual
        best, least = usual, CLEARLY
        base = self._line_errors(target, terms, usual)
        for lines in _line_choices(dimension.size, terms):
            share = float(np.mean(self._line_errors(target, terms, lines) / base))
            if share < least:
                best, least = lines, share
        return best

    def _line_errors(self, target: Target, terms: Terms, lines: list[list[int]]) -> Floats:
        """Expected squared errors of the workload's selections, none exactly 0."""
        options = {"lines": lines, "planes": []}
        errors = self.predict_terms(target, terms, options, target.terms)
        return np.maximum(errors, SMALLEST_ERROR)

    def grids(self, target: Target, options: Options) -> tuple[PlannedGrid, ...]:
        found: list[PlannedGrid] = []
        ordered = [one.is_ordered for one in target.dimensions]
        for axis, size in enumerate(target.sizes):
            for cells, parts in options["lines"]:
                cuts = cuts_of(size, cells, ordered[axis])
                weight = parts * WEIGHT_PARTS // len(cuts)
                for cut in cuts:
                    found.append(PlannedGrid((axis,), (cut.width,), (cut.shift,), weight))
        for i, j in combinations(range(len(target)), 2):
            for cells, parts in options["planes"]:
                first = cuts_of(target.sizes[i], cells, ordered[i])
                second = cuts_of(target.sizes[j], cells, ordered[j])
                count = max(len(first), len(second))
                for place in range(count):
                    # a lattice: shifts of the two axes do not go together
                    x, y = first[place % len(first)], second[(3 * place + 1) % len(second)]
                    widths, shifts = (x.width, y.width), (x.shift, y.shift)
                    found.append(PlannedGrid((i, j), widths, shifts, parts * WEIGHT_PARTS // count))
        return _joined(found)

    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> FittedTable:
        ordered = [one.is_ordered for one in target.dimensions]
        if isinstance(counted, LineTable | SeveralTable):
            return fit_weighted(counted, evidence, ordered)
        if len(target) == 1:
            return blended(fit_line(evidence, target.sizes[0], is_ordered=ordered[0]))
        return fit_several(evidence, target.sizes, ordered)

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        planned = self._planned(target, terms, options)
        ordered = [one.is_ordered for one in target.dimensions]
        return forecast_errors(planned, target.sizes, ordered, selections)

    def _planned(self, target: Target, terms: Terms, options: Options) -> list[GridEvidence]:
        """What the grids of a plan will say, but for the values: those of even frequencies."""
        grids = self.grids(target, options)
        total = sum(grid.weight for grid in grids)
        planned = []
        for grid in grids:
            edges = []
            for axis, width, shift in zip(grid.axes, grid.widths, grid.shifts, strict=True):
                size = target.sizes[axis]
                edges.append(np.array([0, *range(width - shift, size, width), size], np.int64))
            lengths = [np.diff(each) / each[-1] for each in edges]
            even = lengths[0] if len(lengths) == 1 else np.outer(*lengths)
            people = max(terms.people * grid.weight / total, 1.0)
            told = oracle(oracle_of_size(even.size), size=even.size, epsilon=terms.epsilon)
            floor, slope, cross = error_law(told, people)
            planned.append(GridEvidence(grid.axes, tuple(edges), even, floor, slope, people, cross))
        return planned

    def reason(self, target: Target, terms: Terms, options: Options) -> str:
        return f"{len(self.grids(target, options))} grids, a cascade of splits"

    def explain(self, target: Target, plan: Plan, options: Options) -> list[str]:
        grids = self.grids(target, options)
        total = sum(grid.weight for grid in grids)
        single = sum(grid.weight for grid in grids if len(grid.axes) == 1)
        lines = [
            f"Grids: {len(grids):,}; {single / total:.0%} of the people tell of one dimension",
            "Answers: shrunk towards what neighbouring codes suggest, so not unbiased",
        ]
        if options["planes"] and len(target) > 2:
            lines.append("Three dimensions and more: maximum entropy over all pairs")
        return lines


class UnbiasedGrids(ShiftedGrids):
    """The same people and grids, answered by weighted least squares.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    ours
    Checked:   tests/exact/test_query_plans.py
    """

    name = "unbiased"
    about = "shifted grids of one dimension, least squares over all of them"
    is_unbiased = True

    def refuse(self, target: Target, terms: Terms) -> str | None:
        if len(target) > 1:
            return "it is for one dimension"
        return super().refuse(target, terms)

    def fit_grids(
        self,
        target: Target,
        evidence: Sequence[GridEvidence],
        options: Options,
        counted: FittedTable | None = None,
    ) -> FittedTable:
        return fit_unbiased(evidence, target.sizes[0])

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        whole = np.ones(target.sizes[0])
        weights = np.stack([np.asarray(each.get(0, whole), float) for each in selections])
        planned = self._planned(target, terms, options)
        return np.diag(planned_covariance(planned, weights.T))

    def explain(self, target: Target, plan: Plan, options: Options) -> list[str]:
        return [f"Grids: {len(self.grids(target, options)):,}"]


def _line_parts(size: int, terms: Terms) -> list[list[int]]:
    """About 4, 8, 32, 128 cells, and one for each code, each with fewer people than before."""
    epsilon = float(terms.epsilon)
    # how clear a code's frequency is:  n (E - 1)^2 / (4 E D),  as of local hashing
    signal = terms.people * (exp(epsilon / 2) - exp(-epsilon / 2)) ** 2 / 4 / size
    clear = log10(max(signal, 1.0) / UNCLEAR) / log10(CLEAR / UNCLEAR)
    fall = FALL + (1.0 - FALL) * min(max(clear, 0.0), 1.0)
    if epsilon >= STRONG and size <= FEW_CODES:
        fall = STRONG_RISE
    cells: Sequence[int] = FEW_CELLS
    if epsilon >= STRONG:
        cells = STRONG_MIDDLE_CELLS if size <= MIDDLE_CODES else STRONG_CELLS
    return _falling(_coarse(cells, size), fall)


def _mean_parts(size: int, terms: Terms) -> list[list[int]]:
    """The same where the mean matters too."""
    epsilon = float(terms.epsilon)
    if epsilon >= STRONG:
        return _falling(_coarse(MEAN_STRONG_CELLS, size), MEAN_STRONG_FALL)
    return _falling(_coarse(MEAN_CELLS, size), MEAN_WEAK_FALL if epsilon < WEAK else MEAN_FALL)


def _coarse(cells: Sequence[int], size: int) -> list[int]:
    """Those of some numbers of cells that join codes."""
    return [count for count in cells if count <= size // 2]


def _falling(cells: Sequence[int], fall: float) -> list[list[int]]:
    """These numbers of cells and every code, each with ``fall`` times the people before."""
    return [[count, round(1000 * fall**place)] for place, count in enumerate([*cells, CODES])]


def _line_choices(size: int, terms: Terms) -> list[list[list[int]]]:
    """Ways to share out the people of one dimension, the usual one first.

    Where reports say much, few grids are better: people who answer different ones are different
    samples of the crowd.
    """
    usual = _line_parts(size, terms)
    coarse = [cells for cells, _ in usual[:-1]]
    choices = [usual]
    for first in range(len(coarse) + 1):
        for rise in (1.0, 2.0):
            choice = _falling(coarse[first:], rise)
            if choice not in choices and (first < len(coarse) or rise == 1.0):
                choices.append(choice)
    return choices


def _listed(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    return [list(pair) for pair in pairs]


def _joined(grids: Sequence[PlannedGrid]) -> tuple[PlannedGrid, ...]:
    """Equal grids become one, with the weight of all."""
    weights: dict[PlannedGrid, int] = {}
    for grid in grids:
        plain = PlannedGrid(grid.axes, grid.widths, grid.shifts)
        weights[plain] = weights.get(plain, 0) + grid.weight
    return tuple(
        PlannedGrid(grid.axes, grid.widths, grid.shifts, weight) for grid, weight in weights.items()
    )
