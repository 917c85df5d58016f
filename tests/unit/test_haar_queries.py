"""HaarHRR out of plain Hadamard reports: levels are told evenly, answers and errors are right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.questions.base import predicted
from sottovoce.questions.queries.methods.haar import HaarTable, character_weights, level_weights
from tests.statistics import ALPHA

RUNS = 120
PEOPLE = 4000
SIZE = 13


@pytest.mark.parametrize("levels", [1, 2, 3, 6, 10])
def test_levels_are_told_evenly(levels: int) -> None:
    """Exactly: a uniform mask of j bits that is not 0 tells level k with 2^(k-1) in 2^j - 1."""
    weights = level_weights(levels)
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    for level in range(1, levels + 1):
        told = sum(
            share * Fraction(1 << (level - 1), (1 << cohort) - 1)
            for cohort, share in enumerate(shares, start=1)
            if cohort >= level
        )
        assert told == Fraction(1, levels)


def test_character_weights_are_brute_force() -> None:
    draws = np.random.default_rng(1)
    selection = draws.random(SIZE)
    padded = np.append(selection, [selection[-1]] * 3)
    signs = np.array(
        [[(-1) ** (mask & code).bit_count() for code in range(16)] for mask in range(16)]
    )
    assert np.allclose(character_weights([{0: selection}], SIZE)[0], signs @ padded / 16)
    # with the true characters of a table its shares come out
    table = np.append(draws.dirichlet(np.ones(SIZE)), [0.0] * 3)
    fitted = HaarTable(SIZE, signs @ table, np.zeros(16))
    assert fitted.joint([{0: selection}]).values[0] == pytest.approx(selection @ table[:SIZE])
    assert fitted.joint([{}]).values[0] == pytest.approx(1)


def _errors() -> tuple[np.ndarray, np.ndarray]:
    """Errors of a few ranges over runs, (runs, ranges), and their stated covariance."""
    schema = sv.Schema(age=sv.Ordinal(0, SIZE - 1))
    question = sv.Queries(["age"], method="haar")
    plan = sv.plan(schema, question, epsilon=1.0, people=PEOPLE)
    ages = np.minimum(np.random.default_rng(2).geometric(0.2, PEOPLE) - 1, SIZE - 1)
    truth = np.bincount(ages, minlength=SIZE) / PEOPLE
    terms = [
        {0: np.isin(np.arange(SIZE), range(*ends)).astype(float)} for ends in ((0, 5), (2, 11))
    ]
    errors, stated = [], []
    for run in range(RUNS):
        reports = sv.simulate(plan, {"age": ages}, seed=run)
        joint = sv.Aggregate(plan).add(reports).estimate().fitted.joint(terms)  # type: ignore[attr-defined]
        errors.append(joint.values - np.array([term[0] @ truth for term in terms]))
        stated.append(joint.covariance)
    return np.array(errors), np.mean(stated, axis=0)


def test_answers_are_centred_and_vary_as_stated() -> None:
    """Squared errors in units of the stated covariance are chi-squared over runs; half or twice
    the covariance would be rejected.
    """
    errors, covariance = _errors()
    squares = float(np.einsum("ri,ij,rj->", errors, np.linalg.inv(covariance), errors))
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], 2 * RUNS)
    assert low < squares < high
    assert squares * 2 > high
    assert squares / 2 < low
    bias = errors.mean(axis=0) / np.sqrt(np.diag(covariance) / RUNS)
    assert (bias**2).sum() < chi2.isf(ALPHA, 2)


def test_predicted_is_what_an_even_crowd_gets() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 15))
    question = sv.Queries(["age"], method="haar", workload={"volumes": ["0.25"], "dimensions": [1]})
    plan = sv.plan(schema, question, epsilon=1.0, people=16_000)
    reports = sv.simulate(plan, {"age": np.arange(16_000) % 16}, seed=1)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    terms = estimate.target.terms  # type: ignore[attr-defined]
    stated = estimate.fitted.joint(terms).std_errors ** 2  # type: ignore[attr-defined]
    assert predicted(plan).error ** 2 == pytest.approx(stated.mean(), rel=0.05)


def test_weights_scale_nothing_and_count_by_their_squares() -> None:
    """Equal weights give the count's table, and its error; unequal ones a larger error."""
    schema = sv.Schema(age=sv.Ordinal(0, 15), pay=sv.Number(0, 100, step=1, sensitive=False))
    question = sv.Queries(["age"], measures=["pay"], method="haar")
    plan = sv.plan(schema, question, epsilon=2.0, people=8000)
    ages = np.arange(8000) % 10
    reports = sv.simulate(plan, {"age": ages, "pay": np.full(8000, 7)}, seed=1)
    estimate = sv.Aggregate(plan).add(reports).estimate()
    terms = [{0: (np.arange(16) < 5).astype(float)}]
    counted = estimate.fitted.joint(terms)  # type: ignore[attr-defined]
    equal = estimate.weighted(reports, np.full(8000, 7)).joint(terms)  # type: ignore[attr-defined]
    assert equal.values[0] == pytest.approx(counted.values[0])
    assert equal.std_errors[0] == pytest.approx(counted.std_errors[0])
    mixed = np.where(np.arange(8000) % 20 == 3, 50, 1)
    unequal = estimate.weighted(reports, mixed).joint(terms)  # type: ignore[attr-defined]
    worth = mixed.sum() ** 2 / (mixed**2).sum()
    assert unequal.std_errors[0] / counted.std_errors[0] == pytest.approx(
        np.sqrt(8000 / worth), rel=0.05
    )


def test_what_does_not_fit_is_refused() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 15), state=sv.Categorical(["NY", "WA"]))
    for names in (["state"], ["age", "state"]):
        with pytest.raises(sv.InvalidInput, match="one dimension"):
            sv.plan(schema, sv.Queries(names, method="haar"), epsilon=1.0, people=1000)
