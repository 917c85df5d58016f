"""Sums of cells of marginals: their own error where the fit knows it, a marked bound elsewhere."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.oracles import Noise

ALPHA = 1e-4
SCHEMA = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Categorical(range(4)))
RUNS, PEOPLE = 120, 2000


def crowd() -> dict[str, list[object]]:
    random = np.random.default_rng(5)
    a = random.random(PEOPLE) < 0.3
    b = np.where(a, random.integers(0, 2, PEOPLE), random.integers(0, 3, PEOPLE))
    c = np.where(random.random(PEOPLE) < 0.6, b, random.integers(0, 4, PEOPLE))
    return {"a": a.tolist(), "b": [("x", "y", "z")[each] for each in b], "c": c.tolist()}


def table_of(method: str, seed: int, people: dict[str, list[object]]) -> sv.Table:
    plan = sv.plan(SCHEMA, sv.Marginals(up_to=2, method=method), epsilon=2.0, people=PEOPLE)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=seed)).estimate()
    return estimate.marginal("b", "a")  # not in the order of the schema


@pytest.mark.parametrize("method", ["inp-ht", "fc", "am"])
def test_a_sum_errs_as_it_says(method: str) -> None:
    """The sum of all cells but one: its error is not the sum of their variances."""
    people = crowd()
    labels = [("x", False), ("y", False), ("y", True), ("z", False), ("z", True)]
    pairs = list(zip(people["b"], people["a"], strict=True))
    truth = float(np.mean([pair in labels for pair in pairs]))
    squares, stated, added = [], [], []
    for seed in range(RUNS):
        table = table_of(method, seed, people)
        total = table.total(labels)
        assert not total.is_bound
        squares.append((float(total) - truth) ** 2)
        stated.append(total.std_error**2)
        added.append(sum(table[label].std_error ** 2 for label in labels))
    low, high = chi2.ppf([ALPHA, 1 - ALPHA], RUNS) / RUNS
    assert low < np.mean(squares) / np.mean(stated) < high
    assert np.mean(squares) / np.mean(stated) / 2 < low  # twice the variance is noticed
    assert np.mean(squares) / np.mean(added) < low


@pytest.mark.parametrize(
    "method", ["inp-ht", "fc", "am", "inp-htcms", "efron-stein", "calm", "latent", "joint"]
)
def test_a_sum_of_one_cell_is_that_cell_and_a_bound_is_not_exceeded(method: str) -> None:
    table = table_of(method, 1, crowd())
    one = table.total([("y", True)])
    if method != "calm":  # whose cells borrow from each other
        assert one.std_error == pytest.approx(table["y", True].std_error, rel=1e-6)
    labels = list(table.labels)[:4]
    several = table.total(labels)
    most = sum(table[label].std_error for label in labels)
    assert several.std_error <= most * (1 + 1e-9)
    assert several.is_bound is (method in ("latent", "joint", "efron-stein", "calm"))
    part = table.at(np.array([4, 0, 2]))
    assert part.total(list(part.labels)).is_bound is several.is_bound
    assert pickle.loads(pickle.dumps(table)).total(labels).std_error == several.std_error


def test_calm_sums_by_its_own_draws_where_all_was_asked() -> None:
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]))
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="calm"), epsilon=2.0, people=PEOPLE)
    people = {name: column for name, column in crowd().items() if name != "c"}
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    table = estimate.marginal("a", "b")
    total = table.total(list(table.labels))
    assert not total.is_bound
    # all of them sum to one, whatever is heard; what is left is the smoothing's
    assert total.std_error < 0.5 * float(np.sqrt(table.variances.sum())) + 1e-12


@pytest.mark.parametrize("method", ["latent", "fourier", "joint", "calm"])
def test_a_sum_errs_by_no_more_than_all_that_is_left_out(method: str) -> None:
    table = table_of(method, 1, crowd())
    labels = list(table.labels)
    whole = table.total(labels)
    assert float(whole) == pytest.approx(1)
    assert whole.std_error == 0
    assert not whole.is_bound
    assert whole.interval() == pytest.approx((1, 1))
    for label in labels:
        rest = table.total([each for each in labels if each != label])
        assert rest.std_error == pytest.approx(table.total([label]).std_error)
        low, high = rest.interval()
        assert low <= float(rest) <= high
        assert not rest.is_bound  # the error of a single cell is known
        assert 0 <= low < high <= 1
    many = table.total(labels[:4])
    few = table.total(labels[4:])
    assert many.std_error == pytest.approx(few.std_error)
    assert many.is_bound
    assert few.is_bound


def test_what_is_not_all_of_a_table_has_no_rest() -> None:
    """Values of a list that may be incomplete, though they happen to sum to one."""
    values, variances = np.array([0.5, 0.3, 0.2]), np.full(3, 1e-4)
    table = sv.Table(("x",), "abc", values, variances, 100, Noise(1e-4, 0.0))
    assert table.total("abc").std_error == 0
    assert table.total("ab").std_error == pytest.approx(0.01)
    part = replace(table, is_complete=False)
    assert part.total("abc").std_error == pytest.approx(0.03)
    assert part.total("ab").std_error == pytest.approx(0.02)
    assert part.total("ab").is_bound


def test_a_sum_of_repaired_cells_errs_as_it_says() -> None:
    """Rare values, most of which norm-sub sets to 0: the unrepaired sum errs by far more."""
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(range(8)))
    random = np.random.default_rng(5)
    people = {
        "a": (random.random(PEOPLE) < 0.3).tolist(),
        "b": np.minimum(random.geometric(0.6, PEOPLE) - 1, 7).tolist(),
    }
    labels = [(a, b) for a in (False, True) for b in range(3, 8)]
    truth = np.mean([b >= 3 for b in people["b"]])
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="fc"), epsilon=1.0, people=PEOPLE)
    sums, stated, unrepaired, held = [], [], [], []
    for seed in range(RUNS):
        aggregate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=seed))
        raw = aggregate.estimate().marginal("a", "b")
        total = sv.postprocess(raw, "norm-sub").total(labels)
        sums.append(float(total))
        stated.append(total.std_error**2)
        unrepaired.append(raw.total(labels).std_error ** 2)
        low, high = total.interval()
        assert 0 <= low < high <= 1
        held.append(low <= truth <= high)
    low, high = chi2.ppf([ALPHA, 1 - ALPHA], RUNS - 1) / (RUNS - 1)
    variance = float(np.var(sums, ddof=1))
    assert low < variance / np.mean(stated) < high
    assert variance / np.mean(unrepaired) < low  # as sums once said
    assert np.mean(held) > 0.9
