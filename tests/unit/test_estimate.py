"""Tables: intervals, thresholds, sums, open alphabets, pictures."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from tests.statistics import z_limit, zipf_people

SCHEMA = sv.Schema(x=sv.Categorical(range(32)), word=sv.Text(bytes=20))
PEOPLE = 50_000


def table(oracle: str = "oue", seed: int = 1) -> sv.Table:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", oracle=oracle), epsilon=1.0, people=PEOPLE)
    reports = sv.simulate(plan, {"x": zipf_people(32, PEOPLE, seed=seed)}, seed=seed)
    return sv.Aggregate(plan).add(reports).estimate().marginal("x")


def test_intervals_cover_as_often_as_they_say() -> None:
    level, hits, total = 0.9, 0, 0
    for seed in range(40):
        found = table(seed=seed)
        truth = np.bincount(zipf_people(32, PEOPLE, seed=seed), minlength=32) / PEOPLE
        low, high = found.interval(level)
        hits += int(((low <= truth) & (truth <= high)).sum())
        total += 32
    reach = z_limit(1) * np.sqrt(level * (1 - level) / total)
    assert abs(hits / total - level) < reach
    assert abs(hits / total - 0.80) > reach  # an interval of another level would be noticed


def test_the_threshold_lets_through_as_many_as_it_says() -> None:
    found = table()
    alpha = 8.0  # of 32 values that nobody holds, eight pass in expectation
    draws = np.random.default_rng(1).normal(0, np.sqrt(found.noise.floor), (2000, 32))
    passed = (draws > found.threshold(alpha)).sum(axis=1).mean()
    assert abs(passed - alpha) < z_limit(1) * np.sqrt(32 * 0.25 * 0.75 / 2000)
    assert found.significant()[0]
    assert found.significant(0.05).sum() < 32


def test_rows_frames_and_text() -> None:
    found = table()
    frame = found.to_pandas()
    assert list(frame.columns) == ["frequency", "std_error", "low", "high"]
    assert len(frame) == 32
    assert np.allclose(frame["frequency"], found.values)
    assert "50,000 people, unbiased" in str(found)
    assert found.total([0, 1]) == pytest.approx(found.values[:2].sum())
    for wrong in (
        lambda: found.interval(1.5),
        lambda: found.total([99]),
        lambda: found.threshold(0),
    ):
        with pytest.raises(sv.InvalidInput):
            wrong()


def test_an_estimate_of_one_table_speaks_for_it() -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x"), epsilon=1.0, people=100)
    estimate = (
        sv.Aggregate(plan).add(sv.simulate(plan, {"x": np.arange(100) % 32}, seed=1)).estimate()
    )
    assert estimate.is_unbiased
    assert estimate.people == 100
    assert np.array_equal(estimate.values, estimate.marginal("x").values)
    assert np.array_equal(estimate.variances, estimate.std_error**2) or np.allclose(
        estimate.variances, estimate.std_error**2
    )
    with pytest.raises(sv.InvalidInput, match="was not asked for"):
        estimate.marginal("y")
    with pytest.raises(TypeError, match="colour"):
        sv.Aggregate(plan).add(sv.simulate(plan, {"x": [1]}, seed=1)).estimate(colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "oracle", ["olh-seeded", "cms", "hcms", "rappor", "o-rr", "o-rappor", "adaptive"]
)
def test_open_alphabets_are_asked_by_candidates(oracle: str) -> None:
    words = ["piano", "forte", "mezzo", "dolce", "largo"]
    people = 40_000
    held = np.array(words)[zipf_people(5, people, seed=3)]
    plan = sv.plan(SCHEMA, sv.Frequencies("word", oracle=oracle), epsilon=3.0, people=people)
    total = sv.Aggregate(plan).add(sv.simulate(plan, {"word": held}, seed=4))
    found = total.estimate(candidates=[*words, "silenzio"]).marginal("word")
    truth = np.array([(held == word).mean() for word in [*words, "silenzio"]])
    assert np.abs((found.values - truth) / found.std_error).max() < z_limit(6 * 7)
    assert found.labels[-1] == "silenzio"
    with pytest.raises(sv.InvalidInput):
        total.estimate()


@pytest.mark.parametrize("method", ["nnls", "lasso"])
def test_rappor_decoders_find_the_support(method: str) -> None:
    schema = sv.Schema(x=sv.Categorical(range(200)))
    plan = sv.plan(schema, sv.Frequencies("x", oracle="rappor"), epsilon=6.0, people=200_000)
    values = np.repeat([3, 50, 120], [100_000, 60_000, 40_000])
    total = sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=1))
    decoded = total.estimate(decoder=method).marginal("x")
    assert not decoded.is_unbiased
    assert (decoded.method, decoded.repair) == ("rappor", method)
    found = decoded.values
    assert (found >= 0).all()
    assert set(np.argsort(-found)[:3].tolist()) == {3, 50, 120}
    assert np.abs(found[[3, 50, 120]] - [0.5, 0.3, 0.2]).max() < 0.05
    if method == "lasso":
        assert (found > 0).sum() < 60  # sparse
    assert total.estimate(decoder="least-squares").is_unbiased
    with pytest.raises(sv.InvalidInput, match="decoder"):
        total.estimate(decoder="guess")
    other = sv.plan(schema, sv.Frequencies("x"), epsilon=1.0, people=10)
    heard = sv.Aggregate(other).add(sv.simulate(other, {"x": [1]}, seed=1))
    with pytest.raises(sv.InvalidInput, match="decoder"):
        heard.estimate(decoder=method)


def test_intervals_for_a_population_are_wider_by_its_sampling() -> None:
    found = table()
    plain, wide = found.interval(0.95), found.interval(0.95, population=True)
    share = np.clip(found.values, 0, 1)
    grown = (wide[1] - wide[0]) ** 2 - (plain[1] - plain[0]) ** 2
    assert np.allclose(grown, 4 * 1.959963984540054**2 * share * (1 - share) / PEOPLE)
    assert [row["high"] for row in found.rows(population=True)] == wide[1].tolist()


def test_people_of_several_tables_are_counted_once() -> None:
    schema = sv.Schema(x=sv.Boolean(), y=sv.Boolean())
    for split in ("people", "budget"):
        plan = sv.plan(schema, sv.Frequencies("x", "y", split=split), epsilon=1.0, people=100)
        estimate = (
            sv.Aggregate(plan)
            .add(sv.simulate(plan, {"x": [True] * 100, "y": [False] * 100}, seed=1))
            .estimate()
        )
        assert estimate.people == 100


def test_summing_to_one_over_some_values_is_marked() -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", oracle="oue"), epsilon=1.0, people=PEOPLE)
    total = sv.Aggregate(plan).add(
        sv.simulate(plan, {"x": zipf_people(32, PEOPLE, seed=1)}, seed=1)
    )
    assert sv.postprocess(total.estimate(), "norm").is_unbiased
    some = total.estimate(candidates=[1, 2]).marginal("x")
    assert some.is_unbiased
    assert not some.is_complete
    assert not sv.postprocess(some, "norm").is_unbiased


@pytest.mark.parametrize("oracle", ["cms", "hcms"])
def test_sketches_count_collisions_in_thresholds_and_intervals(oracle: str) -> None:
    """Two heavy words in a small sketch: absent words stay below the threshold, and their intervals
    hold zero.
    """
    absent = [f"word {number}" for number in range(200)]
    flagged = held = 0
    runs = 10
    for run in range(runs):
        question = sv.Frequencies("word", oracle=oracle, hashes=16, width=64, salt=run)
        plan = sv.plan(SCHEMA, question, epsilon=4.0, people=100_000)
        words = np.array(["piano"] * 60_000 + ["forte"] * 40_000, dtype=object)
        total = sv.Aggregate(plan).add(sv.simulate(plan, {"word": words}, seed=run))
        found = total.estimate(candidates=absent).marginal("word")
        flagged += int(found.significant(0.05).sum())
        low, high = found.interval(0.95)
        held += int(((low <= 0) & (high >= 0)).sum())
        truth = 0.6**2 + 0.4**2
        spread = plan.cohorts[0].asks[0].oracle.spread(total.state(0))  # type: ignore[attr-defined]
        assert abs(spread - truth) < 0.25
    # collisions are not normal (16 functions: a few coincide or none), so this asks for the order,
    # not the digit
    assert flagged / runs < 6  # without the term: more than 50
    assert held / (runs * len(absent)) > 0.9  # without the term: 0.76


@pytest.mark.parametrize("name", ["cms", "hcms"])
def test_the_spread_of_a_sketch_is_unbiased(name: str) -> None:
    """The sum of squared frequencies from the table alone; a report paired with itself would add
    width/(c^2 n_j).
    """
    size, people, runs, side = 64, 20_000, 20, 64
    values = np.concatenate([np.zeros(people // 2, int), np.arange(people // 2) % size])
    truth = float(((np.bincount(values, minlength=size) / people) ** 2).sum())
    found = []
    for run in range(runs):
        oracle = sv.oracle(name, size=size, epsilon=3.0, hashes=side, width=side, salt=run)
        state = oracle.accumulate(oracle.empty(), oracle.simulate(values, seed=run))
        found.append(oracle.spread(state))  # type: ignore[attr-defined]
    reach = z_limit(2) * float(np.std(found, ddof=1)) / np.sqrt(runs)
    assert abs(np.mean(found) - truth) < reach
    kept = float(oracle.exact_p - oracle.exact_q0) * (2 if name == "hcms" else 1)  # type: ignore[attr-defined]
    assert side / kept**2 / (people / side) * 0.1 > reach  # a tenth of that would be noticed


def test_sketch_variances_are_those_measured_over_salts() -> None:
    """One value of half the people, a small sketch: the collision term is most of the error."""
    size, people, runs = 64, 20_000, 120
    values = np.concatenate([np.zeros(people // 2, int), np.arange(people // 2) % size])
    truth = np.bincount(values, minlength=size) / people
    squares, reported = np.zeros(size), np.zeros(size)
    for run in range(runs):
        oracle = sv.oracle("cms", size=size, epsilon=3.0, hashes=16, width=16, salt=run)
        state = oracle.accumulate(oracle.empty(), oracle.simulate(values, seed=run))
        estimate, variances = oracle.estimate(state, people)
        squares += (estimate - truth) ** 2 / runs
        reported += variances / runs
    exact = oracle.all_variances(people, truth)
    others = slice(1, None)
    # values share the heavy one's collisions, so they count as one
    limit = z_limit(1) * np.sqrt(2 / runs)
    assert abs(squares[others].mean() / exact[others].mean() - 1) < limit
    assert abs(reported[others].mean() / exact[others].mean() - 1) < 0.1
    plain = oracle.noise(people).variance(truth)
    # without the term it would be told apart
    assert squares[others].mean() / plain[others].mean() > 1 + limit


def test_the_threshold_of_cohorts_is_that_of_their_noise() -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", oracle="o-rr"), epsilon=1.0, people=PEOPLE)
    total = sv.Aggregate(plan).add(
        sv.simulate(plan, {"x": zipf_people(32, PEOPLE, seed=1)}, seed=1)
    )
    found = total.estimate().marginal("x")
    assert found.threshold(0.05) == pytest.approx(2.955 * float(found.std_error.mean()), rel=0.05)


@pytest.mark.parametrize("kind", ["svg", "png", "html", "json"])
def test_plots_are_written_without_a_network(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"plot.{kind}"
    table().plot(str(path))
    assert path.stat().st_size > 1000
    with pytest.raises(sv.InvalidInput, match="must end in"):
        table().plot(str(tmp_path / "plot.doc"))


# -- one value, a sum, a data frame, a notebook


def _counted(oracle: str, people: int = 4000, size: int = 6, seed: int = 1) -> sv.Table:
    plan = sv.plan(
        sv.Schema(x=sv.Categorical(range(size))),
        sv.Frequencies("x", oracle=oracle),
        epsilon=1.0,
        people=people,
    )
    values = np.arange(people) % size
    return sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=seed)).estimate().table


def _pairs(method: str = "inp-ht") -> sv.Estimate:
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["<i>", "y", "z"]))
    plan = sv.plan(schema, sv.Marginals(up_to=2, method=method), epsilon=4.0, people=3000)
    people = {"a": [True, False] * 1500, "b": ["<i>", "y", "z"] * 1000}
    return sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()


def test_a_value_is_a_cell_with_its_error() -> None:
    table = _counted("grr")
    assert len(table) == 6
    assert list(table) == list(range(6))
    assert 5 in table
    assert 9 not in table
    low, high = table.interval()
    cell = table[2]
    assert (cell.value, cell.std_error, cell.low, cell.high) == (
        table.values[2],
        table.std_error[2],
        low[2],
        high[2],
    )
    assert float(cell) == table.values[2]
    with pytest.raises(sv.InvalidInput, match="label 9"):
        table[9]
    pair = _pairs().marginal("a", "b")
    assert pair[True, "y"].value == pair.values[4]


@pytest.mark.parametrize("oracle", ["grr", "oue", "ss", "olh"])
def test_a_total_carries_the_error_of_its_sum(oracle: str) -> None:
    """Over many collections, totals err as they say; a table of twice the error would not pass."""
    runs, labels = 300, [0, 2, 3]
    totals = [_counted(oracle, people=600, seed=seed).total(labels) for seed in range(runs)]
    errors = np.array(totals) - 0.5
    said = float(np.mean([total.std_error**2 for total in totals]))
    ratio = float((errors**2).sum()) / said
    low, high = chi2.ppf([1e-4, 1 - 1e-4], runs)
    assert low < ratio < high
    assert ratio / 4 < low
    assert not totals[0].is_bound
    assert pickle.loads(pickle.dumps(totals[0])).std_error == totals[0].std_error


def test_where_cells_may_err_together_the_error_is_a_bound() -> None:
    table = _pairs("latent").marginal("a", "b")
    total = table.total([(True, "y"), (True, "z")])
    assert total.is_bound
    assert total.std_error == pytest.approx(table.std_error[[4, 5]].sum())
    low, high = total.interval(0.9)
    assert low < total < high


def test_several_attributes_are_several_levels_of_an_index() -> None:
    frame = _pairs().marginal("a", "b").to_pandas()
    assert frame.index.names == ["a", "b"]
    assert frame.loc[(True, "y"), "frequency"] == _pairs().marginal("a", "b")[True, "y"].value
    assert _counted("grr").to_pandas().index.name == "x"


def test_how_it_was_collected_and_what_was_done_to_it_are_two_things() -> None:
    estimate = _pairs("latent")
    table = estimate.marginal("a")
    assert (table.method, table.repair) == ("latent", None)
    assert "repaired" not in str(table)
    assert sv.choose_postprocess(table, "cells", ["base", "norm-sub"], seed=1).best
    repaired = sv.postprocess(table, "norm-sub")
    assert (repaired.method, repaired.repair) == ("latent", "norm-sub")
    assert "by latent, repaired by norm-sub" in str(repaired)
    assert (repaired.to_json()["method"], repaired.to_json()["repair"]) == ("latent", "norm-sub")


def test_a_notebook_shows_intervals_and_no_markup_of_values() -> None:
    estimate = _pairs()
    page = estimate.marginal("a", "b")._repr_html_()
    assert page.count("<svg") == 6
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    assert "<i>" not in estimate._repr_html_()
    assert len(repr(estimate)) < 100
    assert repr(estimate) == "<MarginalEstimate of a, b: 3,000 people>"
    assert "\n" not in repr(estimate.marginal("a"))
