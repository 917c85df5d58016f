"""From sums to averages, spreads and quantiles: against brute force, and marked where unsure."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.questions.queries.sql.fits import GroupWeight, fixed_point
from sottovoce.questions.queries.sql.linear import Linear
from sottovoce.questions.queries.sql.measures import fieller, ratio, spread, total
from sottovoce.questions.queries.sql.quantiles import quantile
from sottovoce.questions.queries.sql.source import WhisperedColumn

Z95 = 1.959963984540054


def linear(values: list[float], covariance: np.ndarray, draws: np.ndarray | None = None) -> Linear:
    return Linear(np.array(values), np.asarray(covariance, float), draws, False)


@pytest.mark.parametrize("count", [30.0, 100.0, 400.0])
def test_fiellers_set_holds_the_ratios_that_a_test_would_keep(count: float) -> None:
    covariance = np.array([[90.0, 20.0], [20.0, 100.0]])
    low, high = fieller(250.0, count, covariance, 0.95)
    for candidate in np.linspace(-5, 40, 901):
        difference = 250.0 - candidate * count
        gradient = np.array([1.0, -candidate])
        error = np.sqrt(gradient @ covariance @ gradient)
        kept = abs(difference) <= Z95 * error
        assert kept == (low <= candidate <= high)


def test_an_average_over_few_people_is_unstable_and_over_noise_undefined() -> None:
    stable = ratio(linear([500.0, 100.0], np.diag([25.0, 4.0])), 0.95)
    assert (stable.mark, stable.value) == ("", 5.0)
    # Var[S/C] = (25 + 25 * 4) / 100^2
    assert stable.std_error == pytest.approx(np.sqrt(125.0) / 100)
    unstable = ratio(linear([500.0, 100.0], np.diag([25.0, 2500.0])), 0.95)
    assert unstable.mark == "unstable"
    assert (unstable.low, unstable.high) == pytest.approx(
        fieller(500.0, 100.0, np.diag([25.0, 2500.0]), 0.95)
    )
    wide = ratio(linear([500.0, 100.0], np.diag([25.0, 4000.0])), 0.95)
    assert (wide.low, wide.high) == (-inf, inf)
    for nothing in (50.0, 0.0, -300.0):
        refused = ratio(linear([500.0, nothing], np.diag([25.0, 10_000.0])), 0.95)
        assert refused.mark == "undefined"
        assert isnan(refused.value)


def test_errors_that_go_together_cancel_in_an_average() -> None:
    # every weight is 7: the sum is 7 times the count, with its error
    covariance = 30.0 * np.outer([7.0, 1.0], [7.0, 1.0])
    found = ratio(linear([700.0, 100.0], covariance), 0.95)
    assert (found.value, found.std_error) == (7.0, pytest.approx(0.0, abs=1e-6))


@pytest.mark.parametrize("count_error", [10.0, 45.0, 60.0])
def test_an_average_of_equal_numbers_has_no_error_however_unsure_the_count(
    count_error: float,
) -> None:
    for number in np.linspace(0.1, 9.0, 90):
        direction = np.array([number, 1.0])
        covariance = np.outer(direction, direction)
        sure = linear((97.3 * direction).tolist(), count_error**2 * covariance)
        given = Linear(100.1 * direction, 30.0 * covariance, None, False, sure)
        found = ratio(given, 0.95)
        assert (found.std_error, found.mark) == (0.0, "")
        assert (found.low, found.high) == (found.value, found.value)
    # a number that one in a million has more of is no constant
    covariance = np.outer([7.0, 1.0], [7.0, 1.0]) + np.diag([1e-6, 0.0])
    assert ratio(linear([700.0, 100.0], covariance), 0.95).std_error > 0


@pytest.mark.parametrize("count", [-40.0, 0.5, 20.0])
def test_a_spread_has_no_end_where_the_sure_count_may_be_nothing(count: float) -> None:
    sure = linear([900.0, 50.0, count], np.diag([1e4, 1e3, 1600.0]))
    values = np.array([60_000.0, 5_000.0, 1_000.0])
    given = Linear(values, np.diag([9e6, 6e4, 2e3]), None, False, sure)
    variance = spread(given, 0.95, population=False, root=False)
    assert (variance.low, variance.high) == (0.0, inf)
    root = spread(given, 0.95, population=False, root=True)
    assert (root.low, root.high) == (0.0, inf)


@pytest.mark.parametrize("population", [True, False])
def test_the_error_of_a_variance_is_that_of_its_derivatives(population: bool) -> None:
    values = np.array([60_000.0, 5_000.0, 1_000.0])
    covariance = np.array([[9e6, 5e5, 9e4], [5e5, 6e4, 8e3], [9e4, 8e3, 2e3]])

    def variance(sums: np.ndarray) -> float:
        below = sums[2] if population else sums[2] - 1
        return float((sums[0] - sums[1] ** 2 / sums[2]) / below)

    steps = np.diag(values * 1e-6)
    gradient = np.array(
        [(variance(values + step) - variance(values - step)) / (2 * step.sum()) for step in steps]
    )
    expected = np.sqrt(gradient @ covariance @ gradient)
    given_linear = linear(values.tolist(), covariance)
    found = spread(given_linear, 0.95, population=population, root=False)
    assert found.value == pytest.approx(variance(values))
    assert found.std_error == pytest.approx(expected, rel=2e-3)
    root = spread(given_linear, 0.95, population=population, root=True)
    assert root.value == pytest.approx(np.sqrt(found.value))
    assert root.std_error == pytest.approx(found.std_error / (2 * root.value))


def test_intervals_of_draws_are_their_quantiles() -> None:
    draws = np.random.default_rng(1).gamma(2.0, 50.0, (4000, 1))
    found = total(linear([100.0], [[5000.0]], draws), 0.9)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, [0.05, 0.95])))


def test_a_quantile_holds_the_values_that_the_share_may_reach() -> None:
    age = WhisperedColumn("age", sv.Ordinal(0, 9))
    counts = np.arange(1, 11) * 100.0
    exact = quantile(linear(counts.tolist(), np.zeros((10, 10))), age, 0.35, 0.95)
    assert (exact.value, exact.low, exact.high) == (3.0, 3.0, 3.0)
    # F(c) - q T at 5 and at 7 are 50 + 100 and 350: within 1.96 * 100 are the values 1 to 5
    covariance = np.diag([100.0**2] * 9 + [0.0])
    found = quantile(linear(counts.tolist(), covariance), age, 0.35, 0.95)
    assert (found.low, found.value, found.high) == (1.0, 3.0, 5.0)
    binned = WhisperedColumn("salary", sv.Ordinal(0, 99, bins=10))
    assert quantile(linear(counts.tolist(), np.zeros((10, 10))), binned, 0.35, 0.95).value == 34.0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50), st.integers(0, 4))
def test_decimals_become_whole_numbers_exactly(numbers: list[int], decimals: int) -> None:
    numbers = [*numbers, 1]
    fixed = fixed_point(np.array(numbers) / 10**decimals)
    factor = fixed[-1]
    assert fixed.tolist() == [number * factor for number in numbers]


def test_other_numbers_are_rounded_to_a_billionth_of_their_mean() -> None:
    values = np.random.default_rng(2).gamma(1.0, 1.0, 1000)
    fixed = fixed_point(values)
    assert abs(int(fixed.sum())) <= 1 << 49
    scale = fixed.sum() / values.sum()
    assert np.abs(fixed / scale - values).max() < 1e-9 * values.mean()


def test_weights_that_are_alike_have_errors_that_are() -> None:
    ones = GroupWeight(None, None, 3.0)
    weights = GroupWeight("w", np.array([3.0, 0.0, 4.0]), 7.0)
    assert ones.alike(weights) == pytest.approx(7 / (np.sqrt(3) * 5))
    assert weights.alike(ones) == ones.alike(weights)
    assert ones.alike(ones) == 1.0
