"""Intervals of shares within groups, differences, averages and changes hold as often as they say.

Each is counted over many simulated surveys of the same people; what a bound allows for is counted
elsewhere (tests/unit/test_groups.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import sottovoce as sv
from sottovoce.results.cells import quantile
from tests.statistics import ALPHA

PEOPLE = 4000
RUNS = 800
LEVEL = 0.8  # of the intervals: of so many runs a lower level tells more than 95% would
REACH = quantile(LEVEL)
COUNTED = ("within", "compare", "mean", "mean within", "change")
MUTANTS = ("share apart", "one group", "one wave")
CHECKS = 3 * 2 + 2 + 3  # intervals that are counted
SCHEMA = sv.Schema(g=sv.Boolean(), a=sv.Categorical(["x", "y", "z"]), n=sv.Ordinal(1, 6))
GROUP = {"g": True}
ROUNDING = 0.02  # errors are not exactly normal, and their variances are estimated


def crowd() -> dict[str, Any]:
    draws = np.random.default_rng(5)
    g = draws.random(PEOPLE) < 0.3
    a = np.where(g, draws.choice(3, PEOPLE, p=[0.85, 0.1, 0.05]), draws.choice(3, PEOPLE))
    n = 1 + draws.integers(0, 4, PEOPLE) + 2 * g
    return {"g": g, "a": np.array(["x", "y", "z"], object)[a], "n": n}


PEOPLE_ASKED = crowd()
G = PEOPLE_ASKED["g"]
IN = np.array([np.mean(PEOPLE_ASKED["a"][G] == each) for each in "xyz"])
OUT = np.array([np.mean(PEOPLE_ASKED["a"][~G] == each) for each in "xyz"])


@dataclass
class Count:
    """How many intervals of each kind held the truth; of mutants too."""

    held: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, low: Any, high: Any, truth: Any) -> None:
        held = (np.asarray(low) <= truth) & (truth <= np.asarray(high))
        self.held[name] = self.held.get(name, 0) + held.astype(int)


@pytest.fixture(scope="module")
def count() -> Count:
    question = sv.Marginals(up_to=2, method="marg-ps")
    plan = sv.plan(SCHEMA, question, epsilon=3.0, people=PEOPLE)
    found = Count()
    numbers = PEOPLE_ASKED["n"]
    earlier: Any = None
    for seed in range(RUNS):
        reports = sv.simulate(plan, PEOPLE_ASKED, seed=seed)
        estimate: Any = sv.Aggregate(plan).add(reports).estimate()
        within = estimate.within("a", GROUP)
        found.add("within", *within.interval(LEVEL), IN)
        sums = within.spread.sums
        # as if a share of all people and the group's own erred apart
        error = np.sqrt(sums.std_errors**2 + (within.values * sums.share_error) ** 2) / sums.share
        found.add("share apart", within.values - REACH * error, within.values + REACH * error, IN)
        differences = estimate.compare("a", GROUP, {"g": False})
        found.add("compare", *differences.interval(LEVEL), IN - OUT)
        # as if the smaller group's shares were known
        reach = REACH * estimate.within("a", {"g": False}).std_error
        found.add("one group", differences.values - reach, differences.values + reach, IN - OUT)
        found.add("mean", *estimate.mean("n").interval(LEVEL), numbers.mean())
        mean = estimate.mean("n", GROUP)
        found.add("mean within", *mean.interval(LEVEL), numbers[G].mean())
        if earlier is not None:
            change = estimate.change_since(earlier, "a")
            found.add("change", *change.interval(LEVEL), np.zeros(3))
            once = np.sqrt(change.variances / 2)  # as if the earlier wave had no error
            reach = REACH * once
            found.add("one wave", change.values - reach, change.values + reach, np.zeros(3))
        earlier = estimate if seed % 2 == 0 else None
    return found


def limits(runs: int) -> tuple[float, float]:
    """How many of so many intervals hold the truth, but for a chance of ALPHA over all checks."""
    chance = ALPHA / (2 * CHECKS)
    low = binom.ppf(chance, runs, LEVEL - ROUNDING)
    high = binom.isf(chance, runs, LEVEL + ROUNDING)
    return float(low), float(high)


@pytest.mark.parametrize("name", COUNTED)
def test_intervals_hold_as_often_as_they_say(count: Count, name: str) -> None:
    low, high = limits(RUNS // 2 if name == "change" else RUNS)
    assert np.all(low <= count.held[name]), count.held[name]
    assert np.all(count.held[name] <= high), count.held[name]


@pytest.mark.parametrize("name", MUTANTS)
def test_other_errors_are_noticed(count: Count, name: str) -> None:
    low, high = limits(RUNS // 2 if name == "one wave" else RUNS)
    assert np.any((count.held[name] < low) | (count.held[name] > high)), count.held[name]
