"""Popular items and itemsets: plans, rounds, what becomes public, and bad input."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from math import exp, prod
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.client import ClientState
from sottovoce.ground.errors import InvalidInput, NotInThisRound
from sottovoce.protocol.encodings import Drawn, Held, Padded
from sottovoce.questions.base import Question
from sottovoce.questions.itemsets.guesses import GUESS_FACTOR, guessed_sets
from sottovoce.questions.itemsets.known import ItemsHeard, Known
from sottovoce.questions.itemsets.padding import best_oracle, padded_ask, prefers_grr
from sottovoce.questions.itemsets.prediction import rare_error
from sottovoce.questions.itemsets.sizes import Sizes

ITEMS = 40
SCHEMA = sv.Schema(basket=sv.Items(range(ITEMS)), age=sv.Ordinal(0, 9))
QUESTIONS: list[Question] = [
    sv.TopItems("basket", top=4, method="psfo", length=3),
    sv.TopItems("basket", top=4, method="psfo", length=12, delta="0.0001"),
    sv.TopItems("basket", top=4, method="psfo", length=3, oracle="grr"),
    sv.TopItems("basket", top=4, method="ldpminer"),
    sv.TopItems(
        "basket",
        top=4,
        method="ldpminer",
        first_oracle="olh",
        first_length=1,
        second_oracle="adaptive",
    ),
    sv.TopItems("basket", top=4, method="ldpminer", split="budget", first_length=3),
    sv.TopItems("basket", top=4, method="svim"),
    sv.TopItems("basket", top=30, method="svim"),
    sv.TopItems("basket", top=4),
    sv.TopItemsets("basket", top=8, method="svsm"),
    sv.TopItemsets("basket", top=8, method="ldpminer"),
    sv.TopItemsets("basket", top=8),
]


def baskets(people: int, seed: int = 1) -> list[list[int]]:
    """Item i with chance 0.8 / (i + 1), independently; items 0 and 3 often together."""
    draws = np.random.default_rng(seed)
    chances = 0.8 / (1 + np.arange(ITEMS))
    held = draws.random((people, ITEMS)) < chances
    held[:, 3] |= held[:, 0] & (draws.random(people) < 0.6)
    return [np.flatnonzero(row).tolist() for row in held]


TABLE = {"basket": baskets(6000)}


def walk(
    question: Question, table: Any = TABLE, epsilon: float = 3.0
) -> tuple[list[sv.Plan], sv.Findings]:
    """All plans of a question, and the last estimate."""
    plans = [sv.plan(SCHEMA, question, epsilon=epsilon, people=6000)]
    while True:
        estimate = sv.Aggregate(plans[-1]).add(sv.simulate(plans[-1], table, seed=3)).estimate()
        following = sv.next_plan(plans[-1], estimate)
        if following is None:
            assert isinstance(estimate, sv.Findings)
            return plans, estimate
        plans.append(following)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.kind} {q.method} {q.top}")
def test_the_plans_of_every_round_can_be_read_back(question: Question) -> None:
    plans, found = walk(question)
    for plan in plans:
        again = sv.Plan.from_json(plan.to_json(), id=plan.id)
        assert again == plan
        assert again.question.to_json() == plan.question.to_json()
        assert plan.guarantee.lifetime <= 3.0
        assert "Found with even chances" in str(plan)
        json.loads(plan.to_json(), parse_float=lambda text: pytest.fail(f"a float: {text}"))
    assert 1 <= len(found.table.labels) <= question.top  # type: ignore[attr-defined]
    assert (np.diff(found.table.values) <= 0).all()
    assert len(found.chance) == len(found.table.labels)
    label = found.table.labels[0]
    assert label in (0, (0,), 3, (3,))


@pytest.mark.parametrize("method", ["svim", "auto", "ldpminer"])
def test_nobody_answers_two_rounds(method: str) -> None:
    plans, _ = walk(sv.TopItems("basket", top=4, method=method))
    answered = []
    for _ in range(60):
        state, rounds = ClientState(), []
        for number, plan in enumerate(plans):
            try:
                sv.Client(plan, state=state).report({"basket": [0, 3]})
                rounds.append(number)
            except NotInThisRound:
                pass
        assert len(rounds) == 1
        answered += rounds
    assert set(answered) >= {0, len(plans) - 1} if method != "auto" else len(set(answered)) > 1
    simulated = sum(len(sv.simulate(plan, TABLE, seed=3)) for plan in plans)
    assert simulated == len(TABLE["basket"])


def test_the_rounds_of_each_method() -> None:
    def shares(question: Question) -> tuple[int, ...]:
        return sv.plan(SCHEMA, question, epsilon=2.0, people=10_000).series.shares

    assert shares(sv.TopItems("basket", top=4, method="psfo", length=2)) == (1,)
    assert shares(sv.TopItems("basket", top=4, method="svim")) == (50, 10, 40)
    assert shares(sv.TopItems("basket", top=4, method="ldpminer")) == (10, 40, 50)
    assert shares(sv.TopItems("basket", top=4, method="ldpminer", first_length=1)) == (50, 50)
    # every item is a candidate
    assert shares(sv.TopItems("basket", top=20, method="svim")) == (
        10,
        90,
    )
    assert shares(sv.TopItemsets("basket", top=4, method="svsm")) == (50, 10, 40, 20, 80)
    assert shares(sv.TopItems("basket", top=4, method="svim", shares=[1, 1, 2])) == (1, 1, 2)


def test_svim_is_asked_as_the_thesis_says() -> None:
    plans, _ = walk(sv.TopItems("basket", top=4, method="svim"))
    asks = [plan.cohorts[0].asks[0] for plan in plans]
    first, sizes, counts = (ask.encoding for ask in asks)
    assert isinstance(first, Padded)
    assert isinstance(sizes, Held)
    assert isinstance(counts, Padded)
    assert (first.length, first.candidates) == (1, None)
    assert sizes.candidates == counts.candidates
    assert sizes.candidates is not None
    assert len(sizes.candidates) == 8
    assert asks[1].oracle.names[0] == "olh"
    assert counts.length == plans[2].question.known.length  # type: ignore[attr-defined]


def test_ldpminer_is_asked_as_it_was_evaluated() -> None:
    plans, found = walk(sv.TopItems("basket", top=4, method="ldpminer"))
    asks = [plan.cohorts[0].asks[0] for plan in plans]
    assert [ask.oracle.names[0] for ask in asks] == ["olh", "blh", "sue"]
    assert isinstance(asks[2].encoding, Padded)
    assert asks[2].encoding.length == 8  # 2k: nothing is missed
    assert found.table.is_unbiased


def test_a_split_budget_asks_everybody_twice() -> None:
    plans, _ = walk(sv.TopItems("basket", top=4, method="ldpminer", split="budget", first_length=3))
    assert len(plans) == 2
    assert sum(plan.guarantee.lifetime for plan in plans) <= 3.0
    assert all(len(sv.simulate(plan, TABLE, seed=3)) == 6000 for plan in plans)
    assert "half of epsilon" in str(plans[0])


def _report(plan: sv.Plan | None, basket: list[int]) -> sv.Report | None:
    """What a new device sends, if it is in the plan's round."""
    assert plan is not None
    try:
        return sv.Client(plan, state=ClientState()).report({"basket": basket})
    except NotInThisRound:
        return None


def test_auto_whispers_whole_sets() -> None:
    many = sv.Schema(basket=sv.Items(range(2000)))
    plan: sv.Plan | None = sv.plan(many, sv.TopItems("basket", top=4), epsilon=1.0, people=6000)
    kinds = []
    while plan is not None:
        assert plan.question.method == "wheel"  # type: ignore[attr-defined]
        kinds.append(type(plan.cohorts[0].asks[0].encoding))
        alone = [
            report for _ in range(60) if (report := _report(plan, list(range(20)))) is not None
        ]
        assert len(alone) > 0 or plan.series.shares[plan.series.number] < 10
        assert sv.Aggregate(plan).add(alone).people == len(alone)
        plan = sv.next_plan(
            plan, sv.Aggregate(plan).add(sv.simulate(plan, TABLE, seed=3)).estimate()
        )
    assert kinds[:3] == [Held, Drawn, Held]
    assert len(kinds) == 4


# -- choices


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
@pytest.mark.parametrize("length", [1, 3, 8])
def test_the_adaptive_choice_is_where_the_two_variances_cross(epsilon: str, length: int) -> None:
    """Eq. (5.3) follows from (5.1) and (5.2)."""
    odds = exp(float(epsilon))
    for count in (2, 10, 50, 100, 300, 1000, 5000):
        direct = (odds * length + count - 1) / (odds - 1) ** 2
        hashed = 4 * length**2 * odds / (odds - 1) ** 2
        assert prefers_grr(count, length, Decimal(epsilon)) == (direct < hashed)


@pytest.mark.parametrize("length", [2, 5])
def test_variances_5_1_and_5_2(length: int) -> None:
    odds, people, count = exp(1.0), 1000, 60
    direct = padded_ask("basket", count, None, length, "grr", Decimal(1))
    assert rare_error(direct, people) ** 2 == pytest.approx(
        (odds * length + count - 1) / (odds - 1) ** 2 / people
    )
    hashed = padded_ask("basket", count, None, length, "olh", Decimal(1))
    ideal = 4 * length**2 * odds / (odds - 1) ** 2 / people
    # a hash to 4 values, not to e + 1
    assert ideal <= rare_error(hashed, people) ** 2 <= 1.01 * ideal


def test_whole_sets_err_less_than_samples() -> None:
    for epsilon in (0.5, 1.0, 2.0):
        for count, length in ((128, 3), (128, 6), (5000, 4)):
            odds = exp(epsilon)
            samples = min((odds * length + count - 1), 4 * length**2 * odds) / (odds - 1) ** 2
            assert best_oracle(count, length, Decimal(str(epsilon)))[1] <= samples * 1.001


def test_guessed_sets_are_those_of_brute_force() -> None:
    draws = np.random.default_rng(5)
    frequencies = {int(item): float(value) for item, value in enumerate(draws.random(9) * 0.5)}
    largest = max(frequencies.values())
    every = [
        (prod(GUESS_FACTOR * frequencies[item] / largest for item in items), items)
        for size in (2, 3)  # 1 < size < log2(16)
        for items in combinations(range(9), size)
    ]
    best = {items for _, items in sorted(every, reverse=True)[:32]}
    assert set(guessed_sets(frequencies, top=16, wanted=32)) == best
    assert guessed_sets({1: 0.0}, top=16, wanted=4) == ()
    assert guessed_sets({}, top=16, wanted=4) == ()
    assert guessed_sets({1: 0.2, 2: 0.1, 3: -0.1}, top=16, wanted=4) == ((1, 2),)


def test_sizes() -> None:
    shares = np.array([0.2, 0.3, 0.25, 0.15, 0.06, 0.04])
    sizes = Sizes(shares, 1e-6)
    assert sizes.percentile() == 4  # 0.76 of 0.8 who hold any
    numbers = np.arange(6)
    total = (numbers * shares).sum()
    missed = sum((number - 2) * shares[number] for number in range(3, 6))
    assert sizes.update_factor(2) == pytest.approx(total / (total - missed))  # eq. (5.5)
    assert sizes.update_factor(5) == 1.0
    noisy = Sizes(np.array([0.5, 0.4, 0.01, -0.01, 0.1, 0.0]), 0.01**2)
    assert noisy.filtered().shares.tolist() == [0.5, 0.4, 0.0, 0.0, 0.1, 0.0]
    assert not Sizes(np.array([0.9, 0.01, 0.0]), 1.0).filtered().is_known
    again = Sizes.from_json(noisy.to_json())
    assert again.shares.tolist() == noisy.shares.tolist()
    assert again.variance == pytest.approx(noisy.variance)


def test_what_is_known_survives_json() -> None:
    known = Known(
        ((1,), (2, 3)),
        Sizes(np.array([0.5, 0.5]), 0.1),
        2,
        (ItemsHeard((4,), 0.25, 1e-3, 0.5, 0.125, 1e-4, 2e-4, 0.1, 0.02),),
        1.5,
        ("a note",),
    )
    text = json.dumps(known.to_json())
    assert Known.from_json(json.loads(text)).to_json() == known.to_json()


# -- bad input and honest answers


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top": 0}, "top"),
        ({"top": 4, "method": "apriori"}, "must be one of auto, psfo, ldpminer, svim, wheel"),
        ({"top": 4, "method": "svim", "length": 3}, "option 'length' is not one of svim's"),
        ({"top": 4, "method": "psfo"}, "length must be given for psfo"),
        ({"top": 4, "method": "psfo", "length": 0}, "length"),
        ({"top": 4, "method": "psfo", "length": 2, "oracle": "rappor"}, "oracle"),
        (
            {"top": 4, "method": "psfo", "length": 2, "oracle": "olh", "delta": "0.01"},
            "olh-seeded",
        ),
        ({"top": 4, "method": "svim", "shares": [1, 2]}, "shares"),
        ({"top": 4, "method": "svim", "update": 1}, "update"),
        ({"top": 4, "method": "ldpminer", "split": "budget"}, "first_length"),
        ({"top": 4, "method": "ldpminer", "split": "half"}, "split"),
        ({"top": 4, "method": "svim", "first_length": "long"}, "first_length"),
        ({"top": 4, "method": 3}, "method"),
    ],
)
def test_bad_questions_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sv.plan(SCHEMA, sv.TopItems("basket", **arguments), epsilon=1.0, people=1000)


def test_bad_attributes_and_people_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no set of items"):
        sv.plan(SCHEMA, sv.TopItems("age", top=2), epsilon=1.0, people=1000)
    with pytest.raises(InvalidInput, match="must be one of auto, ldpminer, svsm, wheel"):
        sv.plan(SCHEMA, sv.TopItemsets("basket", top=2, method="psfo"), epsilon=1.0, people=1000)
    with pytest.raises(InvalidInput, match=r"people \(12\) must be at least"):
        sv.plan(SCHEMA, sv.TopItems("basket", top=2, method="svim"), epsilon=1.0, people=12)
    public = sv.Schema(basket=sv.Items(range(9), sensitive=False))
    with pytest.raises(InvalidInput, match="public"):
        sv.plan(public, sv.TopItems("basket", top=2), epsilon=1.0, people=1000)
    question = sv.TopItems("basket", top=2, method="psfo", length=2)
    plan = sv.plan(SCHEMA, question, epsilon=1.0, people=1000)
    for wrong in ([99], 7, "0;x"):
        with pytest.raises(InvalidInput, match="basket") as caught:
            sv.Client(plan, invalid="raise").report({"basket": wrong})
        assert "99" not in str(caught.value)
    with pytest.raises(InvalidInput, match="no reports"):
        sv.Aggregate(plan).estimate()


def test_empty_and_repeated_sets_are_fine() -> None:
    plan = sv.plan(
        SCHEMA, sv.TopItems("basket", top=2, method="psfo", length=2), epsilon=2.0, people=4000
    )
    reports = sv.simulate(plan, {"basket": [[], [1, 1, 2, 1]] * 2000}, seed=1)
    table = sv.Aggregate(plan).add(reports).estimate().table
    assert set(table.labels) == {1, 2}
    assert (np.abs(table.values - 0.5) < 5 * table.std_error).all()


def test_a_top_beyond_all_items_is_an_honest_smaller_answer() -> None:
    _, found = walk(sv.TopItems("basket", top=100, method="psfo", length=3))
    assert len(found.table.labels) == ITEMS
    assert any("Only 40 of the 100" in note for note in found.notes)
    assert any("not significant" in note for note in found.notes)


def test_no_significant_size_is_told() -> None:
    plan = sv.plan(SCHEMA, sv.TopItems("basket", top=4, method="svim"), epsilon=0.5, people=200)
    found = sv.simulate_rounds(plan, {"basket": baskets(200)}, seed=2)
    assert isinstance(found, sv.Findings)
    assert any("No size" in note for note in found.notes)


def test_sets_that_nobody_could_build_end_the_rounds_early() -> None:
    plan = sv.plan(
        sv.Schema(basket=sv.Items(["a", "b"])),
        sv.TopItemsets("basket", top=4),
        epsilon=6.0,
        people=20_000,
    )
    found = sv.simulate_rounds(plan, {"basket": [["a"]] * 20_000}, seed=2)
    assert found.table.labels[0] == ("a",)


# -- rules


def test_rules_between_what_was_found() -> None:
    _, found = walk(sv.TopItemsets("basket", top=8, method="svsm"))
    rules = found.rules()  # type: ignore[attr-defined]
    named = {(rule.given, rule.then): rule for rule in sv.rules(found)}
    assert [rule.confidence.value for rule in rules] == sorted(
        (r.confidence.value for r in rules), reverse=True
    )
    rule = named[((0,), (3,))]
    table = dict(
        zip(
            found.table.labels,
            zip(found.table.values, found.table.std_error, strict=True),
            strict=True,
        )
    )
    (both, both_error), (one, one_error), (other, _) = table[(0, 3)], table[(0,)], table[(3,)]
    assert rule.support.value == both
    assert rule.confidence.value == pytest.approx(both / one)
    relative = (both_error / both) ** 2 + (one_error / one) ** 2
    assert rule.confidence.std_error == pytest.approx(both / one * relative**0.5)
    assert rule.lift is not None
    assert rule.lift.value == pytest.approx(both / one / other)
    low, high = rule.confidence.interval()
    held = [set(row) for row in TABLE["basket"]]
    truth = sum({0, 3} <= row for row in held) / sum(0 in row for row in held)
    assert low < truth < high
    assert all(r.confidence.value >= 0.5 for r in sv.rules(found, least_confidence=0.5))
    assert "->" in str(rule)
    assert json.dumps(rule.to_json())
    with pytest.raises(InvalidInput, match="least_confidence"):
        sv.rules(found, least_confidence=2)


@pytest.mark.parametrize("name", ["she", "rappor", "olh-sets", "magic"])
def test_sizes_are_told_through_an_oracle_that_can_be_read(name: str) -> None:
    question = sv.TopItems("basket", top=4, method="svim", sizes_oracle=name)
    with pytest.raises(InvalidInput, match="sizes_oracle"):
        sv.plan(sv.Schema(basket=sv.Items(range(20))), question, epsilon=1.0, people=1000)
