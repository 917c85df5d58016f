"""Heavy hitters against theory: estimates without bias, errors as stated, and as many false ones as
expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, norm, poisson

import sottovoce as sv
from tests.statistics import ALPHA, z_limit

PEOPLE, RUNS = 4_000, 60
PLANTED = {
    5: 1_300,
    0xABCDEF: 1_000,
    77: 800,
}  # far above what can be found, so that finding them biases nothing
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("windows", {"width": 12}),
    ("pem", {"lengths": [8, 16, 24]}),
    ("tree-hist", {}),
]


def errors(method: str, options: dict[str, Any]) -> NDArray[np.float64]:
    """(estimate, its error in standard errors) of each planted value in each run."""
    schema = sv.Schema(x=sv.Integer(bits=24))
    question = sv.HeavyHitters("x", top=3, method=method, **options)
    plan = sv.plan(schema, question, epsilon=2.0, people=PEOPLE)
    others = np.arange(PEOPLE - sum(PLANTED.values())) + (1 << 20)
    table = {"x": np.concatenate([np.repeat(list(PLANTED), list(PLANTED.values())), others])}
    found = []
    for seed in range(RUNS):
        answer = sv.simulate_rounds(plan, table, seed)
        assert set(answer.table.labels) == set(PLANTED)
        for label, value, error in zip(
            answer.table.labels, answer.table.values, answer.table.std_error, strict=True
        ):
            found.append((value, (value - PLANTED[label] / PEOPLE) / error, error))
    return np.array(found)


def is_unbiased(scores: NDArray[np.float64]) -> bool:
    return bool(abs(scores.sum()) / np.sqrt(len(scores)) < z_limit(len(METHODS)))


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_estimates_of_survivors_are_unbiased_and_err_as_stated(
    method: str, options: dict[str, Any]
) -> None:
    values, scores, spread = errors(method, options).T
    assert is_unbiased(scores)
    # as if every estimate were 8% too large
    assert not is_unbiased(scores + 0.08 * values / spread)
    total, tail = float((scores**2).sum()), ALPHA / (2 * len(METHODS))
    assert chi2.ppf(tail, len(scores)) < total < chi2.isf(tail, len(scores))
    # as if the variance were stated half as large
    assert not total / 0.5 < chi2.isf(tail, len(scores))


def false_ones(bits: int, width: int, most: float, runs: int, louder: float = 1.0) -> int:
    """How many values that nobody holds were stated to stand among at most ``most``, in crowds
    without popular ones.
    """
    question = sv.HeavyHitters("x", top=64, width=width)
    plan = sv.plan(sv.Schema(x=sv.Integer(bits=bits)), question, epsilon=1.0, people=2_000)
    draws = np.random.default_rng(9)
    count = 0
    for seed in range(runs):
        table = {"x": draws.permutation(1 << 16)[:2_000] << (bits - 16)}
        answer = sv.simulate_rounds(plan, table, seed)
        if louder == 1.0:
            count += int((answer.chance <= most).sum())
        else:
            scores = louder * answer.table.values / np.sqrt(answer.table.noise.floor)
            count += int(((1 << bits) * norm.sf(scores) <= most).sum())
    return count


def test_false_ones_are_as_many_as_stated() -> None:
    """One window decodes every value, so the count is Poisson's;
    scores 10% too loud would be seen.
    """
    runs, most = 40, 4.0
    low, high = poisson.ppf(ALPHA / 2, most * runs), poisson.isf(ALPHA / 2, most * runs)
    assert low < false_ones(16, 16, most, runs) < high
    assert not low < false_ones(16, 16, most, runs, louder=1.1) < high


def test_a_search_finds_no_more_false_ones_than_stated() -> None:
    runs, most = 25, 4.0
    found = false_ones(24, 14, most, runs)
    assert found < poisson.isf(ALPHA, most * runs)
    assert found > most * runs / 4  # and it does look at most of what would look popular
