"""A plan of queries with public columns, its people, and what they whispered."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sottovoce as sv

PEOPLE = 20_000


@cache
def truth(people: int = PEOPLE) -> dict[str, Any]:
    """People in columns."""
    draws = np.random.default_rng(77)
    age = np.clip(draws.normal(42, 14, people), 18, 81).astype(int)
    return {
        "age": age,
        "state": draws.choice(["CA", "NY", "TX"], people, p=[0.5, 0.3, 0.2]),
        "amount": np.round(draws.gamma(2.0, 5 + age / 5, people).clip(0, 499), 2),
        "channel": draws.choice(["shop", "web"], people),
    }


@cache
def plan(method: str, epsilon: float) -> sv.Plan:
    """Age and state are whispered, amount and channel are public."""
    schema = sv.Schema(
        age=sv.Ordinal(18, 81),
        state=sv.Categorical(["CA", "NY", "TX"]),
        amount=sv.Number(0, 500, step="0.01", sensitive=False),
        channel=sv.Categorical(["shop", "web"], sensitive=False),
    )
    question = sv.Queries(["age", "state"], measures=["amount"], method=method)
    return sv.plan(schema, question, epsilon=epsilon, people=PEOPLE, public=["channel"])


@cache
def reports(method: str, epsilon: float, seed: int = 5) -> sv.Reports:
    """What the people whispered."""
    return sv.simulate(plan(method, epsilon), truth(), seed=seed)


@cache
def database() -> Any:
    """The same people in the clear."""
    connection = duckdb.connect()
    connection.register("people", pa.table(truth()))
    return connection
