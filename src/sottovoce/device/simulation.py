"""A simulated crowd: the law of as many devices, a block of people at a time."""

from __future__ import annotations

from typing import Any

from sottovoce.device.columns import Purpose, column_reports, round_purpose, row_count
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import SEED_LIMIT, draws, subseed, subseeds
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports

# people whose coins come from one seed; fixed, so that a seed means the same everywhere
BLOCK_PEOPLE = 1 << 17
MAX_BLOCKS = 1 << 32


def simulate(plan: Plan, table: Any, seed: int) -> Reports:
    """The reports of a crowd: a simulated device per row of a dict, pandas or Arrow table.

    The plan's public columns are those of the table. Of a shuffled plan the fakes that shufflers
    add come last. In a series of rounds only the rows whose
    round this is report; with one seed a row has one round in all plans. Every block of 2^17 rows
    has coins of its own, see :func:`simulate_block`.

    Args:
        plan: to be answered.
        table: a dict of columns, a pandas or an Arrow table; a row is a person.
        seed: the same seed gives the same reports.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(simulate(plan, {"x": [True, False, True]}, seed=7))
    3
    """
    names = dict.fromkeys((*plan.cohorts.attributes, *plan.columns))
    parts = []
    for block, start in enumerate(range(0, max(1, row_count(plan, table)), BLOCK_PEOPLE)):
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
    count = row_count(plan, people)
    if count > BLOCK_PEOPLE:
        raise InvalidInput(f"people ({count} rows) must be at most {BLOCK_PEOPLE}, a block")
    own = _block_seed(seed, block)
    mine = None
    if len(plan.series.shares) > 1:
        tickets = draws(own, Purpose.ROUNDS).integers(0, sum(plan.series.shares), count)
        mine = plan.series.at_column(tickets) == plan.series.number
    return column_reports(plan, people, own, mine)


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

    own = subseed(seed, Purpose.FAKES, *round_purpose(plan.series.number))
    return simulate_fakes(plan, plan.shuffling.fakes, own)


def _block_seed(seed: int, block: int) -> int:
    """The first block's seed is the crowd's: that of a small crowd is what it says."""
    seed = whole("seed", seed, 0, SEED_LIMIT)
    block = whole("block", block, 0, MAX_BLOCKS - 1)
    if not block:
        return seed
    # two words, since many blocks must not share one
    low, high = subseeds(seed, [Purpose.BLOCKS], [(block, 0), (block, 1)])
    return high << 64 | low
