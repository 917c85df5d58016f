"""One test behind strengths, intervals and trees: its level holds, and nothing contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

import sottovoce as sv
from sottovoce.analysis.dependence import TEST_LEVEL, Dependence, judged
from sottovoce.questions.marginals.method import PairEvidence
from sottovoce.questions.marginals.models.pair_law import PairLaw, independent_of
from sottovoce.questions.marginals.models.sign_evidence import SignPair, sign_overlaps
from sottovoce.questions.marginals.models.signs import moments
from sottovoce.questions.marginals.workload import Workload
from tests.known import chain, known
from tests.statistics import ALPHA

RUNS = 130
PEOPLE = 3000
DRAWS = 200
SCHEMA = sv.Schema(
    a=sv.Categorical(range(2)), b=sv.Categorical(range(3)), c=sv.Categorical(range(5))
)
MARGINS = ([0.8, 0.2], [0.6, 0.3, 0.1], [0.5, 0.2, 0.15, 0.1, 0.05])
PAIRS = list(combinations(range(3), 2))


def unshrunk(plan: sv.Plan, seed: int) -> Sequence[PairEvidence]:
    """What reports of independent attributes say of all pairs, without fitting any model."""
    draws = np.random.default_rng(seed)
    people = {
        name: draws.choice(len(shares), PEOPLE, p=shares)
        for name, shares in zip(SCHEMA, MARGINS, strict=True)
    }
    aggregate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=10_000 + seed))
    if plan.question.method == "latent":  # type: ignore[attr-defined]
        work = Workload.of(SCHEMA, None, 2)
        heard, overlaps = moments(work, aggregate), sign_overlaps(work, aggregate)
        return [SignPair.of(heard, overlaps, pair) for pair in PAIRS]
    told = aggregate.estimate().joint.fit.evidence(PAIRS)
    assert told is not None
    return told


def dependence_of(evidence: PairEvidence, factor: float, seed: int) -> Dependence:
    """The test, with errors that are ``factor`` times those of the law."""
    errors = evidence.errors(DRAWS, np.random.default_rng(seed))
    return judged(evidence.table, independent_of(evidence.table) + factor * errors)


@pytest.mark.parametrize(("method", "epsilon"), [("latent", 0.5), ("latent", 4.0), ("calm", 4.0)])
def test_the_level_holds(method: str, epsilon: float) -> None:
    """Of unbiased evidence behind methods that shrink; with half the variance it does not."""
    question = sv.Marginals(up_to=2, method=method)
    plan = sv.plan(SCHEMA, question, epsilon=epsilon, people=PEOPLE)
    rejected, mutant = 0, 0
    for run in range(RUNS):
        for evidence in unshrunk(plan, run):
            rejected += dependence_of(evidence, 1.0, run).p_value <= TEST_LEVEL
            mutant += dependence_of(evidence, np.sqrt(0.5), run).p_value <= TEST_LEVEL
    tail = ALPHA / 6  # two sides, three comparisons
    tests = RUNS * len(PAIRS)
    low, high = binom.ppf(tail, tests, TEST_LEVEL), binom.isf(tail, tests, TEST_LEVEL)
    assert low <= rejected <= high < mutant


def test_intervals_hold_the_truth() -> None:
    """Of two by two tables, where phi^2 is the statistic; with half the variance they do not."""
    draws = np.random.default_rng(3)
    held, mutant, runs = 0, 0, 600
    for _ in range(runs):
        tie = draws.uniform(0, 0.2)
        truth = np.outer([0.6, 0.4], [0.5, 0.5]) + tie * np.array([[1, -1], [-1, 1]])
        strength = tie / np.sqrt(0.6 * 0.4 * 0.25)
        law = PairLaw.of(truth, np.full((2, 2), 0.03**2))
        table = truth + law.errors(1, draws)[0]
        heard = PairLaw.of(table, np.full((2, 2), 0.03**2))
        found, halved = dependence_of(heard, 1.0, 5), dependence_of(heard, np.sqrt(0.5), 5)
        held += found.low <= strength <= found.high
        mutant += halved.low <= strength <= halved.high
    tail = ALPHA / 2
    low, high = binom.ppf(tail, runs, 1 - TEST_LEVEL), binom.isf(tail, runs, 1 - TEST_LEVEL)
    assert mutant < low <= held <= high


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (7, 5)])
def test_nothing_contradicts_the_test(shape: tuple[int, int]) -> None:
    """The lower ends are above 0 exactly if the test rejects, and then so is the strength."""
    draws = np.random.default_rng(4)
    both, is_below = set(), set()  # rejected or not; noise alone tells more, or less
    for run in range(60):
        tie = draws.uniform(0, 0.5)
        truth = chain(shape, run)
        truth = tie * truth + (1 - tie) * independent_of(truth)
        spread = draws.uniform(0.001, 0.05)
        law = PairLaw.of(truth, np.full(shape, spread**2))
        heard = PairLaw.of(truth + law.errors(1, draws)[0], law.spread)
        found = dependence_of(heard, 1.0, run)
        is_rejected = found.p_value <= TEST_LEVEL
        both.add(is_rejected)
        assert (found.low > 0) == (found.information_low > 0) == is_rejected
        if is_rejected:
            assert found.cramers_v > 0 < found.information
        assert found.low <= found.cramers_v <= found.high <= 1
        assert found.information_low <= found.information <= found.information_high
        is_below.add(found.excess < 0)
    assert both == is_below == {True, False}


def test_trees_and_tests_agree() -> None:
    draws = np.random.default_rng(6)
    joint = chain([2, 3, 2, 4], 5)
    joint = 0.5 * joint + 0.5 * draws.dirichlet(np.full(joint.size, 3.0)).reshape(joint.shape)
    clear = set()
    for variance in (1e-7, 1e-5, 1e-4, 3e-4):
        estimate = known(joint, variance)
        tests = {frozenset(each.attributes): each for each in sv.associate(estimate)}
        for edge in sv.dependency_tree(estimate).edges:
            test = tests[frozenset((edge.parent, edge.child))]
            assert (edge.p_value, edge.adjusted) == (test.p_value, test.adjusted)
            assert edge.is_clear == (test.adjusted <= TEST_LEVEL)
            assert (edge.low > 0) == (test.low > 0) == (test.p_value <= TEST_LEVEL)
            assert edge.information == test.information
            assert edge.low <= edge.information <= edge.high
            clear.add(edge.is_clear)
    assert clear == {True, False}


def test_a_strong_tie_without_noise_is_what_it_is() -> None:
    table = chain([3, 4], 2)
    found = sv.associate(known(table, 1e-10, people=10_000_000))[0]
    plain = table - np.outer(table.sum(1), table.sum(0))
    squared = (plain**2 / np.outer(table.sum(1), table.sum(0))).sum() / 2
    assert found.cramers_v == pytest.approx(np.sqrt(squared), rel=0.01)
    assert found.low < np.sqrt(squared) < found.high < 1.02 * np.sqrt(squared)
    told = found.to_json()
    assert told["low"] == found.low
    assert told["information_high"] == found.information_high
