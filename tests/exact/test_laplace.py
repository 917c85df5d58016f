"""Discrete Laplace noise: the sampler's law, on the device and in simulation, and what it costs in
variance.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Seeded
from sottovoce.oracles.histogram import GRID, best_theta, discrete_laplace, tails
from tests.statistics import chi_limit, chi_squared


def law(scale: int, rate: int, reach: int) -> np.ndarray:
    alpha = math.exp(-rate / scale)
    places = np.abs(np.arange(-reach, reach + 1))
    chances = (1 - alpha) / (1 + alpha) * alpha**places
    chances[[0, -1]] = alpha**reach / (1 + alpha)  # the tails, gathered
    return chances


def gathered(draws: np.ndarray, reach: int) -> list[int]:
    return np.clip(draws, -reach, reach).tolist()


@pytest.mark.parametrize(("scale", "rate"), [(3, 1), (7, 2), (1, 1), (5, 4)])
def test_device_noise_is_discrete_laplace(scale: int, rate: int) -> None:
    entropy = Seeded(5)
    draws = np.array([discrete_laplace(scale, rate, entropy) for _ in range(200_000)])
    reach = 12
    outputs = list(range(-reach, reach + 1))
    statistic, degrees = chi_squared(outputs, law(scale, rate, reach), gathered(draws, reach))
    assert statistic < chi_limit(degrees, 4)
    wrong, _ = chi_squared(outputs, law(scale * 20, rate * 21, reach), gathered(draws, reach))
    assert wrong > chi_limit(degrees, 4)  # a scale off by 5% is told apart


def test_simulated_noise_is_discrete_laplace() -> None:
    oracle = sv.oracle("she", size=2, epsilon=100)  # a narrow law, so that every point is visible
    cells = oracle.simulate(np.zeros(400_000, int), seed=3).view("<i4")
    reach = 100
    outputs = list(range(-reach, reach + 1))
    for column, shift in ((0, GRID), (1, 0)):
        statistic, degrees = chi_squared(
            outputs,
            law(oracle.scale, oracle.rate, reach),
            gathered(cells[:, column] - shift, reach),
        )
        assert statistic < chi_limit(degrees, 2)


def test_ratio_of_neighbours_is_exactly_epsilon() -> None:
    oracle = sv.oracle("she", size=4, epsilon="0.7")
    # two cells move by GRID steps each: exp(-rate/scale)^(2 GRID) = exp(-epsilon)
    assert oracle.rate * 2 * GRID * 10 == oracle.scale * 7
    assert oracle.epsilon == 0.7


def test_variance_is_eight_over_epsilon_squared_not_what_the_proof_says() -> None:
    """docs/errata 10: Laplace(b) has variance 2 b^2, b = 2/epsilon; the printed 2/b^2 is
    epsilon^2/2.
    """
    for epsilon in (0.5, 1.0, 4.0):
        variance = sv.oracle("she", size=8, epsilon=epsilon).variance(1)
        assert variance == pytest.approx(8 / epsilon**2, rel=1e-4)
        assert variance != pytest.approx(epsilon**2 / 2, rel=0.1)


def test_tails_are_those_of_the_law() -> None:
    from decimal import Decimal

    epsilon = Decimal("1.5")
    alpha = math.exp(-1.5 / (2 * GRID))
    places = np.arange(-60_000, 60_001)
    chances = (1 - alpha) / (1 + alpha) * alpha ** np.abs(places)
    for theta in (0, 300, GRID - 1):
        p, q = tails(epsilon, theta)
        assert float(q) == pytest.approx(chances[places > theta].sum(), rel=1e-9)
        assert float(p) == pytest.approx(chances[places + GRID > theta].sum(), rel=1e-9)


def test_best_theta_lies_between_a_half_and_one_and_beats_theta_one() -> None:
    from decimal import Decimal

    for text in ("0.5", "1", "2", "4"):
        assert GRID // 2 <= best_theta(Decimal(text)) < GRID
        best = sv.oracle("the", size=4, epsilon=text).variance(1)
        assert best <= sv.oracle("the", size=4, epsilon=text, theta="1").variance(1)
        assert best < sv.oracle("she", size=4, epsilon=text).variance(1)  # 004, 3.3.2: always


def test_cells_saturate_alike_whoever_holds_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a low limit it is visible: the value's own cell goes no higher than the others."""
    monkeypatch.setattr("sottovoce.oracles.histogram.MAX_NOISY_CELL", 1000)
    oracle = sv.oracle("she", size=2, epsilon=0.5)
    entropy = Seeded(1)
    cells = np.array([oracle.randomize(0, entropy) for _ in range(300)])
    assert cells.max(axis=0).tolist() == [1000, 1000]
    assert cells.min() == -1000
    simulated = oracle.simulate(np.zeros(3000, int), seed=1).view("<i4")
    assert simulated.max(axis=0).tolist() == [1000, 1000]


@pytest.mark.parametrize(
    "text", ["1.00000000000000001", "1.0986122886681098", "0.3333333333333333"]
)
def test_an_epsilon_of_many_digits_is_rounded_down(text: str) -> None:
    from fractions import Fraction

    oracle = sv.oracle("she", size=4, epsilon=text)
    realised = Fraction(oracle.rate, oracle.scale) * 2 * GRID
    assert Fraction(text) * (1 - Fraction(1, 10**9)) < realised <= Fraction(text)
    assert oracle.scale < 1 << 48


def test_an_epsilon_too_small_for_the_grid_is_refused() -> None:
    with pytest.raises(sv.InvalidInput, match="at least"):
        sv.oracle("she", size=4, epsilon="0.00001")
