"""A series of rounds over HTTP: a plan is posted, and the next round made from what the one before
heard.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import BINARY, write_binary
from tests.service.collector import PLAN, Collector, collecting

MINUTE = new_id()[:6]  # of all ids

SCHEMA = sv.Schema(
    basket=sv.Items(["milk", "tea", "bread", *(f"good {number}" for number in range(60))])
)
CROWD = {"basket": [["milk", "tea"], ["milk"], ["bread", "milk"]] * 500}
FIRST = sv.plan(SCHEMA, sv.TopItems("basket", top=2, method="svim"), epsilon=4.0, people=1500)
TWICE = sv.TopItems(
    "basket", top=2, method="ldpminer", split="budget", first_length=2, second_length=1
)
AGAIN = sv.plan(SCHEMA, TWICE, epsilon=4.0, people=1500)  # everybody is asked twice


def hear(collector: Collector, plan: sv.Plan) -> sv.Aggregate:
    reports = sv.simulate(plan, CROWD, seed=1)
    ids = [
        MINUTE + number.to_bytes(4, "big") + bytes.fromhex(plan.id)[:6]
        for number in range(len(reports))
    ]
    assert collector.post(write_binary(ids, list(reports.single(plan))), BINARY).status == 200
    return sv.Aggregate(plan).add(reports)


@pytest.fixture
def collector(tmp_path: Path) -> Any:
    with collecting(f"sqlite:///{tmp_path}/s.db", ()) as running:
        yield running


@pytest.mark.parametrize("first", [FIRST, AGAIN])
def test_rounds_follow_one_another(collector: Collector, first: sv.Plan) -> None:
    posted = collector.analyst("POST", "/v1/plans?title=Baskets", first.to_json().encode())
    assert (posted.status, posted.json["id"], posted.json["title"]) == (201, first.id, "Baskets")
    assert collector.ask("GET", f"/v1/plans/{first.id}").data == first.to_json().encode()
    current, rounds = first, 1
    while True:
        page = f"/v1/surveys/{current.id}"
        assert collector.analyst("POST", f"{page}/next").problem == "no-reports"
        assert collector.analyst("GET", page).json["closed"] is False
        heard = hear(collector, current)
        expected = sv.next_plan(current, heard.estimate())
        answer = collector.patient(f"{page}/next", "POST")
        if expected is None:
            break
        assert answer.status == 201
        assert answer.json["id"] == expected.id
        assert collector.ask("GET", f"/v1/plans/{expected.id}").data == expected.to_json().encode()
        # what it heard is what the next one is made of
        assert collector.analyst("GET", page).json["closed"] is True
        again = collector.patient(f"{page}/next", "POST")
        assert (again.status, again.json["id"]) == (200, expected.id)
        current, rounds = expected, rounds + 1
        name = f"round {rounds}" if len(first.series.shares) > 1 else "next round"
        assert answer.json["title"] == f"Baskets ({name})"
    assert (answer.status, answer.problem) == (409, "no-next-round")
    assert collector.analyst("GET", page).json["closed"] is False
    assert rounds > 1
    assert len(collector.analyst("GET", "/v1/surveys").json) == rounds


def test_a_plan_is_taken_once_and_only_if_it_is_one(collector: Collector) -> None:
    text = PLAN.to_json().encode()
    assert collector.analyst("POST", "/v1/plans", text).status == 201
    again = collector.analyst("POST", "/v1/plans?title=other", text)
    assert (again.status, again.json["title"]) == (200, "")
    promising_less = text.replace(b'"epsilon": "1', b'"epsilon": "9', 1)
    assert promising_less != text
    for wrong in (b"", b"{}", b"[1", promising_less, text[:-40]):
        assert collector.analyst("POST", "/v1/plans", wrong).problem == "invalid-input"
    assert (
        collector.analyst("POST", f"/v1/plans?title={'x' * 300}", text).problem == "invalid-input"
    )
    assert collector.ask("POST", "/v1/plans", text).problem == "unauthorized"
    assert collector.ask("POST", f"/v1/surveys/{PLAN.id}/next").problem == "unauthorized"
    assert collector.analyst("POST", f"/v1/surveys/{'0' * 64}/next").problem == "unknown-plan"
    assert len(collector.analyst("GET", "/v1/surveys").json) == 1
