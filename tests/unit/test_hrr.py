"""Hadamard coefficients through randomized response, and sums of cells for every oracle, by brute
force.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.oracles import PureOracle
from sottovoce.oracles.hadamard import HadamardRandomizedResponse
from sottovoce.oracles.sketch import HadamardCountMeanSketch, _Sketch
from tests.statistics import z_limit
from tests.sums import person_variances


def hrr(size: int, epsilon: float = 1.0) -> HadamardRandomizedResponse:
    made = sv.oracle("hrr", size=size, epsilon=epsilon)
    assert isinstance(made, HadamardRandomizedResponse)
    return made


def test_orders_and_fields() -> None:
    assert [hrr(size).order for size in (2, 3, 4, 5, 8, 9)] == [2, 4, 4, 8, 8, 16]
    assert [hrr(size).bits for size in (2, 3, 4, 5, 8, 9)] == [1, 3, 3, 4, 4, 5]
    assert hrr(2).worst_ratio == pytest.approx(math.e)
    # two values are told by the only coefficient: randomized response
    assert hrr(2).exact_q == 1 - hrr(2).exact_p
    assert hrr(4).exact_q == hrr(4).exact_p * Fraction(1, 3) + (1 - hrr(4).exact_p) * Fraction(2, 3)
    with pytest.raises(sv.CorruptReport, match="coefficient"):
        hrr(4).unpack(bytes([3]))  # there are three coefficients beside the constant one


def test_the_estimate_sums_to_one_where_the_values_fill_the_transform() -> None:
    oracle = hrr(8)
    state = oracle.accumulate(oracle.empty(), oracle.simulate(np.arange(1000) % 3, seed=1))
    assert oracle.estimate(state, 1000)[0].sum() == pytest.approx(1)


ENUMERATED = ["grr", "sue", "oue", "ss", "olh", "hrr"]


@pytest.mark.parametrize("name", ENUMERATED)
@pytest.mark.parametrize("size", [4, 6])
def test_sums_have_the_variance_of_the_channel(name: str, size: int) -> None:
    """For every set of values and every value a person holds; the same for all sets of one size."""
    oracle = sv.oracle(name, size=size, epsilon=1.0)
    assert isinstance(oracle, PureOracle)
    for count in range(1, size + 1):
        noise = oracle.sum_noise(1, count)
        for members in combinations(range(size), count):
            inside = np.isin(np.arange(size), members)
            assert person_variances(oracle, members) == pytest.approx(
                noise.variance(inside), abs=1e-9
            )
    assert oracle.sum_noise(7, 1).floor == pytest.approx(oracle.noise(7).floor)
    assert oracle.sum_noise(7, 1).slope == pytest.approx(oracle.noise(7).slope)
    wrong = size // 2 * oracle.noise(1).floor  # cells as if they were independent
    alike = wrong == pytest.approx(oracle.sum_variance(1, size // 2))
    assert alike == (name in ("sue", "oue", "olh"))


def test_hadamard_response_states_the_mean_over_sets() -> None:
    oracle = sv.oracle("hr", size=7, epsilon=1.0)  # its rows fill a matrix of order 8
    assert isinstance(oracle, PureOracle)
    for count in (1, 2, 3, 5):
        inside, outside = [], []
        for members in combinations(range(7), count):
            person = person_variances(oracle, members)
            inside.append(person[list(members)].mean())
            outside.append(np.delete(person, list(members)).mean())
        noise = oracle.sum_noise(1, count)
        assert np.mean(outside) == pytest.approx(noise.floor, rel=0.1)
        assert np.mean(inside) == pytest.approx(noise.floor + noise.slope, rel=0.1)


@pytest.mark.parametrize("name", ["o-rr", "o-rappor"])
def test_oracles_of_cohorts_state_sums_inside_and_outside(name: str) -> None:
    oracle = sv.oracle(name, size=6, epsilon=1.0)
    noise = oracle.sum_noise(10, 3)
    assert oracle.sum_variance(10, 3) == noise.floor > 0
    assert noise.floor + noise.slope > 0
    assert oracle.sum_noise(10, 6).floor >= 0


@pytest.mark.parametrize("name", ["hcms", "cms"])
def test_sums_from_a_sketch_spread_as_stated_over_salts(name: str) -> None:
    """Narrow rows, so that collisions matter: with and without the people of the sum, and not as
    independent cells.
    """
    runs, people, size, count = 500, 400, 12, 6
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01])
    values = np.repeat(np.arange(size), (shares * people).round().astype(int))
    for members in (np.arange(count), np.arange(count, size)):
        errors = []
        for run in range(runs):
            oracle = sv.oracle(name, size=size, epsilon=3.0, hashes=4, width=4, salt=run)
            assert isinstance(oracle, _Sketch)
            state = oracle.accumulate(oracle.empty(), oracle.simulate(values, seed=run))
            errors.append(oracle.estimate(state, people)[0][members].sum() - shares[members].sum())
        own = float((shares[members] ** 2).sum())
        total = float(shares[members].sum())
        spread = oracle.sum_spread(count, float((shares**2).sum()), own, total)
        plain = float(oracle.sum_noise(people, count).variance(total))
        stated = plain + float(oracle.collision_variance(spread))
        limit = z_limit(4) * math.sqrt(2 / runs)
        assert abs(np.var(errors) / stated - 1) < limit
        assert abs(np.mean(errors)) < z_limit(4) * math.sqrt(stated / runs)
        assert abs(np.var(errors) / plain - 1) > limit  # shared collisions show
        estimated = float(oracle.sum_variances(state, people, count, np.array([total]))[0])
        assert plain < estimated


def test_a_sketch_of_one_cell_states_what_it_always_did() -> None:
    oracle = sv.oracle("hcms", size=10, epsilon=1.0, hashes=4, width=8)
    assert isinstance(oracle, HadamardCountMeanSketch)
    assert oracle.sum_noise(50, 1).floor == pytest.approx(oracle.noise(50).floor)
    assert oracle.sum_noise(50, 1).slope == pytest.approx(oracle.noise(50).slope)
    assert oracle.sum_variance(50, 1) == pytest.approx(oracle.variance(50, 0.0))
