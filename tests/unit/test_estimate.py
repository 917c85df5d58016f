"""Tables: intervals, thresholds, sums, open alphabets, pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
    for wrong in (lambda: found.interval(1.5), lambda: found.total([99]), lambda: found.threshold(0)):
        with pytest.raises(sv.InvalidInput):
            wrong()


def test_an_estimate_of_one_table_speaks_for_it() -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x"), epsilon=1.0, people=100)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, {"x": np.arange(100) % 32}, seed=1)).estimate()
    assert estimate.is_unbiased
    assert estimate.people == 100
    assert np.array_equal(estimate.values, estimate.marginal("x").values)
    assert np.array_equal(estimate.variances, estimate.std_error**2) or np.allclose(
        estimate.variances, estimate.std_error**2
    )
    with pytest.raises(sv.InvalidInput, match="was not asked for"):
        estimate.marginal("y")
    with pytest.raises(sv.InvalidInput, match="candidates"):
        sv.Aggregate(plan).add(sv.simulate(plan, {"x": [1]}, seed=1)).estimate(colour="red")


@pytest.mark.parametrize("oracle", ["olh-seeded", "cms", "hcms", "rappor", "o-rr", "o-rappor", "adaptive"])
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
    assert decoded.method == method
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


def test_candidates_that_cannot_be_told_apart_are_refused() -> None:
    oracle = sv.oracle("o-rr", size=64, epsilon=1.0, cohorts=1, buckets=4)
    state = oracle.accumulate(oracle.empty(), oracle.simulate(np.arange(64), seed=1))
    with pytest.raises(sv.InvalidInput, match="told apart"):
        oracle.estimate(state, 64)


@pytest.mark.parametrize("kind", ["svg", "png", "html", "json"])
def test_plots_are_written_without_a_network(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"plot.{kind}"
    table().plot(str(path))
    assert path.stat().st_size > 1000
    with pytest.raises(sv.InvalidInput, match="must end in"):
        table().plot(str(tmp_path / "plot.doc"))
