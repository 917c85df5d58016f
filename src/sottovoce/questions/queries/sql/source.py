"""What a query is asked of: whispered dimensions, public columns, and fits of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.questions.queries.evidence import Floats, Integers
from sottovoce.questions.queries.fitted import FittedTable
from sottovoce.schema import Attribute, Boolean, Ordinal

MAX_DOMAIN_VALUES = 1 << 22  # of one dimension, on which DuckDB evaluates a predicate


@dataclass(frozen=True)
class WhisperedColumn:
    """A whispered column: what people may hold, and the code of each.

    A binned ordinal has more values than codes: predicates are evaluated on its integers.
    """

    name: str
    attribute: Attribute

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.attribute.size

    @property
    def is_binned(self) -> bool:
        """Whether several values share a code."""
        return isinstance(self.attribute, Ordinal) and self.attribute.bins is not None

    @property
    def is_number(self) -> bool:
        """Whether its values can be added up."""
        if isinstance(self.attribute, Ordinal):
            return True
        return self.values.dtype.kind == "i"

    @cached_property
    def values(self) -> NDArray[Any]:
        """All that a person may hold, in the order of codes, (values,)."""
        attribute = self.attribute
        if isinstance(attribute, Ordinal):
            if attribute.high - attribute.low >= MAX_DOMAIN_VALUES:
                raise InvalidInput(
                    f"dimension {self.name!r}: queries need at most {MAX_DOMAIN_VALUES:,} values"
                )
            return np.arange(attribute.low, attribute.high + 1, dtype=np.int64)
        if isinstance(attribute, Boolean):
            return np.array([False, True])
        labels = list(attribute.labels())
        if all(isinstance(label, int) and not isinstance(label, bool) for label in labels):
            return np.array(labels, dtype=np.int64)
        return np.array([str(label) for label in labels], dtype=object)

    @cached_property
    def codes(self) -> Integers:
        """The code of each value, (values,)."""
        if self.is_binned:
            return self.attribute.codes(self.values).astype(np.int64)
        return np.arange(len(self.values), dtype=np.int64)

    @cached_property
    def values_per_code(self) -> Integers:
        """How many values share each code, (size,)."""
        return np.bincount(self.codes, minlength=self.size)

    def averaged(self, weights: Floats) -> Floats:
        """A weight for each code from one for each value: their average within the code.

        Args:
            weights: one for each value, (values,).

        Returns:
            One for each code, (size,).
        """
        if not self.is_binned:
            return weights
        sums = np.bincount(self.codes, weights=weights, minlength=self.size)
        averages: Floats = sums / self.values_per_code
        return averages

    def domain_text(self) -> str:
        """The values in a few words."""
        if isinstance(self.attribute, Ordinal):
            return f"{self.attribute.low} to {self.attribute.high}"
        return f"{self.size} values"


class QuerySource(ABC):
    """People whose dimensions were whispered, with what is public of them."""

    dimensions: tuple[WhisperedColumn, ...]
    people: int
    plan_id: str = ""  # of which plan the reports are, if of any
    method: str  # by which the table was fitted
    boxes_only: bool = False  # whether the method is meant for ranges and their products alone
    unsent_names: tuple[str, ...] = ()  # public columns that neither travelled nor were joined
    notes: tuple[str, ...] = ()  # what to know of every answer

    @property
    def rows(self) -> int:
        """How many rows its public columns have: one for each report, or for all that are alike."""
        return self.people

    def times(self, rows: Integers | None) -> Integers | None:
        """How many reports each of some rows, or of all, stands for; None for one each."""
        return None

    @property
    @abstractmethod
    def public_names(self) -> tuple[str, ...]:
        """The public columns: those that travelled, and those that were joined."""

    def public_attribute(self, name: str) -> Attribute | None:
        """What a public column may hold, if that is known."""
        return None

    @abstractmethod
    def public(self, name: str) -> PublicColumn:
        """The values of a public column, one for each row; refused if reports are not there."""

    @abstractmethod
    def fit(self, rows: Integers | None, weights: Integers | None) -> FittedTable:
        """The fitted table of the reports of some rows.

        Args:
            rows: which rows, increasing; None for all.
            weights: one for each of these rows, not negative and not all 0; None for 1 each.
        """
