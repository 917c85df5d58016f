"""The parts behind the latent method: contrasts, the potential's gradient, evidence, maximum
entropy, the fit.
"""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

import sottovoce as sv
from sottovoce.kernels.latent import potential
from sottovoce.protocol.families import Signs
from sottovoce.questions.marginals.methods.fourier import shrunk_singles
from sottovoce.questions.marginals.models import classes
from sottovoce.questions.marginals.models.classes import HYPER_PARAMETERS, PRIORS, ClassModel
from sottovoce.questions.marginals.models.evidence import PRIOR_WIDTHS, shrink
from sottovoce.questions.marginals.models.loglinear import cell_variances, features, maximum_entropy
from sottovoce.questions.marginals.models.signs import Moments, SignSpace, contrasts

SIZES = (2, 3, 5, 2, 4)


def some_moments(seed: int, people: float = 100.0) -> Moments:
    draws = np.random.default_rng(seed)
    space = SignSpace(SIZES)
    count = space.count
    information = draws.random((count, count)) * people
    information = information + information.T
    sums = draws.normal(size=(count, count)) * np.sqrt(information)
    return Moments(
        space,
        (draws.normal(size=count) * 9, np.full(count, people)),
        (sums + sums.T, information),
        None,
    )


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_contrasts_are_orthonormal_and_sum_to_zero(size: int) -> None:
    basis = contrasts(size)
    assert np.allclose(basis.T @ basis, np.eye(size - 1))
    assert np.allclose(basis.sum(0), 0)


@pytest.mark.parametrize("size", [2, 3, 5, 8, 11])
def test_signs_are_a_tight_frame_that_gives_contrasts_back(size: int) -> None:
    space = SignSpace((size,))
    table = np.random.default_rng(size).dirichlet(np.ones(size))
    means = space.rows[0] @ table
    assert np.allclose(space.to_contrasts @ means, contrasts(size).T @ table)


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_the_potentials_gradient_is_its_own(ridge: float) -> None:
    model = ClassModel(some_moments(1))
    point = model.cold_start(np.random.default_rng(2))
    point = point + 0.3 * np.random.default_rng(3).normal(size=point.size)
    held = model.classes + HYPER_PARAMETERS if ridge else 0  # common shifts and priors
    gradient = np.empty(point.size)
    arguments: Any = (model.classes, model.layout(PRIORS), model.data, 0.7, ridge)
    potential(point, *arguments, gradient)
    own = gradient.copy()
    assert np.all(own[point.size - held :] == 0)
    for place in range(point.size - held):
        step = np.zeros(point.size)
        step[place] = 1e-5
        slope = (
            potential(point + step, *arguments, gradient)
            - potential(point - step, *arguments, gradient)
        ) / 2e-5
        assert own[place] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def dual_optimum(
    values: NDArray[np.float64], target: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    def objective(eta: NDArray[np.float64]) -> float:
        energy = values @ eta
        return float(np.log(np.exp(energy).sum()) - eta @ target + 0.5 * (variance * eta**2).sum())

    eta = minimize(objective, np.zeros(len(target)), method="BFGS", options={"gtol": 1e-9}).x
    table = np.exp(values @ eta)
    return np.asarray(table / table.sum())


def test_maximum_entropy_against_a_general_optimiser() -> None:
    shape = (2, 3, 2)
    sets = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    known = features(shape, tuple(contrasts(size).T for size in shape), sets)
    draws = np.random.default_rng(4)
    tables = draws.dirichlet(np.ones(12), size=3)
    targets = tables @ known.values + 0.01 * draws.normal(size=(3, known.values.shape[1]))
    variances = np.full(targets.shape, 1e-3)
    found = maximum_entropy(known.values, targets, variances)
    for row in range(3):
        assert np.allclose(
            found[row], dual_optimum(known.values, targets[row], variances[row]), atol=1e-5
        )


def test_cell_variances_against_differences() -> None:
    shape = (2, 2, 2)
    sets = [(0,), (1,), (2,), *combinations(range(3), 2)]
    known = features(shape, tuple(contrasts(size).T for size in shape), sets)
    table = np.random.default_rng(5).dirichlet(np.ones(8))
    target = (table @ known.values)[None]
    variance = np.full(target.shape, 1e-4)
    base = maximum_entropy(known.values, target, variance)
    total = np.zeros(8)
    for place in range(target.shape[1]):
        moved = target.copy()
        moved[0, place] += 1e-5
        total += ((maximum_entropy(known.values, moved, variance) - base)[0] / 1e-5) ** 2 * 1e-4
    assert np.allclose(cell_variances(known.values, base, variance)[0], total, rtol=1e-3)


def test_evidence_keeps_large_effects_and_drops_noise() -> None:
    draws = np.random.default_rng(6)
    noise = np.full(600, 0.05**2)
    truth = np.zeros(600)
    truth[:40] = draws.normal(size=40) * 0.4
    seen = truth + draws.normal(size=600) * 0.05
    found = shrink(seen, noise, np.arange(600))
    assert ((found.mean - truth) ** 2).sum() < 0.35 * ((seen - truth) ** 2).sum()
    assert found.weights[0] > 0.5
    assert found.evidence[np.abs(truth) > 0.4].min() > 0.9
    nothing = shrink(draws.normal(size=600) * 0.05, noise, np.arange(600))
    assert np.abs(nothing.mean).max() < 0.05 < np.abs(found.mean).max()
    assert len(found.weights) == len(PRIOR_WIDTHS)


def test_effects_of_a_group_share_their_evidence() -> None:
    draws = np.random.default_rng(7)
    truth = np.zeros((50, 8))
    truth[:5] = draws.normal(size=(5, 8)) * 0.1
    seen = truth + draws.normal(size=truth.shape) * 0.05
    alone = shrink(seen.ravel(), np.full(400, 0.0025), np.arange(400))
    shared = shrink(seen.ravel(), np.full(400, 0.0025), np.repeat(np.arange(50), 8))
    assert ((shared.mean - truth.ravel()) ** 2).sum() < ((alone.mean - truth.ravel()) ** 2).sum()


def test_singles_are_shrunk_toward_their_mean() -> None:
    space = SignSpace((2,) * 30)
    draws = np.random.default_rng(8)
    truth = 0.8 + 0.05 * draws.normal(size=30)
    seen = truth + 0.2 * draws.normal(size=30)
    information = np.full(30, 25.0)
    pair = np.zeros((30, 30))
    mean, variance = shrunk_singles(
        Moments(space, (seen * information, information), (pair, pair), None)
    )
    assert ((mean * np.sqrt(2) - truth) ** 2).sum() < 0.5 * ((seen - truth) ** 2).sum()
    assert (variance < 1 / 25 / 2).all()


def crowd(people: int, seed: int, attributes: int = 8) -> dict[str, NDArray[np.int64]]:
    """People of two hidden kinds."""
    draws = np.random.default_rng(seed)
    kind = draws.random(people) < 0.4
    chances = np.where(
        kind[:, None], draws.uniform(0.5, 0.9, attributes), draws.uniform(0.05, 0.4, attributes)
    )
    values = (draws.random((people, attributes)) < chances).astype(np.int64)
    return {f"a{place}": values[:, place] for place in range(attributes)}


def squared_error(
    method: str, people: dict[str, NDArray[np.int64]], order: int, seed: int, epsilon: float
) -> float:
    schema = sv.Schema(**{name: sv.Boolean() for name in people})
    count = len(people["a0"])
    plan = sv.plan(schema, sv.Marginals(up_to=order, method=method), epsilon=epsilon, people=count)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=seed)).estimate()
    assert isinstance(estimate, sv.MarginalEstimate)
    sets = list(combinations(people, order))
    total = 0.0
    for names, values in zip(sets, estimate.values_of(sets), strict=True):
        cells = np.zeros(count, np.int64)
        for name in names:
            cells = cells * 2 + people[name]
        total += float(((values - np.bincount(cells, minlength=len(values)) / count) ** 2).sum())
    return total / len(sets)


@pytest.mark.parametrize("epsilon", [0.4, 0.8, 1.2, 2.0, 4.0])
def test_classes_find_hidden_kinds(epsilon: float) -> None:
    """Less error than shrinking toward independence, which knows of no kinds, and far less than raw
    coefficients.
    """
    people = crowd(40_000, 9)
    latent, fourier, raw = (
        squared_error(method, people, 3, 3, epsilon) for method in ("latent", "fourier", "inp-ht")
    )
    assert latent < 1.1 * fourier
    assert latent < 0.5 * raw


def mean_covariance(tables: NDArray[np.float64]) -> float:
    """The mean over pairs, (pairs, 2, 2), of P(both yes) - P(one yes) P(other yes)."""
    both = tables[:, 1, 1]
    independent = tables[:, 1].sum(1) * tables[:, :, 1].sum(1)
    return float((both - independent).mean())


@pytest.mark.parametrize("heavy", [0.0, 0.06])
def test_people_who_say_yes_to_everything_are_believed(
    heavy: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports tell the mean covariance of all pairs well, and that of one pair badly. Without a
    common shift of a class's attributes the classes take it for noise.
    """
    count = 1 << 17
    draws = np.random.default_rng(11)
    chance = np.where(draws.random(count) < heavy, 0.5, 0.05)
    people = {f"a{place}": (draws.random(count) < chance).astype(np.int64) for place in range(20)}
    pairs = list(combinations(people, 2))
    truth = np.cov(list(people.values()), bias=True)[np.triu_indices(20, 1)].mean()
    schema = sv.Schema(**{name: sv.Boolean() for name in people})
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="latent"), epsilon=2, people=count)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=5))

    def error() -> float:
        estimate = heard.estimate()
        assert isinstance(estimate, sv.MarginalEstimate)
        tables = np.array(estimate.values_of(pairs)).reshape(-1, 2, 2)
        return abs(mean_covariance(tables) - truth)

    # the standard error of the mean covariance that reports tell is 0.0022
    assert error() < 3 * 0.0022
    if heavy:
        without = PRIORS.copy()
        without[4] = [-9.0, 0.01]  # ln gamma: a mutant whose classes have no shift
        monkeypatch.setattr(classes, "PRIORS", without)
        monkeypatch.setattr(classes, "STIFF_PRIORS", without)
        assert error() > 3 * 0.0022


def test_three_way_structure_is_seen() -> None:
    """The third attribute is the parity of two others: pairs say nothing of it."""
    draws = np.random.default_rng(10)
    values = draws.integers(0, 2, (60_000, 6))
    values[:, 2] = values[:, 0] ^ values[:, 1]
    people = {f"a{place}": values[:, place] for place in range(6)}
    schema = sv.Schema(**{name: sv.Boolean() for name in people})
    plan = sv.plan(schema, sv.Marginals(up_to=3, method="latent"), epsilon=2.0, people=60_000)
    table = (
        sv.Aggregate(plan)
        .add(sv.simulate(plan, people, seed=2))
        .estimate()
        .marginal("a0", "a1", "a2")
    )
    even = np.array([0, 3, 5, 6])
    assert table.values[even].sum() > 0.95
    assert table.is_reconstructed
    assert not table.is_unbiased


def test_an_estimate_is_the_same_every_time() -> None:
    people = crowd(5_000, 11)
    assert squared_error("latent", people, 2, 1, 1.0) == squared_error("latent", people, 2, 1, 1.0)


@pytest.mark.parametrize(("attributes", "stars"), [(23, 0.5), (24, 0.8)])
def test_many_attributes_are_asked_for_pairs(attributes: int, stars: float) -> None:
    """As many more pairs there are than singles, as many more people tell pairs."""
    schema = sv.Schema(**{f"a{place}": sv.Boolean() for place in range(attributes)})
    plan = sv.plan(schema, sv.Marginals(up_to=3, method="latent"), epsilon=1.0, people=100_000)
    assert isinstance(plan.cohorts, Signs)
    block = next(place for place, each in enumerate(plan.cohorts.blocks) if each.shape == "star")
    assert plan.cohorts._shares[block] / plan.cohorts.weight == pytest.approx(stars, abs=0.02)


def test_a_kept_fit_holds_its_posterior() -> None:
    """It is made when a table is asked for, or when the fit is written to a file."""
    schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="latent"), epsilon=1.0, people=300)
    people = {name: [True, False, False] * 100 for name in schema}
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate().joint
    sv.associate(estimate)
    assert "posterior" not in vars(estimate.fit)  # tests of independence do not need it
    kept = pickle.loads(pickle.dumps(estimate))
    assert "posterior" in vars(kept.fit)
    assert (kept.marginal("a", "b").values == estimate.marginal("a", "b").values).all()
