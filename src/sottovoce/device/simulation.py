"""A simulated crowd: the law of as many devices, a block of people at a time."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import SEED_LIMIT, subseed, subseeds
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports

# people whose coins come from one seed; fixed, so that a seed means the same everywhere
BLOCK_PEOPLE = 1 << 17
MAX_BLOCKS = 1 << 32


class Purpose(IntEnum):
    """What a seed is for; no two purposes share one."""

    ROUNDS = 0
    COHORTS = 1
    COINS = 2
    ENCODINGS = 3
    FAKES = 4
    BLOCKS = 5


def simulate(plan: Plan, table: Any, seed: int) -> Reports:
    """The reports of a crowd: a simulated device per row of a dict, pandas or Arrow table.

    The plan's public columns are those of the table. Of a shuffled plan the fakes that shufflers
    add come last. In a series of rounds only the rows whose
    round this is report; with one seed a row has one round in all plans. Every block of 2^17 rows
    has coins of its own, see :func:`simulate_block`.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(simulate(plan, {"x": [True, False, True]}, seed=7))
    3
    """
    names = dict.fromkeys((*plan.cohorts.attributes, *plan.columns))
    parts = []
    for block, start in enumerate(range(0, max(1, _rows(plan, table)), BLOCK_PEOPLE)):
        people = plan.schema.part(table, names, slice(start, start + BLOCK_PEOPLE))
        parts.append(simulate_block(plan, people, seed, block))
    if plan.shuffling is not None:
        parts.append(simulate_added(plan, seed))
    return parts[0] if len(parts) == 1 else Reports.concat(parts)


def simulate_block(plan: Plan, people: Any, seed: int, block: int) -> Reports:
    """The reports of one block: what :func:`simulate` gives for these rows of a larger table.

    It depends on its arguments alone, so that blocks can be simulated anywhere, in any order.

    Args:
        plan: whose reports they are.
        people: the block's rows, 2^17 of them unless it is the last one.
        seed: that of the whole crowd.
        block: its number, from 0 on: row i of the table is in block i // 2^17.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=300_000)
    >>> crowd = {"x": [True] * 300_000}
    >>> second = {"x": crowd["x"][1 << 17 : 2 << 17]}
    >>> simulate_block(plan, second, 7, block=1) == simulate(plan, crowd, 7)[1 << 17 : 2 << 17]
    True
    """
    count = _rows(plan, people)
    if count > BLOCK_PEOPLE:
        raise InvalidInput(f"people ({count} rows) must be at most {BLOCK_PEOPLE}, a block")
    own = _block_seed(seed, block)
    mine, number = None, plan.series.number
    if len(plan.series.shares) > 1:
        tickets = _draws(own, Purpose.ROUNDS).integers(0, sum(plan.series.shares), count)
        mine = plan.series.at_column(tickets) == number
        count = int(mine.sum())
    public = plan.public.read_table(plan.schema, people, mine)
    codes = plan.schema.encode_table(people, plan.cohorts.attributes, plan.cohorts.form, mine)
    cohorts = np.zeros(count, np.uint32)
    if plan.cohorts.weight > 1:
        tickets = _draws(own, Purpose.COHORTS, *_round(number)).integers(
            0, plan.cohorts.weight, count
        )
        cohorts = plan.cohorts.at_column(tickets)
    payload = np.zeros((count, plan.cohorts.bytes), np.uint8)
    batches = list(plan.cohorts.batches(cohorts))
    asks = max((len(batch.oracles) for batch in batches), default=0)
    encodings = subseeds(
        [own, Purpose.ENCODINGS, *_round(number)], [(batch.number,) for batch in batches]
    )
    coins = subseeds(
        [own, Purpose.COINS, *_round(number)],
        [(batch.number, place) for batch in batches for place in range(asks)],
    )
    for turn, batch in enumerate(batches):
        columns = plan.cohorts.values(batch, cohorts, codes, encodings[turn])
        for place, (oracle, part, values) in enumerate(
            zip(batch.oracles, batch.slices, columns, strict=True)
        ):
            packed = oracle.simulate(values, coins[turn * asks + place])
            if isinstance(batch.rows, slice) and packed.shape == payload.shape:
                payload = packed
            else:
                payload[batch.rows, part] = packed
    return Reports(plan.id, cohorts, payload, public)


def simulate_added(plan: Plan, seed: int) -> Reports:
    """The reports of nobody that a shuffled plan's shufflers add to a crowd; none of other plans.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(simulate_added(plan, 7))
    0
    """
    if plan.shuffling is None or not plan.shuffling.fakes:
        return Reports.empty(plan)
    from sottovoce.protocol.fakes import simulate_fakes  # shufflers make them, and devices never do

    own = subseed(seed, Purpose.FAKES, *_round(plan.series.number))
    return simulate_fakes(plan, plan.shuffling.fakes, own)


def _rows(plan: Plan, table: Any) -> int:
    """How many people a table has."""
    lengths = {
        plan.schema.rows_of(table, name) for name in (*plan.cohorts.attributes, *plan.columns)
    }
    if len(lengths) > 1:
        raise InvalidInput("columns must have equal lengths")
    return lengths.pop()


def _block_seed(seed: int, block: int) -> int:
    """The first block's seed is the crowd's: that of a small crowd is what it says."""
    seed = whole("seed", seed, 0, SEED_LIMIT)
    block = whole("block", block, 0, MAX_BLOCKS - 1)
    if not block:
        return seed
    # two words, since many blocks must not share one
    low, high = subseeds([seed, Purpose.BLOCKS], [(block, 0), (block, 1)])
    return high << 64 | low


def _round(number: int) -> tuple[int, ...]:
    """What makes the coins of a later round others than those of the first."""
    return (1 << 32 | number,) if number else ()


def _draws(seed: int, *purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, *purpose]))
