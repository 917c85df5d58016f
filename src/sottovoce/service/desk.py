"""What an analyst can do, over HTTP or not: make surveys, watch them, ask for tables, close them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sottovoce.errors import InvalidInput, MissingLibrary, UnknownPlan
from sottovoce.estimate import Table
from sottovoce.extras import has_extra
from sottovoce.plans import Plan
from sottovoce.service.shelf import Shelf
from sottovoce.service.snapshots import Snapshot, Snapshots
from sottovoce.store import Entry, Store

_PREFIX = re.compile("[0-9a-f]{8,64}")
WAIT = 20.0  # seconds that an answer may wait for an estimate


@dataclass(frozen=True)
class Survey:
    """A survey of a store, and how many people it has heard."""

    entry: Entry
    people: int

    @property
    def plan(self) -> Plan:
        return self.entry.plan

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "id": plan.id,
            "title": self.entry.title,
            "created": self.entry.created,
            "closed": self.entry.closed,
            "people": self.people,
            "people_expected": plan.people,
            "epsilon": str(plan.epsilon),
            "coin": plan.coin,
            "question": plan.question.kind,
            "attributes": list(plan.cohorts.attributes),
            "guarantee": {
                "per_report": plan.guarantee.per_report,
                "lifetime": plan.guarantee.lifetime,
                "delta": plan.guarantee.delta,
            },
        }


class Desk:
    """One store's surveys, with their estimates kept at hand."""

    def __init__(self, store: Store, refresh_seconds: float = 2.0) -> None:
        self.store = store
        self.shelf = Shelf(store)
        self._can_estimate = has_extra("analysis")
        self._snapshots = Snapshots(store.address, refresh_seconds)

    def surveys(self) -> list[Survey]:
        """All of them, the newest first."""
        entries = sorted(self.store.entries(), key=lambda entry: -entry.created)
        return [Survey(entry, self.store.count(entry.plan)) for entry in entries]

    def survey(self, plan_id: str) -> Survey:
        """By its id, or by so many of its first digits that it is the only one."""
        entry = self.store.entry(self._whole_id(plan_id))
        return Survey(entry, self.store.count(entry.plan))

    def _whole_id(self, plan_id: str) -> str:
        if _PREFIX.fullmatch(plan_id) is None:
            raise UnknownPlan("plan: its id must be 8 to 64 hexadecimal digits")
        if len(plan_id) == 64:
            return plan_id
        found = [entry.plan.id for entry in self.store.entries() if entry.plan.id.startswith(plan_id)]
        if len(found) != 1:
            raise UnknownPlan(f"plan: {len(found)} plans start with these digits")
        return found[0]

    def create(self, plan: Plan, title: str = "") -> Survey:
        """Take a plan in; its reports are welcome from now on."""
        self.store.add_plan(plan, title)
        self.shelf.refresh()
        return self.survey(plan.id)

    def close(self, plan_id: str) -> Survey:
        """No more reports."""
        self.store.close_survey(self._whole_id(plan_id))
        return self.survey(plan_id)

    def snapshot(self, plan_id: str) -> Snapshot:
        """The latest estimate, at once."""
        self._check_analysis()
        survey = self.survey(plan_id)
        return self._snapshots.latest(survey.plan, survey.people)

    def fresh(self, plan_id: str) -> Snapshot:
        """An estimate of now, if it takes no longer than an answer may."""
        self._check_analysis()
        survey = self.survey(plan_id)
        return self._snapshots.fresh(survey.plan, survey.people, WAIT)

    def _check_analysis(self) -> None:
        if not self._can_estimate:
            raise MissingLibrary(
                "estimate: this collector keeps reports and estimates nothing; give its store to `sottovoce estimate` "
                'where there is more: pip install "sottovoce[analysis]"'
            )

    def marginal(self, plan_id: str, names: list[str]) -> Table:
        """The table of these attributes."""
        return self.table(self.fresh(plan_id), names)

    @staticmethod
    def table(snapshot: Snapshot, names: list[str]) -> Table:
        """A table of a snapshot, or one clear error."""
        if snapshot.estimate is None:
            raise InvalidInput(snapshot.problem or "estimate: there are no reports yet, or it is still being made")
        return snapshot.estimate.marginal(*names)

    def refresh(self) -> None:
        """Have estimates made of whatever has changed."""
        if not self._can_estimate:
            return
        for survey in self.surveys():
            self._snapshots.latest(survey.plan, survey.people)

    def stop(self) -> None:
        """Stop the estimating process; the store stays open."""
        self._snapshots.close()
