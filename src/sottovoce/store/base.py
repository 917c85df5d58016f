"""What every store does, whatever keeps its rows."""

from __future__ import annotations

import json
import secrets
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.device.assignment import ID_BYTES
from sottovoce.ground.errors import (
    CorruptReport,
    InvalidInput,
    PlanMismatch,
    SottovoceError,
    UnknownPlan,
)
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import STREAM_BATCH, Reports
from sottovoce.protocol.texts import NO_TEXTS, Texts
from sottovoce.store.checkpoints import Checkpoint, Folds, damaged_reports
from sottovoce.store.keys import Execute, KeyStore
from sottovoce.store.shipped import forget_shipments

Ids = NDArray[np.uint8]
Outcomes = NDArray[np.uint8]
Part = tuple[Plan, Ids, Reports]
Progress = Callable[[int], None]  # takes how much is done so far

FEWEST_PEOPLE = 5  # of a cohort whose sums may be kept without its reports
MOST_BATCH_BYTES = 64 << 20  # of reports that are read at once


class Outcome(IntEnum):
    """What became of a report that was appended."""

    STORED = 0
    DUPLICATE = 1  # the same id with the same content is there
    CONFLICT = 2  # the same id with another content is there


@dataclass(frozen=True)
class Entry:
    """A survey: its plan and texts, when it was added (unix time), whether it is closed."""

    plan: Plan
    texts: Texts
    created: float
    closed: bool

    @property
    def title(self) -> str:
        """What the survey is called; empty if it has no name."""
        return self.texts.title


@dataclass(frozen=True)
class Kept:
    """What a store says of a survey's reports.

    ``version`` is drawn anew whenever reports are taken away, so that nothing that was held before
    is built upon.
    """

    version: int
    only_sums: bool  # the reports were deleted, and what they add up to was kept
    # reports whose checksum did not hold when they were added up; they are not counted
    damaged: int
    set_aside: int  # those that were moved away

    @property
    def missing(self) -> int:
        """Reports that were acknowledged and are not counted."""
        return self.damaged + self.set_aside


@dataclass(frozen=True)
class Stretch:
    """Reports one after another; those whose checksum does not hold are only counted."""

    last: int  # sequence number
    ids: Ids
    reports: Reports
    damaged: int


class Store(KeyStore):
    """Plans, and the reports that answer them, each under an id of 16 bytes that is taken once.

    Several threads may use it, and several processes at once. Sequence numbers grow in the order of
    commits.
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

    def add_plan(self, plan: Plan, texts: Texts = NO_TEXTS) -> None:
        """Keep a plan, byte for byte, and what it says to people.

        Adding it again changes nothing.
        """
        texts.check(plan.schema)
        self._add_plan(plan.id, plan.to_json().encode(), texts.to_text(), time.time())

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
        """The survey of a row; its plan's text, which never changes, is read once."""
        plan_id, texts, created, closed = row
        if plan_id not in self._parsed:
            self._parsed[plan_id] = Plan.from_json(self._plan_text(plan_id), id=plan_id)
        told = Texts.parse(json.loads(texts))
        return Entry(self._parsed[plan_id], told, created, bool(closed))

    @abstractmethod
    def plan_ids(self, start: str = "") -> list[str]:
        """The ids of all plans, or of those that start with these hexadecimal digits; no text."""

    @abstractmethod
    def _add_plan(self, plan_id: str, text: bytes, texts: str, created: float) -> None: ...

    @abstractmethod
    def _survey_rows(self, plan_id: str | None) -> list[tuple[Any, ...]]:
        """(id, texts, created, closed) of one plan or of all."""

    @abstractmethod
    def _plan_text(self, plan_id: str) -> bytes:
        """The text of a plan that is there."""

    @abstractmethod
    def close_survey(self, plan_id: str) -> None:
        """Take no more reports of a plan. Closing it again changes nothing."""

    # -- reports

    def append(self, plan: Plan, ids: Ids, reports: Reports) -> Outcomes:
        """Store reports under their ids; an :class:`Outcome` for each. Durable when it returns.

        All rows are stored in one transaction. If any of them is a CONFLICT nothing of the call is
        stored, whatever the others say.
        """
        (result,) = self.append_many([(plan, ids, reports)])
        if isinstance(result, SottovoceError):
            raise result
        return result

    @abstractmethod
    def append_many(self, parts: Sequence[Part]) -> list[Outcomes | SottovoceError]:
        """Several appends in one transaction: each part is taken whole or not at all, and has a
        result of its own.

        A failure of the store itself, such as a full disk, is the result of every part.
        """

    def read(
        self, plan: Plan, after: int = 0, batch: int = STREAM_BATCH
    ) -> Iterator[tuple[int, Ids, Reports]]:
        """(last sequence number, ids, reports) in order of arrival,
        at most ``batch`` rows at once.
        """
        for stretch in self.scan(plan, after, batch):
            yield stretch.last, stretch.ids, stretch.reports

    @abstractmethod
    def scan(self, plan: Plan, after: int = 0, batch: int = STREAM_BATCH) -> Iterator[Stretch]:
        """The same with the number of damaged reports among them."""

    @abstractmethod
    def count(self, plan: Plan) -> int:
        """How many reports of a plan there are, unread; less those known to be damaged."""

    @abstractmethod
    def kept(self, plan: Plan) -> Kept:
        """What is kept of a survey's reports."""

    # -- what they add up to

    def aggregate(self, plan: Plan) -> Aggregate:
        """All reports of a plan, added up: those after the last call, or the checkpoint, are read.

        Callers share what it returns and it never changes: merge it with others, but add no reports
        to it.
        """
        return self._folds.aggregate(plan)

    def forget(self, plan: Plan) -> None:
        """Let go of what :meth:`aggregate` holds of a plan; the next call reads the checkpoint."""
        self._folds.forget(plan)

    def rebuild(self, plan: Plan, progress: Progress | None = None) -> Aggregate:
        """The same from the reports alone, as the checkpoint; refuses if some are damaged."""
        return self._folds.rebuild(plan, progress)

    def check(self, plan: Plan, progress: Progress | None = None) -> int:
        """Read all reports and refuse if some are damaged; how many there are.

        Nothing is added up, which needs no analysis libraries. The checkpoint is dropped, so that
        the next :meth:`aggregate` is of the reports alone, as after :meth:`rebuild`.
        """
        reports = damaged = 0
        for stretch in self.scan(plan):
            reports, damaged = reports + len(stretch.ids), damaged + stretch.damaged
            if progress is not None:
                progress(reports)
        if damaged:
            raise damaged_reports(plan, damaged)
        number = f"(SELECT number FROM {self._prefix}plans WHERE id = ? AND NOT only_sums)"
        drop = f"DELETE FROM {self._prefix}checkpoints WHERE plan = {number}"
        self._change(lambda execute: execute(drop, (plan.id,)))
        self.forget(plan)
        return reports

    @abstractmethod
    def load_checkpoint(self, plan: Plan) -> Checkpoint | None:
        """The checkpoint of a plan, if there is one."""

    @abstractmethod
    def save_checkpoint(self, plan: Plan, checkpoint: Checkpoint, force: bool) -> None:
        """Keep a checkpoint of the survey's version if it reaches further, or by ``force``."""

    # -- what is taken away

    @abstractmethod
    def set_aside(self, plan: Plan) -> int:
        """Move a plan's damaged reports to a table of their own; how many they were.

        Their ids are free again: a device that still has such a report may send it once more.
        """

    def delete(self, plan: Plan) -> bool:
        """Delete a survey: its plan, its reports with their ids, what they add up to.

        Returns:
            Whether their bytes are gone from the store's files too; otherwise they go with its next
            maintenance.
        """
        self.entry(plan.id)
        self._change(lambda execute: forget_shipments(execute, self._prefix, plan.id))
        self._delete(plan)
        self._folds.forget(plan)
        self._parsed.pop(plan.id, None)
        return self._erase()

    def keep_sums(self, plan: Plan) -> bool:
        """Close a survey and delete its reports with their ids, but keep what they add up to.

        Refused where that would be the reports themselves, where a cohort was heard from fewer than
        ``FEWEST_PEOPLE``, and while some reports are damaged. Returns as :meth:`delete` does.
        """
        if self.kept(plan).only_sums:
            return self._erase()
        require_sums(self.aggregate(plan))
        self.close_survey(plan.id)
        self.rebuild(plan)
        self._keep_sums(plan)
        self._folds.forget(plan)
        return self._erase()

    def set_sums(self, plan: Plan, texts: Texts, sums: Aggregate) -> None:
        """Have a survey be what reports that lie elsewhere add up to, in place of what it said.

        It is as after :meth:`keep_sums`: closed, without reports. Refused if it has some.
        """
        self.add_plan(plan, texts)
        kept, before = self.kept(plan), self.count(plan)
        if before and not kept.only_sums:
            raise InvalidInput(
                f"store: it has reports of {plan.id[:16]} itself; sums of others need another store"
            )
        # what only grows is shown until there is a new estimate; anything else is another survey,
        # also if as many people say something else
        version = kept.version if sums.people > before else new_version()
        plans, checkpoints = f"{self._prefix}plans", f"{self._prefix}checkpoints"
        close = f"UPDATE {plans} SET closed = true, only_sums = true, version = ? WHERE id = ?"
        drop = f"DELETE FROM {checkpoints} WHERE plan = (SELECT number FROM {plans} WHERE id = ?)"
        save = f"""INSERT INTO {checkpoints} (plan, upto, people, damaged, version, data)
            SELECT number, 0, ?, 0, version, ? FROM {plans} WHERE id = ?"""
        data = sums.to_bytes()

        def work(execute: Execute) -> None:
            execute(close, (version, plan.id))
            execute(drop, (plan.id,))
            execute(save, (sums.people, data, plan.id))

        self._change(work)

    @abstractmethod
    def _delete(self, plan: Plan) -> None: ...

    @abstractmethod
    def _keep_sums(self, plan: Plan) -> None:
        """Delete the reports of a closed survey whose checkpoint holds them all."""

    @abstractmethod
    def _erase(self) -> bool:
        """Overwrite what was deleted; whether that could be done now."""

    # -- copies, see :mod:`sottovoce.store.backups`

    @abstractmethod
    def _copy_to(self, draft: Path) -> None:
        """Write all that is here at one moment into a SQLite file."""

    @abstractmethod
    def _load_from(self, source: Path, replace: bool, with_keys: bool) -> bool:
        """Take over such a file, in one transaction; refuse if there are surveys that must stay.

        With keys its tokens and signing keys take the place of the store's own. Returns whether the
        bytes of what was replaced are gone.
        """

    @abstractmethod
    def ping(self) -> None:
        """See that the store answers; it is asked for nothing."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store. Closing it again changes nothing."""


def require_sums(aggregate: Aggregate) -> None:
    """One clear error if an aggregate is the reports themselves, reordered, or of few people."""
    if aggregate.counts.holds_reports:
        raise InvalidInput(
            "keep: this survey's reports add up to the reports themselves; keep it as it is, or "
            "delete it whole"
        )
    fewest = aggregate.counts.fewest
    if 0 < fewest < FEWEST_PEOPLE:
        raise InvalidInput(
            f"keep: a cohort of this survey was heard from {fewest} people only, and must be from "
            f"{FEWEST_PEOPLE}: what a few add up to tells their reports; keep it as it is, or "
            "delete it whole"
        )


def checked(part: Part) -> SottovoceError | None:
    """Why a part cannot be stored, if its shape alone tells."""
    plan, ids, reports = part
    if reports.plan_id != plan.id:
        return PlanMismatch("reports: they belong to another plan")
    if reports.payload.shape[1] != plan.cohorts.bytes:
        return CorruptReport(f"reports: payloads must have {plan.cohorts.bytes} bytes")
    if list(reports.public) != list(plan.columns):
        return CorruptReport(
            f"reports: their public columns must be {', '.join(plan.columns) or 'none'}"
        )
    if ids.dtype != np.uint8 or ids.shape != (len(reports), ID_BYTES):
        return CorruptReport(f"ids: they must be rows of {ID_BYTES} bytes, one for each report")
    return None


def to_rows(part: Part, result: SottovoceError | None) -> tuple[Part, SottovoceError | None]:
    """A part as a store keeps it: the public values of a report behind its payload, in one.

    So what is kept of a report is one row, under one checksum. Within a store, until they are read
    by a caller, reports have this form (:func:`from_rows`). A part that has a ``result`` already,
    or gets one here, is not stored.
    """
    plan, ids, reports = part
    if result is not None or not plan.columns:
        return part, result
    try:
        public = plan.public.to_rows(reports.public, len(reports))
    except CorruptReport as wrong:
        return part, wrong
    rows = np.concatenate([reports.payload, public], axis=1)
    return (plan, ids, Reports(plan.id, reports.cohorts, rows)), None


def from_rows(plan: Plan, stretch: Stretch) -> Stretch:
    """What was read, with the public values in columns of their own."""
    if not plan.columns:
        return stretch
    width, rows = plan.cohorts.bytes, stretch.reports
    public = plan.public.from_rows(rows.payload[:, width:])
    payload = np.ascontiguousarray(rows.payload[:, :width])
    return replace(stretch, reports=Reports(plan.id, rows.cohorts, payload, public))


def as_rows(parts: Sequence[Part]) -> tuple[list[Part], list[Any]]:
    """Parts as a store keeps them, and why some cannot be stored (None of the others)."""
    pairs = [to_rows(part, checked(part)) for part in parts]
    return [part for part, _ in pairs], [result for _, result in pairs]


def batch_size(plan: Plan, batch: int) -> int:
    """How many rows are read at once: ``batch``, or as many as have ``MOST_BATCH_BYTES``."""
    if batch < 1:
        raise InvalidInput(f"batch ({batch}) must be at least 1")
    return max(1, min(batch, MOST_BATCH_BYTES // (ID_BYTES + 4 + plan.row_bytes)))


def new_version() -> int:
    """Another version of a survey's reports."""
    return secrets.randbits(62)


def no_reports_left() -> InvalidInput:
    """The error of whoever asks for reports that were deleted."""
    return InvalidInput("reports: they were deleted, and only what they add up to was kept")
