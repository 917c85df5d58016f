"""The plans a collector has, by id; looked for in the store when somebody names one that another
collector may have added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from sottovoce.ground.errors import UnknownPlan
from sottovoce.protocol.plan import Plan
from sottovoce.store import Store

SHORT = 8  # bytes of a plan's id that a compact report carries
_ID = re.compile("[0-9a-f]{16}|[0-9a-f]{64}")
Result = TypeVar("Result")


class _NotHere(UnknownPlan):
    """A plan that is not in the cache; the store may have it under an id that starts so."""

    def __init__(self, start: str) -> None:
        super().__init__("plan: this collector does not have it")
        self.start = start


class PlanCache:
    """Plans of a store, by their id or by the eight bytes of it that a compact report carries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plans: dict[str, Plan] = {}
        self._short: dict[bytes, Plan] = {}
        for entry in store.entries():
            self.add(entry.plan)

    def add(self, plan: Plan) -> None:
        """Have a plan at hand."""
        self._plans[plan.id] = plan
        self._short[bytes.fromhex(plan.id)[:SHORT]] = plan

    def keep(self, ids: Container[str]) -> None:
        """Let go of all other plans: they were deleted."""
        for plan_id in [each for each in list(self._plans) if each not in ids]:
            self._plans.pop(plan_id, None)
            self._short.pop(bytes.fromhex(plan_id)[:SHORT], None)

    def plan(self, id: str) -> Plan:
        """The plan of this id, or one clear error."""
        found = self._plans.get(id)
        if found is None:
            raise _NotHere(id)
        return found

    def short(self, start: bytes) -> Plan:
        """The plan whose id starts with these bytes."""
        found = self._short.get(start)
        if found is None:
            raise _NotHere(start.hex())
        return found

    async def insist(self, look: Callable[[], Result]) -> Result:
        """What ``look`` finds in the cache, or else in the store by the key, off the event loop."""
        try:
            return look()
        except _NotHere as missing:
            if _ID.fullmatch(missing.start) is None:
                raise
            await run_in_threadpool(self._fetch, missing.start)
        return look()

    def _fetch(self, start: str) -> None:
        for plan_id in self._store.plan_ids(start):
            self.add(self._store.entry(plan_id).plan)
