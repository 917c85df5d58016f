"""Public columns over HTTP: in JSON and in binary, taken as strictly as the whisper beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.assignment import Assignment, new_id
from sottovoce.device.messages import BINARY, write_binary, write_json
from tests.service.collector import PLAN as BARE
from tests.service.collector import Collector, collecting, device

SCHEMA = sv.Schema(
    x=sv.Categorical(range(3)),
    y=sv.Categorical(range(40)),
    state=sv.Categorical(["NY", "WA", "TX"], sensitive=False),
    note=sv.Text(bytes=20, sensitive=False),
    amount=sv.FixedPoint(-5, "999.99", sensitive=False),
)
RECORD: dict[str, Any] = {"x": 1, "y": 7, "state": "TX", "note": "è già", "amount": "12.30"}
PUBLIC = {"amount": "12.30", "state": "TX", "note": "è già"}


def planned(oracle: str, coin: str = "device") -> sv.Plan:
    question = sv.Frequencies("x", "y", oracle=oracle)
    return sv.plan(
        SCHEMA, question, epsilon=1.0, people=1000, public=("amount", "state", "note"), coin=coin
    )


# payloads of 1 and of 5 bytes, and of one length
PLAN, ASSIGNED = (
    planned("oue"),
    planned("olh-seeded", "assigned"),
)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder: Path = tmp_path_factory.mktemp("store")
    with collecting(f"sqlite:///{folder}/survey.db", (PLAN, ASSIGNED, BARE)) as running:
        yield running


def kept(collector: Collector, plan: sv.Plan = PLAN) -> list[sv.Report]:
    return [
        report
        for _, _, reports in collector.service.store.read(plan)
        for report in reports.single(plan)
    ]


def test_json_and_binary_reports_are_kept_whole(public: Collector) -> None:
    sent = [sv.Client(PLAN).report(RECORD) for _ in range(40)]
    bodies = [write_json(new_id(), report) for report in sent[:20]]
    assert bodies[0]["public"] == PUBLIC
    before = len(kept(public))
    assert public.post({"reports": bodies}).json == {"stored": 20, "duplicates": 0}
    data = write_binary([new_id() for _ in sent[20:]], sent[20:])
    assert public.post(data, BINARY).json == {"stored": 20, "duplicates": 0}
    assert public.post(data, BINARY).json == {"stored": 0, "duplicates": 20}
    assert kept(public)[before:] == sent
    changed = bodies[3] | {"public": {**PUBLIC, "state": "NY"}}
    assert public.post(changed).problem == "id-reused"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        [],
        {"amount": "12.30", "state": "TX"},
        {**PUBLIC, "x": 1},
        {**PUBLIC, "state": "CA"},
        {**PUBLIC, "state": 2},
        {**PUBLIC, "state": None},
        {**PUBLIC, "amount": 12.3},
        {**PUBLIC, "amount": "12.3"},
        {**PUBLIC, "amount": "1000.00"},
        {**PUBLIC, "note": "x" * 21},
        {**PUBLIC, "note": ["x"]},
    ],
)
def test_other_public_values_are_refused(public: Collector, wrong: Any) -> None:
    body = write_json(new_id(), sv.Client(PLAN).report(RECORD)) | {"public": wrong}
    before = len(kept(public))
    answer = public.post([write_json(new_id(), sv.Client(PLAN).report(RECORD)), body])
    assert answer.problem in ("invalid-report", "malformed-body")
    assert len(kept(public)) == before


def test_a_plan_without_public_columns_takes_none(public: Collector) -> None:
    assert public.post(device(BARE, public=PUBLIC)).problem == "invalid-report"


def test_binary_reports_with_bytes_to_spare_are_refused(public: Collector) -> None:
    good = sv.Client(PLAN).report(RECORD)
    for payload in (good.payload + b"\0", good.payload[:-1]):
        wrong = sv.Report(good.plan_id, good.cohort, payload, good.public, good.columns)
        assert public.post(write_binary([new_id()], [wrong]), BINARY).problem == "invalid-report"
    far = sv.Report(good.plan_id, 2, good.payload, good.public, good.columns)
    assert public.post(write_binary([new_id()], [far]), BINARY).problem == "invalid-report"
    bare = sv.Report(good.plan_id, good.cohort, good.payload)
    assert public.post(write_binary([new_id()], [bare]), BINARY).problem == "invalid-report"


def test_assigned_coins_and_public_columns(public: Collector) -> None:
    def drawn() -> tuple[Assignment, sv.Report]:
        given = Assignment.from_json(public.ask("GET", f"/v1/plans/{ASSIGNED.id}/assignment").json)
        return given, sv.Client(ASSIGNED, assignment=given).report(RECORD)

    given, report = drawn()
    assert public.post(write_json(given.id, report, given)).json == {"stored": 1, "duplicates": 0}
    given, other = drawn()
    assert public.post(write_binary([given.id], [other], [given]), BINARY).json == {
        "stored": 1,
        "duplicates": 0,
    }
    assert kept(public, ASSIGNED) == [report, other]
    body = write_json(given.id, other, given)
    two = [body, body | {"public": {**PUBLIC, "state": "NY"}}]
    assert public.post(two).problem == "assignment-used"
