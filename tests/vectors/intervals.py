"""Intervals of any widths: those of a tree that has grown, cuts at both ends; cuts that must be
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import sottovoce as sv
from sottovoce.protocol.encodings import Ask, Intervals
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from tests.vectors.asks import asking
from tests.vectors.case import Case, Record, each_coin

SCHEMA = sv.Schema(n=sv.Ordinal(-(2**53), 2**53), x=sv.Categorical("abcde"), age=sv.Ordinal(0, 19))
RECORDS: tuple[Record, ...] = (
    {"n": -(2**53), "x": "a", "age": 0},
    {"n": 2**53, "x": "e", "age": 19},
    {"n": 7, "x": "c", "age": 10},
)
CUT = "intervals"


def cases() -> Iterator[Case]:
    """The first round of a method that cuts, the squares and waves of others, and cuts by hand."""
    for method in ("ahead", "haar", "square-wave"):

        def make(coin: str, method: str = method) -> sv.Plan:
            rounds = (1,) if method == "ahead" else None
            question = sv.Queries(["age"], method=method)
            return sv.plan(SCHEMA, question, epsilon="2", people=1000, coin=coin, rounds=rounds)

        yield from each_coin(f"queries: {method}", make, RECORDS, 4)
    yield from each_coin(CUT, lambda coin: asking(CUT, SCHEMA, _cut, "1.5", coin), RECORDS, 12)


def _cut(schema: sv.Schema, epsilon: Decimal) -> Family:
    parts = [
        Intervals.of(schema, "x", [2, 4]),
        Intervals.of(schema, "n", [1, 2**52, 2**53 - 1, 2**53]),
        Intervals.of(schema, "x", [1, 2, 3, 4]),
    ]
    asks = [Ask(part, sv.oracle("grr", size=part.size, epsilon=epsilon)) for part in parts]
    return Listed([Cohort((ask,)) for ask in asks])


def bad_intervals(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Cuts that are none."""
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("cut at 0", {"cuts": [0, 4]}),
        ("cut beyond the last value", {"cuts": [2, 5]}),
        ("out of order", {"cuts": [4, 2]}),
        ("with a cut twice", {"cuts": [2, 2]}),
        ("with a cut as text", {"cuts": ["2", 4]}),
        ("with a cut that is a truth", {"cuts": [True, 4]}),
        ("without cuts", {"cuts": []}),
        ("fewer than its oracle's values", {"cuts": [2]}),
        ("with a key more", {"size": 3}),
    )
    for why, change in changes:
        body = json.loads(plans[CUT].to_json())
        body["cohorts"]["cohorts"][0]["asks"][0]["encoding"] |= change
        yield f"intervals {why}", json.dumps(body, indent=1, ensure_ascii=False) + "\n"
