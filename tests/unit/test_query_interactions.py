"""Selections by three dimensions as sums over dimensions and pairs."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.models.interactions import (
    INTERACTION_SCALE,
    Expansion,
    expanded,
    is_small,
)
from sottovoce.questions.queries.models.several import SeveralTable, fit_several
from tests.grid_crowds import hear, line_grids

AXES = (0, 2, 5)
SIZE = 16


def pair_table(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """A table that maximum entropy makes of its pairs: log p is a sum of functions of pairs."""
    logs = np.zeros(shape)
    for axis in range(len(shape)):
        others = [length if place != axis else 1 for place, length in enumerate(shape)]
        logs = logs + rng.normal(0, 0.5, others)
    found: Floats = np.exp(logs) / np.exp(logs).sum()
    return found


def answer(found: Expansion, p: Floats) -> float:
    """What an expansion says of another table, by its dimensions and pairs."""
    total = found.constant
    for axis, weights in found.singles.items():
        others = tuple(place for place, name in enumerate(AXES) if name != axis)
        total += float(p.sum(axis=others) @ weights)
    for pair, products in found.pairs.items():
        others = tuple(place for place, name in enumerate(AXES) if name not in pair)
        total += sum(float(u @ p.sum(axis=others) @ v) for u, v in products)
    return total


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 2), (4, 2, 3)])
def test_an_expansion_moves_as_maximum_entropy_does(shape):
    rng = np.random.default_rng([64, *shape])
    p = pair_table(shape, rng)
    weights = [rng.normal(size=length) for length in shape]
    target = np.einsum("i,j,k->ijk", *weights)
    found = expanded(AXES, p, weights)
    assert answer(found, p) == pytest.approx(float((p * target).sum()), abs=1e-7)
    # another table of pairs nearby: its answer is the expansion's, to first order
    step = 1e-3
    moved = p * pair_table(shape, rng) ** step
    moved /= moved.sum()
    change = float(((moved - p) * target).sum())
    assert abs(change) > 1e-5
    assert answer(found, moved) - answer(found, p) == pytest.approx(change, rel=0.05)


def test_what_pairs_do_not_tell_is_in_the_variance():
    # of eight equal cells an indicator is one eighth of a product of three signs, and pairs
    found = expanded(AXES, np.full((2, 2, 2), 1 / 8), [np.array([0.0, 1.0])] * 3)
    # p r = 1/64 at all of them
    assert found.variance == pytest.approx(INTERACTION_SCALE**2 * 8 / 64**2)


def test_selections_by_too_many_states_are_not_expanded():
    assert is_small([2] * 12)
    assert is_small([16, 16, 2])
    assert not is_small([16, 16, 16])


def correlated(rng: np.random.Generator, count: int) -> Floats:
    """People of three numbers that go together, (SIZE, SIZE, SIZE)."""
    common = rng.normal(size=count)
    columns = [
        np.clip(np.rint(SIZE / 2 + 2.5 * (common + 0.7 * rng.normal(size=count))), 0, SIZE - 1)
        for _ in range(3)
    ]
    codes = np.ravel_multi_index([column.astype(int) for column in columns], (SIZE,) * 3)
    return np.bincount(codes, minlength=SIZE**3).reshape((SIZE,) * 3)


def crowd(run: int) -> tuple[SeveralTable, Floats]:
    rng = np.random.default_rng([62, run])
    people = correlated(rng, 40_000)
    edges = [np.arange(0, SIZE + 1, step) for step in (2, 4)]
    asked = [
        ((axis,), grid, share)
        for axis in range(3)
        for _, grid, share in line_grids(SIZE, (4, SIZE), shifts=2)
    ]
    asked += [(pair, (each, each), 1.0) for pair in ((0, 1), (0, 2), (1, 2)) for each in edges]
    table = fit_several(hear(people, asked, 1.5, rng), (SIZE,) * 3, (True,) * 3)
    return table, people / people.sum()


def test_intervals_of_three_dimensions_hold():
    held, held_by_draws, off, off_by_fit = [], [], [], []
    for run in range(2):
        table, shares = crowd(run)
        rng = np.random.default_rng([63, run])
        terms, truth = [], []
        for _ in range(30):
            ends = np.sort(rng.integers(0, SIZE + 1, (3, 2)), axis=1)
            masks = [(np.arange(SIZE) >= low) & (np.arange(SIZE) < high) for low, high in ends]
            weights = [mask.astype(float) for mask in masks]
            terms.append(dict(enumerate(weights)))
            truth.append(float(np.einsum("ijk,i,j,k->", shares, *weights)))
        joint = table.joint(terms)
        assert joint.unbiased is not None
        assert joint.draws is not None
        low, high = joint.interval()
        held += list((low <= truth) & (np.array(truth) <= high))
        ends = np.quantile(joint.draws, [0.025, 0.975], axis=0)
        held_by_draws += list((ends[0] <= truth) & (truth <= ends[1]))
        off += list(joint.unbiased.values - truth)
        off_by_fit += list(joint.values - truth)
    assert np.mean(held) > 0.92 > np.mean(held_by_draws)
    # and do not owe their width to being far off
    assert np.std(off) < 1.5 * np.std(off_by_fit)
