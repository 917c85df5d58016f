"""A few codes: when the model's table moves towards the unbiased one, and how it then errs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.models.blend import (
    BLENDED_CODES,
    BlendedErrors,
    blended,
    unbiased_share,
)
from sottovoce.questions.queries.models.line import LineTable, fit_line, fit_unbiased
from sottovoce.questions.queries.models.weights import fit_weighted
from tests.grid_crowds import hear, line_grids

SIZE = 64
PEOPLE = 100_000
SPIKES = np.zeros(SIZE)  # most codes are empty
SPIKES[[0, 1, 2, 3, 4, 5, 40]] = 0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05


def hear_clearly(people: Integers, rng: np.random.Generator) -> list[GridEvidence]:
    """What people say by randomized response at epsilon 5 to a coarse grid, or with their code."""
    grids = line_grids(people.size, (8, people.size), shifts=8)
    parts = rng.multinomial(people, [share / 2 for _, _, share in grids])  # (codes, grids)
    evidence = []
    for place, (axes, (edges,), _) in enumerate(grids):
        held = np.add.reduceat(parts[:, place], edges[:-1])
        count, cells = int(held.sum()), held.size
        p = math.exp(5.0) / (math.exp(5.0) + cells - 1)
        q = (1 - p) / (cells - 1)
        chances = np.full((cells, cells), q) + (p - q) * np.eye(cells)
        said = sum(rng.multinomial(each, row) for each, row in zip(held, chances, strict=True))
        values: Floats = (said / count - q) / (p - q)
        floor = q * (1 - q) / (p - q) ** 2 / count
        slope = (1 - p - q) / (p - q) / count
        cross = -(q**2) / (p - q) ** 2 / count  # nobody names two values
        noise = (floor, slope, count, cross)
        evidence.append(GridEvidence(axes, (edges,), values, *noise, cohort=place))
    return evidence


def squared_errors(table: LineTable, people: Integers) -> float:
    """Of the shares of all first codes together."""
    off = np.cumsum(table.frequencies - people / people.sum())
    return float(off @ off)


def test_spikes_heard_clearly_are_answered_better_than_by_the_model():
    rows = []
    for run in range(80):
        rng = np.random.default_rng([31, run])
        people = rng.multinomial(PEOPLE, SPIKES)
        model = fit_line(hear_clearly(people, rng), SIZE)
        found = blended(model)
        if found is not model:
            rows.append((squared_errors(found, people), squared_errors(model, people)))
    blends, models = np.array(rows).T
    # tables that are no better than the model's would be found out
    assert (blends < models).sum() > binom.isf(1e-6, len(rows), 0.5)
    assert blends.mean() < 0.8 * models.mean()


def test_what_the_reports_do_not_contradict_stays_the_model():
    rng = np.random.default_rng(32)
    people = rng.multinomial(20_000, np.full(SIZE, 1 / SIZE))
    model = fit_line(hear(people, line_grids(SIZE, (4, 8, 32, SIZE)), 1.0, rng), SIZE)
    assert blended(model) is model


def test_a_dimension_of_many_codes_stays_the_model():
    rng = np.random.default_rng(33)
    spikes = np.append(SPIKES, np.zeros(BLENDED_CODES))
    model = fit_line(hear_clearly(rng.multinomial(PEOPLE, spikes), rng), spikes.size)
    assert blended(model) is model


def spike_fit() -> tuple[LineTable, LineTable]:
    """A model's table that the reports contradict, and its blend."""
    rng = np.random.default_rng([31, 1])
    model = fit_line(hear_clearly(rng.multinomial(PEOPLE, SPIKES), rng), SIZE)
    found = blended(model)
    assert found is not model
    return model, found


def test_a_blend_lies_between_the_two_tables():
    model, found = spike_fit()
    unbiased = fit_unbiased(model.evidence, SIZE).frequencies
    moved = found.frequencies - model.frequencies
    apart = unbiased - model.frequencies
    share = float(moved @ apart / (apart @ apart))
    assert 0.0 < share < 1.0
    assert moved == pytest.approx(share * apart, abs=1e-12)
    assert found.frequencies.sum() == pytest.approx(1.0)
    # a larger share has larger errors: w^2 of the unbiased, 1 - w^2 of the model's
    sums = np.tri(SIZE)[:-1].T
    assert found.unbiased is not None
    wanted = share**2 * found.unbiased.covariance(sums) + (1 - share**2) * model.covariance(sums)
    assert found.covariance(sums) == pytest.approx(wanted, abs=1e-15)


def test_errors_of_all_codes_have_the_root_that_draws_use():
    model, _ = spike_fit()
    assert model.unbiased is not None
    errors = BlendedErrors(model.unbiased, model, 0.4)
    root = errors.root()
    wanted = errors.covariance(np.eye(SIZE))
    # the root of the model's own covariance keeps a millionth more
    assert root.T @ root == pytest.approx(wanted, abs=1e-5 * wanted.max())


def test_weights_deviate_from_a_blend_and_are_corrected_with_it():
    _, found = spike_fit()
    same = fit_weighted(found, found.evidence, [True])
    assert same is found
    heavier = [
        GridEvidence(
            grid.axes,
            grid.edges,
            grid.values,
            grid.floor,
            grid.slope,
            grid.people / 2,
            cohort=grid.cohort,
        )
        for grid in found.evidence
    ]
    # half of the people have all of the weight, and are spread as all are
    table = fit_weighted(found, heavier, [True])
    assert isinstance(table, LineTable)
    assert table.frequencies - table.fitted == pytest.approx(found.frequencies - found.fitted)
    assert table.frequencies == pytest.approx(found.frequencies, abs=1e-3)


def test_a_distance_that_chance_explains_takes_nothing_of_the_unbiased_table():
    assert unbiased_share(3.0, 1.0) == 0.0
    assert unbiased_share(6.0, 1.0) == 0.5
    assert unbiased_share(1.0, -0.1) == 1.0
    assert unbiased_share(0.0, 0.0) == 0.0
