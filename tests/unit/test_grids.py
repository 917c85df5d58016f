"""Grids as an encoding: intervals of codes, by one record and by the column."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol.encodings import ENCODINGS, Cells, Grid
from tests.statistics import NO_COINS

SCHEMA = sv.Schema(age=sv.Ordinal(10, 19), state=sv.Categorical("abcde"), yes=sv.Boolean())


def intervals(size: int, width: int, shift: int) -> list[int]:
    """By hand: a new interval begins wherever code + shift is a multiple of the width."""
    found, place = [], 0
    for code in range(size):
        if code and (code + shift) % width == 0:
            place += 1
        found.append(place)
    return found


@pytest.mark.parametrize("width", range(1, 10))
def test_intervals_are_those_counted_by_hand(width: int) -> None:
    for shift in range(width):
        grid = Grid.of(SCHEMA, ["age"], [width], [shift])
        expected = intervals(10, width, shift)
        assert [grid.encode({"age": code}, NO_COINS) for code in range(10)] == expected
        assert grid.shape == (max(expected) + 1,)
        (edges,) = grid.edges
        assert np.repeat(np.arange(grid.size), np.diff(edges)).tolist() == expected


def test_the_last_attribute_varies_fastest_and_columns_agree() -> None:
    grid = Grid.of(SCHEMA, ["age", "state"], [4, 2], [1, 0])
    ages, states = np.meshgrid(np.arange(10), np.arange(5), indexing="ij")
    codes = {"age": ages.ravel().astype(np.uint64), "state": states.ravel().astype(np.uint64)}
    column = grid.encode_columns(codes, seed=1)
    one_by_one = [
        grid.encode({"age": int(age), "state": int(state)}, NO_COINS)
        for age, state in zip(codes["age"], codes["state"], strict=True)
    ]
    assert column.tolist() == one_by_one
    assert column.dtype == np.uint64
    assert one_by_one == [
        3 * first + second for first in intervals(10, 4, 1) for second in intervals(5, 2, 0)
    ]


def test_a_grid_of_width_one_is_the_table() -> None:
    grid, cells = Grid.of(SCHEMA, ["state", "yes"], [1, 1]), Cells.of(SCHEMA, "state", "yes")
    for state in range(5):
        for yes in range(2):
            record = {"state": state, "yes": yes}
            assert grid.encode(record, NO_COINS) == cells.encode(record, NO_COINS)


def test_a_grid_is_read_as_it_is_written() -> None:
    grid = Grid.of(SCHEMA, ["age", "yes"], [4, 1], [3, 0])
    written = json.loads(json.dumps(grid.to_json()))
    assert written == {
        "kind": "grid",
        "attributes": ["age", "yes"],
        "widths": [4, 1],
        "shifts": [3, 0],
    }
    assert Grid.from_json(written, SCHEMA) == grid
    assert Grid in ENCODINGS


BAD: list[tuple[dict[str, Any], str]] = [
    ({"attributes": []}, "one or more attributes"),
    ({"attributes": ["age", "age"]}, "each once"),
    ({"widths": [4]}, "a width and a shift for each"),
    ({"shifts": [0, 0, 0]}, "a width and a shift for each"),
    ({"widths": [0, 1]}, r"width \(0\) must lie between 1"),
    ({"widths": [4, True]}, "must be a whole number"),
    ({"shifts": [4, 0]}, r"shift \(4\) must lie between 0 and 3"),
    ({"shifts": [-1, 0]}, r"shift \(-1\) must lie between 0 and 3"),
    ({"widths": [10, 1]}, r"width \(10\) must cut the 10 values"),
    ({"attributes": ["age", "nobody"]}, "not in the schema"),
]


@pytest.mark.parametrize(("change", "rule"), BAD)
def test_bad_grids_are_refused(change: dict[str, Any], rule: str) -> None:
    good = {"attributes": ["age", "yes"], "widths": [4, 1], "shifts": [0, 0]}
    Grid.from_json(good, SCHEMA)
    with pytest.raises(sv.InvalidInput, match=rule):
        Grid.from_json(good | change, SCHEMA)
