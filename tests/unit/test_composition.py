"""Steps of any kind together: against closed forms, exact laws, and a second library."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import GaussianMechanism, LaplaceMechanism

from sottovoce.accounting import ExponentialStep, GaussianStep, LaplaceStep, PureStep
from sottovoce.accounting.composition import LOSS_INTERVAL, composed_delta, exponential_delta
from sottovoce.accounting.gaussian import delta_curve
from sottovoce.accounting.totals import total_epsilon
from sottovoce.ground.errors import InvalidInput, MissingLibrary

EPSILONS = (0.0, 0.2, 0.5, 0.9, 1.3)


def test_gaussian_steps_alone_are_the_exact_curve() -> None:
    curve = composed_delta(Fraction(1, 16), [])
    for epsilon in (0.5, 1.0, 1.5):
        assert curve(epsilon) == pytest.approx(float(delta_curve(epsilon, 0.25)), rel=1e-9)
    beside = composed_delta(Fraction(1, 16), [PureStep("a", "b", Fraction(1, 10**6))])
    assert curve(1.0) < beside(1.0) < 1.01 * curve(1.0)


def test_nothing_reveals_nothing() -> None:
    curve = composed_delta(Fraction(0), [])
    assert curve(0.0) == curve(1.0) == 0.0
    assert curve(-1.0) == pytest.approx(1 - math.exp(-1))


def test_pure_steps_compose_as_randomized_response_does() -> None:
    """Two steps of epsilon: losses 2e, 0, -2e with chances p^2, 2pq, q^2."""
    epsilon = 0.5
    curve = composed_delta(Fraction(0), [PureStep("a", "b", Fraction(1, 2))] * 2)
    p = 1 / (1 + math.exp(-epsilon))
    chances = {2 * epsilon: p * p, 0.0: 2 * p * (1 - p), -2 * epsilon: (1 - p) ** 2}
    for at in EPSILONS:
        exact = sum(c * max(0.0, 1 - math.exp(at - loss)) for loss, c in chances.items())
        assert exact <= curve(at) + 1e-15
        assert curve(at) <= exact + 4 * LOSS_INTERVAL


def laplace_losses(moved: int, scale: Fraction) -> np.ndarray:
    """Chances of the losses -moved .. moved, in units of 1/scale, of one integer that moves."""
    places = np.arange(-120, 121)
    chances = np.exp(-np.abs(places) / float(scale))
    losses = np.abs(places + moved) - np.abs(places)
    return np.bincount(losses + moved, chances / chances.sum())


@pytest.mark.parametrize("moves", [(4,), (1, 3), (2, 2), (1, 1, 2), (1, 1, 1, 1)])
def test_laplace_noise_is_worst_where_one_count_moves_by_all(moves: tuple[int, ...]) -> None:
    scale = Fraction(3)
    curve = composed_delta(Fraction(0), [LaplaceStep("a", "b", Fraction(4), scale)])
    chances = reduce(np.convolve, [laplace_losses(moved, scale) for moved in moves])
    losses = np.arange(-4, 5) / float(scale)
    for at in EPSILONS:
        exact = float((chances * np.maximum(0.0, -np.expm1(np.minimum(0.0, at - losses)))).sum())
        assert exact <= curve(at) + 1e-12
        assert len(moves) > 1 or curve(at) <= exact + 2 * LOSS_INTERVAL


def test_laplace_noise_off_the_integers_counts_as_pure() -> None:
    pure = composed_delta(Fraction(0), [PureStep("a", "b", Fraction(1, 2))])
    other = composed_delta(Fraction(0), [LaplaceStep("a", "b", Fraction(3, 2), Fraction(3))])
    assert [pure(at) for at in EPSILONS] == [other(at) for at in EPSILONS]


@pytest.mark.parametrize("eta", [0.1, 1.0, 4.0])
def test_the_exponential_mechanism_is_bounded_by_its_range(eta: float) -> None:
    """Any mechanism whose losses lie in an interval of length eta: two-point ones are extreme."""
    ends = np.linspace(1e-9, eta - 1e-9, 4001)  # the highest loss
    high = -np.expm1(ends - eta) / -math.expm1(-eta)  # its chance
    for at in np.linspace(-eta, eta, 21):
        reached = high * np.maximum(0.0, -np.expm1(np.minimum(0.0, at - ends)))
        lowest = (1 - high) * np.maximum(0.0, -np.expm1(np.minimum(0.0, at - (ends - eta))))
        exact = float((reached + lowest).max())
        stated = float(exponential_delta(np.array(at), eta))
        assert exact <= stated + 1e-9
        assert stated <= exact + 1e-6 or abs(at) > 0.999 * eta


def test_an_exponential_mechanism_is_within_its_bound() -> None:
    """Percentile scores of two neighbours: the exact law against the curve."""
    epsilon = Fraction(1)
    curve = composed_delta(Fraction(0), [ExponentialStep("limit", "99%", epsilon)])
    scores = -np.abs(np.arange(8) - 5.0)
    for change in (np.ones(8), -np.ones(8), np.where(np.arange(8) < 4, 1.0, -1.0)):
        laws = [np.exp(float(epsilon) * s / 2) for s in (scores, scores + change)]
        p, q = (law / law.sum() for law in laws)
        for one, other in ((p, q), (q, p)):
            for at in EPSILONS:
                exact = float(np.maximum(0.0, one - math.exp(at) * other).sum())
                assert exact <= curve(at) + 1e-12


def test_kinds_are_ordered_by_what_is_known_of_them() -> None:
    """At one epsilon, and beside Gaussian noise: exponential < pure, Laplace < pure."""
    noise = GaussianStep("counts", "told", Fraction(1), Fraction(25), Fraction(0))
    half = Fraction(1, 2)
    pure, laplace, exponential = (
        total_epsilon([noise, step], "add-remove", 1e-6)
        for step in (
            PureStep("a", "b", half),
            LaplaceStep("a", "b", Fraction(20), Fraction(40)),
            ExponentialStep("a", "b", half),
        )
    )
    assert exponential < pure
    assert laplace < pure
    alone = total_epsilon([noise], "add-remove", 1e-6)
    assert alone < exponential
    assert pure < alone + 0.5


def test_a_second_library_agrees() -> None:
    """Three Gaussian steps and continuous Laplace noise, which fine integers come near to."""
    accountant = PRVAccountant(
        prvs=[GaussianMechanism(noise_multiplier=5.0), LaplaceMechanism(mu=0.5)],
        max_self_compositions=[3, 1],
        eps_error=0.01,
        delta_error=1e-10,
    )
    low, _, high = accountant.compute_epsilon(delta=1e-6, num_self_compositions=[3, 1])
    steps = [
        *[GaussianStep("counts", "told", Fraction(1), Fraction(25), Fraction(0))] * 3,
        LaplaceStep("sums", "told", Fraction(1000), Fraction(2000)),
    ]
    assert low <= total_epsilon(steps, "add-remove", 1e-6) <= high


def test_more_steps_never_cost_less() -> None:
    step = ExponentialStep("limit", "99%", Fraction(1, 5))
    costs = [total_epsilon([step] * count, "add-remove", 1e-6) for count in (1, 2, 4, 8)]
    assert all(one < other for one, other in pairwise(costs))
    assert costs[-1] < 8 * 0.2


def test_what_cannot_be_composed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gaussian = GaussianStep("counts", "told", Fraction(1), Fraction(1))
    with pytest.raises(InvalidInput, match="'counts'"):
        composed_delta(Fraction(1), [gaussian])
    with pytest.raises(InvalidInput, match="at most 200"):
        composed_delta(Fraction(1), [PureStep("open", "all", Fraction(201))])
    for name in [name for name in sys.modules if name.startswith("dp_accounting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingLibrary, match=r"sottovoce\[accounting\]"):
        composed_delta(Fraction(1), [])
