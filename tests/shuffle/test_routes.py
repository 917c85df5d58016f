"""What hops take over HTTP and from whom; and what a collector does with a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

import sottovoce as sv
from sottovoce.device.messages import ONIONS
from sottovoce.device.sealing import new_nonce, onion_size, open_layer, seal
from sottovoce.ground.entropy import Seeded
from sottovoce.protocol.plan import Plan
from sottovoce.service.app import make_app
from sottovoce.service.batches import Batches, CollectorWork, batch_routes
from sottovoce.service.settings import Settings
from sottovoce.service.shuffler import Shuffler, ShufflerTerms, shuffler_app
from sottovoce.service.survey_service import SurveyService
from sottovoce.shuffle.batch import added_fakes
from sottovoce.shuffle.fakes import (
    commitment,
    draw_seeds,
    hash_of,
    opened_half,
    opening,
    sealed_fakes,
)
from sottovoce.shuffle.messages import (
    BATCH_KIND,
    COMMIT_KIND,
    HALF_KIND,
    OPENING_KIND,
    Chunk,
    HopLink,
)
from sottovoce.store import Store, open_store
from sottovoce.store.hops import BatchState, HopStore
from tests.shuffle.plans import SCHEMA, keys, reports, shuffled_plan

KEYS = keys(2)
PLAN = shuffled_plan(KEYS, people=60, least=40)
FAKED = shuffled_plan(KEYS, people=60, least=40, fakes=3)
ENTROPY = Seeded(6)
ONION = seal(reports(PLAN, 1)[0], PLAN, ENTROPY)


def problem(answer: object) -> tuple[int, str]:
    told = answer.json()  # type: ignore[attr-defined]
    return told["status"], told["type"].rsplit("/", 1)[1]


def shuffler(store: HopStore, hop: int) -> TestClient:
    terms = ShufflerTerms("http://next", closes=0)
    made = Shuffler([PLAN], KEYS[hop], store, terms)
    return TestClient(shuffler_app(made), raise_server_exceptions=False)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HopStore]:
    with HopStore(f"sqlite:///{tmp_path}/hop.db") as made:
        yield made


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/survey.db") as made:
        for plan in (PLAN, FAKED):
            made.add_plan(plan)
        yield made


def test_what_the_first_shuffler_takes(store: HopStore) -> None:
    client, headers = shuffler(store, 0), {"content-type": ONIONS}
    path = f"/v1/onions/{PLAN.id}"
    garbage = bytes(len(ONION))
    for body, count in ((ONION, 1), (ONION + garbage, 2), (garbage * 3, 3)):
        assert client.post(path, content=body, headers=headers).json() == {"taken": count}
    assert store.onions(PLAN.id) == sorted([ONION, garbage])
    for body in (b"", ONION[:-1], ONION + b"x"):
        assert problem(client.post(path, content=body, headers=headers)) == (400, "malformed-body")
    large = client.post(path, content=ONION * 8000, headers=headers)
    assert problem(large) == (413, "body-too-large")
    assert problem(client.post(path, content=ONION)) == (415, "unsupported-type")
    other = client.post(f"/v1/onions/{'0' * 64}", content=ONION, headers=headers)
    assert problem(other) == (404, "unknown-plan")
    assert problem(client.post(f"/v1/batches/{PLAN.id}", content=b"x" * 50)) == (404, "not-found")
    assert client.get("/healthz").json()["plans"] == {PLAN.id: "collecting"}
    assert store.count(PLAN.id) == 2


def test_a_busy_file_keeps_nobody_else_waiting(store: HopStore) -> None:
    """A look at a state waits for the file in a thread, not in the loop that serves everybody."""
    with shuffler(store, 0) as client, ThreadPoolExecutor(2) as pool:
        with store._lock:
            looking = pool.submit(client.get, "/healthz")
            with pytest.raises(TimeoutError):
                looking.result(0.3)
            assert pool.submit(client.get, "/elsewhere").result(5).status_code == 404
        assert looking.result(5).json()["plans"] == {PLAN.id: "collecting"}


def test_what_a_later_shuffler_takes(store: HopStore) -> None:
    client, path = shuffler(store, 1), f"/v1/batches/{PLAN.id}"
    inner = open_layer(ONION, KEYS[0], PLAN.id, 0)
    link = HopLink(PLAN, 0, KEYS[0], 1)
    stranger = HopLink(PLAN, 2, KEYS[2], 1)
    first = Chunk(0, 2, inner * 3).write()
    for sent in (stranger.write(BATCH_KIND, first), bytes(32) + b"\0" + first):
        assert problem(client.post(path, content=sent)) == (403, "forbidden")
    assert problem(client.post(path, content=b"short")) == (422, "invalid-report")
    assert store.incoming(PLAN.id, BATCH_KIND) == b""
    sent = link.write(BATCH_KIND, first)
    for _ in range(2):
        assert link.read_answer(sent, client.post(path, content=sent).json()) == b""
    for body in (Chunk(0, 2, inner).write(), Chunk(1, 2, inner[:-1]).write()):
        answer = client.post(path, content=link.write(BATCH_KIND, body))
        assert answer.status_code == 422
    assert store.incoming(PLAN.id, BATCH_KIND) == inner * 3
    headers = {"content-type": ONIONS}
    onions = client.post(f"/v1/onions/{PLAN.id}", content=ONION, headers=headers)
    assert problem(onions) == (404, "not-found")


def test_what_a_collector_says_of_a_batch(store: HopStore, survey: Store) -> None:
    service = SurveyService(survey)
    batches = Batches(service, KEYS[2], store)
    batches.workers.stop()  # nothing works on what comes
    local = sv.plan(SCHEMA, sv.Frequencies("drinks"), epsilon=1, people=100)
    foreign = shuffled_plan(keys(2, seed=50))
    survey.add_plan(local)
    survey.add_plan(foreign)
    app = make_app(service)
    app.router.routes.extend(batch_routes(batches))
    with TestClient(app, raise_server_exceptions=False) as client:  # which closes its writer
        said_of_batches(client, store, local, foreign)


def test_a_long_list_is_read_once_and_sent_in_pieces(
    store: HopStore, survey: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody may ask for it: many who read slowly must not hold a copy each."""
    service = SurveyService(survey)
    batches = Batches(service, KEYS[2], store)
    app = make_app(service)
    app.router.routes.extend(batch_routes(batches))
    data = bytes(range(256)) * 2000
    read: list[str] = []
    noted = store.noted

    def counted(plan_id: str, name: str) -> bytes | None:
        read.append(name)
        return noted(plan_id, name)

    monkeypatch.setattr(store, "noted", counted)
    sizes: list[int] = []

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        async def seen(message: Message) -> None:
            sizes.append(len(message.get("body", b"")))
            await send(message)

        await app(scope, receive, seen)

    with TestClient(watched) as client:
        path = f"/v1/batches/{PLAN.id}/nonces"
        assert problem(client.get(path)) == (409, "no-reports")
        store.note(PLAN.id, "list", data)
        batches.workers.stop()  # which looks at the file too
        read.clear()
        monkeypatch.setattr(store, "begin", None)  # whoever asks does not write
        for _ in range(3):
            answer = client.get(path)
            assert answer.content == data
            assert answer.headers["content-length"] == str(len(data))
    assert read == ["list"]
    assert max(sizes) <= 1 << 16 < len(data)


def said_of_batches(client: TestClient, store: HopStore, local: Plan, foreign: Plan) -> None:
    for plan in (local, foreign):
        assert problem(client.get(f"/v1/batches/{plan.id}")) == (404, "not-found")
    assert problem(client.get(f"/v1/batches/{FAKED.id}/nonces")) == (409, "no-reports")
    link = HopLink(FAKED, 0, KEYS[0], 2)

    def ask(kind: str, body: bytes) -> bytes:
        sent = link.write(kind, body)
        answer = client.post(f"/v1/fakes/{FAKED.id}/{kind}", content=sent)
        assert answer.status_code == 200, answer.text
        return link.read_answer(sent, answer.json())

    beacon = ask(COMMIT_KIND, b"c" * 32)
    assert len(beacon) == 32
    assert ask(COMMIT_KIND, b"c" * 32) == beacon
    for body in (b"d" * 32, b"c"):
        sent = link.write(COMMIT_KIND, body)
        assert client.post(f"/v1/fakes/{FAKED.id}/commit", content=sent).status_code == 422
    assert ask(HALF_KIND, b"") == b""  # the batch has not come
    # only the last shuffler sends the batch
    chunk = link.write(BATCH_KIND, Chunk(0, 1, b"").write())
    assert problem(client.post(f"/v1/batches/{FAKED.id}", content=chunk)) == (403, "forbidden")
    other = client.post(f"/v1/fakes/{FAKED.id}/other", content=chunk)
    assert problem(other) == (404, "not-found")
    report = sv.Client(FAKED).report({"drinks": "daily"})
    plain = client.post("/v1/reports", json={"id": "00" * 16, **report.to_body()})
    assert problem(plain) == (409, "shuffled-plan")
    store.set_state(FAKED.id, BatchState.CLOSED)
    choice = ask(HALF_KIND, b"")
    assert len(choice) == 32
    assert ask(HALF_KIND, b"") == choice


def last_layers(plan: Plan, count: int, seed: int = 1) -> list[bytes]:
    """Onions as the last shuffler passes them on."""
    entropy = Seeded(seed)
    return [seal(each, plan, entropy, new_nonce(entropy), first=2) for each in reports(plan, count)]


def received(store: HopStore, plan: Plan, onions: Sequence[bytes]) -> None:
    data = b"".join(onions)
    store.begin(plan.id)
    store.add_chunk(plan.id, BATCH_KIND, BatchState.COLLECTING, 0, 1, data)
    assert len(data) % onion_size(plan, 2) == 0


def work(plan: Plan, store: HopStore, survey: Store) -> BatchState:
    """A collector's steps, each by a process of its own."""
    while CollectorWork(plan, KEYS[2], store, survey).attempt() == 0:
        pass
    return store.state(plan.id)


def test_a_collector_stores_a_batch_once(store: HopStore, survey: Store) -> None:
    onions = last_layers(PLAN, 45)
    received(store, PLAN, [*onions, *onions[:5], bytes(len(onions[0]))])
    kept = CollectorWork(PLAN, KEYS[2], store, survey)
    assert kept.step() == 0
    # a crash behind the transaction that stores the reports, and before anything else is noted
    read = kept._batch()
    kept._store_reports(read, list(read.reports))
    assert work(PLAN, store, survey) == BatchState.DONE
    status = store.status(PLAN.id)
    assert status.counts == {
        "received": 45, "malformed": 1, "duplicates": 5, "opened_fakes": 0, "stored": 45,
    }  # fmt: skip
    assert survey.count(PLAN) == 45
    assert survey.entry(PLAN.id).closed
    assert len(store.noted(PLAN.id, "list") or b"") == 45 * 16


def test_a_survey_that_is_closed_after_a_crash_keeps_its_batch(
    store: HopStore, survey: Store
) -> None:
    received(store, PLAN, last_layers(PLAN, 45))
    kept = CollectorWork(PLAN, KEYS[2], store, survey)
    assert kept.step() == 0
    read = kept._batch()
    kept._store_reports(read, list(read.reports))
    survey.close_survey(PLAN.id)  # by the analyst, before the collector runs again
    assert work(PLAN, store, survey) == BatchState.DONE
    assert survey.count(PLAN) == 45
    assert len(store.noted(PLAN.id, "list") or b"") == 45 * 16


def test_another_batch_of_a_closed_survey_is_refused(
    tmp_path: Path, store: HopStore, survey: Store
) -> None:
    received(store, PLAN, last_layers(PLAN, 45))
    assert work(PLAN, store, survey) == BatchState.DONE
    with HopStore(f"sqlite:///{tmp_path}/new.db") as new:  # the file of batches was lost
        received(new, PLAN, last_layers(PLAN, 45, seed=2))
        assert work(PLAN, new, survey) == BatchState.REFUSED
        assert new.noted(PLAN.id, "list") is None
    assert survey.count(PLAN) == 45


def test_a_collector_stores_nothing_of_a_small_batch(store: HopStore, survey: Store) -> None:
    received(store, PLAN, last_layers(PLAN, 39) * 2)
    assert work(PLAN, store, survey) == BatchState.REFUSED
    assert store.status(PLAN.id).reason == "39 reports, fewer than 40"
    assert survey.count(PLAN) == 0


def test_a_collector_stores_nothing_of_a_closed_survey(store: HopStore, survey: Store) -> None:
    received(store, PLAN, last_layers(PLAN, 45))
    survey.close_survey(PLAN.id)
    assert work(PLAN, store, survey) == BatchState.REFUSED


@pytest.mark.parametrize("cheat", ["no", "other seeds", "no commitment", "dropped"])
def test_a_collector_opens_half_of_the_fakes(cheat: str, store: HopStore, survey: Store) -> None:
    onions = last_layers(FAKED, 45)
    beacon, choice = b"b" * 32, b"h" * 32
    received(store, FAKED, [])  # its row
    store.finish(FAKED.id, BatchState.COLLECTING)
    for hop in range(2):
        seeds = draw_seeds(added_fakes(FAKED, hop), Seeded(hop))
        fakes = sealed_fakes(FAKED, seeds, beacon, 1, ENTROPY)
        opened = opened_half(choice, len(seeds))
        if not (cheat == "dropped" and hop):
            onions += fakes
        if not (cheat == "no commitment" and hop):
            committed = commitment([hash_of(seed) for seed in seeds])
            store.note(FAKED.id, f"commit {hop}", committed)
            store.note(FAKED.id, f"beacon {hop}", beacon)
        if cheat == "other seeds" and hop:
            seeds = draw_seeds(len(seeds), Seeded(99))
        shown = opening(seeds, opened)
        store.set_state(FAKED.id, BatchState.CLOSED)
        store.add_chunk(FAKED.id, f"{OPENING_KIND} {hop}", BatchState.CLOSED, 0, 1, shown)
    store.note(FAKED.id, "choice", choice)
    store.set_state(FAKED.id, BatchState.COLLECTING)
    received(store, FAKED, onions)
    state = work(FAKED, store, survey)
    if cheat == "no":
        assert state == BatchState.DONE
        assert survey.count(FAKED) == 45 + 3
        return
    assert state == BatchState.REFUSED
    assert (store.status(FAKED.id).reason or "").startswith("shuffler 1: ") or (
        cheat == "no commitment"
    )
    assert survey.count(FAKED) == 0


def test_pages_of_a_chosen_site_may_send_onions(store: HopStore) -> None:
    site = "https://survey.example"
    made = Shuffler([PLAN], KEYS[0], store, ShufflerTerms("http://next", closes=0))
    client = TestClient(shuffler_app(made, Settings(origins=(site,), rate_limit=2)))
    path = f"/v1/onions/{PLAN.id}"
    asks = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    for origin, allowed in ((site, site), ("https://other.example", None)):
        headers = {"origin": origin}
        first = client.options(path, headers=headers | asks)
        assert first.headers.get("access-control-allow-origin") == allowed
        sent = client.post(path, content=ONION, headers=headers | {"content-type": ONIONS})
        assert (sent.status_code, sent.json()) == (200, {"taken": 1})
        assert sent.headers.get("access-control-allow-origin") == allowed
        assert sent.headers["x-content-type-options"] == "nosniff"
    answers = [client.get(path) for _ in range(9)]
    assert "too-many-requests" in {problem(answer)[1] for answer in answers}
