"""A shop's customers: what they spent is public, the rest was whispered. Known here to tests."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sottovoce as sv
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.questions.queries.sql.session import Session
from tests.sql.true_table import TrueTable

STATES = ("NY", "WA", "CA")
DIMENSIONS = {
    "age": sv.Ordinal(18, 65),
    "hours": sv.Ordinal(0, 39),
    "state": sv.Categorical(STATES),
    "smoker": sv.Boolean(),
    "salary": sv.Ordinal(0, 999, bins=10),
}


@cache
def customers(people: int = 600) -> dict[str, Any]:
    """The truth, in columns; amounts in cents."""
    draws = np.random.default_rng(13)
    hours = draws.integers(0, 40, people)
    return {
        "age": draws.integers(18, 66, people),
        "hours": hours,
        "state": draws.choice(STATES, people, p=[0.5, 0.3, 0.2]).astype(object),
        "smoker": draws.random(people) < 0.3,
        "salary": draws.integers(0, 1000, people),
        "amount": draws.integers(-200, 5000, people),
        "shop": draws.choice(["a", "b"], people).astype(object),
        "visits": hours // 4,
    }


def source(boxes_only: bool = False) -> TrueTable:
    """The customers without noise."""
    table = customers()
    public = {
        "amount": PublicColumn(table["amount"], 2),
        "shop": PublicColumn(table["shop"]),
        "visits": PublicColumn(table["visits"]),
    }
    return TrueTable(DIMENSIONS, table, public, boxes_only)


def session(boxes_only: bool = False) -> Session:
    """The same, ready for queries."""
    return Session(source(boxes_only))


@cache
def database() -> Any:
    """The customers in a table that DuckDB reads."""
    table = dict(customers())
    cents = [Decimal(int(each)) / 100 for each in table["amount"]]
    table["amount"] = pa.array(cents, pa.decimal128(18, 2))
    connection = duckdb.connect()
    connection.register("people", pa.table(table))
    return connection
