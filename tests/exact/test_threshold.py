"""Thresholds for unknown domains: the whole output law of tiny tables, enumerated with discrete
noise against both neighbour relations; and the formula against every case by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, reduce
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from sottovoce.accounting import mu_of, variance_for
from sottovoce.accounting.gaussian import delta_of
from sottovoce.accounting.steps import Neighbours, Weights
from sottovoce.accounting.threshold import (
    contributions,
    least_log_hidden,
    threshold_delta,
    threshold_for,
)
from sottovoce.accounting.zcdp import rho_of
from sottovoce.ground.errors import InvalidInput

EPSILON, DELTA = 1.5, 0.02


@cache
def item_law(weight: int, threshold: int, variance: float) -> np.ndarray:
    """Chances of what is published of an item, in steps of the lattice: nothing, or its value.

    An item that nobody has is not published.
    """
    reach = math.ceil(9 * math.sqrt(variance))
    values = np.arange(threshold + 1, MOST + reach + 1)
    law = np.zeros(len(values) + 1)
    if weight == 0:
        law[0] = 1.0
        return law
    every = np.arange(weight - reach, weight + reach + 1)
    chances = np.exp(-((every - weight) ** 2) / (2 * variance))
    chances /= chances.sum()
    law[0] = chances[every <= threshold].sum()
    seen = every > threshold
    law[every[seen] - threshold] = chances[seen]
    return law


MOST = 200  # the largest weight of an item, in steps: far above any threshold here


def hockey_stick(one: Iterable[int], other: Iterable[int], threshold: int, variance: float):
    """sum of max(0, P - e^eps Q) over all that can be published of some items together."""
    p, q = (
        reduce(np.multiply.outer, [item_law(weight, threshold, variance) for weight in weights])
        for weights in (one, other)
    )
    return float(np.maximum(0.0, p - math.exp(EPSILON) * q).sum())


def worst_delta(
    limit: int, weights: Weights, per_unit: int, threshold: int, variance: float, both: bool
) -> float:
    """The largest delta over tables, over what a person holds and, if two differ, the other one.

    Items that both hold with equal weight do not tell them apart, and so are left out.
    """
    worst = 0.0
    persons = [()]
    for items in range(1, limit + 1):
        weight = per_unit if weights == "counts" else math.floor(per_unit / math.sqrt(items))
        persons += [(weight,) * items]
    for person in persons:
        for other in persons if both else [()]:
            for held in product((0, 1, MOST - per_unit), repeat=len(person) + len(other)):
                mine = [*person, *[0] * len(other)]
                theirs = [*[0] * len(person), *other]
                p = [base + add for base, add in zip(held, mine, strict=True)]
                q = [base + add for base, add in zip(held, theirs, strict=True)]
                if p:
                    worst = max(worst, hockey_stick(p, q, threshold, variance))
                    worst = max(worst, hockey_stick(q, p, threshold, variance))
    return worst


CASES: list[tuple[int, Weights, int, Neighbours]] = [
    (1, "counts", 1, "add-remove"),
    (2, "counts", 1, "add-remove"),
    (1, "counts", 1, "replace-one"),
    (1, "counts", 3, "replace-one"),
    (2, "equal", 3, "add-remove"),
    (2, "descent", 3, "add-remove"),
]


@pytest.mark.parametrize(("limit", "weights", "per_unit", "neighbours"), CASES)
def test_the_whole_output_law_keeps_delta(
    limit: int, weights: Weights, per_unit: int, neighbours: Neighbours
) -> None:
    people = 2 if neighbours == "replace-one" else 1
    moved = people * (limit if weights == "counts" else 1)
    variance = variance_for(EPSILON, DELTA, Fraction(moved)) * 2
    if weights == "counts" and per_unit == 1:
        loss = 1 / float(variance)
    else:  # |v|_1 / variance, in steps
        loss = people * math.sqrt(limit) / (per_unit * float(variance))
    threshold = threshold_for(
        EPSILON, DELTA, variance, limit, weights, neighbours, per_unit=per_unit, lattice_loss=loss
    )
    steps = int(threshold * per_unit)
    assert Fraction(steps, per_unit) == threshold

    def worst(at: int) -> float:
        in_steps = float(variance) * per_unit**2
        return worst_delta(limit, weights, per_unit, at, in_steps, neighbours == "replace-one")

    assert worst(steps) <= DELTA
    assert worst(steps) > DELTA / 8  # and not for lack of trying
    assert worst(steps // 2) > DELTA  # a threshold half as high is seen through


def test_two_replaced_persons_with_two_items_each_keep_delta() -> None:
    """Four items, most of them at the edge: only the tables that can be worst."""
    variance = variance_for(EPSILON, DELTA, Fraction(4)) * Fraction(3, 2)
    loss = 2 / float(variance)
    threshold = int(
        threshold_for(EPSILON, DELTA, variance, 2, "counts", "replace-one", lattice_loss=loss)
    )
    for mine in ((0, 0), (0, MOST - 1)):
        for theirs in ((0, 0), (0, MOST - 1)):
            p = [mine[0] + 1, mine[1] + 1, *theirs]
            q = [*mine, theirs[0] + 1, theirs[1] + 1]
            # an item of weight MOST is seen for sure: its two laws are told apart by one number
            assert _by_parts(p, q, threshold, float(variance)) <= DELTA
            assert _by_parts(p, q, threshold // 2, float(variance)) > DELTA


def _by_parts(p: list[int], q: list[int], threshold: int, variance: float) -> float:
    """The hockey stick of products, by the ratios of each item: outcomes of one ratio are one."""
    losses = {1.0: (1.0, 1.0)}  # ratio: chance under p, under q
    for one, other in zip(p, q, strict=True):
        laws = item_law(one, threshold, variance), item_law(other, threshold, variance)
        merged: dict[float, tuple[float, float]] = {}
        for ratio, (a, b) in losses.items():
            for c, d in zip(*(law.tolist() for law in laws), strict=True):
                if a * c or b * d:
                    key = round(ratio * c / d, 9) if ratio < math.inf and d else math.inf
                    x, y = merged.get(key, (0.0, 0.0))
                    merged[key] = (x + a * c, y + b * d)
        losses = merged
    return sum(max(0.0, x - math.exp(EPSILON) * y) for x, y in losses.values())


def direct(epsilon: float, mu: float) -> float:
    """G of any epsilon, by its definition."""
    if mu == 0:
        return max(0.0, 1 - math.exp(epsilon))
    first = ndtr(mu / 2 - epsilon / mu)
    return float(first - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def cases_one_by_one(limit: int, weights: Weights) -> list[tuple[int, float, float]]:
    """(new items, their weight, squared weight of the others) of every person."""
    found = []
    for items in range(1, limit + 1):
        weight = 1.0 if weights == "counts" else 1 / math.sqrt(items)
        for new in range(items + 1):
            found.append((new, weight, weight**2 * (items - new)))
    return found


@pytest.mark.parametrize("weights", ["counts", "equal"])
@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_the_formula_takes_the_worst_of_all_cases(limit: int, weights: Weights) -> None:
    variance = Fraction(18 * (limit if weights == "counts" else 1))
    sigma = math.sqrt(variance)
    for threshold in (8.0, 20.0 * math.sqrt(variance / 18)):
        worst = 0.0
        for new, weight, moved in cases_one_by_one(limit, weights):
            pi = float(ndtr((threshold - weight) / sigma)) ** new
            mu = math.sqrt(moved) / sigma
            worst = max(worst, 1 - pi + pi * direct(1.0 - math.log(pi), mu))
            worst = max(worst, direct(1.0 + math.log(pi), mu))
        found = threshold_delta(1.0, threshold, variance, limit, weights)
        assert found == pytest.approx(worst, rel=1e-7)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_replaced_person_is_bounded_and_barely_more(limit: int) -> None:
    """All pairs of persons, one by one, against the bound that takes the second at her worst."""
    variance, threshold = Fraction(40), 35.0
    sigma = math.sqrt(variance)
    worst = 0.0
    everybody = cases_one_by_one(limit, "equal")
    for (new, weight, moved), (other_new, other_weight, other_moved) in product(
        everybody, everybody
    ):
        pi = float(ndtr((threshold - weight) / sigma)) ** new
        other_pi = float(ndtr((threshold - other_weight) / sigma)) ** other_new
        mu = math.sqrt(moved + other_moved) / sigma
        delta = 1 - pi + pi * direct(1.0 + math.log(other_pi / pi), mu)
        worst = max(worst, delta)
    found = threshold_delta(1.0, threshold, variance, limit, "equal", "replace-one")
    assert worst <= found <= 1.01 * worst


@pytest.mark.parametrize("limit", [3, 20])
def test_descent_is_bounded_over_all_weights_and_tightly(limit: int) -> None:
    variance, threshold = Fraction(18), 22.0
    sigma = math.sqrt(variance)
    worst = 0.0
    for new in range(1, limit + 1):
        for weight in np.linspace(1 / math.sqrt(limit), 1 / math.sqrt(new), 997):
            pi = float(ndtr((threshold - weight) / sigma)) ** new
            mu = math.sqrt(max(0.0, 1 - new * weight**2)) / sigma
            worst = max(worst, 1 - pi + pi * direct(1.0 - math.log(pi), mu))
            worst = max(worst, direct(1.0 + math.log(pi), mu))
    worst = max(worst, delta_of(1.0, 1 / sigma))
    found = threshold_delta(1.0, threshold, variance, limit, "descent")
    assert worst <= found * (1 + 1e-9) <= 1.005 * worst
    assert found >= threshold_delta(1.0, threshold, variance, limit, "equal") * (1 - 1e-9)


def test_every_size_of_a_set_is_looked_at() -> None:
    held = contributions(40, "equal")
    assert len(held.new) == sum(items + 1 for items in range(1, 41))
    pairs = {(round(1 / weight**2), new) for weight, new in zip(held.weight, held.new, strict=True)}
    assert pairs == {(items, new) for items in range(1, 41) for new in range(items + 1)}
    wide = contributions(5000, "equal")  # too many to list: bounded as descent is
    assert wide.new.max() == 5000


def test_the_threshold_is_the_least_on_its_lattice() -> None:
    variance = variance_for(1.0, 1e-6, Fraction(1)) * Fraction(102, 100)
    for neighbours in ("add-remove", "replace-one"):
        scaled = variance * (2 if neighbours == "replace-one" else 1)
        found = threshold_for(1.0, 1e-6, scaled, 20, "equal", neighbours, per_unit=64)
        below = found - Fraction(1, 64)
        assert threshold_delta(1.0, found, scaled, 20, "equal", neighbours) <= 1e-6
        assert threshold_delta(1.0, below, scaled, 20, "equal", neighbours) > 1e-6


def test_the_exact_threshold_is_a_quarter_below_the_papers() -> None:
    """003's rho_1 with the corrected zCDP noise, against the exact one: 20 items, (1, 1e-6)."""
    from scipy.stats import norm

    sigma = 1 / math.sqrt(2 * rho_of(1.0, 1e-6))
    items = np.arange(1, 21)
    quantile = norm.isf(-np.expm1(np.log1p(-0.5e-6) / items))
    printed = float((1 / np.sqrt(items) + sigma * quantile).max())
    assert printed == pytest.approx(30.1, abs=0.1)
    base = variance_for(1.0, 1e-6, Fraction(1))
    exact = min(
        float(threshold_for(1.0, 1e-6, base * ratio, 20, "equal", per_unit=256))
        for ratio in (Fraction(1001, 1000), Fraction(101, 100), Fraction(103, 100))
    )
    assert exact < 0.77 * printed


def test_other_steps_raise_the_threshold_and_too_little_noise_is_refused() -> None:
    variance = Fraction(200)
    alone = threshold_for(1.0, 1e-6, variance, 5, "equal", per_unit=16)
    beside = threshold_for(1.0, 1e-6, variance, 5, "equal", per_unit=16, other_squared_mu=0.05)
    hidden = least_log_hidden(alone, variance, 5, "equal")
    twice = threshold_for(1.0, 1e-6, variance, 5, "equal", per_unit=16, other_log_hidden=hidden / 9)
    assert alone < beside
    assert alone < twice
    with pytest.raises(InvalidInput, match="variance"):
        threshold_for(1.0, 1e-6, Fraction(1) / Fraction(mu_of(1.0, 1e-6)) ** 2 / 2, 5, "equal")
    with pytest.raises(InvalidInput, match="limit"):
        contributions(0, "counts")
    with pytest.raises(InvalidInput, match="weights"):
        contributions(2, "heavy")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="neighbours"):
        threshold_delta(1.0, 5, variance, 2, "counts", "friends")  # type: ignore[arg-type]
