"""The exact curve of Gaussian noise, against fifty digits; what is solved from it; and zCDP."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sottovoce.accounting.gaussian import (
    CURVE_ERROR,
    composed,
    delta_curve,
    delta_of,
    epsilon_of,
    log_delta_curve,
    mu_of,
    root_up,
    rounded_variance,
    variance_for,
)
from sottovoce.accounting.zcdp import epsilon_of_rho, misprinted_rho_of, rho_of, tight_rho_of
from sottovoce.ground.errors import InvalidInput

EPSILONS = [0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0, 300.0, 700.0]
MUS = [1e-9, 1e-6, 1e-4, 1e-2, 0.014, 0.1, 0.2367, 0.7, 1.0, 1.5, 4.0, 10.0, 30.0, 60.0]


def true_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """G(eps, mu) as it is written, with more digits than can cancel."""
    with mpmath.workdps(400):
        eps, distance = mpmath.mpf(epsilon), mpmath.mpf(mu)
        first = mpmath.erfc((eps / distance - distance / 2) / mpmath.sqrt(2)) / 2
        second = mpmath.erfc((eps / distance + distance / 2) / mpmath.sqrt(2)) / 2
        return first - mpmath.exp(eps) * second


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_curve_is_exact(epsilon: float) -> None:
    """A hundred times better than what CURVE_ERROR promises, wherever a double can hold it."""
    for mu in MUS:
        if epsilon > mu * mu / 2 and (epsilon / mu - mu / 2) ** 2 / 2 > 600:  # below 1e-260
            assert delta_of(epsilon, mu) < 1e-250
            continue
        exact = true_delta(epsilon, mu)
        near = float(delta_curve(epsilon, mu))
        assert abs(near / exact - 1) < CURVE_ERROR / 100, (epsilon, mu)
        assert exact <= delta_of(epsilon, mu) <= min(1, exact * (1 + 2 * CURVE_ERROR))


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 1e-3), (100.0, 1.0), (1e4, 2.0), (2.0, 1e-5)])
def test_logarithms_reach_where_no_double_does(epsilon: float, mu: float) -> None:
    square = (epsilon / mu - mu / 2) ** 2 / 2
    with mpmath.workdps(60):
        x = (mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2) / mpmath.sqrt(2)
        slope = mpmath.log(mu / mpmath.sqrt(2) / (2 * mpmath.sqrt(mpmath.pi) * x**2))
        leading = float(slope - x**2)  # the first term of the asymptotic series
    assert square > 700
    assert float(log_delta_curve(epsilon, mu)) == pytest.approx(leading, rel=1e-3)
    assert 0 < delta_of(epsilon, mu) < 1e-300


def test_below_zero_the_curve_is_that_of_the_complement() -> None:
    """1 - delta(-eps) = e^-eps (1 - ...): G(-eps) = 1 - e^-eps + e^-eps G(eps)."""
    for epsilon in (0.01, 0.5, 3.0, 40.0):
        for mu in (1e-3, 0.2, 2.0):
            expected = -math.expm1(-epsilon) + math.exp(-epsilon) * delta_of(epsilon, mu)
            assert float(delta_curve(-epsilon, mu)) == pytest.approx(expected, rel=1e-9)
    assert delta_curve([-1.0, 0.0, 1.0], 0.0).tolist() == pytest.approx([1 - math.exp(-1), 0, 0])


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-250, 1e-30, 1e-12, 1e-6, 0.1, 0.9])
def test_what_is_solved_is_on_the_private_side_and_no_further(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta) if delta > 1e-20 or epsilon else 0.1
    if delta > 1e-20 or epsilon:
        assert true_delta(epsilon, mu) <= delta
        assert true_delta(epsilon, mu * (1 + 1e-8)) > delta
    found = epsilon_of(delta, mu)
    assert true_delta(found, mu) <= delta
    if found > 0:
        assert true_delta(found - 1e-8 * (1 + found), mu) > delta


def test_steps_compose_exactly_and_round_up() -> None:
    steps = [(Fraction(1), Fraction(3)), (Fraction(2), Fraction(3)), (Fraction(1, 7), Fraction(5))]
    assert composed(steps) == 1 + Fraction(1, 35)
    for square in (Fraction(2), Fraction(1, 3), Fraction(10**40 + 1, 7), Fraction(9, 4)):
        assert Fraction(root_up(square)) ** 2 >= square
        assert root_up(square) <= math.sqrt(square) * (1 + 1e-15)
    variance = variance_for(1.0, 1e-6, Fraction(20))
    assert Fraction(20) / variance <= Fraction(mu_of(1.0, 1e-6)) ** 2
    assert variance.denominator.bit_length() < 64
    assert 0 <= rounded_variance(Fraction(10, 3)) / Fraction(10, 3) - 1 < 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: delta_of(-1.0, 1.0), "epsilon"),
        (lambda: delta_of(math.nan, 1.0), "epsilon"),
        (lambda: delta_of(1.0, math.inf), "mu"),
        (lambda: epsilon_of(0.0, 1.0), "delta"),
        (lambda: mu_of(1.0, 1.0), "delta"),
        (lambda: mu_of(0.0, 1e-30), "no room"),
        (lambda: rounded_variance(Fraction(0)), "variance"),
        (lambda: rho_of(0.0, 1e-6), "epsilon"),
        (lambda: epsilon_of_rho(-1.0, 1e-6), "rho"),
    ],
)
def test_bad_arguments_are_named(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()


# epsilon at delta 1e-6: printed, corrected, tight, exact rho; what the printed one really costs
TABLE = [
    (0.5, 0.0651, 0.0042, 0.0062, 0.0072, 2.01, 1.63),
    (1.0, 0.1291, 0.0167, 0.0229, 0.0262, 2.87, 2.37),
    (2.0, 0.2541, 0.0645, 0.0834, 0.0947, 4.09, 3.44),
    (8.0, 0.9353, 0.8748, 1.009, 1.120, 8.30, 7.20),
]


@pytest.mark.parametrize("row", TABLE)
def test_the_printed_theorem_costs_more_than_it_says(row: tuple[float, ...]) -> None:
    """docs/errata 1: 003's theorem 1.1 lacks a square. Half of delta is the threshold's."""
    epsilon, printed, corrected, tight, exact, by_zcdp, by_curve = row
    delta = 1e-6
    rho = misprinted_rho_of(epsilon, delta)
    assert rho == pytest.approx(printed, abs=5e-5)
    assert rho_of(epsilon, delta) == pytest.approx(corrected, abs=5e-5)
    assert tight_rho_of(epsilon, delta / 2) == pytest.approx(tight, abs=6e-4)
    assert mu_of(epsilon, delta / 2) ** 2 / 2 == pytest.approx(exact, abs=5e-4)
    log_term = math.log(2 / delta)
    assert rho + 2 * math.sqrt(rho * log_term) == pytest.approx(by_zcdp, abs=6e-3)
    assert epsilon_of(delta / 2, math.sqrt(2 * rho)) == pytest.approx(by_curve, abs=6e-3)


@pytest.mark.parametrize(("epsilon", "really"), [(1, 0.78), (2, 1.62), (4, 3.36), (8, 6.93)])
def test_numerical_accounting_saves_less_than_remark_1_3_hopes(
    epsilon: float, really: float
) -> None:
    """docs/errata N23: the same noise, accounted exactly, costs 0.2 to 1.1 less; not 1 or 2."""
    mu = math.sqrt(2 * rho_of(epsilon, 1e-6))
    assert epsilon_of(0.5e-6, mu) == pytest.approx(really, abs=6e-3)


def test_the_three_accounts_are_ordered() -> None:
    """The closed form admits least, the tight conversion more, the exact curve most."""
    for epsilon in (0.1, 1.0, 5.0):
        for delta in (1e-3, 1e-9):
            exact = mu_of(epsilon, delta / 2) ** 2 / 2
            assert rho_of(epsilon, delta) < tight_rho_of(epsilon, delta / 2) < exact


def test_the_curve_takes_arrays() -> None:
    grid = delta_curve(np.array([[0.0], [1.0]]), np.array([0.1, 1.0, 3.0]))
    assert grid.shape == (2, 3)
    assert grid[1, 2] == pytest.approx(float(true_delta(1.0, 3.0)))
