"""Plans for queries: grids with and without shifts, measures in clear; and what must be refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import sottovoce as sv
from sottovoce.protocol.encodings import Ask, Grid
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from tests.vectors.asks import asking
from tests.vectors.case import Case, Record, each_coin

SHOP = sv.Schema(
    age=sv.Ordinal(18, 47),
    state=sv.Categorical(["NY", "WA", "è già"]),
    member=sv.Boolean(),
    amount=sv.FixedPoint(0, "999.99", sensitive=False),
)
SHOP_RECORDS: tuple[Record, ...] = (
    {"age": 18, "state": "NY", "member": True, "amount": "0"},
    {"age": 47, "state": "è già", "member": False, "amount": 999.99},
    {"age": "33", "state": "WA", "member": 1, "amount": "12.30"},
)
WIDE = sv.Schema(n=sv.Ordinal(-(2**53), 2**53), x=sv.Categorical("abcde"))
WIDE_RECORDS: tuple[Record, ...] = (
    {"n": -(2**53), "x": "a"},
    {"n": 2**53, "x": "e"},
    {"n": 7, "x": "c"},
)
METHODS = ("mg", "hi", "hio", "sc", "tree")
SHIFTED = "shifted grids"


def cases() -> Iterator[Case]:
    """Plans of the question, and grids of every shape by hand."""
    for method in METHODS:

        def make(coin: str, method: str = method) -> sv.Plan:
            question = sv.Queries(["age", "state"], measures=["amount"], method=method)
            return sv.plan(SHOP, question, epsilon="2", people=1000, coin=coin)

        yield from each_coin(f"queries: {method}", make, SHOP_RECORDS, 4)
    yield from each_coin(
        SHIFTED, lambda coin: asking(SHIFTED, WIDE, _shifted, "1.5", coin), WIDE_RECORDS, 12
    )


def _shifted(schema: sv.Schema, epsilon: Decimal) -> Family:
    grids = [
        Grid.of(schema, ["x"], [2], [1]),
        Grid.of(schema, ["x", "n"], [1, 2**52], [0, 2**52 - 1]),
        Grid.of(schema, ["n"], [2**53 - 1], [2**53 - 2]),
        Grid.of(schema, ["n", "x"], [2**52 + 5, 3], [12345, 2]),
    ]
    asks = [Ask(grid, sv.oracle("grr", size=grid.size, epsilon=epsilon)) for grid in grids]
    return Listed([Cohort((ask,)) for ask in asks])


def bad_grids(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Grids that are none."""
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("with a width of 0", {"widths": [0]}),
        ("with a width that cuts nothing", {"widths": [6], "shifts": [1]}),
        ("with a shift of a whole width", {"shifts": [2]}),
        ("with a negative shift", {"shifts": [-1]}),
        ("with a width as text", {"widths": ["2"]}),
        ("with a width too many", {"widths": [2, 2]}),
        ("without a shift", {"shifts": []}),
        ("with more cells than its oracle", {"widths": [1], "shifts": [0]}),
        ("with an attribute twice", {"attributes": ["x", "x"]}),
        ("of nothing", {"attributes": [], "widths": [], "shifts": []}),
        ("with a key more", {"sizes": [5]}),
    )
    for why, change in changes:
        body = json.loads(plans[SHIFTED].to_json())
        body["cohorts"]["cohorts"][0]["asks"][0]["encoding"] |= change
        yield f"a grid {why}", json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def bad_measures(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Measures that do not travel in clear, and dimensions that do."""
    for why, measures, public in (
        ("whose measure is not public", ["amount"], None),
        ("whose measure is whispered", ["amount", "member"], ["amount"]),
        ("with a name for a list of measures", "amount", ["amount"]),
        ("without measures", None, ["amount"]),
        ("whose dimension travels in clear too", ["amount"], ["amount", "age"]),
    ):
        body = json.loads(plans["queries: tree"].to_json())
        body["question"]["measures"] = measures
        del body["public"]
        body["schema"]["age"]["sensitive"] = False
        if public is not None:
            parts = list(body.items())
            place = [name for name, _ in parts].index("coin") + 1
            body = dict([*parts[:place], ("public", public), *parts[place:]])
        yield f"a query {why}", json.dumps(body, indent=1, ensure_ascii=False) + "\n"
