"""The plans a collector has, by id; looked for anew when somebody names one that another collector may have added."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from sottovoce.errors import UnknownPlan
from sottovoce.plans import Plan
from sottovoce.store import Store

LOOK_AGAIN = 1.0  # seconds between two looks into the store for a plan that is not there
Result = TypeVar("Result")


class Shelf:
    """Plans of a store, by their id or by the eight bytes of it that a compact report carries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plans: dict[str, Plan] = {}
        self._short: dict[bytes, Plan] = {}
        self._looked = 0.0
        self._looking = asyncio.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Look into the store."""
        for entry in self._store.entries():
            self._plans[entry.plan.id] = entry.plan
            self._short[bytes.fromhex(entry.plan.id)[:8]] = entry.plan
        self._looked = time.monotonic()

    def plan(self, id: str) -> Plan:
        """The plan of this id, or one clear error."""
        return _known(self._plans.get(id))

    def short(self, start: bytes) -> Plan:
        """The plan whose id starts with these bytes."""
        return _known(self._short.get(start))

    async def insist(self, look: Callable[[], Result]) -> Result:
        """What ``look`` finds on the shelf, if need be after a new look into the store, off the event loop."""
        try:
            return look()
        except UnknownPlan:
            async with self._looking:
                if time.monotonic() - self._looked > LOOK_AGAIN:
                    await run_in_threadpool(self.refresh)
        return look()


def _known(found: Plan | None) -> Plan:
    if found is None:
        raise UnknownPlan("plan: this collector does not have it")
    return found
