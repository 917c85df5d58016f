"""Measured error against the stated variance, and no bias, for every oracle: size 64, 20,000
people.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from sottovoce.oracles import CohortOracle, Oracle
from tests.oracles import NAMES, ordinary
from tests.statistics import ALPHA, z_limit, zipf_people

PEOPLE = 20_000
RUNS = 20
EPSILONS = (0.5, 1.0, 3.0)
CASES = len(NAMES) * len(EPSILONS)


def errors(name: str, epsilon: float, runs: int = RUNS) -> tuple[np.ndarray, Oracle, np.ndarray]:
    """Standardised errors (runs x values), each run with its own people, coins and salt."""
    rows = []
    for run in range(runs):
        oracle = ordinary(name, epsilon, salt=1000 + run)
        values = zipf_people(oracle.size, PEOPLE, seed=run)
        truth = np.bincount(values, minlength=oracle.size) / PEOPLE
        estimate, _ = oracle.estimate_reports(oracle.simulate(values, seed=50 + run))
        rows.append((estimate - truth) / np.sqrt(oracle.all_variances(PEOPLE, truth)))
    return np.array(rows), oracle, truth


def ratio_limits(runs: int, size: int, comparisons: int) -> tuple[float, float]:
    """Bounds of the mean squared standardised error.

    Errors are normal; were all values independent, runs * size * ratio would be chi-squared with as
    many degrees. Its variance is 2 runs |C|^2 for a correlation matrix C of squared norm |C|^2
    (size if independent, size + 1 if they sum to zero). Degrees counted at half allow |C|^2 up to
    twice the size; two values that sum to one count once.
    """
    degrees = runs * (size / 2)
    reach = norm.isf(ALPHA / (2 * comparisons))
    cube = 2 / (9 * degrees)  # Wilson and Hilferty
    low, high = ((1 - cube + sign * reach * np.sqrt(cube)) ** 3 for sign in (-1, 1))
    return float(low), float(high)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_error_is_as_stated_and_centred(name: str, epsilon: float) -> None:
    # two values are one: what runs do not tell, more of them must
    runs = 400 if name == "rr" else RUNS
    standard, oracle, truth = errors(name, epsilon, runs)
    low, high = ratio_limits(runs, oracle.size, CASES)
    ratio = float((standard**2).mean())
    assert low < ratio < high
    bias = standard.mean(axis=0) * np.sqrt(runs)
    assert np.abs(bias).max() < z_limit(CASES * oracle.size)
    if isinstance(
        oracle, CohortOracle
    ):  # asked for a frequency alone, they state the mean over the alphabet
        mean = float(np.mean(oracle.variance(PEOPLE, truth)))
        assert mean == pytest.approx(float(oracle.all_variances(PEOPLE, truth).mean()), rel=0.1)


def test_the_bounds_reject_a_wrong_variance_and_a_wrong_p() -> None:
    standard, oracle, truth = errors("olh", 1.0)
    low, high = ratio_limits(RUNS, oracle.size, CASES)
    assert float((standard**2 * 1.5).mean()) > high
    assert float((standard**2 / 1.5).mean()) < low
    # decoding with a p too large by 5% shrinks every estimate: the top value's bias shows
    gap = oracle.gap  # type: ignore[attr-defined]
    shrunk = gap / (gap + 0.05 * oracle.p)  # type: ignore[attr-defined]
    lost = truth.max() * (1 - shrunk) / np.sqrt(oracle.all_variances(PEOPLE, truth)[truth.argmax()])
    mutant = (standard[:, truth.argmax()] * shrunk - lost).mean() * np.sqrt(RUNS)
    assert abs(mutant) > z_limit(CASES * oracle.size)


@pytest.mark.parametrize("name", ["rappor", "o-rr", "o-rappor"])
def test_cohorts_state_each_value_its_own_variance(name: str) -> None:
    """Given the hashes each candidate has a variance of its own: measured over runs at one salt."""
    oracle = ordinary(name, 2.0, size=16, salt=5)
    values = zipf_people(16, 20_000, seed=1)
    truth = np.bincount(values, minlength=16) / 20_000
    runs = 150
    standard = []
    for run in range(runs):
        estimate, _ = oracle.estimate_reports(oracle.simulate(values, seed=run))
        standard.append((estimate - truth) / np.sqrt(oracle.all_variances(20_000, truth)))
    ratios = (np.array(standard) ** 2).mean(axis=0)
    low, high = ratio_limits(runs, 2, 3 * 16)
    assert low < ratios.min()
    assert ratios.max() < high
    assert np.abs(np.mean(standard, axis=0)).max() * np.sqrt(runs) < z_limit(3 * 16)


def test_population_adds_the_sampling_of_people() -> None:
    oracle = ordinary("grr", 3.0, size=4)
    assert oracle.variance(100, 0.3, population=True) == pytest.approx(
        oracle.variance(100, 0.3) + 0.3 * 0.7 / 100
    )
    assert oracle.std_error(100, 1.7) == pytest.approx(np.sqrt(oracle.variance(100, 1.0)))
