"""A store's own name, and how far its reports were shipped: what :mod:`sottovoce.shipping` keeps
in a store.

A backup holds none of it: what is restored from one is another store.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sottovoce.store.base import Store
    from sottovoce.store.keys import Execute

IDENTITY_BYTES = 16
# in the settings: the store's name, and a row for each plan and place it is shipped to
OWN_SETTINGS = "(name = 'identity' OR name LIKE 'shipped %')"
_IDENTITY = "identity"


@dataclass(frozen=True)
class Shipment:
    """Reports of one plan, one after another as a store has them.

    ``rows``: how many there are after the sequence number ``after`` up to ``until``.
    """

    after: int
    until: int
    rows: int

    def to_bytes(self) -> bytes:
        """As it stands in the settings."""
        return f"{self.after} {self.until} {self.rows}".encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Shipment:
        """The inverse of :meth:`to_bytes`."""
        after, until, rows = (int(part) for part in data.split())
        return cls(after, until, rows)


def identity(store: Store) -> str:
    """32 hexadecimal digits, drawn once for this store and for no other."""
    settings = f"{store._prefix}settings"
    query = f"SELECT value FROM {settings} WHERE name = ?"
    found = store._look(lambda execute: execute(query, (_IDENTITY,)).fetchone())
    if found is None:
        insert = f"INSERT INTO {settings} (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
        new = secrets.token_bytes(IDENTITY_BYTES)
        store._change(lambda execute: execute(insert, (_IDENTITY, new)))
        return identity(store)
    return bytes(found[0]).hex()


def shipment(store: Store, plan_id: str, place: str) -> Shipment | None:
    """What is under way to a place, or was the last to arrive there (then it has no rows)."""
    query = f"SELECT value FROM {store._prefix}settings WHERE name = ?"
    found = store._look(lambda execute: execute(query, (_row(plan_id, place),)).fetchone())
    return None if found is None else Shipment.from_bytes(bytes(found[0]))


def note_shipment(store: Store, plan_id: str, place: str, shipment: Shipment) -> None:
    """Keep what is under way; durable when it returns."""
    save = f"""INSERT INTO {store._prefix}settings (name, value) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
    row = (_row(plan_id, place), shipment.to_bytes())
    store._change(lambda execute: execute(save, row))


def forget_shipments(execute: Execute, prefix: str, plan_id: str) -> None:
    """Know nothing of what was shipped of a plan: its sequence numbers may be used again."""
    execute(f"DELETE FROM {prefix}settings WHERE name LIKE ?", (f"shipped {plan_id} %",))


def _row(plan_id: str, place: str) -> str:
    return f"shipped {plan_id} {place}"
