"""Where reports rest: SQLite, or PostgreSQL for several collectors.

>>> import tempfile
>>> import numpy as np
>>> import sottovoce as sv
>>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
>>> reports = sv.simulate(plan, {"x": [True, False, True]}, seed=1)
>>> ids = np.arange(48, dtype=np.uint8).reshape(3, 16)
>>> with tempfile.TemporaryDirectory() as folder:
...     with open_store(f"sqlite:///{folder}/survey.db") as store:
...         store.add_plan(plan, sv.Texts("a question"))
...         stored, again = store.append(plan, ids, reports), store.append(plan, ids, reports)
...         stored.tolist(), again.tolist(), store.count(plan), store.aggregate(plan).people
([0, 0, 0], [1, 1, 1], 3, 3)
"""

from __future__ import annotations

from sottovoce.ground.errors import InvalidInput
from sottovoce.store.backups import Manifest, Restored, backup, restore
from sottovoce.store.base import Entry, Kept, Outcome, Store
from sottovoce.store.exports import export, export_file
from sottovoce.store.keys import SCOPES, Token
from sottovoce.store.urls import is_store, kind_of

__all__ = [
    "SCOPES",
    "Entry",
    "Kept",
    "Manifest",
    "Outcome",
    "Restored",
    "Store",
    "Token",
    "backup",
    "export",
    "export_file",
    "is_store",
    "open_store",
    "restore",
]


def open_store(url: str, *, create: bool = True) -> Store:
    """The store at ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``postgresql://...``.

    A SQLite file that is not there is made, unless ``create`` is False; so are the tables in a
    PostgreSQL database.
    """
    if kind_of(url) == "sqlite":
        from sottovoce.store.sqlite import SqliteStore

        return SqliteStore(url, create)
    try:
        from sottovoce.store.postgres import PostgresStore
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "psycopg":
            raise
        raise InvalidInput(
            'store: postgresql:// needs psycopg; install it with: pip install "sottovoce[postgres]"'
        ) from None
    return PostgresStore(url, create)
