"""Reports over HTTP: taken once, durably, and only if their plan can have produced them."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.assignment import Assignment, new_id
from sottovoce.device.messages import BINARY, write_binary, write_json
from tests.service.collector import (
    PLAN,
    RECORD,
    SEEDED,
    TABLES,
    Collector,
    assigned,
    collecting,
    device,
)
from tests.waiting import HANG


def people(collector: Collector, plan: sv.Plan = PLAN) -> int:
    return collector.service.survey(plan.id).people


def test_a_report_is_stored_once(collector: Collector) -> None:
    before = people(collector)
    body = device()
    first, again = collector.post(body), collector.post(body)
    assert (first.status, first.json) == (200, {"stored": 1, "duplicates": 0})
    assert (again.status, again.json) == (200, {"stored": 0, "duplicates": 1})
    assert people(collector) == before + 1


def test_a_batch_is_stored_whole(collector: Collector) -> None:
    before = people(collector, TABLES)
    batch = {"reports": [device(TABLES) for _ in range(50)]}
    assert collector.post(batch).json == {"stored": 50, "duplicates": 0}
    more = [*batch["reports"][:10], device(TABLES)]
    assert collector.post(more).json == {"stored": 1, "duplicates": 10}
    assert people(collector, TABLES) == before + 51


def test_the_compact_form_is_taken_too(collector: Collector) -> None:
    before = people(collector)
    ids = [new_id() for _ in range(7)]
    data = write_binary(ids, [sv.Client(PLAN).report(RECORD) for _ in ids])
    assert collector.post(data, BINARY).json == {"stored": 7, "duplicates": 0}
    assert collector.post(data, BINARY).json == {"stored": 0, "duplicates": 7}
    assert people(collector) == before + 7


def test_ids_tell_a_minute_that_may_be(tmp_path: Path) -> None:
    """Of the last days or the next one; anything else is refused, and nothing of it is stored."""
    with collecting(f"sqlite:///{tmp_path}/survey.db", oldest_days=2) as collector:
        report = sv.Client(PLAN).report(RECORD)
        now, day = time.time(), 24 * 3600
        for ahead in (-2 * day + 60, -day, 0, day - 60):
            assert collector.post(write_json(new_id(now + ahead), report)).status == 200
        for ahead in (-2 * day - 120, -40 * day, day + 120, 10_000 * day):
            ids = [new_id(now), new_id(now + ahead)]
            for refused in (
                collector.post(write_json(ids[1], report)),
                collector.post(write_binary(ids, [report] * 2), BINARY),
            ):
                assert (refused.status, refused.problem) == (422, "wrong-time")
                assert ids[1].hex() not in refused.data.decode()
        assert people(collector) == 4


def test_an_id_is_for_one_report(collector: Collector) -> None:
    body = device()
    assert collector.post(body).status == 200
    before = people(collector)
    other = body | {"payload": f"{(int(body['payload'], 16) + 1) % 4:02x}"}
    assert collector.post(other).problem == "id-reused"
    assert collector.post({"reports": [device(), other, device()]}).problem == "id-reused"
    assert people(collector) == before


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"payload": "07"}, "invalid-report"),  # no such answer
        ({"payload": "0000"}, "invalid-report"),
        ({"payload": ""}, "invalid-report"),
        ({"payload": "0 0"}, "invalid-report"),
        ({"payload": "zz"}, "invalid-report"),
        ({"cohort": 1}, "invalid-report"),
        ({"cohort": -1}, "invalid-report"),
        ({"cohort": 1 << 40}, "invalid-report"),
        ({"sottovoce": 2}, "invalid-report"),
        ({"id": "00"}, "invalid-report"),
        ({"id": "g" * 32}, "invalid-report"),
        ({"plan": "00" * 32}, "unknown-plan"),
        ({"plan": "no plan"}, "unknown-plan"),
        ({"plan": PLAN.id[:16]}, "unknown-plan"),
        ({"expires": 1, "signature": "00" * 32}, "invalid-report"),
        ({"cohort": True}, "malformed-body"),
        ({"cohort": 0.0}, "malformed-body"),
        ({"cohort": "0"}, "malformed-body"),
        ({"answer": "blue"}, "malformed-body"),
        ({"payload": None}, "malformed-body"),
    ],
)
def test_what_cannot_be_a_report_is_refused(
    collector: Collector, changes: dict[str, Any], problem: str
) -> None:
    before = people(collector)
    answer = collector.post(device(**changes))
    assert answer.problem == problem
    batch = collector.post({"reports": [device(), device(**changes), device()]})
    assert batch.problem == ("invalid-report" if "plan" in changes else problem)
    assert people(collector) == before
    assert "Traceback" not in answer.data.decode()


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"reports": []}', b'{"reports": 5}', b"\xff\xfe", b"[" * 100_000],
)
def test_a_body_that_cannot_be_read(collector: Collector, body: bytes) -> None:
    assert collector.post(body).problem == "malformed-body"


def test_a_batch_is_of_one_plan(collector: Collector) -> None:
    assert collector.post({"reports": [device(), device(TABLES)]}).problem == "invalid-report"


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_other_types_are_not_taken(collector: Collector, kind: str) -> None:
    assert collector.post(device(), kind).problem == "unsupported-type"


def test_only_post_sends(collector: Collector) -> None:
    answer = collector.ask("GET", "/v1/reports")
    assert (answer.problem, answer.headers["allow"]) == ("method-not-allowed", "POST")


def test_compact_reports_that_are_damaged(collector: Collector) -> None:
    before = people(collector)
    good = write_binary([new_id(), new_id()], [sv.Client(PLAN).report(RECORD) for _ in range(2)])
    for place in range(len(good)):
        damaged = good[:place] + bytes([good[place] ^ 0x5A]) + good[place + 1 :]
        if place % 33 >= 16:  # not an id, which may be anything
            assert collector.post(damaged, BINARY).status in (400, 403, 404, 422), place
        cut = collector.post(good[:place], BINARY)
        assert cut.status in (400, 422) or place % 33 == 0, place
    assert people(collector) <= before + 1  # the first record alone is whole


def test_reports_of_a_closed_survey_are_refused(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        body = device()
        assert collector.post(body).status == 200
        assert collector.analyst("POST", f"/v1/surveys/{PLAN.id}/close").json["closed"] is True
        assert collector.post(device()).problem == "survey-closed"
        assert collector.analyst("POST", f"/v1/surveys/{SEEDED.id}/close").status == 200
        assert collector.ask("GET", f"/v1/plans/{SEEDED.id}/assignment").problem == "survey-closed"
        assert people(collector) == 1


def test_bodies_have_a_size_and_a_time(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", most_bytes=2000, body_seconds=0.3) as collector:
        large = json.dumps(device()).encode() + b" " * 2000
        assert collector.post(large).problem == "body-too-large"
        with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as slow:
            slow.sendall(
                b"POST /v1/reports HTTP/1.1\r\nHost: x\r\n"
                b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
            )
            assert b"body-too-slow" in _all(slow)
        with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as endless:
            endless.sendall(
                b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            endless.sendall(b"7d0\r\n" + b"x" * 2000 + b"\r\n" + b"7d0\r\n" + b"x" * 2000 + b"\r\n")
            assert b"body-too-large" in _all(endless)
        assert collector.post(device()).status == 200


def _all(source: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data or not data.endswith(b"}"):
        piece = source.recv(65536)
        if not piece:
            break
        data += piece
    return data


# -- assigned coins


def test_an_assignment_is_for_one_report(collector: Collector) -> None:
    before = people(collector, SEEDED)
    given, body = assigned(collector)
    assert collector.post(body).json == {"stored": 1, "duplicates": 0}
    assert collector.post(body).json == {"stored": 0, "duplicates": 1}
    for _ in range(40):
        other = device_of(given)
        if other["payload"] != body["payload"]:
            break
    assert collector.post(other).problem == "assignment-used"
    assert people(collector, SEEDED) == before + 1


def device_of(given: Assignment) -> dict[str, Any]:
    from sottovoce.device.messages import write_json

    return write_json(given.id, sv.Client(SEEDED, assignment=given).report(RECORD), given)


def test_forged_assignments_are_refused(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    # of devices that do not look at it
    monkeypatch.setattr("sottovoce.device.client.time", lambda: 0.0)
    before = people(collector, SEEDED)
    given, body = assigned(collector)
    own_key = Assignment.sign(bytes(32), SEEDED.id, given.id, given.expires)
    late = Assignment.sign(
        collector.service.store.signing_key(), SEEDED.id, given.id, int(time.time()) - 5
    )
    chosen = f"{int(body['payload'], 16) ^ 1:02x}"  # other rows of the hash than were assigned
    for forged in (
        body | {"signature": "00" * 32},
        body | {"expires": given.expires + 1},
        body | {"id": new_id().hex()},
        body | {"payload": chosen},
        device_of(own_key),
        device_of(late),
        {key: value for key, value in body.items() if key not in ("expires", "signature")},
    ):
        answer = collector.post(forged)
        assert (answer.problem, answer.status) == ("bad-assignment", 403)
    assert people(collector, SEEDED) == before
    assert collector.post(body).status == 200


def test_assigned_reports_in_the_compact_form(collector: Collector) -> None:
    given = [assigned(collector)[0] for _ in range(3)]
    reports = [sv.Client(SEEDED, assignment=each).report(RECORD) for each in given]
    data = write_binary([each.id for each in given], reports, given)
    assert collector.post(data, BINARY).json == {"stored": 3, "duplicates": 0}
    bare = write_binary([new_id()], reports[:1])
    assert collector.post(bare, BINARY).problem == "bad-assignment"


def test_a_plan_of_the_devices_own_coins_assigns_nothing(collector: Collector) -> None:
    assert collector.ask("GET", f"/v1/plans/{PLAN.id}/assignment").problem == "not-found"
