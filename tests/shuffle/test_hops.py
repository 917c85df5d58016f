"""Three shufflers and a collector as processes: nothing is lost, doubled, or told."""

from __future__ import annotations

import csv
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.cli import run
from sottovoce.device.messages import ONIONS
from sottovoce.device.sealing import PrivateKey, new_nonce, seal
from sottovoce.device.sender import NotSent, Sender
from sottovoce.ground.entropy import Seeded
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report
from sottovoce.shuffle.checks import report_id
from sottovoce.store import export, open_store
from sottovoce.store.hops import HopStore
from tests.shuffle.plans import keys, reports, shuffled_plan
from tests.shuffle.system import System, system

KEYS = keys()
PEOPLE, LEAST = 240, 200


def crowd(plan: Plan, count: int, seed: int = 1) -> tuple[list[bytes], dict[bytes, Report]]:
    """The onions of a crowd, and its reports by the ids they must get."""
    entropy = Seeded(seed)
    onions, expected = [], {}
    for report in reports(plan, count, seed):
        nonce = new_nonce(entropy)
        onions.append(seal(report, plan, entropy, nonce))
        expected[report_id(plan.id, nonce)] = report
    return onions, expected


def send(url: str, plan: Plan, onions: Sequence[bytes], together: int = 20) -> None:
    sender = Sender(url, patience=60)
    for start in range(0, len(onions), together):
        sender.send_onions(plan.id, onions[start : start + together])
    sender.close()


def stored(made: System) -> list[tuple[bytes, Report]]:
    """What the analyst's store has, in its order."""
    rows = []
    with open_store(made.survey) as store:
        for _, ids, found in store.read(made.plan):
            rows += zip(map(bytes, ids), found.single(made.plan), strict=True)
    return rows


def exported(made: System, name: str) -> bytes:
    """The bytes of an export of the analyst's store."""
    folder = made.folder / name
    with open_store(made.survey) as store:
        export(store, made.plan, folder)
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def kill_now_and_then(made: System, seed: int, times: int) -> None:
    """Kill one hop after another at random moments, and start it again."""
    draw = random.Random(seed)
    order = [hop for _ in range(times) for hop in draw.sample(made.hops, len(made.hops))]
    for hop in order:
        threading.Event().wait(draw.uniform(0, 0.15))
        hop.kill()
        hop.start()


@pytest.fixture(scope="module")
def forth(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The export of a crowd that came in one order, without an accident."""
    plan = shuffled_plan(KEYS, PEOPLE, LEAST)
    onions, expected = crowd(plan, PEOPLE)
    with system(plan, KEYS, tmp_path_factory.mktemp("forth")) as made:
        send(made.hops[0].url, plan, onions[:150])
        assert made.state()["state"] == "collecting"  # too few
        # a body too long, a wrong size, nobody's onions: all of them alike to their sender
        answer = Sender(made.hops[0].url).ask(
            "POST", f"/v1/onions/{plan.id}", onions[0] + b"x", ONIONS
        )
        assert (answer.status, answer.body["type"].rsplit("/", 1)[1]) == (400, "malformed-body")
        strange = [bytes([row]) * len(onions[0]) for row in range(60)]
        send(made.hops[0].url, plan, strange)  # 210 onions, of which 150 are good
        send(made.hops[0].url, plan, onions[100:150])  # once more
        threading.Event().wait(0.5)
        assert made.state()["state"] == "collecting"
        # one request, since the batch closes at its 200th
        send(made.hops[0].url, plan, onions[150:], together=PEOPLE)
        assert made.wait("done", "refused") == "done"
        check(made, expected)
        with pytest.raises(NotSent, match="409") as late:
            send(made.hops[0].url, plan, crowd(plan, 1, seed=2)[0])
        assert late.value.problem == "batch-closed"
        counts = Counter[str]()
        with HopStore(made.store(0)) as store:
            counts.update(store.status(plan.id).counts)
            assert store.status(plan.id).waiting == 0
        assert counts == {
            "received": 300, "malformed": 60, "duplicates": 0, "fakes": 0, "passed": PEOPLE,
        }  # fmt: skip
        check_silence(made, onions, expected)
        return exported(made, "out")


def check(made: System, expected: dict[bytes, Report]) -> None:
    """Everybody's report is there, once, and sorted."""
    rows = stored(made)
    assert [id for id, _ in rows] == sorted(expected)
    assert dict(rows) == expected


def check_silence(made: System, onions: Sequence[bytes], expected: dict[bytes, Report]) -> None:
    """No hop's files or logs tell of a sender; the analyst's store tells no time of arrival."""
    lines = [line for line in made.logs().splitlines() if "Uvicorn running on" not in line]
    assert not [line for line in lines if re.search(r"127\.0\.0\.1|[0-9a-f]{60}", line)]
    first = made.hops[0].log.read_text().splitlines()
    assert all(re.fullmatch(r"[-\d]{10}T\d\d:\d\dZ", json.loads(line)["time"]) for line in first)
    for hop in range(len(made.hops)):
        path = Path(made.store(hop).removeprefix("sqlite:///"))
        data = path.read_bytes() + path.with_name(f"{path.name}-wal").read_bytes()
        assert not any(onion[48:80] in data for onion in onions), hop
        assert not any(id in data for id in expected)
    with open_store(made.survey) as store:
        assert store.entry(made.plan.id).closed


def test_everybody_is_heard_once_and_the_order_of_arrival_is_gone(
    forth: bytes, tmp_path: Path
) -> None:
    plan = shuffled_plan(KEYS, PEOPLE, LEAST)
    onions, expected = crowd(plan, PEOPLE)
    with system(plan, KEYS, tmp_path) as made:
        killing = threading.Thread(target=kill_now_and_then, args=(made, 5, 1))
        killing.start()
        send(made.hops[0].url, plan, onions[::-1], together=PEOPLE)
        killing.join()
        assert made.wait("done", "refused") == "done"
        check(made, expected)
        assert exported(made, "back") == forth


def test_fakes_stay_in_the_batch_and_people_send_from_a_file(tmp_path: Path) -> None:
    hops = keys(2, seed=9)
    plan = shuffled_plan(hops, people=60, least=50, fakes=7)
    people = tmp_path / "people.csv"
    with people.open("w", newline="") as file:
        csv.writer(file).writerows([["drinks"], *([["weekly"]] * 60)])
    with system(plan, hops, tmp_path) as made:
        first, last = made.hops[0].url, made.collector.url
        plan_file = str(tmp_path / "plan.json")
        sending = ["send", plan_file, str(people), "--to", first, "--quiet", "--batch", "60"]
        assert run(sending) == 0
        assert made.wait("done", "refused") == "done", made.state()
        assert len(stored(made)) == 67
        assert run(["spotcheck", plan_file, str(people), "--at", last]) == 0
        # nothing is sent again, though the batch is closed
        assert run(sending) == 0
        report = sv.Client(plan).report({"drinks": "daily"})
        with pytest.raises(NotSent, match="409") as plain:
            Sender(last).send([bytes(16)], [report])
        assert plain.value.problem == "shuffled-plan"
        for hop in range(3):
            with HopStore(made.store(hop)) as store:
                assert store.state(plan.id) == "done"
    journal = next(tmp_path.glob("*.journal")).read_text()
    assert len({json.loads(line[9:])["onion"] for line in journal.splitlines()[2:62]}) == 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_any_hop_may_be_killed_at_any_moment(seed: int, tmp_path: Path) -> None:
    made_of: list[PrivateKey] = keys(seed=seed)
    plan = shuffled_plan(made_of, PEOPLE, LEAST, fakes=9)
    onions, expected = crowd(plan, PEOPLE, seed)
    with system(plan, made_of, tmp_path) as made:
        killing = threading.Thread(target=kill_now_and_then, args=(made, seed, 3))
        killing.start()
        send(made.hops[0].url, plan, onions, together=PEOPLE)
        killing.join()
        assert made.wait("done", "refused") == "done"
        rows = stored(made)
        assert len(rows) == PEOPLE + 9
        assert expected.items() <= dict(rows).items()
