"""Covering designs hold what they promise, random views hold every attribute."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.marginals.models import designs
from sottovoce.questions.marginals.models.designs import (
    all_sets,
    completed,
    cover,
    drawn,
    least_blocks,
    ranks,
)
from sottovoce.questions.marginals.workload import Places, random_sets


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


# -- fast paths beside plain ones


@pytest.mark.parametrize(("points", "size"), [(1, 1), (5, 1), (5, 5), (9, 4), (12, 2)])
def test_sets_are_listed_and_numbered_in_order(points: int, size: int) -> None:
    listed = list(combinations(range(points), size))
    assert [tuple(row) for row in all_sets(points, size).tolist()] == listed
    for strength in range(1, size + 1):
        number = {own: place for place, own in enumerate(combinations(range(points), strength))}
        plain = [[number[own] for own in combinations(block, strength)] for block in listed]
        assert ranks(np.array(listed), points, strength).tolist() == plain


@pytest.mark.parametrize(("points", "size"), [(2, 1), (6, 6), (9, 8), (16, 4), (50, 3), (300, 7)])
def test_random_sets_are_those_that_the_generator_chooses(points: int, size: int) -> None:
    one = np.random.Generator(np.random.PCG64(7))
    other = np.random.Generator(np.random.PCG64(7))
    found = random_sets(points, size, 400, one)
    chosen = [sorted(other.choice(points, size, replace=False).tolist()) for _ in range(400)]
    assert found.tolist() == chosen
    assert one.integers(1 << 60) == other.integers(1 << 60)


def plain_grown(points: int, size: int, strength: int) -> list[Places]:
    """Each block grows from the first set not yet covered, by the point that completes the most."""
    uncovered = dict.fromkeys(combinations(range(points), strength))
    chosen = []
    while uncovered:
        block = next(iter(uncovered))
        while len(block) < size:
            gains = {}
            for point in set(range(points)) - set(block):
                subsets = combinations(block, strength - 1)
                gains[point] = sum(tuple(sorted((*own, point))) in uncovered for own in subsets)
            best = min(gains, key=lambda point: (-gains[point], point))
            block = tuple(sorted((*block, best)))
        chosen.append(block)
        for own in combinations(block, strength):
            uncovered.pop(own, None)
    return chosen


@pytest.mark.parametrize(
    ("points", "size", "strength"), [(9, 4, 2), (13, 5, 2), (10, 4, 3), (12, 6, 4), (7, 6, 2)]
)
def test_blocks_grow_by_the_point_that_adds_the_most(points: int, size: int, strength: int) -> None:
    plain = plain_grown(points, size, strength)
    assert designs._grown_blocks(points, size, strength, 1000) == plain
    assert designs._grown_blocks(points, size, strength, len(plain)) == plain
    assert designs._grown_blocks(points, size, strength, len(plain) - 1) is None


@pytest.mark.parametrize(("points", "size", "strength"), [(9, 4, 2), (9, 5, 3), (12, 3, 2)])
def test_the_best_block_is_taken_each_time(points: int, size: int, strength: int) -> None:
    uncovered = set(combinations(range(points), strength))
    chosen = []
    while uncovered:
        blocks = list(combinations(range(points), size))
        gains = [sum(own in uncovered for own in combinations(block, strength)) for block in blocks]
        chosen.append(blocks[gains.index(max(gains))])
        uncovered -= set(combinations(chosen[-1], strength))
    assert designs._best_blocks(points, size, strength, 1000) == chosen
    assert designs._best_blocks(points, size, strength, len(chosen) - 1) is None


@pytest.mark.parametrize("seed", range(12))
def test_views_are_completed_by_the_points_that_add_the_most(seed: int) -> None:
    draws = np.random.default_rng(seed)
    points, size = int(draws.integers(3, 10)), int(draws.integers(1, 5))
    views = [(0,), (0, 1)][: int(draws.integers(0, 3))]
    every = [*combinations(range(points), 1), *combinations(range(points), 2)]
    parts = [part for part in every if draws.random() < 0.6 and (size > 1 or len(part) == 1)]
    small = [own for view in views for count in (1, 2) for own in combinations(view, count)]
    pairs_first = sorted((part for part in parts if part not in small), key=len, reverse=True)
    uncovered = dict.fromkeys(pairs_first)
    added = []
    while uncovered:
        block = next(iter(uncovered))
        while len(block) < size:
            gains = {}
            for point in set(range(points)) - set(block):
                gains[point] = sum(tuple(sorted((own, point))) in uncovered for own in block)
            best = min(gains, key=lambda point: (-gains[point], point), default=None)
            if best is None or not gains[best]:
                break
            block = tuple(sorted((*block, best)))
        added.append(block)
        for count in (1, 2):
            for own in combinations(block, count):
                uncovered.pop(own, None)
    assert completed(points, size, views, parts) == tuple(sorted({*views, *added}))
