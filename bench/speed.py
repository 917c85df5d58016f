"""The groups that are measured in this process: local hashing, crowds, one device, maximum
likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import sottovoce as sv
from bench import plain
from bench.peers import Found
from bench.published import PUBLISHED
from bench.rows import Row
from bench.survey import estimated, plan_of, zipf
from bench.timing import Timing, child, measure
from sottovoce.aggregation.aggregate import fold

Peers = Mapping[str, Found]
OLH_TARGETS = {1 << 10: 0.05, 1 << 20: 0.2, 1 << 24: 1.5}
WEIGHTS_LIMIT = 1.5  # times folding without weights
CROWD_TIMES = {"client": 20, "server": 5, "above": 20}
DEVICE_TARGETS = {"grr": 50e-6, "olh": 50e-6, "oue": 500e-6}
OTHERS = ("grr", "the", "blh", "hr", "hcms")


@dataclass(frozen=True)
class Size:
    """How large the cases are; the targets hold for the defaults."""

    people: int = 100_000
    many: int = 1_000_000
    values: int = 1024
    sizes: tuple[int, ...] = tuple(OLH_TARGETS)
    repeats: int = 5
    sample: int = 2000  # people of a plain loop, scaled


def _power(size: int) -> str:
    return f"2^{size.bit_length() - 1}" if size.bit_count() == 1 else f"{size:,}"


# -- local hashing


def hashing(size: Size, peers: Peers) -> Iterator[Row]:
    """Aggregate and estimate everything; then the same supports as counting by hand."""
    for values in size.sizes:
        plan = plan_of("olh", values, size.many)
        reports = sv.simulate(plan, {"x": zipf(size.many, values)}, seed=1)
        pairs = size.many * values / (100_000 * 1024)
        yield Row(
            "olh",
            f"n = {size.many:,}, d = {_power(values)}",
            "s",
            measure(lambda plan=plan, reports=reports: estimated(plan, reports), size.repeats),  # type: ignore[misc]
            limit=OLH_TARGETS.get(values),
            published=PUBLISHED["olh"].server_for(size.many, values),
            plain=_plain_hashing(size.many, values),
            peer=peers["olh"].server * pairs if "olh" in peers else None,
            note="others scaled to n x d",
        )
    yield weighing(size)
    wrong, cases = brute_force_differences()
    note = f"{cases} cases: integer supports and floating-point estimates, bit for bit"
    yield Row(
        "olh", "differs from brute force", "wrong", Timing(wrong, wrong, 1), limit=0, note=note
    )


def weighing(size: Size) -> Row:
    """What weights cost: folding reports that have them, over folding the same reports without."""
    plan = plan_of("olh", size.values, size.many)
    reports = sv.simulate(plan, {"x": zipf(size.many, size.values)}, seed=1)
    weights = np.random.default_rng(1).integers(-1000, 1000, size.many)
    without = measure(lambda: fold(plan, reports), size.repeats)
    weighted = measure(lambda: fold(plan, reports, weights), size.repeats)
    what = f"n = {size.many:,}, d = {_power(size.values)}: fold with weights"
    return Row(
        "olh",
        what,
        "times",
        weighted.over(without),
        limit=WEIGHTS_LIMIT,
        note="folding without them is 1",
    )


def _plain_hashing(people: int, size: int) -> float:
    some = max(4, 4_000_000 // size)
    draws = np.random.default_rng(0)
    seeds = draws.integers(0, 1 << 63, some, dtype=np.uint64)
    answers = draws.integers(0, 4, some, dtype=np.uint64)
    return measure(lambda: plain.hashing_server(seeds, answers, size, 4), 1).best * people / some


def brute_force_differences() -> tuple[int, int]:
    """(cases in which the transform and a test of every pair differ in any bit, cases)."""
    wrong = cases = 0
    for size in (2, 3, 16, 37, 100):
        for epsilon in (0.5, 1.0, 3.0):
            plan = plan_of("olh", size, 200, epsilon)
            oracle: Any = plan.cohorts[0].asks[0].oracle
            reports = sv.simulate(plan, {"x": zipf(200, size)}, seed=size)
            outputs = [oracle.unpack(report.payload) for report in reports.single(plan)]
            counted = [
                sum(oracle.supports(output, value) for output in outputs) for value in range(size)
            ]
            fast = oracle.support(reports.payload, range(size))
            by_hand = (np.array(counted) / len(reports) - oracle.q) / oracle.gap
            same = (
                fast.tolist() == counted
                and by_hand.tobytes() == estimated(plan, reports).values.tobytes()
            )
            wrong += not same
            cases += 1
    return wrong, cases


# -- crowds


def crowd(size: Size, peers: Peers) -> Iterator[Row]:
    """Simulate, aggregate and estimate, and memory, for the oracles with targets."""
    for name in ("oue", "sue", "ss"):
        by_hand = _plain_crowd(name, size)
        times = {"client": _simulating(name, size), "server": _estimating(name, size)}
        for kind in ("batches", "held"):
            memory = child("bench.crowd_child", kind, name, str(size.people), str(size.values))[
                "above"
            ]
            times[kind] = Timing(memory, memory, 1)
        for key, timing in times.items():
            part = key if key in ("client", "server") else "above"
            yield Row(
                "crowd",
                f"{name}: {_PARTS[key]}",
                "MiB" if part == "above" else "s",
                timing,
                times=None if key == "held" else CROWD_TIMES[part],  # the target is for streaming
                published=getattr(PUBLISHED[name], part),
                plain=by_hand.get(part),
                peer=getattr(peers[name], part) if name in peers else None,
            )


_PARTS = {
    "client": "simulate",
    "server": "aggregate and estimate",
    "batches": "memory above imports, streamed",
    "held": "memory above imports, all reports held",
}


def others(size: Size, peers: Peers) -> Iterator[Row]:
    """The same without targets."""
    for name in OTHERS:
        for part, timing in (
            ("client", _simulating(name, size)),
            ("server", _estimating(name, size)),
        ):
            yield Row(
                "others",
                f"{name}: {_PARTS[part]}",
                "s",
                timing,
                published=getattr(PUBLISHED[name], part),
                peer=getattr(peers[name], part) if name in peers else None,
            )


def _simulating(name: str, size: Size) -> Timing:
    plan = plan_of(name, size.values, size.people)
    table = {"x": zipf(size.people, size.values)}
    return measure(lambda: sv.simulate(plan, table, seed=1), size.repeats)


def _estimating(name: str, size: Size) -> Timing:
    plan = plan_of(name, size.values, size.people)
    reports = sv.simulate(plan, {"x": zipf(size.people, size.values)}, seed=1)
    return measure(lambda: estimated(plan, reports), size.repeats)


def _plain_crowd(name: str, size: Size) -> dict[str, float]:
    oracle: Any = sv.oracle(name, size=size.values, epsilon=1.0)
    values = zipf(size.sample, size.values)
    scale = size.people / size.sample
    if name == "ss":
        reports = plain.subset_client(values, size.values, oracle.chosen, oracle.p)
        asked = measure(
            lambda: plain.subset_client(values, size.values, oracle.chosen, oracle.p), 1
        )
        heard = measure(lambda: plain.subset_server(reports, size.values, oracle.p, oracle.q), 3)
    else:
        reports = plain.unary_client(values, size.values, oracle.p, oracle.q)
        asked = measure(lambda: plain.unary_client(values, size.values, oracle.p, oracle.q), 1)
        heard = measure(lambda: plain.unary_server(reports, oracle.p, oracle.q), 3)
    held = sum(report.nbytes for report in reports) / 2**20
    return {"client": asked.best * scale, "server": heard.best * scale, "above": held * scale}


# -- one device


def device(size: Size, peers: Peers) -> Iterator[Row]:
    """One report, averaged over a loop of them."""
    loops = 2000
    for name, limit in DEVICE_TARGETS.items():
        plan = plan_of(name, size.values, size.people)
        record = {"x": 5}

        def report(plan: sv.Plan = plan, record: dict[str, int] = record) -> None:
            for _ in range(loops):
                sv.Client(plan).report(record)

        what = f"{name}, d = {size.values:,}: Client.report(record)"
        yield Row("device", what, "s", measure(report, size.repeats).scaled(1 / loops), limit=limit)


# -- maximum likelihood


def likelihood(size: Size, peers: Peers) -> Iterator[Row]:
    """From reports to the likeliest frequencies, as the peers' aggregator does."""
    plan = plan_of("grr", size.values, size.people)
    reports = sv.simulate(plan, {"x": zipf(size.people, size.values)}, seed=1)

    def ours() -> Any:
        return sv.postprocess(estimated(plan, reports), "maximum-likelihood")

    law = estimated(plan, reports).law
    assert law is not None
    heard = law.support / size.people
    needed = plain.em_iterations(heard, 1.0)
    some = min(needed, 200)
    by_hand = measure(lambda: plain.dense_em(heard, 1.0, some), 1).scaled(needed / some)
    yield Row(
        "likelihood",
        "grr: aggregate and maximum likelihood (exact)",
        "s",
        measure(ours, size.repeats),
        times=1000,
        published=PUBLISHED["grr-em"].server,
        plain=by_hand.best,
        peer=peers["grr-em"].server if "grr-em" in peers else None,
        note=f"others: {needed:,} EM iterations, scaled from fewer",
    )
