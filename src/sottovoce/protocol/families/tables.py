"""Families whose cohorts each report the cell of a table of attributes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.seeds import Seed
from sottovoce.oracles import Oracle
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families.base import Batch, Cohort, Family, rows_by
from sottovoce.protocol.families.choices import Places
from sottovoce.schema import Codes, Schema


class TableFamily(Family):
    """One cohort for each of some sets of attributes, which reports the set's cell through the
    oracle that all tables of its size share. All weigh the same, so that a ticket is a cohort.
    """

    def __init__(self, schema: Schema, attributes: Sequence[str]) -> None:
        self._names = tuple(attributes)
        self._sizes = tuple(schema[each].size for each in attributes)

    @property
    @abstractmethod
    def _oracles(self) -> Mapping[int, Oracle]:
        """By the size of a table, in increasing order."""

    @property
    @abstractmethod
    def _tables_by_size(self) -> Mapping[int, int]:
        """How many cohorts have a table of each size."""

    @abstractmethod
    def _members(self, index: int) -> tuple[int, ...]:
        """The places of one cohort's attributes."""

    @abstractmethod
    def _members_column(self, column: NDArray[np.uint32]) -> Places:
        """The places of the attributes of many cohorts, (cohorts, the most that any has); after the
        last stands the number of all attributes.
        """

    def __getitem__(self, index: int) -> Cohort:
        members = self._members(index)
        cells = Cells(
            tuple(self._names[i] for i in members), tuple(self._sizes[i] for i in members)
        )
        return Cohort((Ask(cells, self._oracles[cells.size]),))

    @cached_property
    def kinds(self) -> tuple[Cohort, ...]:
        return tuple(
            Cohort((Ask(Cells(self._names, (each.size,)), each),))
            for each in self._oracles.values()
        )

    @cached_property
    def shares(self) -> tuple[tuple[int, Cohort], ...]:
        counts = self._tables_by_size
        return tuple(
            (counts[size], kind) for size, kind in zip(self._oracles, self.kinds, strict=True)
        )

    @property
    def weight(self) -> int:
        return len(self)

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        return tickets.astype(np.uint32)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self._names

    def _sizes_of(self, members: Places) -> Places:
        """How many cells the tables of some rows of members have, (cohorts,)."""
        sizes: Places = np.array([*self._sizes, 1], np.int64)[members].prod(axis=1)
        return sizes

    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        known = np.array(list(self._oracles), np.int64)
        labels = np.zeros(len(column), np.int64)
        if len(known) > 1:
            labels = np.searchsorted(known, self._sizes_of(self._members_column(column)))
        for number, rows in rows_by(labels, len(known)):
            yield Batch(number, rows, (self._oracles[int(known[number])],))

    def values(
        self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: Seed
    ) -> list[Codes]:
        members = self._members_column(column[batch.rows])  # (people, attributes of a table)
        columns = [codes[name][batch.rows] for name in self._names]
        table = np.stack([*columns, np.zeros(len(members), np.uint64)], axis=1)
        sizes = np.array([*self._sizes, 1], np.uint64)
        cell = np.zeros(len(members), np.uint64)
        for place in members.T:
            cell = cell * sizes[place] + np.take_along_axis(table, place[:, None], 1)[:, 0]
        return [cell]
