"""Families by a list: cohorts one by one, their asks' answers counted singly, or kept together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families.base import Batch, Cohort, Family, rows_by, share_of
from sottovoce.schema import Schema


class Listed(Family):
    """Cohorts that a plan lists."""

    kind: ClassVar[str] = "listed"

    def __init__(self, listed: Sequence[Cohort]) -> None:
        if not listed:
            raise InvalidInput("a plan must have at least one cohort")
        if len({ask.encoding.form for cohort in listed for ask in cohort.asks}) > 1:
            raise InvalidInput("plan: all of its asks must read attributes in the same form")
        self._listed = tuple(listed)

    def __getitem__(self, index: int) -> Cohort:
        return self._listed[index]

    def __len__(self) -> int:
        return len(self._listed)

    @property
    def kinds(self) -> tuple[Cohort, ...]:
        return self._listed

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for cohort in self._listed for name in cohort.attributes))

    @cached_property
    def weight(self) -> int:
        return sum(cohort.weight for cohort in self._listed)

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        return share_of(tickets, [cohort.weight for cohort in self._listed])

    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        for index, rows in rows_by(column, len(self)):
            yield Batch(index, rows, self[index].oracles)

    def values(
        self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: int
    ) -> list[Any]:
        encodings = [ask.encoding for ask in self[batch.number].asks]
        columns = []
        for place, each in enumerate(encodings):
            own = {name: codes[name][batch.rows] for name in each.attributes}
            columns.append(each.encode_columns(own, seed + place))
        return columns

    def to_json(self) -> dict[str, Any]:
        return {"family": self.kind, "cohorts": [cohort.to_json() for cohort in self._listed]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        return cls([Cohort.from_json(cohort, schema) for cohort in data["cohorts"]])


class Together(Listed):
    """Cohorts of several asks whose answers are kept together, by person: for their joint law."""

    kind: ClassVar[str] = "together"
    counted_by: ClassVar[str] = "joint"
