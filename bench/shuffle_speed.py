"""Shuffled reports: how near the accountant's bounds are and how long they take, what sealing costs
a device, and what a batch costs a hop. Longer: ``bench.shuffled``, ``bench.shuffled_plans``,
``bench.shufflers`` and ``bench.peos``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import process_time

import sottovoce as sv
from bench.peers import Found
from bench.rows import Row
from bench.shuffled import CROWDS, DELTA
from bench.shufflers import HOP_SECONDS, MILLION, USER_BYTES, USER_MILLISECONDS, hop, made_plan
from bench.speed import Size
from bench.timing import Timing
from sottovoce.accounting import lower_epsilon, shuffled_epsilon
from sottovoce.device.sealing import onion_size, seal
from sottovoce.ground.entropy import System

GROUP = "shuffled"
BOUND_SECONDS, GRR_PERCENT, OLH_PERCENT = 1.0, 0.1, 1.0
LOCALS = (0.5, 1, 2, 4)
GRR_SIZES, HASH_BITS = (2, 3, 16), (6, 9)
PEOPLE = 5000  # that a batch is made of
REPEATS = 3


def shuffled(size: Size, others: Mapping[str, Found]) -> Iterator[Row]:
    """Bounds, and the cost of sealing and mixing."""
    seconds = [0.0]
    for name, sizes, limit in (("grr", GRR_SIZES, GRR_PERCENT), ("olh", HASH_BITS, OLH_PERCENT)):
        worst = max(
            _gap(name, number, people, local, seconds)
            for number in sizes
            for people in CROWDS
            for local in LOCALS
        )
        told = ", ".join(str(number if name == "grr" else 2**number) for number in sizes)
        what = (
            f"upper bounds above lower ones, {name} of {told}; 10^4 to 10^8 people, local 0.5 to 4"
        )
        yield Row(GROUP, what, "%", _once(100 * (worst - 1)), limit=limit)
    yield Row(GROUP, "the slowest upper bound, CPU", "s", _once(max(seconds)), limit=BOUND_SECONDS)
    plan, keys = made_plan(PEOPLE)
    entropy = System()
    report = sv.Client(plan, entropy=entropy).report({"value": 1})
    sealing, mixing = [], []
    for _ in range(REPEATS):
        begun = process_time()
        onions = [seal(report, plan, entropy) for _ in range(PEOPLE)]
        sealing.append((process_time() - begun) / PEOPLE)
        begun = process_time()
        hop(plan, 0, keys[0], onions)
        mixing.append((process_time() - begun) / PEOPLE * MILLION)
    hops = "three hops and a collector"
    limit = USER_MILLISECONDS / 1000
    yield Row(GROUP, f"a device seals a report for {hops}, CPU", "s", Timing.of(sealing), limit)
    yield Row(GROUP, f"a report for {hops}", "bytes", _once(onion_size(plan)), limit=USER_BYTES)
    yield Row(GROUP, "a hop with a million, CPU", "s", Timing.of(mixing), limit=HOP_SECONDS)


def _gap(name: str, number: int, people: int, local: float, seconds: list[float]) -> float:
    """The upper bound over the lower one; how long the upper one took is noted."""
    if name == "grr":
        oracle = sv.oracle(name, size=number, epsilon=local)
    else:
        oracle = sv.oracle(name, size=4096, epsilon=local, hash_bits=number)
    mixture = [(1, [oracle.blanket()])]
    begun = process_time()
    upper = shuffled_epsilon(mixture, people, DELTA)
    seconds.append(process_time() - begun)
    return upper / lower_epsilon(mixture, people, DELTA, claimed=upper)


def _once(figure: float) -> Timing:
    return Timing(figure, figure, 1)
