"""Plans are frozen, named by their hash, and promise what their structure costs."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import sottovoce as sv
from tests.oracles import NAMES

SCHEMA = sv.Schema(x=sv.Categorical(range(8)), y=sv.Boolean(), word=sv.Text(bytes=20), open=sv.Boolean(sensitive=False))


def make(**changes: object) -> sv.Plan:
    asked = {"epsilon": 1.0, "people": 1000, **changes}
    return sv.plan(SCHEMA, sv.Frequencies("x", oracle="grr"), **asked)  # type: ignore[arg-type]


def test_a_plan_is_named_by_its_bytes_and_reads_back() -> None:
    plan = make()
    assert plan.id == hashlib.sha256(plan.to_json().encode()).hexdigest()
    again = sv.Plan.from_json(plan.to_json(), id=plan.id)
    assert again == plan
    assert again.id == plan.id
    assert again.guarantee == plan.guarantee
    spaced = sv.Plan.from_json(plan.to_json() + "\n")
    assert spaced.id != plan.id  # other bytes, another name


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rr"])
def test_plans_hold_no_floats_and_no_large_integers(name: str) -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", oracle=name), epsilon=0.7, people=10_000)

    def walk(part: object) -> None:
        assert not isinstance(part, float)
        if isinstance(part, int) and not isinstance(part, bool):
            assert abs(part) <= 1 << 53
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            walk(inner)

    walk(json.loads(plan.to_json()))
    assert sv.Plan.from_json(plan.to_json()) == plan
    assert plan.guarantee.per_report <= 0.7
    assert "Guarantee" in str(plan)


def test_the_guarantee_follows_the_structure() -> None:
    both = ("x", "y")
    apart = sv.plan(SCHEMA, sv.Frequencies(*both, oracle="grr"), epsilon=1.0, people=1000)
    assert len(apart.cohorts) == 2
    assert apart.guarantee.per_report == pytest.approx(1.0)
    split = sv.plan(SCHEMA, sv.Frequencies(*both, oracle="grr", split="budget"), epsilon=1.0, people=1000)
    assert len(split.cohorts) == 1
    assert [ask.oracle.epsilon for ask in split.cohorts[0].asks] == pytest.approx([0.5, 0.5])
    assert split.guarantee.per_report == pytest.approx(1.0)


def test_a_plan_that_costs_more_than_it_promises_is_refused() -> None:
    body = json.loads(make().to_json())
    body["cohorts"]["cohorts"][0]["asks"] *= 2
    with pytest.raises(sv.InvalidInput, match=r"more than the 1\.0 it promises"):
        sv.Plan.from_json(json.dumps(body))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body.update(sottovoce=2), "format version"),
        (lambda body: body.update(coin="assigned"), "coin"),
        (lambda body: body["question"].update(kind="gossip"), "question"),
        (lambda body: body.pop("schema"), "missing or malformed"),
        (lambda body: body.update(epsilon="0"), "epsilon"),
        (lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]["thresholds"].update(truth="1"), "thresholds"),
        (lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["oracle"].update(name="magic"), "oracle"),
        (lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["encoding"].update(kind="prefix"), "encoding"),
        (lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["encoding"].update(attributes=["y"]), "size 8"),
        (lambda body: body["cohorts"].update(cohorts=[]), "cohort"),
        (lambda body: body["cohorts"].update(family="secret"), "family"),
        (lambda body: body["series"].update(round=1), "round"),
    ],
)
def test_forged_plans_are_refused(change: object, message: str) -> None:
    body = json.loads(make().to_json())
    change(body)  # type: ignore[operator]
    with pytest.raises(sv.InvalidInput, match=message):
        sv.Plan.from_json(json.dumps(body))


def test_a_changed_plan_does_not_match_its_id() -> None:
    plan = make()
    with pytest.raises(sv.PlanMismatch, match="hash"):
        sv.Plan.from_json(plan.to_json().replace("1000", "1001"), id=plan.id)
    for text in ("{", "[]", b"\xff\xfe", '{"sottovoce": 1.5}'):
        with pytest.raises(sv.InvalidInput):
            sv.Plan.from_json(text)


@pytest.mark.parametrize("people", [0, -1, 1.5, True, "many"])
def test_bad_people(people: object) -> None:
    with pytest.raises(sv.InvalidInput, match="people"):
        make(people=people)


def test_questions_that_cannot_be_asked() -> None:
    basket = sv.Schema(basket=sv.Items(["a", "b"]))
    for schema, question in (
        (SCHEMA, sv.Frequencies("shoe")),
        (SCHEMA, sv.Frequencies("open")),
        (basket, sv.Frequencies("basket")),
        (SCHEMA, sv.Frequencies("x", oracle="rr")),
        (SCHEMA, sv.Frequencies("x", oracle="oue", colour="red")),
        (SCHEMA, sv.Frequencies("word", oracle="grr")),
    ):
        with pytest.raises(sv.InvalidInput):
            sv.plan(schema, question, epsilon=1.0, people=10)
    for wrong in (
        sv.Frequencies,
        lambda: sv.Frequencies("x", "x"),
        lambda: sv.Frequencies("x", split="time"),
    ):
        with pytest.raises(sv.InvalidInput):
            wrong()


def test_rounds_of_a_series_share_out_the_people_and_nobody_answers_twice() -> None:
    first = make(rounds=(1, 3), people=8000)
    people = {"x": np.arange(8000) % 8}
    heard = sv.Aggregate(first).add(sv.simulate(first, people, seed=5))
    top = int(heard.estimate().values.argmax())
    second = sv.plan(SCHEMA, sv.Frequencies("y"), epsilon=1.0, people=8000, after=first)
    assert second.series.parent == first.id
    assert (second.series.number, second.series.origin) == (1, first.id)
    assert 0 <= top < 8
    later = sv.simulate(second, {"y": np.zeros(8000, bool)}, seed=5)
    assert heard.people + len(later) == 8000
    spread = np.sqrt(8000 * 0.25 * 0.75)
    assert abs(heard.people - 2000) < 5 * spread
    with pytest.raises(sv.InvalidInput, match="round"):
        sv.plan(SCHEMA, sv.Frequencies("y"), epsilon=1.0, people=8000, after=second)
    with pytest.raises(sv.InvalidInput, match="rounds"):
        make(rounds=(1, 0))


def test_public_names_stay_functions_whatever_is_loaded_first() -> None:
    import subprocess
    import sys

    code = "import sottovoce as sv; sv.Aggregate; sv.Client; assert callable(sv.plan) and callable(sv.postprocess)"
    subprocess.run([sys.executable, "-c", code], check=True)
