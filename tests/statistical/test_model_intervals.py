"""Intervals of marginals that a model shrinks: how often they hold what the crowd truly says."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.questions.marginals.estimate import CellSums
from sottovoce.results.cells import FACTOR_SPREAD, share_interval

PEOPLE = 1 << 15
ATTRIBUTES = 10
RUNS = 4
# cells this large err as their posterior says; of smaller ones most of the error is the prior's
LARGE = 0.02
# the coefficients of a run, 10 singles and 45 pairs, err apart: 220 in all, of which 5% should
# miss, with a standard error of 1.5%; a variance that is halved misses 16.6%
LEAST_HELD = 0.95 - 2.6 * 0.015


def crowd(seed: int) -> dict[str, NDArray[np.int64]]:
    """People of three hidden kinds."""
    draws = np.random.default_rng(seed)
    kinds = draws.choice(3, PEOPLE, p=[0.6, 0.3, 0.1])
    chances = draws.uniform(0.1, 0.6, (3, ATTRIBUTES))[kinds]
    answers = (draws.random((PEOPLE, ATTRIBUTES)) < chances).astype(np.int64)
    return {f"a{place}": answers[:, place] for place in range(ATTRIBUTES)}


@pytest.fixture(scope="module")
def tables() -> list[tuple[sv.Table, NDArray[np.float64]]]:
    """Tables of two attributes, and what is true."""
    schema = sv.Schema(**{f"a{place}": sv.Boolean() for place in range(ATTRIBUTES)})
    question = sv.Marginals(up_to=3, method="latent")
    plan = sv.plan(schema, question, epsilon=1, people=PEOPLE)
    out = []
    for seed in range(RUNS):
        people = crowd(seed)
        estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=seed)).estimate()
        assert isinstance(estimate, sv.MarginalEstimate)
        for names in combinations(people, 2):
            cells = np.zeros(PEOPLE, np.int64)
            for name in names:
                cells = 2 * cells + people[name]
            out.append((estimate.marginal(*names), np.bincount(cells, minlength=4) / PEOPLE))
    return out


def held(tables: list[tuple[sv.Table, NDArray[np.float64]]], level: float = 0.95) -> float:
    """The share of large cells inside their intervals."""
    inside = []
    for table, truth in tables:
        low, high = table.interval(level)
        is_large = table.values > LARGE
        inside.append(((low <= truth) & (truth <= high))[is_large])
    return float(np.concatenate(inside).mean())


def test_intervals_of_a_model_hold_the_truth(
    tables: list[tuple[sv.Table, NDArray[np.float64]]],
) -> None:
    assert held(tables) > LEAST_HELD
    assert held(tables, 0.99) > held(tables) > held(tables, 0.8)


def test_halved_variances_are_noticed(tables: list[tuple[sv.Table, NDArray[np.float64]]]) -> None:
    narrow = []
    for table, truth in tables:
        spread = table.spread
        assert isinstance(spread, CellSums)
        halved = replace(spread, std_error=spread.std_error / np.sqrt(2))
        narrow.append((replace(table, spread=halved), truth))
    assert held(narrow) < LEAST_HELD


def test_ends_lie_between_nobody_and_everybody(
    tables: list[tuple[sv.Table, NDArray[np.float64]]],
) -> None:
    for table, _ in tables:
        low, high = table.interval()
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (low <= table.values).all()
        assert (table.values <= high).all()


@pytest.mark.parametrize("truth", [0.0002, 0.01, 0.3, 0.995])
def test_an_end_at_zero_or_one_leaves_all_misses_to_the_other(truth: float) -> None:
    # estimates cut to [0, 1], of normal errors: intervals hold the truth in 95% at least,
    # and in 95% at most where both ends are free
    draws = np.random.default_rng(3)
    count, error, people = 40_000, 0.01, 10_000
    estimates = np.clip(truth + error * draws.standard_normal(count), 0, 1)
    whole = round(truth * people) / people
    low, high = share_interval(estimates, np.full(count, error), people, 0.95)
    share = np.mean((low <= whole) & (whole <= high))
    doubt = 4 * np.sqrt(0.05 * 0.95 / count)
    assert share > 0.95 - doubt
    if truth == 0.3:
        assert share < 0.95 + doubt + 0.001  # ends are whole people: 1% of the error
    narrow_low, narrow_high = share_interval(estimates, np.full(count, error / 1.4), people, 0.95)
    if truth in (0.3, 0.01):
        assert np.mean((narrow_low <= whole) & (whole <= narrow_high)) < 0.95 - doubt


@pytest.mark.parametrize("by_factor", [False, True])
@pytest.mark.parametrize("errors", [0.0, 0.02, 0.2, 1.3, 1.8, 2.5, 4.0])
def test_intervals_of_higher_levels_hold_those_of_lower_ones(
    errors: float, by_factor: bool
) -> None:
    levels = np.linspace(0.02, 0.998, 50)
    value, error = np.array([0.01 * errors]), np.array([0.01])
    ends = [
        share_interval(value, error, 10**6, float(level), by_factor=by_factor) for level in levels
    ]
    low, high = np.array(ends)[:, :, 0].T
    assert (np.diff(low) <= 1e-12).all()
    assert (np.diff(high) >= -2e-6).all()  # ends are whole people


def test_shares_that_err_by_a_factor_are_held_as_often_as_promised() -> None:
    # estimates whose logarithm errs normally, by the part of a log-normal law that is taken;
    # the spread of half as much variance must be rejected
    draws = np.random.default_rng(5)
    count, estimate, relative, people = 40_000, 0.001, 5.0, 10**9
    spread = FACTOR_SPREAD * np.sqrt(np.log1p(relative**2))
    truth = estimate * np.exp(spread * draws.standard_normal(count))
    doubt = 4 * np.sqrt(0.05 * 0.95 / count)

    def share(error: float) -> float:
        values, errors = np.full(1, estimate), np.full(1, error)
        _, high = share_interval(values, errors, people, 0.95, by_factor=True)
        return float(np.mean(truth <= high))

    assert abs(share(relative * estimate) - 0.95) < doubt
    assert share(relative * estimate / np.sqrt(2)) < 0.95 - doubt


def test_a_sum_of_one_cell_has_its_interval(
    tables: list[tuple[sv.Table, NDArray[np.float64]]],
) -> None:
    table, _ = tables[0]
    low, high = table.interval(0.9)
    for place, label in enumerate(table.labels):
        assert table.total([label]).interval(0.9) == (low[place], high[place])
