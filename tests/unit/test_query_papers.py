"""Numbers that follow from li2020numerical, yang2020ranges and du2021ahead.

Literals were computed to fifty digits from the formulas of their authors' public code, apart from
the code under test.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.oracles import oracle
from sottovoce.oracles.thresholds import exp
from sottovoce.oracles.wave import SquareWave, best_half_width
from sottovoce.postprocessing.smoothing import smoothed
from sottovoce.questions.queries.evidence import GridEvidence
from sottovoce.questions.queries.hybrid import hybrid_fit
from sottovoce.questions.queries.methods.adaptive import FANOUT, threshold
from sottovoce.questions.queries.methods.hybrid_grids import cell_widths, grid_sizes

# -- square wave: li2020numerical, section 5, and sw.py of its authors

# by epsilon: half of the width, and the densities near a value and elsewhere, of a unit interval
WAVES = {
    "0.1": (0.467752337708, 0.543377235981, 0.491668055225),
    "0.5": (0.358155424611, 0.755948458863, 0.458505917463),
    "1": (0.256082937501, 1.136305121590, 0.418023293131),
    "2": (0.129337066746, 2.538010406716, 0.343482357250),
    "4": (0.030427703824, 12.630880147922, 0.231342639636),
}
FINE = 10**9  # places of a unit interval: whole places are as good as the continuous width


@pytest.mark.parametrize("epsilon", WAVES)
def test_the_width_of_a_wave_is_the_papers(epsilon: str) -> None:
    half, _, _ = WAVES[epsilon]
    own = best_half_width(FINE, Fraction(epsilon), exp(Fraction(epsilon)))
    assert own / FINE == pytest.approx(half, abs=2 / FINE)


@pytest.mark.parametrize("epsilon", WAVES)
def test_that_width_tells_most(epsilon: str) -> None:
    """Without the closed form: where the bound on the mutual information is largest."""
    odds, power = math.exp(float(epsilon)), float(epsilon)

    def information(half: float) -> float:
        # I <= log(2b + 1) - log(2bE + 1) + 2b eps E / (2bE + 1)
        near = 2 * half * odds
        return math.log(2 * half + 1) - math.log(near + 1) + near * power / (near + 1)

    halves = np.linspace(1e-4, 1, 100_000)
    best = halves[np.argmax([information(half) for half in halves])]
    assert best == pytest.approx(WAVES[epsilon][0], abs=1e-4)


@pytest.mark.parametrize("epsilon", WAVES)
def test_the_heights_of_a_wave_are_the_papers(epsilon: str) -> None:
    """Chances of places times the number of values are densities, up to the rounding of widths."""
    half, near, far = WAVES[epsilon]
    size = 2000
    wave = oracle("square-wave", size=size, epsilon=epsilon)
    assert isinstance(wave, SquareWave)
    reach = int(half * size)
    odds = math.exp(float(epsilon))
    assert wave.half_width == reach
    # of whole places exactly: p = E / ((2b + 1) E + d - 1), q = p / E
    total = (2 * reach + 1) * odds + size - 1
    assert wave.p == pytest.approx(odds / total, rel=1e-12)
    assert wave.q == pytest.approx(1 / total, rel=1e-12)
    # p and q move by at most 2E/total for the place that rounding took or gave
    assert wave.p * size == pytest.approx(near, rel=2 * odds / total)
    assert wave.q * size == pytest.approx(far, rel=2 * odds / total)


def test_smoothing_is_by_binomial_weights() -> None:
    """Weights (1, 2, 1) of those that are there, as the authors' code has them at the lower end."""
    weights = np.array([[2, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], [0, 0, 1, 2]], float)
    matrix = weights / weights.sum(axis=1, keepdims=True)
    shares = np.array([0.5, 0.1, 0.15, 0.25])
    assert np.allclose(smoothed(shares), matrix @ shares)


# -- hybrid grids: yang2020ranges, section 4.6, and choose_granularity.py of its authors

EPSILONS = (0.2, 0.6, 1.0, 1.4, 2.0)
GRIDS = {  # by dimensions and people: cells of a fine and of a coarse grid, for each epsilon
    (3, 10**5): ((4, 2), (8, 2), (16, 2), (16, 4), (32, 4)),
    (3, 10**6): ((8, 2), (32, 4), (32, 4), (32, 8), (64, 8)),
    (3, 10**7): ((32, 4), (64, 8), (64, 8), (128, 8), (128, 16)),
    (6, 10**5): ((4, 2), (8, 2), (8, 2), (16, 2), (16, 4)),
    (6, 10**6): ((8, 2), (16, 2), (16, 4), (32, 4), (32, 4)),
    (6, 10**7): ((16, 2), (32, 4), (64, 8), (64, 8), (64, 8)),
    (10, 10**5): ((2, 2), (4, 2), (8, 2), (8, 2), (16, 2)),
    (10, 10**6): ((4, 2), (8, 2), (16, 2), (16, 4), (32, 4)),
    (10, 10**7): ((16, 2), (32, 4), (32, 4), (32, 8), (64, 8)),
}


@pytest.mark.parametrize("setting", GRIDS)
def test_grids_are_as_fine_as_the_guideline_says(setting: tuple[int, int]) -> None:
    dimensions, people = setting
    own = tuple(grid_sizes(dimensions, epsilon, people) for epsilon in EPSILONS)
    assert own == GRIDS[setting]


def test_no_grid_is_finer_than_its_dimension() -> None:
    assert grid_sizes(3, 2.0, 10**7) == (128, 16)
    assert cell_widths(64, 128, 16) == (1, 4)
    assert cell_widths(8, 128, 16) == (1, 1)


def test_grids_agree_by_the_papers_weights() -> None:
    """Of an interval a fine grid sums g1/g2 cells and a coarse one g2, and each counts by the
    inverse of that: with g1 = 8, g2 = 2 the weights are 1/4 and 1/2.
    """
    fine, coarse = np.arange(0, 17, 2), np.array([0, 8, 16])
    first = np.array([0.16, 0.14, 0.15, 0.15, 0.1, 0.1, 0.1, 0.1])  # 0.6 and 0.4
    even = np.full(8, 0.125)
    both = np.array([[0.26, 0.26], [0.24, 0.24]])  # 0.52 and 0.48; 0.5 and 0.5
    heard = [
        GridEvidence((0,), (fine,), first, 1e-4, 0.0, 1e6),
        GridEvidence((1,), (fine,), even, 1e-4, 0.0, 1e6),
        GridEvidence((0, 1), (coarse, coarse), both, 1e-4, 0.0, 1e6),
    ]
    table = hybrid_fit((16, 16), heard)
    lower = {0: (np.arange(16) < 8).astype(float)}
    wanted = (0.6 / 4 + 0.52 / 2) / (1 / 4 + 1 / 2)
    assert table.joint([lower]).values[0] == pytest.approx(wanted, abs=1e-9)
    assert abs(wanted - (0.6 + 0.52) / 2) > 0.01  # plain means are told apart


# -- adaptive trees: du2021ahead, section 4, and ahead_1dim.py of its authors


@pytest.mark.parametrize(
    ("levels", "epsilon", "people", "theta"),
    [(10, "1", 10**5, 0.033238656908), (8, "0.5", 10**6, 0.019393272456)],
)
def test_intervals_are_cut_above_the_papers_threshold(
    levels: int, epsilon: str, people: int, theta: float
) -> None:
    """theta = sqrt((B + 1) 4E / (n/h (E - 1)^2)), with h levels and B = 2."""
    assert FANOUT == 2
    unary = oracle("oue", size=4, epsilon=epsilon).noise(people // levels).floor
    assert threshold(unary) == pytest.approx(theta, rel=1e-9)
    # ours hashes into a power of two of cells, next to E + 1: a few hundredths more
    hashed = oracle("olh", size=4, epsilon=epsilon).noise(people // levels).floor
    assert theta <= threshold(hashed) < 1.04 * theta
    assert math.sqrt(FANOUT * unary) < 0.9 * theta  # a fan-out of one less is told apart
