"""Sources without noise: people whose dimensions are known, so that answers are SQL's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.protocol.column_types import PublicColumn
from sottovoce.questions.queries.evidence import Floats, Integers
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.sql.source import QuerySource, WhisperedColumn
from sottovoce.schema import Attribute


class ExactTable(FittedTable):
    """People as they are. Every answer is the true share of the weight, with an error of 0."""

    is_unbiased = True

    def __init__(self, sizes: tuple[int, ...], codes: Sequence[Integers], weights: Floats) -> None:
        self.sizes = sizes
        self.codes = codes  # for each dimension those of all people, (people,)
        self.weights = weights  # (people,)

    def joint(self, terms: Sequence[Term]) -> Joint:
        """The true shares of weighted selections."""
        total = float(self.weights.sum())
        values = np.zeros(len(terms))
        for place, term in enumerate(terms):
            factors = self.weights.copy()  # (people,)
            for axis, weights in term.items():
                factors *= weights[self.codes[axis]]
            values[place] = factors.sum() / total
        return Joint(values, np.zeros((len(terms), len(terms))))


class TrueTable(QuerySource):
    """People whose dimensions are known; ``fits`` counts the tables that were asked for."""

    method = "truth"

    def __init__(
        self,
        attributes: Mapping[str, Attribute],
        table: Mapping[str, NDArray[Any]],
        public: Mapping[str, PublicColumn],
        boxes_only: bool = False,
    ) -> None:
        self.dimensions = tuple(WhisperedColumn(name, each) for name, each in attributes.items())
        self.codes = [
            each.attribute.codes(np.asarray(table[each.name])).astype(np.int64)
            for each in self.dimensions
        ]
        self.people = len(next(iter(table.values())))
        self._public = dict(public)
        self.boxes_only = boxes_only
        self.fits = 0

    @property
    def public_names(self) -> tuple[str, ...]:
        return tuple(self._public)

    def public(self, name: str) -> PublicColumn:
        return self._public[name]

    def fit(self, rows: Integers | None, weights: Integers | None) -> FittedTable:
        self.fits += 1
        chosen = slice(None) if rows is None else rows
        codes = [column[chosen] for column in self.codes]
        people = np.ones(len(codes[0])) if weights is None else weights.astype(float)
        return ExactTable(tuple(each.size for each in self.dimensions), codes, people)
