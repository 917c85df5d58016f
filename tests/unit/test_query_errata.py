"""Where chapter 7 of wang2021thesis is wrong: the printed form fails, the corrected one holds.

Numbers are those of docs/errata.md. That errors are those of the corrected formulas is tested in
tests/statistical/test_query_methods.py, crossovers in tests/unit/test_queries.py.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.aggregation.aggregate import fold
from sottovoce.protocol.terms import Terms
from sottovoce.questions.queries.hierarchy import Hierarchy
from sottovoce.questions.queries.methods import method
from sottovoce.questions.queries.target import Dimension, Target
from tests.statistics import ALPHA


def test_11_the_error_of_a_weighted_sum_goes_with_the_largest_weight_not_with_the_range() -> None:
    people, runs = 100, 2000
    weights = 1000 + np.arange(people) % 2  # max - min is 1, max |M| is 1001
    schema = sv.Schema(x=sv.Categorical(range(8)))
    plan = sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=1, people=people)
    reports = sv.simulate(plan, {"x": [0] * people * runs}, seed=11)
    sums = []
    for run in range(runs):
        own = fold(plan, reports[run * people : (run + 1) * people], weights)
        shares, _ = own.frequencies(0)
        sums.append(shares[5] * weights.sum())  # which nobody holds
    # 4 M_S^2 E/(E - 1)^2 at g = E + 1, and M_S^2 <= n max|M|^2; of this hash exactly
    exact = float((weights.astype(float) ** 2).sum()) * plan.cohorts[0].oracles[0].variance(1)
    odds = math.e
    printed = people * 1.0**2 * 4 * odds / (odds - 1) ** 2  # with Delta = max - min
    corrected = people * 1001.0**2 * 4 * odds / (odds - 1) ** 2
    ratio = np.var(sums, ddof=1) / exact
    low, high = chi2.ppf([ALPHA, 1 - ALPHA], runs - 1) / (runs - 1)
    assert low < ratio < high
    assert exact > 1000 * printed
    assert exact == pytest.approx(corrected, rel=0.02)


def worst_range(size: int, fanout: int) -> tuple[int, np.ndarray]:
    """The range that needs most intervals, and how many."""
    tree = Hierarchy(size, fanout, True)
    worst, found = 0, np.zeros(size)
    for first in range(size):
        for last in range(first + 1, size + 1):
            weights = np.zeros(size)
            weights[first:last] = 1
            count = sum(np.count_nonzero(part) for part in tree.decompose(weights))
            if count > worst:
                worst, found = count, weights
    return worst, found


@pytest.mark.parametrize(("fanout", "height"), [(2, 5), (3, 4), (4, 3), (5, 3)])
def test_a_range_needs_fewer_intervals_than_printed(fanout: int, height: int) -> None:
    worst, _ = worst_range(fanout**height, fanout)
    assert worst == 2 * (fanout - 1) * (height - 1) + fanout - 2
    assert worst < 2 * (fanout - 1) * height


def test_12_hio_errs_by_more_than_its_printed_bound() -> None:
    """b = 5, h = 4, two dimensions of which one is selected, epsilon 1/2, per squared weight."""
    fanout, height, epsilon = 5, 4, Decimal("0.5")
    size = fanout**height
    weights = np.zeros(size)
    weights[1 : size - 1] = 1  # both ends are cut at every level
    tree = Hierarchy(size, fanout, True)
    count = sum(np.count_nonzero(part) for part in tree.decompose(weights))
    assert count == 2 * (fanout - 1) * (height - 1) + fanout - 2
    target = Target((Dimension("a", size, True), Dimension("b", size, True)))
    people = 10**9
    hio = method("hio")
    terms = Terms(epsilon, people)
    (predicted,) = hio.predict_terms(target, terms, hio.settle(target, terms), [{0: weights}])  # type: ignore[misc]
    error = predicted * people
    odds = math.exp(0.5)
    levels = (height + 1) ** 2
    per_level = (odds**2 + 1) / (odds - 1) ** 2
    printed = (2 * (fanout - 1) * (height + 1)) * levels * per_level
    assert printed == pytest.approx(8835, rel=1e-3)
    assert error > 10155 > printed
    # nobody answers the level (0, 0), and the factor 2 of proposition 7.2.2
    corrected = 2 * (2 * (fanout - 1) * height) * (levels - 1) * per_level
    assert error < corrected


def test_relative_errors_of_table_7_3_are_over_the_truth() -> None:
    for estimate, truth, printed in ((0.185, 0.168, 0.102), (0.154, 0.168, 0.081)):
        assert abs(estimate - truth) / truth == pytest.approx(printed, abs=0.003)
        assert abs(estimate - truth) / estimate != pytest.approx(printed, abs=0.003)
