"""Intervals of what was chosen for being large hold their means, given that they were chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.questions.selection import selected_interval
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
