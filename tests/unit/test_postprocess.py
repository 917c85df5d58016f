"""The methods: what each promises; their errors on skewed data; the choice among them."""

from __future__ import annotations

import subprocess
import sys
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.postprocessing.methods import METHODS, REPAIR_ALIASES
from sottovoce.postprocessing.simplex import norm, norm_cut, norm_mul, norm_sub
from tests.tables import plain, pure

Floats = NDArray[np.float64]
ALPHA = 1e-4  # chance that a sampled test here fails although all is well

LAWS = [(0.5, 0.2689), (0.4754, 0.25), (0.6225, 0.3775), (0.7311, 0.5), (0.5, 0.0067)]


@st.composite
def tables(draw: st.DrawFn) -> sv.Table:
    """Tables that reports can give: of bits, or of direct answers."""
    size = draw(st.integers(2, 24))
    if draw(st.booleans()):
        people = draw(st.integers(1, 2000))
        support = draw(st.lists(st.integers(0, people), min_size=size, max_size=size))
        return pure(support, people, *draw(st.sampled_from(LAWS)))
    support = draw(st.lists(st.integers(0, 200), min_size=size, max_size=size).filter(any))
    likelier = draw(st.sampled_from([1.2, 2.718281828, 50.0]))
    q = 1 / (likelier + size - 1)
    return pure(support, sum(support), likelier * q, q, "direct")


# -- what table 8.1 promises


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=60, deadline=None)
@given(tables())
def test_each_method_keeps_its_promises(name: str, table: sv.Table) -> None:
    method = METHODS[name]
    if not method.fits(table):
        return
    values = method.repair(table)
    assert values.shape == table.values.shape
    if method.is_non_negative:
        assert values.min() >= 0
    if method.sums_to_one:
        assert abs(values.sum() - 1) < 1e-9
    # every method keeps the order, wang2021thesis, section 8.1.6
    # (integrals as far as they are exact)
    steps = np.diff(values[np.argsort(table.values, kind="stable")])
    assert steps.min() > -1e-12 - (
        1e-5 * sqrt(table.noise.floor) if name.startswith("power") else 0
    )


def test_the_input_is_left_alone_and_the_output_marked() -> None:
    for name, method in METHODS.items():
        for table in (
            pure([70, 20, 10], 100, 0.6, 0.2, "direct"),
            pure([70, 20, 30], 100, 0.6, 0.2),
        ):
            if not method.fits(table):
                continue
            before = table.values.copy()
            repaired = sv.postprocess(table, name)
            assert np.array_equal(before, table.values)
            assert repaired.values.tolist() == method.repair(table).tolist()
            assert repaired.repair == (None if name == "base" else name)
            assert repaired.is_unbiased is method.is_unbiased
            assert repaired.people == table.people


# -- single methods


def by_bisection(values: Floats) -> Floats:
    """The projection onto the simplex: the delta of norm-sub as the root of a monotone function."""
    reach = float(np.abs(values).max()) + 2
    delta = brentq(lambda delta: np.maximum(values + delta, 0).sum() - 1, -reach, reach, xtol=1e-15)
    return np.maximum(values + delta, 0)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=60))
def test_norm_sub_is_the_projection(values: list[float]) -> None:
    column = np.array(values)
    np.testing.assert_allclose(norm_sub(column), by_bisection(column), atol=1e-12)


def test_norm_sub_is_nearest_of_all_feasible_points() -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        values = random.normal(0.1, 0.4, 8)
        nearest = ((norm_sub(values) - values) ** 2).sum()
        others = ((random.dirichlet(np.full(8, 0.4), 500) - values) ** 2).sum(axis=1)
        assert nearest <= others.min()
        assert nearest <= ((norm_mul(values) - values) ** 2).sum()


def test_norm_sub_of_many_rows_is_that_of_each_to_the_bit() -> None:
    rows = np.random.default_rng(8).normal(0.1, 0.4, (5, 10, 7))
    singly = [[norm_sub(row) for row in some] for some in rows]
    assert np.array_equal(norm_sub(rows), singly)


def test_norm_sub_keeps_precision_far_away() -> None:
    np.testing.assert_allclose(
        norm_sub(np.array([1e12 + 0.75, 1e12 + 0.25, -1e12])), [0.75, 0.25, 0.0]
    )


def by_trying_thresholds(values: Floats) -> Floats:
    """Norm-cut as it is defined: the smallest theta, of all that make a difference, whose sum is at
    most one.
    """
    for theta in sorted({0.0, *values[values > 0]}):
        kept = values[values >= theta]
        if kept[kept > 0].sum() <= 1 + 1e-9:
            return np.where((values >= theta) & (values > 0), values, 0.0)
    return np.zeros(values.size)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(-20, 60), min_size=1, max_size=20))
def test_norm_cut_takes_the_smallest_threshold(hundredths: list[int]) -> None:
    values = np.array(hundredths) / 100
    assert np.array_equal(norm_cut(values), by_trying_thresholds(values))


def test_norm_cut_may_sum_to_less_than_one() -> None:
    """Errata, item 15."""
    assert norm_cut(np.array([0.6, 0.5, 0.1])).sum() == pytest.approx(0.6)
    assert norm_cut(np.array([0.6, 0.3, 0.3])).tolist() == [0.6, 0.0, 0.0]  # equals go together
    assert norm_cut(np.array([1.4, 0.5])).sum() == 0


def test_norm_cut_does_not_cut_what_only_rounding_pushed_over_one() -> None:
    values = np.full(10, 0.1) + 1e-16
    assert np.array_equal(norm_cut(values), values)


def test_norm_mul_without_a_positive_estimate_is_uniform() -> None:
    assert norm_mul(np.array([-0.1, -0.2])).tolist() == [0.5, 0.5]


def test_base_cut_takes_the_threshold_of_eq_8_1() -> None:
    table = plain(np.linspace(-0.5, 0.5, 101))
    cut = sv.postprocess(table, "base-cut").values
    assert np.array_equal(cut, np.where(table.values >= table.threshold(2.0), table.values, 0))
    strict = sv.postprocess(table, "base-cut", alpha=0.05).values
    assert np.count_nonzero(strict) < np.count_nonzero(cut)
    # at alpha >= d/2 the printed threshold is negative
    assert sv.postprocess(plain([0.2, -0.01, 0.9]), "base-cut").values.tolist() == [0.2, 0.0, 0.9]
    with pytest.raises(sv.InvalidInput, match=r"alpha \(0\) must be greater than 0"):
        sv.postprocess(table, "base-cut", alpha=0)


def test_post_pos_repairs_sums_not_values() -> None:
    table = plain([0.5, -0.2, 0.1, 0.6])
    repaired = sv.postprocess(table, "post-pos")
    assert np.array_equal(repaired.values, table.values)
    assert repaired.total([1, 2]) == 0
    assert table.total([1, 2]) == pytest.approx(-0.1)


def test_norm_is_unbiased_and_norm_sub_is_rejected() -> None:
    """Lemma 3: the mean errors of many collections have the spread that their own variance
    gives.
    """
    random = np.random.default_rng(2)
    size, people, runs, (p, q) = 32, 2000, 400, LAWS[0]
    shares = 1 / np.arange(1, size + 1)
    holders = random.multinomial(people, shares / shares.sum())
    support = random.binomial(holders, p, (runs, size)) + random.binomial(
        people - holders, q, (runs, size)
    )
    raw = (support / people - q) / (p - q)

    def statistic(repaired: Floats) -> float:
        errors = repaired - holders / people
        return float((errors.mean(axis=0) ** 2 / (errors.var(axis=0) / runs)).sum())

    limit = chi2.isf(ALPHA, df=size)
    normed = np.array([norm(row) for row in raw])
    projected = np.array([norm_sub(row) for row in raw])
    assert statistic(normed) < limit < statistic(projected)


# -- on skewed data: wang2021thesis, figures 8.4 and 8.10


SIZE, PEOPLE = 1024, 1_000_000


@pytest.fixture(scope="module")
def zipf() -> tuple[sv.Estimate, Floats]:
    shares = 1 / np.arange(1, SIZE + 1) ** 1.5
    values = np.random.default_rng(0).choice(SIZE, PEOPLE, p=shares / shares.sum())
    plan = sv.plan(
        sv.Schema(x=sv.Categorical(range(SIZE))),
        sv.Frequencies("x", oracle="olh"),
        epsilon=1.0,
        people=PEOPLE,
    )
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=7)).estimate()
    return estimate, np.bincount(values, minlength=SIZE) / PEOPLE


def test_errors_on_zipf_have_the_order_of_figure_8_4(zipf: tuple[sv.Estimate, Floats]) -> None:
    estimate, truth = zipf
    error = {
        name: float(((method.repair(estimate.table) - truth) ** 2).mean())
        for name, method in METHODS.items()
        if method.fits(estimate.table)
    }
    # base's error is its variance: its relative spread over d cells is sqrt(2/d)
    predicted = float(estimate.table.noise.variance(truth).mean())
    assert abs(error["base"] / predicted - 1) < chi2.isf(ALPHA / 2, SIZE) / SIZE - 1
    assert error["power-ns"] == min(error.values())
    assert (
        error["power-ns"]
        < error["norm-sub"]
        < error["base-pos"]
        < error["base"]
        < error["norm-mul"]
    )
    assert error["power-ns"] < error["base"] / 10  # "saves around 90% of users"
    assert error["mle-apx"] == pytest.approx(error["norm-sub"], rel=0.05)
    assert error["base-cut"] < error["base"] / 5


def test_norm_mul_ruins_the_top_values_of_figure_8_10(zipf: tuple[sv.Estimate, Floats]) -> None:
    estimate, truth = zipf
    error = {
        name: float(((METHODS[name].repair(estimate.table) - truth)[:10] ** 2).mean())
        for name in ("base", "norm-sub", "norm-mul")
    }
    assert error["norm-mul"] > 100 * error["norm-sub"]
    assert error["norm-mul"] > 100 * error["base"]


# -- the function


def test_an_estimate_is_repaired_table_by_table() -> None:
    schema = sv.Schema(x=sv.Categorical("abc"), y=sv.Categorical(range(20)))
    plan = sv.plan(
        schema, sv.Frequencies("x", "y", oracle="oue", split="budget"), epsilon=1.0, people=400
    )
    records = {"x": ["a", "b"] * 200, "y": [1, 2] * 200}
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, records, seed=1)).estimate()
    repaired = sv.postprocess(estimate, "projected")
    assert list(repaired.tables) == list(estimate.tables)
    assert not repaired.is_unbiased
    assert estimate.is_unbiased
    for key, table in repaired.tables.items():
        assert table.repair == "norm-sub"
        assert np.array_equal(table.values, norm_sub(estimate.tables[key].values))


def test_norm_of_a_repaired_table_stays_biased_and_base_keeps_the_mark() -> None:
    repaired = sv.postprocess(plain([0.9, 0.4, -0.2]), "base-pos")
    assert not sv.postprocess(repaired, "norm").is_unbiased
    assert sv.postprocess(repaired, "base").repair == "base-pos"


@pytest.mark.parametrize("alias", REPAIR_ALIASES)
def test_aliases_give_the_method_they_stand_for(alias: str) -> None:
    table = plain([0.9, 0.4, -0.2])
    one, other = sv.postprocess(table, alias), sv.postprocess(table, REPAIR_ALIASES[alias])
    assert np.array_equal(one.values, other.values)
    assert (
        one.repair
        == other.repair
        == (None if REPAIR_ALIASES[alias] == "base" else REPAIR_ALIASES[alias])
    )


def test_unknown_methods_and_options_are_named() -> None:
    with pytest.raises(
        sv.InvalidInput, match=r"method \(norm_sub\) must be one of base, base-pos, .*projected"
    ):
        sv.postprocess(plain([0.5, 0.5]), "norm_sub")
    with pytest.raises(sv.InvalidInput, match=r"option 'beta' is not one of base-cut's \(alpha\)"):
        sv.postprocess(plain([0.5, 0.5]), "base-cut", beta=1)
    with pytest.raises(
        sv.InvalidInput, match=r"option 'alpha' is not one of norm's \(it has none\)"
    ):
        sv.postprocess(plain([0.5, 0.5]), "norm", alpha=1)


def test_every_method_is_described_in_one_line() -> None:
    for method in METHODS.values():
        assert 0 < len(method.about) < 90
        assert "\n" not in method.about


def test_the_package_can_be_called_whoever_imported_it_first() -> None:
    """`sv.postprocess` is the package if a module of it was imported before, the function
    otherwise.
    """
    use = "assert sv.postprocess(t, 'norm-sub').repair == 'norm-sub'"
    made = "import numpy as np; t = sv.Table(('x',), 'ab', np.ones(2), np.ones(2), 9, None)"
    for first in (
        "import sottovoce as sv",
        "import sottovoce as sv; import sottovoce.postprocessing.simplex",
    ):
        subprocess.run([sys.executable, "-c", f"{first}; {made}; {use}"], check=True)


# -- the choice


def halves(count: int, size: int) -> list[list[int]]:
    random = np.random.default_rng(3)
    return [random.choice(size, size // 2, replace=False).tolist() for _ in range(count)]


def test_a_norm_method_is_chosen_for_random_halves(zipf: tuple[sv.Estimate, Floats]) -> None:
    table, truth = zipf[0].table, zipf[1]
    queries = halves(30, SIZE)
    choice = sv.choose_postprocess(table, queries, runs=5, seed=1)
    assert choice.best in ("norm", "norm-sub", "norm-cut", "mle-apx", "power-ns")
    assert choice.errors[choice.best] < choice.errors["base"] / 4

    def real_error(name: str) -> float:
        errors = sv.postprocess(table, name).values - truth
        return float(np.mean([errors[query].sum() ** 2 for query in queries]))

    assert real_error(choice.best) < real_error("base") / 4


def test_the_choice_depends_on_the_queries_and_not_on_luck(
    zipf: tuple[sv.Estimate, Floats],
) -> None:
    table = zipf[0].table
    names = ["base", "base-cut", "norm-mul", "norm-sub"]
    cells = sv.choose_postprocess(table, "cells", names, seed=5)
    assert cells == sv.choose_postprocess(table, "cells", names, seed=5)
    assert cells.errors != sv.choose_postprocess(table, "cells", names, seed=6).errors
    assert cells.best in ("base-cut", "norm-sub")
    assert sv.choose_postprocess(table, "top-10", names, seed=5).best in ("base", "base-cut")


@pytest.mark.parametrize("oracle", ["grr", "oue", "olh", "ss", "she"])
def test_the_synthetic_collection_has_the_oracles_errors(oracle: str) -> None:
    size, people, runs = 40, 20_000, 60
    values = np.random.default_rng(4).binomial(size - 1, 0.3, people)
    plan = sv.plan(
        sv.Schema(x=sv.Categorical(range(size))),
        sv.Frequencies("x", oracle=oracle),
        epsilon=1.0,
        people=people,
    )
    table = sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=4)).estimate().table
    predicted = float(table.noise.variance(norm_sub(table.values)).mean())
    limit = chi2.isf(ALPHA / 2, size * runs) / (size * runs) - 1
    names = ["base", "norm"]
    measured = sv.choose_postprocess(table, "cells", names, runs=runs, seed=9)
    assert abs(measured.errors["base"] / predicted - 1) < limit + (
        1 / size if oracle == "ss" else 0
    )
    # a wrong law shows: half the people
    assert abs(measured.errors["base"] / (2 * predicted) - 1) > limit
    # norm does nothing where the oracle itself makes the sum one
    halved = sv.choose_postprocess(table, halves(10, size), names, runs=runs, seed=9).errors
    assert (abs(halved["base"] / halved["norm"] - 1) < 1e-6) is (oracle in ("grr", "ss"))


def test_half_sums_of_grr_have_the_variance_of_the_errata() -> None:
    """Item 14: |S| (E + L - 1 - |S|) / ((E - 1)^2 n), whatever the frequencies, for halves."""
    size, people, runs, likelier = 16, 50_000, 400, np.e
    q = 1 / (likelier + size - 1)
    random = np.random.default_rng(6)
    holders = random.multinomial(people, np.full(size, 1 / size))
    kept = random.binomial(holders, (likelier - 1) * q)
    support = kept + random.multinomial(people - kept.sum(), np.full(size, 1 / size))
    table = pure(support, people, likelier * q, q, "direct")
    error = sv.choose_postprocess(table, [list(range(8))], ["base"], runs=runs, seed=1).errors[
        "base"
    ]
    predicted = 8 * (likelier + size - 1 - 8) / ((likelier - 1) ** 2 * people)
    independent = 8 * float(table.variances.mean())
    limit = chi2.isf(ALPHA / 2, runs) / runs - 1
    assert abs(error / predicted - 1) < limit < abs(error / independent - 1)


def test_post_pos_is_measured_as_tables_answer() -> None:
    table = plain([0.6, 0.35, -0.1, -0.05, 0.02], 0.02)
    choice = sv.choose_postprocess(table, "cells", ["post-pos", "base-pos", "base"], seed=2)
    assert choice.errors["post-pos"] == pytest.approx(choice.errors["base-pos"])
    assert choice.errors["post-pos"] < choice.errors["base"]


def test_the_methods_tried_are_those_that_fit() -> None:
    direct = sv.choose_postprocess(
        pure([70, 20, 10], 100, 0.6, 0.2, "direct"), "cells", runs=2, seed=0
    )
    bits = sv.choose_postprocess(pure([70, 20, 30], 100, 0.6, 0.2), "cells", runs=2, seed=0)
    assert "maximum-likelihood" in direct.errors
    assert "composite-likelihood" not in direct.errors
    assert "composite-likelihood" in bits.errors
    assert "maximum-likelihood" not in bits.errors
    assert "em" not in direct.errors
    lines = str(direct).splitlines()
    assert lines[1].startswith(direct.best)
    assert lines[1].endswith("best")
    assert len(lines) == 1 + len(direct.errors)


@pytest.mark.parametrize(
    ("queries", "options", "message"),
    [
        ("top", {}, r"queries \(top\) must be lists of labels, 'cells' or 'top-10'"),
        ("top-0", {}, r"queries \(top-0\) must be"),
        ([], {}, "queries must hold at least one"),
        ([[]], {}, "none of them empty"),
        (["ab"], {}, "queries must be lists of labels"),
        ([[9]], {}, "label 9 is not in the table"),
        ("cells", {"runs": 0}, r"runs \(0\) must be at least 1"),
        ("cells", {"seed": None}, r"seed \(None\) must be an integer"),
        ("cells", {"methods": []}, "methods must name at least one"),
        ("cells", {"methods": ["best"]}, r"method \(best\) must be one of"),
    ],
)
def test_wrong_questions_are_named(
    queries: object, options: dict[str, object], message: str
) -> None:
    with pytest.raises(sv.InvalidInput, match=message):
        sv.choose_postprocess(plain([0.6, 0.5]), queries, **{"seed": 1, **options})  # type: ignore[arg-type]


def test_a_repaired_table_is_refused() -> None:
    with pytest.raises(sv.InvalidInput, match=r"table \(repaired by norm\) must be unrepaired"):
        sv.choose_postprocess(sv.postprocess(plain([0.6, 0.5]), "norm"), "cells", seed=1)
