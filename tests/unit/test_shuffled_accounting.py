"""The accountant of shuffled reports against sums, closed forms, mutants and its own promises."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.accounting import (
    Blanket,
    colluding_epsilon,
    column_epsilon,
    column_lower_epsilon,
    epsilon_of,
    least_people,
    local_epsilon_for,
    lower_epsilon,
    oracle_mixture,
    shuffled_delta,
    shuffled_epsilon,
)
from sottovoce.accounting.shuffling import expectation, losses
from sottovoce.accounting.shuffling.bounds import ShuffledCrowd, least_count
from sottovoce.accounting.shuffling.expectation import COARSE_GRID, LossPart, positive_part
from sottovoce.accounting.shuffling.rounds import composed_epsilon, loss_curve, rounds_epsilon
from sottovoce.ground.errors import InvalidInput

DELTA = 1e-9


def mixture_of(name: str, size: int, epsilon: float, **options: int) -> losses.Mixture:
    return [(1, [sv.oracle(name, size=size, epsilon=epsilon, **options).blanket()])]


@pytest.mark.parametrize("people", [10**4, 10**6, 10**8])
@pytest.mark.parametrize(
    ("name", "size", "epsilon", "options", "most"),
    [
        ("rr", 2, 2, {}, 1.001),
        ("grr", 2, 4, {}, 1.001),
        ("grr", 3, 2, {}, 1.001),
        ("grr", 16, 4, {}, 1.001),
        ("grr", 1024, 8, {}, 1.001),
        ("olh", 1024, 4, {"hash_bits": 6}, 1.01),
        ("olh", 4096, 6, {"hash_bits": 9}, 1.01),
    ],
)
def test_upper_and_lower_bounds_meet(
    name: str, size: int, epsilon: float, options: dict[str, int], most: float, people: int
) -> None:
    mixture = mixture_of(name, size, epsilon, **options)
    upper = shuffled_epsilon(mixture, people, DELTA)
    lower = lower_epsilon(mixture, people, DELTA)
    assert 1 <= upper / lower <= most
    # the number that is returned was itself checked
    assert shuffled_delta(mixture, upper, people) <= DELTA


def direct_sum(part: LossPart) -> float:
    """E[(S)_+] by the multinomial law of three atoms."""
    a, p = part.values, part.chances
    log_factorials = np.array([math.lgamma(k + 1) for k in range(part.count + 1)])
    first, second = np.meshgrid(*[np.arange(part.count + 1)] * 2, indexing="ij")
    third = part.count - first - second
    inside = third >= 0
    first, second, third = first[inside], second[inside], third[inside]
    logs = log_factorials[-1] - sum(log_factorials[count] for count in (first, second, third))
    logs = logs + first * math.log(p[0]) + second * math.log(p[1]) + third * math.log(p[2])
    sums = first * a[0] + second * a[1] + third * a[2]
    return float(np.exp(logs) @ np.maximum(sums, 0))


def three_atoms(people: int, epsilon: float, local: float = 3.0, size: int = 5) -> LossPart:
    """Randomized response: x, x', another answer; nothing revealed is split off."""
    ratio, e = math.exp(local), math.exp(epsilon)
    gamma = size / (ratio + size - 1)
    chances = np.array([gamma / size, gamma / size, gamma * (size - 2) / size])
    # the fourth atom is 0; here it is left to the third, whose mean it lowers in size
    rest = 1 - chances.sum()
    values = np.array([ratio - e, 1 - e * ratio, (1 - e) * chances[2] / (chances[2] + rest)])
    chances[2] += rest
    return LossPart(values, chances, people)


def test_the_grid_lies_above_direct_sums_and_is_of_second_order() -> None:
    for people, epsilon in ((30, 0.3), (150, 0.2), (150, 0.8), (300, 0.4)):
        part = three_atoms(people, epsilon)
        truth = direct_sum(part)
        # steps of an eighth leave a 64th of the error, but for how atoms meet the grid
        excess = [
            positive_part([part], points) / truth - 1 for points in (1 << 9, 1 << 12, 1 << 15)
        ]
        assert all(each >= 0 for each in excess)
        assert excess[1] < max(excess[0] / 5, 1e-5)
        assert excess[2] < max(excess[1] / 5, 5e-6)


def test_atoms_that_are_rounded_down_are_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    part = three_atoms(150, 0.2)
    truth = direct_sum(part)

    def floored(part: LossPart, step: float) -> LossPart:
        return LossPart(np.floor(part.values / step) * step, part.chances, part.count)

    assert positive_part([part], 1 << 12) >= truth
    monkeypatch.setattr(expectation, "_split", floored)
    assert positive_part([part], 1 << 12) < truth


def test_what_lies_beyond_the_window_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    part = three_atoms(150, 0.2)
    truth = direct_sum(part)
    monkeypatch.setattr(expectation, "_WIDTH", 0.5)
    monkeypatch.setattr(expectation, "_LARGEST_LOSSES", 0.5)
    assert positive_part([part], 1 << 12) >= truth
    monkeypatch.setattr(expectation, "_beyond", lambda parts, limit: 0.0)
    assert positive_part([part], 1 << 12) < truth


def test_epsilon_falls_with_the_root_of_people() -> None:
    mixture = mixture_of("grr", 16, 4)
    found = [shuffled_epsilon(mixture, people, DELTA) for people in (10**6, 10**8)]
    assert 9 < found[0] / found[1] < 13
    # and is near what Gaussian noise of the same variance promises: two cells of n q
    ratio, size = math.exp(4), 16
    mu = (ratio - 1) / (ratio + size - 1) / math.sqrt(10**8 / 2 / (ratio + size - 1))
    assert found[1] == pytest.approx(epsilon_of(DELTA, mu), rel=0.02)


def test_never_above_the_local_epsilon() -> None:
    mixture = mixture_of("grr", 4, 1)
    for people in (1, 2, 5):
        assert 0 < shuffled_epsilon(mixture, people, 1e-12) <= math.nextafter(1.0, 2)
    assert shuffled_delta(mixture, 1.0000001, 2) == 0.0
    assert shuffled_epsilon(mixture, 10**6, DELTA, colluding=1) <= math.nextafter(1.0, 2)


def test_less_support_of_both_never_hides_more() -> None:
    quarter = Fraction(1, 4)
    found = [
        shuffled_delta([(1, [Blanket.of(Fraction(20), quarter, both)])], 0.3, 100)
        for both in (Fraction(0), Fraction(1, 32), Fraction(1, 16), Fraction(1, 8))
    ]
    assert found == sorted(found, reverse=True)


def test_cohorts_and_asks() -> None:
    narrow = sv.oracle("grr", size=4, epsilon=2).blanket()
    wide = sv.oracle("grr", size=64, epsilon=2).blanket()
    alone = [shuffled_epsilon([(1, [each])], 10**5, DELTA) for each in (narrow, wide)]
    mixed = shuffled_epsilon([(3, [narrow]), (1, [wide])], 10**5, DELTA)
    assert min(alone) < mixed < max(alone)
    # the same cohort several times is one, whatever the weights
    assert shuffled_epsilon([(2, [narrow]), (5, [narrow])], 10**5, DELTA) == pytest.approx(alone[0])
    # two asks reveal more than one, less than twice as much at no amplification
    both = shuffled_epsilon([(1, [narrow, narrow])], 10**5, DELTA)
    assert alone[0] < both < 4
    many = shuffled_epsilon(
        [(1, [sv.oracle("rr", size=2, epsilon="0.25").blanket()] * 16)], 10**5, DELTA
    )
    assert 0 < many < 4


def test_fakes_and_colluders() -> None:
    mixture = mixture_of("olh", 1024, 6, hash_bits=9)
    people = 10**6
    plain = shuffled_epsilon(mixture, people, DELTA)
    some, as_many = (shuffled_epsilon(mixture, people, DELTA, fakes) for fakes in (10**5, 10**6))
    assert as_many < some < plain
    assert 1 <= some / lower_epsilon(mixture, people, DELTA, 10**5, claimed=some) < 1.005
    alone = colluding_epsilon(mixture, 10**5, DELTA)
    assert round(alone, 2) == 0.23
    assert alone == shuffled_epsilon(mixture, people, DELTA, 10**5, colluding=1)
    shares = [shuffled_epsilon(mixture, people, DELTA, colluding=share) for share in (0, 0.5, 0.9)]
    assert shares == sorted(shares)
    assert round(shares[1], 3) == 0.135
    # half of the crowd is a crowd of half the size
    assert shares[1] == shuffled_epsilon(mixture, people // 2, DELTA)


def test_binomial_quantiles_are_bounds() -> None:
    for trials, chance, tail in ((200, 0.3, 1e-6), (50, 0.9, 1e-3), (1000, 0.01, 1e-9)):
        least = least_count(trials, chance, tail)
        below = sum(
            math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(least)
        )
        assert below <= tail


def test_rounds_add_up() -> None:
    crowd = ShuffledCrowd(mixture_of("olh", 1024, 6, hash_bits=9), 10**6)
    one = crowd.epsilon(DELTA)
    six = rounds_epsilon(crowd, 6, DELTA)
    assert six < 6 * crowd.epsilon(DELTA / 6) / 2
    assert one * math.sqrt(6) < six < one * math.sqrt(6) * 1.1
    mixture = mixture_of("olh", 1024, 6, hash_bits=9)
    lower = lower_epsilon(mixture, 10**6, DELTA, rounds=6, claimed=six)
    assert 1 <= six / lower < 1.01
    # one round through the same hull is hardly more than one round
    curve = loss_curve(lambda epsilon: crowd.delta(epsilon, COARSE_GRID), one * 1.2, 100)
    assert curve.chances.sum() + curve.infinite == pytest.approx(1)
    assert one <= composed_epsilon([(curve, 1)], DELTA) < 1.01 * one


def test_columns_meet_their_lower_bound_and_lie_below_whole_vectors() -> None:
    for name, epsilon in (("sue", 4), ("oue", 4)):
        oracle = sv.oracle(name, size=16, epsilon=epsilon)
        coins = oracle.exact_p, oracle.exact_q  # type: ignore[attr-defined]
        upper = column_epsilon(*coins, 10**6, DELTA)
        assert 1 <= upper / column_lower_epsilon(*coins, 10**6, DELTA) < 1.007
        assert upper < shuffled_epsilon([(1, [oracle.blanket()])], 10**6, DELTA)
        one_column = column_epsilon(*coins, 10**6, DELTA, is_removal=True)
        assert upper / 1.5 < one_column < upper / 1.35
        assert column_epsilon(*coins, 10**6, DELTA, fakes=10**6) < upper


def test_solved_for_on_the_private_side() -> None:
    build = oracle_mixture("grr", 16)
    local = local_epsilon_for(build, "0.05", DELTA, 10**6)
    assert shuffled_epsilon(build(local), 10**6, DELTA) <= 0.05
    assert shuffled_epsilon(build(local + Decimal("0.001")), 10**6, DELTA) > 0.05 * (1 - 1e-3)
    assert local_epsilon_for(build, 2, DELTA, 10**6, cap=4) == 4
    # a crowd too small to hide anybody: no more than the promise itself
    assert local_epsilon_for(build, "0.5", DELTA, 3) == Decimal("0.5")
    assert local_epsilon_for(build, "0.05", DELTA, 10**6, fakes=10**6) > local


def test_the_least_people() -> None:
    mixture = mixture_of("grr", 16, 4)
    least = least_people(mixture, 0.05, DELTA)
    assert shuffled_delta(mixture, 0.05, least) <= DELTA
    assert shuffled_delta(mixture, 0.05, round(0.999 * least)) > DELTA
    assert least_people(mixture, 4.1, DELTA) == 1
    assert least_people(mixture, 0.05, DELTA, fakes=10**6) < least
    few = least_people(mixture_of("grr", 2, 1), 0.9, 1e-3)
    assert shuffled_delta(mixture_of("grr", 2, 1), 0.9, few) <= 1e-3
    assert shuffled_delta(mixture_of("grr", 2, 1), 0.9, few - 1) > 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, r"delta \(0.0\) must be greater than 0"),
        ({"people": 0}, r"people \(0\) must lie between 1"),
        ({"fakes": -1}, r"fakes \(-1\) must lie between 0"),
        ({"colluding": 1.5}, r"colluding \(1.5\) must lie between 0 and 1"),
        ({"mixture": []}, r"mixture \(empty\)"),
        ({"mixture": [(1, [])]}, r"at least one ask"),
        ({"mixture": [(0, [Blanket.of(Fraction(2), Fraction(1, 2), Fraction(0))])]}, r"weight"),
    ],
)
def test_bad_input(change: dict[str, object], message: str) -> None:
    given = {"mixture": mixture_of("grr", 4, 1), "people": 100, "delta": 1e-6} | change
    with pytest.raises(InvalidInput, match=message):
        shuffled_epsilon(**given)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=message):
        lower_epsilon(**given)  # type: ignore[arg-type]


def test_amplified() -> None:
    oracle = sv.oracle("olh", size=1024, epsilon=4)
    found = sv.amplified(oracle, people=10**6, delta=DELTA)
    assert found.lower <= found.upper <= found.local == oracle.epsilon == found.colluding
    assert found.thesis is not None
    assert found.upper < found.thesis / 5
    rounds = sv.amplified(oracle, people=10**6, delta=DELTA, rounds=2)
    assert rounds.thesis is None
    assert found.upper < rounds.lower <= rounds.upper < 2 * found.upper
    # the joint law of sets' hashes is not known
    sets = sv.oracle("olh-sets", size=64, epsilon=2, length=3)
    assert sv.amplified(sets, people=10**5, delta=DELTA).lower == 0.0
