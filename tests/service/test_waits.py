"""Whoever asks for much waits alone: planning, exports and next rounds hold up neither estimates
nor devices.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.service import survey_service
from sottovoce.service.planning import Planning
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from tests.service.collector import PLAN, SEEDED, Collector, collecting, device
from tests.waiting import HANG, until

THREADS = 40  # of the pool in which most requests are answered
ASKED: dict[str, Any] = {
    "epsilon": "1",
    "people": 1000,
    "schema": {"x": {"kind": "boolean"}},
    "question": {"kind": "frequencies", "attributes": ["x"]},
}


def never(_: Mapping[str, Any] | None = None) -> str:
    """A plan that is never made."""
    threading.Event().wait(HANG)
    return ""


def test_a_plan_that_takes_too_long_is_ended() -> None:
    planning = Planning(0.3)
    try:
        for future in [planning.submit(never) for _ in range(3)]:
            with pytest.raises(Problem, match="takes too long"):
                future.result(HANG)
        planning._seconds = HANG
        assert planning.submit(sum, [1, 2]).result(HANG) == 3  # a new process, at once
    finally:
        planning.stop()


def test_too_many_plans_at_once_are_refused() -> None:
    planning = Planning(HANG)
    try:
        for _ in range(8):
            planning.submit(never)
        with pytest.raises(Problem, match="too many"):
            planning.submit(never)
    finally:
        planning.stop()


def test_planning_without_end_leaves_estimates_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        collector.post({"reports": [device() for _ in range(20)]})
        monkeypatch.setattr(survey_service, "planned_text", never)
        monkeypatch.setattr(collector.service.planning, "_seconds", 0.3)
        with ThreadPoolExecutor(3) as threads:
            bodies = [ASKED | {"people": people} for people in (10, 20, 30)]
            answers = list(
                threads.map(lambda body: collector.analyst("POST", "/v1/surveys", body), bodies)
            )
        assert {(answer.status, answer.problem) for answer in answers} == {(503, "busy")}
        assert all(answer.headers["retry-after"] for answer in answers)
        assert collector.patient(f"/v1/surveys/{PLAN.id}/estimates").status == 200
        monkeypatch.undo()
        assert collector.analyst("POST", "/v1/surveys", ASKED).status == 201


def test_surveys_of_many_attributes_are_not_planned_here(collector: Collector) -> None:
    names = [f"a{number}" for number in range(65)]
    schema = {name: {"kind": "boolean"} for name in names}
    for question in (
        {"kind": "frequencies", "attributes": names},
        {"kind": "marginals", "up_to": 2},
    ):
        answer = collector.analyst(
            "POST", "/v1/surveys", ASKED | {"schema": schema, "question": question}
        )
        assert answer.problem == "invalid-input"
        assert "attributes (65) must be at most 64" in answer.json["detail"]
    plan = sv.plan(
        sv.Schema(**{name: sv.Boolean() for name in names}),
        sv.Frequencies("a1"),
        epsilon=1.0,
        people=100,
    )
    assert (
        "attributes (65)"
        in collector.analyst("POST", "/v1/plans", plan.to_json().encode()).json["detail"]
    )
    with pytest.raises(sv.InvalidInput, match="most_attributes"):
        Settings(most_attributes=0)


@pytest.mark.parametrize(
    ("method", "path", "waits"), [("POST", "next", "next_round"), ("GET", "export", "survey")]
)
def test_devices_are_served_while_analysts_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, waits: str
) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        entered, end = threading.Semaphore(0), threading.Event()

        def slow(*_: object) -> Any:
            entered.release()
            assert end.wait(HANG)
            raise Problem("no-reports", "nobody")

        monkeypatch.setattr(collector.service, waits, slow)
        with ThreadPoolExecutor(THREADS + 4) as threads:
            try:
                url = f"/v1/surveys/{PLAN.id}/{path}"
                asked = [threads.submit(collector.analyst, method, url) for _ in range(THREADS + 4)]
                for _ in range(4):
                    assert entered.acquire(timeout=HANG)
                if path == "export":  # the others are told to come again
                    until(lambda: sum(each.done() for each in asked) == THREADS)
                for _ in range(50):
                    assert collector.ask("GET", f"/v1/plans/{SEEDED.id}/assignment").status == 200
            finally:
                end.set()
            answers = [each.result() for each in asked]
        refused = [answer for answer in answers if answer.status == 503]
        assert len(refused) == (THREADS if path == "export" else 0)
        assert all(answer.headers["retry-after"] for answer in refused)
