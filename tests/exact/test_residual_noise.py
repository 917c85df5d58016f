"""The noise of residuals: its law enumerated against what the ledger says, and nothing else."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from sottovoce.accounting import GaussianStep
from sottovoce.accounting.steps import NEIGHBOUR_RELATIONS, Neighbours
from sottovoce.accounting.totals import total_delta
from sottovoce.central import residual_plan
from sottovoce.central.residual_plan import (
    REFINEMENT,
    ResidualPlan,
    kept_share,
    largest_replacement,
    lattice_move,
    squared_sensitivity,
)
from sottovoce.central.residuals import measured
from sottovoce.ground.entropy import Seeded
from tests.central_tables import terms_of

TAIL = 14  # standard deviations: what lies beyond is below 1e-40


def discrete_law(variance: float) -> np.ndarray:
    """P(z) ~ exp(-z^2 / (2 variance)) over the integers, around 0."""
    reach = math.ceil(TAIL * math.sqrt(variance)) + 2
    places = np.arange(-reach, reach + 1)
    law = np.exp(-(places**2) / (2 * variance))
    return law / law.sum()


def enumerated_delta(law: np.ndarray, move: int, epsilon: float) -> float:
    """delta of a law against itself moved, the larger of both directions."""
    padded = np.concatenate([law, np.zeros(move)])
    moved = np.concatenate([np.zeros(move), law])
    above = np.maximum(padded - math.exp(epsilon) * moved, 0).sum()
    below = np.maximum(moved - math.exp(epsilon) * padded, 0).sum()
    return float(max(above, below))


def difference_law(variance: Fraction, per_unit: int) -> np.ndarray:
    """The law of what a residual of two values shows: the difference of two cells' noises."""
    law = discrete_law(float(variance) * per_unit**2)
    return np.convolve(law, law)


@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(2), Fraction(9)])
def test_noise_of_a_tiny_table_costs_what_the_ledger_says(
    variance: Fraction, neighbours: Neighbours
) -> None:
    per_unit = 2 * 16  # coarser than the product's, so that every point can be listed
    coarser = Fraction(REFINEMENT, 16)
    loss = lattice_move((2,), neighbours) * coarser / variance
    cost = squared_sensitivity((2,), neighbours)
    step = GaussianStep("tiny", "one attribute of two values", cost, variance, loss)
    law = difference_law(variance, per_unit)
    moved = per_unit if neighbours == "add-remove" else 2 * per_unit
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        stated = total_delta([step], neighbours, epsilon)
        true = enumerated_delta(law, moved, epsilon)
        assert true <= stated
        assert stated < 1.3 * true + 1e-12  # and it does not waste much


def test_noise_on_whole_numbers_costs_more() -> None:
    # the mutant: the lattice does not hold the move, so P_B / s^2 is not what it costs
    variance = Fraction(1, 12)
    step = GaussianStep("tiny", "two values", kept_share((2,)), variance, Fraction(0))
    fine = difference_law(variance, 2 * 64)
    coarse = difference_law(variance, 1)
    epsilon = 4.0
    stated = total_delta([step], "add-remove", epsilon)
    assert enumerated_delta(fine, 2 * 64, epsilon) < 1.05 * stated
    assert enumerated_delta(coarse, 1, epsilon) > 1.5 * stated


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 4)])
def test_what_was_not_paid_for_does_not_show(shape: tuple[int, ...]) -> None:
    """Sums over the values of an attribute leave no trace, to the last bit."""
    plan = ResidualPlan.of(shape, terms_of(1, len(shape)))
    places = tuple(range(len(shape)))
    counts = np.random.default_rng(1).integers(0, 1000, shape)
    shown = measured(counts, places, plan, Seeded(2))
    for axis in range(len(shape)):
        more = np.random.default_rng(axis).integers(0, 10**6, shape).sum(axis, keepdims=True)
        again = measured(counts + more, places, plan, Seeded(2))
        assert np.array_equal(shown, again)
    # one person more in one cell does show
    counts[(0,) * len(shape)] += 1
    assert not np.array_equal(shown, measured(counts, places, plan, Seeded(2)))


def projection(size: int) -> np.ndarray:
    return np.eye(size) - 1 / size


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 4, 2), (2, 2, 2, 2)])
@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
def test_sensitivity_is_the_largest_over_all_records(
    sizes: tuple[int, ...], neighbours: Neighbours
) -> None:
    """By brute force: every record, or every two, through the matrices of all residuals."""
    order = 2
    terms = terms_of(1, order, neighbours=neighbours)
    plan = ResidualPlan.of(sizes, terms)
    records = list(product(*(range(size) for size in sizes)))
    sets = [own for count in range(order + 1) for own in combinations(range(len(sizes)), count)]

    def scaled(record: tuple[int, ...]) -> np.ndarray:
        parts = []
        for own in sets:
            vector = np.ones(1)
            for place in own:
                vector = np.kron(vector, projection(sizes[place])[:, record[place]])
            variance = float(plan.variance(own))
            if variance:
                parts.append(vector / math.sqrt(variance))
        return np.concatenate(parts)

    vectors = [scaled(record) for record in records]
    if neighbours == "add-remove":
        largest = max(float(vector @ vector) for vector in vectors)
    else:
        pairs = combinations(vectors, 2)
        largest = max(float((one - two) @ (one - two)) for one, two in pairs)
    assert largest == pytest.approx(float(plan.squared_mu), rel=1e-9)


def test_many_sizes_are_bounded_by_the_worst_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {(2,): Fraction(1), (3,): Fraction(1, 2), (2, 2): Fraction(1, 3), (2, 3): Fraction(1)}
    exact = largest_replacement((2, 2, 3), 2, shares)
    monkeypatch.setattr(residual_plan, "_MOST_REPLACEMENTS", 0)
    bound = largest_replacement((2, 2, 3), 2, shares)
    assert exact < bound < 2 * exact
