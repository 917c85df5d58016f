"""Plans are frozen, named by their hash, and promise what their structure costs."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

import sottovoce as sv
from tests.oracles import NAMES

SCHEMA = sv.Schema(
    x=sv.Categorical(range(8)),
    y=sv.Boolean(),
    word=sv.Text(bytes=20),
    open=sv.Boolean(sensitive=False),
)


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
    other = make(people=1001)
    assert other.id != plan.id  # other bytes, another name
    with pytest.raises(sv.InvalidInput, match="byte for byte"):
        sv.Plan.from_json(plan.to_json() + "\n")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rr"])
def test_plans_hold_no_floats_and_no_large_integers(name: str) -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", oracle=name), epsilon=0.7, people=10_000)

    def walk(part: object) -> None:
        assert not isinstance(part, float)
        if isinstance(part, int) and not isinstance(part, bool):
            assert abs(part) <= 1 << 53
        for inner in (
            part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        ):
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
    split = sv.plan(
        SCHEMA, sv.Frequencies(*both, oracle="grr", split="budget"), epsilon=1.0, people=1000
    )
    assert len(split.cohorts) == 1
    assert [ask.oracle.epsilon for ask in split.cohorts[0].asks] == pytest.approx([0.5, 0.5])
    assert split.guarantee.per_report == pytest.approx(1.0)


def test_a_plan_that_costs_more_than_it_promises_is_refused() -> None:
    body = json.loads(make().to_json())
    body["cohorts"]["cohorts"][0]["asks"] *= 2
    with pytest.raises(sv.InvalidInput, match=r"more than the 1 it promises"):
        sv.Plan.from_json(json.dumps(body))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body.update(sottovoce=2), "format version"),
        (lambda body: body.update(coin="anybody"), "coin"),
        (lambda body: body["question"].update(kind="gossip"), "question"),
        (lambda body: body.pop("schema"), "missing or malformed"),
        (lambda body: body.update(epsilon="0"), "epsilon"),
        (
            lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]["thresholds"].update(
                truth="1"
            ),
            "thresholds",
        ),
        (
            lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["oracle"].update(name="magic"),
            "oracle",
        ),
        (
            lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["encoding"].update(kind="prefix"),
            "encoding",
        ),
        (
            lambda body: body["cohorts"]["cohorts"][0]["asks"][0]["encoding"].update(
                attributes=["y"]
            ),
            "size 8",
        ),
        (lambda body: body["cohorts"].update(cohorts=[]), "cohort"),
        (lambda body: body["cohorts"].update(family="secret"), "family"),
        (lambda body: body["series"].update(round=1), "round"),
        (lambda body: body["question"].update(attributes=["y"]), "not those of its question"),
        (lambda body: body["question"].update(oracle="hr"), "not those of its question"),
        (
            lambda body: body["cohorts"].update(cohorts=body["cohorts"]["cohorts"] * 2),
            "not those of its question",
        ),
        (lambda body: body["schema"]["x"].update(sensitive=False), "public"),
        (lambda body: body.update(epsilon="0.9999999999999999"), "more than"),
        (lambda body: body.update(people=-5), "people"),
        (lambda body: body.update(people="many"), "people"),
        (lambda body: body.update(people=None), "people"),
        (lambda body: body.update(people=1 << 80), "people"),
        (lambda body: body["cohorts"]["cohorts"][0].update(weight=0), "weight"),
        (lambda body: body["cohorts"]["cohorts"][0].update(asks=[]), "plan"),
        (lambda body: body["schema"]["x"].update(range=[0, 1 << 70, 1]), "plan"),
        (lambda body: body["series"].update(origin=[1]), "origin"),
    ],
)
def test_forged_plans_are_refused(change: object, message: str) -> None:
    body = json.loads(make().to_json())
    change(body)  # type: ignore[operator]
    with pytest.raises(sv.InvalidInput, match=message):
        # a device looks no question up
        _ = sv.Plan.from_json(json.dumps(body, indent=1) + "\n").question


def test_a_changed_plan_does_not_match_its_id() -> None:
    plan = make()
    with pytest.raises(sv.PlanMismatch, match="hash"):
        sv.Plan.from_json(plan.to_json().replace("1000", "1001"), id=plan.id)
    for text in (
        "{",
        "[]",
        b"\xff\xfe",
        '{"sottovoce": 1.5}',
        '{"sottovoce": NaN}',
        "[" * 100_000,
        "\ud800",
        "9" * 9999,
    ):
        with pytest.raises(sv.InvalidInput):
            sv.Plan.from_json(text)
    with pytest.raises(sv.PlanMismatch):
        sv.Plan.from_json(plan.to_json(), id=5)  # type: ignore[arg-type]


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
        (SCHEMA, sv.Frequencies("x", oracle="oue", hash_bits=2)),
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


def test_cohorts_of_unequal_cost_promise_the_larger() -> None:
    one, two = sv.Guarantee(1.0, 3.0), sv.Guarantee(2.0, 2.0)
    assert one | two == sv.Guarantee(2.0, 3.0)
    assert one + two == sv.Guarantee(3.0, 5.0)
    assert one.best_guess(0.5) == pytest.approx(1 / (1 + np.exp(-3.0)))  # of a lifetime


@pytest.mark.parametrize("prior", [0.5, 0.1, 0.9])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.001), (0.1, 0.5), (3.0, 0.0)])
def test_a_guess_is_bounded_with_delta(prior: float, epsilon: float, delta: float) -> None:
    """Tight: a device that tells all with chance delta, and else keeps epsilon, raises a guess just
    so far.
    """
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    # of each report, if the guess is right
    secret = [
        delta,
        (1 - delta) * truth,
        (1 - delta) * (1 - truth),
        0.0,
    ]
    other = [0.0, (1 - delta) * (1 - truth), (1 - delta) * truth, delta]
    excess = sum(
        max(0.0, one - np.exp(epsilon) * two) for one, two in zip(secret, other, strict=True)
    )
    assert excess == pytest.approx(delta)  # so it is (epsilon, delta)-LDP, and no better
    told = 1.0  # by its first report
    # by the likeliest of the others
    kept = prior * secret[1] / (prior * secret[1] + (1 - prior) * other[1])
    promise = sv.Guarantee(epsilon, epsilon, delta)
    assert promise.best_guess(prior) == pytest.approx(delta * told + (1 - delta) * kept)
    if delta:
        assert promise.best_guess(prior) > sv.Guarantee(epsilon, epsilon).best_guess(prior)
        assert (
            f"({epsilon:g}, {delta:g})-LDP per report, ({epsilon:g}, {delta:g}) over a lifetime"
            in str(promise)
        )


def test_what_a_promise_says_is_rounded_up() -> None:
    """As clients/js rounds it."""
    for epsilon, percent in (
        (0.01, "50.3%"),
        (0.001, "50.1%"),
        (1e-20, "50.1%"),
        (1.0, "73.2%"),
        (100.0, "100%"),
    ):
        assert str(sv.Guarantee(epsilon, epsilon)).endswith(f"rises to at most {percent})")
    for delta, told in (
        (0.00012341, "0.0001235"),
        (0.00099991, "0.001"),
        (1.00001e-7, "1.001e-7"),
        (0.0001, "0.0001"),
        (0.000125, "0.000125"),
    ):
        assert str(sv.Guarantee(1.0, 1.0, delta)).startswith(f"(1, {told})-LDP")
    assert str(sv.Guarantee(1.00004, 12.3414)).startswith(
        "1.001-LDP per report, 12.35 over a lifetime"
    )
    # a double's last bit
    assert str(sv.Guarantee(0.1 + 0.2, 0.3)).startswith("0.3-LDP per report, 0.3 over")


def _sampled(delta: object, people: int = 900) -> sv.Plan:
    question = sv.TopItems("basket", top=2, method="psfo", length=12, delta=delta)
    return sv.plan(sv.Schema(basket=sv.Items(range(40))), question, epsilon=1.0, people=people)


def test_a_delta_is_a_small_chance() -> None:
    assert _sampled("1/1000").guarantee.delta == 0.001
    assert _sampled(0.001).cost == "epsilon 1, delta 0.001"
    assert _sampled("0.0005", 1999).cohorts.delta == Fraction(1, 2000)
    for delta, people in (("1/1000", 1000), ("1/999", 10), (0.999, 1), ("1/1000", 10**9)):
        with pytest.raises(
            sv.InvalidInput, match=r"delta \(\d+/\d+\) must be at most 1/1000 and below 1/people"
        ):
            _sampled(delta, people)
    for wrong in (0, 1, "1e-20", 1 / 3000, "1/1e400", "little", -0.1):
        with pytest.raises(sv.InvalidInput, match="delta"):
            _sampled(wrong)


def test_a_plan_is_read_with_its_delta_as_it_was_written() -> None:
    made = _sampled("1/1000")
    assert sv.Plan.from_json(made.to_json()).guarantee == made.guarantee
    for other in ("2/2000", "0.001", "1/1000 ", "01/1000", "1/1e3", "1/1_000"):
        text = made.to_json().replace('"1/1000"', f'"{other}"')
        assert text != made.to_json()
        with pytest.raises(sv.InvalidInput, match=r"delta .* in lowest terms"):
            sv.Plan.from_json(text)
    for people in (1000, 10**6):
        with pytest.raises(sv.InvalidInput, match="below 1/people"):
            sv.Plan.from_json(made.to_json().replace('"people": 900', f'"people": {people}'))


@pytest.mark.parametrize(
    "options",
    [
        {"oracle": "rappor", "instantaneous": ("0.3", "0.1")},
        {"oracle": "rappor", "instantaneous": (0.6, 0.4)},
        {"oracle": "rappor", "instantaneous": ("1", "0")},
        {"oracle": "the", "theta": 0.7},
        {"oracle": "cms", "salt": 2**60, "hashes": np.int64(16)},
    ],
)
def test_options_of_every_kind_read_back(options: dict[str, object]) -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", **options), epsilon=1.0, people=100)  # type: ignore[arg-type]
    assert sv.Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "options",
    [
        {"hash_bits": 3},
        {"oracle": "olh", "hash_bits": "x"},
        {"oracle": "cms", "salt": "x"},
        {"oracle": "cms", "hashes": 16.5},
        {"oracle": "cms", "hashes": 24},
        {"oracle": "the", "theta": "nan"},
        {"oracle": "ss", "chosen": 2.9},
        {"oracle": "ss", "chosen": 8},
        {"oracle": "rappor", "instantaneous": ["0.2"]},
        {"oracle": "rappor", "instantaneous": ["0.2", "0.4"]},
        {"oracle": "o-rr", "alphabet": "closed", "hashes": 2},
        {"bytes": "many"},
    ],
)
def test_bad_options_have_one_clear_error(options: dict[str, object]) -> None:
    with pytest.raises(sv.InvalidInput):
        sv.plan(SCHEMA, sv.Frequencies("x", **options), epsilon=1.0, people=100)  # type: ignore[arg-type]


def test_public_names_stay_functions_whatever_is_loaded_first() -> None:
    import subprocess
    import sys

    code = (
        "import sottovoce as sv; sv.Aggregate; sv.Client; assert callable(sv.plan) and "
        "callable(sv.postprocess)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
