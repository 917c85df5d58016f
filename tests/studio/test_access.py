"""Who may see what, and whose forms are taken."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request

import sottovoce as sv
from sottovoce.front import Plan
from sottovoce.service.tokens import new_token
from sottovoce.studio.access import COOKIE, _is_local, safe_next
from tests.studio.collectors import Collector, collecting

ANALYSTS = ("/", "/new", "/watch/{id}", "/watch/{id}/live", "/watch/{id}/table?attribute=smoker")
ACTIONS = ("/new", "/new/preview", "/watch/{id}/close")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("locked"), token_required=True) as made:
        yield made


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("unlocked")) as made:
        yield made


@pytest.fixture(scope="module")
def plan(locked: Collector) -> Plan:
    return locked.survey(sv.Frequencies("smoker"))


def test_without_a_token_only_participants_are_served(locked: Collector, plan: Plan) -> None:
    for path in ANALYSTS:
        answer = httpx.get(locked.studio + path.format(id=plan.id))
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/studio/login?next=/studio/")
    for path in ACTIONS:
        refused = httpx.post(locked.studio + path.format(id=plan.id), headers={"Origin": locked.url})
        assert refused.status_code == 401
    assert not locked.desk.survey(plan.id).entry.closed
    assert httpx.get(f"{locked.studio}/take/{plan.id}").status_code == 200
    assert httpx.get(f"{locked.studio}/static/take.js").status_code == 200
    assert httpx.get(f"{locked.studio}/client/index.js").headers["content-type"].startswith("text/javascript")


def test_a_token_lets_in_and_is_forgotten(locked: Collector, plan: Plan) -> None:
    token = new_token(locked.desk.store, "ada")
    with httpx.Client(base_url=locked.studio, headers={"Origin": locked.url}) as client:
        wrong = client.post("/login", data={"token": token[:-1], "next": ""})
        assert wrong.status_code == 401
        assert "not known" in wrong.text
        assert "set-cookie" not in wrong.headers
        right = client.post("/login", data={"token": token, "next": f"/studio/watch/{plan.id}"})
        assert right.headers["location"] == f"/studio/watch/{plan.id}"
        cookie = right.headers["set-cookie"].lower()
        for part in ("httponly", "samesite=strict", "path=/studio"):
            assert part in cookie
        for path in ANALYSTS:
            assert client.get(path.format(id=plan.id)).status_code == 200
        assert "Log out" in client.get("/").text
        client.post("/logout")
        assert COOKIE not in client.cookies
        assert client.get("/").status_code == 303


def test_a_tampered_cookie_is_no_token(locked: Collector) -> None:
    for value in ("", "svt_guess", "Bearer x", "a b"):
        assert httpx.get(f"{locked.studio}/", cookies={COOKIE: value}).status_code == 303


@pytest.mark.parametrize("path", ["/login", "/logout", *ACTIONS])
def test_forms_of_other_sites_are_refused(unlocked: Collector, path: str) -> None:
    plan = unlocked.survey(sv.Frequencies("smoker"))
    for headers in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:1"},
        {},
    ):
        answer = httpx.post(unlocked.studio + path.format(id=plan.id), data={"title": "x"}, headers=headers)
        assert answer.status_code == 403
    assert not unlocked.desk.survey(plan.id).entry.closed


def test_without_tokens_only_this_computer_is_served(unlocked: Collector) -> None:
    """A page elsewhere can make its own name point here; then the browser sends that name."""
    port, plan = unlocked.url.rsplit(":", 1)[1], unlocked.survey(sv.Frequencies("smoker"))
    for host, status in (("localhost", 200), ("127.0.0.1", 200), ("[::1]", 200), ("evil.example", 401), ("", 401)):
        answer = httpx.get(f"{unlocked.studio}/watch/{plan.id}/live", headers={"Host": f"{host}:{port}"})
        assert answer.status_code == status, host


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host"])
def test_without_tokens_nobody_is_served_through_a_proxy(unlocked: Collector, name: str) -> None:
    """A proxy on this computer asks by its own names, on behalf of anybody."""
    assert httpx.get(f"{unlocked.studio}/").status_code == 200
    assert httpx.get(f"{unlocked.studio}/", headers={name: "for=203.0.113.9"}).status_code == 401


def test_without_tokens_another_computer_is_not_served() -> None:
    for address, served in (("127.0.0.1", True), ("203.0.113.9", False)):
        scope = {"type": "http", "headers": [(b"host", b"localhost:8700")], "client": (address, 5)}
        assert _is_local(Request(scope)) is served


@pytest.mark.parametrize(
    "path",
    ["https://elsewhere.example", "//elsewhere.example/studio/", "/v1/surveys", "/studio\\..\\x", "", "javascript:1"],
)
def test_after_the_login_one_stays_here(path: str) -> None:
    assert safe_next(path, "/studio") == "/studio/"
    assert safe_next("/studio/new", "/studio") == "/studio/new"


def test_a_form_too_large_is_refused(unlocked: Collector) -> None:
    headers = {"Origin": unlocked.url, "Content-Type": "application/x-www-form-urlencoded"}
    assert (
        httpx.post(f"{unlocked.studio}/new", content=b"title=" + b"x" * (1 << 18), headers=headers).status_code == 413
    )
    assert httpx.post(f"{unlocked.studio}/new", content=b"&a=1" * 3000, headers=headers).status_code == 400
    assert httpx.post(f"{unlocked.studio}/new", content=b"name=a", headers=headers).status_code == 400
