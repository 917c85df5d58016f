"""Estimates are made and written beside the collector: it passes pages on, holds no table, and says
when it is not ready.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.results.estimate import Estimate, Table
from sottovoce.service import estimate_cache, limits, survey_service, table_routes
from sottovoce.service.estimate_cache import EstimateCache
from sottovoce.store import open_store
from tests.service.collector import SCHEMA, Answer, Collector, collecting, device
from tests.service.test_analyst import fill
from tests.store.crowds import ids

BOTH = sv.plan(SCHEMA, sv.Frequencies("colour", "smoker", oracle="grr"), epsilon=2.0, people=1000)
WIDE = sv.plan(
    sv.Schema(x=sv.Categorical(range(5000))),
    sv.Frequencies("x", oracle="olh"),
    epsilon=2.0,
    people=100,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with collecting(f"sqlite:///{tmp_path_factory.mktemp('store')}/s.db", (BOTH, WIDE)) as running:
        yield running, fill(running, BOTH)


Filled = tuple[Collector, sv.Aggregate]


def ask(collector: Collector, plan: sv.Plan, what: str) -> Answer:
    return collector.patient(f"/v1/surveys/{plan.id}/{what}")


def hear_one(collector: Collector, plan: sv.Plan, value: int = 7) -> None:
    report = sv.Client(plan).report({"x": value})
    assert (
        collector.post(
            device() | {"plan": plan.id, "cohort": 0, "payload": report.payload.hex()}
        ).status
        == 200
    )


def test_pages_hold_all_rows_the_largest_first(filled: Filled) -> None:
    collector, heard = filled
    own = heard.estimate().tables
    whole = ask(collector, BOTH, "estimates").json
    assert (whole["total"], whole["offset"], whole["limit"], whole["order"]) == (
        6,
        0,
        1000,
        "largest",
    )
    for table in whole["tables"]:
        expected = own[tuple(table["attributes"])].rows()
        assert table["rows"] == sorted(expected, key=lambda row: -row["frequency"])
    pages = [ask(collector, BOTH, f"estimates?limit=1&offset={place}").json for place in range(7)]
    assert [len(page["tables"]) for page in pages] == [1] * 6 + [0]
    assert [page["tables"][0]["rows"][0] for page in pages[:6]] == [
        row for table in whole["tables"] for row in table["rows"]
    ]
    assert [page["tables"][0]["offset"] for page in pages[:6]] == [0, 1, 2, 3, 0, 1]
    across = ask(collector, BOTH, "estimates?limit=3&offset=2").json
    assert [len(table["rows"]) for table in across["tables"]] == [2, 1]


def test_rows_come_in_the_order_of_the_schema_if_wanted(filled: Filled) -> None:
    collector, heard = filled
    expected = heard.estimate().tables
    found = ask(collector, BOTH, "estimates?order=schema&level=0.9").json
    assert [table["rows"] for table in found["tables"]] == [
        table.rows(0.9) for table in expected.values()
    ]
    colour = ask(collector, BOTH, "marginals?attributes=colour&order=schema&limit=2&offset=1").json
    assert colour["rows"] == expected["colour",].rows()[1:3]
    assert (colour["total"], colour["offset"], colour["limit"]) == (4, 1, 2)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=10001", "offset=-1", "order=random", "limit=x"]
)
def test_pages_that_cannot_be_are_refused(filled: Filled, query: str) -> None:
    for what in ("estimates", "marginals?attributes=colour"):
        joined = f"{what}{'&' if '?' in what else '?'}{query}"
        assert ask(filled[0], BOTH, joined).problem == "invalid-input"


def test_the_collector_never_makes_a_table(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked, tables and their rows are made, and become bytes, in another process."""
    collector = filled[0]
    hear_one(collector, WIDE)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a table in the collector's process")

    for kind, name in (
        (Table, "rows"),
        (Table, "to_json"),
        (Table, "__init__"),
        (Estimate, "__init__"),
    ):
        monkeypatch.setattr(kind, name, never)
    page = ask(collector, WIDE, "estimates")
    assert page.json["total"] == 5000
    assert len(page.json["tables"][0]["rows"]) == 1000
    assert len(page.data) < 200_000
    assert len(ask(collector, WIDE, "marginals?attributes=x&limit=10000").json["rows"]) == 5000
    sheet = ask(collector, WIDE, "marginals?attributes=x&format=csv")
    assert sheet.data.count(b"\n") == 5001
    assert int(sheet.headers["content-length"]) == len(sheet.data)
    snapshot = collector.service.last(collector.service.survey(WIDE.id))
    made = collector.service.answer(
        snapshot, table_routes.estimates_page, None, 0.95, table_routes.Page(5)
    ).result()
    assert isinstance(made, bytes)
    assert snapshot.file is not None
    # what was streamed is gone
    assert [path.name for path in snapshot.file.parent.glob("*.out")] == []


def resident() -> int:
    """Bytes of memory that this process has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="there is no /proc to read memory from"
)
def test_one_report_to_a_wide_plan_leaves_no_memory_behind(tmp_path: Path) -> None:
    values = 1 << 22
    schema = sv.Schema(x=sv.Categorical(range(values)))
    plan = sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=2.0, people=100)
    with collecting(f"sqlite:///{tmp_path}/s.db", (plan,)) as collector:
        hear_one(collector, plan)
        before = resident()
        assert ask(collector, plan, "estimates?limit=10").json["total"] == values
        assert resident() - before < 2 * values  # an estimate has 24 bytes for each value


@pytest.mark.usefixtures("held")
def test_what_is_not_ready_says_so(collector: Collector) -> None:
    survey = f"/v1/surveys/{BOTH.id}"
    for method, path in (
        ("GET", "estimates"),
        ("GET", "marginals?attributes=colour"),
        ("POST", "next"),
    ):
        assert collector.analyst(method, f"{survey}/{path}").problem == "no-reports"
    fill(collector, BOTH)
    for method, path in (
        ("GET", "estimates"),
        ("GET", "marginals?attributes=colour"),
        ("POST", "next"),
    ):
        answer = collector.analyst(method, f"{survey}/{path}")
        assert (answer.status, answer.problem) == (503, "estimate-under-way")
        assert int(answer.headers["retry-after"]) > 0


@pytest.fixture
def collector(tmp_path: Path) -> Any:
    with collecting(f"sqlite:///{tmp_path}/s.db", (BOTH,), refresh_seconds=10_000) as running:
        yield running


@pytest.fixture
def held(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Future[Any]:
    """Estimates that are never done, and nobody who waits for them."""
    future: Future[Any] = Future()
    monkeypatch.setattr(collector.service._estimates._estimating, "submit", lambda *_, **__: future)
    for module in (survey_service, table_routes):
        monkeypatch.setattr(module, "WAIT", 0.0)
    return future


def test_an_estimate_that_failed_says_so(collector: Collector, held: Future[Any]) -> None:
    fill(collector, BOTH)
    held.set_exception(MemoryError())
    answer = collector.analyst("GET", f"/v1/surveys/{BOTH.id}/estimates")
    assert (answer.status, answer.problem, answer.headers["retry-after"]) == (
        503,
        "estimate-failed",
        "60",
    )


def test_a_clock_that_is_set_back_does_not_stop_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=1000.0, back=0.0)
    fake = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: time.time() - clock.back)
    fake.perf_counter = time.perf_counter
    monkeypatch.setattr(estimate_cache, "time", fake)
    url = f"sqlite:///{tmp_path}/s.db"
    with collecting(url, (BOTH,), refresh_seconds=10_000) as collector:
        fill(collector, BOTH, 100)
        made = EstimateCache(url, 0.0)
        version = collector.service.survey(BOTH.id).kept.version
        try:
            made.latest(BOTH, 100, version)
            made._asked[BOTH.id, version].result()
            assert made.latest(BOTH, 100, version).people == 100
            clock.back = 86_400.0
            clock.now += 3600
            collector.post(device(BOTH))
            assert made.latest(BOTH, 101, version).people == 100
            made._asked[BOTH.id, version].result()  # a newer one is under way
            assert made.latest(BOTH, 101, version).people == 101
        finally:
            made.close()


KILLED = """
import os, sys
from sottovoce.service.estimate_cache import EstimateCache
from sottovoce.store import open_store

if __name__ == "__main__":
    with open_store(sys.argv[1]) as store:
        (entry,) = store.entries()
        made = EstimateCache(store.address, 1.0)
        print(made.fresh(entry.plan, 50, store.kept(entry.plan).version, 600).file, flush=True)
        os._exit(9)
"""


def test_nothing_is_left_of_a_collector_that_was_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    (tmp_path / "killed.py").write_text(KILLED)
    with open_store(url) as store:
        store.add_plan(BOTH)
        store.append(
            BOTH,
            ids(50),
            sv.simulate(BOTH, {"colour": ["red"] * 50, "smoker": [True] * 50}, seed=1),
        )
    command = [sys.executable, str(tmp_path / "killed.py"), url]
    # ends when its last process does
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    file = Path(done.stdout.strip())
    assert file.suffix == ".estimate"
    assert not file.parent.exists()


def test_surveys_made_over_http_have_a_limit_of_values(collector: Collector) -> None:
    wide = {"x": {"kind": "ordinal", "low": 0, "high": (1 << 21) - 1}}
    question = {"kind": "frequencies", "attributes": ["x"]}
    body = {"epsilon": "1", "people": 100, "schema": wide, "question": question}
    refused = collector.analyst("POST", "/v1/surveys", body)
    rule = "values (2,097,152) must be at most 1,048,576 in a survey that is made over HTTP"
    assert refused.problem == "invalid-input"
    assert rule in refused.json["detail"]
    schema = sv.Schema(x=sv.Ordinal(0, (1 << 21) - 1))
    plan = sv.plan(schema, sv.Frequencies("x"), epsilon=1.0, people=100)
    posted = collector.analyst("POST", "/v1/plans", plan.to_json().encode())
    assert rule in posted.json["detail"]
    assert collector.ask("GET", f"/v1/plans/{plan.id}").problem == "unknown-plan"


PAIR = sv.Schema(a=sv.Ordinal(0, 99), b=sv.Ordinal(0, 9), c=sv.Boolean())


@pytest.mark.parametrize(
    ("schema", "question", "values"),
    [
        (PAIR, sv.Frequencies("a", "c"), 102),
        (PAIR, sv.Marginals(up_to=2), 1000),
        (PAIR, sv.Marginals(up_to=1), 112),
        (PAIR, sv.Marginals(up_to=2, workload=[["b", "c"]]), 112),
        (sv.Schema(x=sv.Items(range(300))), sv.TopItems("x", top=4), 300),
        (sv.Schema(x=sv.Text(bytes=20)), sv.HeavyHitters("x", top=4), 0),
        (sv.Schema(x=sv.Text(bytes=20)), sv.Frequencies("x", oracle="cms"), 0),
    ],
)
def test_values_are_those_that_one_answer_may_hold(
    schema: sv.Schema, question: Any, values: int
) -> None:
    assert question.values(schema) == values
    limits.check_values(schema, question, max(values, 1))
    if values:
        with pytest.raises(InvalidInput, match=r"^values \(") as wrong:
            limits.check_values(schema, question, values - 1)
        assert f"at most {values - 1:,}" in str(wrong.value)
