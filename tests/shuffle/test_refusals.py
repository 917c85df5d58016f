"""What senders hear from a first shuffler over real sockets: the Python client, and the one in
Node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sottovoce.device.sealing import seal
from sottovoce.device.sender import NotSent, Sender
from sottovoce.ground.entropy import Seeded
from sottovoce.protocol.plan import Plan
from sottovoce.service.shuffler import Shuffler, ShufflerTerms, shuffler_app
from sottovoce.shuffle.batch import OpenedLayers
from sottovoce.store.hops import BatchState, HopStore
from tests.browser.machines import HAS_NODE, in_node
from tests.serving import serving
from tests.shuffle.plans import keys, reports, shuffled_plan

KEYS = keys(2)
PLAN = shuffled_plan(KEYS, people=60, least=40)
OTHER = shuffled_plan(KEYS, people=61, least=40)  # of the same hops, and not at this one
LATER = 1 << 40  # unix time: the batch is not closed by the clock here
NOT_HERE = "plan: this shuffler does not have it"
CLOSED = "the batch of this plan is closed; it takes no more reports"
IN_NODE = """
import { readFileSync } from "node:fs";
import { Client, Plan, PlainMemory, send } from "./src/index.js";
const { url, plans } = JSON.parse(readFileSync(process.argv[1], "utf8"));
const said = [];
for (const text of plans) {
  const client = new Client(await Plan.parse(text), { memory: new PlainMemory() });
  const report = await client.report({ drinks: "never" });
  for (let twice = 0; twice < 2; twice++) {
    const refused = ({ name, message, status }) => [name, status, message];
    said.push(await send(report, url, { seconds: 20 }).catch(refused));
  }
}
console.log(JSON.stringify(said));
"""


@contextmanager
def listening(store: HopStore) -> Iterator[str]:
    """The first shuffler of PLAN, on a port of its own."""
    made = Shuffler([PLAN], KEYS[0], store, ShufflerTerms("http://127.0.0.1:1", closes=LATER))
    with serving(shuffler_app(made)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HopStore]:
    with HopStore(f"sqlite:///{tmp_path}/hop.db") as made:
        yield made


def onions_of(plan: Plan, count: int, seed: int = 1) -> list[bytes]:
    entropy = Seeded(seed)
    return [seal(report, plan, entropy) for report in reports(plan, count, seed)]


def refusal(url: str, plan: Plan, onions: list[bytes]) -> tuple[str | None, str]:
    """The problem that a sender is told, and its sentence, without waiting for anything."""
    sender = Sender(url, patience=0)
    try:
        with pytest.raises(NotSent) as wrong:
            sender.send_onions(plan.id, onions)
    finally:
        sender.close()
    return wrong.value.problem, str(wrong.value)


def test_a_sender_is_told_what_is_wrong_and_by_whom(store: HopStore) -> None:
    good, foreign = onions_of(PLAN, 2), onions_of(OTHER, 2)
    with listening(store) as url:
        assert refusal(url, OTHER, foreign) == (
            "unknown-plan",
            f"the shuffler refuses it (404): {NOT_HERE}",
        )
        problem, told = refusal(url, PLAN, good * 5000)
        assert problem == "body-too-large"
        assert told.startswith("the shuffler refuses it (413): the body must have at most ")
        assert refusal(url, PLAN, [good[0] + b"x"]) == (
            "malformed-body",
            f"the shuffler refuses it (400): the body must be onions of {len(good[0])} bytes each, "
            "and no more",
        )
        # copies and onions of another plan are taken like all others: nothing tells them apart
        sender = Sender(url)
        for onions in (good, good, foreign, [*good, *foreign]):
            sender.send_onions(PLAN.id, onions)
        layers = OpenedLayers(PLAN, 0, KEYS[0])
        layers.open(store.onions(PLAN.id))
        assert (store.count(PLAN.id), layers.malformed, len(layers.inner())) == (4, 2, 2)
        store.set_state(PLAN.id, BatchState.CLOSED)
        closed = ("batch-closed", f"the shuffler refuses it (409): {CLOSED}")
        assert refusal(url, PLAN, onions_of(PLAN, 1, seed=2)) == closed
        sender.send_onions(PLAN.id, good)  # it is in the batch
        store.finish(PLAN.id, BatchState.DONE)
        assert refusal(url, PLAN, good) == closed  # too old: nothing of it is known here any more
        sender.close()
    assert refusal(url, PLAN, good)[1].startswith("the shuffler did not take it within 0 seconds")


@pytest.mark.skipif(not HAS_NODE, reason="Node is missing: the client was not run in it")
def test_the_client_in_node_is_told_the_same(store: HopStore, tmp_path: Path) -> None:
    def said(url: str, *plans: Plan) -> Any:
        return in_node(IN_NODE, {"url": url, "plans": [plan.to_json() for plan in plans]}, tmp_path)

    with listening(store) as url:
        unknown = ["Refused", 404, f"shuffler: The plan is not known here: {NOT_HERE}"]
        taken = {"stored": 1, "duplicates": 0}
        assert said(url, OTHER, PLAN) == [unknown, unknown, taken, taken]
        assert store.count(PLAN.id) == 1  # the same onion twice
        layers = OpenedLayers(PLAN, 0, KEYS[0])
        layers.open(store.onions(PLAN.id))
        assert len(layers.inner()) == 1
        store.set_state(PLAN.id, BatchState.CLOSED)
        closed = ["Refused", 409, f"shuffler: The shufflers' batch is closed: {CLOSED}"]
        assert said(url, PLAN) == [closed, closed]
