"""Fakes: reports of nobody, among which everybody's own is hidden. Shufflers add them."""

from __future__ import annotations

import numpy as np

from sottovoce.ground.entropy import Entropy
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report, Reports


def fake_report(plan: Plan, entropy: Entropy) -> Report:
    """A report of nobody: a drawn cohort, and answers that tell nothing.

    Its law is the part that reports have in common whatever the record, so that it hides a person
    as well as another's report can.

    >>> import sottovoce as sv
    >>> from sottovoce.ground.entropy import Seeded
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> fake_report(plan, Seeded(1)).checked(plan).cohort
    0
    """
    index = plan.cohorts.at(entropy.below(plan.cohorts.weight))
    oracles = plan.cohorts[index].oracles
    payload = b"".join(oracle.pack(oracle.fake(entropy)) for oracle in oracles)
    return Report(plan.id, index, payload)


def added_fakes(plan: Plan, entropy: Entropy) -> Reports:
    """All that a shuffled plan's shufflers add; none of other plans.

    >>> import sottovoce as sv
    >>> from sottovoce.ground.entropy import Seeded
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(added_fakes(plan, Seeded(1)))
    0
    """
    count = 0 if plan.shuffling is None else plan.shuffling.fakes
    return Reports.collect(plan, (fake_report(plan, entropy) for _ in range(count)))


def simulate_fakes(plan: Plan, count: int, seed: int) -> Reports:
    """Many such reports in columns, for simulations.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(simulate_fakes(plan, 5, seed=1).checked(plan))
    5
    """
    draws = np.random.Generator(np.random.PCG64(seed))
    tickets = draws.integers(0, plan.cohorts.weight, count)
    cohorts = plan.cohorts.at_column(tickets)
    payload = np.zeros((count, plan.cohorts.bytes), np.uint8)
    for batch in plan.cohorts.batches(cohorts):
        rows = len(cohorts[batch.rows])
        for oracle, part in zip(batch.oracles, batch.slices, strict=True):
            own = int(draws.integers(0, 1 << 62))
            payload[batch.rows, part] = oracle.simulate_fakes(rows, own)
    return Reports(plan.id, cohorts, payload)
