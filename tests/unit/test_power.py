"""Power: the posterior mean under a power law, beside a general integrator."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

import sottovoce as sv
from sottovoce.postprocessing.power import EXPONENTS, _posterior, _span, power
from tests.tables import plain

Floats = NDArray[np.float64]


def posterior_by_quadrature(
    value: float, sigma: float, s: float, start: float
) -> tuple[float, float]:
    """Eq. (8.7) and the log-likelihood, by a general integrator, split finely where its integrand
    turns.
    """

    def exponent(x: float | Floats) -> float | Floats:
        return -(((value - x) / sigma) ** 2) / 2 - s * np.log(x / start)

    spread = sigma * np.linspace(-24, 24, 97)
    places = np.unique(
        np.clip([*np.geomspace(start, 1, 200), *(value + spread), *(start + spread)], start, 1)
    )
    largest = float(np.max(exponent(places)))
    mass = mean = 0.0
    for low, high in pairwise(places):
        mass += quad(lambda x: np.exp(exponent(x) - largest), low, high)[0]
        mean += quad(lambda x: x * np.exp(exponent(x) - largest), low, high)[0]
    whole = start * -np.expm1((s - 1) * np.log(start)) / (s - 1)
    return mean / mass, float(np.log(mass / whole) + largest)


@pytest.mark.parametrize("s", [EXPONENTS[0], 1.7, 2.0, 3.3, EXPONENTS[-1]])
@pytest.mark.parametrize("sigma", [0.3, 0.01, 1e-4])
def test_power_integrates_eq_8_7(s: float, sigma: float) -> None:
    values = np.array([-2 * sigma, 0.0, sigma, 5 * sigma, 11.5 * sigma, 13 * sigma, 0.4])
    means, likelihoods = _posterior(values, sigma, s, _span(s, 64))
    start = float(np.exp(-_span(s, 64)))
    for value, mean, likelihood in zip(values, means, likelihoods, strict=True):
        slow_mean, slow_likelihood = posterior_by_quadrature(value, sigma, s, start)
        assert abs(mean - slow_mean) < 1e-5 * sigma
        assert likelihood == pytest.approx(slow_likelihood, abs=1e-5)


@pytest.mark.parametrize("s", EXPONENTS)
def test_the_power_law_has_the_mean_of_frequencies(s: float) -> None:
    span = _span(s, 1024)
    mass, mean = (quad(lambda u, a=a: np.exp((a - s) * u), 0, span, limit=500)[0] for a in (1, 2))
    assert np.exp(-span) * mean / mass == pytest.approx(1 / 1024, rel=1e-6)


def test_power_is_stable_at_the_edges() -> None:
    for variance in (1e-30, 1e-14, 1e-6, 1.0, 1e4, 1e12):
        sigma = sqrt(variance)
        repaired = power(
            plain([-30 * sigma, -sigma, 0.0, 1e-9, 0.5, 1.0, 1 + 30 * sigma], variance)
        )
        assert np.all(np.isfinite(repaired))
        assert repaired.min() > 0
        assert repaired.max() <= 1
    with pytest.raises(sv.InvalidInput, match="two values or more"):
        power(plain([1.0]))


def test_power_takes_large_tables_in_pieces() -> None:
    values = np.random.default_rng(3).normal(1 / 5000, 0.01, 5000)
    together = power(plain(values, 1e-4))
    assert together.size == 5000
    assert np.all(np.diff(together[np.argsort(values)]) > -1e-7)
