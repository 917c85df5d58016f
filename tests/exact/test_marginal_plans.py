"""Privacy of whole plans by enumeration: from every record to every report, for each method and
cohort.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.client import Client
from sottovoce.ground.entropy import exact_law
from sottovoce.measure.choices import MethodChoice
from sottovoce.oracles import Oracle
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.families import Family
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import METHODS, method
from tests.statistics import NO_COINS

EPSILON = Decimal("1")
MIXED = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Boolean())
BINARY = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
# options that keep the outputs few enough to list
SMALL: dict[str, dict[str, Any]] = {"inp-htcms": {"hashes": 4, "width": 4}}
VARIANTS = ["inp-rr:coins=oue", "marg-rr:coins=oue"]  # methods whose options change the coins
NAMES = [*(each.name for each in METHODS), *VARIANTS]

_ratios: dict[Oracle, list[list[Fraction]]] = {}


def make(name: str) -> sv.Plan:
    """A plan on mixed sizes, or on bits for methods that take nothing else."""
    choice = MethodChoice.parse(name)
    options = {**SMALL.get(name, {}), **choice.options}
    for schema in (MIXED, BINARY):
        question = sv.Marginals(up_to=2, method=choice.method, **options)
        if method(choice.method).refuse(question.work(schema), Terms(EPSILON, 10_000)) is None:
            return sv.plan(schema, question, epsilon=EPSILON, people=10_000)
    raise AssertionError(f"{name} fits neither schema")


def records(schema: sv.Schema) -> list[dict[str, int]]:
    """Every record there is, as codes."""
    names = list(schema)
    return [
        dict(zip(names, codes, strict=True))
        for codes in product(*(range(schema[name].size) for name in names))
    ]


def ratios(oracle: Oracle) -> list[list[Fraction]]:
    """The largest ratio of the chances of one report, for each pair of values, from the
    randomizer's own code.
    """
    if oracle not in _ratios:
        laws = oracle.exact_channel()
        outputs = oracle.outputs()
        _ratios[oracle] = [
            [max(one[out] / other[out] for out in outputs) for other in laws] for one in laws
        ]
    return _ratios[oracle]


def worst_of_one(ask: Ask, people: list[dict[str, int]]) -> Fraction:
    laws = [
        ask.oracle.exact_channel()[value]
        for value in {ask.encoding.encode(codes, NO_COINS) for codes in people}
    ]
    chances = [[law.get(output, Fraction(0)) for law in laws] for output in ask.oracle.outputs()]
    return max(max(row) / min(row) for row in chances)


def worst_of(cohort: Cohort, people: list[dict[str, int]]) -> Fraction:
    """The largest ratio of the chances of one report under two records. Asks toss their own coins:
    chances multiply.
    """
    if len(cohort.asks) == 1:
        return worst_of_one(cohort.asks[0], people)
    values = [[ask.encoding.encode(codes, NO_COINS) for ask in cohort.asks] for codes in people]
    tables = [ratios(ask.oracle) for ask in cohort.asks]
    worst = Fraction(1)
    for one in values:
        for other in values:
            joint = Fraction(1)
            for table, mine, hers in zip(tables, one, other, strict=True):
                joint *= table[mine][hers]
            worst = max(worst, joint)
    return worst


def worst_ratio(cohorts: Family, schema: sv.Schema) -> Fraction:
    people = records(schema)
    return max(worst_of(cohort, people) for cohort in cohorts)


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_keeps_its_epsilon_and_says_what_it_spends(name: str) -> None:
    plan = make(name)
    worst = worst_ratio(plan.cohorts, plan.schema)
    assert not exceeds(worst, plan.epsilon)
    assert log_ratio(worst) == pytest.approx(plan.guarantee.per_report, rel=1e-12)
    assert plan.guarantee.per_report <= float(EPSILON)


def test_the_ratios_of_several_asks_multiply() -> None:
    plan = sv.plan(MIXED, sv.Frequencies("a", "b", split="budget"), epsilon=EPSILON, people=100)
    worst = worst_ratio(plan.cohorts, MIXED)
    assert log_ratio(worst) == pytest.approx(plan.guarantee.per_report, rel=1e-12)
    assert log_ratio(worst) > max(ask.oracle.epsilon for ask in plan.cohorts[0].asks) * 1.9


@pytest.mark.parametrize("name", NAMES)
def test_coins_of_a_larger_epsilon_are_caught(name: str) -> None:
    plan = make(name)
    question = plan.question
    assert isinstance(question, sv.Marginals)
    louder = method(question.method).cohorts(
        plan.schema, question.work(plan.schema), Decimal("1.01"), question.options
    )
    assert exceeds(worst_ratio(louder, plan.schema), plan.epsilon)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_has_the_coins_it_names(name: str) -> None:
    variant, usual = make(name), make(name.partition(":")[0])
    names = [
        {ask.oracle.names[0] for cohort in plan.cohorts for ask in cohort.asks}
        for plan in (variant, usual)
    ]
    assert names == [{"oue"}, {"sue"}]
    assert isinstance(usual.question, sv.Marginals)
    assert usual.question.options == {}  # as plans were written before there was a choice
    work, terms = usual.question.work(usual.schema), usual.round_terms
    known = method(usual.question.method)
    errors = [known.predict(work, terms, {"coins": "oue"}), known.predict(work, terms, {})]
    assert errors[0] < errors[1]


def test_other_coins_are_refused() -> None:
    question = sv.Marginals(up_to=2, method="inp-rr", coins="grr")
    with pytest.raises(sv.InvalidInput, match=r"coins \(grr\) must be one of sue, oue"):
        sv.plan(BINARY, question, epsilon=EPSILON, people=1000)


@pytest.mark.parametrize("name", ["marg-ps", "marg-ht", "inp-ps"])
def test_a_device_does_what_the_cohorts_say(name: str) -> None:
    """The client's own code along every way its coins can fall,
    the draw of its cohort among them.
    """
    plan = make(name)
    labels = [
        {"a": bool(r["a"]), "b": "xyz"[r["b"]], "c": bool(r["c"])} for r in records(plan.schema)
    ]
    laws = [
        exact_law(lambda e, x=record: Client(plan, entropy=e).report(x).to_bytes(), 1 << 12)  # type: ignore[misc]
        for record in labels
    ]
    reports = set().union(*laws)
    assert all(sum(law.values()) == 1 for law in laws)
    chances = [[law.get(report, Fraction(0)) for law in laws] for report in reports]
    assert max(max(row) / min(row) for row in chances) == worst_ratio(plan.cohorts, plan.schema)
