"""Assigned coins: the collector's, signed; public, so private whoever draws them; and a report must use them."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.assignments import new_id
from sottovoce.entropy import Assigned, Seeded, Stream, Tape
from tests.oracles import ENUMERABLE, SMALL, small

KEY = bytes(range(32))
NOW = 1_750_000_000
SCHEMA = sv.Schema(x=sv.Categorical(["a", "b", "c", "d", "e"]), yes=sv.Boolean())
PUBLIC = ("olh", "blh", "olh-seeded", "olh-wide", "olh-sets", "hrr", "cms", "hcms", "o-rr", "o-rappor", "rappor")


def made(oracle: str = "olh", *names: str, **options: Any) -> sv.Plan:
    question = sv.Frequencies(*(names or ("x",)), oracle=oracle, **options)
    return sv.plan(SCHEMA, question, epsilon=1.0, people=1000, coin="assigned")


def assigned(plan: sv.Plan, number: int = 0) -> sv.Assignment:
    return sv.Assignment.sign(KEY, plan.id, number.to_bytes(16, "big"), NOW)


@pytest.mark.parametrize("oracle", PUBLIC)
def test_a_report_uses_the_coins_it_was_given(oracle: str) -> None:
    plan = made(oracle, **SMALL.get(oracle, {}))
    given, other = assigned(plan, 1), assigned(plan, 2)
    one, two = (sv.Client(plan, entropy=Seeded(seed), assignment=given).report({"x": "c"}) for seed in (1, 2))
    source: Any = plan.cohorts[0].asks[0].oracle
    assert source.public_part(source.unpack(one.payload)) == source.public_part(source.unpack(two.payload))
    given.check(one, plan)
    given.check(two, plan)
    with pytest.raises(sv.BadAssignment, match="hashes are not those that were assigned"):
        _first_refusal(
            other, [sv.Client(plan, assignment=assigned(plan, n)).report({"x": "c"}) for n in range(9)], plan
        )


def _first_refusal(given: sv.Assignment, reports: list[sv.Report], plan: sv.Plan) -> None:
    for report in reports:
        given.check(report, plan)


@pytest.mark.parametrize("oracle", [name for name in ENUMERABLE if name in PUBLIC])
def test_public_coins_tell_nothing_of_a_value(oracle: str) -> None:
    """Their exact law is the same for every value, so that given them a report is as private as without."""
    source: Any = small(oracle, 3, 1.0)
    laws = []
    for law in source.exact_channel():
        public: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for output, chance in law.items():
            public[tuple(source.public_part(output))] += chance
        laws.append(public)
    assert laws[0] == laws[1] == laws[2]
    given: dict[tuple[int, ...], list[dict[Any, Fraction]]] = defaultdict(lambda: [{} for _ in laws])
    for value, law in enumerate(source.exact_channel()):
        for output, chance in law.items():
            given[tuple(source.public_part(output))][value][output] = chance
    for rows in given.values():
        for output in rows[0]:
            chances = [row[output] for row in rows]
            assert max(chances) <= source.worst_ratio * min(chances)


@pytest.mark.parametrize("oracle", [name for name in ENUMERABLE if name not in PUBLIC])
def test_oracles_without_public_coins_draw_none(oracle: str) -> None:
    source: Any = small(oracle, 2 if oracle == "rr" else 3, 1.0)
    assert source.public == ()
    entropy = Assigned(Tape(b""), Seeded(1))
    source.randomize(1, entropy)  # an empty tape would be refused


def test_cohorts_are_assigned() -> None:
    plan = sv.plan(SCHEMA, sv.Marginals(up_to=2, method="inp-ht"), epsilon=1.0, people=1000, coin="assigned")
    record = {"x": "b", "yes": True}
    cohorts = {sv.Client(plan, assignment=assigned(plan)).report(record).cohort for _ in range(20)}
    assert len(cohorts) == 1
    spread = {sv.Client(plan, assignment=assigned(plan, number)).report(record).cohort for number in range(60)}
    assert len(spread) > 5
    report = sv.Client(plan, assignment=assigned(plan)).report(record)
    wrong = sv.Report(plan.id, (report.cohort + 1) % len(plan.cohorts), report.payload)
    with pytest.raises(sv.BadAssignment, match="cohort is not the one"):
        assigned(plan).check(wrong, plan)


def test_only_the_collectors_own_signature_holds() -> None:
    plan = made()
    given = assigned(plan)
    given.verify(KEY, NOW)
    later = sv.Assignment(plan.id, given.id, given.expires + 1, given.signature)
    other = sv.Assignment(plan.id, new_id(), given.expires, given.signature)
    chosen = sv.Assignment(plan.id, given.id, given.expires, bytes(32))
    for forged in (later, other, chosen, sv.Assignment.sign(bytes(32), plan.id, given.id, NOW)):
        with pytest.raises(sv.BadAssignment, match="did not sign"):
            forged.verify(KEY, NOW)
    with pytest.raises(sv.BadAssignment, match="expired"):
        given.verify(KEY, NOW + 1)
    assert sv.Assignment.from_json(given.to_json()) == given


def test_the_stream_is_read_like_entropy() -> None:
    import hashlib

    first = hashlib.sha256(KEY + bytes(8)).digest()
    second = hashlib.sha256(KEY + (1).to_bytes(8, "little")).digest()
    stream, tape = Stream(KEY), Tape(first + second)
    assert [stream.bits(count) for count in (3, 64, 0, 200, 1, 60)] == [
        tape.bits(count) for count in (3, 64, 0, 200, 1, 60)
    ]


def test_clients_and_coins_must_fit() -> None:
    plan = made()
    device = sv.plan(SCHEMA, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=1000)
    for wrong in ((plan, None), (device, assigned(device))):
        with pytest.raises(sv.InvalidInput, match="assignment is required"):
            sv.Client(wrong[0], assignment=wrong[1])
    with pytest.raises(sv.PlanMismatch, match="another plan"):
        sv.Client(plan, assignment=assigned(device))
    with pytest.raises(sv.InvalidInput, match=r"coin \(mine\) must be one of device, assigned"):
        sv.plan(SCHEMA, sv.Frequencies("x"), epsilon=1.0, people=10, coin="mine")
    assert plan.id != device.id
    assert sv.Plan.from_json(plan.to_json()).coin == "assigned"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"id": "00"}, "16 bytes"),
        ({"expires": -1}, "expires"),
        ({"signature": "zz"}, "must have"),
        ({"plan": None}, "must have"),
    ],
)
def test_bad_assignments_are_refused(change: dict[str, Any], rule: str) -> None:
    body = assigned(made()).to_json() | change
    if change.get("plan", 1) is None:
        del body["plan"]
    with pytest.raises(sv.InvalidInput, match=rule):
        sv.Assignment.from_json(body)


def test_ids_sort_by_time_and_tell_the_minute_alone() -> None:
    earlier, later = new_id(1.75e9), new_id(1.75e9 + 66)
    assert earlier < later
    same = {new_id(1.75e9 + second)[:6] for second in np.arange(0, 60)}
    assert len(same) <= 2
    assert len({new_id(1.75e9) for _ in range(100)}) == 100
