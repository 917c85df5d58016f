"""What a participant is told in words, beside what Python knows of the same report."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Seeded
from sottovoce.protocol.encodings import Parities
from sottovoce.protocol.plan import Plan
from tests.studio.collectors import SCHEMA

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is missing: reports in words were not tried"
)

STATIC = Path(sv.__file__).parent / "studio" / "static"
CLIENT = STATIC.parent / "client"
MOST = 300  # cohorts of a plan that are looked at
PROGRAM = """
import { readFileSync } from "node:fs";
import { askedWords, asksOf, saidWords } from %s;
import { Plan } from %s;
const { text, reports } = JSON.parse(readFileSync(0, "utf8"));
const plan = await Plan.parse(text);
const attributes = new Map(plan.attributes.map((each) => [each.name, each]));
const sizes = new Map(plan.attributes.map((each) => [each.name, each.size]));
const told = reports.map(({ cohort, payload }) => {
  const asks = asksOf(JSON.parse(text), cohort, sizes);
  const bytes = (payload.match(/../g) ?? []).map((pair) => parseInt(pair, 16));
  const masks = (products) => products?.map((row) => row.map(Number)) ?? null;
  return {
    asks: asks.map(({ names, products, oracle }) => [names, masks(products), oracle.name]),
    asked: askedWords(asks, attributes),
    said: saidWords(asks, bytes, attributes),
  };
});
console.log(JSON.stringify(told));
"""
QUESTIONS: dict[str, sv.Frequencies | sv.Marginals] = {
    "frequencies": sv.Frequencies("smoker", "drinks", "age"),
    "budget": sv.Frequencies("smoker", "drinks", split="budget"),
    "oue": sv.Frequencies("drinks", oracle="oue"),
    "olh": sv.Frequencies("age", oracle="olh"),
    "calm": sv.Marginals(up_to=2, method="calm"),
    "marg-ps": sv.Marginals(up_to=2, method="marg-ps"),
    "inp-ht": sv.Marginals(up_to=2, method="inp-ht"),
    "inp-em": sv.Marginals(up_to=2, method="inp-em"),
    "latent": sv.Marginals(up_to=2, method="latent"),
}


def told(plan: Plan, reports: list[sv.Report]) -> Any:
    """What the page says of these reports."""
    program = PROGRAM % tuple(
        json.dumps(path.as_uri()) for path in (STATIC / "words.js", CLIENT / "index.js")
    )
    given = {
        "text": plan.to_json(),
        "reports": [{"cohort": r.cohort, "payload": r.payload.hex()} for r in reports],
    }
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def whispered(plan: Plan, record: dict[str, Any], count: int) -> list[sv.Report]:
    return [sv.Client(plan, entropy=Seeded(seed)).report(record) for seed in range(count)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_cohort_is_told_what_it_was_asked(name: str) -> None:
    plan = sv.plan(SCHEMA, QUESTIONS[name], epsilon=1.0, people=10_000)
    step = max(1, len(plan.cohorts) // MOST)
    cohorts = range(0, len(plan.cohorts), step)
    blank = [sv.Report(plan.id, cohort, bytes(plan.cohorts[cohort].bytes)) for cohort in cohorts]
    for cohort, found in zip(cohorts, told(plan, blank), strict=True):
        for ask, (names, products, oracle) in zip(
            plan.cohorts[cohort].asks, found["asks"], strict=True
        ):
            encoding = ask.encoding
            assert tuple(names) == encoding.attributes
            rows = (
                [list(row) for row in encoding.products] if isinstance(encoding, Parities) else None
            )
            assert products == rows
            assert oracle == ask.oracle.to_json()["name"]


def test_signs_are_told_as_questions_that_the_record_answers() -> None:
    """At an epsilon so large that reports are true,
    what is said is the answer to what was asked.
    """
    plan = sv.plan(SCHEMA, sv.Marginals(up_to=2, method="inp-ht"), epsilon=40, people=10_000)
    record = {"smoker": True, "drinks": "daily", "age": 41, "exercise": False}
    holds = {
        "smoker is yes": True,
        "exercise is yes": False,
        "drinks is weekly": False,
        "drinks is daily": True,
        "drinks is weekly or daily": True,
        "age is 38 to 57 or 78 to 97": True,
        "age is 58 to 77 or 78 to 97": False,
        "age is 38 to 57 or 58 to 77": True,
    }
    seen = set()
    for found in told(plan, whispered(plan, record, 60)):
        asked = (
            found["asked"]
            .removeprefix("whether exactly one of these is so: ")
            .removeprefix("whether ")
        )
        parts = asked.split("; ")
        seen.update(parts)
        answer = "yes" if sum(holds[part] for part in parts) % 2 else "no"
        assert found["said"][0].startswith(f"“{answer}”")
    assert seen == set(holds)


def test_direct_answers_and_sets_are_told_by_their_labels() -> None:
    record = {"smoker": True, "drinks": "daily", "age": 41, "exercise": False}
    plan = sv.plan(SCHEMA, sv.Marginals(up_to=2, method="marg-ps"), epsilon=40, people=10_000)
    words = {
        name: f"{name}: {label}"
        for name, label in zip(record, ("yes", "daily", "38 to 57", "no"), strict=True)
    }
    for report, found in zip(
        whispered(plan, record, 20), told(plan, whispered(plan, record, 20)), strict=True
    ):
        names = plan.cohorts[report.cohort].asks[0].encoding.attributes
        assert found["asked"] == f"{names[0]} and {names[1]}, together"
        assert found["said"][0].startswith(f"“{words[names[0]]}, {words[names[1]]}”")
    grr = sv.plan(SCHEMA, sv.Frequencies("drinks"), epsilon=1.0, people=100)
    chance = round(
        100 * int(grr.cohorts[0].asks[0].oracle.to_json()["thresholds"]["truth"]) / 2**64
    )
    assert f"{chance} times of 100" in told(grr, whispered(grr, record, 1))[0]["said"][0]
    plan = sv.plan(SCHEMA, sv.Frequencies("drinks", oracle="oue"), epsilon=1.0, people=100)
    report = sv.Report(plan.id, 0, bytes([0b101]))
    assert told(plan, [report])[0]["said"][0].startswith("“one of: drinks: never; drinks: daily”")
