"""Discrete noise costs at most what its lattice loss says beyond real Gaussian noise: the claims
that the ledger rests on, by the exact laws of sums.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from sottovoce.accounting import GaussianStep
from sottovoce.accounting.gaussian import delta_of
from sottovoce.accounting.steps import counts_lattice_loss
from sottovoce.accounting.totals import total_delta

VARIANCES = [Fraction(1), Fraction(3, 2), Fraction(4), Fraction(37, 2), Fraction(100)]


def noise_law(variance: Fraction, reach: int) -> np.ndarray:
    places = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-(places**2) / (2 * float(variance)))
    return weights / weights.sum()


def sum_law(variance: Fraction, count: int) -> np.ndarray:
    """The law of the sum of ``count`` discrete noises, around its middle, with all of its tails."""
    one = noise_law(variance, math.ceil(10 * math.sqrt(variance)) + 10)
    law = np.array([1.0])
    for _ in range(count):
        law = np.convolve(law, one)
    return law


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 25])
def test_a_sum_of_noises_is_below_gaussian_noise_and_one_step(
    variance: Fraction, count: int
) -> None:
    """P(S >= m) <= P(N >= m - 1) for all m: proved for one noise, and so for sums of many."""
    law = sum_law(variance, count)
    middle = len(law) // 2
    sigma = math.sqrt(count * variance)
    places = np.arange(-math.floor(8 * sigma), math.floor(8 * sigma) + 1)
    upper = np.cumsum(law[::-1])[::-1][places + middle]
    lower = np.cumsum(law)[places - 1 + middle]  # P(S <= m - 1)
    gauss = ndtr(-(places - 1) / sigma)
    positive = places > 0
    assert (upper[positive] <= gauss[positive]).all()
    # the complements, where both are nearly 1
    assert (lower[~positive] >= ndtr((places - 1) / sigma)[~positive] * (1 - 1e-13)).all()
    half_step_less = ndtr(-places / sigma)
    assert (upper > half_step_less)[positive].any()  # without the step it is not so


def discrete_delta(epsilon: float, steps: list[tuple[int, Fraction]]) -> float:
    """delta of counts with discrete noise, exactly: ``moved`` counts of each step differ by 1.

    The loss of a step is (S + moved/2) / variance with S the sum of its noises.
    """
    losses = np.array([0.0])
    chances = np.array([1.0])
    for moved, variance in steps:
        law = sum_law(variance, moved)
        places = np.arange(len(law)) - len(law) // 2
        likely = law > 1e-25
        loss = (places[likely] + moved / 2) / float(variance)
        losses = np.add.outer(losses, loss).ravel()
        chances = np.multiply.outer(chances, law[likely]).ravel()
    kept = losses > epsilon
    return float((chances[kept] * -np.expm1(epsilon - losses[kept])).sum())


STEPS = [
    [(1, Fraction(2))],
    [(1, Fraction(37, 2))],
    [(5, Fraction(90))],
    [(2, Fraction(7)), (3, Fraction(9))],
    [(1, Fraction(3)), (1, Fraction(31, 10))],
]


@pytest.mark.parametrize("steps", STEPS)
def test_what_the_ledger_states_holds_for_discrete_noise(steps: list[tuple[int, Fraction]]) -> None:
    spent = [
        GaussianStep.of_counts("counts", "to be told", moved, variance) for moved, variance in steps
    ]
    loss = float(sum(1 / variance for _, variance in steps))
    for epsilon in np.linspace(0.05, 4.0, 80):
        stated = total_delta(spent, "add-remove", float(epsilon))
        exact = discrete_delta(float(epsilon), steps)
        assert exact <= stated
        # and it is no looser than that: real noise, too, is below discrete noise and one step
        looser = discrete_delta(float(epsilon) - 2 * loss, steps)
        assert stated <= looser * (1 + 1e-6) + 1e-20


def test_without_a_lattice_loss_the_statement_is_false() -> None:
    """One count, variance 2: at some epsilons discrete noise reveals more than real noise."""
    variance = Fraction(2)
    epsilons = np.linspace(0.05, 4.0, 80)
    exact = [discrete_delta(float(epsilon), [(1, variance)]) for epsilon in epsilons]
    real = [delta_of(float(epsilon), math.sqrt(1 / variance)) for epsilon in epsilons]
    assert max(np.array(exact) / np.array(real)) > 1.05


def test_any_move_on_a_lattice_costs_at_most_its_absolute_sum() -> None:
    """Moves of several steps, of two coordinates: |v|_1 / variance, or |v|_2^2 / variance."""
    variance = Fraction(9)
    law = noise_law(variance, 40)
    places = np.arange(-40, 41)
    for first, second in product((0, 1, 2, 5), (1, 4)):
        squared = first**2 + second**2
        sums = np.add.outer(first * places, second * places).ravel()
        chances = np.multiply.outer(law, law).ravel()
        losses = (sums + squared / 2) / float(variance)
        for loss in (first + second, squared):
            step = GaussianStep("sums", "told", Fraction(squared), variance, loss / variance)
            for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0):
                kept = losses > epsilon
                exact = float((chances[kept] * -np.expm1(epsilon - losses[kept])).sum())
                assert exact <= total_delta([step], "add-remove", epsilon)


def test_narrow_noise_pays_for_every_count() -> None:
    assert counts_lattice_loss(7, Fraction(1)) == 1
    assert counts_lattice_loss(7, Fraction(1, 2)) == 14
