"""What is popular, on tiny domains: every method's whole report, enumerated, keeps the plan's
promise.

Seeds of 64 bits cannot be enumerated. They are public: for some of them, all that a device may do
is listed, from the drawing of an item to the last coin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Entropy, Stream, exact_law
from sottovoce.oracles.thresholds import exceeds, log_ratio, parse_epsilon
from sottovoce.protocol.families.base import Cohort

EPSILON = "1.25"
SEEDS = 6
PEOPLE = 4_000


class Given(Entropy):
    """Public coins that are settled; all others branch."""

    def __init__(self, settled: Entropy, other: Entropy) -> None:
        self._settled = settled
        self.bits, self.below = other.bits, other.below  # type: ignore[method-assign]
        self.coin, self.coins, self.subset = other.coin, other.coins, other.subset  # type: ignore[method-assign]

    @property
    def public(self) -> Entropy:
        return self._settled

    def bits(self, count: int) -> int:
        raise AssertionError


def law(cohort: Cohort, codes: dict[str, Any], seed: bytes) -> dict[Any, Fraction]:
    """The exact chances of a person's reports, given the public coins."""

    def report(entropy: Entropy) -> tuple[Any, ...]:
        given = Given(Stream(seed), entropy)
        return tuple(
            ask.oracle.randomize(ask.encoding.encode(codes, given), given) for ask in cohort.asks
        )

    return exact_law(report, 1 << 15)


def worst(cohort: Cohort, people: list[dict[str, Any]], seed: bytes) -> Fraction:
    """The largest ratio of one report's chances under two records."""
    laws = [law(cohort, codes, seed) for codes in people]
    most = Fraction(1)
    for output in set().union(*laws):
        chances = [each.get(output, Fraction(0)) for each in laws]
        assert min(chances) > 0, "a report that some record cannot have sent"
        most = max(most, max(chances) / min(chances))
    return most


def series(plan: Any, table: dict[str, Any]) -> Iterator[Any]:
    """The plans of all rounds, as they follow from simulated people."""
    current = plan
    while current is not None:
        yield current
        estimate = sv.Aggregate(current).add(sv.simulate(current, table, seed=3)).estimate()
        current = sv.next_plan(current, estimate)


def check(plan: Any, records: list[dict[str, Any]]) -> Fraction:
    """Every cohort and seed: nobody's report costs more than the plan states, which is no more than
    was asked for.
    """
    people = [
        plan.schema.encode(record, plan.cohorts.attributes, plan.cohorts.form) for record in records
    ]
    most = Fraction(1)
    for cohort in plan.cohorts:
        for seed in range(SEEDS):
            found = worst(cohort, people, bytes([seed]))
            assert log_ratio(found) <= cohort.guarantee.per_report + 1e-12
            assert not exceeds(found, parse_epsilon(EPSILON))
            most = max(most, found)
    assert plan.guarantee.lifetime <= float(EPSILON) + 1e-12
    return most


HEAVY: list[tuple[str, dict[str, Any]]] = [
    ("windows", {"width": 4}),
    ("pem", {"lengths": [3, 6]}),
    ("pem1", {}),
    ("tree-hist", {"scramble": True}),
    ("spm", {"segment": 2}),
    ("spm", {"segment": 2, "split": "people"}),
    ("hash", {"block": 2}),
    ("hash", {"block": 2, "split": "people"}),
]


@pytest.mark.parametrize(("method", "options"), HEAVY)
def test_a_told_value_is_private(method: str, options: dict[str, Any]) -> None:
    question = sv.HeavyHitters("x", top=2, method=method, **options)
    plan = sv.plan(sv.Schema(x=sv.Integer(bits=6)), question, epsilon=EPSILON, people=PEOPLE)
    most = check(plan, [{"x": value} for value in (0, 1, 7, 32, 45, 63)])
    assert log_ratio(most) > 0.5  # and a report does say something


def test_every_round_of_a_trie_is_private() -> None:
    question = sv.HeavyHitters("x", top=2, method="priv-trie", batches=3)
    plan = sv.plan(
        sv.Schema(x=sv.Text(bytes=2, alphabet="abc")), question, epsilon=EPSILON, people=PEOPLE
    )
    plans = list(series(plan, {"x": ["ab"] * 2500 + ["c"] * 1500}))
    assert len(plans) >= 2
    for each in plans:
        check(each, [{"x": value} for value in ("", "a", "ab", "cc", "c")])


ITEMS = [
    ("psfo", {"length": 2}),
    ("psfo", {"length": 2, "oracle": "grr"}),
    ("psfo", {"length": 3, "oracle": "olh"}),
    ("svim", {}),
    ("ldpminer", {}),
    ("ldpminer", {"split": "budget", "first_length": 2, "second_oracle": "olh"}),
    ("wheel", {}),
]
BASKETS = [list(some) for size in range(5) for some in combinations(range(4), size)]


@pytest.mark.parametrize(("method", "options"), ITEMS)
def test_a_told_set_is_private(method: str, options: dict[str, Any]) -> None:
    question = sv.TopItems("x", top=2, method=method, **options)
    plan = sv.plan(sv.Schema(x=sv.Items(range(4))), question, epsilon=EPSILON, people=PEOPLE)
    for each in series(plan, {"x": [[0, 1], [0], [1, 2, 3], []] * (PEOPLE // 4)}):
        check(each, [{"x": basket} for basket in BASKETS])


@pytest.mark.parametrize(
    ("method", "options"), [("svsm", {}), ("ldpminer", {"second_oracle": "olh"}), ("wheel", {})]
)
def test_told_sets_of_items_are_private(method: str, options: dict[str, Any]) -> None:
    question = sv.TopItemsets("x", top=4, method=method, **options)
    plan = sv.plan(sv.Schema(x=sv.Items(range(4))), question, epsilon=EPSILON, people=PEOPLE)
    for each in series(plan, {"x": [[0, 1], [0, 1, 2], [1, 2, 3], []] * (PEOPLE // 4)}):
        check(each, [{"x": basket} for basket in BASKETS])


def test_a_louder_coin_is_caught() -> None:
    """A mutant whose truth coin lands heads 5% more often breaks the promise, for a value and for a
    set.
    """
    value = sv.plan(
        sv.Schema(x=sv.Integer(bits=6)), sv.HeavyHitters("x", top=2), epsilon=EPSILON, people=PEOPLE
    )
    ask = value.cohorts[0].asks[0]
    louder = replace(ask, oracle=replace(ask.oracle, truth=ask.oracle.truth * 105 // 100))
    people = [{"x": number} for number in (0, 7, 45)]
    assert any(
        exceeds(worst(Cohort((louder,)), people, bytes([seed])), parse_epsilon(EPSILON))
        for seed in range(SEEDS)
    )
    question = sv.TopItems("x", top=2, method="psfo", length=2, oracle="grr")
    basket = (
        sv.plan(sv.Schema(x=sv.Items(range(4))), question, epsilon=EPSILON, people=PEOPLE)
        .cohorts[0]
        .asks[0]
    )
    mutant = replace(basket.oracle, truth=basket.oracle.truth * 105 // 100)
    loud = Cohort(
        (replace(basket, encoding=replace(basket.encoding, epsilon=None), oracle=mutant),)
    )
    assert exceeds(worst(loud, [{"x": each} for each in BASKETS], b"1"), parse_epsilon(EPSILON))
