"""Intervals of two dimensions: a prior so wide that reports decide, beside plain matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.models.planes import part_sums
from sottovoce.questions.queries.models.several import SeveralTable, fit_several, line_rows
from sottovoce.questions.queries.models.weights import fit_weighted
from sottovoce.questions.queries.models.wide import (
    CODE_SCALE,
    EVEN_PART,
    PRODUCT_PART,
    UNTOLD_SCALE,
    WIDE_SCALE,
)
from tests.grid_crowds import Asked, hear, line_grids, shifted_edges

SIZE = 16
PEOPLE = 50_000


def asked_of_two() -> list[Asked]:
    """Both axes by themselves and together, in two shifts."""
    grids = line_grids(SIZE, (4, SIZE), shifts=2)
    grids += [((1,), edges, share) for _, edges, share in grids]
    for count in (4, 8):
        width = SIZE // count
        for shift in (0, width // 2):
            edges = shifted_edges(SIZE, width, shift)
            grids.append(((0, 1), (edges, edges), 1.0))
    return grids


def crowd(seed: int) -> tuple[Integers, list[GridEvidence]]:
    """People near one diagonal, who are hard for a model of independent dimensions."""
    rng = np.random.default_rng([41, seed])
    codes = np.arange(SIZE)
    shape = np.exp(-np.abs(codes[:, None] - codes) / 1.5)
    people = rng.multinomial(PEOPLE, (shape / shape.sum()).ravel()).reshape(SIZE, SIZE)
    evidence = hear(people, asked_of_two(), 1.0, rng)
    return people, [replace(grid, cohort=place) for place, grid in enumerate(evidence)]


def ranges(rng: np.random.Generator, count: int) -> list[tuple[Floats, Floats]]:
    """Rectangles with random ends, by weights of codes."""
    found = []
    for _ in range(count):
        ends = np.sort(rng.integers(0, SIZE + 1, (2, 2)), axis=1)
        codes = np.arange(SIZE)
        x, y = ((codes >= low) & (codes < max(high, low + 1)) for low, high in ends)
        found.append((x.astype(float), y.astype(float)))
    return found


def fitted(evidence: list[GridEvidence]) -> SeveralTable:
    return fit_several(evidence, (SIZE, SIZE), (True, True))


def test_answers_are_those_of_plain_matrices():
    _, evidence = crowd(0)
    table = fitted(evidence)
    chosen = ranges(np.random.default_rng(1), 5)
    found = table.joint([{0: x, 1: y} for x, y in chosen]).unbiased
    assert found is not None
    # 16 parts are single codes: blocks are cells of the whole table
    whole = table.tables[0, 1][0]
    masses = whole.ravel()
    product = np.outer(table.rows[0][0], table.rows[1][0]).ravel()
    mixed = (1 - PRODUCT_PART - EVEN_PART) * masses
    mixed += PRODUCT_PART * product / product.sum() + EVEN_PART / SIZE**2
    rows, heard, precisions = [], [], []
    for grid in evidence:
        edges = [np.array([0, SIZE])] * 2
        for axis, starts in zip(grid.axes, grid.edges, strict=True):
            edges[axis] = starts
        for i, low in enumerate(edges[0][:-1]):
            for j, left in enumerate(edges[1][:-1]):
                inside = np.zeros((SIZE, SIZE))
                inside[low : edges[0][i + 1], left : edges[1][j + 1]] = 1.0
                rows.append(inside.ravel())
    wide = table._wide(0, 1)
    held = np.array(rows)
    heard = np.concatenate([grid.values.ravel() for grid in evidence])
    precisions = wide._precisions
    # any prior over logits is one over masses: its covariance is s^2 L L'
    slopes = wide._slopes.T  # (blocks in their order, logits)
    order = wide._rows * SIZE + wide._columns
    prior = np.zeros((SIZE**2, SIZE**2))
    prior[np.ix_(order, order)] = WIDE_SCALE**2 * slopes @ slopes.T
    assert np.abs(prior.sum(axis=0)).max() < 1e-9  # masses add up to 1
    assert np.diag(prior)[mixed.argmax()] > np.diag(prior)[mixed.argmin()]
    gain = prior @ held.T @ np.linalg.inv(held @ prior @ held.T + np.diag(1 / precisions))
    wanted = masses + gain @ (heard - held @ masses)
    # masses deviate by u^2 L L', and as much of it is left as is not told; cells err by V
    untold = np.eye(SIZE**2) - gain @ held
    left = untold @ (prior * (UNTOLD_SCALE / WIDE_SCALE) ** 2) @ untold.T
    left += gain @ np.diag(1 / precisions) @ gain.T
    sums = np.stack([np.outer(x, y).ravel() for x, y in chosen], axis=1)
    assert found.values == pytest.approx(sums.T @ wanted, abs=1e-6)
    scale = np.abs(np.diag(sums.T @ left @ sums)).max()
    assert found.covariance == pytest.approx(sums.T @ left @ sums, abs=1e-5 * scale)


def test_a_selection_by_one_of_two_dimensions_errs_as_the_dimension_by_itself():
    _, evidence = crowd(7)
    table = fitted(evidence)
    half = (np.arange(SIZE) < SIZE // 2).astype(float)
    stated = table.joint([{0: half}]).std_errors[0]
    alone = (line_rows(table.lines[0])[1:] @ half).std(ddof=1)
    assert stated == pytest.approx(alone)
    # draws of the pair also stray by what it does not know of both dimensions together
    pair = part_sums(half, table._halving(0)) @ table._blocks[0, 1][1:].sum(axis=2).T
    assert pair.std(ddof=1) > 1.2 * alone


def test_ranges_that_cut_a_part_err_by_what_is_inside():
    rng = np.random.default_rng(43)
    size = 64  # in 32 parts of two codes
    people = rng.multinomial(10**9, np.full(size * size, 1 / size**2)).reshape(size, size)
    asked: list[Asked] = []
    for axes in ((0,), (1,), (0, 1)):
        asked.append((axes, tuple(shifted_edges(size, 2, 0) for _ in axes), 1.0))
    table = fit_several(hear(people, asked, 4.0, rng), (size, size), (True, True))
    codes = np.arange(size)
    whole, cut = (codes < 32).astype(float), (codes < 31).astype(float)
    wide = table._wide(0, 1)

    def inside(*selections: tuple[Floats, Floats]) -> Floats:
        weights = [np.stack([each[axis] for each in selections]) for axis in (0, 1)]
        return wide._inside(weights, [wide._means(axis, each) for axis, each in enumerate(weights)])

    assert inside((whole, whole)) == pytest.approx(0.0)
    # one part of x is cut: its code that is left out errs in 16 blocks of y
    found = inside((cut, whole))
    block = 1 / 32**2
    shift = np.sqrt(2) * block * 0.25 * 2 * CODE_SCALE  # two codes of one half each
    assert found[0, 0] == pytest.approx(16 * shift**2, rel=0.05)
    # what one selection has too much, the rest of the part has too little
    both = inside((cut, whole), (whole - cut, whole))
    assert both == pytest.approx(found[0, 0] * np.array([[1, -1], [-1, 1]]))


def test_intervals_of_two_dimensions_hold_for_a_crowd_unlike_the_prior():
    held, narrow, total = 0, 0, 0
    for seed in range(30):
        people, evidence = crowd(seed)
        table = fitted(evidence)
        x, y = ranges(np.random.default_rng([2, seed]), 1)[0]
        truth = float(x @ people @ y) / PEOPLE
        joint = table.joint([{0: x, 1: y}])
        (low,), (high,) = joint.interval()
        assert low <= joint.values[0] <= high
        held += low <= truth <= high
        reach = (high - low) / 6
        narrow += abs(truth - (low + high) / 2) <= reach
        total += 1
    least = binom.ppf(1e-4, total, 0.95)
    assert held >= least
    # intervals of a third of the width would be found out
    assert narrow < least


def test_a_weight_of_all_people_alike_has_the_counts_intervals():
    _, evidence = crowd(3)
    table = fitted(evidence)
    x, y = ranges(np.random.default_rng(4), 1)[0]
    heavier = [replace(grid, people=grid.people / 2) for grid in evidence]
    found = fit_weighted(table, heavier, [True, True])
    count, weight = (each.joint([{0: x, 1: y}]).unbiased for each in (table, found))
    assert count is not None
    assert weight is not None
    assert weight.values == pytest.approx(count.values, abs=1e-3)
    # half of the people have all of the weight
    assert weight.covariance == pytest.approx(2 * count.covariance)
    # reports of other grids are solved by themselves
    fewer = fit_weighted(table, heavier[1:], [True, True])
    alone = fewer.joint([{0: x, 1: y}]).unbiased
    assert alone is not None
    assert alone.values == pytest.approx(count.values, abs=0.1)


def test_an_interval_does_not_depend_on_what_is_asked_beside():
    _, evidence = crowd(5)
    table = fitted(evidence)
    (one, other) = ranges(np.random.default_rng(6), 2)
    alone = table.joint([{0: one[0], 1: one[1]}]).interval()
    both = table.joint([{0: x, 1: y} for x, y in (one, other)]).interval()
    assert alone[0][0] == pytest.approx(both[0][0])
    assert alone[1][0] == pytest.approx(both[1][0])


def test_two_of_three_dimensions_in_fewer_parts_have_intervals_too():
    rng = np.random.default_rng(42)
    sizes = (64, 5, 3)
    people = rng.multinomial(10**7, np.full(64 * 5 * 3, 1 / 960)).reshape(sizes)
    asked: list[Asked] = []
    for axes in ((0, 1), (0, 2), (1, 2)):
        edges = tuple(shifted_edges(sizes[axis], max(1, sizes[axis] // 8), 0) for axis in axes)
        asked.append((axes, edges, 1.0))
    table = fit_several(hear(people, asked, 4.0, rng), sizes, (True, False, False))
    x, y = (np.arange(64) < 32).astype(float), np.eye(5)[2]
    truth = float(np.einsum("abc,a,b->", people, x, y)) / 10**7
    joint = table.joint([{0: x, 1: y}])
    (low,), (high,) = joint.interval()
    assert low < truth < high < low + 0.02
    # of three dimensions at once there is none
    assert table.joint([{0: x, 1: y, 2: np.eye(3)[0]}]).unbiased is None
