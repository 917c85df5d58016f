"""What a family of cohorts is: who gets which asks, by a list or a rule, an index each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.seeds import Seed
from sottovoce.oracles import Oracle
from sottovoce.oracles.blankets import Blanket
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.guarantee import Guarantee
from sottovoce.schema import Schema

# Of the reports of a question all that is needed may be sums. Or it needs the rows: what each
# person said to all of her asks together.
Keep = Literal["sums", "rows"]

FEW_LABELS = 8  # so many are told apart without sorting
MAX_PLAN_COHORTS = 1 << 32  # a report names its cohort in 32 bits


@dataclass(frozen=True)
class Cohort:
    """People who get the same asks; ``weight`` is their share, in parts of the plan's total."""

    asks: tuple[Ask, ...]
    weight: int = 1

    @property
    def guarantee(self) -> Guarantee:
        """All asks are answered, so their losses add."""
        total = Guarantee(0.0, 0.0)
        for ask in self.asks:
            total = total + ask.guarantee
        return total

    @property
    def requested(self) -> Fraction:
        """What its asks cost in all, as they were asked for, exactly."""
        return sum((ask.requested for ask in self.asks), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The chance that any of its asks' guarantees fails, at most, exactly."""
        return sum((ask.encoding.delta or Fraction(0) for ask in self.asks), Fraction(0))

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for ask in self.asks for name in ask.encoding.attributes))

    @cached_property
    def bytes(self) -> int:
        """Bytes of a report's payload: the asks' payloads one after another."""
        return sum(ask.oracle.layout.bytes for ask in self.asks)

    @property
    def bits(self) -> int:
        return sum(ask.oracle.bits for ask in self.asks)

    @property
    def oracles(self) -> tuple[Oracle, ...]:
        return tuple(ask.oracle for ask in self.asks)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each ask's payload lies."""
        return slices_of(self.oracles)

    def to_json(self) -> dict[str, Any]:
        return {"weight": self.weight, "asks": [ask.to_json() for ask in self.asks]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Cohort:
        weight = whole("plan: weight", data["weight"], 1, LARGEST_INTEGER)
        return cls(tuple(Ask.from_json(ask, schema) for ask in data["asks"]), weight)


def slices_of(oracles: Sequence[Oracle]) -> tuple[slice, ...]:
    """Where the payload of each of a cohort's oracles lies: one after another."""
    ends = np.cumsum([0, *(oracle.layout.bytes for oracle in oracles)]).tolist()
    return tuple(slice(start, end) for start, end in pairwise(ends))


def share_of(tickets: NDArray[np.int64], shares: Sequence[int]) -> NDArray[np.uint32]:
    """Which of the shares, laid end to end, each ticket of ``range(sum(shares))`` falls into."""
    return np.searchsorted(np.cumsum(shares), tickets, side="right").astype(np.uint32)


def rows_by(labels: NDArray[Any], count: int) -> Iterator[tuple[int, Any]]:
    """(label, its rows) for every label that occurs, of ``count`` that there are.

    Rows are a slice where labels are in order already, which spares a copy of each part.

    >>> [(label, rows) for label, rows in rows_by(np.array([0, 0, 2]), 3)]
    [(0, slice(0, 2, None)), (2, slice(2, 3, None))]
    """
    if not len(labels):
        return
    if count == 1:
        yield 0, slice(None)
        return
    if count <= FEW_LABELS:
        yield from _rows_by_few(labels, count)
        return
    if count <= 1 << 16:
        labels = labels.astype(np.uint16)  # which are sorted digit by digit, many times as fast
    order = None
    if not (labels[1:] >= labels[:-1]).all():
        order = np.argsort(labels, kind="stable")
        labels = labels[order]
    starts = [0, *(np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist()]
    ends = [*starts[1:], len(labels)]
    for label, start, end in zip(labels[starts].tolist(), starts, ends, strict=True):
        yield label, slice(start, end) if order is None else order[start:end]


def _rows_by_few(labels: NDArray[Any], count: int) -> Iterator[tuple[int, Any]]:
    """:func:`rows_by` without sorting: a look at all labels for each one."""
    for label in range(count):
        rows = np.flatnonzero(labels == label)
        if not len(rows):
            continue
        first, last = int(rows[0]), int(rows[-1])
        yield label, slice(first, last + 1) if last - first + 1 == len(rows) else rows


def alike(oracles: Sequence[tuple[Oracle, ...]]) -> tuple[NDArray[np.int64], list[Any]]:
    """For cohorts' oracles: the number of each among the different ones, and the different ones."""
    numbers: dict[tuple[Oracle, ...], int] = {}
    labels = [numbers.setdefault(each, len(numbers)) for each in oracles]
    return np.array(labels, np.int64), list(numbers)


@dataclass(frozen=True)
class Batch:
    """People of a column whose asks go through the same oracles, to be handled at once."""

    number: int  # which of the family's batches
    rows: Any  # a slice or the places of the people
    oracles: tuple[Oracle, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        return slices_of(self.oracles)


class Group(NamedTuple):
    """Cohorts that are asked through the same oracles."""

    number: int  # that of their batches
    cohorts: NDArray[np.int64]  # in increasing order
    oracles: tuple[Oracle, ...]


class Family(ABC):
    """A family of cohorts: index -> asks. It says how people are shared out, and what stands for
    all that is asked.
    """

    keep: Keep = "sums"  # what an aggregate keeps of the reports, as the question chose

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name in a plan."""

    @property
    def answer_bits(self) -> int | None:
        """Bits of the widest answer, if every cohort has one ask that is answered by one small
        number: then few answers differ, and their sums are how often each was given.
        """
        return None

    # -- cohorts by index

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int) -> Cohort: ...

    def __iter__(self) -> Iterator[Cohort]:
        return (self[index] for index in range(len(self)))

    @property
    @abstractmethod
    def kinds(self) -> tuple[Cohort, ...]:
        """Cohorts that stand for all: whatever a cohort costs or weighs, one of these does."""

    @property
    @abstractmethod
    def shares(self) -> tuple[tuple[int, Cohort], ...]:
        """How many tickets fall to cohorts that cost alike, and one of these, for all there are."""

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """What any cohort is asked about."""

    @property
    def mixture(self) -> list[tuple[int, list[Blanket]]]:
        """What a report of a drawn cohort hides in: for each share of the tickets the blankets of
        its asks. An encoding that draws what it reports can only hide more.
        """
        return [
            (tickets, [oracle.blanket() for oracle in cohort.oracles])
            for tickets, cohort in self.shares
        ]

    # -- who is in which

    @property
    @abstractmethod
    def weight(self) -> int:
        """The tickets that there are: a cohort has a share of them."""

    @abstractmethod
    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The cohorts of many uniform tickets of ``range(weight)``."""

    def at(self, ticket: int) -> int:
        """The cohort of one ticket."""
        return int(self.at_column(np.array([ticket]))[0])

    # -- many people at once

    @abstractmethod
    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        """The people of a column of cohorts, in batches whose oracles are the same."""

    def groups(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        """The same people in as few batches as can be, for what depends on oracles alone: reports
        are checked and added up in them.
        """
        return self.batches(column)

    @cached_property
    def different_oracles(self) -> tuple[tuple[Oracle, ...], ...]:
        """Through what its cohorts are asked, each different way once."""
        return tuple(dict.fromkeys(cohort.oracles for cohort in self.kinds))

    @cached_property
    def grouping(self) -> list[Group]:
        """The cohorts of every batch of :meth:`groups`, for families whose cohorts are not too many
        to list.
        """
        every = np.arange(len(self), dtype=np.uint32)
        batches = self.groups(every)
        return [
            Group(batch.number, every[batch.rows].astype(np.int64), batch.oracles)
            for batch in batches
        ]

    @abstractmethod
    def values(
        self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: Seed
    ) -> list[Any]:
        """What each ask of a batch encodes, a column per ask; encodings that draw use ``seed``."""

    # -- as JSON

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a device needs to know."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        """The inverse of :meth:`to_json`."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.kind, len(self), self.weight))

    # -- what follows from the cohorts that stand for all

    @cached_property
    def form(self) -> str:
        """What its encodings read of the attributes: codes, spellings or members."""
        return self.kinds[0].asks[0].encoding.form

    @cached_property
    def guarantee(self) -> Guarantee:
        """The largest over cohorts: which cohort a person is in does not depend on her record."""
        total = self.kinds[0].guarantee
        for cohort in self.kinds[1:]:
            total = total | cohort.guarantee
        return total

    @property
    def requested(self) -> Fraction:
        """The most that a cohort's asks cost, as they were asked for, exactly."""
        return max(cohort.requested for cohort in self.kinds)

    @property
    def delta(self) -> Fraction:
        """The largest of its cohorts, exactly."""
        return max(cohort.delta for cohort in self.kinds)

    @cached_property
    def charges(self) -> tuple[tuple[tuple[Fraction, ...], Fraction], ...]:
        """(what each ask was asked for, the delta) of its cohorts, each different one once."""
        kinds = [
            (tuple(ask.requested for ask in cohort.asks), cohort.delta) for cohort in self.kinds
        ]
        return tuple(dict.fromkeys(kinds))

    @cached_property
    def bytes(self) -> int:
        """The widest payload."""
        return max(cohort.bytes for cohort in self.kinds)
