"""Covering designs hold what they promise, random views hold every attribute."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.marginals.models import designs
from sottovoce.questions.marginals.models.designs import cover, drawn, least_blocks


def is_cover(blocks: tuple[tuple[int, ...], ...], points: int, size: int, strength: int) -> bool:
    held = {own for block in blocks for own in combinations(block, strength)}
    fits = all(
        block == tuple(sorted(set(block))) and len(block) == min(size, points) for block in blocks
    )
    return fits and held == set(combinations(range(points), strength))


@pytest.mark.parametrize(
    ("points", "size", "strength", "blocks"),
    [
        (8, 4, 3, 14),  # the Steiner system S(3, 4, 8)
        (16, 4, 3, 140),
        (8, 4, 2, 6),
        (8, 3, 3, 56),
        (6, 8, 3, 1),
        (7, 2, 1, 4),
    ],
)
def test_known_designs_are_as_small_as_can_be(
    points: int, size: int, strength: int, blocks: int
) -> None:
    found = cover(points, size, strength)
    assert found is not None
    assert is_cover(found, points, size, strength)
    assert len(found) == blocks


@pytest.mark.parametrize(
    ("points", "size", "strength"),
    [(8, 5, 3), (9, 4, 3), (16, 6, 3), (10, 5, 4), (13, 4, 2), (32, 8, 2), (32, 12, 3)],
)
def test_searched_designs_cover_in_less_than_twice_the_bound(
    points: int, size: int, strength: int
) -> None:
    found = cover(points, size, strength, 500)
    assert found is not None
    assert is_cover(found, points, size, strength)
    assert (
        least_blocks(points, size, strength)
        <= len(found)
        <= 2 * least_blocks(points, size, strength) + 15
    )


def test_both_searches_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    best = designs._greedy(10, 4, 3, 1000)
    monkeypatch.setattr(designs, "MOST_INCIDENCES", 0)
    grown = designs._greedy(10, 4, 3, 1000)
    assert best is not None
    assert grown is not None
    assert best != grown
    assert is_cover(best, 10, 4, 3)
    assert is_cover(grown, 10, 4, 3)


def test_too_many_blocks_are_seen_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object) -> None:
        raise AssertionError("it searched")

    cover.cache_clear()
    monkeypatch.setattr(designs, "_greedy", search)
    assert cover(32, 8, 6) is None
    assert cover(64, 20, 12, 10**6) is None
    assert cover(16, 5, 3, 60) is None


def test_impossible_designs_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"strength \(5\) must lie between 1 and size \(4\)"):
        cover(8, 4, 5)


@pytest.mark.parametrize(
    ("points", "size", "count"),
    [(32, 3, 256), (32, 2, 65), (9, 4, 1), (16, 8, 60), (7, 3, 30), (32, 2, 16)],
)
def test_random_views_hold_every_attribute_and_are_the_same_every_time(
    points: int, size: int, count: int
) -> None:
    views = drawn(points, size, count)
    assert len(set(views)) == len(views) == max(count, -(-points // size))
    assert {place for view in views for place in view} == set(range(points))
    assert all(view == tuple(sorted(set(view))) and len(view) == size for view in views)
    drawn.cache_clear()
    assert drawn(points, size, count) == views


def test_no_more_views_than_there_are() -> None:
    assert drawn(8, 3, 1000) == tuple(combinations(range(8), 3))
    assert len(drawn(8, 3, 1000)) == comb(8, 3)
    assert drawn(3, 5, 2) == ((0, 1, 2),)
