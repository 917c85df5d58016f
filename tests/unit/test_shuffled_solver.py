"""The largest local epsilon: what the coarse grid begins with, the fine one ends as ever."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sottovoce.accounting.shuffling import local_epsilon_for, oracle_mixture, solver
from sottovoce.accounting.shuffling.bounds import ShuffledCrowd
from sottovoce.accounting.shuffling.expectation import COARSE_GRID, FINE_GRID

CASES: list[tuple[str, int, dict[str, Any], str, int, int, int]] = [
    ("grr", 16, {}, "0.3", 50_000, 0, 8),
    ("grr", 40_000, {}, "1", 1_000_000, 0, 12),
    ("olh", 64, {"hash_bits": 2}, "0.2", 10_000, 0, 8),
    ("ss", 12, {}, "0.5", 20_000, 2_000, 8),
    ("grr", 4, {}, "0.9", 10_000, 0, 3),  # the cap is reached
]


def bisected(build: Any, goal: float, people: int, fakes: int, cap: int) -> Decimal:
    """By halving on the fine grid alone."""
    low, high = int(goal * 1000), 1000 * cap + 1
    while high - low > 1:
        middle = (low + high) // 2
        crowd = ShuffledCrowd(build(Decimal(middle) / 1000), people, fakes)
        if crowd.delta(goal, FINE_GRID) <= 1e-8:
            low = middle
        else:
            high = middle
    return Decimal(low) / 1000


@pytest.mark.parametrize("case", CASES, ids=str)
def test_two_grids_find_what_the_fine_one_finds(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name, size, options, goal, people, fakes, cap = case
    build = oracle_mixture(name, size, **options)
    right = bisected(build, float(goal), people, fakes, cap)
    looked = {COARSE_GRID: 0, FINE_GRID: 0}
    delta = ShuffledCrowd.delta

    def counted(crowd: ShuffledCrowd, epsilon: float, points: int = FINE_GRID) -> float:
        looked[points] += 1
        return delta(crowd, epsilon, points)

    monkeypatch.setattr(ShuffledCrowd, "delta", counted)
    assert local_epsilon_for(build, goal, 1e-8, people, cap, fakes) == right
    assert looked[FINE_GRID] <= 9
    looked[FINE_GRID] = 0
    rough = local_epsilon_for(build, goal, 1e-8, people, cap, fakes, rough=True)
    assert looked[FINE_GRID] == 0
    assert Decimal("0.98") * right <= rough <= right


@pytest.mark.parametrize("last", [1, 5, 37, 40, 41, 57, 998, 999, 1000])
def test_a_search_around_a_guess_finds_the_last_number(last: int) -> None:
    for near in (1, 40, 995, 999):
        assert solver._refined(1, near, 1000, lambda number: number <= last) == last
