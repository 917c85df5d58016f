"""Privacy of the older heavy-hitter plans by enumeration: for fixed public coins, from every value
to every report.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.api.planning import next_plan
from sottovoce.ground.entropy import Assigned, Seeded, exact_law
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.families.base import Cohort
from tests.statistics import NO_COINS

EPSILON = Decimal("1.2")
SEEDS = range(12)  # of public coins: rows and seeds of hashes, which tell nothing of a value
PLANS: dict[str, tuple[str, int, dict[str, Any]]] = {  # the method, bits of a value, options
    "spm": ("spm", 4, {"segment": 2}),
    "spm, short segments": ("spm", 3, {"segment": 1}),
    "spm, people": ("spm", 4, {"segment": 2, "split": "people"}),
    "hash": ("hash", 4, {"block": 2}),
    "hash, people": ("hash", 4, {"block": 2, "split": "people"}),
    "priv-trie": ("priv-trie", 2, {}),
    "o-rr": ("o-rr", 3, {"cohorts": 2, "buckets": 3}),
    "rappor": ("rappor", 2, {"cohorts": 2, "buckets": 3, "hashes": 1}),
}


def make(name: str, epsilon: Decimal = EPSILON) -> sv.Plan:
    method, bits, options = PLANS[name]
    question = sv.HeavyHitters("x", top=2, method=method, **options)
    return sv.plan(sv.Schema(x=sv.Integer(bits=bits)), question, epsilon=epsilon, people=10_000)


def law_of(ask: Ask, value: int, seed: int) -> dict[Any, Fraction]:
    """The chance of each report of a value, by the randomizer's own code, along every way its
    private coins fall.
    """
    encoded = ask.encoding.encode({"x": value}, NO_COINS)
    return exact_law(
        lambda entropy: ask.oracle.randomize(encoded, Assigned(Seeded(seed), entropy)), 1 << 14
    )


def ratios(ask: Ask, spellings: range, seed: int) -> list[list[Fraction]]:
    """The largest ratio of the chances of one report, for each pair of values."""
    laws = [law_of(ask, value, seed) for value in spellings]
    outputs = set().union(*laws)
    return [[max(one[each] / other[each] for each in outputs) for other in laws] for one in laws]


def worst_of(cohort: Cohort, spellings: range) -> Iterator[Fraction]:
    """The same for all asks of a cohort together: they toss their own coins, so that chances
    multiply.
    """
    for seed in SEEDS:
        tables = [
            ratios(ask, spellings, seed + 100 * place) for place, ask in enumerate(cohort.asks)
        ]
        for one, other in product(spellings, repeat=2):
            joint = Fraction(1)
            for table in tables:
                joint *= table[one][other]
            yield joint


def worst_ratio(plan: sv.Plan) -> Fraction:
    spellings = range(1 << plan.schema["x"].spelling_bits)
    return max(ratio for cohort in plan.cohorts for ratio in worst_of(cohort, spellings))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_keeps_its_epsilon_and_says_what_it_spends(name: str) -> None:
    plan = make(name)
    worst = worst_ratio(plan)
    assert not exceeds(worst, plan.epsilon)
    assert log_ratio(worst) == pytest.approx(plan.guarantee.per_report, rel=1e-12)
    assert plan.guarantee.lifetime <= float(EPSILON) * (1 + 1e-15 * len(plan.cohorts[0].asks))


@pytest.mark.parametrize(
    "name", ["spm", "spm, people", "hash", "hash, people", "priv-trie", "o-rr"]
)
def test_coins_of_a_larger_epsilon_are_caught(name: str) -> None:
    assert exceeds(worst_ratio(make(name, Decimal("1.21"))), EPSILON)


@pytest.mark.parametrize(("name", "asks"), [("spm", 3), ("hash", 2)])
def test_a_budget_is_split_evenly_and_adds_up(name: str, asks: int) -> None:
    plan = make(name)
    for cohort in plan.cohorts:
        assert len(cohort.asks) == asks
        assert len({ask.oracle.requested for ask in cohort.asks}) == 1
        assert cohort.requested <= Fraction(EPSILON)
        assert float(cohort.requested) == pytest.approx(float(EPSILON), rel=1e-8)


@pytest.mark.parametrize(("name", "asks"), [("spm, people", 2), ("hash, people", 1)])
def test_a_tenth_of_people_test(name: str, asks: int) -> None:
    testers, *others = make(name).cohorts
    assert [ask.oracle.requested for ask in testers.asks] == [EPSILON]
    assert testers.weight * 9 == sum(cohort.weight for cohort in others)
    assert {len(cohort.asks) for cohort in others} == {asks}


def test_a_later_round_of_a_trie_keeps_its_epsilon() -> None:
    schema = sv.Schema(x=sv.Text(bytes=2, alphabet="abc"))
    question = sv.HeavyHitters("x", top=2, method="priv-trie", batches=2)
    first = sv.plan(schema, question, epsilon=EPSILON, people=20_000)
    people = {"x": ["ab"] * 12_000 + ["cc"] * 8_000}
    second = next_plan(
        first, sv.Aggregate(first).add(sv.simulate(first, people, seed=3)).estimate()
    )
    assert second is not None
    assert len(second.cohorts) == 2
    worst = worst_ratio(second)
    assert not exceeds(worst, EPSILON)
    assert log_ratio(worst) == pytest.approx(second.guarantee.lifetime, rel=1e-12)
