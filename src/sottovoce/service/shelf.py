"""The plans a collector has, by id; read anew when somebody names one that another collector may have added."""

from __future__ import annotations

import time
from collections.abc import Callable

from sottovoce.errors import UnknownPlan
from sottovoce.plans import Plan
from sottovoce.store import Store

LOOK_AGAIN = 1.0  # seconds between two looks into the store for a plan that is not there


class Shelf:
    """Plans of a store, by their id or by the eight bytes of it that a compact report carries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plans: dict[str, Plan] = {}
        self._short: dict[bytes, Plan] = {}
        self._looked = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Look into the store."""
        for entry in self._store.entries():
            self._plans[entry.plan.id] = entry.plan
            self._short[bytes.fromhex(entry.plan.id)[:8]] = entry.plan
        self._looked = time.monotonic()

    def plan(self, id: str) -> Plan:
        """The plan of this id, or one clear error."""
        return self._found(lambda: self._plans.get(id))

    def short(self, start: bytes) -> Plan:
        """The plan whose id starts with these bytes."""
        return self._found(lambda: self._short.get(start))

    def _found(self, look: Callable[[], Plan | None]) -> Plan:
        found = look()
        if found is None and time.monotonic() - self._looked > LOOK_AGAIN:
            self.refresh()
            found = look()
        if found is None:
            raise UnknownPlan("plan: this collector does not have it")
        return found
