"""AHEAD: what is cut, what all rounds say together, and plans of a series of rounds."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.api.planning import simulate_rounds
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.encodings import Intervals
from sottovoce.questions.queries.evidence import GridEvidence
from sottovoce.questions.queries.methods.adaptive import (
    AdaptiveTable,
    Growth,
    Layer,
    checked_cuts,
    grown,
    threshold,
)
from tests.statistics import ALPHA, NO_COINS

SCHEMA = sv.Schema(age=sv.Ordinal(0, 31))


def test_intervals_are_brute_force() -> None:
    encoding = Intervals(("age",), (10,), (1, 4, 9))
    codes = np.arange(10, dtype=np.uint64)
    brute = [sum(cut <= code for cut in (1, 4, 9)) for code in range(10)]
    assert encoding.encode_columns({"age": codes}, 0).tolist() == brute
    assert [encoding.encode({"age": code}, NO_COINS) for code in range(10)] == brute
    assert Intervals.from_json(encoding.to_json(), sv.Schema(age=sv.Ordinal(0, 9))) == encoding


@pytest.mark.parametrize("cuts", [[], [0], [10], [3, 3], [4, 2], ["2"], [True, 3], "25", None])
def test_bad_cuts_are_refused(cuts: object) -> None:
    with pytest.raises(sv.InvalidInput):
        checked_cuts(cuts, 10)


def test_intervals_grow_where_people_are() -> None:
    edges = np.array([0, 4, 5, 8, 16])
    shares = np.array([0.5, 0.3, 0.01, 0.2])
    # the second is a single value, the third holds too few
    assert grown(edges, shares, 0.1) == (2, 4, 5, 8, 12)
    assert grown(edges, np.zeros(4), 0.1) == (4, 5, 8)
    assert threshold(4e-4) == pytest.approx(np.sqrt(3 * 4e-4))


def test_what_was_left_whole_stays_whole() -> None:
    """In the round before (0, 8) and (8, 16) were told; the first was cut, the second was not."""
    edges, shares = np.array([0, 4, 8, 16]), np.array([0.3, 0.3, 0.4])
    assert grown(edges, shares, 0.1, np.array([0, 8, 16])) == (2, 4, 6, 8)
    assert grown(edges, shares, 0.1) == (2, 4, 6, 8, 12)  # in a first round all are judged


def test_empty_intervals_of_a_series_are_judged_once() -> None:
    """Half of the values hold nobody. A tree that judges them anew in each of nine rounds cuts them
    by noise, at a chance of P(Z > sqrt 3) = .042 each time.

    Once judged, a half or quarter that was left whole is never seen cut in a later plan.
    """
    schema = sv.Schema(age=sv.Ordinal(0, 1023))
    plan = sv.plan(schema, sv.Queries(["age"], method="ahead"), epsilon=1.0, people=50_000)
    ages = np.random.default_rng(5).integers(0, 512, 50_000)
    asked = []
    while True:
        encoding = plan.cohorts[0].asks[0].encoding
        assert isinstance(encoding, Intervals)
        asked.append({*pairwise((0, *encoding.cuts, 1024))})
        estimate = sv.Aggregate(plan).add(sv.simulate(plan, {"age": ages}, seed=5)).estimate()
        following = sv.next_plan(plan, estimate)
        if following is None:
            break
        plan = following
    whole = asked[0] & asked[1]
    assert whole == {(512, 1024)}  # nobody is there, and it was not cut
    for before, now, later in zip(asked, asked[1:], asked[2:], strict=False):
        assert before & now <= later


def test_rounds_together_are_least_squares() -> None:
    """Brute force: the shares that minimise squares over variances, by a general solver."""
    draws = np.random.default_rng(1)
    layers = [
        (np.array([0, 8, 16]), np.array([0.6, 0.4]), 0.02),
        (np.array([0, 4, 8, 16]), draws.dirichlet(np.ones(3)), 0.01),
        (np.array([0, 2, 4, 8, 16]), draws.dirichlet(np.ones(4)), 0.03),
    ]
    grids = [
        GridEvidence((0,), (edges,), shares, variance, 0.0, 1e12)
        for edges, shares, variance in layers
    ]
    table = AdaptiveTable(16, grids)
    rows, wanted = [np.full(4, 1e6)], [1e6]  # that they sum to one is certain
    for edges, shares, variance in layers:
        for low, high, share in zip(edges[:-1], edges[1:], norm_sub(shares), strict=True):
            inside = [low <= start < high for start in (0, 2, 4, 8)]
            rows.append(np.array(inside, float) / np.sqrt(variance))
            wanted.append(share / np.sqrt(variance))
    best = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
    terms = [
        {0: ((np.arange(16) >= low) & (np.arange(16) < high)).astype(float)}
        for low, high in ((0, 2), (2, 4), (4, 8), (8, 16))
    ]
    joint = table.joint(terms)
    assert np.allclose(joint.values, best)
    half = table.joint([{0: (np.arange(16) >= 12).astype(float)}])
    assert half.values[0] == pytest.approx(best[3] / 2)  # people spread evenly inside
    assert table.joint([{}]).values[0] == pytest.approx(1)
    assert table.joint([{}]).std_errors[0] == pytest.approx(0, abs=1e-6)


def crowd(people: int, seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed)
    return np.where(draws.random(people) < 0.5, 20, draws.integers(0, 8, people))


def test_a_series_of_plans_grows_a_tree() -> None:
    first = sv.plan(SCHEMA, sv.Queries(["age"], method="ahead"), epsilon=3.0, people=40_000)
    assert first.series.shares == (1,) * 5
    ages = crowd(40_000, 1)
    plan, sizes = first, []
    while True:
        assert sv.Plan.from_json(plan.to_json()) == plan
        sizes.append(plan.cohorts[0].asks[0].encoding.size)
        reports = sv.simulate(plan, {"age": ages}, seed=3)
        estimate = sv.Aggregate(plan).add(reports).estimate()
        following = sv.next_plan(plan, estimate)
        if following is None:
            break
        plan = following
    assert len(sizes) == 5
    assert sizes == sorted(sizes)
    assert sizes[-1] < 32  # where nobody is, nothing is cut
    assert estimate.people == 40_000
    # the spike is found, within five standard errors, and the empty part is empty
    answer = estimate.count(age=20)  # type: ignore[attr-defined]
    assert abs(answer.value - (ages == 20).sum()) < 5 * answer.std_error
    assert abs(estimate.count(age=(24, 31)).value) < 0.05 * 40_000  # type: ignore[attr-defined]


def test_errors_are_as_stated_where_the_tree_ends_at_single_values() -> None:
    """Half the people hold one value, half another: both are cut down to, so there is no bias by
    uneven cells; squared errors over stated variances are chi-squared, a quarter of it is not.
    """
    runs, squares = 40, 0.0
    plan = sv.plan(
        sv.Schema(age=sv.Ordinal(0, 7)),
        sv.Queries(["age"], method="ahead"),
        epsilon=3.0,
        people=6000,
    )
    ages = np.where(np.arange(6000) % 2 == 0, 1, 6)
    for run in range(runs):
        estimate = simulate_rounds(plan, {"age": ages}, run)
        answer = estimate.count(age=(0, 3))  # type: ignore[attr-defined]
        squares += (answer.value - 3000) ** 2 / answer.std_error**2
    assert squares < chi2.isf(ALPHA, runs)
    assert squares * 4 > chi2.ppf(ALPHA, runs)


def test_sums_and_other_dimensions_are_refused() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 7), pay=sv.Number(0, 9, sensitive=False))
    question = sv.Queries(["age"], measures=["pay"], method="ahead")
    plan = sv.plan(schema, question, epsilon=2.0, people=2000)
    ages = np.arange(2000) % 8
    reports = sv.simulate(plan, {"age": ages, "pay": ages}, seed=1)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    with pytest.raises(sv.InvalidInput, match="rounds"):
        estimate.weighted(reports, np.ones(len(reports), np.int64))  # type: ignore[attr-defined]
    both = sv.Schema(age=sv.Ordinal(0, 7), member=sv.Boolean())
    with pytest.raises(sv.InvalidInput, match="one dimension"):
        sv.plan(both, sv.Queries(["age", "member"], method="ahead"), epsilon=1.0, people=100)


def test_what_is_known_survives_json_and_is_checked() -> None:
    growth = Growth((2, 4), (Layer((4,), (600_000, 400_000), 100),))
    again = json.loads(json.dumps(growth.to_json()))
    assert Growth.of({"known": again}, 8) == growth
    for known in (
        [],
        [[2, 4], 3],
        [[2, 9], []],
        [[2, 4], [[[4], [1], 100]]],
        [[2, 4], [[[4], [1, 2], 0]]],
        [[2, 4], [[[4], [1, 2]]]],
    ):
        with pytest.raises(sv.InvalidInput):
            Growth.of({"known": known}, 8)
