"""Tables as arrays and data frames."""

from __future__ import annotations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.oracles import Noise
from sottovoce.results.estimate import Table
from tests.known import known

COUNTS = np.arange(1.0, 25.0).reshape(2, 3, 4)
NOISE = Noise(1.0, 0.0)


def test_an_array_has_an_axis_for_each_attribute() -> None:
    shares = COUNTS / COUNTS.sum()
    table = known(shares, people=300).marginal("a", "b", "c")
    assert np.allclose(table.to_numpy(), shares)
    assert table.to_numpy().shape == (2, 3, 4)
    turned = known(shares, people=300).marginal("c", "a")
    assert np.allclose(turned.to_numpy(), shares.sum(axis=1).T)
    one = known(shares, people=300).marginal("b")
    assert np.allclose(one.to_numpy(), shares.sum(axis=(0, 2)))
    one.to_numpy()[0] = 9  # a copy
    assert one.values[0] < 1


def test_a_cross_table() -> None:
    shares = COUNTS / COUNTS.sum()
    table = known(shares, people=300).marginal("a", "b")
    frame = table.to_pandas()
    assert frame.index.names == ["a", "b"]
    crossed = frame["frequency"].unstack()
    assert crossed.shape == (2, 3)
    assert np.allclose(crossed.to_numpy(), table.to_numpy())


def test_cells_in_any_order_and_not_all() -> None:
    labels = [("y", 1), ("x", 1), ("x", 2), ("y", 2)]
    table = Table(("a", "b"), labels, np.array([0.1, 0.2, 0.3, 0.4]), np.ones(4), 9, NOISE)
    assert table.to_numpy().tolist() == [[0.1, 0.4], [0.2, 0.3]]
    part = Table(("a", "b"), labels[:3], np.array([0.1, 0.2, 0.3]), np.ones(3), 9, NOISE)
    with pytest.raises(sv.InvalidInput, match="lists 3 of 4 cells"):
        part.to_numpy()
