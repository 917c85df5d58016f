"""Fits of one dimension on crowds: unbiased where they say so, closer where they shrink."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binom, chi2

from sottovoce.questions.queries.models.line import LineTable, fit_line, fit_unbiased
from tests.grid_crowds import hear, line_grids
from tests.statistics import ALPHA

SIZE = 64
PEOPLE = 20_000
RUNS = 240
EPSILON = 1.0
LIMIT = ALPHA / 8  # comparisons of this file
LEAST_COVERED = 0.92  # of intervals of 95%, what is promised


def shape():
    """Two hills, a step and a spike."""
    codes = np.arange(SIZE)
    hills = np.exp(-(((codes - 15) / 5) ** 2)) + 0.6 * np.exp(-(((codes - 45) / 9) ** 2))
    hills += 0.1 * (codes < 30)
    hills[50] += 2.0
    return hills / hills.sum()


@lru_cache(maxsize=1)
def crowds():
    """For each of many crowds and one range: the truth, and two answers with their errors.

    Beside each the mean square by which all shares of codes up to one are off.
    """
    rows = []
    for run in range(RUNS):
        rng = np.random.default_rng([8, run])
        people = rng.multinomial(PEOPLE, shape())
        evidence = hear(people, line_grids(SIZE, (4, 8, 32, SIZE)), EPSILON, rng)
        first, last = np.sort(rng.integers(0, SIZE - 1, 2))
        inside = ((np.arange(SIZE) >= first) & (np.arange(SIZE) <= last)).astype(float)
        row = [people @ inside / PEOPLE]
        for table in (fit_line(evidence, SIZE), fit_unbiased(evidence, SIZE)):
            assert isinstance(table, LineTable)
            joint = table.joint([{0: inside}])
            below = np.cumsum(table.frequencies - people / PEOPLE)
            row += [joint.values[0], joint.std_errors[0], np.mean(below**2)]
        rows.append(row)
    return np.array(rows)


def test_least_squares_is_unbiased_with_the_errors_it_says():
    truth, _, _, _, value, error, _ = crowds().T
    squares = float((((value - truth) / error) ** 2).sum())
    low, high = chi2.ppf(LIMIT, len(truth)), chi2.isf(LIMIT, len(truth))
    assert low < squares < high
    # a claim of errors half as large, or twice, would be found out
    assert 4 * squares > high
    assert squares / 4 < low


def test_the_cascade_is_closer_than_least_squares():
    _, _, _, fitted, _, _, plain = crowds().T
    assert (fitted < plain).sum() > binom.isf(LIMIT, len(plain), 0.5)
    assert fitted.mean() < plain.mean()


def test_intervals_hold_as_often_as_is_promised():
    truth, fitted, error, *_ = crowds().T
    reached = np.abs(fitted - truth) / error
    least = binom.ppf(LIMIT, len(truth), LEAST_COVERED)
    assert (reached < 1.96).sum() >= least
    # half the standard error would be found out
    assert (reached < 0.98).sum() < least


@pytest.mark.parametrize("size", [16])
def test_even_people_are_found_even(size):
    rng = np.random.default_rng(9)
    people = rng.multinomial(5_000, np.full(size, 1 / size))
    evidence = hear(people, line_grids(size, (4, size)), 1.0, rng)
    fitted, plain = fit_line(evidence, size), fit_unbiased(evidence, size)
    even = np.full(size, 1 / size)
    off = [np.sum((table.frequencies - even) ** 2) for table in (fitted, plain)]
    assert off[0] < 0.1 * off[1]
