"""Elementary symmetric polynomials, beside the sums over all choices that define them."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest

from sottovoce.protocol.families.choices import Choices, elementary


@pytest.mark.parametrize("weights", [(), (5,), (3, 1, 4, 1, 5, 9), (2**60, 3, 2**61)])
def test_they_are_the_sums_over_all_choices(weights: tuple[int, ...]) -> None:
    sums = elementary(weights, 4)
    assert sums == [sum(prod(few) for few in combinations(weights, order)) for order in range(5)]
    assert [Choices(weights, order).total for order in range(1, 5)] == sums[1:]


def test_columns_of_values_are_taken_at_once() -> None:
    values = np.random.default_rng(1).random((5, 8))  # (values, columns)
    together = elementary(list(values), 3)
    for column in range(8):
        singly = elementary(values[:, column].tolist(), 3)
        assert [float(np.broadcast_to(sums, 8)[column]) for sums in together] == singly
