"""Whatever is sent, the collector answers with a problem of its own, never with a mistake."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.assignment import Assignment
from sottovoce.device.messages import BINARY, write_binary, write_json
from sottovoce.ground.errors import SottovoceError, UnknownPlan
from sottovoce.protocol.reports import leb128
from sottovoce.service.plan_cache import PlanCache
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from sottovoce.service.wire import Envelope, gathered, read_binary, read_json
from sottovoce.store import open_store
from tests.service.collector import PLAN, RECORD, SEEDED, TABLES, Collector

CASES = 100_000
LIMITS = Settings(most_reports=100)


@pytest.fixture(scope="module")
def plan_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('fuzz')}/s.db")
    for plan in (PLAN, SEEDED, TABLES):
        store.add_plan(plan)
    yield PlanCache(store)
    store.close()


def whispers(draws: random.Random) -> tuple[list[bytes], list[sv.Report], list[Assignment]]:
    plan = draws.choice((PLAN, SEEDED, TABLES))
    ids = [draws.randbytes(16) for _ in range(draws.randint(1, 3))]
    if plan is not SEEDED:
        return ids, [sv.Client(plan).report(RECORD) for _ in ids], []
    given = [Assignment.sign(bytes(32), plan.id, id, 1 << 40) for id in ids]
    return ids, [sv.Client(plan, assignment=each).report(RECORD) for each in given], given


def mutated(data: bytes, draws: random.Random) -> bytes:
    """A few changes of the kinds that break parsers."""
    out = bytearray(data)
    for _ in range(draws.randint(1, 4)):
        place = draws.randrange(len(out) + 1)
        match draws.randrange(6):
            case 0 if out:
                out[place % len(out)] ^= 1 << draws.randrange(8)
            case 1:
                out[place:place] = draws.randbytes(draws.randint(1, 20))
            case 2:
                del out[place : place + draws.randint(1, 20)]
            case 3:
                out[place : place + 1] = draws.choice(
                    (b"\xff", b"\x00", b"\x80\x80\x80\x80\x80", b"\x7f")
                )
            case 4:
                out += out[: draws.randint(0, len(out))]
            case _:
                del out[place:]
    return bytes(out)


def resealed(draws: random.Random) -> bytes:
    """A report that is wrong inside and right outside: its length and its checksum fit."""
    ids, reports, given = whispers(draws)
    body = mutated(reports[0].to_bytes()[:-4], draws)
    data = body + zlib.crc32(body).to_bytes(4, "little")
    tail = (
        b"\x01" + given[0].expires.to_bytes(8, "little") + given[0].signature if given else b"\x00"
    )
    return ids[0] + leb128(len(data)) + data + tail


def outcome(read: Any, data: bytes, plan_cache: PlanCache) -> str:
    """How reading and checking end: taken, or refused by a name of ours; anything else is not
    caught.
    """
    try:
        envelope: Envelope = read(data, plan_cache, LIMITS)
        gathered(envelope.plan, [envelope])
    except Problem as wrong:
        return wrong.name
    except SottovoceError as wrong:
        return UnknownPlan.__name__ if isinstance(wrong, UnknownPlan) else type(wrong).__name__
    return "taken"


def test_the_compact_form_survives_anything(plan_cache: PlanCache) -> None:
    draws = random.Random(1)
    seeds = [write_binary(*whispers(draws)) for _ in range(300)]
    seen = Counter(
        outcome(read_binary, mutated(draws.choice(seeds), draws), plan_cache) for _ in range(CASES)
    )
    assert sum(seen.values()) == CASES
    assert {"taken", "malformed-body", "CorruptReport"} <= set(seen)
    assert seen["taken"] < CASES / 2  # an id may be anything; most else may not


def test_reports_with_a_good_checksum_survive_anything(plan_cache: PlanCache) -> None:
    draws = random.Random(5)
    seen = Counter(outcome(read_binary, resealed(draws), plan_cache) for _ in range(10_000))
    assert {"taken", "CorruptReport", "UnknownPlan"} <= set(seen)


def test_bytes_of_chance_are_never_taken(plan_cache: PlanCache) -> None:
    draws = random.Random(2)
    seen = Counter(
        outcome(read_binary, draws.randbytes(draws.randint(0, 200)), plan_cache)
        for _ in range(20_000)
    )
    assert seen["taken"] == 0


def test_json_survives_anything(plan_cache: PlanCache) -> None:
    draws = random.Random(3)
    seeds = []
    for _ in range(100):
        ids, reports, given = whispers(draws)
        rows = [
            write_json(*each) for each in zip(ids, reports, given or [None] * len(ids), strict=True)
        ]
        seeds.append(json.dumps(rows[0] if len(rows) == 1 else {"reports": rows}).encode())
    seen = Counter(
        outcome(read_json, mutated(draws.choice(seeds), draws), plan_cache) for _ in range(20_000)
    )
    assert {"taken", "malformed-body", "CorruptReport"} <= set(seen)


def test_a_running_collector_survives_too(collector: Collector) -> None:
    draws = random.Random(4)
    seeds = [write_binary(*whispers(draws)) for _ in range(50)]
    statuses = Counter(
        collector.post(mutated(draws.choice(seeds), draws), BINARY).status for _ in range(500)
    )
    assert max(statuses) < 500
    assert collector.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_the_whole_api_keeps_to_its_description(
    collector: Collector, tmp_path: Path, examples: int
) -> None:
    """schemathesis makes requests of the description, and of what breaks it."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{collector.url}/v1/openapi.json",
        "--header",
        f"Authorization: Bearer {collector.token}",
        "--checks",
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        str(examples),
        "--seed",
        "1",
        "--no-color",
        "--request-timeout",
        "1800",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    tested = re.search(r"(\d+) generated", done.stdout)
    assert done.returncode == 0, done.stdout[-6000:]
    assert tested is not None
    assert int(tested.group(1)) > 200
