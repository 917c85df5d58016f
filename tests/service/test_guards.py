"""What stands before the routes, and what the logs and counters say."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from sottovoce.service.logs import _Lines
from tests.service.collector import PLAN, Collector, collecting, device


def test_every_answer_has_safe_headers(collector: Collector) -> None:
    for path in ("/healthz", f"/v1/plans/{PLAN.id}", "/nothing", "/v1/surveys"):
        headers = collector.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "server" not in headers
    assert collector.ask("GET", "/nothing").problem == "not-found"
    assert collector.ask("DELETE", "/healthz").problem == "method-not-allowed"


def test_a_plan_is_served_byte_for_byte(collector: Collector) -> None:
    answer = collector.ask("GET", f"/v1/plans/{PLAN.id}")
    assert answer.data == PLAN.to_json().encode()
    assert "immutable" in answer.headers["cache-control"]
    assert collector.ask("GET", "/v1/plans/" + "ab" * 32).problem == "unknown-plan"


def test_other_sites_may_send_only_if_chosen(tmp_path: Path, collector: Collector) -> None:
    ask = {"Origin": "https://survey.example", "Access-Control-Request-Method": "POST"}
    assert (
        "access-control-allow-origin" not in collector.ask("OPTIONS", "/v1/reports", **ask).headers
    )
    with collecting(f"sqlite:///{tmp_path}/s.db", origins=("https://survey.example",)) as chosen:
        answer = chosen.ask(
            "OPTIONS", "/v1/reports", **ask, **{"Access-Control-Request-Headers": "content-type"}
        )
        assert answer.headers["access-control-allow-origin"] == "https://survey.example"
        other = chosen.ask("OPTIONS", "/v1/reports", **(ask | {"Origin": "https://other.example"}))
        assert "access-control-allow-origin" not in other.headers
        sent = chosen.ask("POST", "/v1/reports", device(), Origin="https://survey.example")
        assert sent.headers["access-control-allow-origin"] == "https://survey.example"


def test_one_address_may_be_limited(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", rate_limit=2) as limited:
        answers = [limited.post(device()) for _ in range(10)]
        refused = [answer for answer in answers if answer.status == 429]
        assert 4 <= len(refused) <= 6  # a burst of four, and what time gave back
        assert refused[0].problem == "too-many-requests"
        assert refused[0].headers["retry-after"] == "1"


def test_counters_count(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        body = device()
        for each in (body, body, device(payload="07")):
            collector.post(each)
        text = collector.analyst("GET", "/metrics").data.decode()
        assert 'sottovoce_report_requests_total{outcome="ok"} 2' in text
        assert 'sottovoce_report_requests_total{outcome="invalid-report"} 1' in text
        assert 'sottovoce_reports_total{outcome="stored"} 1' in text
        assert 'sottovoce_reports_total{outcome="duplicate"} 1' in text
        assert "sottovoce_waiting_bytes 0" in text
        assert collector.ask("GET", "/healthz").json == {"status": "ok"}


def test_logs_hold_no_payload_and_no_address(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        body = device()
        collector.post(body)
        bad = device(payload="f7")
        collector.post(bad)
        collector.post(b"secret words")
        collector.ask("GET", "/v1/surveys/secret", Authorization="Bearer svt_secret")
        collector.ask("GET", "/secret-path")
    lines = [
        _Lines().format(record)
        for record in caplog.records
        if record.name.startswith(("sottovoce", "uvicorn"))
    ]
    assert any(json.loads(line).get("problem") == "invalid-report" for line in lines)
    text = "\n".join(lines)
    for private in ("127.0.0.1", body["id"], bad["id"], "f7", "secret"):
        assert private not in text.replace(f'"problem": "{private}"', "")


def test_a_mistake_of_ours_is_not_told(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a person's answer was blue")

    monkeypatch.setattr(collector.service.store, "append_many", broken)
    answer = collector.post(device())
    assert (answer.status, answer.problem) == (500, "internal")
    assert "blue" not in answer.data.decode()
    monkeypatch.undo()
    assert collector.post(device()).status == 200
