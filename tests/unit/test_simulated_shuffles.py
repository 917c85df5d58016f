"""Mechanisms that no plan has: their promise against enumeration, and their estimates."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.accounting import column_epsilon
from sottovoce.measure.simulated_shuffles import (
    SIMULATED,
    AppendedUnaryEncoding,
    RemovalUnaryEncoding,
    two_columns_delta,
)
from sottovoce.oracles import ORACLES

ALPHA = 1e-6
PEOPLE = 20_000


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_two_columns_are_those_that_enumeration_finds(epsilon: float) -> None:
    people, share = 6, Fraction(1, 3)
    law = [comb(people, k) * share**k * (1 - share) ** (people - k) for k in range(people + 1)] + [
        Fraction(0)
    ]
    odds = Fraction(exp(epsilon))
    total = Fraction(0)
    for first in range(people + 2):
        for second in range(people + 2):
            one = law[first - 1] * law[second] if first else Fraction(0)
            other = law[first] * law[second - 1] if second else Fraction(0)
            total += max(Fraction(0), one - odds * other)
    assert two_columns_delta(people, float(share), epsilon) == pytest.approx(float(total), rel=1e-9)


def test_coins_are_as_small_as_the_promise_lets_them_be() -> None:
    built = AppendedUnaryEncoding.build(Decimal("0.5"), 1e-7, PEOPLE)
    assert two_columns_delta(PEOPLE, float(built.chance), 0.5) <= 1e-7
    assert two_columns_delta(PEOPLE, 0.999 * float(built.chance), 0.5) > 1e-7
    flips = RemovalUnaryEncoding.build(Decimal("0.5"), 1e-7, PEOPLE)
    flip = flips.chance
    assert column_epsilon(1 - flip, flip, PEOPLE, 1e-7, is_removal=True) <= 0.5
    less = flip * Fraction(99, 100)
    assert column_epsilon(1 - less, less, PEOPLE, 1e-7, is_removal=True) > 0.5
    assert built.local is None
    assert flips.local is not None
    for kind in SIMULATED.values():
        with pytest.raises(sv.InvalidInput, match="too few for epsilon"):
            kind.build(Decimal("1e-6"), 1e-9, 50)


@pytest.mark.parametrize("name", SIMULATED)
def test_estimates_are_unbiased_with_the_variance_of_the_coin(name: str) -> None:
    size = 200
    counts = np.zeros(size, np.int64)
    counts[:4] = PEOPLE // 4
    built = SIMULATED[name].build(Decimal("0.5"), 1e-7, PEOPLE)
    share = float(built.chance)
    gap = 1.0 if name == "aue" else 1 - 2 * share
    variance = share * (1 - share) / gap**2 / PEOPLE

    def statistic(mechanism: object) -> float:
        told = mechanism.simulate(counts, np.random.default_rng(7))  # type: ignore[attr-defined]
        return float(((told - counts / PEOPLE) ** 2).sum() / variance)

    low, high = chi2.isf(1 - ALPHA, size), chi2.isf(ALPHA, size)
    assert low < statistic(built) < high
    # a coin twice as likely is seen
    assert statistic(replace(built, coin=2 * built.coin)) > high


def test_no_plan_has_them_and_they_say_what_they_are() -> None:
    names = {name for kind in ORACLES for name in kind.names}
    for name, kind in SIMULATED.items():
        assert name not in names
        assert "not LDP" in kind.about
        assert kind.about.endswith("simulation only")
        with pytest.raises(sv.InvalidInput):
            sv.plan(
                sv.Schema(x=sv.Ordinal(0, 3)),
                sv.Frequencies("x", oracle=name),
                epsilon=1,
                people=1000,
                trust="shuffled",
                delta="1e-6",
            )
