"""What a plan's reports add up to, kept up to date: a checkpoint, and whatever came after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from sottovoce.aggregate import Aggregate
from sottovoce.errors import CorruptReport, PlanMismatch, StoreError
from sottovoce.plans import Plan

if TYPE_CHECKING:
    from sottovoce.store.base import Store

SAVE_AFTER = 100_000  # reports that came after the last checkpoint
SAVE_SHARE = 10  # and a tenth of what it holds


@dataclass(frozen=True)
class Checkpoint:
    """An aggregate's bytes: of all ``people`` whose sequence number is at most ``upto``."""

    upto: int
    people: int
    data: bytes


@dataclass(frozen=True)
class Held:
    """An aggregate, the sequence number it reaches, and the people in the last checkpoint. It never changes."""

    aggregate: Aggregate
    upto: int = 0
    saved: int = 0


class Folds:
    """One aggregate in memory for each plan asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[str, Held] = {}
        self._locks: dict[str, Lock] = {}

    def aggregate(self, plan: Plan) -> Aggregate:
        """The aggregate held, with what is new."""
        with self._locks.setdefault(plan.id, Lock()):
            held = self._grown(self._held.get(plan.id) or self._loaded(plan))
            new = held.aggregate.people - held.saved
            if new >= SAVE_AFTER and new * SAVE_SHARE >= held.saved:
                with suppress(StoreError):  # without room for a checkpoint there still is an answer
                    held = self._saved(held, force=False)
            self._held[plan.id] = held
            return held.aggregate

    def forget(self, plan: Plan) -> None:
        """Hold nothing of a plan."""
        with self._locks.setdefault(plan.id, Lock()):
            self._held.pop(plan.id, None)

    def rebuild(self, plan: Plan, progress: Callable[[int], None] | None) -> Aggregate:
        """The aggregate of all reports, read anew."""
        with self._locks.setdefault(plan.id, Lock()):
            held = self._saved(self._grown(Held(Aggregate(plan)), progress), force=True)
            self._held[plan.id] = held
            return held.aggregate

    def _loaded(self, plan: Plan) -> Held:
        """From the checkpoint, unless it is damaged or not what it says: then from nothing."""
        found = self._store.load_checkpoint(plan)
        if found is not None:
            with suppress(CorruptReport, PlanMismatch):
                aggregate = Aggregate.from_bytes(plan, found.data, found.people)
                if aggregate.people == found.people:
                    return Held(aggregate, found.upto, found.people)
        return Held(Aggregate(plan))

    def _grown(self, held: Held, progress: Callable[[int], None] | None = None) -> Held:
        """With the reports that came after it. The aggregate is a new one: somebody may be reading the old."""
        new = Aggregate(held.aggregate.plan)
        upto = held.upto
        for last, _, reports in self._store.read(new.plan, held.upto):
            new.add(reports)
            upto = last
            if progress is not None:
                progress(new.people)
        return held if upto == held.upto else Held(held.aggregate.merge(new), upto, held.saved)

    def _saved(self, held: Held, force: bool) -> Held:
        people = held.aggregate.people
        checkpoint = Checkpoint(held.upto, people, held.aggregate.to_bytes())
        self._store.save_checkpoint(held.aggregate.plan, checkpoint, force)
        return Held(held.aggregate, held.upto, people)
