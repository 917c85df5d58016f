"""The fitted table of two and more dimensions: axes, pairs, and maximum entropy above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from sottovoce.kernels.fitting import fit_proportions
from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.models import planes
from sottovoce.questions.queries.models.interactions import expanded, is_small
from sottovoce.questions.queries.models.line import LINE_SEED, LineTable, fit_line
from sottovoce.questions.queries.models.planes import Halving, Plane, part_sums, rake
from sottovoce.questions.queries.models.tails import normal_weights
from sottovoce.questions.queries.models.unbiased import UnbiasedLine
from sottovoce.questions.queries.models.wide import WidePlane

PAIR_BLOCKS = 32  # parts of each axis, of two dimensions
FINE_BLOCKS = 64  # of two dimensions that are known so well:
FINE_PRECISION = 1e6  # the sum over grids of 1 / floor
MANY_BLOCKS = 16  # of more
PAIR_STEPS = 80
MANY_STEPS = 50
SEVERAL_DRAWS = 200
MAX_LEVELS = 4  # different weights of an axis that are told apart; with more its parts are
ROUNDS = 60  # of proportional fitting
TOLERANCE = 1e-9
SMALLEST_MASS = 1e-12


PartMeans = dict[tuple[int, bytes], Floats]  # by axis and weights: (1 + draws, parts)


@dataclass(frozen=True, eq=False)
class PairFit:
    """Two dimensions of several."""

    plane: Plane
    x: LineTable
    y: LineTable

    def rows(self) -> Floats:
        """The masses of all blocks, as fitted and as they might be, (1 + draws, parts, parts)."""
        deviations = np.vstack([np.zeros(self.plane.logits.size), self._noise(self.plane)])
        deviations += self.plane.total_logits
        return self.plane.blocks(line_rows(self.x), line_rows(self.y), deviations)

    def _noise(self, plane: Plane) -> Floats:
        """How far deviations may be off, those of the count included, (draws, blocks)."""
        depth = self.x.depth if plane is self.plane else 0
        coins = np.random.default_rng([LINE_SEED, self.x.number, self.y.number, depth])
        spread = np.sqrt(deviation_variances(plane))
        noise = spread * coins.standard_normal((SEVERAL_DRAWS, plane.logits.size))
        return noise if plane.around is None else noise + self._noise(plane.around)


def line_rows(line: LineTable) -> Floats:
    """One dimension's frequencies, as fitted and as they might be, (1 + draws, size)."""
    return np.vstack([line.frequencies, line.positive_draws[:SEVERAL_DRAWS]])


def deviation_variances(plane: Plane) -> Floats:
    """Of the logits of a plane, (blocks,)."""
    nodes = np.flatnonzero(plane.tree.is_split)
    depths = np.log2(nodes).astype(np.int64)
    information = plane.information[nodes]
    weights = normal_weights(
        plane.logits[nodes],
        information,
        plane.weights[nodes],
        plane.scales[depths],
        planes.PLANE_FREEDOM,
    )
    variances = np.zeros(plane.logits.size)
    variances[nodes] = 1.0 / (information + weights)
    return variances


@dataclass(frozen=True, eq=False)
class States:
    """Codes of an axis that a term treats alike."""

    levels: Floats  # the weight of each state
    codes: Integers  # of each code its state
    holds: Floats  # how much of each part is in each state, (1 + draws, states, parts)


@dataclass(frozen=True, eq=False)
class StateFit:
    """Three axes or more, by the states that a term knows."""

    axes: tuple[int, ...]
    states: tuple[States, ...]
    shares: Floats  # of all combinations of states as fitted, (states of the first, ...)
    answer: Floats  # the term's value, as fitted and as it might be, (1 + draws,)

    def expansion(self) -> TermParts | None:
        """The term as a sum over axes and pairs; None if there are too many combinations."""
        if not is_small(self.shares.shape):
            return None
        found = expanded(self.axes, self.shares, [each.levels for each in self.states])
        codes = {axis: each.codes for axis, each in zip(self.axes, self.states, strict=True)}
        singles = {axis: weights[codes[axis]] for axis, weights in found.singles.items()}
        pairs = {
            (x, y): [(u[codes[x]], v[codes[y]]) for u, v in products]
            for (x, y), products in found.pairs.items()
        }
        return TermParts(found.constant, singles, pairs, found.variance)


@dataclass(frozen=True, eq=False)
class TermParts:
    """A term as a sum, by weights of codes."""

    constant: float
    singles: dict[int, Floats]
    pairs: dict[tuple[int, int], list[tuple[Floats, Floats]]]  # products, whose sum is meant
    variance: float  # of what pairs do not tell


class SeveralTable(FittedTable):
    """People by two or more dimensions.

    With more than two dimensions pairs are raked to their axes. Of a term with three or more, each
    axis becomes inside and outside, or as many states as it has different weights, and these are
    fitted to all their pairs by maximum entropy.
    """

    is_unbiased = False

    def __init__(
        self,
        lines: Sequence[LineTable],
        pairs: Mapping[tuple[int, int], PairFit],
        evidence: Sequence[GridEvidence],
        blocks: int,
        around: SeveralTable | None = None,
        plain: Sequence[GridEvidence] | None = None,
    ) -> None:
        self.blocks = blocks
        self.sizes = tuple(line.sizes[0] for line in lines)
        self.pairs = dict(pairs)
        self.lines = tuple(lines)
        self.evidence = tuple(evidence)
        self.around = around  # of a weight the table of the count
        # what the people said, where a weight's evidence is how it deviates from the count
        self.heard = self.evidence if plain is None else tuple(plain)
        self._wides: dict[tuple[int, int], WidePlane] = {}

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], Floats]:
        """By pair the masses of its blocks, (1 + draws, parts, parts)."""
        return {axes: pair.rows() for axes, pair in self.pairs.items()}

    def _halving(self, axis: int) -> Halving:
        """How this axis is cut into parts, in all its pairs."""
        for (x, y), pair in self.pairs.items():
            if axis == x:
                return pair.plane.x
            if axis == y:
                return pair.plane.y
        raise KeyError(axis)

    @cached_property
    def _margins(self) -> list[Floats]:
        """For each axis the masses of its parts, (1 + draws, parts).

        Of two dimensions the fitted ones are those of the pair's fit, which saw all there is. With
        more, an axis by itself has seen more than any of its pairs. Draws are always those of the
        axis by itself: how far a pair's deviations may be off says nothing of a single axis.
        """
        margins = [
            part_sums(line_rows(line), self._halving(axis)) for axis, line in enumerate(self.lines)
        ]
        if len(self.sizes) == 2:
            fitted = self._blocks[0, 1][0]
            margins[0][0], margins[1][0] = fitted.sum(axis=1), fitted.sum(axis=0)
        return margins

    @cached_property
    def rows(self) -> list[Floats]:
        """For each axis its frequencies, as fitted and as they might be, (1 + draws, size)."""
        rows = []
        for axis, line in enumerate(self.lines):
            halving = self._halving(axis)
            frequencies = line_rows(line)
            scale = ratio(self._margins[axis], part_sums(frequencies, halving))
            lengths = np.diff(halving.starts(halving.depths))
            rows.append(frequencies * np.repeat(scale, lengths, axis=1))
        return rows

    @cached_property
    def tables(self) -> dict[tuple[int, int], Floats]:
        """By pair the masses of its blocks, the fitted ones raked, (1 + draws, parts, parts)."""
        if len(self.sizes) == 2:
            return self._blocks
        tables = {}
        for (x, y), blocks in self._blocks.items():
            fitted = rake(blocks[:1], self._margins[x][:1], self._margins[y][:1])
            # draws keep their own margins: how far these stray belongs to a pair's error
            tables[x, y] = np.concatenate([fitted, blocks[1:]])
        return tables

    def cell_shares(self, grid: GridEvidence) -> Floats:
        """What the cells of a grid hold as fitted, in the shape of its values."""
        if len(grid.axes) == 1:
            return np.add.reduceat(self.rows[grid.axes[0]][0], grid.edges[0][:-1])
        x, y = grid.axes
        held = [
            self._held_parts(axis, edges) for axis, edges in zip(grid.axes, grid.edges, strict=True)
        ]
        table = self.tables[x, y] if x < y else self.tables[y, x].transpose(0, 2, 1)
        shares: Floats = held[0] @ table[0] @ held[1].T
        return shares

    def _held_parts(self, axis: int, edges: Integers) -> Floats:
        """How much of each part of an axis each interval holds, (intervals, parts)."""
        halving = self._halving(axis)
        starts = halving.starts(halving.depths)
        frequencies = self.rows[axis][0]
        places = np.arange(frequencies.size)
        intervals = np.searchsorted(edges, places, side="right") - 1
        parts = np.searchsorted(starts, places, side="right") - 1
        held = np.zeros((edges.size - 1, starts.size - 1))
        np.add.at(held, (intervals, parts), frequencies)
        whole = np.broadcast_to(held.sum(axis=0), held.shape)
        return ratio(held, whole)

    def joint(self, terms: Sequence[Term]) -> Joint:
        """The shares of some weighted selections, with their covariances."""
        means: PartMeans = {}
        fits = [
            self._fit_states(axes, term) if len(axes := restricted(term)) > 2 else None
            for term in terms
        ]
        answers = np.stack(
            [
                self._answer(term, means) if fit is None else fit.answer
                for term, fit in zip(terms, fits, strict=True)
            ],
            axis=1,
        )
        values = answers[0]
        off = answers[1:] - answers[1:].mean(axis=0)
        covariance = off.T @ off / (SEVERAL_DRAWS - 1)
        return Joint(values, covariance, values + off, self._unbiased(terms, fits))

    def _unbiased(self, terms: Sequence[Term], fits: Sequence[StateFit | None]) -> Joint | None:
        """Answers to the same reports for intervals: unbiased ones to terms of one dimension, those
        that rest on a wide prior to terms of two, and of more their sum over dimensions and pairs.
        None where grids do not tell a dimension's codes apart, or there are too many states.
        """
        singles: dict[int, list[tuple[int, Floats]]] = {}
        doubles: dict[tuple[int, int], list[tuple[int, Floats, Floats]]] = {}
        constants = np.zeros(len(terms))
        variances = np.zeros(len(terms))
        for number, (term, fit) in enumerate(zip(terms, fits, strict=True)):
            axes = restricted(term)
            if fit is not None:
                found = fit.expansion()
                if found is None:
                    return None
                constants[number], variances[number] = found.constant, found.variance
                for axis, weights in found.singles.items():
                    singles.setdefault(axis, []).append((number, weights))
                for pair, products in found.pairs.items():
                    doubles.setdefault(pair, []).extend((number, u, v) for u, v in products)
            elif len(axes) == 2:
                x, y = axes
                own = (number, np.asarray(term[x], float), np.asarray(term[y], float))
                doubles.setdefault((x, y), []).append(own)
            elif axes:
                singles.setdefault(axes[0], []).append((number, np.asarray(term[axes[0]], float)))
            else:
                constants[number] = 1.0
        values, covariance = constants, np.diag(variances)
        for axis, parts in singles.items():
            line = self.lines[axis].unbiased
            if line is None:
                return None
            known = _line_sums(line, np.stack([weights for _, weights in parts], axis=1))
            _add(known, [number for number, _ in parts], values, covariance)
        for pair, several in doubles.items():
            known = self._wide(*pair).joint([(u, v) for _, u, v in several])
            _add(known, [number for number, _, _ in several], values, covariance)
        return Joint(values, covariance)

    def _wide(self, x: int, y: int) -> WidePlane:
        """Answers about two dimensions that owe next to nothing to the prior, made once."""
        if (x, y) not in self._wides:
            table = self.tables[x, y][0]
            found = None
            if self.around is not None:
                found = self.around._wide(x, y).of_weight(table, self.heard)
            if found is None:
                frequencies = self.rows[x][0], self.rows[y][0]
                plane = self.pairs[x, y].plane
                found = WidePlane(plane, table, *frequencies, self.heard, (x, y))
            self._wides[x, y] = found
        return self._wides[x, y]

    def _answer(self, term: Term, means: PartMeans) -> Floats:
        """A term's value, as fitted and as it might be, (1 + draws,).

        Args:
            term: The selection.
            means: What was computed for terms before it; many of a query share a condition.
        """
        axes = restricted(term)
        if not axes:
            return np.ones(1 + SEVERAL_DRAWS)
        if len(axes) == 1:
            single: Floats = self.rows[axes[0]] @ term[axes[0]]
            return single
        if len(axes) == 2:
            x, y = (self._kept_means(axis, term[axis], means) for axis in axes)
            table = self.tables[axes[0], axes[1]]
            inside = (x[:, None, :] @ table)[:, 0, :]  # (1 + draws, parts of y)
            double: Floats = (inside * y).sum(axis=1)
            return double
        raise ValueError("a term of three dimensions or more is fitted by states")

    def _kept_means(self, axis: int, weights: Floats, means: PartMeans) -> Floats:
        """The same as :meth:`_part_means`, computed once for the same weights."""
        key = (axis, weights.tobytes())
        if key not in means:
            means[key] = self._part_means(axis, weights)
        return means[key]

    def _part_means(self, axis: int, weights: Floats) -> Floats:
        """The mean weight in each part of an axis, (1 + draws, parts)."""
        halving = self._halving(axis)
        frequencies = self.rows[axis]
        return ratio(part_sums(frequencies * weights, halving), part_sums(frequencies, halving))

    def _fit_states(self, axes: Sequence[int], term: Term) -> StateFit:
        """By maximum entropy over the states of a term's axes, three or more."""
        states = [self._states(axis, term[axis]) for axis in axes]
        shape = [each.levels.size for each in states]
        places = np.indices(shape).reshape(len(axes), -1)  # of each cell its state on each axis
        maps = []
        targets = []
        for i, j in combinations(range(len(axes)), 2):
            table = self.tables[axes[i], axes[j]]
            both = states[i].holds @ table @ states[j].holds.transpose(0, 2, 1)
            targets.append(np.maximum(both.reshape(len(both), -1), SMALLEST_MASS))
            maps.append(places[i] * shape[j] + places[j])
        ends = np.cumsum([target.shape[1] for target in targets])
        fitted = np.full((1 + SEVERAL_DRAWS, places.shape[1]), 1.0 / places.shape[1])
        fit_proportions(
            fitted,
            np.array(maps, np.int64),
            np.append(0, ends).astype(np.int64),
            np.concatenate(targets, axis=1),
            ROUNDS,
            TOLERANCE,
        )
        fitted /= fitted.sum(axis=1, keepdims=True)
        weights = np.ones(places.shape[1])
        for place, state in zip(places, states, strict=True):
            weights *= state.levels[place]
        return StateFit(tuple(axes), tuple(states), fitted[0].reshape(shape), fitted @ weights)

    def _states(self, axis: int, weights: Floats) -> States:
        """The states of an axis: codes of equal weight, or parts if there are too many weights."""
        levels, codes = np.unique(weights, return_inverse=True)
        if levels.size > MAX_LEVELS:
            means = self._part_means(axis, weights)
            parts = means.shape[1]
            halving = self._halving(axis)
            lengths = np.diff(halving.starts(halving.depths))
            whole = np.broadcast_to(np.eye(parts), (len(means), parts, parts))
            return States(means[0], np.repeat(np.arange(parts), lengths), whole)
        holds = [self._part_means(axis, (weights == level).astype(float)) for level in levels]
        return States(levels, codes, np.stack(holds, axis=1))


def _line_sums(line: UnbiasedLine, chosen: Floats) -> Joint:
    """Sums of weights (size, sums); what all codes say answers many of them."""
    if chosen.shape[1] <= chosen.shape[0]:
        return Joint(*line.sums(chosen))
    codes, together = line.sums(np.eye(len(chosen)))
    return Joint(codes @ chosen, chosen.T @ together @ chosen)


def _add(known: Joint, numbers: Sequence[int], values: Floats, covariance: Floats) -> None:
    """Add parts of terms, which err with no other part, in place."""
    if len(set(numbers)) == len(numbers):  # as of ranges, one part of each term
        values[numbers] += known.values
        covariance[np.ix_(numbers, numbers)] += known.covariance
        return
    maps = np.zeros((len(numbers), values.size))
    maps[np.arange(len(numbers)), numbers] = 1.0
    values += known.values @ maps
    covariance += maps.T @ known.covariance @ maps


def restricted(term: Term) -> list[int]:
    """The dimensions by which a term selects."""
    return [axis for axis in sorted(term) if not np.all(term[axis] == 1.0)]


def ratio(above: Floats, below: Floats) -> Floats:
    """Above / below, and 0 where there is nothing below."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def fit_several(
    evidence: Sequence[GridEvidence],
    sizes: Sequence[int],
    is_ordered: Sequence[bool],
    around: SeveralTable | None = None,
    plain: Sequence[GridEvidence] | None = None,
) -> SeveralTable:
    """Fit two or more dimensions.

    Args:
        evidence: What the people of each grid said, of one dimension or of two.
        sizes: The number of codes of each dimension.
        is_ordered: Of each whether neighbouring codes are alike; not for categories.
        around: Of a weight the table of the count, from which it deviates.
        plain: Of a weight what the people said of it, where ``evidence`` is how it deviates.
    """
    counts = [None] * len(sizes) if around is None else around.lines
    lines = [
        fit_line(evidence, size, is_ordered=ordered, axis=axis, around=counts[axis], plain=plain)
        for axis, (size, ordered) in enumerate(zip(sizes, is_ordered, strict=True))
    ]
    precision = sum(1.0 / grid.floor for grid in evidence if len(grid.axes) == 2)
    is_pair = len(sizes) == 2
    blocks = MANY_BLOCKS
    if is_pair:
        blocks = FINE_BLOCKS if precision > FINE_PRECISION else PAIR_BLOCKS
    if around is not None:
        blocks = around.blocks
    pairs = {}
    for i, j in combinations(range(len(sizes)), 2):
        plane = planes.fit_plane(
            evidence,
            (i, j),
            lines[i].frequencies,
            lines[j].frequencies,
            blocks=blocks,
            steps=PAIR_STEPS if is_pair else MANY_STEPS,
            around=None if around is None else around.pairs[i, j].plane,
        )
        pairs[i, j] = PairFit(plane, lines[i], lines[j])
    return SeveralTable(lines, pairs, evidence, blocks, around, plain)
