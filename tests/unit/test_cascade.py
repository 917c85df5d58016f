"""A cascade of splits: every fast sum beside the plain one, and what the fit must find."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.kernels import cascade as kernel
from sottovoce.kernels import curvature
from sottovoce.questions.queries.evidence import GridEvidence
from sottovoce.questions.queries.models import posterior
from sottovoce.questions.queries.models.cascade import fit_cascade, node_masses
from sottovoce.questions.queries.models.cells import GridCells, cells_of
from sottovoce.questions.queries.models.line import fit_line, fit_unbiased
from sottovoce.questions.queries.models.posterior import (
    CascadeErrors,
    DeviationErrors,
    data_curvature,
    prior_curvature,
    tail_weights,
)
from sottovoce.questions.queries.models.splits import splits_of
from sottovoce.questions.queries.models.unbiased import LeastSquares
from tests.grid_crowds import hear, line_grids

SIZES = (2, 3, 8, 13, 16)


def one_grid(cells: int):
    """The number of the grid, whether its values add up, and how two of them err together, of cells
    that are all of one.
    """
    return np.zeros(cells, np.int64), np.ones(cells, bool), np.zeros(cells), np.zeros(cells)


def random_cells(size: int, rng: np.random.Generator, count: int = 12) -> GridCells:
    """Cells anywhere, with any values."""
    ends = np.sort(rng.integers(0, size + 1, (2, 3 * count)), axis=0)
    ends = ends[:, ends[0] < ends[1]][:, :count]
    cells = ends.shape[1]
    zero = np.zeros(cells)
    people = np.full(cells, 1e9)
    floors = rng.uniform(0.001, 0.01, cells)
    values = rng.uniform(0, 1, cells)
    return GridCells(values, floors, zero, people, *one_grid(cells), ends[0], ends[1])


def leaf_masses(size: int, logits):
    """By the definition: the product of the shares on the way down, (size,)."""
    splits = splits_of(size)
    masses = []
    for place in splits.places[:-1]:
        node = int(splits.leaves + place)
        mass = 1.0
        while node > 1:
            with np.errstate(over="ignore"):
                left = 1 / (1 + np.exp(-logits[node // 2]))
            mass *= left if node % 2 == 0 else 1 - left
            node //= 2
        masses.append(mass)
    return np.array(masses)


def random_logits(size: int, rng: np.random.Generator):
    splits = splits_of(size)
    logits = splits.base.copy()
    logits[splits.is_split] += rng.standard_normal(splits.is_split.sum())
    return logits


@pytest.mark.parametrize("size", [1, *SIZES, 100, 1000])
def test_every_code_has_a_leaf_and_equal_frequencies_are_the_base(size):
    splits = splits_of(size)
    leaves = np.empty((1, splits.leaves))
    kernel.fill_leaves(splits.base[None, :], leaves)
    assert leaves.sum() == pytest.approx(1.0, abs=1e-12)
    assert leaves[0, splits.places[:-1]] == pytest.approx(np.full(size, 1 / size), rel=1e-9)
    assert splits.is_split.sum() == size - 1
    for depth in range(splits.depths):
        held = splits.sizes[1 << depth : 2 << depth]
        assert held.max() - held.min() <= 1


@pytest.mark.parametrize("size", SIZES)
def test_masses_are_products_of_shares(size):
    logits = random_logits(size, np.random.default_rng([1, size]))
    splits = splits_of(size)
    leaves = np.empty((1, splits.leaves))
    kernel.fill_leaves(logits[None, :], leaves)
    assert leaves[0, splits.places[:-1]] == pytest.approx(leaf_masses(size, logits), abs=1e-14)


def likelihood(cells: GridCells, precisions, frequencies) -> float:
    return float(-0.5 * (precisions * (cells.values - cells.shares(frequencies)) ** 2).sum())


def slopes_by_differences(size: int, logits):
    """Of the codes' masses in the logits, (leaves, size)."""
    slopes = np.zeros((logits.size, size))
    for node in np.flatnonzero(splits_of(size).is_split):
        for sign in (1, -1):
            moved = logits.copy()
            moved[node] += sign * 1e-6
            slopes[node] += sign * leaf_masses(size, moved) / 2e-6
    return slopes


@pytest.mark.parametrize("size", SIZES)
def test_gradient_and_information_are_the_definition(size):
    rng = np.random.default_rng([2, size])
    splits = splits_of(size)
    logits = random_logits(size, rng)
    cells = random_cells(size, rng)
    precisions = 1 / cells.floors
    masses = np.empty(2 * splits.leaves)
    sums = np.empty(splits.leaves + 1)
    kernel.fill_masses(logits, masses)
    kernel.fill_sums(masses, sums)
    lows, highs = splits.places[cells.lows], splits.places[cells.highs]
    gradient, information = np.zeros(splits.leaves), np.zeros(splits.leaves)
    pull = np.zeros(2 * splits.leaves)
    kernel.fill_gradient(lows, highs, cells.values, precisions, masses, sums, pull, gradient)
    kernel.fill_information(lows, highs, precisions, masses, sums, information)
    slopes = slopes_by_differences(size, logits)
    for node in np.flatnonzero(splits.is_split):
        up, down = logits.copy(), logits.copy()
        up[node] += 1e-5
        down[node] -= 1e-5
        rise = likelihood(cells, precisions, leaf_masses(size, up))
        rise -= likelihood(cells, precisions, leaf_masses(size, down))
        assert gradient[node] == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-5)
        plain = sum(
            precision * slopes[node, low:high].sum() ** 2
            for low, high, precision in zip(cells.lows, cells.highs, precisions, strict=True)
        )
        assert information[node] == pytest.approx(plain, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_curvature_is_the_definition(size):
    rng = np.random.default_rng([3, size])
    splits = splits_of(size)
    cells = random_cells(size, rng)
    fit = fit_cascade(cells, size, steps=20)
    weights = rng.uniform(1, 2, splits.leaves)
    bends = data_curvature(fit, cells) + prior_curvature(fit, weights)
    precisions = cells.precisions(cells.shares(fit.frequencies))
    slopes = slopes_by_differences(size, fit.logits)
    plain = np.zeros((splits.leaves, splits.leaves))
    for low, high, precision in zip(cells.lows, cells.highs, precisions, strict=True):
        cell = slopes[:, low:high].sum(axis=1)
        plain += precision * np.outer(cell, cell)
    off = np.zeros((splits.leaves, splits.leaves))  # of logit - centre, in each logit
    for node in np.flatnonzero(splits.is_split):
        for sign in (1, -1):
            moved = fit.logits.copy()
            moved[node] += sign * 1e-6
            masses = np.empty(2 * splits.leaves)
            centres = np.zeros(splits.leaves)
            kernel.fill_masses(moved, masses)
            kernel.fill_centres(masses, fit.centre, splits.log_sizes, fit.rho, centres)
            off[:, node] += sign * (moved - centres) / 2e-6
    keep = np.flatnonzero(splits.is_split)
    plain += off[keep].T @ (weights[keep, None] * off[keep])
    inner = np.ix_(keep, keep)
    assert bends[inner] == pytest.approx(plain[inner], rel=1e-4, abs=1e-4)
    found = curvature.leaf_slopes(node_masses(fit))[:, splits.places[:-1]]
    assert found[keep] == pytest.approx(slopes[keep], abs=1e-8)


@pytest.mark.parametrize("size", SIZES)
def test_least_squares_is_the_solution_of_its_equations(size):
    rng = np.random.default_rng([4, size])
    single = np.arange(size)
    many = random_cells(size, rng)
    cells = GridCells(
        np.append(rng.uniform(0, 1, size), many.values),
        np.append(np.full(size, 0.01), many.floors),
        np.zeros(size + many.lows.size),
        np.full(size + many.lows.size, 1e9),
        *one_grid(size + many.lows.size),
        np.append(single, many.lows),
        np.append(single + 1, many.highs),
    )
    linear = LeastSquares(cells, size).map(np.eye(size))
    found = cells.values @ linear.pulls + linear.constants
    holds = (single >= cells.lows[:, None]) & (single < cells.highs[:, None])
    roots = np.sqrt(cells.precisions(cells.shares(np.full(size, 1 / size))))
    # a heavy row holds the sum at 1
    rows = np.vstack([holds * roots[:, None], np.full(size, 1e5)])
    plain = np.linalg.lstsq(rows, np.append(cells.values * roots, 1e5), rcond=None)[0]
    assert found == pytest.approx(plain, abs=1e-6)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    assert linear.pulls.sum(axis=1) == pytest.approx(np.zeros(cells.lows.size), abs=1e-9)


def steps_and_spikes(size: int, people: int, rng: np.random.Generator):
    shape = np.where(np.arange(size) < size // 3, 4.0, 1.0)
    shape[size // 2] = size / 2
    return rng.multinomial(people, shape / shape.sum())


@pytest.mark.parametrize("size", [7, 16, 50])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_many_people_leave_no_doubt(size, is_ordered):
    rng = np.random.default_rng([5, size])
    people = steps_and_spikes(size, 10**8, rng)
    evidence = hear(people, line_grids(size, (4, size)), 3.0, rng)
    table = fit_line(evidence, size, is_ordered=is_ordered)
    assert table.frequencies.sum() == pytest.approx(1.0, abs=1e-12)
    assert table.frequencies == pytest.approx(people / people.sum(), abs=2e-3)
    assert table.joint([{}]).values == pytest.approx([1.0])
    assert table.joint([{}]).std_errors == pytest.approx([0.0], abs=1e-9)


def test_answers_are_sums_of_frequencies_and_draws_have_their_covariance():
    rng = np.random.default_rng(6)
    people = steps_and_spikes(20, 100_000, rng)
    evidence = hear(people, line_grids(20, (4, 20)), 1.0, rng)
    for table in (fit_line(evidence, 20), fit_unbiased(evidence, 20)):
        low, high = (np.arange(20) < 7).astype(float), (np.arange(20) >= 7).astype(float)
        joint = table.joint([{0: low}, {0: high}, {}])
        assert joint.values == pytest.approx([table.frequencies[:7].sum(), 1 - joint.values[0], 1])
        assert joint.covariance[0, 1] == pytest.approx(-joint.covariance[0, 0], rel=1e-6)
        # 400 draws: a variance is good to sqrt(2 / 400) = 7%
        assert (table.draws @ low).var() == pytest.approx(joint.covariance[0, 0], rel=0.35)
    again, first = fit_line(evidence, 20), fit_line(evidence, 20)
    assert again.draws == pytest.approx(first.draws, abs=0)


def test_intervals_are_those_of_unbiased_answers_to_the_same_reports():
    rng = np.random.default_rng(6)
    people = steps_and_spikes(20, 100_000, rng)
    evidence = hear(people, line_grids(20, (4, 20)), 1.0, rng)
    inside = {0: (np.arange(20) < 7).astype(float)}
    fitted = fit_line(evidence, 20).joint([inside])
    plain = fit_unbiased(evidence, 20).joint([inside])
    assert fitted.unbiased is not None
    assert fitted.unbiased.values == pytest.approx(plain.values)
    # variances are looked at where the fit is, not where the noisy answers are
    assert fitted.unbiased.covariance == pytest.approx(plain.covariance, rel=0.05)
    low, high = fitted.interval()
    assert low < plain.values - 1.9 * plain.std_errors
    assert high > plain.values + 1.9 * plain.std_errors


def test_codes_that_nobody_tells_apart_have_no_unbiased_answers():
    rng = np.random.default_rng(6)
    people = steps_and_spikes(20, 1_000, rng)
    evidence = hear(people, line_grids(20, (4,)), 1.0, rng)
    joint = fit_line(evidence, 20).joint([{0: np.eye(20)[3]}])
    assert joint.unbiased is None
    low, high = joint.interval()
    assert low < joint.values < high


def test_cells_of_two_axes_are_summed_over_the_other():
    rng = np.random.default_rng(7)
    people = rng.multinomial(10_000, np.full(32, 1 / 32)).reshape(8, 4)
    edges = (np.array([0, 4, 8]), np.array([0, 1, 4]))
    evidence = hear(people, [((0, 1), edges, 1.0)], 1.0, rng)
    cells = cells_of(evidence, 1)
    assert cells.values == pytest.approx(evidence[0].values.sum(axis=0))
    assert cells.floors == pytest.approx(np.full(2, 2 * (evidence[0].floor - evidence[0].cross)))


def test_who_was_asked_about_another_dimension_is_of_the_crowd_too():
    """Of clear answers only who was asked is chance: f (1 - f) (1 / n - 1 / N)."""
    share, asked, others = 0.3, 10_000, 30_000
    edges = np.array([0, 1, 2])
    clear = [
        GridEvidence((0,), (edges,), np.array([share, 1 - share]), 1e-12, 0.0, asked),
        GridEvidence((1,), (edges,), np.array([0.5, 0.5]), 1e-12, 0.0, others),
    ]
    spread = share * (1 - share)
    for evidence, left in ((clear, 1 / asked - 1 / (asked + others)), (clear[:1], 0.0)):
        table = fit_line(evidence, 2, is_ordered=False, axis=0)
        (variance,) = table.joint([{0: np.array([1.0, 0.0])}]).std_errors ** 2
        # the prior takes a little off
        assert variance == pytest.approx(spread * left, rel=0.02, abs=0.01 * spread / asked)


def weighed_fit(size: int, seed: int, people: int = 20_000):
    """The fit of a group of people around that of all, and the cells that it is of."""
    rng = np.random.default_rng([seed, size])
    shares = np.minimum((rng.beta(2, 4, people) * size).astype(np.int64), size - 1)
    crowd, group = (np.bincount(part, minlength=size) for part in (shares, shares[::5]))
    grids = line_grids(size, [4, 16, size])
    around = fit_line(hear(crowd, grids, 1.0, rng), size)
    cells = cells_of(hear(group, grids, 1.0, rng), 0)
    return fit_cascade(cells, size, base=around.frequencies), cells


@pytest.mark.parametrize("size", [2, 13, 100, 256])
def test_errors_of_few_sums_are_those_by_matrices(size):
    fit, cells = weighed_fit(size, seed=3)
    weights = tail_weights(fit)
    fast = DeviationErrors(fit, cells, 4000.0, weights)
    plain = CascadeErrors(fit, cells, 4000.0, weights)
    codes = np.arange(size)
    sums = np.stack([codes < size // 2, codes == 1, codes], axis=1).astype(float)  # (size, 3)
    wanted = plain.covariance(sums)
    assert fast._whole is None
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert (np.abs(fast.covariance(sums) - wanted) <= 1e-9 * scale).all()
    # a mutant whose prior counts twice is told from it
    other = DeviationErrors(fit, cells, 4000.0, 2 * weights).covariance(sums)
    assert (np.abs(other - wanted) > 1e-6 * scale).any()


def test_errors_that_do_not_come_near_are_made_by_matrices(monkeypatch):
    fit, cells = weighed_fit(64, seed=4)
    weights = tail_weights(fit)
    wanted = CascadeErrors(fit, cells, 4000.0, weights).covariance(np.eye(64)[:, :2])
    monkeypatch.setattr(posterior, "SOLVE_STEPS", 1)
    hasty = DeviationErrors(fit, cells, 4000.0, weights)
    assert hasty.covariance(np.eye(64)[:, :2]) == pytest.approx(wanted, rel=1e-12)
    assert hasty._whole is not None


def test_few_fits_keep_their_matrices(monkeypatch):
    monkeypatch.setattr(posterior, "MAX_KEPT_MATRICES", 2)
    fit, cells = weighed_fit(16, seed=5)
    made = [DeviationErrors(fit, cells, 4000.0, tail_weights(fit)) for _ in range(4)]
    roots = [each.root() for each in made]
    assert [each._whole is None for each in made] == [True, True, False, False]
    assert all((root == roots[0]).all() for root in roots)
    assert (made[0].root() == roots[0]).all()


def test_sums_around_a_table_need_a_prior_without_neighbours():
    rng = np.random.default_rng(6)
    cells = random_cells(8, rng)
    fit = fit_cascade(cells, 8)
    with pytest.raises(ValueError, match="must not depend on neighbours"):
        DeviationErrors(fit, cells, 100.0, tail_weights(fit))
