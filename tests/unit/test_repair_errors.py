"""Errors of repaired tables: intervals hold, standard errors and biases are those of many draws."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2
from scipy.stats import f as variance_ratio
from scipy.stats import norm as normal

import sottovoce as sv
from bench.repairs import Crowd
from sottovoce.oracles import Noise
from sottovoce.postprocessing import bootstrap
from sottovoce.postprocessing.bootstrap import RepairSpread, chunks, spread_of_norm
from sottovoce.postprocessing.crowds import collected, plausible_crowd
from sottovoce.postprocessing.methods import METHODS
from sottovoce.postprocessing.simplex import norm, norm_sub
from sottovoce.questions.marginals.estimate import CellSums
from tests.statistics import zipf
from tests.tables import plain, pure

Floats = NDArray[np.float64]
ALPHA = 1e-4
P, Q = 0.5, 0.2689  # unary encoding at epsilon 1
LEAST, MOST = 0.92, 0.98  # the goal: of all values, inside their 95% intervals
GIVEN = [name for name, method in METHODS.items() if method.encoding != "direct"]


def with_sums(table: sv.Table) -> sv.Table:
    """A table of bits with the law of its sums: cells are uncorrelated."""
    return replace(table, sum_noise=partial(_sum_noise, table.noise))


def _sum_noise(noise: Noise, count: int) -> Noise:
    return Noise(count * noise.floor, noise.slope)


def heard(crowd: NDArray[np.int64], random: np.random.Generator) -> sv.Table:
    """What unary reports of a crowd say."""
    people = int(crowd.sum())
    support = random.binomial(crowd, P) + random.binomial(people - crowd, Q)
    return with_sums(pure(support, people, P, Q))


def crowd_of(shares: Floats, people: int) -> NDArray[np.int64]:
    whole = np.floor(shares * people).astype(np.int64)
    whole[0] += people - whole.sum()
    return whole


CROWDS = {
    "skewed, small": crowd_of(zipf(6), 2_000),
    "even, small": crowd_of(np.full(6, 1 / 6), 2_000),
    "skewed, large": crowd_of(zipf(200), 10_000),
    "even, large": crowd_of(np.full(200, 1 / 200), 10_000),
}


def held(name: str, crowd: NDArray[np.int64], factor: float = 1.0) -> float:
    """The share of values inside their 95% intervals; ``factor`` spoils the variances."""
    random = np.random.default_rng(7)
    truth = crowd / crowd.sum()
    inside = []
    for _ in range(4000 // crowd.size):
        raw = heard(crowd, random)
        noise = Noise(raw.noise.floor * factor, raw.noise.slope * factor)
        raw = with_sums(replace(raw, noise=noise, variances=raw.variances * factor))
        method = METHODS[name]
        spread = RepairSpread(
            raw, method.repair, has_bounds=method.is_non_negative, is_whole=method.sums_to_one
        )
        low, high = spread.interval(0.95)
        if method.is_non_negative:
            assert low.min() >= 0
            assert high.max() <= 1
            assert (high > low).all()
        inside.append((low <= truth) & (truth <= high))
    return float(np.mean(inside))


@pytest.mark.parametrize("kind", CROWDS)
@pytest.mark.parametrize("name", ["base-pos", "norm", "norm-sub"])  # clipped, narrowed, both
def test_intervals_hold_as_often_as_they_say(name: str, kind: str) -> None:
    crowd = CROWDS[kind]
    # values of one run are all but independent; those of few that sum to one are fewer by one
    reach = normal.isf(ALPHA) * sqrt(0.05 * 0.95 / 3000)
    share = held(name, crowd)
    assert 0.95 - reach < share < 0.975 + reach
    assert LEAST < share < MOST
    assert held(name, crowd, factor=0.4) < 0.95 - reach  # variances too small are noticed


def test_quantiles_of_the_bootstrap_would_not_hold() -> None:
    crowd = CROWDS["skewed, large"]
    truth = crowd / crowd.sum()
    table = sv.postprocess(heard(crowd, np.random.default_rng(1)), "norm-sub")
    assert isinstance(table.spread, RepairSpread)
    errors = np.concatenate(list(table.spread.draws()))
    low, high = np.quantile(errors, [0.025, 0.975], axis=0)
    inside = (table.values - high <= truth) & (truth <= table.values - low)
    assert inside.mean() < 0.7
    better = table.interval(0.95)
    assert ((better[0] <= truth) & (truth <= better[1])).mean() > LEAST


def test_standard_errors_and_biases_are_those_of_many_collections() -> None:
    crowd = CROWDS["skewed, large"]
    truth = crowd / crowd.sum()
    random = np.random.default_rng(3)
    # a table that says the truth, so that the bootstrap draws from it
    exact = with_sums(replace(heard(crowd, random), values=truth))
    stated, bias = RepairSpread(exact, METHODS["norm-sub"].repair, has_bounds=True).moments()
    runs = 400
    drawn = np.stack([norm_sub(heard(crowd, random).values) for _ in range(runs)])
    spread = drawn.var(axis=0, ddof=1)
    limits = variance_ratio.ppf([ALPHA, 1 - ALPHA], bootstrap.REPLICATES - 1, runs - 1)
    # frequent values, which norm-sub rarely cuts: their errors are nearly normal
    ratios = stated[:3] / spread[:3]
    assert limits[0] < ratios.min()
    assert ratios.max() < limits[1]
    assert (ratios / 2).min() < limits[0]  # a variance halved
    tail = stated[100:].mean() / spread[100:].mean()
    assert 0.9 < tail < 1.1
    # as tables once said: the unrepaired variances
    assert exact.variances[100:].mean() / spread[100:].mean() > 2
    true_bias = drawn[:, 0].mean() - truth[0]
    reach = normal.isf(ALPHA) * sqrt(spread[0] * (1 / runs + 1 / bootstrap.REPLICATES))
    assert abs(bias[0] - true_bias) < reach
    assert abs(true_bias) > reach  # no bias would be noticed


def covariance(crowd: NDArray[np.int64], p: float, q: float, is_direct: bool) -> Floats:
    """Of estimated frequencies, by the chances of each report."""
    size, people = crowd.size, int(crowd.sum())
    total = np.zeros((size, size))
    for value, count in enumerate(crowd):
        chances = np.full(size, q)
        chances[value] = p
        one = np.diag(chances) - np.outer(chances, chances)
        total += count * (one if is_direct else np.diag(np.diag(one)))
    return total / (people * (p - q)) ** 2


@pytest.mark.parametrize("oracle", ["grr", "oue", "ss"])
@pytest.mark.parametrize("count", [1, 3, 5, 6])
def test_the_variance_after_norm_is_that_of_the_covariances(oracle: str, count: int) -> None:
    crowd = np.array([50, 20, 10, 10, 7, 3])
    source = sv.oracle(oracle, size=6, epsilon=1.0)
    p, q = source.p, source.q  # type: ignore[attr-defined]
    members = np.zeros(6)
    members[:count] = 1.0
    after_norm = members - members.sum() / 6  # what norm makes of the errors' sum
    share = crowd[:count].sum() / 100
    found = spread_of_norm(partial(source.sum_noise, 100), 6, count, np.array(share))
    if oracle == "ss":  # sums to one by itself: norm changes nothing
        assert found == pytest.approx(source.sum_noise(100, count).variance(share), abs=1e-12)
        return
    matrix = covariance(crowd, p, q, oracle == "grr")
    assert found == pytest.approx(after_norm @ matrix @ after_norm, abs=1e-12)
    if oracle == "grr" and count > 1:  # as if cells were uncorrelated
        assert found != pytest.approx(members @ np.diag(np.diag(matrix)) @ members, rel=0.1)


@pytest.mark.parametrize("name", METHODS)
def test_rows_are_repaired_as_each_by_itself(name: str) -> None:
    direct = METHODS[name].encoding == "direct"
    table = (
        pure([700, 200, 60, 40], 1000, 0.6, 0.4 / 3, "direct")
        if direct
        else pure([450, 320, 270, 260], 1000, P, Q)
    )
    rows = collected(table, plausible_crowd(table), 5, np.random.default_rng(2))
    assert rows.law is not None
    together = METHODS[name].repair(rows)
    for row in range(5):
        law = replace(rows.law, support=rows.law.support[row])
        alone = METHODS[name].repair(replace(table, values=rows.values[row], law=law))
        # power rounds rows to a sixteenth of the noise
        near = sqrt(table.noise.floor) / 16 if name.startswith("power") else 1e-9
        np.testing.assert_allclose(together[row], alone, atol=near)


@pytest.mark.parametrize("name", GIVEN)
def test_a_repaired_table_says_what_its_errors_are(name: str) -> None:
    raw = heard(CROWDS["skewed, small"], np.random.default_rng(5))
    table = sv.postprocess(raw, name)
    low, high = table.interval(0.8)
    wide_low, wide_high = table.interval(0.99)
    assert (wide_low <= low).all()
    assert (high <= wide_high).all()
    part = table.at(np.array([3, 1]))
    assert part.interval(0.8)[0].tolist() == low[[3, 1]].tolist()
    assert table[3].low == table.interval()[0][3]
    sampled_low, sampled_high = table.interval(population=True)
    assert (sampled_high - sampled_low >= np.subtract(*table.interval()[::-1]) - 1e-12).all()
    drawn = not METHODS[name].is_unbiased and name != "post-pos"
    assert (table.bias is not None) is drawn
    assert ("bias" in table.rows()[0]) is drawn
    assert (table.errors == bootstrap.REPAIR_ERRORS) is drawn
    if drawn:
        assert part.bias is not None
        assert part.rows()[1]["bias"] == table.rows()[1]["bias"]
    if METHODS[name].sums_to_one:
        # narrower for knowing the sum
        assert np.subtract(*table.interval()[::-1]).sum() < 0.99 * 2 * 1.96 * raw.std_error.sum()


def test_the_same_table_has_the_same_errors() -> None:
    raw = heard(CROWDS["skewed, small"], np.random.default_rng(5))
    first, second = (sv.postprocess(raw, "norm-sub") for _ in range(2))
    assert first.variances.tolist() == second.variances.tolist()


def test_two_repairs_are_drawn_one_after_the_other() -> None:
    raw = heard(CROWDS["skewed, large"], np.random.default_rng(5))
    once = sv.postprocess(raw, "norm-sub")
    twice = sv.postprocess(sv.postprocess(raw, "base-pos"), "norm-sub")
    np.testing.assert_allclose(twice.values, once.values, atol=1e-12)
    np.testing.assert_allclose(twice.variances, once.variances, atol=1e-12)
    np.testing.assert_allclose(twice.interval()[1], once.interval()[1], atol=1e-12)


def test_tables_without_counts_are_drawn_by_their_variances() -> None:
    table = sv.postprocess(plain([0.6, 0.35, 0.1, -0.05], 0.001), "norm-sub")
    assert table.errors == bootstrap.REPAIR_ERRORS
    low, high = table.interval()
    assert (low <= table.values).all()
    assert (table.values <= high).all()
    assert table.total([0, 1]).is_bound  # nobody knows how its cells err together


def test_a_table_too_large_to_draw_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "MOST_REPAIRED", 5)
    raw = heard(CROWDS["skewed, small"], np.random.default_rng(5))
    table = sv.postprocess(raw, "norm-sub")
    assert table.errors == bootstrap.UNREPAIRED_ERRORS
    assert table.variances.tolist() == raw.variances.tolist()
    assert table.interval()[0].min() >= 0


def test_sums_of_repaired_values_err_as_they_say() -> None:
    """Of a norm-sub table; the sum of variances would be far too much."""
    crowd = crowd_of(zipf(6), 20_000)
    truth, members = float(crowd[:5].sum() / crowd.sum()), list(range(5))
    random = np.random.default_rng(11)
    errors, inside = [], []
    for _ in range(150):
        total = sv.postprocess(heard(crowd, random), "norm-sub").total(members)
        low, high = total.interval(0.95)
        errors.append((float(total) - truth, total.std_error))
        inside.append(low <= truth <= high)
        assert 0 <= low <= high <= 1
    missed, said = np.array(errors).T
    ratio = float((missed**2).mean() / (said**2).mean())
    # 150 squares of normal errors, and 200 draws behind each standard error
    limits = variance_ratio.ppf([ALPHA, 1 - ALPHA], 150, bootstrap.REPLICATES - 1)
    assert limits[0] < ratio < limits[1]
    one = sv.postprocess(heard(crowd, random), "norm-sub")
    assert (missed**2).mean() / one.variances[members].sum() < limits[0]
    assert 0.95 - normal.isf(ALPHA) * sqrt(0.05 * 0.95 / 150) < np.mean(inside)


def test_totals_after_post_pos_are_not_negative_and_have_intervals() -> None:
    raw = heard(CROWDS["skewed, small"], np.random.default_rng(5))
    low_one = int(np.argmin(raw.values))
    raw = replace(raw, values=raw.values - 0.2 * (np.arange(6) == low_one))
    table = sv.postprocess(raw, "post-pos")
    total = table.total([low_one])
    assert table.values[low_one] < 0
    assert total == 0
    low, high = total.interval(0.95)
    assert low == 0
    assert 0 < high < 1
    assert total.std_error <= raw.total([low_one]).std_error * 1.2
    assert pickle.loads(pickle.dumps(raw.total([0]))).ends is None


def test_rows_come_in_chunks() -> None:
    assert sum(chunks(200, 3)) == 200
    assert list(chunks(3, 1 << 20)) == [1, 1, 1]


def test_norm_of_some_values_is_not_narrowed() -> None:
    raw = heard(CROWDS["skewed, small"], np.random.default_rng(5))
    part = replace(raw, is_complete=False)
    table = sv.postprocess(part, "norm")
    np.testing.assert_allclose(table.values, norm(raw.values))
    np.testing.assert_allclose(np.subtract(*table.interval()[::-1]), 2 * 1.959964 * raw.std_error)


def test_a_repair_that_changes_nothing_leaves_the_errors_of_marginals() -> None:
    """A table of marginals sums to one and has no law; norm-sub leaves its values as they are."""
    variances = np.full(2, 0.02**2)
    noise = Noise(0.02**2, 0.0)
    table = sv.Table(("x",), (False, True), np.array([0.7, 0.3]), variances, 20_000, noise)
    repaired = sv.postprocess(table, "norm-sub")
    assert np.allclose(repaired.values, table.values)
    # the standard error of a standard deviation of 2,000 draws is 1.6% of it; halved variances
    # would be 29% off
    assert np.allclose(repaired.std_error, table.std_error, rtol=0.08)


@pytest.mark.parametrize("name", ["base-pos", "norm-sub"])
def test_intervals_of_repaired_marginals_hold_as_often_as_they_say(name: str) -> None:
    crowd = Crowd("even", 12, 3_000, "fc", 2.0, (4, 3))
    truth = np.full(12, 1 / 12)
    runs = 100
    inside: dict[float, list[NDArray[np.bool_]]] = {1.0: [], 0.5: []}  # by the factor of variances
    errors, stated = [], []
    for raw in crowd.tables(runs):
        assert isinstance(raw.spread, CellSums)
        for factor, held_cells in inside.items():
            spoilt = replace(raw.spread, std_error=raw.spread.std_error * sqrt(factor))
            table = replace(raw, variances=raw.variances * factor, spread=spoilt)
            repaired = sv.postprocess(table, name)
            low, high = repaired.interval(0.95)
            assert 0 <= low.min() <= high.max() <= 1
            held_cells.append((low <= truth) & (truth <= high))
            if factor == 1:
                errors.append(repaired.values)
                stated.append(repaired.variances)
    # cells of a run are nearly independent; those that sum to one are fewer by one
    reach = normal.isf(ALPHA) * sqrt(0.05 * 0.95 / (runs * 11))
    assert 0.95 - reach < np.mean(inside[1.0]) < 0.975 + reach
    assert LEAST < np.mean(inside[1.0]) < MOST
    assert np.mean(inside[0.5]) < 0.95 - reach
    ratio = float(np.mean(stated) / np.var(errors, axis=0, ddof=1).mean())
    limits = chi2.isf([ALPHA, 1 - ALPHA], runs * 11) / (runs * 11)
    assert limits[1] < ratio < limits[0]
