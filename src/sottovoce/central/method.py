"""What every way to release is: a table goes in, noisy counts of tuples come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.accounting import Ledger, Neighbours
from sottovoce.ground.entropy import Entropy

if TYPE_CHECKING:
    from sottovoce.results.joint import JointEstimate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EMPTY_CODE = -1  # the code of an empty cell, which belongs to no tuple


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows; all rows of a user are in one batch."""

    codes: Integers  # (rows, attributes), EMPTY_CODE where a row says nothing; of sets (pairs, 1)
    users: Integers  # whose each row is, counted from 0 through all batches, ascending, (rows,)


class CentralTable(ABC):
    """What a curator holds: rows of codes, or sets of items; each row belongs to a user.

    A table has a code for each attribute of a row. Sets have a row (user, item) for each item that
    a user holds, and one attribute, whose values are the items.
    """

    columns: tuple[str, ...]  # the attributes; of sets the single column of items
    values: tuple[tuple[Any, ...], ...]  # of each attribute its values, in the order of codes
    is_known: tuple[bool, ...]  # whether an attribute's values are public, not read off the data
    people: int  # how many users there are
    rows: int
    is_sets: bool
    has_user_column: bool = False  # whether a user of a table may have several rows; public

    @abstractmethod
    def batches(self) -> Iterator[RowBatch]:
        """All rows, as often as it is called, in one order."""


@dataclass(frozen=True, eq=False)
class MemoryTable(CentralTable):
    """A table that fits in memory, as one batch."""

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    is_known: tuple[bool, ...]
    codes: Integers
    users: Integers
    people: int
    is_sets: bool = False
    has_user_column: bool = False

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.codes)

    def batches(self) -> Iterator[RowBatch]:
        yield RowBatch(self.codes, self.users)


@dataclass(frozen=True)
class ReleaseTerms:
    """What is promised, and up to how many values together are released."""

    epsilon: Decimal
    delta: Decimal
    up_to: int
    neighbours: Neighbours = "add-remove"
    options: Mapping[str, Any] = field(default_factory=dict)  # of the method, by name


@dataclass(frozen=True, eq=False)
class TupleCounts:
    """Noisy counts of k-tuples: k values of k different attributes, or k items of a set."""

    attributes: Integers  # which attribute each value is of, (tuples, k)
    codes: Integers  # which value, (tuples, k)
    counts: Floats  # noisy numbers of users, (tuples,)
    std_errors: Floats  # of the noise, (tuples,)
    may_be_spurious: NDArray[np.bool_]  # whether nobody may hold the tuple, (tuples,)

    def at(self, rows: Integers) -> TupleCounts:
        """Some of the tuples, in the order given."""
        return TupleCounts(
            self.attributes[rows],
            self.codes[rows],
            self.counts[rows],
            self.std_errors[rows],
            self.may_be_spurious[rows],
        )


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """What a method releases."""

    tuples: Mapping[int, TupleCounts]  # by k
    notes: tuple[str, ...] = ()  # what a reader must know, in plain sentences
    # tables of any attributes, and what analysis takes; None of a method that finds tuples alone
    estimate: JointEstimate | None = None


@dataclass(frozen=True)
class Settled:
    """Options that ``auto`` chooses for a method, from public facts alone, and why."""

    options: Mapping[str, Any] = field(default_factory=dict)
    why: str | None = None


class ReleaseMethod(ABC):
    """A way to release. Whatever it draws was put on the ledger before."""

    name: ClassVar[str]
    about: ClassVar[str]
    source: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        """Why the method does not fit, from public facts alone; None if it does."""

    def settle(self, table: CentralTable, terms: ReleaseTerms) -> Settled:
        """What ``auto`` adds to the options of a method that fits; nothing, unless a method says
        otherwise. A method that is asked for by name keeps its own defaults.
        """
        return Settled()

    @abstractmethod
    def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
        """The expected squared error of a count, on average over k and tuples, from public facts
        alone; None if it is not known beforehand.
        """

    @abstractmethod
    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        """Spend, draw, and release."""
