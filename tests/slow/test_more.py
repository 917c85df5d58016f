"""The same checks with more runs and larger cases: `make slow`."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce import audit
from tests.oracles import NAMES, ordinary, small
from tests.statistical.test_accuracy import CASES, EPSILONS, errors, ratio_limits
from tests.statistics import z_limit

RUNS = 150

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_error_is_as_stated_and_centred_over_many_runs(name: str, epsilon: float) -> None:
    standard, oracle, _ = errors(name, epsilon, RUNS)
    low, high = ratio_limits(RUNS, oracle.size, CASES)
    assert low < float((standard**2).mean()) < high
    assert np.abs(standard.mean(axis=0) * np.sqrt(RUNS)).max() < z_limit(CASES * oracle.size)


@pytest.mark.parametrize("size", [6, 7, 8])
def test_the_largest_hashed_channels_are_enumerated(size: int) -> None:
    assert audit.exact(small("olh", size, 3.0)).passed


@pytest.mark.parametrize("name", NAMES)
def test_a_long_sampling_audit_comes_close_and_never_exceeds(name: str) -> None:
    from sottovoce.ground.entropy import Seeded

    oracle = ordinary(name, 1.0, size=16)
    found = audit.sample(oracle, 100_000 if name == "she" else 1_000_000, 0.9999, Seeded(5))
    assert found.passed
    if name not in (
        "she",
        "cms",
        "rappor",
        "o-rappor",
        "o-rr",
        "hcms",
    ):  # these spread their loss over more than two events
        assert found.lower_bound > 0.9 * oracle.epsilon
