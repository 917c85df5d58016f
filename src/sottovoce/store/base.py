"""What every store does, whatever keeps its rows."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregate import Aggregate
from sottovoce.errors import CorruptReport, InvalidInput, PlanMismatch, SottovoceError, UnknownPlan
from sottovoce.front import Plan as ReadablePlan
from sottovoce.plans import Plan
from sottovoce.reports import BATCH, Reports
from sottovoce.store.folding import Checkpoint, Folds
from sottovoce.store.keys import KeyStore, plain

Ids = NDArray[np.uint8]
Outcomes = NDArray[np.uint8]
Part = tuple[Plan, Ids, Reports]
Progress = Callable[[int], None]  # takes how much is done so far

ID_BYTES = 16
MOST_BATCH_BYTES = 64 << 20  # of reports that are read at once


class Outcome(IntEnum):
    """What became of a report that was appended."""

    STORED = 0
    DUPLICATE = 1  # the same id with the same content is there
    CONFLICT = 2  # the same id with another content is there


@dataclass(frozen=True)
class Entry:
    """A survey: its plan, its title, when it was added (unix time), and whether it takes no more reports."""

    plan: Plan
    title: str
    created: float
    closed: bool


class Store(KeyStore):
    """Plans, and the reports that answer them, each under an id of 16 bytes that is taken once in the whole store.

    Several threads may use it, and several processes at once. Sequence numbers grow in the order of commits.
    """

    url: str  # without a password
    address: str  # with it: to open the store elsewhere, never to be shown

    def __init__(self, url: str, address: str | None = None) -> None:
        self.url, self.address = url, address or url
        self._parsed: dict[str, Plan] = {}
        self._folds = Folds(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- surveys

    def add_plan(self, plan: Plan, title: str = "") -> None:
        """Keep a plan, byte for byte. Adding it again changes nothing."""
        self._add_plan(plan.id, plan.to_json().encode(), plain("title", title), time.time())

    def entries(self) -> list[Entry]:
        """All surveys, in the order they were added."""
        return [self._entry(row) for row in self._survey_rows(None)]

    def entry(self, plan_id: str) -> Entry:
        """One survey by its plan's id."""
        rows = self._survey_rows(plan_id)
        if not rows:
            raise UnknownPlan("plan: the store has no plan with this id")
        return self._entry(rows[0])

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        """The survey of a row; its plan's text, which may be long and never changes, is read once."""
        plan_id, title, created, closed = row
        if plan_id not in self._parsed:
            self._parsed[plan_id] = ReadablePlan.from_json(self._plan_text(plan_id), id=plan_id)
        return Entry(self._parsed[plan_id], title, created, bool(closed))

    @abstractmethod
    def plan_ids(self, start: str = "") -> list[str]:
        """The ids of all plans, or of those whose id starts with these hexadecimal digits; no text is read."""

    @abstractmethod
    def _add_plan(self, plan_id: str, text: bytes, title: str, created: float) -> None: ...

    @abstractmethod
    def _survey_rows(self, plan_id: str | None) -> list[tuple[Any, ...]]:
        """(id, title, created, closed) of one plan or of all."""

    @abstractmethod
    def _plan_text(self, plan_id: str) -> bytes:
        """The text of a plan that is there."""

    @abstractmethod
    def close_survey(self, plan_id: str) -> None:
        """Take no more reports of a plan. Closing it again changes nothing."""

    # -- reports

    def append(self, plan: Plan, ids: Ids, reports: Reports) -> Outcomes:
        """Store reports under their ids; an :class:`Outcome` for each. Durable when it returns.

        All rows are stored in one transaction. If any of them is a CONFLICT nothing of the call is stored, whatever
        the others say.
        """
        (result,) = self.append_many([(plan, ids, reports)])
        if isinstance(result, SottovoceError):
            raise result
        return result

    @abstractmethod
    def append_many(self, parts: Sequence[Part]) -> list[Outcomes | SottovoceError]:
        """Several appends in one transaction: each part is taken whole or not at all, and has a result of its own.

        A failure of the store itself, such as a full disk, is the result of every part.
        """

    @abstractmethod
    def read(self, plan: Plan, after: int = 0, batch: int = BATCH) -> Iterator[tuple[int, Ids, Reports]]:
        """(last sequence number, ids, reports) in order of arrival, at most ``batch`` rows at once."""

    @abstractmethod
    def count(self, plan: Plan) -> int:
        """How many reports of a plan there are, without reading them."""

    # -- what they add up to

    def aggregate(self, plan: Plan) -> Aggregate:
        """All reports of a plan, added up: only those are read that came after the last call, or the checkpoint.

        Callers share what it returns and it never changes: merge it with others, but add no reports to it.
        """
        return self._folds.aggregate(plan)

    def forget(self, plan: Plan) -> None:
        """Let go of what :meth:`aggregate` holds of a plan in memory; the next call starts from the checkpoint."""
        self._folds.forget(plan)

    def rebuild(self, plan: Plan, progress: Progress | None = None) -> Aggregate:
        """The same from the reports alone; it becomes the checkpoint."""
        return self._folds.rebuild(plan, progress)

    @abstractmethod
    def load_checkpoint(self, plan: Plan) -> Checkpoint | None:
        """The checkpoint of a plan, if there is one."""

    @abstractmethod
    def save_checkpoint(self, plan: Plan, checkpoint: Checkpoint, force: bool) -> None:
        """Keep a checkpoint if it reaches further than the one there, or by ``force``."""

    @abstractmethod
    def ping(self) -> None:
        """See that the store answers; it is asked for nothing."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store. Closing it again changes nothing."""


def checked(part: Part) -> SottovoceError | None:
    """Why a part cannot be stored, if its shape alone tells."""
    plan, ids, reports = part
    if reports.plan_id != plan.id:
        return PlanMismatch("reports: they belong to another plan")
    if reports.payload.shape[1] != plan.cohorts.bytes:
        return CorruptReport(f"reports: payloads must have {plan.cohorts.bytes} bytes")
    if ids.dtype != np.uint8 or ids.shape != (len(reports), ID_BYTES):
        return CorruptReport(f"ids: they must be rows of {ID_BYTES} bytes, one for each report")
    return None


def batch_size(plan: Plan, batch: int) -> int:
    """How many rows are read at once: ``batch``, or as many as have ``MOST_BATCH_BYTES``."""
    if batch < 1:
        raise InvalidInput(f"batch ({batch}) must be at least 1")
    return max(1, min(batch, MOST_BATCH_BYTES // (ID_BYTES + 4 + plan.cohorts.bytes)))
