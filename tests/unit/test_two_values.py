"""A dimension of two values: what one has too much, the other has too little."""

from __future__ import annotations

from decimal import Decimal

import pytest

import sottovoce as sv
from sottovoce.oracles import oracle
from sottovoce.questions.queries.evidence import error_law

PEOPLE = 2000
SCHEMA = sv.Schema(member=sv.Boolean(), age=sv.Ordinal(0, 7))


@pytest.mark.parametrize("name", ["rr", "grr", "ss"])
@pytest.mark.parametrize("epsilon", ["1", "5"])
def test_errors_of_two_values_cancel(name: str, epsilon: str) -> None:
    floor, slope, cross = error_law(oracle(name, size=2, epsilon=Decimal(epsilon)), 100)
    assert floor > 0
    assert slope == pytest.approx(0.0, abs=1e-12)
    assert cross == pytest.approx(-floor)


@pytest.mark.parametrize("name", ["tree", "auto"])
def test_a_count_of_one_of_two_values_has_the_error_of_its_coins(name: str) -> None:
    plan = sv.plan(SCHEMA, sv.Queries(["member"], method=name), epsilon=1, people=PEOPLE)
    assert "tree" in str(plan)  # methods are compared, and none is without error
    people = {"member": [True, False] * (PEOPLE // 2), "age": [0] * PEOPLE}
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    answer = estimate.count(member=True)
    coins = oracle("rr", size=2, epsilon=Decimal(1)).noise(PEOPLE).floor ** 0.5 * PEOPLE
    low, high = answer.interval(0.95)
    # answers that shrink err by less, but their intervals are those of the unbiased one
    assert 0.5 * coins < answer.std_error < 1.001 * coins
    assert high - low > 0.99 * 2 * 1.96 * coins


def test_two_halves_of_a_tree_are_not_taken_for_exact() -> None:
    question = sv.Queries(["age"], method="tree", fanout=2)
    plan = sv.plan(SCHEMA, question, epsilon=1, people=PEOPLE)
    people = {"member": [True] * PEOPLE, "age": list(range(8)) * (PEOPLE // 8)}
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    answer = estimate.count(age=(0, 3))
    everybody = oracle("rr", size=2, epsilon=Decimal(1)).noise(PEOPLE).floor ** 0.5 * PEOPLE
    assert answer.std_error > everybody  # a third of the people answer for the halves
