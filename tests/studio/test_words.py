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
from sottovoce.protocol.encodings import Encoding, Grid, Intervals, Parities
from sottovoce.protocol.plan import Plan
from sottovoce.studio.languages import words as sentences_of
from tests.studio.collectors import SCHEMA

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is missing: reports in words were not tried"
)

STATIC = Path(sv.__file__).parent / "studio" / "static"
CLIENT = STATIC.parent / "client"
MOST = 300  # cohorts of a plan that are looked at
PROGRAM = """
import { readFileSync } from "node:fs";
import { useSentences } from %s;
import { askedWords, asksOf, saidWords } from %s;
import { Plan } from %s;
const { sentences, text, body, reports } = JSON.parse(readFileSync(0, "utf8"));
useSentences(sentences);
const plan = await Plan.parse(text);
const attributes = new Map(plan.attributes.map((each) => [each.name, each]));
const sizes = new Map(plan.attributes.map((each) => [each.name, each.size]));
const told = reports.map(({ cohort, payload }) => {
  const asks = asksOf(body ?? JSON.parse(text), cohort, sizes);
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
    "views": sv.Marginals(up_to=2, method="joint", views=[[1], [0, 2], [1, 2], [0, 1, 2]]),
    "marg-ps": sv.Marginals(up_to=2, method="marg-ps"),
    "inp-ht": sv.Marginals(up_to=2, method="inp-ht"),
    "inp-em": sv.Marginals(up_to=2, method="inp-em"),
    "latent": sv.Marginals(up_to=2, method="latent"),
}


def told(plan: Plan, reports: list[sv.Report], body: Any = None) -> Any:
    """What the page says of these reports; ``body``: other cohorts than the plan's."""
    program = PROGRAM % tuple(
        json.dumps(path.as_uri())
        for path in (STATIC / "language.js", STATIC / "words.js", CLIENT / "index.js")
    )
    given = {
        "sentences": dict(sentences_of("en").script),
        "text": plan.to_json(),
        "body": body,
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


GROUPED = sv.Schema(
    age=sv.Ordinal(18, 41), state=sv.Categorical(["NY", "WA", "TX"]), hours=sv.Ordinal(0, 99, 8)
)
CUT = (
    (Grid.of(GROUPED, ["age"], [5]), "age, in groups of values"),
    (Grid.of(GROUPED, ["age"], [7], [3]), "age, in groups of values"),
    (Grid.of(GROUPED, ["age", "state"], [6, 1]), "age, in groups of values and state, together"),
    (Grid.of(GROUPED, ["state", "age"], [1, 1]), "state and age, together"),
    (Intervals.of(GROUPED, "age", [1, 2, 20]), "age, in groups of values"),
)


@pytest.mark.parametrize(("encoding", "asked"), CUT)
def test_groups_of_values_are_told_by_their_ends(encoding: Encoding, asked: str) -> None:
    """Of every code the words name exactly the records that have it."""
    any_plan = sv.plan(GROUPED, sv.Frequencies("age", "state"), epsilon=1.0, people=1000)
    oracle = {"name": "grr", "size": str(encoding.size), "bits": 8, "thresholds": {"truth": "1"}}
    asks = [{"encoding": encoding.to_json(), "oracle": oracle}]
    body = {"cohorts": {"family": "listed", "cohorts": [{"asks": asks}]}}
    reports = [sv.Report(any_plan.id, 0, bytes([code])) for code in range(encoding.size)]
    found = told(any_plan, reports, body)
    assert {each["asked"] for each in found} == {asked}
    words = [each["said"][0].removeprefix("“").partition("”")[0] for each in found]
    for age in range(24):
        for state in range(3):
            code = encoding.encode({"age": age, "state": state}, Seeded(1))
            record = {"age": 18 + age, "state": GROUPED["state"].labels()[state]}
            assert [place for place, each in enumerate(words) if fits(each, record)] == [code]


def fits(words: str, record: dict[str, Any]) -> bool:
    """Whether a record is one of those that are named, as in ``age: 18 to 22, state: NY``."""
    for part in words.split(", "):
        name, _, value = part.partition(": ")
        first, _, last = value.partition(" to ")
        if name == "state" and value != record["state"]:
            return False
        if name == "age" and not int(first) <= record["age"] <= int(last or first):
            return False
    return True


@pytest.mark.parametrize(
    "method", ["auto", "mg", "hi", "hio", "sc", "tree", "hdg", "haar", "square-wave"]
)
def test_every_cohort_of_queries_is_told_in_words(method: str) -> None:
    names = ["age"] if method in ("haar", "square-wave") else ["age", "state", "hours"]
    plan = sv.plan(GROUPED, sv.Queries(names, method=method), epsilon=1.0, people=10_000)
    cohorts = range(min(len(plan.cohorts), MOST))
    blank = [sv.Report(plan.id, cohort, bytes(plan.cohorts[cohort].bytes)) for cohort in cohorts]
    for cohort, found in zip(cohorts, told(plan, blank), strict=True):
        asks = plan.cohorts[cohort].asks
        assert len(found["said"]) == len(asks)
        assert "undefined" not in " ".join(found["said"]) + found["asked"]
        for ask in asks:
            assert all(name in found["asked"] for name in ask.encoding.attributes)
