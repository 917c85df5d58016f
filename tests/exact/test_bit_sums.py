"""Sums of bits against exact fractions: every crowd of up to nine bits, in both directions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.accounting import shuffled_delta
from sottovoce.accounting.shuffling import bit_sums
from sottovoce.accounting.shuffling.bit_sums import COLUMN_MARGIN, MANY_CROWDS, BitSums

Law = list[Fraction]


def with_bit(law: Law, chance: Fraction) -> Law:
    return [
        before * chance + here * (1 - chance)
        for before, here in zip([0, *law], [*law, 0], strict=True)
    ]


@cache
def worst_crowd(
    one: Fraction, zero: Fraction, others: int, fakes: tuple[Fraction, ...], e: Fraction
) -> tuple[Fraction, Fraction]:
    """The largest deltas over all crowds: of P above e Q, and of Q above e P."""
    worst = [Fraction(0), Fraction(0)]
    for holders in range(others + 1):
        law = [Fraction(1)]
        for chance in [one] * holders + [zero] * (others - holders) + [*fakes]:
            law = with_bit(law, chance)
        first, second = with_bit(law, one), with_bit(law, zero)
        for place, (likely, unlikely) in enumerate(((first, second), (second, first))):
            pairs = zip(likely, unlikely, strict=True)
            found = sum(max(Fraction(0), p - e * q) for p, q in pairs)
            worst[place] = max(worst[place], Fraction(found))
    return worst[0], worst[1]


def cases() -> list[tuple[Fraction, Fraction, int, int, Fraction, float]]:
    """Random chances of 1, numbers of people and fakes, and epsilons."""
    draw = np.random.default_rng(1)
    found = []
    while len(found) < 60:
        zero, one, fake = (Fraction(int(number), 1000) for number in draw.integers(1, 1000, 3))
        if zero < one:
            others, fakes = int(draw.integers(0, 7)), int(draw.integers(0, 4))
            epsilon = float(draw.choice([0, 1e-6, 0.01, 0.3, 1, 3]))
            found.append((one, zero, others, fakes, fake, epsilon))
    return found


def test_every_crowd_is_counted_and_no_more() -> None:
    for one, zero, others, fakes, fake, epsilon in cases():
        sums = BitSums(one, zero, others, fakes, fake)
        exact = worst_crowd(one, zero, others, (fake,) * fakes, Fraction(math.exp(epsilon)))
        for found, truth in zip(
            (sums.delta(epsilon), sums.reversed_delta(epsilon)), exact, strict=True
        ):
            assert float(truth) <= found <= float(truth) * (1 + 2 * COLUMN_MARGIN) + 1e-13


@pytest.mark.parametrize("name", ["rr", "grr"])
def test_fakes_among_answers_of_two_values(name: str) -> None:
    """Fakes are fair bits; everybody else colludes, or nobody."""
    oracle = sv.oracle(name, size=2, epsilon="2.1")
    one, zero = oracle.exact_p, oracle.exact_q  # type: ignore[attr-defined]
    fair = (Fraction(1, 2),) * 3
    for people, colluding in ((4, 0), (4, 1)):
        others = 0 if colluding else people - 1
        exact = worst_crowd(one, zero, others, fair, Fraction(2))
        mixture = [(1, [oracle.blanket()])]
        found = shuffled_delta(mixture, math.log(2), people, 3, colluding)
        assert float(max(exact)) <= found <= float(max(exact)) * (1 + 3 * COLUMN_MARGIN)


@pytest.mark.parametrize("intervals", [1, 3, 8])
def test_intervals_only_add_and_their_noise_is_that_of_all_their_crowds(
    intervals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, zero, others = Fraction(9, 10), Fraction(1, 5), 30
    sums = BitSums(one, zero, others)
    exact = [float(each) for each in worst_crowd(one, zero, others, (), Fraction(math.exp(0.5)))]
    found = [sums.delta(0.5, intervals), sums.reversed_delta(0.5, intervals)]
    assert all(upper >= truth for upper, truth in zip(found, exact, strict=True))
    finer = [sums.delta(0.5, 2 * intervals), sums.reversed_delta(0.5, 2 * intervals)]
    assert all(less <= more for less, more in zip(finer, found, strict=True))

    def too_much_noise(honest: int, fakes: int, crowds: int) -> bit_sums.Counts:
        # each interval's first crowd in place of what all of it have in common
        first = np.arange(0, honest + 1, -(-(honest + 1) // crowds))
        return np.column_stack([first, honest - first, np.full(len(first), fakes)])

    monkeypatch.setattr(bit_sums, "_intervals", too_much_noise)
    wrong = [sums.delta(0.5, intervals), sums.reversed_delta(0.5, intervals)]
    assert min(wrong[0] / exact[0], wrong[1] / exact[1]) < 1


def test_half_a_million_people_by_a_sum_over_every_place() -> None:
    one, zero, others, epsilon = Fraction(3, 4), Fraction(1, 4), 500_000, 0.005
    places = np.arange(others + 1)
    # Bin(others, 1/4): nobody else holds the value
    logs = np.cumsum(np.log((others - places[:-1]) / (places[:-1] + 1)))
    law = np.exp(np.concatenate([[0.0], logs]) - places * math.log(3) + others * math.log(3 / 4))
    first = np.convolve(law, [1 / 4, 3 / 4])
    second = np.convolve(law, [3 / 4, 1 / 4])
    e = math.exp(epsilon)
    sides = (first - e * second, second - e * first)
    alone = max(float(np.maximum(side, 0).sum()) for side in sides)
    assert alone <= BitSums(one, zero, others).delta(epsilon, MANY_CROWDS) <= 1.005 * alone
