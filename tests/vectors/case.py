"""What a plan of the vectors comes with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sottovoce as sv

Record = dict[str, Any]
COINS = ("device", "assigned")


@dataclass(frozen=True)
class Case:
    """A plan of the vectors, records that fit it, and how many reports are drawn from them
    in turn.
    """

    name: str
    plan: sv.Plan
    records: tuple[Record, ...]
    rows: int = 3


def named(name: str, coin: str) -> str:
    return name if coin == "device" else f"{name}, assigned"


def each_coin(
    name: str, make: Callable[[str], sv.Plan], records: tuple[Record, ...], rows: int = 3
) -> Iterator[Case]:
    for coin in COINS:
        yield Case(named(name, coin), make(coin), records, rows)
