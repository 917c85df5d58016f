"""The square wave's width, its least squares and its decoder, against brute force."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.oracles.wave import SquareWave
from sottovoce.postprocessing.smoothing import smoothed, smoothed_em
from tests.statistics import chi_limit


def wave(size: int, epsilon: float, half_width: int | None = None) -> SquareWave:
    made = sv.oracle("square-wave", size=size, epsilon=epsilon, half_width=half_width)
    assert isinstance(made, SquareWave)
    return made


def mutual_information(size: int, half_width: int, epsilon: float) -> float:
    """Of a uniform value on a line and its report, with this width: what the choice maximises."""
    near = 2 * half_width / size
    odds = math.exp(epsilon)
    q = 1 / (near * odds + 1)
    p = odds * q
    # the output lies in [-b, 1 + b]; a uniform output is approached from above: the paper's bound
    return math.log(near + 1) + near * p * math.log(p) + (1 - near * p) * math.log(q)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
def test_the_width_is_the_one_that_tells_most(epsilon: float) -> None:
    chosen = wave(2000, epsilon).half_width
    best = max(range(1, 1999), key=lambda width: mutual_information(2000, width, epsilon))
    assert chosen in (best - 1, best, best + 1)


def test_p_and_q_are_those_of_the_paper() -> None:
    for size, epsilon in ((16, 0.5), (64, 1.0), (1024, 2.0)):
        made = wave(size, epsilon)
        odds = math.exp(epsilon)
        bottom = (2 * made.half_width + 1) * odds + size - 1
        assert made.p == pytest.approx(odds / bottom, rel=1e-12)
        assert made.q == pytest.approx(1 / bottom, rel=1e-12)
    assert wave(64, 12.0).half_width == 0  # randomized response


@pytest.mark.parametrize(("size", "width"), [(2, 0), (5, 1), (6, 5), (9, 3)])
def test_estimates_and_variances_follow_from_the_channel(size: int, width: int) -> None:
    """Exactly: over all reports that can be sent, the mean is the value and the variance is as
    stated.
    """
    made = wave(size, 1.0, width)
    channel = made.channel()  # (values, places)
    assert channel.shape == (size, made.places)
    single = np.stack([made.estimate(row, 1)[0] for row in np.eye(made.places, dtype=np.int64)])
    assert np.allclose(channel @ single, np.eye(size))
    crowd = np.random.default_rng(size).dirichlet(np.ones(size))
    spread = channel @ single**2 - np.eye(size)  # of each value's estimate, by who reports
    assert np.allclose(made.all_variances(1, crowd), crowd @ spread)
    noise = made.noise(1)
    others = spread[~np.eye(size, dtype=bool)].mean()
    assert noise.floor == pytest.approx(others)
    assert noise.floor + noise.slope == pytest.approx(np.diag(spread).mean())


def test_sums_of_sets_vary_as_stated() -> None:
    size, count = 6, 2
    made = wave(size, 1.0)
    channel = made.channel()
    single = np.stack([made.estimate(row, 1)[0] for row in np.eye(made.places, dtype=np.int64)])
    spreads = []
    for first in range(size):
        for second in range(first):
            member = np.isin(np.arange(size), (first, second)).astype(float)
            spreads.append((channel @ (single @ member) ** 2 - member).mean())
    assert made.sum_noise(1, count).floor == pytest.approx(np.mean(spreads))


def test_some_values_are_estimated_as_all_are_in_a_survey() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 15))
    plan = sv.plan(schema, sv.Frequencies("age", oracle="square-wave"), epsilon=2.0, people=3000)
    reports = sv.simulate(plan, {"age": np.arange(3000) % 4}, seed=1)
    total = sv.Aggregate(plan).add(reports)
    everything = total.estimate().table
    some = total.estimate(candidates=[3, 1]).table
    assert np.array_equal(some.values, everything.values[[3, 1]])
    assert np.array_equal(some.variances, everything.variances[[3, 1]])


# -- the decoder


def slow_em(made: SquareWave, heard: np.ndarray, steps: int) -> np.ndarray:
    """The same iterations with the whole channel."""
    channel = np.full((made.size, made.places), made.q)
    for value in range(made.size):
        channel[value, value : value + made.near] = made.p
    shares = np.full(made.size, 1 / made.size)
    for _ in range(steps):
        shares = shares * (channel @ (heard / (shares @ channel))) / heard.sum()
        mixed = np.zeros(made.size)
        for value in range(made.size):
            around = [
                (1 if other != value else 2, other)
                for other in (value - 1, value, value + 1)
                if 0 <= other < made.size
            ]
            weights = sum(weight for weight, _ in around)
            mixed[value] = sum(weight * shares[other] for weight, other in around) / weights
        shares = mixed / mixed.sum()
    return shares


def test_smoothed_em_is_brute_force() -> None:
    made = wave(12, 1.0)
    heard = np.random.default_rng(1).integers(5, 50, made.places).astype(float)
    for steps in (1, 4, 30):
        fast = smoothed_em(made, heard, iterations=steps, tolerance=0.0)
        assert np.allclose(fast, slow_em(made, heard, steps))


def test_without_smoothing_the_likelihood_is_largest() -> None:
    """At the maximum every value in use gains as much as any other (the conditions of Kuhn and
    Tucker).
    """
    made = wave(8, 2.0)
    crowd = np.array([0.1, 0.2, 0.05, 0.3, 0.05, 0.1, 0.1, 0.1])
    heard = 1e5 * made.place_chances(crowd)
    found = smoothed_em(made, heard, is_smoothed=False, tolerance=0.0)
    assert np.allclose(found, crowd, atol=1e-6)


def test_a_smooth_crowd_is_recovered_and_a_wrong_width_is_not() -> None:
    """What is fitted agrees with what was heard, by chi-squared; decoded with another width, not.

    The fit is of few free numbers, so the statistic lies below that of the true chances.
    """
    made = wave(64, 1.0)
    draws = np.random.default_rng(3)
    values = np.clip(draws.normal(24, 9, 200_000), 0, 63).astype(np.int64)
    heard = made.accumulate(made.empty(), made.simulate(values, seed=4))
    limit = chi_limit(made.places - 1, 2)

    def statistic(chances: np.ndarray) -> float:
        expected = chances * len(values)
        return float(((heard - expected) ** 2 / expected).sum())

    found = smoothed_em(made, heard)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert statistic(made.place_chances(found)) < limit
    narrow = wave(made.size - 2, 1.0, made.half_width + 1)  # as many places
    wrong = smoothed_em(narrow, heard)
    assert statistic(narrow.place_chances(wrong)) > limit
    truth = np.bincount(values, minlength=64) / len(values)
    unbiased = made.estimate(heard, len(values))[0]
    assert ((found - truth) ** 2).mean() < ((unbiased - truth) ** 2).mean() / 100


def test_smoothing_keeps_a_line_and_two_values() -> None:
    line = np.arange(6.0)
    assert np.allclose(smoothed(line)[1:-1], line[1:-1])
    assert smoothed(np.array([0.3, 0.7])).tolist() == [0.3, 0.7]


def test_bad_input_has_one_clear_error() -> None:
    made = wave(8, 1.0)
    for heard in (np.ones(made.places - 1), np.zeros(made.places), -np.ones(made.places)):
        with pytest.raises(sv.InvalidInput, match="heard must be"):
            smoothed_em(made, heard)
    with pytest.raises(sv.InvalidInput, match="iterations"):
        smoothed_em(made, np.ones(made.places), iterations=0)
    with pytest.raises(sv.InvalidInput, match="half_width"):
        wave(8, 1.0, 8)
    with pytest.raises(sv.InvalidInput, match="size"):
        wave(1 << 13, 1.0)
    with pytest.raises(sv.InvalidInput, match="too small"):
        sv.oracle("square-wave", size=8, epsilon=Decimal("1e-40"))
    with pytest.raises(sv.InvalidInput, match="all 8 values"):
        made.from_support(np.ones(3, np.int64), 10)


# -- the method for queries


def test_queries_are_answered_and_their_errors_cover_a_smooth_crowd() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 255))
    plan = sv.plan(schema, sv.Queries(["age"], method="square-wave"), epsilon=1.0, people=50_000)
    ages = np.clip(np.random.default_rng(5).normal(120, 40, 50_000), 0, 255).astype(np.int64)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, {"age": ages}, seed=2)).estimate()
    answer = estimate.count(age=(80, 140))  # type: ignore[attr-defined]
    truth = int(((ages >= 80) & (ages <= 140)).sum())
    assert abs(answer.value - truth) < 4 * answer.std_error < 0.2 * truth
    assert not estimate.is_unbiased
    everybody = estimate.count()  # type: ignore[attr-defined]
    assert everybody.value == pytest.approx(50_000)
    assert everybody.std_error == pytest.approx(0, abs=1e-6)


def test_a_square_wave_is_for_one_ordered_dimension() -> None:
    schema = sv.Schema(
        age=sv.Ordinal(0, 15), state=sv.Categorical(["NY", "WA"]), pay=sv.Ordinal(0, 9999)
    )
    for names, why in ((["state"], "order"), (["age", "state"], "order"), (["pay"], "more than")):
        with pytest.raises(sv.InvalidInput, match=why):
            sv.plan(schema, sv.Queries(names, method="square-wave"), epsilon=1.0, people=1000)
