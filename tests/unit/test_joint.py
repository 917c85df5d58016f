"""The joint fit: its objective against a general optimizer and against calm's, its two solvers
against each other.
"""

from __future__ import annotations

from itertools import combinations
from math import log, prod
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import sottovoce as sv
from sottovoce.postprocessing.consistency import Overlap
from sottovoce.postprocessing.maximum_entropy import cell_map
from sottovoce.questions.marginals.methods import joint as joint_module
from sottovoce.questions.marginals.methods.joint import Entropic, Halves, _features, solve
from sottovoce.questions.marginals.methods.views import Reconstruction

SIZES = (2, 3, 2)
VIEWS = [(0, 1), (1, 2), (0, 2)]


def views_of(
    seed: int, noise: float, sizes: Any = SIZES, views: Any = VIEWS
) -> tuple[Overlap, Any, Any]:
    """An overlap, noisy tables of its views in a row, and the views' weights."""
    draws = np.random.default_rng(seed)
    truth = draws.dirichlet(np.full(prod(sizes), 0.5))
    overlap = Overlap(sizes, views)
    tables = [np.bincount(cell_map(sizes, view), truth) for view in views]
    cells = overlap.pack([table + draws.normal(0, noise, table.size) for table in tables])
    return overlap, cells, np.full(len(views), noise**-2)


def objective(overlap: Overlap, cells: Any, weights: Any, fitted: Any) -> float:
    """The sum over views of ||M_A x - y_A||^2 / Var_A; what contradicts a total of one is the same
    for all x.
    """
    centred = overlap.tables(_with_total_one(overlap.coefficients(cells), overlap))
    return float((weights[overlap.owner] * (fitted - centred) ** 2).sum())


def _with_total_one(coefficients: Any, overlap: Overlap) -> Any:
    return np.where(overlap.numbers == 0, 1.0, coefficients)


def sums(overlap: Overlap, table: Any) -> Any:
    return overlap.pack(
        [np.bincount(cell_map(overlap.sizes, view), table) for view in overlap.views]
    )


def fitted(overlap: Overlap, cells: Any, weights: Any) -> Any:
    shared = overlap.averages(cells, overlap.averager(weights))
    return Entropic(overlap, shared, weights, 1 << 20).table(tuple(range(len(overlap.sizes))))[0]


def reference(overlap: Overlap, cells: Any, weights: Any, entropy: float) -> Any:
    """The least objective / 2 plus ``entropy`` times relative entropy over the simplex, by a
    general optimizer.
    """
    count = prod(overlap.sizes)

    def loss(x: Any) -> float:
        even = float((x * np.log(np.maximum(x, 1e-12) * count)).sum())
        return objective(overlap, cells, weights, sums(overlap, x)) / 2 + entropy * even

    found = minimize(
        loss,
        np.full(count, 1 / count),
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return found.x, float(found.fun)


@pytest.mark.parametrize("noise", [0.3, 0.05, 0.005])
def test_the_fit_is_the_optimum_that_a_general_optimizer_finds(noise: float) -> None:
    overlap, cells, weights = views_of(1, noise)
    table = fitted(overlap, cells, weights)
    even = float((table * np.log(table * table.size)).sum())
    own = objective(overlap, cells, weights, sums(overlap, table)) / 2
    found, least = reference(overlap, cells, weights, 1.0)
    assert own + even <= least + 1e-4
    np.testing.assert_allclose(table, found, atol=2e-3)
    # without the entropy the optimum is lower, by no more than the entropy there is
    _, bare = reference(overlap, cells, weights, 0.0)
    assert bare - 1e-6 <= own <= bare + log(table.size)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.2, 0.05])
def test_its_objective_is_not_above_that_of_calm(seed: int, noise: float) -> None:
    sizes, views = (2, 2, 3, 2), list(combinations(range(4), 2))
    overlap, cells, weights = views_of(seed, noise, sizes, views)
    repaired = overlap.repair(cells[None, :], weights)
    calm = Reconstruction(overlap, overlap.averages(repaired, overlap.averager(weights)), repaired)

    def total(table: Any) -> float:
        even = float((table * np.log(np.maximum(table, 1e-300) * table.size)).sum())
        return objective(overlap, cells, weights, sums(overlap, table)) / 2 + even

    own, other = fitted(overlap, cells, weights), calm.table((0, 1, 2, 3))[0]
    assert total(own) < total(other)


def test_means_and_energies_by_halves_are_those_of_the_listed_features() -> None:
    shape, sets = (2, 3, 2, 4), [(0,), (1,), (3,), (0, 1), (1, 3), (0, 1, 3)]
    halves, listed = Halves(shape, sets), _features(shape, tuple(sets))
    draws = np.random.default_rng(3)
    table, eta = draws.dirichlet(np.ones(prod(shape))), draws.normal(size=listed.shape[1])
    np.testing.assert_allclose(halves.means(table.reshape(halves.flat)), table @ listed, atol=1e-12)
    np.testing.assert_allclose(halves.energy(eta).ravel(), listed @ eta, atol=1e-12)
    np.testing.assert_allclose(listed.T @ listed / prod(shape), np.eye(listed.shape[1]), atol=1e-12)


def test_both_solvers_find_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    overlap, cells, weights = views_of(4, 0.05)
    newton = fitted(overlap, cells, weights)
    monkeypatch.setattr(joint_module, "MOST_NEWTON", 0)
    monkeypatch.setattr(joint_module, "ENOUGH", 1e-6)
    np.testing.assert_allclose(fitted(overlap, cells, weights), newton, atol=1e-5)


def test_the_stop_is_a_small_part_of_a_standard_error() -> None:
    overlap, cells, weights = views_of(5, 0.02)
    shared = overlap.averages(cells, overlap.averager(weights))
    source = Entropic(overlap, shared, weights, 1 << 20)
    sets = [own for own in overlap.starts if own]
    halves = Halves(SIZES, sets)
    table, eta = solve(halves, source.targets[0, 1:], source.variances[1:])
    slope = (
        halves.means(table.reshape(halves.flat))
        - source.targets[0, 1:]
        + source.variances[1:] * eta
    )
    assert np.abs(slope / np.sqrt(source.variances[1:])).max() < joint_module.ENOUGH


def test_a_joint_table_that_was_not_found_gives_way_to_tables_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overlap, cells, weights = views_of(5, 0.001)
    shared = overlap.averages(cells, overlap.averager(weights))
    pair = VIEWS[0][:2]
    right = Entropic(overlap, shared, weights, 1 << 20).table(pair)
    monkeypatch.setattr(joint_module, "MOST_NEWTON", 500)  # pairs, but not all attributes
    monkeypatch.setattr(joint_module, "MAX_LBFGS_STEPS", 2)
    found = Entropic(overlap, shared, weights, 1 << 20)
    assert found.joint is None
    np.testing.assert_allclose(found.table(pair), right, atol=0.005)
    monkeypatch.setattr(joint_module, "MOST_OFF", np.inf)  # whoever takes what there is errs
    spoiled = Entropic(overlap, shared, weights, 1 << 20)
    assert np.abs(spoiled.table(pair) - right).max() > 0.02


def people(count: int, seed: int) -> tuple[sv.Schema, dict[str, Any]]:
    schema = sv.Schema(
        a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Boolean(), d=sv.Boolean()
    )
    draws = np.random.default_rng(seed)
    first = draws.random(count) < 0.3
    return schema, {
        "a": first,
        "b": np.where(first, "x", draws.choice(["x", "y", "z"], count)),
        "c": first ^ (draws.random(count) < 0.2),
        "d": draws.random(count) < 0.6,
    }


def test_the_joint_table_is_kept_and_answers_agree_with_it() -> None:
    schema, table = people(4000, 1)
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="joint"), epsilon=2.0, people=4000)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, table, seed=1)).estimate()
    whole = estimate.fit.joint
    assert whole.shape == (2, 3, 2, 2)
    assert whole.sum() == pytest.approx(1)
    np.testing.assert_allclose(estimate.marginal("b", "a").values, whole.sum((2, 3)).T.ravel())
    assert estimate.marginal("a", "b", "c").is_reconstructed


def test_without_room_for_the_joint_each_table_is_fitted_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema, table = people(4000, 2)
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="joint"), epsilon=1.0, people=4000)
    aggregate = sv.Aggregate(plan).add(sv.simulate(plan, table, seed=2))
    whole = aggregate.estimate().marginal("a", "c")
    monkeypatch.setattr(joint_module, "MOST_JOINT", 1)
    apart = aggregate.estimate()
    assert apart.fit.joint is None
    assert apart.marginal("a", "c").values.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        apart.marginal("a", "c").values, whole.values, atol=3 * whole.std_error.max()
    )
