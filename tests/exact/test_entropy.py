"""The exact draws that randomizers are made of have the law they say, by enumeration of their own
code.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from sottovoce.ground.entropy import WHOLE, Entropy, Seeded, System, Tape, exact_law
from sottovoce.ground.errors import InvalidInput, NotEnumerable
from tests.statistics import chi_limit, chi_squared


@pytest.mark.parametrize("threshold", [0, 1, WHOLE // 3, 3 * WHOLE // 4, WHOLE - 1])
def test_one_of_many_coins_has_its_threshold_exactly(threshold: int) -> None:
    law = exact_law(lambda entropy: Entropy.coins(entropy, threshold, 1), 1000)
    assert law.get(1, Fraction(0)) == Fraction(threshold, WHOLE)


@pytest.mark.parametrize("threshold", range(17))
def test_many_coins_are_independent(threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code on coins of four bits, so that every way it can go is listed."""
    monkeypatch.setattr("sottovoce.ground.entropy.COIN_BITS", 4)
    monkeypatch.setattr("sottovoce.ground.entropy.WHOLE", 16)
    law = exact_law(lambda entropy: Entropy.coins(entropy, threshold, 3), 1 << 12)
    heads = Fraction(threshold, 16)
    for tosses in range(8):
        ones = tosses.bit_count()
        assert law.get(tosses, Fraction(0)) == heads**ones * (1 - heads) ** (3 - ones)


@pytest.mark.parametrize(("total", "chosen"), [(5, 0), (5, 2), (6, 3), (4, 4)])
def test_subsets_are_uniform(total: int, chosen: int) -> None:
    law = exact_law(lambda entropy: Entropy.subset(entropy, total, chosen), 1 << 12)
    sets = {
        sum(1 << member for member in members) for members in combinations(range(total), chosen)
    }
    assert law == dict.fromkeys(sets, Fraction(1, len(sets)))


def test_the_listed_subsets_of_an_audit_are_the_same_law() -> None:
    coded = exact_law(lambda entropy: Entropy.subset(entropy, 6, 3), 1 << 12)
    assert exact_law(lambda entropy: entropy.subset(6, 3), 1 << 12) == coded


def test_a_law_that_is_too_large_is_refused_at_once() -> None:
    with pytest.raises(NotEnumerable):
        exact_law(lambda entropy: entropy.bits(64), 1 << 17)
    with pytest.raises(NotEnumerable):
        exact_law(lambda entropy: entropy.coins(WHOLE // 2, 1023), 1 << 17)


@pytest.mark.parametrize("source", [System(), Seeded(3)], ids=["system", "seeded"])
def test_sources_are_uniform(source: Entropy) -> None:
    draws = [source.below(6) for _ in range(60_000)]
    statistic, degrees = chi_squared(list(range(6)), _even(6), draws)
    # the system's own draws differ each run, so the limit is the one of a whole family of runs
    assert statistic < chi_limit(degrees, comparisons=1000)
    skewed = [draw if draw else 1 for draw in draws[:30_000]] + draws[30_000:]
    assert chi_squared(list(range(6)), _even(6), skewed)[0] > chi_limit(degrees, comparisons=1000)


def _even(count: int):
    import numpy as np

    return np.full(count, 1 / count)


def test_a_tape_is_read_front_to_back_and_ends() -> None:
    tape = Tape(bytes([1, 2, 3]))
    assert (tape.bits(8), tape.bits(9)) == (1, 0x302 & 0x1FF)
    with pytest.raises(InvalidInput, match="too short"):
        tape.bits(1)
