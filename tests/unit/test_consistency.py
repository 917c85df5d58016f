"""Consistency of overlapping tables against the step-by-step averaging it stands for."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing.consistency import Overlap, contrasts, inverse_contrasts

SIZES = (2, 3, 2, 4, 2)
VIEWS = [(0, 1), (1, 2, 3), (0, 3), (2, 4), (1, 3, 4), (0, 1, 4)]
WEIGHTS = np.array([1.0, 3.0, 0.5, 2.0, 1.5, 4.0])


def noisy(seed: int, sizes: Any = SIZES, views: Any = VIEWS, scale: float = 0.05) -> list[Any]:
    draws = np.random.default_rng(seed)
    truth = draws.dirichlet(np.ones(np.prod(sizes))).reshape(sizes)
    out = []
    for view in views:
        table = truth.sum(axis=tuple(place for place in range(len(sizes)) if place not in view))
        out.append(table + draws.normal(0, scale, table.shape))
    return out


def sums(table: Any, view: Any, own: Any) -> Any:
    return table.sum(axis=tuple(axis for axis, place in enumerate(view) if place not in own))


def step_by_step(tables: list[Any], sizes: Any, views: Any, weights: Any) -> list[Any]:
    """zhang2018calm, section 4.4 as it is written: one shared set after another, by size, from the
    total on.
    """
    tables = [table + (1 - table.sum()) / table.size for table in tables]
    shared = {
        own
        for view in views
        for count in range(1, len(view) + 1)
        for own in combinations(view, count)
    }
    for own in sorted(shared, key=len):
        holders = [number for number, view in enumerate(views) if set(own) <= set(view)]
        cells = np.prod([sizes[place] for place in own])
        counts = [tables[number].size / cells for number in holders]
        shares = np.array(
            [weights[number] / count for number, count in zip(holders, counts, strict=True)]
        )
        copies = [sums(tables[number], views[number], own) for number in holders]
        mean = sum(share * copy for share, copy in zip(shares / shares.sum(), copies, strict=True))
        for number, count, copy in zip(holders, counts, copies, strict=True):
            shape = [sizes[place] if place in own else 1 for place in views[number]]
            tables[number] = tables[number] + ((mean - copy) / count).reshape(shape)
    return tables


def test_agrees_with_the_step_by_step_averages() -> None:
    tables = noisy(1)
    overlap = Overlap(SIZES, VIEWS)
    fast = overlap.unpack(overlap.agree(overlap.pack(tables), WEIGHTS))
    for one, other in zip(fast, step_by_step(tables, SIZES, VIEWS, WEIGHTS), strict=True):
        np.testing.assert_allclose(one, other.ravel(), atol=1e-12)


def test_all_shared_sums_agree_afterwards_and_the_total_is_one() -> None:
    overlap = Overlap(SIZES, VIEWS)
    done = overlap.unpack(overlap.agree(overlap.pack(noisy(2)), WEIGHTS))
    tables = [table.reshape(shape) for table, shape in zip(done, overlap.shapes, strict=True)]
    for (one, first), (two, second) in combinations(zip(VIEWS, tables, strict=True), 2):
        shared = tuple(sorted(set(one) & set(two)))
        np.testing.assert_allclose(sums(first, one, shared), sums(second, two, shared), atol=1e-12)
    assert all(table.sum() == pytest.approx(1) for table in tables)


def test_consistent_tables_are_left_alone() -> None:
    overlap = Overlap(SIZES, VIEWS)
    once = overlap.agree(overlap.pack(noisy(3)), WEIGHTS)
    np.testing.assert_allclose(overlap.agree(once, WEIGHTS[::-1].copy()), once, atol=1e-12)


def test_the_weights_give_the_least_variance() -> None:
    """One attribute in views of 2 x 2 and 2 x 8 cells with other group sizes: inverse variances, no
    other weights.
    """
    sizes, views = (2, 2, 8), [(0, 1), (0, 2)]
    overlap = Overlap(sizes, views)
    draws = np.random.default_rng(4)
    cell_variance = np.array([0.02, 0.01])
    noise = np.concatenate(
        [draws.normal(0, 0.02**0.5, (4000, 4)), draws.normal(0, 0.01**0.5, (4000, 16))], axis=1
    )

    def variance(weights: Any) -> float:
        done = overlap.agree(noise, weights)[:, overlap.slices[0]].reshape(-1, 2, 2)
        return float((done[:, 0].sum(1) - done[:, 1].sum(1)).var())

    best = variance(1 / cell_variance)
    # difference of the two sums: 4 cells of 0.02 and 16 of 0.01, averaged by inverse variance
    assert best == pytest.approx(1 / (1 / 0.08 + 1 / 0.16), rel=0.1)
    assert best < 0.95 * variance(np.array([1.0, 5.0]))


def test_rows_are_repaired_as_one_by_one() -> None:
    overlap = Overlap(SIZES, VIEWS)
    rows = np.stack([overlap.pack(noisy(seed)) for seed in range(4)])
    together = overlap.repair(rows, WEIGHTS)
    for row, done in zip(rows, together, strict=True):
        np.testing.assert_allclose(done, overlap.repair(row, WEIGHTS), atol=1e-12)


def test_repaired_tables_are_non_negative_and_all_but_consistent() -> None:
    overlap = Overlap(SIZES, VIEWS)
    done = overlap.repair(overlap.pack(noisy(5)), WEIGHTS, rounds=50)
    assert done.min() >= 0
    np.testing.assert_allclose([table.sum() for table in overlap.unpack(done)], 1)
    assert np.abs(overlap.agree(done, WEIGHTS) - done).max() < 2e-3


def test_any_known_table_comes_from_the_shared_coefficients() -> None:
    overlap = Overlap(SIZES, VIEWS)
    cells = overlap.agree(overlap.pack(noisy(6)), WEIGHTS)
    shared = overlap.averages(cells, overlap.averager(WEIGHTS))
    table = overlap.unpack(cells)[4].reshape(3, 4, 2)  # over places 1, 3, 4
    np.testing.assert_allclose(overlap.table(shared, (1, 4)), table.sum(1).ravel(), atol=1e-12)
    np.testing.assert_allclose(
        overlap.table(np.stack([shared, shared]), (3,))[1], table.sum((0, 2)), atol=1e-12
    )
    assert overlap.knows((1, 4))
    assert not overlap.knows((0, 2))


def test_a_view_without_weight_says_nothing() -> None:
    overlap = Overlap((2, 2), [(0,), (0, 1)])
    tables = [np.array([0.9, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])]
    one, _ = overlap.unpack(overlap.agree(overlap.pack(tables), np.array([0.0, 1.0])))
    np.testing.assert_allclose(one, [0.3, 0.7])


def test_contrasts_invert() -> None:
    for size in (2, 3, 7):
        np.testing.assert_allclose(
            contrasts(size) @ inverse_contrasts(size), np.eye(size), atol=1e-12
        )


def test_no_views_is_refused() -> None:
    with pytest.raises(InvalidInput, match="views must be one or more"):
        Overlap((2, 2), [])
