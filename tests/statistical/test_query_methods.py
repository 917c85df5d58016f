"""Methods for queries: right on average, and off by what their formulas say, not more nor less."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.aggregation.aggregate import fold
from sottovoce.questions.queries import hierarchy
from sottovoce.questions.queries.evidence import cohort_squares
from sottovoce.questions.queries.levels import LevelTable
from sottovoce.questions.queries.methods import method
from sottovoce.questions.queries.target import volume_of
from tests.statistics import ALPHA, z_limit

Floats = NDArray[np.float64]
ONE = sv.Schema(age=sv.Ordinal(0, 24))
TWO = sv.Schema(age=sv.Ordinal(0, 24), state=sv.Categorical("abc"))
RUNS = 500
PEOPLE = 300  # of one run: each combination of codes equally often
UNBIASED = ("mg", "hi", "hio", "sc", "tree")
EPSILON = "2"
CASES = [(name, schema) for name in UNBIASED for schema in ("one", "two")]
# Of tables many cells are added up, whose errors the sizes of oracles make dependent: this one is
# compared with the errors that it states, not with its prediction.
PREDICTED = ("hi", "hio", "sc", "tree")


def names_of(schema: sv.Schema) -> list[str]:
    return list(schema)


def even_people(schema: sv.Schema) -> dict[str, Any]:
    """Each combination of values as often as any other."""
    grids = np.meshgrid(*(np.arange(each.size) for each in schema.values()), indexing="ij")
    times = PEOPLE // grids[0].size
    codes = [np.tile(grid.ravel(), times) for grid in grids]
    return {
        name: np.array(schema[name].labels())[own] for name, own in zip(schema, codes, strict=True)
    }


def selections(schema: sv.Schema) -> list[dict[int, Floats]]:
    """Ranges that are cut into intervals of several levels, and a value."""
    ages = [np.zeros(25) for _ in range(3)]
    ages[0][3:17] = 1
    ages[1][5:10] = 1
    ages[2][:] = np.arange(25) / 24
    if len(schema) == 1:
        return [{0: each} for each in ages]
    state = np.array([0.0, 1.0, 0.0])
    return [{0: ages[0], 1: state}, {0: ages[1]}, {1: state}]


@cache
def errors_of(name: str, which: str, weighted: bool = False) -> tuple[Floats, Floats, Floats]:
    """(errors of every run, (runs, terms)); stated variances, on average; predicted ones."""
    schema = ONE if which == "one" else TWO
    question = sv.Queries(names_of(schema), method=name)
    plan = sv.plan(schema, question, epsilon=EPSILON, people=PEOPLE)
    people = even_people(schema)
    crowd = {key: np.tile(column, RUNS) for key, column in people.items()}
    reports = sv.simulate(plan, crowd, seed=13)
    terms = selections(schema)
    own = plan.question
    target, chosen = own.target(schema), method(name)  # type: ignore[attr-defined]
    options = own.options  # type: ignore[attr-defined]
    weights = np.arange(PEOPLE) % 7 + 1
    truth = np.array([volume_of(term) for term in terms])
    if weighted:
        codes = {key: schema[key].codes(np.asarray(column)) for key, column in people.items()}
        each = [
            np.prod(
                [
                    term[axis][codes[key].astype(int)]
                    for axis, key in enumerate(schema)
                    if axis in term
                ],
                axis=0,
            )
            for term in terms
        ]
        truth = np.array([weights @ one / weights.sum() for one in each])
    found, stated = [], []
    for run in range(RUNS):
        rows = reports[run * PEOPLE : (run + 1) * PEOPLE]
        squares = None
        aggregate = fold(plan, rows)
        if weighted:
            aggregate = fold(plan, rows, weights)
            squares = cohort_squares(rows.cohorts, weights, len(plan.cohorts))
        joint = chosen.fit(target, aggregate, options, squares).joint(terms)
        found.append(joint.values - truth)
        stated.append(np.diag(joint.covariance))
    predicted = chosen.predict_terms(target, plan.terms, options, terms)
    assert predicted is not None
    return np.array(found), np.mean(stated, axis=0), predicted


def is_centred(errors: Floats, comparisons: int) -> bool:
    """Whether errors of independent runs have mean 0, as far as they tell."""
    z = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    return bool(np.abs(z).max() < z_limit(comparisons))


def has_variance(errors: Floats, variance: Floats, comparisons: int) -> bool:
    """Whether errors of independent runs have these variances: normal ones would, to ALPHA."""
    degrees = len(errors) - 1
    ratio = errors.var(axis=0, ddof=1) / variance
    low, high = chi2.ppf([ALPHA / comparisons, 1 - ALPHA / comparisons], degrees) / degrees
    return bool((ratio > low).all() and (ratio < high).all())


@pytest.mark.parametrize(("name", "which"), CASES)
def test_answers_are_right_on_average(name: str, which: str) -> None:
    errors, stated, _ = errors_of(name, which)
    assert is_centred(errors, 3 * len(CASES))
    assert not is_centred(errors + np.sqrt(stated) / 3, 3 * len(CASES))


@pytest.mark.parametrize(("name", "which"), [case for case in CASES if case[0] in PREDICTED])
def test_errors_are_those_of_the_formula(name: str, which: str) -> None:
    """People are spread evenly, so that predictions are exact."""
    errors, _, predicted = errors_of(name, which)
    assert has_variance(errors, predicted, 3 * len(CASES))
    assert not has_variance(errors, predicted * 2, 3 * len(CASES))
    assert not has_variance(errors, predicted / 2, 3 * len(CASES))


@pytest.mark.parametrize(("name", "which"), CASES)
def test_stated_errors_are_those_made(name: str, which: str) -> None:
    errors, stated, _ = errors_of(name, which)
    # cells below 0 count as 0 in what grows with shares: stated errors are a little larger
    ratio = stated / errors.var(axis=0, ddof=1)
    assert (ratio > 0.75).all(), ratio
    assert (ratio < 1.4).all(), ratio


@pytest.mark.parametrize("name", ["hio", "tree", "sc"])
def test_weights_are_summed_without_bias(name: str) -> None:
    errors, stated, _ = errors_of(name, "two", weighted=True)
    assert is_centred(errors, 9)
    unweighted, _, _ = errors_of(name, "two")
    # a share of the weight errs more: by sum w^2 / (sum w)^2 instead of 1 / n
    weights = np.arange(PEOPLE) % 7 + 1
    more = PEOPLE * (weights**2).sum() / weights.sum() ** 2
    made = errors.var(axis=0, ddof=1)
    assert more > 1.2
    assert (np.abs(np.log(made / stated)) < np.log(1.4)).all()
    assert (np.abs(np.log(made / unweighted.var(axis=0, ddof=1) / more)) < np.log(1.4)).all()


@pytest.mark.parametrize("name", ["hi", "hio"])
def test_levels_too_large_to_list_answer_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their reports are kept, and asked for the cells of a query."""
    monkeypatch.setattr(hierarchy, "MAX_COUNTED_CELLS", 20)
    plan = sv.plan(TWO, sv.Queries(["age", "state"], method=name), epsilon=EPSILON, people=PEOPLE)
    names = {source.names[0] for cohort in plan.cohorts for source in cohort.oracles}
    assert names == {"olh", "olh-wide"}
    crowd = {key: np.tile(column, RUNS) for key, column in even_people(TWO).items()}
    reports = sv.simulate(plan, crowd, seed=15)
    terms = selections(TWO)
    truth = np.array([volume_of(term) for term in terms])
    errors = []
    for run in range(RUNS):
        table = fold(plan, reports[run * PEOPLE : (run + 1) * PEOPLE]).estimate().fitted  # type: ignore[attr-defined]
        errors.append(table.joint(terms).values - truth)
    target: Any = plan.question
    predicted = method(name).predict_terms(target.target(TWO), plan.terms, target.options, terms)
    assert predicted is not None
    assert is_centred(np.array(errors), 6)
    assert has_variance(np.array(errors), predicted, 6)
    assert not has_variance(np.array(errors), predicted * 2, 6)


def test_hio_scales_by_its_levels_and_gives_the_whole_none() -> None:
    """As in docs/errata, 12: people on the level (0, ..., 0) would tell nothing."""
    plan = sv.plan(TWO, sv.Queries(["age", "state"], method="hio"), epsilon=EPSILON, people=PEOPLE)
    assert len(plan.cohorts) == (2 + 1) * (1 + 1) - 1
    crowd = {key: np.tile(column, RUNS) for key, column in even_people(TWO).items()}
    reports = sv.simulate(plan, crowd, seed=14)
    terms = selections(TWO)
    truth = np.array([volume_of(term) for term in terms])
    good, mutant = [], []
    for run in range(RUNS):
        table = fold(plan, reports[run * PEOPLE : (run + 1) * PEOPLE]).estimate().fitted  # type: ignore[attr-defined]
        assert isinstance(table, LevelTable)
        good.append(table.joint(terms).values - truth)
        mutant.append(replace(table, levels=table.levels + 1).joint(terms).values - truth)
    assert is_centred(np.array(good), 6)
    assert not is_centred(np.array(mutant), 6)
