"""Methods that are linear in the reports: no bias, and the variance that theory gives, on
attributes of mixed sizes.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.oracles import oracle
from sottovoce.oracles.rules import oracle_by
from sottovoce.oracles.sketch import HadamardCountMeanSketch
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.methods.full import FULL
from sottovoce.questions.marginals.methods.subsets import PER_TABLE, PerTable, shares, source_of
from sottovoce.questions.marginals.workload import Places
from tests.statistics import ALPHA, z_limit

SIZES = (2, 3, 2)
SCHEMA = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Boolean())
# at the second, who is in a cohort matters more than the coins
EPSILON, LOUD = (
    Decimal(2),
    Decimal(4),
)
PEOPLE, RUNS = 1500, 250
SKETCH = {"hashes": 16, "width": 16}  # small, so that collisions show
SETS: tuple[Places, ...] = ((0,), (1,), (0, 1), (1, 2))
NAMES = [each.name for each in (*FULL, *PER_TABLE)]
COMPARISONS = len(NAMES) * sum(int(np.prod([SIZES[place] for place in each])) for each in SETS)


@cache
def crowd() -> tuple[dict[str, Any], dict[Places, np.ndarray]]:
    """People whose attributes depend on each other, and their true tables."""
    draws = np.random.default_rng(5)
    a = draws.random(PEOPLE) < 0.3
    b = np.where(a, draws.integers(0, 3, PEOPLE), draws.integers(0, 2, PEOPLE))
    c = a ^ (draws.random(PEOPLE) < 0.2)
    joint = np.zeros(SIZES)
    np.add.at(joint, (a.astype(int), b, c.astype(int)), 1 / PEOPLE)
    every = (0, 1, 2)
    truth = {each: joint.sum(axis=tuple(set(every) - set(each))).ravel() for each in (*SETS, every)}
    return {"a": a, "b": np.array(["x", "y", "z"])[b], "c": c}, truth


def full_variance(name: str, places: Places) -> np.ndarray:
    """Of a sum of cells of the whole table; for a sketch over salts, with the collisions that
    people share.
    """
    truth = crowd()[1]
    count = 12 // truth[places].size
    if name != "inp-htcms":
        kind = {each.name: each.oracle_name for each in FULL}[name]  # type: ignore[attr-defined]
        return oracle_by(kind, 12, EPSILON).sum_noise(PEOPLE, count).variance(truth[places])
    sketch = oracle("hcms", size=12, epsilon=EPSILON, **SKETCH)
    assert isinstance(sketch, HadamardCountMeanSketch)
    squares = truth[0, 1, 2].reshape(SIZES) ** 2
    own = squares.sum(axis=tuple({0, 1, 2} - set(places))).ravel()
    spread = sketch.sum_spread(count, squares.sum(), own, truth[places])
    return sketch.sum_noise(PEOPLE, count).variance(truth[places]) + sketch.collision_variance(
        spread
    )


def table_variance(
    name: str,
    places: Places,
    asked: dict[Places, int],
    epsilon: Decimal = EPSILON,
    drawn: bool = True,
) -> np.ndarray:
    """Of the average over the views that hold a set, each of people drawn from the crowd without
    replacement.
    """
    chosen = method(name)
    assert isinstance(chosen, PerTable)
    f = crowd()[1][places]
    views = [view for view in asked if set(places) <= set(view)]
    oracles = [
        oracle_by(chosen.oracle_name, SIZES[view[0]] * SIZES[view[1]], epsilon) for view in views
    ]
    sources = [
        source_of(each, asked[view], f.size) for each, view in zip(oracles, views, strict=True)
    ]
    weights = shares(sources, f.size)
    total = np.zeros(f.size)
    for weight, source in zip(weights, sources, strict=True):
        total += weight**2 * source.noise.variance(f)
        total += weight**2 * f * (1 - f) / source.people * drawn
    return total - f * (1 - f) / PEOPLE * drawn


VIEWS: tuple[Places, ...] = ((0, 1), (0, 2), (1, 2))


@cache
def errors(
    name: str, epsilon: Decimal = EPSILON
) -> dict[Places, list[tuple[np.ndarray, np.ndarray, dict[Places, int]]]]:
    """For each set and run: the error, the stated variance, and how many people each view had."""
    people, truth = crowd()
    found: dict[Places, list[Any]] = {each: [] for each in SETS}
    for run in range(RUNS):
        options = {**SKETCH, "salt": run} if name == "inp-htcms" else {}
        if run == 0 or options:
            plan = sv.plan(
                SCHEMA,
                sv.Marginals(up_to=2, method=name, **options),
                epsilon=epsilon,
                people=PEOPLE,
            )
        total = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=run))
        estimate = total.estimate()
        assert isinstance(estimate, sv.MarginalEstimate)
        values, variances = estimate.fit.tables(SETS), estimate.fit.variances(SETS)
        asked = (
            {view: total.cohort_people(number) for number, view in enumerate(VIEWS)}
            if len(plan.cohorts) > 1
            else {}
        )
        for each, table, stated in zip(SETS, values, variances, strict=True):
            assert estimate.fit.is_unbiased(each)
            found[each].append((table - truth[each], stated, asked))
    return found


def standard(
    name: str, places: Places, epsilon: Decimal = EPSILON, drawn: bool = True
) -> np.ndarray:
    """Errors over their theoretical standard errors: runs x cells."""
    rows = []
    for error, _, asked in errors(name, epsilon)[places]:
        variance = (
            table_variance(name, places, asked, epsilon, drawn)
            if asked
            else full_variance(name, places)
        )
        rows.append(error / np.sqrt(variance))
    return np.array(rows)


def limits() -> tuple[float, float]:
    """What a mean square of standard normal errors over the runs keeps to."""
    tail = ALPHA / (2 * COMPARISONS)
    return chi2.ppf(tail, RUNS) / RUNS, chi2.isf(tail, RUNS) / RUNS


@pytest.mark.parametrize("name", NAMES)
def test_there_is_no_bias_and_the_variance_is_the_theory(name: str) -> None:
    low, high = limits()
    for places in SETS:
        found = standard(name, places)
        assert np.abs(found.mean(axis=0)).max() * np.sqrt(RUNS) < z_limit(COMPARISONS)
        squares = (found**2).mean(axis=0)
        assert low < squares.min()
        assert squares.max() < high


@pytest.mark.parametrize(
    ("name", "epsilon"), [*((name, EPSILON) for name in NAMES), ("marg-ps", LOUD)]
)
def test_stated_errors_are_those_made(name: str, epsilon: Decimal) -> None:
    """The plug-in variances, as a user sees them."""
    low, high = limits()
    for places in SETS:
        found = np.array(
            [error / np.sqrt(stated) for error, stated, _ in errors(name, epsilon)[places]]
        )
        squares = (found**2).mean(axis=0)
        assert low < squares.min()
        assert squares.max() < high


def test_wrong_theories_are_rejected() -> None:
    low, high = limits()
    # cells of randomized response as if they were independent
    grr = oracle("grr", size=12, epsilon=EPSILON)
    cell, f = grr.noise(PEOPLE), crowd()[1][0,]
    naive = np.sqrt(6 * cell.floor + cell.slope * f)
    squares = np.array([(error / naive) ** 2 for error, _, _ in errors("inp-ps")[0,]]).mean(axis=0)
    assert squares.min() < low
    # cohorts as if they were the crowd
    assert low < (standard("marg-ps", (0, 1), LOUD) ** 2).mean() < high
    assert (standard("marg-ps", (0, 1), LOUD, drawn=False) ** 2).mean(axis=0).max() > high
    # one view alone, as if there were no other to average with
    alone = np.array(
        [
            error
            / np.sqrt(
                table_variance(
                    "marg-ht", (1,), {view: people for view, people in asked.items() if 0 in view}
                )
            )
            for error, _, asked in errors("marg-ht")[1,]
        ]
    )
    assert (alone**2).mean(axis=0).min() < low


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_decoding_shows_as_bias(name: str) -> None:
    """Estimates shrunk by 15%, as with the p of another epsilon."""
    places = (0,)
    truth = crowd()[1][places]
    found = []
    for (error, _, asked), row in zip(errors(name)[places], standard(name, places), strict=True):
        scale = error / row  # the theoretical standard error
        found.append(((error + truth) * 0.85 - truth) / scale)
        assert len(asked) in (0, 3)
    assert np.abs(np.mean(found, axis=0)).max() * np.sqrt(RUNS) > z_limit(COMPARISONS)


@pytest.mark.parametrize("name", NAMES)
def test_predicted_errors_are_those_of_theory(name: str) -> None:
    """The prediction knows the method but not the people: within a factor of 1.5 of their mean
    squared error.
    """
    question = sv.Marginals(up_to=2, method=name)
    work = question.work(SCHEMA)
    chosen = method(name)
    options = chosen.settle(work, Terms(EPSILON, PEOPLE), SKETCH if name == "inp-htcms" else {})
    predicted = chosen.predict(work, Terms(EPSILON, PEOPLE), options)
    made = np.mean(
        [(error**2).sum() for places in SETS[2:] for error, _, _ in errors(name)[places]]
    )
    assert 1 / 1.5 < predicted / made < 1.5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("places", SETS)
def test_predictions_of_parts_are_those_of_theory(name: str, places: Places) -> None:
    """Single attributes as pairs, each by itself, of a plan for pairs."""
    work = sv.Marginals(up_to=2, method=name).work(SCHEMA)
    chosen = method(name)
    terms = Terms(EPSILON, PEOPLE)
    options = chosen.settle(work, terms, SKETCH if name == "inp-htcms" else {})
    (predicted,) = chosen.predict_tables(work, terms, options, [places])
    made = np.mean([(error**2).sum() for error, _, _ in errors(name)[places]])
    assert 1 / 1.5 < predicted / made < 1.5
