"""What a plan's reports add up to, kept up to date: a checkpoint, and whatever came after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.errors import CorruptReport, PlanMismatch, StoreError
from sottovoce.protocol.plan import Plan

if TYPE_CHECKING:
    from sottovoce.store.base import Kept, Store

SAVE_AFTER = 100_000  # reports that came after the last checkpoint
SAVE_SHARE = 10  # and a tenth of what it holds


@dataclass(frozen=True)
class Checkpoint:
    """An aggregate's bytes: of all ``people`` whose sequence number is at most ``upto``, the
    ``damaged`` ones left out.

    It belongs to one ``version`` of the survey's reports.
    """

    upto: int
    people: int
    damaged: int
    version: int
    data: bytes


@dataclass(frozen=True)
class HeldAggregate:
    """An aggregate, the number it reaches, the last checkpoint's people; it never changes."""

    aggregate: Aggregate
    version: int  # of the survey's reports
    upto: int = 0
    damaged: int = 0
    saved: int = 0
    is_due: bool = False  # a checkpoint, however few are new


class Folds:
    """One aggregate in memory for each plan asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[str, HeldAggregate] = {}
        self._locks: dict[str, Lock] = {}

    def aggregate(self, plan: Plan) -> Aggregate:
        """The aggregate held, with what is new."""
        with self._locks.setdefault(plan.id, Lock()):
            kept = self._store.kept(plan)
            held = self._held.get(plan.id)
            is_current = held is not None and held.version == kept.version
            if held is None or not is_current or (kept.only_sums and self._has_new_sums(held)):
                held = self._loaded(plan, kept)
            if not kept.only_sums:
                held = self._grown(held)
            new = held.aggregate.people - held.saved
            if held.is_due or (new >= SAVE_AFTER and new * SAVE_SHARE >= held.saved):
                with suppress(StoreError):  # without room for a checkpoint there still is an answer
                    held = self._saved(held, force=held.is_due)
            self._held[plan.id] = held
            return held.aggregate

    def forget(self, plan: Plan) -> None:
        """Hold nothing of a plan."""
        with self._locks.setdefault(plan.id, Lock()):
            self._held.pop(plan.id, None)

    def rebuild(self, plan: Plan, progress: Callable[[int], None] | None) -> Aggregate:
        """The aggregate of all reports, read anew."""
        with self._locks.setdefault(plan.id, Lock()):
            held = self._grown(
                HeldAggregate(Aggregate(plan), self._store.kept(plan).version), progress
            )
            if held.damaged:
                raise damaged_reports(plan, held.damaged)
            self._held[plan.id] = self._saved(held, force=True)
            return held.aggregate

    def _has_new_sums(self, held: HeldAggregate) -> bool:
        """Whether sums that were made elsewhere are of more people by now."""
        return self._store.count(held.aggregate.plan) != held.aggregate.people

    def _loaded(self, plan: Plan, kept: Kept) -> HeldAggregate:
        """From the checkpoint, unless it is damaged or not what it says: then from nothing."""
        found = self._store.load_checkpoint(plan)
        if found is not None and found.version == kept.version:
            with suppress(CorruptReport, PlanMismatch):
                aggregate = Aggregate.from_bytes(plan, found.data, found.people)
                if aggregate.people == found.people:
                    return HeldAggregate(
                        aggregate, kept.version, found.upto, found.damaged, found.people
                    )
        if kept.only_sums:
            raise StoreError("store: what was kept of this survey is damaged; restore a backup")
        return HeldAggregate(Aggregate(plan), kept.version, is_due=found is not None)

    def _grown(
        self, held: HeldAggregate, progress: Callable[[int], None] | None = None
    ) -> HeldAggregate:
        """With the reports that came after it, as a new one: somebody may be reading the old."""
        new = Aggregate(held.aggregate.plan)
        upto, damaged = held.upto, 0
        for stretch in self._store.scan(new.plan, held.upto):
            new.add(stretch.reports)
            upto, damaged = stretch.last, damaged + stretch.damaged
            if progress is not None:
                progress(new.people)
        if upto == held.upto:
            return held
        total = held.damaged + damaged
        return replace(
            held,
            aggregate=held.aggregate.merge(new),
            upto=upto,
            damaged=total,
            is_due=held.is_due or damaged > 0,
        )

    def _saved(self, held: HeldAggregate, force: bool) -> HeldAggregate:
        people = held.aggregate.people
        checkpoint = Checkpoint(
            held.upto, people, held.damaged, held.version, held.aggregate.to_bytes()
        )
        self._store.save_checkpoint(held.aggregate.plan, checkpoint, force)
        return replace(held, saved=people, is_due=False)


def damaged_reports(plan: Plan, count: int) -> StoreError:
    """The error of whoever needs all reports of a plan to be good."""
    return StoreError(
        f"store: {count:,} reports of {plan.id[:16]} are damaged, and estimates leave them out; "
        "restore a backup, or move them away for good with `sottovoce rebuild --set-aside`"
    )
