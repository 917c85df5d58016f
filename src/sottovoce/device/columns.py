"""Reports by the column: of a block of people at once, with the law of as many devices."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed, draws, subseeds
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports


class Purpose(IntEnum):
    """What a seed is for; no two purposes share one."""

    ROUNDS = 0
    COHORTS = 1
    COINS = 2
    ENCODINGS = 3
    FAKES = 4
    BLOCKS = 5


def row_count(plan: Plan, table: Any) -> int:
    """How many people a table has."""
    lengths = {
        plan.schema.rows_of(table, name) for name in (*plan.cohorts.attributes, *plan.columns)
    }
    if len(lengths) > 1:
        raise InvalidInput("columns must have equal lengths")
    return lengths.pop()


def whisper_block(plan: Plan, people: Any, rows: NDArray[np.bool_] | None = None) -> Reports:
    """The reports of people who draw every coin from the operating system, as their devices would:
    their cohorts, what they are asked, and the noise.

    A record without a valid value is refused, as ``Client(plan, invalid="raise")`` does.

    Args:
        plan: whose reports they are; its coin must not be assigned.
        people: a dict, pandas or Arrow table with a row for each person.
        rows: which of them answer; everybody if None.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(whisper_block(plan, {"x": [True, False, True]}))
    3
    """
    if plan.coin == "assigned":
        raise InvalidInput("assignment is required for a plan whose coin is assigned")
    if rows is None and len(plan.series.shares) > 1:
        raise InvalidInput("rows is required for a plan of several rounds: nobody answers two")
    return column_reports(plan, people, None, rows)


def column_reports(
    plan: Plan, people: Any, seed: Seed, rows: NDArray[np.bool_] | None = None
) -> Reports:
    """The reports of the marked rows, with coins from a seed, or the operating system's."""
    count = row_count(plan, people) if rows is None else int(rows.sum())
    turn = round_purpose(plan.series.number)
    public = plan.public.read_table(plan.schema, people, rows)
    codes = plan.schema.encode_table(people, plan.cohorts.attributes, plan.cohorts.form, rows)
    cohorts = np.zeros(count, np.uint32)
    if plan.cohorts.weight > 1:
        tickets = draws(seed, Purpose.COHORTS, *turn).integers(0, plan.cohorts.weight, count)
        cohorts = plan.cohorts.at_column(tickets)
    payload = np.zeros((count, plan.cohorts.bytes), np.uint8)
    batches = list(plan.cohorts.batches(cohorts))
    asks = max((len(batch.oracles) for batch in batches), default=0)
    encodings = subseeds(seed, [Purpose.ENCODINGS, *turn], [(batch.number,) for batch in batches])
    coins = subseeds(
        seed,
        [Purpose.COINS, *turn],
        [(batch.number, place) for batch in batches for place in range(asks)],
    )
    for number, batch in enumerate(batches):
        columns = plan.cohorts.values(batch, cohorts, codes, encodings[number])
        for place, (oracle, part, values) in enumerate(
            zip(batch.oracles, batch.slices, columns, strict=True)
        ):
            packed = oracle.simulate(values, coins[number * asks + place])
            if isinstance(batch.rows, slice) and packed.shape == payload.shape:
                payload = packed
            else:
                payload[batch.rows, part] = packed
    return Reports(plan.id, cohorts, payload, public)


def round_purpose(number: int) -> tuple[int, ...]:
    """What makes the coins of a later round others than those of the first."""
    return (1 << 32 | number,) if number else ()
