"""Where the papers are wrong: the printed form fails, the corrected one holds. Numbers are those of
docs/errata.md.

8 and 15 are in test_likelihood.py and test_postprocess.py, 10 in tests/exact/test_laplace.py. Of
the second reading (N1 to N18) those are here that computing can tell; the others are slips of
words.
"""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, norm

import sottovoce as sv
from sottovoce.analysis.pairs import contingency
from sottovoce.oracles import Noise
from sottovoce.oracles.bloom import OpenRappor
from sottovoce.oracles.buckets import OpenRandomizedResponse
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.oracles.unary import OptimizedUnaryEncoding
from sottovoce.postprocessing import postprocess
from sottovoce.postprocessing.baseline import base_cut
from sottovoce.postprocessing.power import _fit, _span, power
from sottovoce.protocol.families import views_of
from sottovoce.protocol.terms import Terms
from sottovoce.questions.heavyhitters.prefixes import prefix_lengths
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.models.designs import cover
from sottovoce.questions.marginals.workload import Workload
from tests.statistics import z_limit, zipf


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


# -- the second reading


def bits(count: int) -> sv.Schema:
    return sv.Schema(**{f"a{place}": sv.Boolean() for place in range(count)})


def table_of(values: np.ndarray, variance: float, people: int) -> sv.Table:
    size = values.shape[-1]
    spread = np.full(size, variance)
    return sv.Table(("x",), range(size), values, spread, people, Noise(variance, 0.0))


@pytest.mark.parametrize("hashes", [1, 2, 3])
def test_n1_bits_of_a_filter_share_the_budget_of_all_hashes(hashes: int) -> None:
    """Two filters differ in up to 2h bits: e^{eps/2} a bit, as printed, would cost h eps."""
    epsilon = 1.0
    oracle = sv.oracle("o-rappor", size=1000, epsilon=epsilon, hashes=hashes, alphabet="open")
    assert isinstance(oracle, OpenRappor)
    one, zero = oracle.exact_bits
    a_bit = math.log(one / zero)  # of a bit that is set against one that is not
    assert a_bit == pytest.approx(epsilon / (2 * hashes))
    assert 2 * hashes * a_bit == pytest.approx(epsilon)
    assert math.log(oracle.worst_ratio) == pytest.approx(epsilon)
    printed = 2 * hashes * epsilon / 2
    assert printed == pytest.approx(hashes * epsilon)  # above epsilon from two hashes on


def triples(views: list[list[int]]) -> set[tuple[int, ...]]:
    return {part for view in views for part in combinations(view, 3)}


@pytest.mark.parametrize("epsilon", ["1.6", "1.8"])
def test_n2_algorithm_one_overlooks_a_covering_design(epsilon: str) -> None:
    """calm follows its lines: 262 random quadruples, where 140 hold every triple."""
    work = Workload.of(bits(16), None, 3, None)
    views = views_of(16, method("calm").settle(work, Terms(Decimal(epsilon), 1 << 18))["views"])
    assert {len(view) for view in views} == {4}
    assert len(views) == 262
    assert len(triples(views)) == 487
    design = cover(16, 4, 3, len(views))
    assert design is not None
    assert len(design) == 140
    assert len(triples(design)) == 560


@pytest.mark.parametrize(
    ("people", "epsilon", "count"), [(1 << 18, "1.2", 140), (1 << 17, "2", 74), (1 << 19, "1", 140)]
)
def test_n2_the_other_calm_takes_the_better(people: int, epsilon: str, count: int) -> None:
    work, terms = Workload.of(bits(16), None, 3, None), Terms(Decimal(epsilon), people)
    other = method("calm+")
    taken = other.settle(work, terms)
    views = views_of(16, taken["views"])
    assert len(views) == count
    assert len(triples(views)) == 560
    printed = views_of(16, method("calm").settle(work, terms)["views"])
    drawn = [view for view in printed if len(view) == len(views[0])]
    if drawn:  # what the lines choose, with calm+'s own oracles
        assert other.predict(work, terms, taken) < other.predict(work, terms, {"views": drawn})


def test_n2_the_other_calm_keeps_random_views_that_are_predicted_to_err_less() -> None:
    work, terms = Workload.of(bits(16), None, 4, None), Terms(Decimal("1.2"), 1 << 19)
    other = method("calm+")
    taken = other.settle(work, terms)
    assert len(views_of(16, taken["views"])) == 524
    design = cover(16, 5, 4, 524)
    assert other.predict(work, terms, taken) < other.predict(work, terms, {"views": design})


def test_n3_the_bound_fails_without_sampling_too() -> None:
    """By the exact binomial law: its exponent is twice too large."""
    people = 20_000
    truthful = math.e / (1 + math.e)
    gap = 2 * truthful - 1
    sigma2 = 1 / gap**2 - 1
    reach = 3 * math.sqrt(sigma2 / people)
    agreed = np.arange(people + 1)
    errors = (2 * agreed - people) / (gap * people) - 1
    exact = float(binom.pmf(agreed, people, truthful)[np.abs(errors) >= reach].sum())
    printed = 2 * math.exp(
        -people * reach**2 * gap / (2 * truthful * (2 * (1 - truthful) / gap + reach / 3))
    )
    largest = 2 * truthful / gap  # M, at p_s = 1
    right = 2 * math.exp(-people * reach**2 / (2 * sigma2 + 2 * reach * largest / 3))
    assert exact == pytest.approx(2.7e-3, abs=1e-4)
    assert printed == pytest.approx(2.7e-4, abs=1e-5)
    assert printed < exact < right


def test_n4_the_plotted_error_of_ft_is_not_the_unbiased_estimators() -> None:
    """Kosarak, d = 16, k = 3, n = 2^16, epsilon 0.2: .2266 is plotted."""
    kappa = math.tanh(0.1)
    coefficients = 16 + 120 + 560
    noise = 7 / 8 * coefficients / (kappa**2 * 2**16)
    assert noise == pytest.approx(0.935, abs=0.001)
    work, terms = Workload.of(bits(16), None, 3, None), Terms(Decimal("0.2"), 1 << 16)
    assert method("inp-ht").predict(work, terms, {}) == pytest.approx(noise, rel=0.02)
    assert noise > 4 * 0.2266


def test_n5_alpha_is_an_expected_number_of_values_that_nobody_holds() -> None:
    size, alpha, runs = 1024, 2.0, 400
    draws = np.random.default_rng(5)
    heard = table_of(draws.normal(0, 0.01, (runs, size)), 1e-4, 1000)
    passed = np.count_nonzero(base_cut(heard), axis=1)  # (runs,)
    limit = z_limit(1) * math.sqrt(alpha / runs)
    assert abs(np.mean(passed) - alpha) < limit
    assert np.mean(passed) > 1 + limit  # no chance, and no posterior


@pytest.mark.parametrize(("rho", "base_wins"), [(10, False), (50, True), (90, True)])
def test_n6_base_cut_does_not_outperform_base_for_large_sets(rho: int, base_wins: bool) -> None:
    """The thesis's Zipf data: n = 1e6, d = 1024, s = 1.5, OLH's noise at epsilon 1."""
    size, people, runs = 1024, 10**6, 100
    truth = zipf(size, 1.5)
    variance = sv.oracle("olh", size=size, epsilon=1.0).variance(people)
    draws = np.random.default_rng(rho)
    errors = np.zeros((runs, 2))
    for run in range(runs):
        noisy = truth + draws.normal(0, math.sqrt(variance), size)
        cut = base_cut(table_of(noisy, variance, people))
        chosen = draws.choice(size, size * rho // 100, replace=False)
        errors[run] = [(each[chosen].sum() - truth[chosen].sum()) ** 2 for each in (noisy, cut)]
    of_base, of_cut = errors.mean(axis=0)
    assert (of_base < of_cut) == base_wins
    if rho == 90:
        assert of_cut > 3 * of_base


def test_n7_order_holds_from_right_to_left_only_and_mle_apx_multiplies() -> None:
    estimates = np.array([0.7, 0.5, -0.1, -0.2])
    table = table_of(estimates, 0.01, 1000)
    repaired = postprocess(table, "norm-sub").values
    assert repaired[2] == repaired[3]  # though -0.1 > -0.2
    assert (np.diff(repaired) <= 0).all()
    # f = gamma f~ + delta on what is positive: gamma is 1 for norm-sub, and not for mle-apx
    sloped = sv.Table(("x",), range(4), estimates, np.full(4, 0.01), 1000, Noise(0.01, 0.02))
    slopes = [
        (each[0] - each[1]) / (estimates[0] - estimates[1])
        for each in (repaired, postprocess(sloped, "mle-apx").values)
    ]
    assert slopes[0] == pytest.approx(1)
    assert slopes[1] != pytest.approx(1, abs=0.01)


def test_n8_prefixes_of_twelve_groups() -> None:
    """128 bits and the 2^8 most frequent: ten bits more in each group, so 2^18 candidates."""
    lengths = prefix_lengths(128, 256, 12)
    assert set(np.diff(lengths).tolist()) == {10}
    assert lengths[-2] == 118  # "2^8 118-bit prefixes"
    assert 256 << 10 == 2**18 != 2**20


@pytest.mark.parametrize(("size", "groups"), [(64, 5), (160, 13)])
def test_n9_a_million_queries_need_other_groups_than_six(size: int, groups: int) -> None:
    """g k 2^ceil((m - log2 k)/g) <= 2^20 at k = 16."""
    fitting = [g for g in range(1, size) if g * 16 << -(-(size - 4) // g) <= 1 << 20]
    assert min(fitting) == groups
    if size <= 128:  # as long as values may be
        question = sv.HeavyHitters("x", top=16, method="pem", queries=1 << 20)
        schema = sv.Schema(x=sv.Integer(bits=size))
        assert len(sv.plan(schema, question, epsilon=1.0, people=10**6).cohorts) == groups


def test_n11_how_many_coefficients_eight_of_thirty_two_need() -> None:
    assert sum(math.comb(32, size) for size in range(1, 9)) == 15_033_172
    reason = method("inp-ht").refuse(Workload.of(bits(32), None, 8, None), Terms(Decimal(1), 2**18))
    assert "15,033,172" in str(reason)


@pytest.mark.parametrize(("people", "count"), [(1 << 16, 65), (1 << 18, 120)])
def test_n12_sixty_five_pairs_are_those_of_two_to_the_sixteen_people(
    people: int, count: int
) -> None:
    work = Workload.of(bits(16), None, 3, None)
    views = views_of(16, method("calm").settle(work, Terms(Decimal("0.2"), people))["views"])
    assert (len(views), len(views[0])) == (count, 2)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_n13_what_bounds_the_odds_of_half_an_epsilon(epsilon: float) -> None:
    odds = 1 / (math.exp(epsilon / 2) - 1)
    assert 1 / epsilon < odds < 2 / epsilon


def test_n14_it_is_inp_rr_that_sends_a_bit_for_every_cell() -> None:
    sent = {
        name: sv.plan(
            bits(10), sv.Marginals(up_to=2, method=name), epsilon=1.0, people=10_000
        ).cohorts.bytes
        for name in ("inp-ht", "inp-rr")
    }
    assert sent["inp-rr"] == 2**10 // 8
    assert sent["inp-ht"] == 1


def test_n15_chi_squared_of_fractions_takes_a_factor_of_people() -> None:
    counts = np.array([[40, 20], [10, 30]])
    people = int(counts.sum())
    fractions = float(contingency(counts / people))
    textbook = float(chi2_contingency(counts, correction=False).statistic)
    assert people * fractions == pytest.approx(textbook)
    assert fractions != pytest.approx(textbook, rel=0.5)


def test_n16_the_channel_of_o_rr_is_stochastic_by_columns_as_printed() -> None:
    """(15) is kC x S, and its columns sum to 1: row-stochastic is the transpose."""
    epsilon, cohorts, buckets, size = 1.0, 16, 3, 6
    oracle = sv.oracle("o-rr", size=size, epsilon=epsilon, cohorts=cohorts, buckets=buckets)
    assert isinstance(oracle, OpenRandomizedResponse)
    design = oracle.design(np.arange(size, dtype=np.uint64), is_complete=True)
    touched = np.concatenate([block for _, block in design.blocks()])  # (cohorts, buckets, values)
    hashed = touched.reshape(cohorts * buckets, size)  # H
    odds = math.exp(epsilon)
    printed = (1 + (odds - 1) * hashed) / (cohorts * (odds + buckets - 1))
    assert np.allclose(printed.sum(axis=0), 1)
    assert not np.allclose(printed.sum(axis=1), 1)


def test_n17_power_minimises_the_distance_from_the_true_frequency() -> None:
    """By brute force: frequencies from the fitted law, normal errors, every guess tried."""
    estimates = np.array([0.7, 0.2, 0.1, 0.05, -0.05, 0.03, -0.03, 0.0])
    variance = 0.001
    chosen = power(table_of(estimates, variance, 1000))
    exponent = _fit(estimates, math.sqrt(variance))
    least = math.exp(-_span(exponent, len(estimates)))
    true = np.exp(np.linspace(math.log(least), 0, 200_001))  # even in log x, so that dx = x
    guesses = np.linspace(0, 1, 2001)
    for estimate, own in zip(estimates, chosen, strict=True):
        mass = true ** (1 - exponent) * norm.pdf((estimate - true) / math.sqrt(variance))
        mass /= mass.sum()
        # E[(f - guess)^2 | f~] = E[f^2] - 2 guess E[f] + guess^2
        loss = mass @ true**2 - 2 * guesses * (mass @ true) + guesses**2
        assert own == pytest.approx(guesses[np.argmin(loss)], abs=0.002)
    # what is printed, E[(f_v - f~_v)^2 | f~_v], is least where nothing is done
    assert np.abs(chosen - estimates).max() > 0.01
