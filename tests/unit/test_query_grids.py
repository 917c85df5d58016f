"""Shifted grids: who is asked what, what is expected, and what comes out of reports."""

from __future__ import annotations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.queries.fitted import FittedTable, Joint
from sottovoce.questions.queries.methods import method
from sottovoce.questions.queries.methods.grids import cuts_of
from sottovoce.questions.queries.models.functionals import quantile_codes

SCHEMA = sv.Schema(
    age=sv.Ordinal(0, 63),
    hours=sv.Ordinal(0, 19),
    state=sv.Categorical("abcde"),
    amount=sv.Number(0, 100, step="1", sensitive=False),
)
PEOPLE = 30_000


def crowd(seed: int):
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(25, 10, PEOPLE), 0, 63).astype(int)
    hours = np.clip(age / 4 + rng.normal(0, 3, PEOPLE), 0, 19).astype(int)
    state = np.array(list("abcde"))[rng.choice(5, PEOPLE, p=[0.4, 0.3, 0.15, 0.1, 0.05])]
    amount = np.clip(age + rng.integers(0, 20, PEOPLE), 0, 100)
    return {"age": age, "hours": hours, "state": state, "amount": amount}


def planned(dimensions, epsilon=3.0, name="grids", **options):
    question = sv.Queries(dimensions, measures=["amount"], method=name, **options)
    return sv.plan(SCHEMA, question, epsilon=epsilon, people=PEOPLE)


@pytest.mark.parametrize("size", [2, 3, 5, 10, 64, 100, 1000, 1023])
@pytest.mark.parametrize("cells", [0, 4, 8, 32, 128])
def test_cuts_are_shifted_by_less_than_their_width_and_cut(size, cells):
    cuts = cuts_of(size, cells, True)
    assert len({(cut.width, cut.shift) for cut in cuts}) == len(cuts) <= 8
    for cut in cuts:
        assert 0 <= cut.shift < cut.width < size + cut.shift
    if cells and cells < size:
        assert 0.5 < size / cuts[0].width / cells < 2
    assert [(cut.width, cut.shift) for cut in cuts_of(size, cells, False)] == [(1, 0)]


def share_of_singles(plan) -> float:
    weights = {1: 0, 2: 0}
    for cohort in plan.cohorts:
        weights[len(cohort.asks[0].encoding.attributes)] += cohort.weight
    return weights[1] / sum(weights.values())


def test_one_dimension_or_two_at_once_decide_who_is_asked():
    assert share_of_singles(planned(["age"])) == 1
    assert share_of_singles(planned(["age", "hours"])) == pytest.approx(0.6 / 1.05, abs=0.01)
    assert share_of_singles(planned(["age", "hours", "state"])) == pytest.approx(0.3, abs=0.01)
    alone = planned(["age", "hours"], workload={"dimensions": [1]})
    assert share_of_singles(alone) == 1


def test_auto_takes_grids_and_says_what_it_expects():
    plan = planned(["age"], 1.0, "auto")
    assert plan.question.method == "grids"
    assert "a cascade of splits" in str(plan)
    target = plan.question.target(SCHEMA)
    errors = {}
    for name in ("grids", "unbiased", "tree", "hio"):
        way = method(name)
        errors[name] = way.predict(target, plan.terms, way.settle(target, plan.terms))
    assert errors["grids"] < errors["unbiased"] < errors["tree"] < errors["hio"]


def test_too_many_codes_are_refused():
    schema = sv.Schema(pay=sv.Ordinal(0, 9999), age=sv.Ordinal(0, 9))
    with pytest.raises(InvalidInput, match=r"10,000 values is more than 4,096"):
        sv.plan(schema, sv.Queries(["pay"], method="grids"), epsilon=1, people=100)
    with pytest.raises(InvalidInput, match="it is for one dimension"):
        sv.plan(schema, sv.Queries(["pay", "age"], method="unbiased"), epsilon=1, people=100)


SELECTIONS = [
    (["age"], {"age": (20, 40)}),
    (["state"], {"state": "b"}),
    (["age", "hours"], {"age": (20, 40), "hours": (5, 9)}),
    (["age", "hours", "state"], {"age": (20, 40), "hours": (3, 9), "state": ["a", "b"]}),
]


@pytest.mark.parametrize(("dimensions", "selection"), SELECTIONS)
def test_answers_are_near_the_truth_and_equal_weights_give_the_count(dimensions, selection):
    people = crowd(1)
    plan = planned(dimensions)
    reports = sv.simulate(plan, {name: list(each) for name, each in people.items()}, seed=2)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    inside = np.ones(PEOPLE, bool)
    for name, part in selection.items():
        if isinstance(part, tuple):
            inside &= (people[name] >= part[0]) & (people[name] <= part[1])
        else:
            inside &= np.isin(people[name], list(part))
    answer = estimate.count(**selection)
    assert abs(answer.value - inside.sum()) < 5 * answer.std_error
    assert answer.std_error < 0.05 * PEOPLE
    assert not estimate.is_unbiased
    term = estimate.term(**selection)
    equal = estimate.weighted(reports, np.full(PEOPLE, 3))
    assert equal.joint([term]).values[0] * PEOPLE == answer.value
    weights = people["amount"].astype(np.int64)
    total = estimate.weighted(reports, weights).joint([term])
    truth = weights[inside].sum() / weights.sum()
    assert abs(total.values[0] - truth) < 5 * total.std_errors[0]


def test_unbiased_is_of_the_same_people():
    plan, other = planned(["age"], name="unbiased"), planned(["age"])
    assert [each.to_json() for each in plan.cohorts] == [each.to_json() for each in other.cohorts]
    reports = sv.simulate(plan, {name: list(each) for name, each in crowd(1).items()}, seed=2)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    assert estimate.is_unbiased
    assert estimate.fitted.joint([{}]).values == pytest.approx([1.0])


class Known(FittedTable):
    """A table whose frequencies are known, with equal errors and no draws."""

    is_unbiased = True

    def __init__(self, frequencies) -> None:
        self.frequencies = np.array(frequencies)
        self.sizes = (self.frequencies.size,)

    def joint(self, terms):
        values = np.array([term[0] @ self.frequencies for term in terms])
        return Joint(values, 1e-12 * np.eye(len(terms)))


def test_quantiles_are_where_sums_cross_them():
    median = quantile_codes(Known([0.25, 0.25, 0.5]), 0, 0.5)
    assert median.value == pytest.approx(2.0)
    low, high = median.interval()
    assert low == pytest.approx(2.0, abs=1e-3)
    assert high == pytest.approx(2.0, abs=1e-3)
    assert quantile_codes(Known([0.25, 0.25, 0.5]), 0, 0.75).value == pytest.approx(2.5)
    assert quantile_codes(Known([0.0, 1.0, 0.0]), 0, 0.5).value == pytest.approx(1.5)
    assert quantile_codes(Known([0.3, -0.1, 0.8]), 0, 1.0).value <= 3
