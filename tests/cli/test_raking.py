"""Weights for who did not answer: margins agree, errors are those of fewer people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import sottovoce as sv
from sottovoce.analysis.raking import WEIGHT_UNIT
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.results.cells import quantile
from tests.cli.helpers import Command, refused
from tests.statistics import ALPHA

PEOPLE = 3000
SCHEMA = sv.Schema(
    smoker=sv.Boolean(),
    drinks=sv.Categorical(["never", "often"]),
    state=sv.Categorical(["NY", "WA", "TX"], sensitive=False),
    age=sv.Ordinal(18, 97, bins=4, sensitive=False),
)
MARGINS = {
    "state": {"NY": 0.2, "WA": 0.3, "TX": 0.5},
    "age": {"18 to 37": 0.4, "38 to 57": 0.3, "58 to 77": 0.2, "78 to 97": 0.1},
}


def crowd() -> dict[str, Any]:
    """In New York nearly all smoke and answer."""
    draws = np.random.default_rng(1)
    state = draws.choice(["NY", "WA", "TX"], PEOPLE, p=[0.6, 0.3, 0.1])
    smoker = draws.random(PEOPLE) < np.where(state == "NY", 0.8, 0.2)
    drinks = np.where(draws.random(PEOPLE) < 0.5, "often", "never")
    age = draws.integers(18, 98, PEOPLE)
    return {
        "smoker": smoker,
        "drinks": drinks.astype(object),
        "state": state.astype(object),
        "age": age,
    }


CROWD = crowd()
FREQUENCIES = sv.Frequencies("smoker")
PAIRS = sv.Marginals(attributes=["smoker", "drinks"], up_to=2, method="inp-ht")


def planned(question: Any, public: Any = ("state", "age")) -> sv.Plan:
    return sv.plan(SCHEMA, question, epsilon=2.0, people=PEOPLE, public=list(public))


PLAN = planned(FREQUENCIES)
REPORTS = sv.simulate(PLAN, CROWD, seed=1)


def test_weighted_shares_are_those_that_were_wanted() -> None:
    raked = sv.rake(PLAN, REPORTS, MARGINS)
    shares = raked.weights / raked.weights.sum()
    for state, share in MARGINS["state"].items():
        assert np.isclose(shares[CROWD["state"] == state].sum(), share, atol=1e-6)
    decade = (CROWD["age"] - 18) // 20
    for code, share in enumerate(MARGINS["age"].values()):
        assert np.isclose(shares[decade == code].sum(), share, atol=1e-6)
    weights = raked.weights / WEIGHT_UNIT
    assert np.isclose(weights.mean(), 1, atol=1e-6)
    assert np.isclose(raked.effective_people, weights.sum() ** 2 / (weights**2).sum())
    assert np.isclose(raked.cost, PEOPLE / raked.effective_people)
    assert np.isclose(raked.largest, weights.max(), atol=1e-4)


def test_even_weights_change_nothing() -> None:
    """Where the answers are like the population, errors are those without weights."""
    held = {state: float(np.mean(CROWD["state"] == state)) for state in ("NY", "WA", "TX")}
    for question in (FREQUENCIES, PAIRS):
        plan = planned(question)
        reports = sv.simulate(plan, CROWD, seed=1)
        raked = sv.rake(plan, reports, {"state": held})
        assert np.isclose(raked.cost, 1)
        plain: Any = sv.Aggregate(plan).add(reports).estimate()
        same: Any = raked.estimate()
        for name in ("smoker",):
            one, other = plain.marginal(name), same.marginal(name)
            assert np.allclose(one.values, other.values, atol=1e-6)
            assert np.allclose(one.variances, other.variances, rtol=1e-2)
            assert np.isclose(one.total([True]).std_error, other.total([True]).std_error, rtol=1e-2)
            assert other.people == one.people == PEOPLE


LEVEL, RUNS, CHECKS = 0.8, 300, 2
ROUNDING = 0.02  # errors are not exactly normal, and their variances are estimated


@pytest.mark.parametrize("question", [FREQUENCIES, PAIRS], ids=["frequencies", "inp-ht"])
def test_weighted_intervals_hold_as_often_as_they_say(question: Any) -> None:
    """And those that leave out what the weights cost do not."""
    plan = planned(question)
    held = unweighted = 0
    for seed in range(RUNS):
        raked = sv.rake(plan, sv.simulate(plan, CROWD, seed=seed), {"state": MARGINS["state"]})
        estimate: Any = raked.estimate()
        table = estimate.marginal("smoker")
        truth = float(raked.weights @ CROWD["smoker"]) / float(raked.weights.sum())
        low, high = table.interval(LEVEL)
        held += bool(low[1] <= truth <= high[1])
        reach = quantile(LEVEL) * table.std_error[1] / np.sqrt(raked.cost)
        unweighted += bool(abs(table.values[1] - truth) <= reach)
    chance = ALPHA / (2 * CHECKS)
    least = binom.ppf(chance, RUNS, LEVEL - ROUNDING)
    most = binom.isf(chance, RUNS, LEVEL + ROUNDING)
    assert unweighted < least <= held <= most, (unweighted, least, held, most)


def test_shares_within_groups_are_weighted_too() -> None:
    plan = planned(PAIRS)
    raked = sv.rake(plan, sv.simulate(plan, CROWD, seed=1), {"state": MARGINS["state"]})
    estimate = raked.estimate()
    table = estimate.within("drinks", {"smoker": True})
    assert "weighted: 3,000 answers err as" in table.remark
    low, high = table.interval(0.999)
    inside = CROWD["smoker"]
    truth = raked.weights[inside & (CROWD["drinks"] == "often")].sum() / raked.weights[inside].sum()
    assert low[1] <= truth <= high[1]


@pytest.mark.parametrize(
    ("margins", "rule"),
    [
        ({}, "must name a public column"),
        ({"smoker": {"True": 1}}, "'smoker' is not one of the plan's public columns"),
        ({"state": {"NY": 0.5, "WA": 0.5}}, "the share of a value of 'state' is missing: TX"),
        ({"state": {"NY": 0.5, "WA": 0.2, "TX": 0.2}}, "add up to 0.9, not to 1"),
        ({"state": {"NY": -0.5, "WA": 1, "TX": 0.5}}, r"share \(-0.5\) of 'state'"),
        ({"state": {"NY": 1, "WA": 0, "TX": 0, "LA": 0}}, "'LA' is no value"),
    ],
)
def test_margins_that_cannot_be_are_refused(margins: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        sv.rake(PLAN, REPORTS, margins)


def test_what_has_no_weights_says_why() -> None:
    without = planned(FREQUENCIES, ())
    with pytest.raises(InvalidInput, match="no public columns"):
        sv.rake(without, sv.simulate(without, CROWD, seed=1), MARGINS)
    with pytest.raises(PlanMismatch):
        sv.rake(without, REPORTS, MARGINS)
    nobody = {**CROWD, "state": np.where(CROWD["state"] == "TX", "WA", CROWD["state"])}
    with pytest.raises(InvalidInput, match="nobody who answered has 'state' 'TX'"):
        sv.rake(PLAN, sv.simulate(PLAN, nobody, seed=1), MARGINS)
    latent = planned(sv.Marginals(attributes=["smoker", "drinks"], up_to=2, method="latent"))
    raked = sv.rake(latent, sv.simulate(latent, CROWD, seed=1), MARGINS)
    with pytest.raises(InvalidInput, match="latent takes weights for so many people"):
        raked.estimate()


def test_margins_that_contradict_the_answers_are_refused() -> None:
    """All of New York is young: no weights make a half New Yorkers and a tenth young."""
    young = {**CROWD, "age": np.where(CROWD["state"] == "NY", 20, 90)}
    reports = sv.simulate(PLAN, young, seed=1)
    margins = {
        "state": {"NY": 0.5, "WA": 0.25, "TX": 0.25},
        "age": {"18 to 37": 0.1, "78 to 97": 0.9},
    }
    with pytest.raises(InvalidInput, match="no weights fit state, age together"):
        sv.rake(PLAN, reports, margins)


def test_the_command_takes_margins_from_a_file(sottovoce: Command, tmp_path: Path) -> None:
    plan, reports, margins = (tmp_path / name for name in ("plan.json", "r.parquet", "m.toml"))
    plan.write_text(PLAN.to_json())
    REPORTS.write(reports)
    margins.write_text("[state]\nNY = 0.2\nWA = 0.3\nTX = 0.5\n")
    done = sottovoce("estimate", plan, reports, "--rake", margins, "-q")
    assert done.code == 0
    assert "weighted: 3,000 answers err as" in " ".join(done.out.split())
    page = tmp_path / "report.html"
    assert sottovoce("report", plan, reports, "-o", page, "--rake", margins, "-q").code == 0
    assert "Answers are weighted: 3,000 answers" in page.read_text()
    assert "3,000 people answered" in page.read_text()
    margins.write_text("state = 1\n")
    refused(sottovoce("estimate", plan, reports, "--rake", margins, "-q"), "table of shares")
    saved = tmp_path / "total.sva"
    saved.write_bytes(sv.Aggregate(PLAN).add(REPORTS).to_bytes())
    margins.write_text("[state]\nNY = 0.2\nWA = 0.3\nTX = 0.5\n")
    asked = ("estimate", plan, saved, "--rake", margins, "-q")
    refused(sottovoce(*asked), "no longer knows who is who")
    refused(
        sottovoce("estimate", plan, reports, "--rake", margins, "--complete", "-q"),
        "weights do not go with complete",
    )
