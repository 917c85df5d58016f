"""Where the papers are wrong: the printed form fails, the corrected one holds. Numbers are those of
docs/errata.md.

8 and 15 are in test_likelihood.py and test_postprocess.py, 10 in tests/exact/test_laplace.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import sottovoce as sv
from sottovoce.oracles.buckets import OpenRandomizedResponse
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.oracles.unary import OptimizedUnaryEncoding
from tests.statistics import z_limit


def half_sum(name: str, size: int, epsilon: float, **options: int) -> float:
    return sv.oracle(name, size=size, epsilon=epsilon, **options).sum_variance(1, size // 2)


def test_14_half_sums_at_epsilon_one_and_sixteen_cells() -> None:
    assert half_sum("grr", 16, 1.0) == pytest.approx(26.3, abs=0.05)
    assert half_sum("oue", 16, 1.0) == pytest.approx(29.5, abs=0.05)
    assert half_sum("ss", 16, 1.0, chosen=4) == pytest.approx(13.6, abs=0.05)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_14_grr_beats_oue_for_half_sums_up_to_six_e_plus_two(epsilon: float) -> None:
    odds = math.exp(epsilon)
    wins = [
        size
        for size in range(4, 200, 2)
        if half_sum("grr", size, epsilon) < half_sum("oue", size, epsilon)
    ]
    assert max(wins) == max(size for size in range(4, 200, 2) if size < 6 * odds + 2)
    printed = max(size for size in range(4, 200, 2) if size < 3 * odds + 2)
    assert max(wins) > printed  # the rule for single cells stops too early
    cells = [
        size
        for size in range(3, 200)
        if sv.oracle("grr", size=size, epsilon=epsilon).variance(1)
        < sv.oracle("oue", size=size, epsilon=epsilon).variance(1)
    ]
    assert max(cells) == max(size for size in range(3, 200) if size < 3 * odds + 2)


SUMMED = [
    ("grr", {}),
    ("ss", {"chosen": 4}),
    ("oue", {}),
    ("olh", {}),
    ("hr", {}),
    ("hrr", {}),
    ("o-rr", {}),
    ("o-rappor", {}),
]


@pytest.mark.parametrize(("name", "options"), SUMMED)
def test_14_half_sums_measured(name: str, options: dict[str, int]) -> None:
    """Nobody holds the eight values summed; the spread over runs is the stated one, and not the sum
    of the cells'.
    """
    oracle = sv.oracle(name, size=16, epsilon=1.0, **options)
    people, runs = 4000, 600
    sums = []
    for run in range(runs):
        values = np.random.default_rng(run).integers(8, 16, people)
        estimated, _ = oracle.estimate_reports(oracle.simulate(values, seed=run))
        sums.append(estimated[:8].sum())
    ratio = np.var(sums) / oracle.sum_variance(people, 8)
    limit = z_limit(len(SUMMED)) * math.sqrt(2 / runs)
    assert abs(ratio - 1) < limit
    if name in ("grr", "ss"):
        naive = 8 * oracle.variance(people)
        assert abs(np.var(sums) / naive - 1) > limit


def test_17_the_inverse_transform_needs_no_further_scaling() -> None:
    """cell = 2^-k sum over a of (-1)^<a, cell> c_a with c_0 = 1; the printed 2^-d would flatten
    every table.
    """
    people = {"a": [0, 1, 1, 1] * 5000, "b": [0, 0, 1, 1] * 5000}
    schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=8.0, people=20_000)
    table = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate().marginal("a", "b")
    truth = np.array([0.25, 0.0, 0.25, 0.5])
    limit = z_limit(4) * table.std_error
    assert (np.abs(table.values - truth) < limit).all()
    assert table.values.sum() == pytest.approx(1)
    printed = 0.25 + (table.values - 0.25) / 4  # every coefficient but the first scaled by 2^-d
    assert (np.abs(printed - truth) > limit).any()


def test_18_the_sampling_belongs_into_the_bound() -> None:
    """Theorem 4.2: sigma^2 = 1/(p_s (2 p_r - 1)^2) - 1; without it the bound is wrong by fifteen
    orders.
    """
    people, sampled, reach = 20_000, 0.01, 0.15
    odds = math.exp(6.0)
    truthful = odds / (1 + odds)
    gap = 2 * truthful - 1
    printed = 2 * math.exp(
        -people * reach**2 * sampled * gap / (2 * truthful * (2 * (1 - truthful) / gap + reach / 3))
    )
    assert printed < 1e-17
    draws = np.random.default_rng(18)
    runs = 4000
    asked = draws.binomial(people, sampled, runs)
    agreed = draws.binomial(asked, truthful)
    errors = (2 * agreed - asked) / (gap * sampled * people) - 1
    share = float((np.abs(errors) >= reach).mean())
    assert share > 0.02
    sigma2 = 1 / (sampled * gap**2) - 1
    assert abs(errors.var() / (sigma2 / people) - 1) < z_limit(1) * math.sqrt(2 / runs)
    assert share == pytest.approx(2 * norm.sf(reach / math.sqrt(sigma2 / people)), abs=0.015)


def test_21_one_cell_alone_is_noisier_than_the_plotted_table() -> None:
    """At epsilon 0.2 with 2^16 people and 16 views of two attributes; figure 4 plots 0.0041 for a
    table of three.
    """
    view = sv.oracle("grr", size=4, epsilon=0.2)
    assert view.variance(2**16 // 16) == pytest.approx(0.016, abs=0.001)
    assert view.variance(2**16 // 16) > 3 * 0.0041


def test_19_preferential_sampling_and_the_flip_of_a_zero() -> None:
    odds, size = math.e, 5
    grr = sv.oracle("grr", size=size, epsilon=1.0)
    assert isinstance(grr, GeneralizedRandomizedResponse)
    p = grr.p
    assert (size - 1) * p / (1 - p) == pytest.approx(odds)  # corrected fact 3.1
    oue = sv.oracle("oue", size=size, epsilon=1.0)
    assert isinstance(oue, OptimizedUnaryEncoding)
    assert oue.q == pytest.approx(1 / (1 + odds))  # a zero is flipped so often
    assert oue.q != pytest.approx(odds / (1 + odds), rel=0.1)  # not retained so often


def test_20_eta_is_a_probability() -> None:
    rr = sv.oracle("rr", size=2, epsilon=1.0)
    assert rr.channel()[0, 0] == pytest.approx(math.e / (math.e + 1))  # printed: eta = E, above one


def test_20_the_left_side_of_eq_18_is_h_times_p() -> None:
    """With the expected reports in place of counted ones, H p^T = z gives the frequencies back
    exactly.
    """
    oracle = sv.oracle("o-rr", size=6, epsilon=1.0, cohorts=16, buckets=3)
    assert isinstance(oracle, OpenRandomizedResponse)
    frequencies = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04])
    design = oracle.design(np.arange(6, dtype=np.uint64), is_complete=True)
    ((_, touched),) = design.blocks()
    assert np.allclose(design.solve(touched @ frequencies), frequencies)
    with pytest.raises(ValueError, match="matmul"):
        frequencies @ touched.reshape(-1, 6)  # the printed order does not even fit


SAVED = [
    (0.5, 8, 0.25),
    (1.0, 8, 0.20),
    (1.0, 16, 0.15),
    (1.0, 32, 0.07),
    (2.0, 32, 0.14),
    (3.0, 64, 0.16),
]


@pytest.mark.parametrize(("epsilon", "size", "saved"), SAVED)
def test_subset_selection_beats_the_better_of_grr_and_oue(
    epsilon: float, size: int, saved: float
) -> None:
    errors = {
        name: sv.oracle(name, size=size, epsilon=epsilon).variance(1, 1 / size)
        for name in ("grr", "oue", "ss")
    }
    assert 1 - errors["ss"] / min(errors["grr"], errors["oue"]) == pytest.approx(saved, abs=0.012)


def test_hash_bits_are_the_best_whole_ones() -> None:
    bits = [
        sv.oracle("olh", size=64, epsilon=epsilon).hash_bits for epsilon in (0.5, 1.0, 2.0, 4.0)
    ]
    assert bits == [1, 2, 3, 6]
    for epsilon in (0.5, 0.65, 1.0, 1.5, 2.0, 4.0):
        odds = math.exp(epsilon)
        best = 4 * odds / (odds - 1) ** 2
        assert 1 <= sv.oracle("olh", size=64, epsilon=epsilon).variance(1) / best < 1.065
