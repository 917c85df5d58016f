"""Sums of which one person has much: intervals know that chance drew her into a cohort."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import sottovoce as sv
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.evidence import crowd_worth

PEOPLE = 4000
CROWDS = 24
SCHEMA = sv.Schema(age=sv.Ordinal(0, 31))
HALF = (np.arange(32) < 16).astype(float)


@pytest.fixture(scope="module")
def plan() -> sv.Plan:
    return sv.plan(SCHEMA, sv.Queries(["age"], method="grids"), epsilon=5, people=PEOPLE)


def estimated(plan: sv.Plan, ages: np.ndarray, seed: int) -> tuple[sv.Reports, QueryEstimate]:
    reports = sv.simulate(plan, {"age": ages}, seed=seed)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    assert isinstance(estimate, QueryEstimate)
    return reports, estimate


def test_intervals_hold_though_one_person_has_a_quarter_of_the_weight(plan: sv.Plan) -> None:
    held, blind = 0, 0
    for seed in range(CROWDS):
        rng = np.random.default_rng([5, seed])
        ages = rng.integers(0, 32, PEOPLE)
        weights = rng.integers(50, 150, PEOPLE)
        weights[0] = weights.sum() // 3
        reports, estimate = estimated(plan, ages, seed)
        table = estimate.weighted(reports, weights)
        truth = float(weights[ages < 16].sum() / weights.sum())
        joint = table.joint([{0: HALF}])
        (low,), (high,) = joint.interval()
        held += low <= truth <= high
        # each cohort as far from the crowd as its own weights say: all but one know of nobody
        line = table.unbiased
        assert joint.unbiased is not None
        line._errors, line.people = line.cells, sum(grid.people for grid in table.evidence)
        _, covariance = line.sums(HALF[:, None])
        blind += abs(joint.unbiased.values[0] - truth) <= 1.96 * np.sqrt(covariance[0, 0])
    least = binom.ppf(1e-4, CROWDS, 0.95)
    assert held >= least
    assert blind < least


def test_a_crowd_is_worth_its_weight_squared_over_the_squares(plan: sv.Plan) -> None:
    rng = np.random.default_rng(6)
    weights = rng.integers(1, 100, PEOPLE)
    reports, estimate = estimated(plan, rng.integers(0, 32, PEOPLE), 6)
    table = estimate.weighted(reports, weights)
    assert crowd_worth(estimate.fitted.evidence) == pytest.approx(PEOPLE)
    wanted = weights.sum() ** 2 / (weights**2).sum()
    assert crowd_worth(table.evidence) == pytest.approx(wanted)
