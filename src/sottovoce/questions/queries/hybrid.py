"""Hybrid grids: fine grids of single dimensions and coarse grids of pairs, made to agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term

Pair = tuple[int, int]

AGREEMENT_ROUNDS = 100  # of consistency, at most, each after negative cells are gone
UPDATE_ROUNDS = 100  # of weighted updates, at most


@dataclass(frozen=True, eq=False)
class HybridTable(FittedTable):
    """Fine shares of each dimension, and for each pair a response matrix over their fine cells.

    Within a fine cell people are taken as spread evenly. A selection of more than two dimensions
    is answered from its pairs by weighted updates.
    """

    sizes: tuple[int, ...]
    edges: tuple[Integers, ...]  # of the fine cells, for each dimension
    singles: tuple[Floats, ...]  # for each dimension, (fine cells,)
    matrices: Mapping[Pair, Floats]  # for each pair, (fine cells, fine cells)
    evidence: Sequence[GridEvidence]
    people: float
    is_unbiased: bool = field(default=False)

    def joint(self, terms: Sequence[Term]) -> Joint:
        values = np.array([self._share(term) for term in terms])
        return Joint(values, self._covariance(terms))

    def _fine(self, axis: int, weights: Floats) -> Floats:
        """The mean weight of a dimension's fine cells."""
        return cell_means(weights, self.edges[axis])

    def _share(self, term: Term) -> float:
        """What is selected, of all people."""
        fine = {axis: self._fine(axis, np.asarray(term[axis], float)) for axis in sorted(term)}
        axes = tuple(fine)
        if not axes:
            return 1.0
        if len(axes) == 1:
            return float(fine[axes[0]] @ self.singles[axes[0]])
        if len(axes) == 2:
            first, second = axes
            return float(fine[first] @ self.matrices[first, second] @ fine[second])
        return self._many(axes, fine)

    def _many(self, axes: tuple[int, ...], fine: Mapping[int, Floats]) -> float:
        """A selection of three dimensions or more, from what is known of its pairs."""
        inside = {axis: (weights != 0).astype(float) for axis, weights in fine.items()}
        partly = {axis: np.where(inside[axis] > 0, fine[axis], 0.0) for axis in axes}
        # a cell that is cut, or a weight that is not 1, counts by its mean among those selected
        scale = 1.0
        for axis in axes:
            held = float(inside[axis] @ self.singles[axis])
            scale *= float(partly[axis] @ self.singles[axis]) / held if held > 0 else 0.0
        tables = {}
        for one, two in combinations(range(len(axes)), 2):
            matrix = self.matrices[axes[one], axes[two]]
            rows = np.stack([1 - inside[axes[one]], inside[axes[one]]])  # (2, cells)
            columns = np.stack([1 - inside[axes[two]], inside[axes[two]]])
            tables[one, two] = rows @ matrix @ columns.T
        return scale * float(all_selected(tables, len(axes), 1 / self.people))

    def _covariance(self, terms: Sequence[Term]) -> Floats:
        """As if each answer came from the one grid that knows most of it, before any repair.

        What people who are not spread evenly within a cell add is not in it.
        """
        covariance = np.zeros((len(terms), len(terms)))
        chosen = [self._grid_of(term) for term in terms]
        for place, grid in enumerate(self.evidence):
            own = [number for number, which in enumerate(chosen) if which == place]
            if not own:
                continue
            loads = np.stack([self._loads(terms[number], grid) for number in own])
            shares = np.clip(grid.values.ravel(), 0, 1)
            # coins, and who answered this grid
            by_cell = grid.floor + (grid.slope + 1 / grid.people) * shares
            spread = (loads * by_cell) @ loads.T
            means = loads @ shares
            spread = spread - np.outer(means, means) / grid.people
            covariance[np.ix_(own, own)] = spread
        return covariance

    def _grid_of(self, term: Term) -> int | None:
        """The place of the grid that tells most of a selection: of its first two dimensions."""
        wanted = tuple(sorted(term))[:2]
        for place, grid in enumerate(self.evidence):
            if grid.axes == wanted:
                return place
        return None

    def _loads(self, term: Term, grid: GridEvidence) -> Floats:
        """How much each cell of a grid counts, with other dimensions by the share they leave."""
        cells = np.ones(1)
        for axis, edges in zip(grid.axes, grid.edges, strict=True):
            means = cell_means(np.asarray(term[axis], float), edges)
            cells = np.multiply.outer(cells, means).ravel()
        for axis in sorted(term):
            if axis not in grid.axes:
                fine = self._fine(axis, np.asarray(term[axis], float))
                cells = cells * float(fine @ self.singles[axis])
        return cells


def cell_means(weights: Floats, edges: Integers) -> Floats:
    """The mean weight of each interval of codes.

    >>> cell_means(np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2, 4])).tolist()
    [0.5, 0.5]
    """
    return np.asarray(np.add.reduceat(weights, edges[:-1]) / np.diff(edges))


def hybrid_fit(sizes: Sequence[int], evidence: Sequence[GridEvidence]) -> HybridTable:
    """The table of fine grids of all dimensions and coarse grids of all pairs.

    Edges of a coarse grid are edges of the fine ones. A grid that nobody answered is even.
    """
    heard = {grid.axes: grid for grid in evidence}
    fine = tuple(heard[(axis,)].edges[0] for axis in range(len(sizes)))
    singles = [heard[(axis,)].values.copy() for axis in range(len(sizes))]
    pairs = list(combinations(range(len(sizes)), 2))
    tables: dict[Pair, Floats] = {pair: heard[pair].values.copy() for pair in pairs}
    people = sum(grid.people for grid in evidence)
    for _ in range(AGREEMENT_ROUNDS):
        # negative cells are gone before every turn and after the last     yang2020ranges
        before = [*singles, *tables.values()]
        singles, tables = _non_negative(singles, tables)
        for axis in range(len(sizes)):
            _agree(axis, singles, tables, heard)
        after = [*singles, *tables.values()]
        moved = sum(np.abs(one - two).sum() for one, two in zip(before, after, strict=True))
        if moved < 1 / people:
            break
    singles, tables = _non_negative(singles, tables)
    matrices = {}
    for first, second in pairs:
        edges = (fine[first], fine[second])
        own = (singles[first], singles[second], tables[first, second])
        matrices[first, second] = response_matrix(edges, own, heard[first, second].edges, people)
    return HybridTable(tuple(sizes), fine, tuple(singles), matrices, evidence, people)


def _non_negative(
    singles: Sequence[Floats], tables: Mapping[Pair, Floats]
) -> tuple[list[Floats], dict[Pair, Floats]]:
    """The nearest frequencies of each grid."""
    flat = {pair: norm_sub(cells.ravel()) for pair, cells in tables.items()}
    shaped = {pair: cells.reshape(tables[pair].shape) for pair, cells in flat.items()}
    return [norm_sub(cells) for cells in singles], shaped


def _agree(
    axis: int,
    singles: list[Floats],
    tables: dict[Pair, Floats],
    heard: Mapping[tuple[int, ...], GridEvidence],
) -> None:
    """Give every grid of a dimension the same shares of its coarse intervals, in place.

    The shares are means of what grids say, weighted by how well they know it, that is by the
    inverse variance of a sum of so many cells.
    """
    fine = heard[(axis,)]
    pairs = [pair for pair in tables if axis in pair]
    coarse = heard[pairs[0]].edges[pairs[0].index(axis)]
    starts = np.searchsorted(fine.edges[0], coarse[:-1])  # where coarse intervals begin
    counts = np.diff(np.append(starts, len(singles[axis])))  # of fine cells in each
    single = np.add.reduceat(singles[axis], starts)
    weight = 1 / (counts * fine.floor)
    total = weight * single
    sums: dict[Pair, Floats] = {}
    for pair in pairs:
        across = 1 - pair.index(axis)
        sums[pair] = tables[pair].sum(axis=across)
        known = 1 / (tables[pair].shape[across] * heard[pair].floor)
        total = total + known * sums[pair]
        weight = weight + known
    mean = total / weight
    singles[axis] += np.repeat((mean - single) / counts, counts)
    for pair in pairs:
        across = 1 - pair.index(axis)
        missing = (mean - sums[pair]) / tables[pair].shape[across]
        tables[pair] += np.expand_dims(missing, across)


def response_matrix(
    edges: tuple[Integers, Integers],
    grids: tuple[Floats, Floats, Floats],
    coarse: Sequence[Integers],
    people: float,
) -> Floats:
    """Shares of the fine cells of a pair that agree with its three grids (yang2020ranges, alg. 1).

    The paper updates a matrix over single values. As every grid's cells are made of fine ones,
    values of one fine cell always change together, and one number stands for them.

    Args:
        edges: of the fine cells along both dimensions.
        grids: the fine shares of one and of the other, and the coarse shares of both.
        coarse: edges of the coarse cells.
        people: updates end when they move less than one person.
    """
    first, second, both = grids
    widths = [np.diff(each) / each[-1] for each in edges]
    matrix = np.outer(*widths)  # even at first
    starts = [np.searchsorted(fine, cut[:-1]) for fine, cut in zip(edges, coarse, strict=True)]
    counts = [
        np.diff(np.append(start, len(width))) for start, width in zip(starts, widths, strict=True)
    ]
    for _ in range(UPDATE_ROUNDS):
        before = matrix
        matrix = matrix * _ratio(first, matrix.sum(axis=1))[:, None]
        matrix = matrix * _ratio(second, matrix.sum(axis=0))
        blocks = np.add.reduceat(np.add.reduceat(matrix, starts[0], axis=0), starts[1], axis=1)
        ratio = _ratio(both, blocks)
        matrix = matrix * np.repeat(np.repeat(ratio, counts[0], axis=0), counts[1], axis=1)
        if np.abs(matrix - before).sum() < 1 / people:
            break
    return np.asarray(matrix / matrix.sum())


def all_selected(tables: Mapping[Pair, Floats], dimensions: int, tolerance: float) -> Floats:
    """The share of those inside along all dimensions, from those in and out of each two.

    Args:
        tables: for each pair of dimensions the shares (out, in) by (out, in), (2, 2).
        dimensions: how many.
        tolerance: it ends when updates move less.

    >>> even = {pair: np.full((2, 2), 0.25) for pair in ((0, 1), (0, 2), (1, 2))}
    >>> float(all_selected(even, 3, 1e-9))
    0.125
    """
    # weighted updates from the even table, as yang2020ranges, alg. 2, which updates by those
    # inside both alone; all four parts of a pair are known here, and all are used
    shares = np.full((2,) * dimensions, 0.5**dimensions)
    for _ in range(UPDATE_ROUNDS):
        before = shares
        for pair, wanted in tables.items():
            others = tuple(axis for axis in range(dimensions) if axis not in pair)
            ratio = _ratio(wanted, shares.sum(axis=others))
            shares = shares * np.expand_dims(ratio, others)
        if np.abs(shares - before).sum() < tolerance:
            break
    return np.asarray(shares[(1,) * dimensions] / shares.sum())


def _ratio(wanted: Floats, found: Floats) -> Floats:
    """By what to multiply; 1 where there is nothing to multiply."""
    return np.divide(wanted, found, out=np.ones_like(found), where=found > 0)
