"""The client in Chromium: the wire's vectors, where its coins come from, what it keeps, and how it
sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import sottovoce as sv
from tests.browser.machines import CAPTIVE, HAS_CHROMIUM, Site, browsing, serving
from tests.vectors.make import EXPIRES, KEY, PATH
from tests.vectors.onions import PATH as ONIONS
from tests.waiting import HANG

pytestmark = pytest.mark.skipif(
    not HAS_CHROMIUM, reason="Chromium is missing: the client was not run in it"
)

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
PLANS = {entry["name"]: entry for entry in VECTORS["plans"]}
NO_MATH_RANDOM = "Math.random = () => { throw new Error('Math.random was asked'); };"
COUNT_DRAWS = """
    window.drawn = 0;
    const draw = crypto.getRandomValues.bind(crypto);
    crypto.getRandomValues = (bytes) => { window.drawn += bytes.length; return draw(bytes); };
"""
IMPORT = "const sottovoce = await import('/clients/js/src/index.js');"
TAKEN = (200, {"stored": 1, "duplicates": 0})


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving() as made:
        yield made


@pytest.fixture
def context(chromium: Any) -> Iterator[Any]:
    """A person's browser, with nothing in it, in which only WebCrypto gives chance."""
    made = chromium.new_context()
    made.set_default_timeout(1000 * HANG)
    made.add_init_script(NO_MATH_RANDOM + COUNT_DRAWS)
    yield made
    made.close()


@pytest.fixture
def page(context: Any, site: Site) -> Any:
    return opened(context, site)


def opened(context: Any, site: Site) -> Any:
    page = context.new_page()
    page.goto(f"{site.url}/")
    return page


def run(page: Any, code: str, argument: Any = None) -> Any:
    """What asynchronous code gives in the page, with the client at hand as ``sottovoce``."""
    return page.evaluate("async (given) => { " + IMPORT + code + " }", argument)


def outcome(page: Any, code: str, argument: Any = None) -> Any:
    """The same for code that throws: the error's name and message."""
    return run(
        page,
        f"try {{ {code} }} catch (wrong) {{ return [wrong.name, wrong.message, wrong.status ?? 0] "
        f"}}",
        argument,
    )


def test_every_vector_gives_the_same_bytes(page: Any) -> None:
    wrong = run(
        page,
        """
        const check = await import('/clients/js/tests/check.js');
        const vectors = await (await fetch('/tests/vectors/v1.json')).json();
        const hashes = await import('/clients/js/src/hashes.js');
        const attributes = await import('/clients/js/src/attributes.js');
        const others = [
          ...check.hashMismatches(hashes, vectors),
          ...check.spellingMismatches(attributes, vectors),
        ];
        return [vectors.plans.length, await check.mismatches(sottovoce, vectors), others];
        """,
    )
    assert wrong == [len(PLANS), [], []]


def test_every_onion_has_the_same_bytes(page: Any) -> None:
    wrong = run(
        page,
        """
        const check = await import('/clients/js/tests/check.js');
        const onions = await (await fetch('/tests/vectors/onions.json')).json();
        return [onions.bad_plans.length, await check.mismatches(sottovoce, onions)];
        """,
    )
    assert wrong == [len(json.loads(ONIONS.read_text())["bad_plans"]), []]


def test_coins_come_from_webcrypto(page: Any) -> None:
    """More than a hundred bytes for a vector of 2000 bits, and another report each time."""
    drawn, payloads = run(
        page,
        """
        const plan = await sottovoce.Plan.parse(given);
        const reports = [];
        for (let i = 0; i < 5; i++) {
          reports.push(await new sottovoce.Client(plan).report({ n: 1234 }));
        }
        return [window.drawn, reports.map((report) => report.json.payload)];
        """,
        PLANS["oue of 2000"]["plan"],
    )
    assert drawn > 5 * 2000 // 8
    assert len(set(payloads)) == 5


ANSWER = """
    const plan = await sottovoce.Plan.parse(given.plan);
    const client = new sottovoce.Client(plan, { memory: new sottovoce.BrowserMemory() });
    const report = await client.report(given.record);
    return [report.id, Array.from(report.bytes)];
"""


def test_answering_again_gives_the_same_report(context: Any, site: Site) -> None:
    """After a reload, in another tab, with the opposite answer; and another person's browser draws
    its own.
    """
    page = opened(context, site)
    yes, no = ({"plan": PLANS["oue"]["plan"], "record": {"x": value}} for value in ("a", "f"))
    first = run(page, ANSWER, yes)
    page.reload()
    assert run(page, ANSWER, no) == first
    assert run(opened(context, site), ANSWER, no) == first
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert first[0] in kept
    assert "record" not in kept


def test_two_tabs_at_once_draw_one_report(context: Any, site: Site) -> None:
    pages = [opened(context, site) for _ in range(2)]
    for value, page in zip("af", pages, strict=True):
        start = (
            "(given) => { const draw = async () => { "
            + IMPORT
            + ANSWER
            + " }; window.answer = draw(); }"
        )
        page.evaluate(start, {"plan": PLANS["oue"]["plan"], "record": {"x": value}})
    answers = [page.evaluate("window.answer") for page in pages]
    assert answers[0] == answers[1]


SEND = """
    const report = new sottovoce.Report(given.sent);
    return await sottovoce.send(report, given.url, { seconds: given.seconds });
"""


def sending(site: Site, name: str = "grr", seconds: float = 20) -> dict[str, Any]:
    return {"sent": PLANS[name]["good"][0]["sent"], "url": site.url, "seconds": seconds}


def test_sending_tries_again_with_the_same_id(page: Any, site: Site) -> None:
    busy = (503, {"title": "Busy", "status": 503})
    site.answer(
        "/v1/reports", busy, busy, (200, CAPTIVE), (507, {"title": "Full", "status": 507}), TAKEN
    )
    assert run(page, SEND, sending(site)) == TAKEN[1]
    assert [(method, path) for method, path, _ in site.asked] == [("POST", "/v1/reports")] * 5
    assert {body for _, _, body in site.asked} == {site.asked[0][2]}
    assert json.loads(site.asked[0][2]) == PLANS["grr"]["good"][0]["sent"]


@pytest.mark.parametrize("status", [400, 403, 404, 409, 413])
def test_sending_ends_at_a_refusal(page: Any, site: Site, status: int) -> None:
    site.answer(
        "/v1/reports",
        (status, {"title": "Refused", "status": status, "detail": "because of a rule"}),
        TAKEN,
    )
    assert outcome(page, SEND, sending(site)) == [
        "Refused",
        "collector: Refused: because of a rule",
        status,
    ]
    assert len(site.asked) == 1


def test_sending_gives_up_in_time(page: Any, site: Site) -> None:
    site.answer("/v1/reports", (503, {"title": "Busy", "status": 503}))
    name, message, _ = outcome(page, SEND, sending(site, seconds=0.6))
    assert (name, "0.6 s" in message) == ("Unreachable", True)
    assert len(site.asked) > 1


def test_a_whole_visit_sends_nothing_but_the_report(context: Any, site: Site) -> None:
    """A plan by its id, an assignment, a report: what the network saw, and that the collector can
    take it.
    """
    entry = PLANS["olh, assigned"]
    plan = sv.Plan.from_json(entry["plan"], id=entry["id"])
    given = sv.Assignment.sign(KEY, plan.id, bytes(range(16)), EXPIRES)
    site.answer("/v1/reports", TAKEN)
    site.answer(f"/v1/plans/{plan.id}", (200, entry["plan"].encode()))
    site.answer(f"/v1/plans/{plan.id}/assignment", (200, given.to_json()))
    page = opened(context, site)
    visit = """
        const plan = await sottovoce.Plan.fetch(given.url, { id: given.id });
        const assignment = () => sottovoce.Assignment.fetch(given.url, plan);
        const memory = new sottovoce.BrowserMemory();
        const client = new sottovoce.Client(plan, { memory, assignment });
        return await sottovoce.send(await client.report({ x: given.x }), given.url);
    """
    for value in ("a", "f"):
        assert run(page, visit, {"url": site.url, "id": plan.id, "x": value}) == TAKEN[1]
    calls = [(method, path) for method, path, _ in site.asked]
    fetched, posted = ("GET", f"/v1/plans/{plan.id}"), ("POST", "/v1/reports")
    assert calls == [fetched, ("GET", f"/v1/plans/{plan.id}/assignment"), posted, fetched, posted]
    bodies = [body for method, _, body in site.asked if method == "POST"]
    assert bodies[0] == bodies[1]
    sent = json.loads(bodies[0])
    signed = {"id": given.id.hex(), "expires": EXPIRES, "signature": given.signature.hex()}
    assert sent.items() >= signed.items()
    assert set(sent) == {"id", "sottovoce", "plan", "cohort", "payload", "expires", "signature"}
    report = sv.Report.from_json(
        json.dumps({key: sent[key] for key in sent if key not in signed}), plan
    )
    given.check(report, plan)


def test_a_changed_plan_is_refused(page: Any, site: Site) -> None:
    entry = PLANS["grr"]
    site.answer(f"/v1/plans/{entry['id']}", (200, entry["plan"].replace("1000", "1001").encode()))
    fetch = "await sottovoce.Plan.fetch(given.url, { id: given.id }); return 'taken'"
    assert outcome(page, fetch, {"url": site.url, "id": entry["id"]})[0] == "PlanMismatch"
    assert outcome(page, fetch, {"url": site.url, "id": "0" * 64}) == [
        "Refused",
        "collector: Not here",
        404,
    ]
