"""Intervals of what was chosen for being large hold their means, given that they were chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.questions.selection import ChosenSpread, selected_interval
from tests.statistics import ALPHA

MEANS = (-1.0, 0.0, 1.0, 2.0, 4.0)  # beside a threshold of 0


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("mean", MEANS)
def test_intervals_hold_the_mean_of_what_passed(mean: float, level: float) -> None:
    draws = np.random.default_rng(7).normal(mean, 1.0, 60_000)
    passed = draws[draws > 0]
    low, high = selected_interval(passed, 1.0, 0.0, level)
    held = int(((low < mean) & (mean < high)).sum())
    alpha = ALPHA / (2 * len(MEANS))
    few, many = binom.ppf(alpha, len(passed), level), binom.isf(alpha, len(passed), level)
    assert few <= held <= many
    # with half of the variance they are too short
    low, high = selected_interval(passed, np.sqrt(0.5), 0.0, level)
    assert ((low < mean) & (mean < high)).sum() < few


def test_usual_intervals_do_not() -> None:
    draws = np.random.default_rng(7).normal(-1.0, 1.0, 60_000)
    passed = draws[draws > 0]
    held = int((np.abs(passed + 1) < 1.96).sum())
    assert held < binom.ppf(ALPHA, len(passed), 0.95)


def test_both_ends_rise_with_the_estimate_around_it() -> None:
    estimates = np.linspace(2.001, 12, 500)
    low, high = selected_interval(estimates, 0.5, 2.0)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low < estimates).all()
    assert (estimates < high).all()
    # far from the threshold nothing was chosen
    assert low[-1] == pytest.approx(12 - 0.98, abs=1e-3)
    assert high[-1] == pytest.approx(12 + 0.98, abs=1e-3)


def twice_chosen(mean: float, times: float = 1.0) -> tuple[int, int]:
    """(intervals that hold the mean, all of them): what passed in a first round, and with both."""
    draws = np.random.default_rng(3)
    first, second = draws.normal(mean, 0.02, 200_000), draws.normal(mean, 0.03, 200_000)
    # the mean of both by inverse variances
    weight = 0.03**2 / (0.02**2 + 0.03**2)
    both = weight * first + (1 - weight) * second
    passed = both[(first > 0.04) & (both > 0.03)][:1500]
    variance = np.full(len(passed), times / (1 / 0.02**2 + 1 / 0.03**2))
    spread = ChosenSpread(
        passed,
        variance,
        variance,
        np.zeros(len(passed)),
        np.full(len(passed), 0.03),
        np.full(len(passed), 0.04),
        np.sqrt(times * 0.02**2 - variance),
    )
    low, high = spread.interval(0.95)
    return int(((low <= mean) & (mean <= high)).sum()), len(passed)


@pytest.mark.parametrize("mean", [0.01, 0.04, 0.1])
def test_a_choice_in_two_rounds_is_allowed_for(mean: float) -> None:
    held, total = twice_chosen(mean)
    few, many = binom.ppf(ALPHA / 3, total, 0.95), binom.isf(ALPHA / 3, total, 0.95)
    assert few <= held <= many
    halved, _ = twice_chosen(mean, 0.5)
    assert halved < few
