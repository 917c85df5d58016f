"""Hybrid grids: sizes, agreement, response matrices and selections of several dimensions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.questions.queries.evidence import GridEvidence
from sottovoce.questions.queries.hybrid import all_selected, cell_means, hybrid_fit, response_matrix
from sottovoce.questions.queries.methods.hybrid_grids import cell_widths, grid_sizes

SIZES = (12, 8, 3)


def cuts(size: int, width: int) -> np.ndarray:
    return np.array([*range(0, size, width), size])


def evidence(table: np.ndarray, noise: float, seed: int) -> list[GridEvidence]:
    """Of all dimensions and pairs, with normal errors."""
    draws = np.random.default_rng(seed)
    fine, coarse = (2, 1, 1), (4, 4, 1)
    found = []
    for axes in [*((axis,) for axis in range(3)), *combinations(range(3), 2)]:
        widths = fine if len(axes) == 1 else coarse
        edges = tuple(cuts(table.shape[axis], widths[axis]) for axis in axes)
        shares = table.sum(axis=tuple(axis for axis in range(3) if axis not in axes))
        for place, edge in enumerate(edges):
            shares = np.add.reduceat(shares, edge[:-1], axis=place)
        values = shares + noise * draws.normal(size=shares.shape)
        found.append(GridEvidence(axes, edges, values, noise**2 + 1e-9, 0.0, 10_000.0))
    return found


def crowd(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(np.prod(SIZES))).reshape(SIZES)


def test_sizes_are_those_of_the_paper() -> None:
    """g1 and g2 by their formulas, then powers of two; more people and more epsilon make finer
    grids.
    """
    assert grid_sizes(6, 1.0, 1_000_000) == (16, 4)
    finer = [grid_sizes(6, epsilon, 1_000_000) for epsilon in (0.2, 0.6, 1.0, 2.0)]
    assert finer == sorted(finer)
    assert grid_sizes(2, 2.0, 100_000_000)[0] >= 128
    assert grid_sizes(16, 0.01, 100) == (2, 2)
    for size in (2, 3, 7, 64, 100, 1000):
        narrow, wide = cell_widths(size, 64, 8)
        assert wide % narrow == 0
        assert wide < size


def test_shares_without_noise_stay_and_unions_of_cells_are_exact() -> None:
    table = crowd(1)
    fitted = hybrid_fit(SIZES, evidence(table, 0.0, 1))
    first = (np.arange(12) < 4).astype(float)  # one coarse cell
    second = (np.arange(8) >= 4).astype(float)
    third = np.array([0.0, 1.0, 0.0])
    for term, truth in (
        ({0: first}, table[:4].sum()),
        ({0: first, 1: second}, table[:4, 4:].sum()),
        ({1: second, 2: third}, table[:, 4:, 1].sum()),
        ({}, 1.0),
    ):
        assert fitted.joint([term]).values[0] == pytest.approx(truth, abs=2e-4)


def test_grids_agree_after_the_fit() -> None:
    fitted = hybrid_fit(SIZES, evidence(crowd(2), 0.03, 2))
    for (first, second), matrix in fitted.matrices.items():
        assert matrix.min() >= 0
        assert matrix.sum() == pytest.approx(1)
        assert np.abs(matrix.sum(axis=1) - fitted.singles[first]).sum() < 0.05
        assert np.abs(matrix.sum(axis=0) - fitted.singles[second]).sum() < 0.05


def test_agreement_lowers_the_error_of_single_dimensions() -> None:
    """Over 40 tables a fine grid that heard of its pairs is nearer to the truth; paired, by a sign
    test: 31 of 40 or more have a chance below 0.001.
    """
    better = 0
    for seed in range(40):
        table = crowd(seed)
        heard = evidence(table, 0.05, seed)
        fitted = hybrid_fit(SIZES, heard)
        truth = np.add.reduceat(table.sum(axis=(1, 2)), np.arange(0, 12, 2))
        better += bool(
            ((fitted.singles[0] - truth) ** 2).sum() < ((heard[0].values - truth) ** 2).sum()
        )
    assert better >= 31


def test_a_response_matrix_is_that_of_single_values() -> None:
    """The paper's updates over single values, summed over fine cells."""
    draws = np.random.default_rng(5)
    edges = (cuts(12, 2), cuts(8, 1))
    coarse = [cuts(12, 4), cuts(8, 4)]
    first, second = draws.dirichlet(np.ones(6)), draws.dirichlet(np.ones(8))
    both = draws.dirichlet(np.ones(6)).reshape(3, 2)
    matrix = np.full((12, 8), 1 / 96)
    for _ in range(100):
        before = matrix
        matrix = matrix * np.repeat(first / matrix.reshape(6, 2, 8).sum(axis=(1, 2)), 2)[:, None]
        matrix = matrix * (second / matrix.sum(axis=0))
        blocks = matrix.reshape(3, 4, 2, 4).sum(axis=(1, 3))
        matrix = matrix * np.repeat(np.repeat(both / blocks, 4, axis=0), 4, axis=1)
        if np.abs(matrix - before).sum() < 1e-4:
            break
    matrix /= matrix.sum()
    found = response_matrix(edges, (first, second, both), coarse, 1e4)
    assert np.allclose(found, matrix.reshape(6, 2, 8).sum(axis=1))


def test_many_dimensions_are_maximum_entropy_of_their_pairs() -> None:
    table = np.random.default_rng(7).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    pairs = list(combinations(range(4), 2))
    tables = {
        pair: table.sum(axis=tuple(axis for axis in range(4) if axis not in pair)) for pair in pairs
    }
    fitted = proportional_fit((2,) * 4, [(pair, tables[pair].ravel()) for pair in pairs])
    found = all_selected(tables, 4, 1e-12)
    assert float(found) == pytest.approx(fitted[1, 1, 1, 1], rel=1e-3)


def test_weights_of_a_cell_are_means() -> None:
    assert cell_means(np.arange(6.0), np.array([0, 2, 6])).tolist() == [0.5, 3.5]


def test_a_plan_answers_all_numbers_of_dimensions_and_empty_grids_are_even() -> None:
    schema = sv.Schema(
        age=sv.Ordinal(0, 99), hours=sv.Ordinal(0, 63), state=sv.Categorical(["a", "b", "c"])
    )
    question = sv.Queries(["age", "hours", "state"], method="hdg", fine=8, coarse=2)
    plan = sv.plan(schema, question, epsilon=4.0, people=30_000)
    assert plan.question.options == {"fine": 8, "coarse": 2}  # type: ignore[attr-defined]
    draws = np.random.default_rng(1)
    ages, hours = draws.integers(0, 100, 30_000), draws.integers(0, 64, 30_000)
    states = np.array(["a", "b", "c"])[draws.integers(0, 3, 30_000)]
    reports = sv.simulate(plan, {"age": ages, "hours": hours, "state": states}, seed=2)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    answer = estimate.count(age=(0, 51), hours=(0, 31), state="a")  # type: ignore[attr-defined]
    truth = ((ages <= 51) & (hours <= 31) & (states == "a")).sum()
    assert abs(answer.value - truth) < 0.02 * 30_000  # within what 0.52 / 2 / 3 leaves to bias
    assert answer.std_error > 0
    assert not estimate.is_unbiased
    few = sv.Aggregate(plan).add(reports[:3]).estimate()
    assert 0 <= few.count(age=(0, 51), hours=(0, 31)).value <= 3  # type: ignore[attr-defined]


def test_what_does_not_fit_is_refused() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 99), hours=sv.Ordinal(0, 63))
    with pytest.raises(sv.InvalidInput, match="two dimensions or more"):
        sv.plan(schema, sv.Queries(["age"], method="hdg"), epsilon=1.0, people=1000)
    question = sv.Queries(["age", "hours"], method="hdg", fine=2, coarse=4)
    with pytest.raises(sv.InvalidInput, match="fine"):
        sv.plan(schema, question, epsilon=1.0, people=1000)
