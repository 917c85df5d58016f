"""Iterative proportional fitting against a general optimizer, and at its edges."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing import maximum_entropy
from sottovoce.postprocessing.maximum_entropy import (
    cell_map,
    maximal,
    proportional_fit,
    proportional_fits,
)


def sums(table: Any, axes: tuple[int, ...]) -> Any:
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes))


def joint(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).dirichlet(np.full(np.prod(shape), 0.8)).reshape(shape)


def brute_force(shape: tuple[int, ...], constraints: list[Any], start: Any) -> Any:
    """The least relative entropy to ``start`` by a general optimizer with linear equality
    constraints.
    """
    rows, wanted = [], []
    for axes, table in constraints:
        cells = cell_map(shape, axes)
        rows += [(cells == place).astype(float) for place in range(table.size)]
        wanted += table.ravel().tolist()
    left, scales, right = np.linalg.svd(np.array(rows), full_matrices=False)
    kept = scales > 1e-9  # the optimizer wants independent constraints
    matrix, target = right[kept], (left.T @ np.array(wanted))[kept] / scales[kept]
    base = start.ravel()

    def entropy(x: Any) -> tuple[float, Any]:
        ratio = np.log(np.maximum(x, 1e-12) / base)
        return float((x * ratio).sum()), ratio + 1

    found = minimize(
        entropy,
        base,
        jac=True,
        bounds=[(1e-12, 1)] * base.size,
        constraints={"type": "eq", "fun": lambda x: matrix @ x - target, "jac": lambda x: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return found.x.reshape(shape)


@pytest.mark.parametrize(
    ("shape", "sets"),
    [
        ((2, 2, 2), [(0, 1), (1, 2), (0, 2)]),
        ((2, 3, 4), [(0, 1), (1, 2)]),
        ((3, 2, 3), [(0, 1), (1, 2), (0, 2)]),
        ((2, 2, 2, 2), [(0, 1, 2), (2, 3), (0, 3)]),
    ],
)
@pytest.mark.filterwarnings(
    "ignore:Values in x were outside bounds:RuntimeWarning"
)  # of scipy before 1.15
@pytest.mark.parametrize("from_uniform", [True, False])
def test_equals_a_general_optimizer(shape: Any, sets: Any, from_uniform: bool) -> None:
    truth = joint(shape, 1)
    constraints = [(axes, sums(truth, axes)) for axes in sets]
    start = np.full(shape, 1 / np.prod(shape)) if from_uniform else joint(shape, 2)
    fitted = proportional_fit(
        shape, constraints, None if from_uniform else start, rounds=2000, tolerance=1e-10
    )
    for axes, table in constraints:
        np.testing.assert_allclose(sums(fitted, axes), table, atol=1e-9)
    np.testing.assert_allclose(fitted, brute_force(shape, constraints, start), atol=2e-5)


def test_independent_attributes_give_their_product() -> None:
    one, two = np.array([0.1, 0.9]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(
        proportional_fit((2, 3), [((0,), one), ((1,), two)]), np.outer(one, two), atol=1e-9
    )


def test_nothing_known_is_uniform_and_everything_known_is_kept() -> None:
    truth = joint((2, 3), 3)
    np.testing.assert_allclose(proportional_fit((2, 3), []), np.full((2, 3), 1 / 6))
    np.testing.assert_allclose(proportional_fit((2, 3), [((0, 1), truth)]), truth, atol=1e-9)


def test_zeros_are_kept_and_contradicting_zeros_leave_a_table() -> None:
    table = np.array([[0.5, 0.0], [0.0, 0.5]])
    fitted = proportional_fit((2, 2, 2), [((0, 1), table), ((1, 2), table)])
    np.testing.assert_allclose(fitted[0, 0, 0] + fitted[1, 1, 1], 1.0, atol=1e-6)
    opposite = table[::-1]
    fitted = proportional_fit((2, 2, 2), [((0, 1), table), ((1, 2), table), ((0, 2), opposite)])
    assert np.isfinite(fitted).all()
    assert fitted.sum() == pytest.approx(1)


def test_negative_cells_and_other_totals_are_repaired() -> None:
    fitted = proportional_fit((2, 2), [((0,), np.array([-0.1, 3.0])), ((1,), np.array([1.0, 1.0]))])
    np.testing.assert_allclose(fitted, [[0, 0], [0.5, 0.5]], atol=1e-9)


def test_slightly_inconsistent_constraints_are_met_within_their_contradiction() -> None:
    truth = joint((2,) * 5, 4)
    draws = np.random.default_rng(5)
    constraints = [
        (axes, sums(truth, axes) + draws.normal(0, 1e-3, (2, 2)))
        for axes in combinations(range(5), 2)
    ]
    fitted = proportional_fit((2,) * 5, constraints)
    worst = max(
        np.abs(sums(fitted, axes) - table / table.sum()).max() for axes, table in constraints
    )
    assert worst < 5e-3


def test_many_at_once_are_those_one_by_one() -> None:
    shape, sets = (2, 3, 2), [(0, 1), (1, 2)]
    truths = [joint(shape, seed) for seed in range(6)]
    together = proportional_fits(
        shape, sets, [np.stack([sums(t, axes).ravel() for t in truths]) for axes in sets]
    )
    for truth, fitted in zip(truths, together, strict=True):
        np.testing.assert_array_equal(
            fitted, proportional_fit(shape, [(axes, sums(truth, axes)) for axes in sets])
        )


def test_large_tables_take_another_way_to_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, sets = (2, 3, 4, 2), list(combinations(range(4), 2))
    truth = joint(shape, 7)
    constraints = [(axes, sums(truth, axes)) for axes in sets]
    small = proportional_fit(shape, constraints)
    monkeypatch.setattr(maximum_entropy, "SMALL", 1)
    np.testing.assert_allclose(proportional_fit(shape, constraints), small, atol=1e-12)


def test_a_start_with_zeros_keeps_them() -> None:
    start = np.array([[1.0, 1.0], [1.0, 0.0]])
    fitted = proportional_fit(
        (2, 2), [((0,), np.array([0.6, 0.4])), ((1,), np.array([0.7, 0.3]))], start
    )
    np.testing.assert_allclose(fitted, [[0.3, 0.3], [0.4, 0.0]], atol=1e-6)
    with pytest.raises(InvalidInput, match="start must be"):
        proportional_fit((2, 2), [], np.zeros((2, 2)))


def test_bad_constraints_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"axes \(1, 0\) must be increasing"):
        proportional_fit((2, 2), [((1, 0), np.full((2, 2), 0.25))])
    with pytest.raises(InvalidInput, match="has 3 cells; it must have 2"):
        proportional_fit((2, 2), [((0,), np.full(3, 1 / 3))])


def test_maximal_sets() -> None:
    assert maximal([(0,), (1, 2), (0, 1, 2), (3,), (2, 3)]) == [(0, 1, 2), (2, 3)]
