"""What a request costs the store: nobody without a token can make it read every plan."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.messages import BINARY, write_binary
from sottovoce.store import sqlite
from tests.service.collector import RECORD, SCHEMA, Collector, collecting, device

PLANS = tuple(
    sv.plan(SCHEMA, sv.Frequencies("colour"), epsilon=1.0, people=1000 + more) for more in range(12)
)
OTHER = sv.plan(SCHEMA, sv.Frequencies("smoker"), epsilon=1.0, people=77)
TEXTS = re.compile(r"\btext\b")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that a store is asked from now on."""
    statements: list[str] = []
    connect = sqlite.connect

    def traced(path: Path, *settings: str) -> sqlite3.Connection:
        db = connect(path, *settings)
        db.set_trace_callback(statements.append)
        return db

    monkeypatch.setattr(sqlite, "connect", traced)
    return statements


@pytest.fixture
def crowded(told: list[str], tmp_path: Path) -> Iterator[Collector]:
    """A collector of many surveys that refreshes nothing by itself."""
    with collecting(f"sqlite:///{tmp_path}/s.db", PLANS, refresh_seconds=10_000) as running:
        yield running


def reads(statements: list[str]) -> list[str]:
    return [statement for statement in statements if statement.startswith("SELECT")]


def test_a_look_at_the_health_asks_for_nothing(crowded: Collector, told: list[str]) -> None:
    told.clear()
    assert crowded.ask("GET", "/healthz").status == 200
    assert told == ["SELECT 1"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda to: to.ask("GET", f"/v1/plans/{OTHER.id}"),
        lambda to: to.ask("GET", "/v1/plans/nothing"),
        lambda to: to.ask("GET", f"/v1/plans/{OTHER.id}/assignment"),
        lambda to: to.post(device(OTHER)),
        lambda to: to.post(write_binary([bytes(16)], [sv.Client(OTHER).report(RECORD)]), BINARY),
    ],
)
def test_an_unknown_plan_is_looked_for_by_its_key(
    crowded: Collector, told: list[str], ask: Any
) -> None:
    told.clear()
    assert ask(crowded).problem == "unknown-plan"
    assert len(reads(told)) <= 1
    assert not [statement for statement in told if TEXTS.search(statement)]


def test_a_plan_that_another_collector_added_is_found_at_once(
    crowded: Collector, told: list[str]
) -> None:
    for more in (OTHER, sv.plan(SCHEMA, sv.Frequencies("smoker"), epsilon=1.0, people=78)):
        with sqlite.SqliteStore(crowded.service.store.url) as elsewhere:
            elsewhere.add_plan(more)
        told.clear()
        assert crowded.post(device(more)).status == 200
        assert len([statement for statement in told if TEXTS.search(statement)]) == 1


def test_plans_are_read_once(crowded: Collector, told: list[str]) -> None:
    crowded.analyst("GET", "/v1/surveys")
    told.clear()
    assert len(crowded.analyst("GET", "/v1/surveys").json) == len(PLANS)
    assert crowded.analyst("GET", f"/v1/surveys/{PLANS[3].id[:10]}").json["id"] == PLANS[3].id
    assert crowded.ask("GET", f"/v1/plans/{PLANS[3].id}").status == 200
    question = {"kind": "frequencies", "attributes": ["smoker"]}
    body = {"epsilon": "1", "people": 5, "schema": SCHEMA.to_json(), "question": question}
    made = crowded.analyst("POST", "/v1/surveys", body)
    assert made.status == 201
    texts = [
        statement
        for statement in told
        if TEXTS.search(statement) and statement.startswith("SELECT")
    ]
    assert all("WHERE id =" in statement for statement in texts)
    assert len(texts) <= 1  # of the new one


def test_readiness_is_apart_from_liveness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        ready = collector.ask("GET", "/readyz")
        assert (ready.status, ready.json) == (200, {"status": "ready", "waiting_bytes": 0})
        writer = collector.app.state.writer
        monkeypatch.setattr(writer, "_is_closing", True)
        stopping = collector.ask("GET", "/readyz")
        assert (stopping.problem, stopping.headers["retry-after"]) == ("not-ready", "1")
        assert collector.ask("GET", "/healthz").status == 200
        monkeypatch.undo()
        collector.service.store.close()
        assert collector.ask("GET", "/readyz").problem == "busy"
        assert collector.ask("GET", "/healthz").problem == "busy"
