"""Chapter 9's closed forms: printed and corrected, where they hold and where they are false."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.accounting import lower_epsilon, shuffled_epsilon
from sottovoce.accounting.shuffling.thesis import (
    best_hash_size,
    binary_epsilon,
    blanket_epsilon,
    fakes_epsilon,
    local_for,
    subsampled_epsilon,
    thesis_epsilon,
    unary_epsilon,
)
from sottovoce.ground.errors import InvalidInput

PEOPLE, DELTA = 10**6, 1e-9


def test_table_9_1_beside_the_numerical_bound() -> None:
    """In each row's range; the numerical one is below all of them."""
    few = sv.oracle("rr", size=2, epsilon=0.4)
    ours = shuffled_epsilon([(1, [few.blanket()])], PEOPLE, DELTA)
    assert ours < subsampled_epsilon(0.4, PEOPLE, DELTA) == pytest.approx(0.02185, rel=1e-3)
    for local in (2.0, 4.0, 6.0):
        binary = shuffled_epsilon(
            [(1, [sv.oracle("rr", size=2, epsilon=local).blanket()])], PEOPLE, DELTA
        )
        assert binary < binary_epsilon(local, PEOPLE, DELTA)
        for size in (16, 256):
            oracle = sv.oracle("grr", size=size, epsilon=local)
            ours = shuffled_epsilon([(1, [oracle.blanket()])], PEOPLE, DELTA)
            assert ours < blanket_epsilon(size, local, PEOPLE, DELTA) / 2
    assert [round(blanket_epsilon(16, local, PEOPLE, DELTA), 4) for local in (1, 2, 4, 6, 8)] == [
        0.0729,
        0.0819,
        0.1445,
        0.3542,
        0.9478,
    ]


def test_each_form_refuses_what_it_is_not_proved_for() -> None:
    with pytest.raises(InvalidInput, match="must be below 1/2"):
        subsampled_epsilon(0.5, PEOPLE, DELTA)
    with pytest.raises(InvalidInput, match="proved between"):
        binary_epsilon(12.0, PEOPLE, DELTA)
    with pytest.raises(InvalidInput, match="proved up to 1 only"):
        blanket_epsilon(16, 9.0, PEOPLE, DELTA)
    with pytest.raises(InvalidInput, match="proved up to 2 only"):
        unary_epsilon(18.0, PEOPLE, DELTA)
    with pytest.raises(InvalidInput, match="proved up to 1 only"):
        fakes_epsilon(512, DELTA, 1000)
    with pytest.raises(InvalidInput, match="must be below"):
        local_for(0.1, 1024, PEOPLE, DELTA)
    oracle = sv.oracle("olh", size=1024, epsilon=8, hash_bits=12)
    claimed, why = thesis_epsilon(oracle, 10**5, DELTA)
    assert claimed is None
    assert why.startswith("theorem 9.3.2: epsilon (")


def test_theorem_9_2_1_is_false_beyond_its_range() -> None:
    """Two cells with Poisson noise of 14 ln(2/delta)/eps^2: true over claimed (errata, N20)."""
    ratios = {}
    for epsilon in (0.5, 1.0, 4.0, 6.0):
        rate = 14 * math.log(2 / DELTA) / epsilon**2
        counts = np.arange(int(rate + 14 * math.sqrt(rate) + 80))
        factorials = np.cumsum(np.log(np.maximum(counts, 1)))
        noise = np.exp(counts * math.log(rate) - rate - factorials)
        # (1 + X, Y) against (X, 1 + Y)
        up, stay = np.append(0, noise), np.append(noise, 0)
        gain = np.outer(up, stay) - math.exp(epsilon) * np.outer(stay, up)
        ratios[epsilon] = float(np.maximum(gain, 0).sum()) / DELTA
    assert ratios[0.5] < 1
    assert ratios[1.0] < 1
    assert 6 < ratios[4.0] < 8
    assert 2e5 < ratios[6.0] < 3e5


def test_theorem_9_3_1_is_false_for_whole_vectors() -> None:
    """It claims .430 where no promise below 1.34 is true (errata, 2)."""
    sue = sv.oracle("sue", size=8, epsilon=10)
    whole = [(1, [sue.blanket()])]
    claimed = unary_epsilon(10.0, PEOPLE, DELTA)
    assert round(claimed, 3) == 0.430
    assert 1.34 < lower_epsilon(whole, PEOPLE, DELTA) <= shuffled_epsilon(whole, PEOPLE, DELTA)
    assert thesis_epsilon(sue, PEOPLE, DELTA) == (
        None,
        "theorem 9.3.1 is false for whole bit vectors (docs/errata, 2)",
    )


def test_fakes_raise_the_best_hash_size() -> None:
    """Erratum 7: the printed sign is wrong, by a search over d'."""
    epsilon, fakes = 0.5, 200_000
    a, b = 14 * math.log(2 / DELTA) / epsilon**2, PEOPLE - 1

    def variance(size: int) -> float:
        if a <= fakes / size:
            return math.inf
        m = b / (a - fakes / size)
        return (m / (m - size)) ** 2 / (size - 1) if m > size else math.inf

    searched = min(range(2, 3000), key=variance)
    assert searched == 334
    assert best_hash_size(epsilon, PEOPLE, DELTA, fakes) == pytest.approx(334.2, abs=0.05)
    printed = epsilon**2 * (b - fakes) / (42 * math.log(2 / DELTA)) + 2 / 3
    assert printed == pytest.approx(223.0, abs=0.05)
    assert best_hash_size(epsilon, PEOPLE, DELTA) == pytest.approx(278.6, abs=0.05)


def test_local_epsilons_come_back() -> None:
    """Proposition 9.3.5 with e^eps_l where e^eps_c is printed."""
    for size, local in ((16, 4.0), (256, 5.0)):
        epsilon = blanket_epsilon(size, local, PEOPLE, DELTA)
        assert local_for(epsilon, size, PEOPLE, DELTA) == pytest.approx(local)
    with_fakes = blanket_epsilon(512, 6.0, PEOPLE, DELTA, 10**6)
    assert round(with_fakes, 2) == 0.31
    assert round(fakes_epsilon(512, DELTA, 10**6), 2) == 0.39
