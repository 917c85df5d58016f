"""Whom an aggregate is about: conditions over one grid of classes, as weights of codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.queries.evidence import Floats, Integers
from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.sql.columns import QueryColumns
from sottovoce.questions.queries.sql.expressions import WhisperedFactor
from sottovoce.questions.queries.sql.masks import ClassGrid, Factors, make_grid, products
from sottovoce.questions.queries.sql.normal_form import inclusion_exclusion
from sottovoce.questions.queries.sql.predicates import (
    Atoms,
    Formula,
    Outcome,
    evaluate,
    outcome,
)

Mask = NDArray[np.bool_]
SignedTerm = tuple[float, Term]  # how often a selection is counted
CUT_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class WhisperedKey:
    """A GROUP BY key of whispered columns: its labels, and which of them each value has.

    ``places``: over the values of its dimensions the place of the label.
    """

    dims: tuple[int, ...]
    places: Integers
    labels: list[Any]


class Selections:
    """The conditions and whispered keys of a query, over the classes that they tell apart."""

    def __init__(
        self,
        columns: QueryColumns,
        atoms: Atoms,
        keys: Sequence[WhisperedKey],
        factors: Sequence[WhisperedFactor],
    ) -> None:
        self.columns = columns
        self.atoms = atoms
        self.keys = tuple(keys)
        tables: list[tuple[NDArray[Any], tuple[int, ...]]] = [
            (atom.table, atom.dims) for atom in atoms.listed if atom.table is not None and atom.dims
        ]
        tables += [(key.places, key.dims) for key in keys]
        tables += [(table, dims) for dims, table in factors if len(dims) > 1]
        sizes = {number: len(each.values) for number, each in enumerate(columns.source.dimensions)}
        self.grid: ClassGrid = make_grid(sizes, tables)
        self.key_places = self._key_places()
        self.cut: set[int] = set()  # dimensions of which a bin was cut
        self._masks: dict[tuple[Formula, tuple[int, ...]], Mask] = {}
        self._terms: dict[tuple[Any, ...], list[SignedTerm]] = {}
        self._lifted: dict[tuple[Any, ...], Floats] = {}

    def _key_places(self) -> Integers:
        """The place of the combination of whispered labels, over the grid."""
        places = np.zeros(self.grid.shape, np.int64)
        for key in self.keys:
            places = places * len(key.labels) + self.grid.lay(key.places, key.dims)
        return np.broadcast_to(places, self.grid.shape)

    def labels(self, place: int) -> tuple[Any, ...]:
        """The whispered labels of a combination."""
        found: list[Any] = []
        for key in reversed(self.keys):
            place, own = divmod(place, len(key.labels))
            found.append(key.labels[own])
        return tuple(reversed(found))

    def _look(self, number: int, labels: tuple[int, ...]) -> Outcome:
        """Where an atom is true and where false, over the grid, in one group of reports."""
        truth = self.atoms.truth(number, labels)
        return outcome(self.grid.lay(truth, self.atoms.listed[number].dims))

    def mask(self, formula: Formula, labels: tuple[int, ...]) -> Mask:
        """Where a condition is true, over the grid, in one group of reports."""
        key = (formula, labels)
        if key not in self._masks:
            true, _ = evaluate(formula, lambda number: self._look(number, labels))
            self._masks[key] = np.broadcast_to(true, self.grid.shape)
        return self._masks[key]

    # -- from masks to weights of codes

    def terms(
        self,
        formula: Formula,
        mask: Mask,
        labels: tuple[int, ...],
        place: int | None,
        whispered: tuple[WhisperedFactor, ...],
    ) -> list[SignedTerm]:
        """Selections whose sum is a condition, times functions of whispered columns.

        Args:
            formula: the condition.
            mask: where it is true, as :meth:`mask` gives it.
            labels: of the group of reports.
            place: the combination of whispered labels; None if there are no whispered keys.
            whispered: functions to multiply with.
        """
        packed = np.packbits(mask).tobytes()
        key: tuple[Any, ...] = (packed, place, tuple(id(table) for _, table in whispered))
        if self.columns.source.boxes_only:
            key = (*key, formula, labels)
        if key not in self._terms:
            factors = self._factors(formula, mask, labels, place, whispered)
            singles = tuple((dims[0], table) for dims, table in whispered if len(dims) == 1)
            self._terms[key] = [(number, self._term(each, singles)) for number, each in factors]
        return self._terms[key]

    def _factors(
        self,
        formula: Formula,
        mask: Mask,
        labels: tuple[int, ...],
        place: int | None,
        whispered: tuple[WhisperedFactor, ...],
    ) -> list[tuple[float, Factors]]:
        joint = [(dims, table) for dims, table in whispered if len(dims) > 1]
        single_keys = all(len(key.dims) == 1 for key in self.keys)
        if self.columns.source.boxes_only and not joint and single_keys:
            found = inclusion_exclusion(
                formula, lambda number: self._look(number, labels), self.grid.shape
            )
            return self._within_keys(found, place)
        weights = mask if place is None else mask & (self.key_places == place)
        for dims, table in joint:
            weights = weights * self.grid.lay(table, dims)
        return [(1.0, each) for each in products(weights)]

    def _within_keys(
        self, found: list[tuple[float, Factors]], place: int | None
    ) -> list[tuple[float, Factors]]:
        """Products cut to the classes of one combination of whispered labels."""
        if place is None:
            return found
        rest = place
        for key in reversed(self.keys):
            rest, own = divmod(rest, len(key.labels))
            axis = self.grid.dims.index(key.dims[0])
            inside = key.places[self.grid.classes[axis].examples] == own  # (classes,)
            found = [
                (number, (*each[:axis], each[axis] * inside, *each[axis + 1 :]))
                for number, each in found
            ]
        return [each for each in found if all(factor.any() for factor in each[1])]

    def _term(self, factors: Factors, singles: tuple[tuple[int, Floats], ...]) -> Term:
        """A product over classes as weights of codes; whole dimensions are left out."""
        by_dimension = dict(zip(self.grid.dims, factors, strict=True))
        for number, _ in singles:
            by_dimension.setdefault(number, np.ones(0))
        term = {}
        for number, factor in by_dimension.items():
            own = [table for each, table in singles if each == number]
            key = (number, factor.tobytes(), *(id(table) for table in own))
            if key not in self._lifted:
                self._lifted[key] = self._lift(number, factor, own)
            weights = self._lifted[key]
            if not (weights == 1.0).all():
                term[number] = weights
        return term

    def _lift(self, number: int, factor: Floats, tables: Sequence[Floats]) -> Floats:
        """Weights of classes, times functions of the dimension, as weights of its codes."""
        dimension = self.columns.dimension(number)
        values = np.ones(len(dimension.values))
        if len(factor):
            axis = self.grid.dims.index(number)
            values = factor[self.grid.classes[axis].of_value]
            self._mark_cut(number, factor, dimension.averaged(values))
        for table in tables:
            values = values * table
        return dimension.averaged(values)

    def _mark_cut(self, number: int, factor: Floats, averages: Floats) -> None:
        """Remember a dimension of which a condition takes a part of a bin."""
        if not self.columns.dimension(number).is_binned:
            return
        is_indicator = bool(np.isin(np.abs(factor), (0.0, 1.0)).all())
        partly = (np.abs(averages) > CUT_TOLERANCE) & (np.abs(averages) < 1 - CUT_TOLERANCE)
        if is_indicator and partly.any():
            self.cut.add(number)
