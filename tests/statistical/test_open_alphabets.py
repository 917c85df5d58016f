"""Lists that do not hold all that people say: no bias, errors as stated, and no more false stars
than promised, whoever is off the list. `python -m bench.alphabets` says the same with more runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, poisson

from bench.alphabets import CANDIDATES, HELD, ORACLES, STARS, Crowd, Outcome, measured
from sottovoce.oracles import CohortOracle
from tests.statistical.test_accuracy import ratio_limits
from tests.statistics import ALPHA, z_limit

RUNS = 20
PEOPLE = 20_000
EPSILON = 3.0
CROWDS = (Crowd(0.0, None), Crowd(0.2, 3), Crowd(0.5, None), Crowd(0.5, 1))
CASES = len(ORACLES) * len(CROWDS)
LOW, HIGH = ratio_limits(RUNS, len(CANDIDATES), CASES)
REST_LOW, REST_HIGH = ratio_limits(RUNS, 2, CASES)  # of one figure a run
UNBIASED = z_limit(CASES * (len(CANDIDATES) + 1))


def ratio(outcome: Outcome) -> float:
    """The mean squared error over the stated variance."""
    return float((outcome.standard**2).mean())


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_errors_are_as_stated_whoever_is_off_the_list(name: str, crowd: Crowd) -> None:
    got = measured(name, crowd, RUNS, PEOPLE, EPSILON)
    assert LOW < ratio(got) < HIGH
    assert REST_LOW < float((got.rest**2).mean()) < REST_HIGH
    assert got.bias < UNBIASED
    assert 2 * ratio(got) > HIGH  # a variance of half its size is told apart


@pytest.mark.parametrize("name", ORACLES)
def test_taking_the_list_for_everything_is_told_apart(name: str) -> None:
    """Without the constant of each cohort, under the sum to one: half of the people have nowhere
    else to go.
    """
    got = measured(name, Crowd(0.5, None), RUNS, PEOPLE, EPSILON, complete=True)
    assert got.bias > UNBIASED


@pytest.mark.parametrize("name", ORACLES)
def test_a_popular_value_off_the_list_is_part_of_the_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the people hold one value that is not listed, and cells are few: what its hashes
    share with the list's is more than the noise, and is told from what the list does not fit.
    """
    crowd = Crowd(0.5, 1)
    got = measured(name, crowd, RUNS, PEOPLE, EPSILON, cohorts=64, buckets=16)
    assert LOW < ratio(got) < HIGH
    assert REST_LOW < float((got.rest**2).mean()) < REST_HIGH
    monkeypatch.setattr(CohortOracle, "_off_list_spread", lambda *_: 0.0)
    assert ratio(measured(name, crowd, RUNS, PEOPLE, EPSILON, cohorts=64, buckets=16)) > HIGH


def test_stars_are_false_as_often_as_promised() -> None:
    """Nobody holds a candidate: at most one of twenty runs stars one."""
    runs = 100
    limit = poisson.isf(ALPHA, runs * STARS)
    got = measured("o-rr", Crowd(1.0, 3), runs, 5_000, 2.0)
    assert got.nobodys == len(CANDIDATES) > len(HELD)
    assert got.stars <= limit
    # with half the variance
    reach = norm.isf(STARS / len(CANDIDATES)) / np.sqrt(2)
    assert (got.standard > reach).sum() > limit
