"""The page of a shuffled survey: it seals in the browser, and sends to the first shuffler alone."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

import sottovoce as sv
from sottovoce.device.sealing import open_layer, read_content, seal
from sottovoce.ground.entropy import Tape
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.service.settings import Settings
from tests.browser.machines import HAS_CHROMIUM, browsing
from tests.shuffle.plans import SCHEMA, shuffled_plan
from tests.studio.browsers import CONTRAST, RULES, visitor
from tests.studio.collectors import HOPS, Collector, collecting
from tests.waiting import HANG

in_chromium = pytest.mark.skipif(
    not HAS_CHROMIUM, reason="Chromium is missing: the page was not tried in a browser"
)

TAKEN = (200, {"taken": 1})
CLOSED = (409, {"title": "Closed", "status": 409, "type": "https://x.example/batch-closed"})
BUSY = (503, {"title": "Busy", "status": 503})
NO_X25519 = """
    const take = crypto.subtle.importKey.bind(crypto.subtle);
    crypto.subtle.importKey = (form, data, name, ...others) =>
      name.name === "X25519" ? Promise.reject(new DOMException("no", "NotSupportedError"))
                             : take(form, data, name, ...others);
"""


@dataclass
class Shuffler:
    """What a first shuffler is to a browser: it takes onions of pages of other sites."""

    url: str = ""
    answers: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # then TAKEN
    taken: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)


def _handler(shuffler: Shuffler) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_OPTIONS(self) -> None:
            self._reply(204, b"")

        def do_POST(self) -> None:
            onion = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            shuffler.taken.append((self.path, onion, headers))
            status, body = shuffler.answers.pop(0) if shuffler.answers else TAKEN
            self._reply(status, json.dumps(body).encode())

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Access-Control-Allow-Origin", self.headers["Origin"])
            self.send_header("Access-Control-Allow-Methods", "POST")
            self.send_header("Access-Control-Allow-Headers", "content-type")
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def shuffling() -> Iterator[Shuffler]:
    """A shuffler that is there for so long, on a port of its own."""
    made = Shuffler()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    options = {"poll_interval": 0.05}
    thread = threading.Thread(target=server.serve_forever, kwargs=options, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def shuffler() -> Iterator[Shuffler]:
    with shuffling() as made:
        yield made


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, shuffler: Shuffler) -> Iterator[Collector]:
    """A collector whose pages know where the first shuffler is."""
    with collecting(tmp_path_factory.mktemp("shuffled"), shuffler=shuffler.url) as made:
        yield made


def created(collector: Collector, people: int, fakes: int = 0) -> Plan:
    plan = shuffled_plan(HOPS, people=people, fakes=fakes)
    collector.service.create(plan, sv.Texts("What our town drinks"))
    return plan


def open_take(page: Any, collector: Collector, plan: Plan) -> None:
    page.goto(f"{collector.studio}/take/{plan.id}")
    page.locator("#draw:enabled").wait_for()


def draw(page: Any, drinks: str) -> None:
    page.get_by_label(drinks, exact=True).check()
    page.get_by_role("button", name="Randomise and send my answer").click()


def tape(plan: Plan) -> bytes:
    """Coins, the same for the browser and for Python."""
    blocks = (hashlib.sha256(f"{plan.id} {block}".encode()).digest() for block in range(16))
    return b"".join(blocks)


@in_chromium
def test_what_leaves_is_sealed_and_goes_to_the_first_shuffler_alone(
    chromium: Any, studio: Collector, shuffler: Shuffler
) -> None:
    """Two people with opposite answers and the same coins: their traffic differs in one message,
    which all hops together open to what Python's device would have sent.
    """
    plan = created(studio, 400)
    requests = []
    for drinks in ("never", "daily"):
        shuffler.taken.clear()
        with visitor(chromium, tape(plan)) as (page, log):
            open_take(page, studio, plan)
            before = len(log.requests)
            draw(page, drinks)
            page.locator("#thanks:visible, #problem:visible").wait_for()
            assert page.locator("#problem").text_content() == ""
            (sent,) = (each for each in log.requests[before:] if each.method == "POST")
            others = [each for each in log.requests if each != sent]
            assert all(each.post_data_buffer is None for each in others)
            assert all(each.url.startswith(f"{studio.url}/") for each in others)
            shown = page.locator("#body").text_content()
            kept = page.evaluate(f"localStorage.getItem('sottovoce/{plan.id}')")
        ((path, onion, headers),) = shuffler.taken
        assert path == f"/v1/onions/{plan.id}"
        assert onion == sent.post_data_buffer
        assert onion.hex() == shown == json.loads(kept)["onion"]
        assert not {"cookie", "referer"} & set(headers)
        assert headers["content-type"] == "application/vnd.sottovoce.onions"
        source = Tape(tape(plan))
        report = sv.Client(plan, entropy=source).report({"drinks": drinks})
        assert onion == seal(report, plan, source)
        for hop, key in enumerate(HOPS):
            onion = open_layer(onion, key, plan.id, hop)
        assert read_content(onion, plan)[1] == report.checked(plan)
        headers.pop("host")
        listed = sorted((each.method, each.url) for each in log.requests)
        requests.append((listed, headers, len(sent.post_data_buffer)))
    assert requests[0] == requests[1]
    assert studio.service.survey(plan.id).people == 0


@in_chromium
def test_the_same_onion_is_sent_until_it_is_taken(
    chromium: Any, studio: Collector, shuffler: Shuffler
) -> None:
    plan = created(studio, 401)
    shuffler.taken.clear()
    shuffler.answers[:] = [BUSY, CLOSED]
    with visitor(chromium) as (page, log):
        open_take(page, studio, plan)
        draw(page, "weekly")
        page.locator("#problem", has_text="closed meanwhile").wait_for()
        assert page.locator("#whisper").is_hidden()  # what did not arrive is not seen
        log.wrong.clear()  # the browser's own lines about 503 and 409
        page.reload()
        page.get_by_role("button", name="Send it again").click()
        page.locator("#thanks").wait_for()
        page.reload()
        page.locator("#whisper").wait_for()
    onions = [onion for _, onion, _ in shuffler.taken]
    assert len(onions) == 3
    assert len(set(onions)) == 1


@in_chromium
def test_three_promises_are_told_before_anything_is_sent(chromium: Any, studio: Collector) -> None:
    plan = sv.plan(
        SCHEMA,
        sv.Frequencies("drinks", oracle="grr"),
        epsilon="0.6",
        people=402,
        least=300,
        delta="1e-4",
        fakes=30,
        cap=2,
        trust="shuffled",
        hops=[key.public for key in HOPS],
    )
    studio.service.create(plan, sv.Texts("What our town drinks"))
    with visitor(chromium) as (page, log):
        open_take(page, studio, plan)
        promises = page.locator("#promises li").all_text_contents()
        assert [line[line.index("at most ") :][:13] for line in promises] == [
            "at most 64.6%",
            "at most 73.6%",
            "at most 88.1%",
        ]
        told = page.locator("#sealed").text_content()
        assert "in 4 layers" in told
        assert "Each of 3 shufflers in turn" in told
        assert "30 made-up answers" in told
        assert f"Fewer than {plan.guarantee.least} people's answers are never opened" in told
        assert page.evaluate(RULES) == []
        assert page.evaluate(CONTRAST) == []
        draw(page, "never")
        page.locator("#whisper").wait_for()
        parts = page.locator("#bytes small").all_text_contents()
        assert parts == ["which question", "the randomised answer"]
        assert page.evaluate(RULES) == []
        assert page.evaluate(CONTRAST) == []
        assert log.wrong == []


@in_chromium
def test_a_browser_that_cannot_seal_is_told_so(
    chromium: Any, studio: Collector, shuffler: Shuffler
) -> None:
    plan = created(studio, 403)
    shuffler.taken.clear()
    with visitor(chromium) as (page, _):
        page.add_init_script(NO_X25519)
        page.goto(f"{studio.studio}/take/{plan.id}")
        page.locator("#problem", has_text="cannot seal").wait_for()
        assert page.locator("#draw").is_disabled()
        assert page.evaluate("localStorage.length") == 0
    assert shuffler.taken == []


def test_only_pages_of_shuffled_surveys_may_reach_the_shuffler(
    studio: Collector, shuffler: Shuffler
) -> None:
    plans = created(studio, 404), studio.survey(sv.Frequencies("smoker"), people=404)
    pages = [httpx.get(f"{studio.studio}/take/{plan.id}", timeout=HANG) for plan in plans]
    policies = [page.headers["content-security-policy"] for page in pages]
    assert f"connect-src 'self' {shuffler.url};" in policies[0]
    assert policies[1] == policies[0].replace(f" {shuffler.url}", "")
    assert shuffler.url in pages[0].text
    assert shuffler.url not in pages[1].text


def test_a_page_that_cannot_send_offers_no_form(collector: Collector, studio: Collector) -> None:
    unknown = created(collector, 405)  # at a studio that was told no address
    keyless = shuffled_plan([], people=405)
    studio.service.store.add_plan(keyless)  # an older version took it in
    for where, plan, why in (
        (collector, unknown, "sottovoce studio --shuffler URL"),
        (studio, keyless, "names no keys of shufflers"),
    ):
        page = httpx.get(f"{where.studio}/take/{plan.id}", timeout=HANG)
        assert "cannot be answered here" in page.text
        assert why in page.text
        assert "<form" not in page.text.replace('<form method="post"', "")
        assert "take.js" not in page.text
        assert "connect-src 'self';" in page.headers["content-security-policy"]


@pytest.mark.parametrize("url", ["shuffler.example", "https://a.example/hop", "https://a.b; x"])
def test_a_shuffler_is_named_by_its_origin(url: str) -> None:
    with pytest.raises(InvalidInput, match="shuffler"):
        Settings(shuffler=url)
