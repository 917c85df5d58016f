"""The Fourier transformation on categories: which sets of bits it asks for, and what they tell."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol.families import Listed, Signs
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.methods.bit_sets import bit_sets
from sottovoce.questions.marginals.workload import Workload
from tests.statistics import z_limit

SIZES = (2, 3, 4)


def schema_of(sizes: tuple[int, ...]) -> sv.Schema:
    return sv.Schema(**{f"x{i}": sv.Categorical(range(size)) for i, size in enumerate(sizes)})


def work_of(sizes: tuple[int, ...], order: int) -> Workload:
    return Workload.of(schema_of(sizes), None, order, None)


def test_the_papers_coefficients_are_more_than_ours_on_categories() -> None:
    work = work_of((3,) * 8, 3)
    assert method("ft").total(work) == 14_892  # type: ignore[attr-defined]
    assert method("inp-ht").total(work) == 1_788  # type: ignore[attr-defined]
    assert sum(comb(16, size) for size in range(1, 7)) == 14_892
    terms = Terms(Decimal(1), 1 << 16)
    assert method("ft").predict(work, terms, {}) > 8 * method("inp-ht").predict(work, terms, {})


def test_every_set_of_bits_is_asked_for_once() -> None:
    """Four bits of five: those of the widest two attributes."""
    found = list(bit_sets(work_of(SIZES, 2)))
    assert len(found) == len(set(found)) == sum(comb(5, size) for size in range(1, 5))
    widths = [sum(mask.bit_count() for _, mask in each) for each in found]
    assert widths == sorted(widths)
    assert max(widths) == 4
    touched = {tuple(place for place, _ in each) for each in found}
    assert (0, 1, 2) in touched  # which no table of two attributes needs
    assert set(combinations(range(3), 2)) < touched


def test_on_yes_or_no_it_asks_what_inp_ht_asks() -> None:
    plans = [
        sv.plan(schema_of((2,) * 5), sv.Marginals(up_to=2, method=name), epsilon=1.0, people=5000)
        for name in ("ft", "inp-ht")
    ]
    assert isinstance(plans[0].cohorts, Signs)
    assert plans[0].cohorts == plans[1].cohorts
    assert isinstance(
        sv.plan(
            schema_of(SIZES), sv.Marginals(up_to=2, method="ft"), epsilon=1.0, people=5000
        ).cohorts,
        Listed,
    )


@pytest.mark.parametrize(
    ("sizes", "order", "people", "words"),
    [
        (SIZES, 2, 29, "30 sets of bits, more than the 29 people"),
        ((4,) * 10, 3, 10**6, "60,459 sets of bits, more than 16,384"),
    ],
)
def test_too_many_sets_are_refused(
    sizes: tuple[int, ...], order: int, people: int, words: str
) -> None:
    assert words in str(method("ft").refuse(work_of(sizes, order), Terms(Decimal(1), people)))


def test_tables_are_unbiased_with_the_stated_error() -> None:
    people, runs = 3000, 150
    draws = np.random.default_rng(1)
    columns = {f"x{i}": draws.integers(0, size, people) for i, size in enumerate(SIZES)}
    columns["x2"] = np.where(draws.random(people) < 0.6, columns["x1"], columns["x2"])
    truth = np.zeros((3, 4))
    np.add.at(truth, (columns["x1"], columns["x2"]), 1 / people)
    question = sv.Marginals(up_to=2, method="ft")
    plan = sv.plan(schema_of(SIZES), question, epsilon=2.0, people=people)
    errors, variances = [], []
    for seed in range(runs):
        table = sv.Aggregate(plan).add(sv.simulate(plan, columns, seed)).estimate()
        pair = table.marginal("x1", "x2")
        assert pair.is_unbiased
        errors.append(pair.values - truth.ravel())
        variances.append(pair.variances)
    spread = np.mean(variances, axis=0)  # (cells,)
    cells = truth.size
    z = np.mean(errors, axis=0) / np.sqrt(spread / runs)
    assert np.abs(z).max() < z_limit(cells)
    ratios = np.mean(np.square(errors), axis=0) / spread
    limit = z_limit(2 * cells) * sqrt(2 / runs)
    assert np.abs(ratios - 1).max() < limit
    halved = np.mean(np.square(errors), axis=0) / (spread / 2)  # the mutant
    assert np.abs(halved - 1).max() > limit
    predicted = method("ft").predict(work_of(SIZES, 2), plan.round_terms, {})
    assert predicted == pytest.approx(float(spread.sum()), rel=0.5)  # over tables of all sizes
