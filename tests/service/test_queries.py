"""SQL over HTTP: the rows that Python gives, refusals that underline the clause, and limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.service import limits, query_answers, query_sessions
from sottovoce.service.limits import MAX_QUERY_BYTES, check_query
from sottovoce.service.problems import Problem
from sottovoce.service.query_answers import QUERY_TOO_LONG, QueryAnswers
from sottovoce.service.query_sessions import answered, query_rows
from sottovoce.service.timed import TimedWorkers
from sottovoce.service.tokens import new_token
from sottovoce.store import Store, open_store
from tests.service.collector import PLAN as COLOURS
from tests.service.collector import Answer, Collector, collecting
from tests.service.test_waits import never
from tests.sql import plans
from tests.waiting import HANG, until

EPSILON = 2.0
PLAN = plans.plan("hdg", EPSILON)
BARE = sv.plan(
    sv.Schema(age=sv.Ordinal(18, 81)), sv.Queries(["age"], method="tree"), epsilon=2.0, people=5000
)
SUMS = "SELECT channel, SUM(amount), COUNT(*) FROM people WHERE age < 30 GROUP BY channel"


def store_reports(store: Store, plan: sv.Plan, reports: sv.Reports) -> None:
    """As if so many devices had sent them."""
    fresh = b"".join(new_id() for _ in range(len(reports)))
    store.append(plan, np.frombuffer(fresh, np.uint8).reshape(-1, 16), reports)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("store")
    with collecting(f"sqlite:///{folder}/survey.db", (PLAN, BARE, COLOURS)) as running:
        store_reports(running.service.store, PLAN, plans.reports("hdg", EPSILON))
        yield running


def ask(collector: Collector, sql: Any, plan: sv.Plan = PLAN, **more: Any) -> Answer:
    return collector.analyst("POST", f"/v1/surveys/{plan.id}/query", {"sql": sql, **more})


def expected(sql: str, level: float = 0.95) -> Any:
    answer = sv.query(PLAN, plans.reports("hdg", EPSILON), sql, level=level)
    return json.loads(answer.to_json()), answer


@pytest.mark.parametrize(
    "sql",
    [
        SUMS,
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 400 OR state = 'NY'",
        "SELECT state, AVG(age) FROM people GROUP BY state ORDER BY state LIMIT 2",
        "SELECT MEDIAN(age), STDDEV(amount) FROM people WHERE channel = 'web'",
    ],
)
def test_the_rows_are_those_of_python(collector: Collector, sql: str) -> None:
    """Of the same reports, read from the store: to the last bit, as the fold is of integers."""
    found = ask(collector, sql).json
    rows, answer = expected(sql)
    assert found["rows"] == rows
    assert found["notes"] == list(answer.notes)
    assert found["explanation"] == answer.explanation.to_json()
    assert (found["people"], found["damaged"], found["level"]) == (plans.PEOPLE, 0, 0.95)


def test_a_level_of_the_intervals(collector: Collector) -> None:
    found = ask(collector, SUMS, level=0.5).json
    assert found["level"] == 0.5
    assert found["rows"] == expected(SUMS, 0.5)[0]
    assert found["rows"] != expected(SUMS)[0]
    for level in (0, 1, -1, "much"):
        assert ask(collector, SUMS, level=level).problem == "invalid-input"


def test_a_token_to_read_is_needed_and_enough(collector: Collector) -> None:
    path, body = f"/v1/surveys/{PLAN.id}/query", {"sql": SUMS}
    assert collector.ask("POST", path, body).problem == "unauthorized"
    reader = new_token(collector.service.store, "reader", "read")
    assert collector.ask("POST", path, body, Authorization=f"Bearer {reader}").status == 200


def test_what_cannot_be_answered_is_refused_with_the_clause_underlined(
    collector: Collector,
) -> None:
    for sql, words in (
        (
            "SELECT COUNT(*) FROM people WHERE agee > 30",
            ["agee", "\n                                    ^^^^\n", "age"],
        ),
        ("SELECT age FROM people", ["\n  SELECT age FROM people\n         ^^^\n"]),
        ("SELECT COUNT(* FROM people", ["^"]),
        ("SELECT COUNT(*) FROM people JOIN others USING (age)", ["^^^^", "one table"]),
        ("", ["SELECT"]),
    ):
        answer = ask(collector, sql)
        assert (answer.status, answer.problem) == (422, "invalid-input"), sql
        for each in words:
            assert each in answer.json["detail"], answer.json["detail"]


def test_text_is_short(collector: Collector) -> None:
    padding = MAX_QUERY_BYTES - len(SUMS.encode())
    assert ask(collector, SUMS + " " * padding).status == 200
    answer = ask(collector, SUMS + " " * (padding + 1))
    assert answer.problem == "invalid-input"
    assert answer.json["detail"] == "sql (4,097 bytes) must have at most 4,096 bytes"
    # bytes count, not characters
    assert ask(collector, "è" * (MAX_QUERY_BYTES // 2 + 1)).json["detail"].startswith("sql (4,098")


@pytest.mark.parametrize("body", [b"", b"SELECT 1", b"[]", b'{"sql": 3}', b'{"sql": "x", "y": 1}'])
def test_other_bodies_are_refused(collector: Collector, body: bytes) -> None:
    answer = collector.analyst("POST", f"/v1/surveys/{PLAN.id}/query", body)
    assert answer.problem in ("malformed-body", "invalid-input")


def test_other_questions_and_empty_surveys_are_told_apart(collector: Collector) -> None:
    answer = ask(collector, SUMS, COLOURS)
    assert answer.problem == "invalid-input"
    assert "whose question is queries, and this one's is frequencies" in answer.json["detail"]
    assert ask(collector, SUMS, BARE).problem == "no-reports"
    unknown = collector.analyst("POST", f"/v1/surveys/{'0' * 64}/query", {"sql": SUMS})
    assert unknown.problem == "unknown-plan"


def test_new_reports_are_read_and_sums_are_enough_without_public_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process beside the collector does, in this one."""
    monkeypatch.setattr(query_sessions, "REREAD_FACTOR", 0)
    count = "SELECT COUNT(*) FROM people WHERE age >= 40"
    url = f"sqlite:///{tmp_path}/s.db"

    def found(plan: sv.Plan, sql: str, refresh_seconds: float = 0.0) -> Any:
        return json.loads(answered(url, plan.text, sql, 0.95, refresh_seconds, query_rows))

    with open_store(url) as store:
        for plan, sql in ((PLAN, SUMS), (BARE, count)):
            store.add_plan(plan)
            people = {name: plans.truth()[name][:600] for name in plan.schema}
            reports = sv.simulate(plan, people, seed=3)
            for heard in (reports[:400], reports[400:]):
                store_reports(store, plan, heard)
                assert found(plan, sql, 1e9)["people"] == 400  # again too soon
                assert found(plan, sql)["people"] == store.count(plan)
            assert found(plan, sql)["rows"] == json.loads(sv.query(plan, reports, sql).to_json())
        store.keep_sums(PLAN)
        assert found(PLAN, count)["people"] == 600
        with pytest.raises(sv.InvalidInput, match="only in reports"):
            found(PLAN, SUMS)
        store.delete(BARE)
        with pytest.raises(sv.SottovoceError):
            found(BARE, count)


def test_what_was_read_of_deleted_reports_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = QueryAnswers("sqlite:///none.db", 0.0)
    ended: list[str] = []
    monkeypatch.setattr(answers._querying, "submit", lambda *_: Future())
    monkeypatch.setattr(answers._querying, "restart", lambda: ended.append("all"))
    answers.ask((PLAN.id, 1), PLAN, SUMS, 0.95, query_rows)
    answers.ask((BARE.id, 1), BARE, SUMS, 0.95, query_rows)
    answers.keep({(PLAN.id, 1), (BARE.id, 1), (COLOURS.id, 1)})
    assert ended == []
    answers.keep({(PLAN.id, 2), (BARE.id, 1)})
    answers.keep({(PLAN.id, 2), (BARE.id, 1)})
    assert ended == ["all"]
    answers.close()


def test_who_waits_for_a_process_that_is_replaced_is_told_to_ask_again() -> None:
    workers = TimedWorkers(1, HANG, QUERY_TOO_LONG, "test")
    try:
        waiting = workers.submit(never)
        until(lambda: any(each._pool is not None for each in workers._workers))
        workers.restart()
        with pytest.raises(Problem, match="ask again"):
            waiting.result(HANG)
        assert workers.submit(sum, [1, 2]).result(HANG) == 3
    finally:
        workers.stop()


def test_a_query_has_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", (BARE,)) as collector:
        store_reports(
            collector.service.store,
            BARE,
            sv.simulate(BARE, {"age": plans.truth()["age"][:100]}, seed=3),
        )
        service: Any = collector.service
        service._queries._querying._seconds = 0.3
        monkeypatch.setattr(query_answers, "answered", never_answered)
        answer = ask(collector, "SELECT COUNT(*) FROM people", BARE)
        assert (answer.status, answer.problem) == (503, "busy")
        assert answer.json["detail"] == QUERY_TOO_LONG


def never_answered(*_: Any) -> bytes:
    """An answer that is never made."""
    never()
    return b""


def test_reports_that_are_too_many_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_QUERY_REPORTS", 100)
    check_query(PLAN, 100, SUMS)
    check_query(BARE, 101, SUMS)  # sums are enough
    with pytest.raises(sv.InvalidInput, match="at most 100 reports"):
        check_query(PLAN, 101, SUMS)
