"""Tests of independence hold their level under privacy noise, and find what is there."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, chi2, chi2_contingency

import sottovoce as sv
from sottovoce.analysis.dependence import adjusted, judged
from sottovoce.analysis.pairs import interaction, pair_laws
from sottovoce.questions.marginals.models.pair_law import PairLaw
from tests.known import chain, known
from tests.statistics import ALPHA

PEOPLE = 3000
RUNS = 200
LEVEL = 0.05
SCHEMA = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Categorical(["x", "y", "z"]))
MARGINS = {"a": [0.7, 0.3], "b": [0.85, 0.15], "c": [0.6, 0.3, 0.1]}
METHODS = ("inp-ht", "marg-ps")
PAIRS = (("a", "b"), ("b", "c"))


def crowd(seed: int, tie: float = 0.0, people: int = PEOPLE) -> dict[str, np.ndarray]:
    """People whose attributes are independent, but for a share ``tie`` of them whose b is
    their a.
    """
    draws = np.random.default_rng(seed)
    codes = {name: draws.choice(len(shares), people, p=shares) for name, shares in MARGINS.items()}
    codes["b"] = np.where(draws.random(people) < tie, codes["a"], codes["b"])
    labels = np.array(["x", "y", "z"], object)
    return {"a": codes["a"] == 1, "b": codes["b"] == 1, "c": labels[codes["c"]]}


def heard(method: str, seed: int, tie: float = 0.0, people: int = PEOPLE) -> sv.Aggregate:
    plan = planned(method, people)
    return sv.Aggregate(plan).add(sv.simulate(plan, crowd(seed, tie, people), seed=10_000 + seed))


@cache
def planned(method: str, people: int = PEOPLE) -> sv.Plan:
    return sv.plan(SCHEMA, sv.Marginals(up_to=2, method=method), epsilon=1.0, people=people)


def limits(runs: int, comparisons: int) -> tuple[int, int]:
    """Between these lies the number of rejections of a test that holds its level."""
    tail = ALPHA / (2 * comparisons)
    return int(binom.ppf(tail, runs, LEVEL)), int(binom.isf(tail, runs, LEVEL))


@pytest.mark.parametrize("method", METHODS)
def test_the_level_holds_and_the_naive_test_does_not(method: str) -> None:
    rejected = {null: np.zeros(len(PAIRS), int) for null in ("asymptotic", "naive")}
    for run in range(RUNS):
        estimate = heard(method, run).estimate()
        assert isinstance(estimate, sv.MarginalEstimate)
        for null, counts in rejected.items():
            counts += [found.p_value <= LEVEL for found in sv.associate(estimate, PAIRS, null=null)]
    low, high = limits(RUNS, len(METHODS) * len(PAIRS))
    assert (low <= rejected["asymptotic"]).all()
    assert (rejected["asymptotic"] <= high).all()
    assert (rejected["naive"] > high).all()  # the mutant: it takes noise for association


@pytest.mark.parametrize("method", METHODS)
def test_the_information_reaches_as_far_as_the_strength(method: str) -> None:
    """Also where a table as strongly tied as the interval ends has cells that are cut at 0."""
    for found in sv.associate(heard(method, 6), PAIRS):
        assert found.high > 1.5 * found.cramers_v
        assert found.information_high > 1.5 * found.information


def test_power_grows_with_the_association() -> None:
    runs, ties = 50, (0.0, 0.15, 0.3, 0.6)
    rejected = []
    for tie in ties:
        tests = [
            sv.associate(heard("inp-ht", run, tie, 6000), ["a", "b"])[0] for run in range(runs)
        ]
        assert {found.method for found in tests} == {"asymptotic"}
        rejected.append(sum(found.p_value <= LEVEL for found in tests))
    assert rejected == sorted(rejected)
    assert rejected[0] <= limits(runs, 1)[1] < rejected[2]
    assert rejected[3] > runs * 0.95
    strengths = [
        sv.associate(heard("inp-ht", 1, tie, 200_000), ["a", "b"])[0].cramers_v for tie in ties[1:]
    ]
    truth = [
        abs(np.corrcoef(*(crowd(1, tie, 200_000)[name] for name in "ab"))[0, 1]) for tie in ties[1:]
    ]
    assert strengths == pytest.approx(truth, abs=0.04)


def test_a_simulated_null_holds_its_level_for_a_biased_method() -> None:
    runs, rejected, naive = 40, 0, 0
    for run in range(runs):
        aggregate = heard("calm", run, people=2000)
        found = sv.associate(aggregate, ["a", "c"], null="simulation", replicates=19, seed=run)[0]
        assert found.method == "simulation"
        rejected += found.p_value <= LEVEL
        naive += sv.associate(aggregate, ["a", "c"], null="naive")[0].p_value <= LEVEL
    high = limits(runs, 1)[1]
    assert rejected <= high < naive


def test_a_simulation_finds_an_association_and_no_other() -> None:
    aggregate = heard("calm", 3, 0.6, 20_000)
    done: list[int] = []
    options = {"null": "simulation", "replicates": 39, "seed": 1}
    found = sv.associate(aggregate, **options, progress=done.append)  # type: ignore[arg-type]
    p = {each.attributes: each.p_value for each in found}
    assert p["a", "b"] < 1e-3  # beyond the reach of the draws, by the gamma law
    assert min(p["a", "c"], p["b", "c"]) > 0.01
    assert done == list(range(1, len(done) + 1))
    assert len(done) % 39 == 0
    assert found == sv.associate(aggregate, **options)  # type: ignore[arg-type]
    assert found == sv.associate(aggregate, null="simulation", replicates=39)  # whose seed is 1


def test_both_null_laws_agree_for_an_unbiased_method() -> None:
    aggregate = heard("marg-ps", 5, 0.1)
    pair = [["b", "a"]]
    simulated = sv.associate(aggregate, pair, null="simulation", replicates=400, seed=2)[0]
    normal = sv.associate(aggregate, pair)[0]
    assert simulated.attributes == normal.attributes == ("b", "a")
    spread = np.sqrt(normal.p_value * (1 - normal.p_value) / 400)
    assert abs(simulated.p_value - normal.p_value) < 5 * spread + 0.02
    assert simulated.statistic == pytest.approx(normal.statistic, rel=0.3)


def test_without_noise_it_is_the_textbook_test() -> None:
    counts = np.array([[300, 150], [120, 180]])
    textbook = chi2_contingency(counts, correction=False)
    estimate = known(counts / counts.sum(), people=int(counts.sum()))
    found = sv.associate(estimate, null="asymptotic")[0]
    naive = sv.associate(estimate, null="naive")[0]
    assert naive.statistic == pytest.approx(textbook.statistic)
    assert naive.p_value == pytest.approx(textbook.pvalue)
    assert found.statistic == pytest.approx(textbook.statistic, rel=0.1)
    assert naive.cramers_v**2 == pytest.approx(
        textbook.statistic / counts.sum(), abs=2 / counts.sum()
    )


def test_nobody_s_answer_tells_nothing() -> None:
    found = sv.associate(heard("uniform", 1, people=500), replicates=19, seed=1)
    assert not any(each.is_asked for each in found)
    assert np.isnan([each.p_value for each in found]).all()


def test_the_law_of_direct_answers_is_exact() -> None:
    """For answers of chances pi, with people a sample, errors have covariance (diag(pi) - pi pi^T)
    / (n (p - q)^2).
    """
    for cells, epsilon in ((chain([2, 3], 1), 1.0), (np.array([[0.9, 0.05], [0.03, 0.02]]), 6.0)):
        oracle = sv.oracle("grr", size=cells.size, epsilon=epsilon)
        chances = oracle.q + (oracle.p - oracle.q) * cells  # type: ignore[attr-defined]
        scale = 1 / (1000 * (oracle.p - oracle.q) ** 2)  # type: ignore[attr-defined]
        law = PairLaw.of(cells, scale * chances * (1 - chances))
        assert law.is_total_known
        assert law.spread == pytest.approx(scale * chances)


@pytest.mark.parametrize(
    ("total", "of_rows", "of_columns"),
    [(1.0, 1e-5, 3e-5), (1.0, 6e-4, 1e-4), (1.01, 7e-4, 5e-4), (1.01, 1e-6, 1e-6)],
)
def test_margins_known_better_are_drawn_so(total: float, of_rows: float, of_columns: float) -> None:
    cells, draws = np.full((3, 4), 1 / 12), 20_000
    variances, rows, columns = np.full((3, 4), 1e-4), np.full(3, of_rows), np.full(4, of_columns)
    law = PairLaw.of(cells * total, variances, (rows, columns))
    errors = law.errors(draws, np.random.default_rng(1))
    reach = 6 * np.sqrt(2 / draws)
    assert (errors**2).sum(axis=(1, 2)).mean() == pytest.approx(variances.sum(), rel=reach)
    assert (np.abs(errors.sum(axis=(1, 2))).max() < 1e-12) == (total == 1.0)
    if of_rows == 1e-6:  # such rows cannot come of cells whose total is unknown: cells decide
        assert law.scales == (1.0, 1.0, 1.0)
        return
    assert (errors.sum(2) ** 2).sum(1).mean() == pytest.approx(rows.sum(), rel=reach)
    assert (errors.sum(1) ** 2).sum(1).mean() == pytest.approx(columns.sum(), rel=reach)


def test_variances_that_no_law_has_are_taken_as_they_come() -> None:
    odd = np.array([[1e-2, 1e-6], [1e-6, 1e-6]])
    law = PairLaw.of(np.full((2, 2), 0.25), odd)
    assert np.isfinite(law.errors(10, np.random.default_rng(1))).all()
    assert (
        PairLaw.of(np.full((2, 2), 0.25), np.zeros((2, 2)))
        .errors(3, np.random.default_rng(1))
        .any()
        == np.False_
    )


def test_interaction_is_what_margins_leave() -> None:
    table = chain([3, 4], 2)
    plain = table - np.outer(table.sum(1), table.sum(0))
    assert interaction(table) == pytest.approx(plain)
    assert interaction(np.stack([table, table * 0 + 1 / 12]))[1] == pytest.approx(
        np.zeros((3, 4)), abs=1e-15
    )
    noisy = table - 0.05 * np.eye(3, 4)
    assert interaction(noisy).sum(0) == pytest.approx(np.zeros(4), abs=1e-12)
    assert interaction(noisy).sum(1) == pytest.approx(np.zeros(3), abs=1e-12)


def test_a_table_like_its_draws_is_judged_by_rank() -> None:
    draws = known(np.full((2, 2), 0.25), 1e-4)
    law = pair_laws(draws, [(0, 1)], population=True)[0]
    tables = law.independent + law.errors(200, np.random.default_rng(4))
    ranks = sorted(judged(tables[i], np.delete(tables, i, axis=0)).p_value for i in range(200))
    assert ranks[1:] == pytest.approx(np.arange(2, 201) / 200, abs=1e-9)
    assert ranks[0] <= 1 / 200


def test_correction_for_many_pairs_is_that_of_the_definition() -> None:
    draws = np.random.default_rng(1)
    for count in (1, 2, 7, 30):
        p = draws.random(count) ** 2
        order = np.sort(p)
        brute = [
            min(1.0, *(order[j] * count / (j + 1) for j in range(count) if order[j] >= each))
            for each in p
        ]
        assert adjusted(p.tolist()) == pytest.approx(brute)


def test_the_naive_level_is_wrong_by_the_noise_it_ignores() -> None:
    """The statistic of pure noise is n times its squares: far above every chi-squared quantile."""
    found = sv.associate(heard("inp-ht", 1).estimate(), ["b", "c"], null="naive")[0]  # type: ignore[arg-type]
    assert found.statistic > chi2.isf(ALPHA, found.degrees)


def test_bad_input_is_refused() -> None:
    aggregate = heard("calm", 1)
    estimate = aggregate.estimate()
    assert isinstance(estimate, sv.MarginalEstimate)
    fitted = heard("inp-em", 1)
    single = sv.plan(SCHEMA, sv.Frequencies("a"), epsilon=1.0, people=100)
    counted = sv.Aggregate(single).add(sv.simulate(single, {"a": [True] * 100}, seed=1))
    for words, call in (
        (
            r"null \(exact\) must be one of asymptotic, simulation, naive",
            lambda: sv.associate(estimate, null="exact"),
        ),
        ("needs the aggregate", lambda: sv.associate(estimate, null="simulation", seed=1)),
        ("estimates by inp-em are biased", lambda: sv.associate(fitted.estimate())),
        (r"replicates \(5\)", lambda: sv.associate(fitted, replicates=5, seed=1)),
        ("two attributes", lambda: sv.associate(aggregate, [["a", "b", "c"]])),
        ("list of pairs", lambda: sv.associate(aggregate, "ab")),
        ("list of pairs", lambda: sv.associate(aggregate, [])),
        ("'z' is not in the plan", lambda: sv.associate(aggregate, ["a", "z"])),
        ("different attributes", lambda: sv.associate(aggregate, ["a", "a"])),
        ("Marginals question", lambda: sv.associate(counted)),
        ("at least 2 attributes", lambda: sv.associate(known(np.array([0.5, 0.5]), order=1))),
    ):
        with pytest.raises(sv.InvalidInput, match=words):
            call()


def test_a_result_speaks_for_itself() -> None:
    found = sv.associate(known(np.array([[0.4, 0.1], [0.1, 0.4]]), 1e-5))[0]
    assert str(found).startswith("a, b: V 0.6")
    assert found.to_json()["attributes"] == ["a", "b"]
    assert found.adjusted == found.p_value < 1e-6
