"""Releases by residuals, simulated: noise varies as the algebra says."""

from __future__ import annotations

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from sottovoce.accounting import mu_of
from sottovoce.central.domains import Places, sets_up_to
from sottovoce.central.residual import Residual
from sottovoce.central.residual_plan import ResidualPlan
from sottovoce.central.residuals import Residuals, measured
from sottovoce.ground.entropy import Seeded
from sottovoce.postprocessing.consistency import contrasts, transform
from tests.central_tables import known_table, ledger_of, terms_of, tied_codes, true_table
from tests.statistics import ALPHA

SIZES = (2, 3, 4)
RUNS = 300


@pytest.fixture(scope="module")
def releases() -> tuple[ResidualPlan, list[Residuals], NDArray[np.int64]]:
    """Many releases of one table."""
    codes = tied_codes(SIZES, 300, seed=1)
    table = known_table(SIZES, codes)
    terms = terms_of(1, 2)
    entropy = Seeded(7)
    found = []
    for _ in range(RUNS):
        released = Residual().release(table, terms, ledger_of(terms), entropy)
        assert released.estimate is not None
        found.append(released.estimate.fit.residuals)  # type: ignore[attr-defined]
    return found[0].plan, found, codes


def limits(degrees: int, comparisons: int) -> tuple[float, float]:
    """Between which a mean of squares lies but for ALPHA, over all comparisons."""
    share = ALPHA / (2 * comparisons)
    low, high = chi2.ppf(share, degrees), chi2.isf(share, degrees)
    return float(low / degrees), float(high / degrees)


def test_noise_of_residuals_varies_as_planned(
    releases: tuple[ResidualPlan, list[Residuals], NDArray[np.int64]],
) -> None:
    plan, found, codes = releases
    for order in (0, 1, 2):
        squares, mutant = [], []
        for own in combinations(range(len(SIZES)), order):
            true = true_table(codes, SIZES, own) if own else np.array(float(len(codes)))
            matrices = [contrasts(SIZES[place])[1:] for place in own]
            exact = transform(true[None, ...], matrices)
            for residuals in found:
                error = transform(residuals.parts[own][None, ...], matrices) - exact
                squares.append(error.ravel() ** 2 / float(plan.variance(own)))
                # a mutant whose noise is a quarter larger than the plan says
                mutant.append(1.25 * squares[-1])
        noise, louder = np.concatenate(squares), np.concatenate(mutant)
        low, high = limits(noise.size, 3)
        assert low < noise.mean() < high
        if order:  # enough contrasts to tell a quarter more
            assert louder.mean() > high


def test_counts_vary_as_the_algebra_says(
    releases: tuple[ResidualPlan, list[Residuals], NDArray[np.int64]],
) -> None:
    plan, found, codes = releases
    sets = [own for own in sets_up_to(len(SIZES), 2) if own]
    cells = sum(int(np.prod([SIZES[place] for place in own])) for own in sets)
    low, high = limits(RUNS, cells)
    for own in sets:
        true = true_table(codes, SIZES, own)
        errors = np.array([residuals.table(own) - true for residuals in found])
        squares = (errors**2).mean(axis=0) / float(plan.cell_variance(own))
        assert low < squares.min()
        assert squares.max() < high
        # a mutant that forgets that other attributes share out a residual
        forgotten = sum(float(plan.variance(part)) for part in _subsets(own))
        assert forgotten / float(plan.cell_variance(own)) > high


def _subsets(own: Places) -> list[Places]:
    return [part for count in range(len(own) + 1) for part in combinations(own, count)]


@pytest.mark.parametrize(("attributes", "runs"), [(16, 3000), (32, 3000)])
def test_measured_variance_is_an_eighth_of_what_table_by_table_gives(
    attributes: int, runs: int
) -> None:
    """Single counts, planned up to three attributes, against each table noised by itself."""
    plan = ResidualPlan.of((2,) * attributes, terms_of(1, 3))
    counts = np.array([70, 30])
    entropy = Seeded(3)
    squares = []
    for _ in range(runs):
        people = float(measured(counts.sum(), (), plan, entropy)) - 100
        part = measured(counts, (0,), plan, entropy)[0] - 20  # (70 - 30)/2
        squares.append((part + people / 2) ** 2)
    variance = float(np.mean(squares))
    planned = float(plan.cell_variance((0,)))
    low, high = limits(runs, 2)
    assert low < variance / planned < high
    # Var_k = C(d, k) / (mu^2 share_k), share_k ~ sqrt(C(d, k))     gopi2024marginals, algorithm 1
    roots = [sqrt(comb(attributes, count)) for count in (1, 2, 3)]
    direct = attributes * sum(roots) / roots[0] / mu_of(1.0, 1e-6) ** 2
    assert direct / planned > 8
    assert direct / variance > 8 / high
    # a mutant that measures single tables by themselves beside: half of the budget for each
    assert not low < variance / (2 * planned) < high
