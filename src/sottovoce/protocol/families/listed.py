"""Families by a list: cohorts one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed, shifted
from sottovoce.oracles import Oracle
from sottovoce.protocol.families.base import (
    Batch,
    Cohort,
    Family,
    Keep,
    alike,
    rows_by,
    share_of,
)
from sottovoce.schema import Schema

TOGETHER = "together"  # what a plan calls a list whose rows are kept


class Listed(Family):
    """Cohorts that a plan lists.

    With ``keep="rows"`` a person's answers to all asks stay together when reports are added up, for
    questions about their joint law; a plan calls the family ``together`` then.
    """

    def __init__(self, listed: Sequence[Cohort], keep: Keep = "sums") -> None:
        if not listed:
            raise InvalidInput("a plan must have at least one cohort")
        if len({ask.encoding.form for cohort in listed for ask in cohort.asks}) > 1:
            raise InvalidInput("plan: all of its asks must read attributes in the same form")
        if keep not in get_args(Keep):
            raise InvalidInput(f"keep ({keep}) must be one of {', '.join(get_args(Keep))}")
        self._listed = tuple(listed)
        self.keep = keep

    @property
    def kind(self) -> str:
        return TOGETHER if self.keep == "rows" else "listed"

    def __getitem__(self, index: int) -> Cohort:
        return self._listed[index]

    def __len__(self) -> int:
        return len(self._listed)

    @property
    def kinds(self) -> tuple[Cohort, ...]:
        return self._listed

    @property
    def shares(self) -> tuple[tuple[int, Cohort], ...]:
        return tuple((cohort.weight, cohort) for cohort in self._listed)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for cohort in self._listed for name in cohort.attributes))

    @cached_property
    def weight(self) -> int:
        return sum(cohort.weight for cohort in self._listed)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(cohort.weight for cohort in self._listed))

    def at(self, ticket: int) -> int:
        return bisect_right(self._ends, ticket)

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        return share_of(tickets, [cohort.weight for cohort in self._listed])

    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        for index, rows in rows_by(column, len(self)):
            yield Batch(index, rows, self[index].oracles)

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], list[tuple[Oracle, ...]]]:
        """The group of each cohort, and the oracles of each group."""
        return alike([cohort.oracles for cohort in self._listed])

    def groups(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        numbers, oracles = self._groups
        labels = column if len(oracles) == 1 else numbers[column]
        for number, rows in rows_by(labels, len(oracles)):
            yield Batch(number, rows, oracles[number])

    def values(
        self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: Seed
    ) -> list[Any]:
        encodings = [ask.encoding for ask in self[batch.number].asks]
        columns = []
        for place, each in enumerate(encodings):
            own = {name: codes[name][batch.rows] for name in each.attributes}
            columns.append(each.encode_columns(own, shifted(seed, place)))
        return columns

    def to_json(self) -> dict[str, Any]:
        return {"family": self.kind, "cohorts": [cohort.to_json() for cohort in self._listed]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        cohorts = [Cohort.from_json(cohort, schema) for cohort in data["cohorts"]]
        return cls(cohorts, "rows" if data["family"] == TOGETHER else "sums")
