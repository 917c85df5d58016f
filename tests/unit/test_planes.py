"""Two and more dimensions, and weights: every fast sum beside the plain one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sottovoce.kernels import planes as kernel
from sottovoce.questions.queries.evidence import GridEvidence
from sottovoce.questions.queries.models.line import fit_line
from sottovoce.questions.queries.models.planes import (
    halving_of,
    product_logits,
    rake,
    split_plane,
)
from sottovoce.questions.queries.models.several import fit_several
from sottovoce.questions.queries.models.weights import fit_weighted
from tests.grid_crowds import Asked, hear, line_grids, shifted_edges

SIZES = [(2, 2), (8, 8), (5, 3), (16, 4), (7, 1)]


def codes_of(tree, blocks: int, sizes):
    """The block of every pair of codes, (size, size)."""
    owner = np.full(sizes, -1)
    for node in range(blocks, 2 * blocks):
        x0, x1, y0, y1 = tree.bounds[node]
        assert (owner[x0:x1, y0:y1] == -1).all()
        owner[x0:x1, y0:y1] = node
    return owner


@pytest.mark.parametrize("sizes", SIZES)
def test_blocks_hold_every_pair_of_codes_once_and_independent_axes_have_no_deviation(sizes):
    rng = np.random.default_rng([1, *sizes])
    x, y = (rng.dirichlet(np.ones(size)) for size in sizes)
    tree = split_plane(halving_of(sizes[0], 8), halving_of(sizes[1], 8))
    blocks = tree.is_split.size
    owner = codes_of(tree, blocks, sizes)
    assert (owner > 0).all()
    masses = np.ones(2 * blocks)
    kernel.fill_plane_masses(product_logits(tree, x, y), np.zeros(blocks), masses)
    table = np.outer(x, y)
    for node in range(blocks, 2 * blocks):
        assert masses[node] == pytest.approx(table[owner == node].sum(), abs=1e-9)


@pytest.mark.parametrize("sizes", SIZES[:4])
def test_gradient_and_information_are_the_definition(sizes):
    rng = np.random.default_rng([2, *sizes])
    tree = split_plane(halving_of(sizes[0], 8), halving_of(sizes[1], 8))
    blocks = tree.is_split.size
    x, y = (rng.dirichlet(np.ones(size)) for size in sizes)
    base = product_logits(tree, x, y)
    logits = np.where(tree.is_split, rng.standard_normal(blocks), 0.0)
    # codes are segments; a block of more codes than one is spread evenly
    shares_x, shares_y = np.ones(sizes[0]), np.ones(sizes[1])
    ends = [np.sort(rng.integers(0, size + 1, (2, 12)), axis=0) for size in sizes]
    keep = (ends[0][0] < ends[0][1]) & (ends[1][0] < ends[1][1])
    cells = np.stack([*ends[0], *ends[1]], axis=1)[keep]
    values = rng.uniform(0, 1, len(cells))
    precisions = rng.uniform(50, 100, len(cells))

    def shares(moved):
        masses = np.ones(2 * blocks)
        table = np.zeros(sizes)
        corners = np.zeros((sizes[0] + 1, sizes[1] + 1))
        kernel.fill_plane_masses(base, moved, masses)
        kernel.fill_table(tree.bounds, masses, shares_x, shares_y, table)
        kernel.fill_corners(table, corners)
        held = np.array([table[a:b, c:d].sum() for a, b, c, d in cells])
        return masses, table, corners, held

    masses, table, corners, _ = shares(logits)
    gradient, information, pull = np.zeros(blocks), np.zeros(blocks), np.zeros(2 * blocks)
    kernel.fill_plane_gradient(
        cells, values, precisions, tree.bounds, masses, table, corners, pull, gradient
    )
    kernel.fill_plane_information(cells, precisions, tree.bounds, masses, corners, information)
    for node in np.flatnonzero(tree.is_split):
        step = np.zeros(blocks)
        step[node] = 1e-5
        up, down = shares(logits + step)[3], shares(logits - step)[3]
        rise = -0.5 * (precisions * ((values - up) ** 2 - (values - down) ** 2)).sum() / 2e-5
        plain = (precisions * ((up - down) / 2e-5) ** 2).sum()
        assert gradient[node] == pytest.approx(rise, rel=1e-4, abs=1e-5)
        assert information[node] == pytest.approx(plain, rel=1e-4, abs=1e-6)


def test_raked_tables_have_their_margins():
    rng = np.random.default_rng(3)
    tables = rng.uniform(0.5, 1, (4, 5, 3))
    rows, columns = rng.dirichlet(np.ones(5), 4), rng.dirichlet(np.ones(3), 4)
    raked = rake(tables, rows, columns, 60)
    assert raked.sum(axis=2) == pytest.approx(rows, abs=1e-6)
    assert raked.sum(axis=1) == pytest.approx(columns, abs=1e-9)
    # what two lines and two columns have in common stays: the cross ratio
    cross = tables[:, 0, 0] * tables[:, 1, 1] / tables[:, 0, 1] / tables[:, 1, 0]
    found = raked[:, 0, 0] * raked[:, 1, 1] / raked[:, 0, 1] / raked[:, 1, 0]
    assert found == pytest.approx(cross, rel=1e-6)


def plane_grids(axes: tuple[int, int], sizes, counts) -> list[Asked]:
    grids: list[Asked] = []
    for count in counts:
        edges = tuple(shifted_edges(sizes[axis], max(1, sizes[axis] // count), 0) for axis in axes)
        grids.append((axes, edges, 1.0))
    return grids


def renumbered(grids: list[Asked], axis: int) -> list[Asked]:
    return [((axis,), edges, share) for _, edges, share in grids]


def test_many_people_leave_no_doubt_about_two_dimensions():
    rng = np.random.default_rng(4)
    shape = rng.dirichlet(np.full(16 * 6, 0.3)).reshape(16, 6)
    people = rng.multinomial(10**8, shape.ravel()).reshape(16, 6)
    asked = plane_grids((0, 1), (16, 6), (2, 16))
    asked += renumbered(line_grids(16, (16,)), 0) + renumbered(line_grids(6, (6,)), 1)
    table = fit_several(hear(people, asked, 3.0, rng), (16, 6), (True, False))
    truth = people / people.sum()
    terms = [
        {0: np.eye(16)[x] + np.eye(16)[(x + 1) % 16], 1: np.eye(6)[y]}
        for x in (0, 5)
        for y in (1, 3)
    ]
    plain = [float(term[0] @ truth @ term[1]) for term in terms]
    joint = table.joint(terms)
    assert joint.values == pytest.approx(plain, abs=2e-3)
    assert joint.covariance == pytest.approx(joint.covariance.T)
    assert table.joint([{0: np.eye(16)[3]}]).values == pytest.approx([truth[3].sum()], abs=2e-3)
    assert table.joint([{}]).values == pytest.approx([1.0])


def test_three_dimensions_are_answered_from_their_pairs_by_maximum_entropy():
    rng = np.random.default_rng(5)
    # a chain a - b - c: given b the others are independent, which pairs determine
    b_given_a = rng.dirichlet(np.ones(4), 4)
    c_given_b = rng.dirichlet(np.ones(4), 4)
    shape = np.einsum("ab,bc->abc", b_given_a / 4, c_given_b)
    people = rng.multinomial(10**8, shape.ravel()).reshape(4, 4, 4)
    asked: list[Asked] = []
    for axes in ((0, 1), (0, 2), (1, 2)):
        asked += plane_grids(axes, (4, 4, 4), (2, 4))
    table = fit_several(hear(people, asked, 4.0, rng), (4, 4, 4), (False, False, False))
    inside = [np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0]), np.array([1.0, 1.0, 0, 1.0])]
    truth = np.einsum("abc,a,b,c->", people / people.sum(), *inside)
    joint = table.joint([dict(enumerate(inside))])
    assert joint.values[0] == pytest.approx(truth, abs=3e-3)
    # weights of many values: twice the weights are twice the answer
    weights = np.array([0.0, 1.0, 2.0, 3.0])
    one, two = table.joint(
        [{0: weights, 1: inside[1], 2: inside[2]}, {0: 2 * weights, 1: inside[1], 2: inside[2]}]
    ).values
    plain = np.einsum("abc,a,b,c->", people / people.sum(), weights, inside[1], inside[2])
    assert one == pytest.approx(plain, abs=1e-2)
    assert two == pytest.approx(2 * one)


def weighed(evidence: list[GridEvidence], values, people: float) -> list[GridEvidence]:
    return [
        replace(grid, values=cells, people=people * grid.people)
        for grid, cells in zip(evidence, values, strict=True)
    ]


def test_equal_weights_give_the_count_and_clear_weights_their_own_sums():
    rng = np.random.default_rng(6)
    size = 16
    people = rng.multinomial(10**7, np.full(size, 1 / size))
    asked = line_grids(size, (4, size))
    evidence = hear(people, asked, 4.0, rng)
    evidence = [replace(grid, cohort=place) for place, grid in enumerate(evidence)]
    table = fit_line(evidence, size)
    equal = weighed(evidence, [grid.values for grid in evidence], 1.0)
    assert fit_weighted(table, equal, [True]) is table
    # weights of 1, 2, 3 .. by code: the shares of the weight are known, noise is the count's
    weights = np.arange(1, size + 1) / (np.arange(1, size + 1).mean())
    truth = people * weights / (people * weights).sum()
    moved = []
    for grid in evidence:
        exact = np.add.reduceat(people / people.sum(), grid.edges[0][:-1])
        heavy = np.add.reduceat(truth, grid.edges[0][:-1])
        moved.append(grid.values + heavy - exact)
    found = fit_weighted(table, weighed(evidence, moved, 0.8), [True])
    assert found.joint([{0: row} for row in np.eye(size)]).values == pytest.approx(truth, abs=2e-3)
    # what the count is off, the weight is off too: draws go together, row by row
    half = {0: (np.arange(size) < 8).astype(float)}
    count, weight = table.joint([half]), found.joint([half])
    assert weight.covariance[0, 0] > count.covariance[0, 0]
    drawn = [each.draws @ half[0] for each in (table, found)]
    assert np.corrcoef(*drawn)[0, 1] > 0.3


def test_equal_weights_of_two_dimensions_give_the_count():
    rng = np.random.default_rng(7)
    people = rng.multinomial(10**5, np.full(64, 1 / 64)).reshape(8, 8)
    asked = plane_grids((0, 1), (8, 8), (2, 4)) + renumbered(line_grids(8, (8,)), 0)
    evidence = hear(people, asked + renumbered(line_grids(8, (8,)), 1), 1.0, rng)
    evidence = [replace(grid, cohort=place) for place, grid in enumerate(evidence)]
    table = fit_several(evidence, (8, 8), (True, True))
    assert fit_weighted(table, evidence, [True, True]) is table
    for grid in evidence:
        shares = table.cell_shares(grid)
        assert shares.sum() == pytest.approx(1.0, abs=1e-9)
        first = {axis: _inside(edges) for axis, edges in zip(grid.axes, grid.edges, strict=True)}
        assert shares.ravel()[0] == pytest.approx(table.joint([first]).values[0], abs=1e-9)
    heavier = [replace(grid, people=grid.people * 0.5) for grid in evidence]
    again = fit_weighted(table, heavier, [True, True])
    term = {0: (np.arange(8) < 3).astype(float), 1: (np.arange(8) > 3).astype(float)}
    near = table.joint([term])
    assert again.joint([term]).values == pytest.approx(near.values, abs=2 * near.std_errors[0])


def _inside(edges):
    """The weights of a grid's first interval."""
    return (np.arange(edges[-1]) < edges[1]).astype(float)
