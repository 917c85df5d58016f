"""Who may see what, and whose forms are taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import sottovoce as sv
from sottovoce.protocol.plan import Plan
from sottovoce.service.settings import Settings
from sottovoce.service.tokens import new_token
from sottovoce.studio.access import COOKIE, Access, safe_next
from tests.studio.collectors import Collector, collecting

ANALYSTS = ("/", "/new", "/watch/{id}", "/watch/{id}/live", "/watch/{id}/table?attribute=smoker")
ACTIONS = ("/new", "/new/preview", "/watch/{id}/close")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("locked"), logged_in=False) as made:
        yield made


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("unlocked")) as made:
        yield made


@pytest.fixture(scope="module")
def plan(locked: Collector) -> Plan:
    return locked.survey(sv.Frequencies("smoker"))


def cookie_of(collector: Collector) -> str:
    return f"{COOKIE}_{collector.url.rsplit(':', 1)[1]}"


def test_without_a_token_only_participants_are_served(locked: Collector, plan: Plan) -> None:
    for path in ANALYSTS:
        answer = httpx.get(locked.studio + path.format(id=plan.id))
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/studio/login?next=/studio/")
    for path in ACTIONS:
        refused = httpx.post(
            locked.studio + path.format(id=plan.id), headers={"Origin": locked.url}
        )
        assert refused.status_code == 401
    assert not locked.service.survey(plan.id).entry.closed
    assert httpx.get(f"{locked.studio}/take/{plan.id}").status_code == 200
    assert httpx.get(f"{locked.studio}/static/take.js").status_code == 200
    assert (
        httpx.get(f"{locked.studio}/client/index.js")
        .headers["content-type"]
        .startswith("text/javascript")
    )


def test_no_form_is_read_before_its_sender_is_known(locked: Collector, plan: Plan) -> None:
    for path in ACTIONS:
        form = {"content": b"\xff", "headers": {"Origin": locked.url}}  # which cannot be read
        assert httpx.post(locked.studio + path.format(id=plan.id), **form).status_code == 401


def test_a_token_lets_in_and_is_forgotten(locked: Collector, plan: Plan) -> None:
    token = new_token(locked.service.store, "ada")
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
        assert cookie_of(locked) not in client.cookies
        assert client.get("/").status_code == 303


def test_a_tampered_cookie_is_no_token(locked: Collector) -> None:
    for value in ("", "svt_guess", "Bearer x", "a b"):
        assert httpx.get(f"{locked.studio}/", cookies={cookie_of(locked): value}).status_code == 303


@pytest.mark.parametrize("path", ["/login", "/logout", *ACTIONS])
def test_forms_of_other_sites_are_refused(unlocked: Collector, path: str) -> None:
    plan = unlocked.survey(sv.Frequencies("smoker"))
    for headers in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:1"},
        {"Origin": "http://[::1"},
        {},
    ):
        answer = httpx.post(
            unlocked.studio + path.format(id=plan.id), data={"title": "x"}, headers=headers
        )
        assert answer.status_code == 403
    assert not unlocked.service.survey(plan.id).entry.closed


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "evil.example"])
def test_a_plain_proxy_makes_nobody_an_analyst(locked: Collector, plan: Plan, host: str) -> None:
    """It asks from this computer, by this computer's name, and says nothing of whom it asks for."""
    for path in ("/", f"/watch/{plan.id}", f"/watch/{plan.id}/table.csv?attribute=smoker"):
        answer = httpx.get(locked.studio + path, headers={"Host": f"{host}:8700"})
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/studio/login")


# -- the link that logs in once


def test_a_link_logs_in_one_browser_once(locked: Collector, plan: Plan) -> None:
    link = f"/login?code={locked.access.new_code()}"
    with httpx.Client(base_url=locked.studio, headers={"Origin": locked.url}) as client:
        # what only looks does not spend it
        assert httpx.head(locked.studio + link).status_code == 401
        let_in = client.get(link)
        assert (let_in.status_code, let_in.headers["location"]) == (303, "/studio/")
        cookie = let_in.headers["set-cookie"].lower()
        for part in (cookie_of(locked), "httponly", "samesite=strict", "path=/studio"):
            assert part in cookie
        for path in ANALYSTS:
            assert client.get(path.format(id=plan.id)).status_code == 200
        again = httpx.get(locked.studio + link)
        assert again.status_code == 401
        assert "was used before" in again.text
        assert "set-cookie" not in again.headers
        stolen = dict(client.cookies)
        client.post("/logout")
        # the session is over, not only its cookie
        assert httpx.get(f"{locked.studio}/", cookies=stolen).status_code == 303
        assert client.get(link).status_code == 401


@pytest.mark.parametrize(
    "host", ["survey.example.org", "localhost.example", "192.0.2.1:8700", "[2001:db8::1]"]
)
def test_a_code_is_good_on_this_computer_alone(locked: Collector, host: str) -> None:
    """A proxy with a name of its own hands on whatever it is asked,
    also a code that somebody read.
    """
    link = f"{locked.studio}/login?code={locked.access.new_code()}"
    refused = httpx.get(link, headers={"Host": host, "X-Forwarded-For": "203.0.113.9"})
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers
    assert httpx.get(link).status_code == 303  # it was not spent


@pytest.mark.parametrize("host", ["localhost", "localhost:8700", "127.0.0.1", "[::1]:8700"])
def test_this_computer_has_several_names(locked: Collector, host: str) -> None:
    link = f"{locked.studio}/login?code={locked.access.new_code()}"
    assert httpx.get(link, headers={"Host": host}).status_code == 303


def test_a_code_ends_by_itself(locked: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    code, now = locked.access.new_code(), time.monotonic()
    monkeypatch.setattr("sottovoce.studio.access.monotonic", lambda: now + 601)
    refused = httpx.get(f"{locked.studio}/login?code={code}")
    assert refused.status_code == 401
    assert "too old" in refused.text
    monkeypatch.undo()
    assert locked.access.spend(code) is None  # it is forgotten


@pytest.mark.parametrize("code", ["", "x", "svs_x", "%00", "a" * 5000])
def test_a_guessed_code_lets_nobody_in(locked: Collector, code: str) -> None:
    locked.access.new_code()
    answer = httpx.get(f"{locked.studio}/login?code={code}")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_code_is_spent_once_however_many_come_at_once(locked: Collector) -> None:
    code, start = locked.access.new_code(), threading.Barrier(8)

    def spend(_: int) -> str | None:
        start.wait()
        return locked.access.spend(code)

    with ThreadPoolExecutor(8) as threads:
        secrets = [secret for secret in threads.map(spend, range(8)) if secret is not None]
    assert len(secrets) == 1
    assert locked.access.holder(secrets[0]).scope == "manage"


def test_neither_code_nor_session_is_kept_as_it_is(locked: Collector) -> None:
    access = Access(locked.service.store)
    code = access.new_code()
    assert len(code) >= 43  # 256 bits
    assert code not in repr(vars(access))
    secret = access.spend(code)
    assert secret is not None
    assert secret not in repr(vars(access))


# -- scopes and ends


def test_whoever_may_read_changes_nothing(locked: Collector, plan: Plan) -> None:
    token = new_token(locked.service.store, "reader", "read")
    with httpx.Client(base_url=locked.studio, headers={"Origin": locked.url}) as client:
        assert client.post("/login", data={"token": token, "next": ""}).status_code == 303
        for path in ANALYSTS:
            assert client.get(path.format(id=plan.id)).status_code == (
                403 if path == "/new" else 200
            )
        for path in ACTIONS:
            refused = client.post(path.format(id=plan.id), data={"title": "x"})
            assert refused.status_code == 403
            assert "scope manage" in refused.text
    assert not locked.service.survey(plan.id).entry.closed


def test_a_token_that_has_expired_lets_nobody_in(
    locked: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_token(locked.service.store, "guest", days=1)
    cookies = {cookie_of(locked): token}
    assert httpx.get(f"{locked.studio}/", cookies=cookies).status_code == 200
    later = time.time() + 86_401
    monkeypatch.setattr("sottovoce.service.tokens.time.time", lambda: later)
    assert httpx.get(f"{locked.studio}/", cookies=cookies).status_code == 303
    refused = httpx.post(
        f"{locked.studio}/login", data={"token": token}, headers={"Origin": locked.url}
    )
    assert refused.status_code == 401
    assert "has expired" in refused.text


def test_two_studios_on_one_computer_have_cookies_of_their_own(
    locked: Collector, unlocked: Collector
) -> None:
    assert cookie_of(locked) != cookie_of(unlocked)
    token = new_token(locked.service.store, "ada")
    assert httpx.get(f"{locked.studio}/", cookies={cookie_of(locked): token}).status_code == 200
    assert httpx.get(f"{locked.studio}/", cookies={cookie_of(unlocked): token}).status_code == 303


def test_a_cookie_stays_on_https(tmp_path: Path) -> None:
    with collecting(tmp_path, logged_in=False, proxies=("127.0.0.1",)) as proxied:
        for scheme, is_secure in (("https", True), ("http", False)):
            link = f"{proxied.studio}/login?code={proxied.access.new_code()}"
            answer = httpx.get(link, headers={"X-Forwarded-Proto": scheme, "Host": "localhost"})
            assert ("; secure" in answer.headers["set-cookie"].lower()) is is_secure
            # no port, no port in its name
            assert answer.headers["set-cookie"].startswith(f"{COOKIE}=svs_")


@pytest.mark.parametrize(
    "path",
    [
        "https://elsewhere.example",
        "//elsewhere.example/studio/",
        "/v1/surveys",
        "/studio\\..\\x",
        "",
        "javascript:1",
    ],
)
def test_after_the_login_one_stays_here(path: str) -> None:
    assert safe_next(path, "/studio") == "/studio/"
    assert safe_next("/studio/new", "/studio") == "/studio/new"


def test_a_form_too_large_is_refused(unlocked: Collector) -> None:
    headers = {"Origin": unlocked.url, "Content-Type": "application/x-www-form-urlencoded"}
    assert (
        httpx.post(
            f"{unlocked.studio}/new", content=b"title=" + b"x" * (1 << 18), headers=headers
        ).status_code
        == 413
    )
    assert (
        httpx.post(f"{unlocked.studio}/new", content=b"&a=1" * 3000, headers=headers).status_code
        == 400
    )
    assert (
        httpx.post(f"{unlocked.studio}/new", content=b"name=a", headers=headers).status_code == 400
    )


def test_participants_are_led_to_the_one_address(tmp_path: Path) -> None:
    """A browser keeps what it drew for one address: under a second one it would draw again."""
    home = "https://survey.example.org"
    with collecting(tmp_path, address=home, proxies=("127.0.0.1",)) as collector:
        plan = collector.survey(sv.Frequencies("smoker"))
        there = {"Host": "survey.example.org", "X-Forwarded-Proto": "https"}
        for headers, is_home in (
            (there, True),
            (there | {"Host": "www.survey.example.org"}, False),
            (there | {"X-Forwarded-Proto": "http"}, False),
            ({}, False),
        ):
            answer = httpx.get(
                f"{collector.studio}/take/{plan.id}", headers=headers, follow_redirects=False
            )
            assert answer.status_code == (200 if is_home else 307)
            assert answer.headers.get("location") == (
                None if is_home else f"{home}/studio/take/{plan.id}"
            )


@pytest.mark.parametrize(
    "address",
    [
        "survey.org",
        "ftp://survey.org",
        "https://survey.org/",
        "https://Survey.org",
        "https://a.org:443",
    ],
)
def test_an_address_that_browsers_write_otherwise_is_refused(address: str) -> None:
    with pytest.raises(sv.InvalidInput, match=r"address .* must be like https"):
        Settings(address=address)
