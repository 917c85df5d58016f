"""Likelihood methods: each fast path beside a general optimizer or an enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

import sottovoce as sv
from sottovoce.oracles import Noise
from sottovoce.postprocessing.likelihood import (
    composite_likelihood,
    expectation_maximization,
    maximum_likelihood,
    mle_apx,
)
from sottovoce.postprocessing.simplex import norm_sub
from tests.tables import pure

Floats = NDArray[np.float64]


def direct(support: list[int], epsilon: float) -> sv.Table:
    q = 1 / (np.exp(epsilon) + len(support) - 1)
    return pure(support, sum(support), float(np.exp(epsilon)) * q, q, "direct")


def least(objective: Callable[[Floats], float], size: int) -> Floats:
    """The simplex's point with the least objective, by a general optimizer."""
    found = minimize(
        objective,
        np.full(size, 1 / size),
        method="SLSQP",
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x)


def direct_likelihood(table: sv.Table, f: Floats) -> float:
    law = table.law
    assert law
    return float((law.support / table.people) @ np.log(law.q + (law.p - law.q) * f))


def composite(table: sv.Table, f: Floats) -> float:
    law = table.law
    assert law
    heard, m = law.support / table.people, law.q + (law.p - law.q) * f
    return float(heard @ np.log(m) + (1 - heard) @ np.log(1 - m))


def normal_distance(table: sv.Table, f: Floats) -> float:
    return float(((f - table.values) ** 2 / table.noise.variance(f)).sum())


CROWDS = (
    [70, 25, 5],
    [400, 300, 200, 100, 0],
    [50, 50, 50, 50],
    [900, 10, 20, 30, 25, 15],
    [1, 0, 0],
)
DIRECT = [direct(crowd, epsilon) for crowd in CROWDS for epsilon in (0.5, 1.0, 3.0)]
UNARY = [
    pure(support, 200, p, q, "bits")
    for support in (
        [150, 60, 60, 40],
        [20, 30, 90, 10, 10],
        [0, 0, 1],
        [200, 200, 190],
        [90, 90],
        [80] * 5,
    )
    for p, q in ((0.5, 0.27), (0.62, 0.38), (0.5, 0.01))
]


# -- exact maximum likelihood


@pytest.mark.parametrize("table", DIRECT)
def test_water_filling_is_the_optimizers_maximum(table: sv.Table) -> None:
    filled = maximum_likelihood(table)
    found = least(lambda f: -direct_likelihood(table, f), filled.size)
    assert direct_likelihood(table, filled) >= direct_likelihood(table, found) - 1e-12
    np.testing.assert_allclose(filled, found, atol=2e-5)


def meets_the_conditions(table: sv.Table, f: Floats) -> bool:
    """Karush, Kuhn and Tucker: the gradient is one number where f > 0,
    and no larger where f = 0.
    """
    law = table.law
    assert law
    gradient = law.support / (law.q + (law.p - law.q) * f)
    level = gradient[f > 0].mean()
    is_level = np.allclose(gradient[f > 0], level, rtol=1e-9)
    return bool(
        abs(f.sum() - 1) < 1e-9 and is_level and np.all(gradient[f == 0] <= level * (1 + 1e-9))
    )


def test_water_filling_meets_the_conditions_and_a_wrong_level_does_not() -> None:
    for table in DIRECT:
        assert meets_the_conditions(table, maximum_likelihood(table))
    noisy = direct([400, 300, 200, 100, 20], 1.0)
    # the nearest point is not the likeliest one
    assert not meets_the_conditions(noisy, norm_sub(noisy.values))


@pytest.fixture(scope="module")
def large_table() -> sv.Table:
    size, people = 1024, 100_000
    shares = 1 / np.arange(1, size + 1) ** 1.5
    values = np.random.default_rng(5).choice(size, people, p=shares / shares.sum())
    schema = sv.Schema(x=sv.Categorical(range(size)))
    plan = sv.plan(schema, sv.Frequencies("x", oracle="grr"), epsilon=3.0, people=people)
    return sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=5)).estimate().table


def test_water_filling_of_a_thousand_values(large_table: sv.Table) -> None:
    filled = sv.postprocess(large_table, "maximum-likelihood").values
    assert meets_the_conditions(large_table, filled)


# -- expectation maximization


def brute_force_em(table: sv.Table, iterations: int) -> Floats:
    """EM with the whole channel: f_x <- f_x sum over y of (T_y/n) Q(y|x) / m_y."""
    law = table.law
    assert law
    size = law.support.size
    channel = np.full((size, size), law.q) + np.eye(size) * (law.p - law.q)
    shares = np.full(size, 1 / size)
    for _ in range(iterations):
        shares = shares * (channel @ ((law.support / table.people) / (shares @ channel)))
    return shares


@pytest.mark.parametrize("table", DIRECT)
@pytest.mark.parametrize("iterations", [1, 7, 50])
def test_em_is_the_brute_force_em(table: sv.Table, iterations: int) -> None:
    quick = expectation_maximization(table, iterations=iterations, tolerance=0.0)
    np.testing.assert_allclose(quick, brute_force_em(table, iterations), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("table", DIRECT)
def test_em_ends_at_the_maximum(table: sv.Table) -> None:
    np.testing.assert_allclose(
        expectation_maximization(table), maximum_likelihood(table), atol=1e-3
    )


def test_em_never_loses_likelihood_and_stays_below_the_maximum(large_table: sv.Table) -> None:
    steps = [
        direct_likelihood(large_table, expectation_maximization(large_table, iterations=count))
        for count in (1, 2, 5, 20, 100, 2000)
    ]
    best = direct_likelihood(large_table, maximum_likelihood(large_table))
    assert all(one < other for one, other in pairwise(steps))
    assert 0 <= best - steps[-1] < 1e-4


def test_em_needs_an_iteration() -> None:
    with pytest.raises(sv.InvalidInput, match=r"iterations \(0\) must be at least 1"):
        sv.postprocess(DIRECT[0], "em", iterations=0)


# -- composite likelihood


@pytest.mark.parametrize("table", UNARY)
def test_composite_likelihood_is_the_optimizers_maximum(table: sv.Table) -> None:
    solved = composite_likelihood(table)
    found = least(lambda f: -composite(table, f), solved.size)
    assert abs(solved.sum() - 1) < 1e-12
    assert solved.min() >= 0
    assert composite(table, solved) >= composite(table, found) - 1e-12
    np.testing.assert_allclose(solved, found, atol=2e-5)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 500), min_size=2, max_size=40),
    st.sampled_from([(0.5, 0.27), (0.62, 0.38), (0.5, 1e-4), (0.51, 0.49)]),
)
def test_composite_likelihood_meets_the_conditions(
    support: list[int], chances: tuple[float, float]
) -> None:
    table = pure(support, 500, *chances, "bits")
    p, q = chances
    f = composite_likelihood(table)
    assert abs(f.sum() - 1) < 1e-9
    assert f.min() >= 0
    m, heard = q + (p - q) * f, np.array(support) / 500
    gradient = heard / m - (1 - heard) / (1 - m)
    held = f > 1e-9
    level = float(np.average(gradient[held], weights=f[held]))
    slack = 1e-6 * (1 + abs(level))
    assert np.all(np.abs(gradient[held] - level) < slack)
    assert np.all(gradient[~held] <= level + slack)


# -- mle-apx


def printed_x(table: sv.Table, kept: NDArray[np.bool_], p: float, q: float) -> float:
    """x_v as wang2021thesis prints it below eq. (8.6)."""
    total = float(table.values[kept].sum())
    return (total * (p - q) - (p - q)) / ((p - q) * (1 - p - q) - int(kept.sum()) * q * (1 - q))


def printed_equation(table: sv.Table, p: float, q: float) -> Floats:
    """Eq. (8.6) with the printed x_v, and the thesis's iteration over D0."""
    kept = np.ones(table.values.size, bool)
    while True:
        x = printed_x(table, kept, p, q)
        f = (q * (1 - q) * x + table.values * (p - q)) / (p - q - (p - q) * (1 - p - q) * x)
        f = np.where(kept, f, 0.0)
        if f.min() >= 0:
            return f
        kept &= f > 0


def printed_hybrid(table: sv.Table, p: float, q: float) -> Floats:
    """gamma f~ + delta as printed: here the two wrong signs cancel in the sum."""
    kept = np.ones(table.values.size, bool)
    while True:
        x = printed_x(table, kept, p, q)
        below = p - q + (p - q) * (1 - p - q) * x
        f = np.where(kept, table.values * (p - q) / below + q * (1 - q) * x / below, 0.0)
        if f.min() >= 0:
            return f
        kept &= f > 0


def corrected_mle_apx(table: sv.Table, p: float, q: float) -> Floats:
    """The errata's formulas, with the thesis's iteration over D0: the slow path."""
    kept = np.ones(table.values.size, bool)
    while True:
        x = (
            (p - q)
            * (1 - table.values[kept].sum())
            / ((p - q) * (1 - p - q) + kept.sum() * q * (1 - q))
        )
        f = (q * (1 - q) * x + table.values * (p - q)) / ((p - q) * (1 - (1 - p - q) * x))
        f = np.where(kept, f, 0.0)
        if f.min() >= 0:
            return f
        kept &= f > 0


LAWS = [(0.4754, 0.25), (0.5, 0.2689), (0.5, 0.02), (0.7311, 0.5), (0.62, 0.38)]


@pytest.mark.parametrize(("p", "q"), LAWS)
def test_mle_apx_as_printed_misses_one_and_corrected_does_not(p: float, q: float) -> None:
    random = np.random.default_rng(11)
    shares = 1 / np.arange(1, 65) ** 1.2
    holders = random.multinomial(5000, shares / shares.sum())
    support = random.binomial(holders, p) + random.binomial(5000 - holders, q)
    table = pure(support, 5000, p, q, "other")
    repaired = mle_apx(table)
    assert abs(repaired.sum() - 1) < 1e-12
    np.testing.assert_allclose(repaired, corrected_mle_apx(table, p, q), atol=1e-12)
    if not np.isclose(p + q, 1):  # there the slope is 0, and all forms are norm-sub
        assert abs(printed_equation(table, p, q).sum() - 1) > 1e-3
        hybrid = printed_hybrid(table, p, q)
        assert abs(hybrid.sum() - 1) < 1e-12
        assert normal_distance(table, hybrid) > normal_distance(table, repaired) + 1e-9
        assert not np.allclose(hybrid, repaired, rtol=1e-4)


@pytest.mark.parametrize(("p", "q"), LAWS)
def test_mle_apx_is_nearest_in_the_noises_own_measure(p: float, q: float) -> None:
    random = np.random.default_rng(12)
    for _ in range(5):
        holders = random.multinomial(300, random.dirichlet(np.full(6, 0.5)))
        table = pure(
            random.binomial(holders, p) + random.binomial(300 - holders, q), 300, p, q, "other"
        )
        repaired = mle_apx(table)
        reached = normal_distance(table, repaired)
        found = least(lambda f, table=table: normal_distance(table, f), 6)  # type: ignore[misc]
        np.testing.assert_allclose(repaired, found, atol=1e-4)
        for point in random.dirichlet(np.ones(6), 200):
            for step in (1.0, 0.1, 0.001):
                assert (
                    normal_distance(table, repaired + step * (point - repaired)) >= reached - 1e-9
                )


def test_mle_apx_with_level_noise_is_norm_sub() -> None:
    values = np.random.default_rng(13).normal(0.02, 0.1, 50)
    table = sv.Table(("x",), range(50), values, np.full(50, 0.01), 100, Noise(0.01, 0.0))
    np.testing.assert_allclose(mle_apx(table), norm_sub(values), atol=1e-12)


def test_mle_apx_refuses_estimates_its_noise_cannot_give() -> None:
    values = np.array([-3.0, -4.0])
    with pytest.raises(
        sv.InvalidInput, match=r"largest estimate \(-3\) must lie where the noise has a positive"
    ):
        mle_apx(sv.Table(("x",), "ab", values, np.full(2, 0.01), 100, Noise(0.01, 0.01)))
    with pytest.raises(sv.InvalidInput, match=r"noise floor \(0.0\) must be greater than 0"):
        mle_apx(sv.Table(("x",), "ab", values, np.full(2, 0.01), 100, Noise(0.0, 0.01)))


# -- the wrong table


@pytest.mark.parametrize(
    ("method", "table"),
    [
        ("maximum-likelihood", UNARY[0]),
        ("em", UNARY[0]),
        ("composite-likelihood", DIRECT[0]),
        ("composite-likelihood", pure([3, 4], 9, 0.5, 0.2, "other")),
    ],
)
def test_counts_of_other_reports_are_refused(method: str, table: sv.Table) -> None:
    assert table.law
    with pytest.raises(
        sv.InvalidInput,
        match=f"needs a table with the counts of .* those of '{table.law.encoding}'",
    ):
        sv.postprocess(table, method)


def test_a_table_without_counts_or_of_some_values_is_refused() -> None:
    bare = sv.Table(("x",), "ab", np.array([0.7, 0.3]), np.full(2, 0.01), 100, Noise(0.01, 0.0))
    some = pure([70, 20], 100, 0.6, 0.2, "direct")
    with pytest.raises(sv.InvalidInput, match="the table has no counts"):
        sv.postprocess(bare, "maximum-likelihood")
    with pytest.raises(sv.InvalidInput, match="all values listed"):
        sv.postprocess(some, "maximum-likelihood")
