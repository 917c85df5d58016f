"""Tiny shuffled crowds by enumeration: no bound on the wrong side of the truth."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.accounting import (
    Blanket,
    colluding_epsilon,
    column_epsilon,
    column_lower_epsilon,
    lower_epsilon,
    shuffled_delta,
    shuffled_epsilon,
)
from sottovoce.accounting.shuffling import bit_sums
from sottovoce.oracles.unary import UnaryEncoding
from tests.crowds import channel_of, exact_delta, mean_positive_part, response

SHAPES = [
    ("grr", {"size": 2}, 6),
    ("grr", {"size": 3}, 5),
    ("grr", {"size": 4}, 5),
    ("grr", {"size": 5}, 4),
    ("ss", {"size": 4, "chosen": 2}, 4),
    ("ss", {"size": 5, "chosen": 2}, 3),
    ("olh", {"size": 4, "hash_bits": 1}, 3),
    ("hr", {"size": 3}, 4),
    ("sue", {"size": 3}, 3),
]


@pytest.mark.parametrize(("name", "shape", "people"), SHAPES)
@pytest.mark.parametrize("epsilon", ["1.1", "2.1"])
@pytest.mark.parametrize("e", [Fraction(11, 10), Fraction(2)])
def test_bounds_hold_for_every_data_set(
    name: str, shape: dict[str, int], people: int, epsilon: str, e: Fraction
) -> None:
    oracle = sv.oracle(name, epsilon=epsilon, **shape)  # type: ignore[arg-type]
    exact = exact_delta(channel_of(oracle.exact_channel()), people, e)
    mixture = [(1, [oracle.blanket()])]
    claimed = math.log(e)
    upper = shuffled_delta(mixture, claimed, people)
    assert exact <= Fraction(upper)
    if exact > 0:
        assert upper < 3 * float(exact)  # hardly larger but in so small a crowd
        delta = float(exact)
        assert lower_epsilon(mixture, people, delta) <= claimed * (1 + 1e-9)
        assert shuffled_epsilon(mixture, people, delta) >= claimed * (1 - 1e-9)


def test_for_answers_of_four_the_blanket_is_the_truth() -> None:
    oracle = sv.oracle("grr", size=4, epsilon=2.1)
    exact = exact_delta(channel_of(oracle.exact_channel()), 5, Fraction(2))
    assert shuffled_delta([(1, [oracle.blanket()])], math.log(2), 5) == pytest.approx(
        float(exact), rel=1e-3
    )


def test_variation_ratio_is_convicted() -> None:
    """Its value lies below the truth, so it is no upper bound (docs/errata, N19)."""
    ratio, e, size, people = Fraction(3), Fraction(2), 4, 6
    exact = exact_delta(response(ratio, size), people, e)
    # p = q = E, beta = (E - 1)/(E + d - 1)
    alpha = (ratio - 1) / (ratio + size - 1) / (ratio - 1)
    rest = 1 - 2 * alpha
    atoms = [
        (ratio - e, alpha),
        (1 - e * ratio, alpha),
        ((1 - e) * (1 - alpha - ratio * alpha) / rest, rest),
    ]
    claimed = mean_positive_part(atoms, people)
    assert round(float(exact), 5) == 0.01292
    assert round(float(claimed), 5) == 0.00984
    blanket = Blanket.of(ratio, Fraction(1, size), Fraction(0))
    assert shuffled_delta([(1, [blanket])], math.log(e), people) >= exact


ENCODINGS = [
    ([[0, 0, 1, 1], [0, 1, 0, 1]], 2),  # one bit of two
    ([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]], 2),  # one of three parities
    ([[0, 1, 2], [0, 2, 1]], 3),
]


@pytest.mark.parametrize(("encodings", "size"), ENCODINGS)
@pytest.mark.parametrize("e", [Fraction(11, 10), Fraction(3, 2)])
def test_cohorts_inside_a_report_count_everybody(
    encodings: list[list[int]], size: int, e: Fraction
) -> None:
    ratio, people, cohorts = Fraction(3), 4, len(encodings)
    channel = [
        [
            Fraction(1, cohorts) * (ratio if encoding[value] == answer else 1) / (ratio + size - 1)
            for encoding in encodings
            for answer in range(size)
        ]
        for value in range(len(encodings[0]))
    ]
    exact = exact_delta(channel, people, e)
    asked = Blanket.of(ratio, Fraction(1, size), Fraction(0))
    together = shuffled_delta([(1, [asked])] * cohorts, math.log(e), people)
    assert together == pytest.approx(shuffled_delta([(1, [asked])], math.log(e), people))
    assert exact <= Fraction(together)
    # no more than if everybody were in one cohort
    assert exact <= exact_delta(response(ratio, size), people, e)
    # and less than in a crowd of one cohort's size
    alone = exact_delta(response(ratio, size), people // cohorts, e)
    assert exact < alone


def test_unequal_cohorts_and_several_asks() -> None:
    """A report of two answers, or of one in three values, with weights 2 and 1."""
    first, second = response(Fraction(3), 2), response(Fraction(2), 3)
    e, people = Fraction(3, 2), 3
    channel = []
    for value in range(4):
        pair = [
            Fraction(2, 3) * first[value >> 1][a] * first[value & 1][b]
            for a, b in product(range(2), repeat=2)
        ]
        channel.append([*pair, *(chance / 3 for chance in second[min(value, 2)])])
    bit = Blanket.of(Fraction(3), Fraction(1, 2), Fraction(0))
    three = Blanket.of(Fraction(2), Fraction(1, 3), Fraction(0))
    mixture = [(2, [bit, bit]), (1, [three])]
    exact = exact_delta(channel, people, e)
    assert exact <= Fraction(shuffled_delta(mixture, math.log(e), people))
    # a fake draws its cohort as a device does
    fake = [Fraction(1, 6)] * 4 + [Fraction(1, 9)] * 3
    with_fakes = exact_delta(channel, people, e, fake, 2)
    assert with_fakes < exact
    assert with_fakes <= Fraction(shuffled_delta(mixture, math.log(e), people, fakes=2))


@pytest.mark.parametrize("e", [Fraction(11, 10), Fraction(3, 2)])
def test_fakes_hide_a_person_whose_crowd_colludes(e: Fraction) -> None:
    ratio, size, fakes = Fraction(3), 3, 4
    uniform = [Fraction(1, size)] * size
    blanket = Blanket.of(ratio, Fraction(1, size), Fraction(0), Fraction(0), Fraction(0))
    mixture = [(1, [blanket])]
    exact = float(exact_delta(response(ratio, size), 1, e, uniform, fakes))
    # nothing is lost here: the bound is the divergence itself
    found = shuffled_delta(mixture, math.log(e), 1, fakes)
    assert exact <= found <= exact * 1.001
    assert found == shuffled_delta(mixture, math.log(e), 50, fakes, colluding=1)
    assert colluding_epsilon(mixture, fakes, exact) >= math.log(e) * (1 - 1e-9)
    among = exact_delta(response(ratio, size), 3, e, uniform, fakes)
    assert among <= Fraction(shuffled_delta(mixture, math.log(e), 3, fakes))


@pytest.mark.parametrize(
    ("name", "people", "fakes"), [("sue", 5, 0), ("sue", 41, 0), ("oue", 5, 0), ("oue", 31, 8)]
)
@pytest.mark.parametrize("epsilon", [0.1, 0.8])
def test_columns_shuffled_apart(name: str, people: int, fakes: int, epsilon: float) -> None:
    oracle = sv.oracle(name, size=3, epsilon=2.1)
    assert isinstance(oracle, UnaryEncoding)
    one, zero = oracle.exact_p, oracle.exact_q
    worst = _worst_columns(oracle.p, oracle.q, people - 1, fakes, math.exp(epsilon))
    upper = column_epsilon(one, zero, people, worst, fakes)
    assert column_lower_epsilon(one, zero, people, worst, fakes) <= epsilon <= upper
    # whole vectors tell more
    assert upper < shuffled_epsilon([(1, [oracle.blanket()])], people, worst)


def _worst_bit(one: float, others: int, e: float) -> float:
    """The largest delta of one of two values over all crowds."""
    worst = 0.0
    for holders in range(others + 1):
        law = np.array([1.0])
        for chance in [one] * holders + [1 - one] * (others - holders):
            law = np.convolve(law, [1 - chance, chance])
        p, q = np.convolve(law, [1 - one, one]), np.convolve(law, [one, 1 - one])
        worst = max(worst, *(float(np.maximum(a - e * b, 0).sum()) for a, b in ((p, q), (q, p))))
    return worst


@pytest.mark.parametrize("name", ["rr", "grr", "ss", "olh-field"])
@pytest.mark.parametrize("people", [2, 3, 5, 41])
@pytest.mark.parametrize("epsilon", [0.1, 0.8])
def test_answers_of_two_values_are_sums_of_bits(name: str, people: int, epsilon: float) -> None:
    oracle = sv.oracle(name, size=2, epsilon=2.1)
    mixture = [(1, [oracle.blanket()])]
    worst = _worst_bit(oracle.p, people - 1, math.exp(epsilon))  # type: ignore[attr-defined]
    upper = shuffled_epsilon(mixture, people, worst)
    assert lower_epsilon(mixture, people, worst) <= epsilon <= upper
    found = shuffled_delta(mixture, epsilon, people)
    assert worst <= found <= worst * (1 + 3e-6)
    # a blanket that leaves out what two values have in common knows less
    blanket = replace(oracle.blanket(), pair=None)
    assert found <= shuffled_delta([(1, [blanket])], epsilon, people)


def test_what_only_looks_like_two_values_is_not_summed() -> None:
    """A seeded hash to two values: both of two values may be supported."""
    seeded = sv.oracle("olh-seeded", size=4, epsilon=2.1, hash_size=2).blanket()
    two = sv.oracle("rr", size=2, epsilon=2.1).blanket()
    assert (seeded.q, seeded.both) == (two.q, two.both)
    deltas = [shuffled_delta([(1, [blanket])], 0.1, 1000) for blanket in (seeded, two)]
    assert deltas[1] < deltas[0] / 2


def test_a_crowd_that_was_forgotten_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nobody else held the value, columns would look more private than they are."""
    oracle = sv.oracle("sue", size=3, epsilon=2)
    assert isinstance(oracle, UnaryEncoding)
    worst = _worst_columns(oracle.p, oracle.q, 40, 0, math.exp(0.8))
    assert column_epsilon(oracle.exact_p, oracle.exact_q, 41, worst) >= 0.8
    nobody = np.array([[0, 40, 0]])
    monkeypatch.setattr(bit_sums, "_intervals", lambda *_: nobody)
    assert column_epsilon(oracle.exact_p, oracle.exact_q, 41, worst) < 0.8


def _worst_columns(one: float, zero: float, others: int, fakes: int, e: float) -> float:
    """The largest delta of two columns over all crowds: some hold x, some x', the rest neither."""
    laws = []
    for holders in range(others + 1):
        law = np.array([1.0])
        for chance in [one] * holders + [zero] * (others - holders + fakes):
            law = np.convolve(law, [1 - chance, chance])
        laws.append((np.convolve(law, [1 - one, one]), np.convolve(law, [1 - zero, zero])))
    worst = 0.0
    for first in range(others + 1):
        for second in range(others + 1 - first):
            p = np.outer(laws[first][0], laws[second][1])
            q = np.outer(laws[first][1], laws[second][0])
            worst = max(worst, float(np.maximum(p - e * q, 0).sum()))
    return worst
