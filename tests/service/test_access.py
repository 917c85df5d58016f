"""What a token allows and for how long; who may read the counters; how the key for assignments is
replaced.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sottovoce.device.assignment import Assignment
from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.service.settings import ASSIGNMENT_SECONDS, MOST_ANALYST_BYTES, Settings
from sottovoce.service.tokens import new_token, scope_of
from tests.service.collector import PLAN, Answer, Collector, assigned, collecting, device
from tests.shuffle.plans import keys, shuffled_plan


def ask(collector: Collector, token: str, method: str, path: str) -> Answer:
    return collector.ask(method, path, Authorization=f"Bearer {token}")


def requests(collector: Collector) -> list[tuple[str, str]]:
    """(method, path) of every route that needs a token, as the API's description has them."""
    paths = collector.ask("GET", "/v1/openapi.json").json["paths"]
    return [
        (method.upper(), path.replace("{id}", PLAN.id))
        for path, operations in paths.items()
        for method, operation in operations.items()
        if "security" in operation
    ]


def test_a_token_to_read_changes_nothing(collector: Collector) -> None:
    token = new_token(collector.service.store, "reader", "read")
    assert ask(collector, token, "GET", "/v1/surveys").status == 200
    assert ask(collector, token, "GET", f"/v1/surveys/{PLAN.id}").status == 200
    # a query is posted, and changes nothing
    changing = [
        (method, path)
        for method, path in requests(collector)
        if method != "GET" and not path.endswith("/query")
    ]
    assert ("POST", "/v1/surveys") in changing
    assert ("POST", f"/v1/surveys/{PLAN.id}/close") in changing
    for method, path in changing:
        answer = ask(collector, token, method, path)
        assert (answer.status, answer.problem) == (403, "forbidden")
        assert (
            answer.headers["www-authenticate"]
            == 'Bearer error="insufficient_scope", scope="manage"'
        )
        assert "manage" in answer.json["detail"]
    assert not collector.service.survey(PLAN.id).entry.closed


def test_every_route_of_analysts_needs_a_token(collector: Collector) -> None:
    for method, path in requests(collector):
        assert collector.ask(method, path).problem == "unauthorized"
    assert [scope_of(method) for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")] == [
        "read"
    ] * 2 + ["manage"] * 4


def test_nothing_is_read_of_a_body_before_the_token(collector: Collector) -> None:
    """Whoever has none cannot make the collector parse what she sends."""
    reader = new_token(collector.service.store, "curious", "read")
    sending = [(method, path) for method, path in requests(collector) if method != "GET"]
    assert ("POST", "/v1/surveys") in sending
    for method, path in sending:
        assert collector.ask(method, path, b'{"title":').problem == "unauthorized"
        found = collector.ask(method, path, b'{"title":', Authorization=f"Bearer {reader}").problem
        assert found == ("malformed-body" if path.endswith("/query") else "forbidden")


def test_the_description_says_what_a_new_survey_is(collector: Collector) -> None:
    described = collector.ask("GET", "/v1/openapi.json").json["paths"]["/v1/surveys"]["post"][
        "requestBody"
    ]
    schema = described["content"]["application/json"]["schema"]
    assert described["required"]
    assert set(schema["required"]) == {"epsilon", "people", "schema", "question"}
    shuffled = {"trust", "delta", "cap", "fakes", "least", "hops"}
    assert set(schema["properties"]) == {
        *schema["required"],
        "title",
        "texts",
        "public",
        "coin",
        *shuffled,
    }


def test_a_shuffled_survey_that_would_hear_nobody_is_not_made(collector: Collector) -> None:
    for hops, rule in (([], "needs the public keys"), (keys(), "start it with --key FILE")):
        plan = shuffled_plan(hops, people=310)
        answer = collector.analyst("POST", "/v1/plans", plan.to_json().encode())
        assert (answer.status, answer.problem) == (422, "invalid-input")
        assert rule in answer.json["detail"]
        assert collector.analyst("GET", f"/v1/surveys/{plan.id}").status == 404


def test_what_analysts_send_has_a_smaller_limit_than_reports(collector: Collector) -> None:
    for path, problem in (("/v1/surveys", "malformed-body"), ("/v1/plans", "invalid-input")):
        assert collector.analyst("POST", path, b" " * MOST_ANALYST_BYTES).problem == problem
        assert (
            collector.analyst("POST", path, b" " * (MOST_ANALYST_BYTES + 1)).problem
            == "body-too-large"
        )
    assert (
        collector.ask("POST", "/v1/reports", b" " * (MOST_ANALYST_BYTES + 1)).problem
        == "malformed-body"
    )


def test_a_token_expires(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    token = new_token(collector.service.store, "guest", "read", days=30)
    assert ask(collector, token, "GET", "/v1/surveys").status == 200
    later = time.time() + 30 * 86_400 + 1
    monkeypatch.setattr("sottovoce.service.tokens.time.time", lambda: later)
    answer = ask(collector, token, "GET", "/v1/surveys")
    assert (answer.status, answer.problem) == (401, "unauthorized")
    assert "has expired" in answer.json["detail"]


@pytest.mark.parametrize("days", [0, -1, 4000, float("nan"), float("inf")])
def test_days_that_cannot_be(collector: Collector, days: float) -> None:
    with pytest.raises(InvalidInput, match="days"):
        new_token(collector.service.store, "guest", days=days)


# -- the counters


def test_the_counters_are_closed_to_strangers(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        assert collector.ask("GET", "/metrics").problem == "unauthorized"
        reader = new_token(collector.service.store, "prometheus", "read")
        assert (
            "sottovoce_waiting_bytes 0" in ask(collector, reader, "GET", "/metrics").data.decode()
        )


@pytest.mark.parametrize(
    ("metrics", "stranger", "analyst"), [("public", 200, 200), ("off", 404, 404)]
)
def test_the_counters_may_be_open_or_off(
    tmp_path: Path, metrics: str, stranger: int, analyst: int
) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", metrics=metrics) as collector:
        assert collector.ask("GET", "/metrics").status == stranger
        assert collector.analyst("GET", "/metrics").status == analyst


def test_settings_that_cannot_be() -> None:
    with pytest.raises(InvalidInput, match=r"metrics \(open\) must be one of token, public, off"):
        Settings(metrics="open")
    with pytest.raises(InvalidInput, match="assignment_seconds"):
        Settings(assignment_seconds=ASSIGNMENT_SECONDS + 1)


# -- the key


def test_a_running_collector_takes_the_new_key(tmp_path: Path) -> None:
    """What the former key signed is taken until it expires, unless the key was stolen."""
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        store = collector.service.store
        former = store.signing_key()
        given, body = assigned(collector)
        late_given, late_body = assigned(collector)
        given.verify(former, time.time())
        store.replace_signing_key(ASSIGNMENT_SECONDS)
        fresh, fresh_body = assigned(collector)
        fresh.verify(store.signing_key(), time.time())
        assert collector.post(body).status == 200
        assert collector.post(fresh_body).status == 200
        store.replace_signing_key(0)
        assert collector.post(late_body).problem == "bad-assignment"
        assert collector.post(assigned(collector)[1]).status == 200
        forged = Assignment.sign(former, late_given.plan_id, late_given.id, late_given.expires)
        assert (
            collector.post(late_body | {"signature": forged.signature.hex()}).problem
            == "bad-assignment"
        )


def test_a_store_that_cannot_say_its_keys_is_no_fault_of_the_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db") as collector:
        body = assigned(collector)[1]

        def lost() -> list[bytes]:
            raise StoreError("store (postgresql://secret.example/x) cannot be reached")

        monkeypatch.setattr(collector.service.store, "accepted_keys", lost)
        answer = collector.post(body)
        assert (answer.status, answer.problem) == (503, "busy")
        assert b"secret" not in answer.data
        assert collector.post(device()).status == 200  # it needs no key
        monkeypatch.undo()
        assert collector.post(body).status == 200
