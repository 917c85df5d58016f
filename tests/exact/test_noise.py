"""Exact integer noise: its law, the path that decides near misses, and uniform samples."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sottovoce.ground import noise
from sottovoce.ground.entropy import Seeded, System, Tape
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import (
    discrete_gaussian,
    discrete_laplace,
    lattice_gaussian,
    sampled_within_groups,
    uniform_below,
)
from tests.statistics import chi_limit, chi_squared, draws_needed

VARIANCES = [Fraction(1, 4), Fraction(1), Fraction(25, 3), Fraction(400), 10**4, 10**8]
CELLS = 60  # at most, of a wide law
WRONG = 1.05  # times the variance, or the scale, of a mutant


def gaussian_weights(variance: float, reach: int) -> np.ndarray:
    places = np.arange(-reach, reach + 1, dtype=float)
    return np.exp(-(places**2) / (2 * variance))


def laplace_weights(scale: float, reach: int) -> np.ndarray:
    return np.exp(-np.abs(np.arange(-reach, reach + 1, dtype=float)) / scale)


def cell_chances(weights: np.ndarray, edges: np.ndarray, reach: int) -> np.ndarray:
    """Chances of the cells between edges: (.., edges[0]), [edges[0], edges[1]), ..."""
    places = np.arange(-reach, reach + 1)
    cells = np.searchsorted(edges, places, side="right")
    return np.bincount(cells, weights / weights.sum(), minlength=len(edges) + 1)


def edges_of(weights: np.ndarray, reach: int) -> np.ndarray:
    """Integer edges of cells that are about equally likely, and none of which is rare."""
    tail = np.cumsum(weights / weights.sum())
    levels = np.linspace(0.5, CELLS - 0.5, CELLS) / CELLS
    return np.unique(np.searchsorted(tail, levels)) - reach


def assert_law(draw, right: np.ndarray, wrong: np.ndarray, reach: int, tests: int) -> None:
    """Draws follow the right weights, and so many show that they do not follow the wrong ones."""
    edges = edges_of(right, reach)
    expected = cell_chances(right, edges, reach)
    mutant = cell_chances(wrong, edges, reach)
    draws = draw(draws_needed(mutant, expected, tests))
    assert np.abs(draws).max() <= reach
    cells = np.searchsorted(edges, draws, side="right").tolist()
    outputs = list(range(len(expected)))
    statistic, degrees = chi_squared(outputs, expected, cells)
    assert statistic < chi_limit(degrees, tests)
    rejected, degrees = chi_squared(outputs, mutant, cells)
    assert rejected > chi_limit(degrees, tests)


@pytest.mark.parametrize("variance", VARIANCES)
def test_discrete_gaussian_has_its_law(variance: Fraction) -> None:
    reach = math.ceil(9 * math.sqrt(variance)) + 9
    right = gaussian_weights(float(variance), reach)
    wrong = gaussian_weights(WRONG * float(variance), reach)
    entropy = Seeded(11)
    assert_law(lambda n: discrete_gaussian(variance, n, entropy), right, wrong, reach, 6)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(300)])
def test_discrete_laplace_has_its_law(scale: Fraction) -> None:
    reach = math.ceil(40 * scale) + 9
    right = laplace_weights(float(scale), reach)
    wrong = laplace_weights(WRONG * float(scale), reach)
    entropy = Seeded(12)
    assert_law(lambda n: discrete_laplace(scale, n, entropy), right, wrong, reach, 4)


def test_noise_on_a_lattice_has_its_variance_in_units() -> None:
    variance, per_unit, reach = Fraction(3, 2), 6, 90
    right = gaussian_weights(float(variance * per_unit**2), reach)
    wrong = gaussian_weights(WRONG * float(variance * per_unit**2), reach)
    entropy = Seeded(13)
    assert_law(lambda n: lattice_gaussian(variance, per_unit, n, entropy), right, wrong, reach, 1)


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(10**24 + 1, 7)])
def test_the_slow_path_decides_as_the_fast_one(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every coin by exact arithmetic: the same words give the same noise."""
    fast = discrete_gaussian(variance, 400, Seeded(14))
    monkeypatch.setattr(noise, "_BAND", 2.0)
    slow = discrete_gaussian(variance, 400, Seeded(14))
    assert fast.tolist() == slow.tolist()
    monkeypatch.setattr(noise, "_is_below_exp", lambda word, exponent, entropy: word < 1 << 63)
    assert fast.tolist() != discrete_gaussian(variance, 400, Seeded(14)).tolist()


def exact_exp(exponent: Fraction, digits: int = 60) -> Fraction:
    context = Context(prec=digits)
    return Fraction(
        context.exp(context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator)))
    )


@pytest.mark.parametrize(
    "variance", [Fraction(1, 50), Fraction(1, 4), Fraction(25, 3), Fraction(2**61 + 1, 3)]
)
def test_doubles_are_nearer_than_the_band(variance: Fraction, monkeypatch) -> None:
    """What the fast path computes is within 2^-48 of the truth, for proposals far and near."""
    seen: list[tuple[float, Fraction]] = []

    def watched(exponent, values, exact_exponent, entropy):
        for near, value in zip(exponent.tolist(), values.tolist(), strict=True):
            seen.append((near, exact_exponent(value)))
        return survive(exponent, values, exact_exponent, entropy)

    survive = noise._survive
    monkeypatch.setattr(noise, "_survive", watched)
    discrete_gaussian(variance, 300, Seeded(15))
    assert len(seen) > 500
    for near, exact in seen:
        chance = Fraction(float(np.exp(-near)))
        assert abs(chance - exact_exp(exact)) < Fraction(1, 2**48)
    assert noise._BAND >= 16 * 2.0**-48


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(1, 3), Fraction(40), Fraction(9, 7)])
def test_a_word_at_the_edge_is_decided_by_further_bits(exponent: Fraction) -> None:
    scaled = exact_exp(exponent, 120) * 2**128
    word, further = divmod(math.floor(scaled), 2**64)

    def decide(bits: int) -> bool:
        return noise._is_below_exp(word, exponent, Tape(bits.to_bytes(8, "little")))

    assert decide(further - 1)
    assert not decide(further + 1)
    assert noise._is_below_exp(word - 1, exponent, Tape(b""))
    assert not noise._is_below_exp(word + 1, exponent, Tape(b""))


def test_a_chance_below_every_decimal_is_still_decided() -> None:
    tiny = Fraction(10**30)
    zeros_then_one = bytes(8) + (1).to_bytes(8, "little")
    assert not noise._is_below_exp(0, tiny, Tape(zeros_then_one))
    assert noise._is_below_exp(2**64 - 1, Fraction(0), Tape(b""))


def test_geometric_words_at_an_edge_are_decided_by_further_bits() -> None:
    for power in (1, 2, 44):
        scaled = exact_exp(Fraction(power), 120) * 2**128
        word, further = divmod(math.floor(scaled), 2**64)
        for bits, expected in ((further - 1, power), (further + 1, power - 1)):
            tape = Tape(word.to_bytes(8, "little") + bits.to_bytes(8, "little"))
            assert noise._unit_geometric(1, tape).tolist() == [expected]
    # a word of zeros is below e^-44; the next one, of zeros but its last bit, is below e^-88
    tape = Tape(bytes(8) + (1).to_bytes(8, "little"))
    assert noise._unit_geometric(1, tape).tolist() == [88]


def test_very_wide_and_very_narrow_noise() -> None:
    wide = discrete_gaussian(Fraction(2**90), 20_000, Seeded(16)).astype(float) / 2**45
    assert abs(wide.mean()) < 6 / math.sqrt(20_000)
    assert abs(wide.var() - 1) < 6 * math.sqrt(2 / 20_000)
    assert not discrete_gaussian(Fraction(1, 2**80), 1000, Seeded(17)).any()
    assert not discrete_laplace(Fraction(1, 2**40), 1000, Seeded(17)).any()
    assert discrete_gaussian(Fraction(4), 0, Seeded(1)).shape == (0,)


def test_the_system_serves_the_same_code() -> None:
    draws = discrete_gaussian(Fraction(9), 50_000, System())
    assert abs(draws.mean()) < 7 * 3 / math.sqrt(50_000)
    assert len(set(System().words(100).tolist())) == 100


@pytest.mark.parametrize("variance", [2.5, 0, Fraction(-1), None, Fraction(2**92), "4"])
def test_a_variance_that_is_not_exact_is_refused(variance: object) -> None:
    with pytest.raises(InvalidInput, match="variance"):
        discrete_gaussian(variance, 1, Seeded(1))  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scale"):
        discrete_laplace(Fraction(2**47), 1, Seeded(1))
    with pytest.raises(InvalidInput, match="count"):
        discrete_laplace(Fraction(2), -1, Seeded(1))
    with pytest.raises(InvalidInput, match="per_unit"):
        lattice_gaussian(Fraction(2), 0, 1, Seeded(1))
    with pytest.raises(InvalidInput, match="limit"):
        uniform_below(0, 1, Seeded(1))
    with pytest.raises(InvalidInput, match="limit"):
        sampled_within_groups(np.array([1]), -1, Seeded(1))


def test_uniform_below_is_uniform_where_words_would_be_biased() -> None:
    limit = 3 * 2**60  # of 2^64 words, five ranges fit and a third of one is left
    right = np.full(3, 1 / 3)
    biased = np.array([6, 5, 5]) / 16  # the left-over words taken as they are
    draws = uniform_below(limit, draws_needed(biased, right), Seeded(18)) // 2**60
    statistic, degrees = chi_squared([0, 1, 2], right, draws.tolist())
    assert statistic < chi_limit(degrees)
    rejected, _ = chi_squared([0, 1, 2], biased, draws.tolist())
    assert rejected > chi_limit(degrees)


def test_every_choice_within_a_group_is_as_likely() -> None:
    groups = 20_000
    sizes = np.tile([4, 1, 2], groups)
    stays = sampled_within_groups(sizes, 2, Seeded(19)).reshape(groups, 7)
    assert stays[:, 4:].all()  # groups within the limit stay whole
    assert (stays[:, :4].sum(axis=1) == 2).all()
    chosen = [tuple(np.flatnonzero(row).tolist()) for row in stays[:, :4]]
    outputs = list(combinations(range(4), 2))
    statistic, degrees = chi_squared(outputs, np.full(6, 1 / 6), chosen)
    assert statistic < chi_limit(degrees)
    firsts = [(0, 1) if pick == (2, 3) else pick for pick in chosen]  # a choice never made
    rejected, _ = chi_squared(outputs, np.full(6, 1 / 6), firsts)
    assert rejected > chi_limit(degrees)


def test_equal_words_in_a_group_are_drawn_anew() -> None:
    words = [5, 5, 9, 7, 8, 3, 2, 1]  # the first group's are equal; then three words anew
    tape = Tape(b"".join(word.to_bytes(8, "little") for word in words))
    stays = sampled_within_groups(np.array([3, 2]), 1, tape)
    assert stays.tolist() == [False, False, True, True, False]
    assert tape.position == 8 * 8
