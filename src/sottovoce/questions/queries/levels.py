"""A table whose answers are sums over the intervals of a hierarchy, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.oracles import Noise
from sottovoce.questions.queries.evidence import Floats, GridEvidence
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.hierarchy import Hierarchies, Level

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


@dataclass(frozen=True, eq=False)
class LevelTable(FittedTable):
    """What people said of the levels of a hierarchy, each by itself; nothing is made consistent.

    A selection is cut into the fewest intervals (wang2021thesis, eqs. (7.11) and (7.19)), whose
    estimates are added up. Every level's estimates are scaled by how many levels there are, and
    not by how many people happened to answer it, as the thesis has it: then they are unbiased
    for all people, and so are their sums. Errors are those of the thesis, too: as if every level
    had its share of the people, also one that nobody happened to answer.

    Attributes:
        evidence: what was said of each level that anybody answered.
        levels: 1 if everybody answered every level; else among how many people were shared out.
        noise: the error's law of one report, which is the same for every level.
        people: how many there are, or as many as all weights are worth.
        aggregate: of the reports, where levels are too large for their cells to be listed.
    """

    hierarchies: Hierarchies
    evidence: Mapping[Level, GridEvidence]
    levels: int
    noise: Noise
    people: float
    aggregate: Aggregate | None = None
    is_unbiased: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(one.size for one in self.hierarchies.each)

    def joint(self, terms: Sequence[Term]) -> Joint:
        parts = self.hierarchies.decompose(terms)
        values = np.zeros(len(terms))
        covariance = np.zeros((len(terms), len(terms)))
        used = [_used_levels(of_axis) for of_axis in parts]
        for level in product(*used):
            weights = [parts[axis][depth] for axis, depth in enumerate(level)]
            if not any(level):
                # the whole is known: it is 1
                values += prod(each[:, 0] for each in weights)
            else:
                one = self._level(level, weights)
                values += one.values
                covariance += one.covariance
        return Joint(values, covariance)

    def _level(self, level: Level, weights: Sequence[Floats]) -> Joint:
        """What one level adds: weights are (terms, intervals) for each dimension."""
        found = self._cells(level, weights)
        # as if 1 / levels of all had answered: their estimates times the number of levels
        own = self._said(level, found.places) * self.levels
        # for each cell  L floor + f (L slope + L - 1), over n: the coins, and who answers
        #     wang2021thesis, propositions 7.2.1 and 7.2.2, with equality
        per_share = self.levels * self.noise.slope + self.levels - 1
        by_cell = self.levels * self.noise.floor + per_share * np.clip(own, 0, 1)
        covariance = (found.weights.multiply(by_cell) @ found.weights.T).toarray() / self.people
        return Joint(found.weights @ own, covariance)

    def _cells(self, level: Level, weights: Sequence[Floats]) -> _TakenCells:
        """The cells of a level that any term takes, as combinations of its own intervals."""
        shape = [one.counts[depth] for one, depth in zip(self.hierarchies.each, level, strict=True)]
        is_taking = np.all([each.any(axis=1) for each in weights], axis=0)  # (terms,)
        terms, places, values = [], [], []
        for term in np.flatnonzero(is_taking):
            taken = [np.flatnonzero(each[term]) for each in weights]
            flat = np.ravel_multi_index(np.ix_(*taken), shape).ravel()
            value = np.ones(1)
            for each, own in zip(weights, taken, strict=True):
                value = np.outer(value, each[term, own]).ravel()
            terms.append(np.full(flat.size, term))
            places.append(flat)
            values.append(value)
        columns: NDArray[np.int64] = np.zeros(0, np.int64)
        cells = columns
        if places:
            cells, columns = np.unique(np.concatenate(places), return_inverse=True)
        rows = np.concatenate([*terms, np.zeros(0, np.int64)])
        entries = np.concatenate([*values, np.zeros(0)])
        csr_matrix = imported("scipy.sparse").csr_matrix
        matrix = csr_matrix((entries, (rows, columns)), shape=(len(weights[0]), cells.size))
        return _TakenCells(cells, matrix)

    def _said(self, level: Level, places: NDArray[np.int64]) -> Floats:
        """The shares of some cells among those who answered a level, times the share of these
        people among all: (cells,).
        """
        grid = self.evidence.get(level)
        if grid is not None:
            return grid.values.ravel()[places] * grid.part
        if self.aggregate is None:
            return np.zeros(places.size)  # nobody answered
        cohorts = self.aggregate.plan.cohorts
        number = self.hierarchies.numbers[level]
        cohort, ask = (number, 0) if len(cohorts) > 1 else (0, number)
        people = self.aggregate.cohort_people(cohort)
        if people == 0:
            return np.zeros(places.size)
        shares, _ = self.aggregate.frequencies(cohort, ask, places.astype(np.uint64))
        return shares * (people / self.aggregate.people)


@dataclass(frozen=True, eq=False)
class _TakenCells:
    """Cells of a level, by number, and what they weigh in each term: sparse, (terms, cells)."""

    places: NDArray[np.int64]
    weights: Any


def _used_levels(of_axis: Sequence[Floats]) -> list[int]:
    """The levels of a dimension of which any term takes an interval."""
    return [depth for depth, weights in enumerate(of_axis) if weights.any()]


@dataclass(frozen=True)
class Squares:
    """Of some selections, along one dimension, sums over the intervals that each takes.

    ``all``: of squared weights; ``held``: of squared weights times the share of codes in the
    interval; ``whole``: the squared weight of the whole, if that is taken. All (selections,).
    """

    all: Floats
    held: Floats
    whole: Floats


def squares_of(hierarchies: Hierarchies, selections: Sequence[Term]) -> list[Squares]:
    """For each dimension what prediction needs of the intervals that selections take."""
    found = []
    for one, of_axis in zip(hierarchies.each, hierarchies.decompose(selections), strict=True):
        squared = [weights**2 for weights in of_axis]
        total = sum(each.sum(axis=1) for each in squared)
        held = sum(each @ one.shares(level) for level, each in enumerate(squared))
        found.append(Squares(np.asarray(total), np.asarray(held), squared[0][:, 0]))
    return found
