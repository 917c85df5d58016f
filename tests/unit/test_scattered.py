"""Rows that stay where the reports are: what estimators ask of them travels, and the estimates are
those of an aggregate that holds all rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation.aggregate import Aggregate, fold
from sottovoce.aggregation.pieces import Piece, vector_of, vector_pieces
from sottovoce.aggregation.scattered import PartTask, Run, scattered
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch
from sottovoce.oracles import PureOracle
from sottovoce.questions.marginals.estimate import MarginalEstimate
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.models.product_sums import (
    PEOPLE_AT_ONCE,
    LevelWeights,
    ProductSums,
)
from sottovoce.results.findings import Findings
from tests.family_plans import KINDS, plan_of
from tests.unit.test_pieces import CROWDS, parts_of, summed

KEPT = [
    "together",
    "kept",
    "frequencies/olh-seeded",
    "frequencies/olh-wide",
    "frequencies/olh-sets",
    "marginals/inp-em",
    "marginals/em",
    "heavy-hitters/pem",
    "heavy-hitters/tree-hist",
    "heavy-hitters/spm",
    "heavy-hitters/hash",
    "queries/sc",
]


def run_over(parts: list[Aggregate], asked: list[PartTask] | None = None) -> Run:
    """Tasks travel to each part and pieces travel back, to be added up by number."""

    def run(task: PartTask) -> list[Piece]:
        sent = pickle.dumps(task)
        if asked is not None:
            asked.append(task)
        pieces = [piece for part in parts for piece in pickle.loads(sent)(part)]
        return summed(pieces)

    return run


@pytest.mark.parametrize("name", KEPT)
def test_rows_are_asked_where_they_are(name: str) -> None:
    plan, reports = CROWDS[name]()
    whole = fold(plan, reports)
    asked: list[PartTask] = []
    apart = scattered(plan, run_over(parts_of(plan, reports), asked))
    assert apart.people == whole.people
    assert apart.counts.fewest == whole.counts.fewest
    assert apart.counts.is_signed is whole.counts.is_signed is False
    assert len(asked) == 1
    for index, cohort in enumerate(plan.cohorts):
        assert apart.cohort_people(index) == whole.cohort_people(index)
        for ask, oracle in enumerate(cohort.oracles):
            some = np.arange(min(oracle.size, 5))
            for values in (some, some[::-1]):
                found = apart.support(index, ask, values)
                assert np.array_equal(found, whole.support(index, ask, values))
    assert len(asked) > 1


def numbers_of(estimate: Any) -> Any:
    """All numbers of an estimate, of whatever question."""
    if isinstance(estimate, Findings):
        return estimate.rows()
    if isinstance(estimate, MarginalEstimate):
        return estimate.marginal("a", "b").rows()
    table = estimate.marginal("age") if isinstance(estimate, QueryEstimate) else estimate.table
    return table.rows()


@pytest.mark.parametrize("name", [name for name in KEPT if name not in KINDS])
def test_estimates_are_those_of_all_rows(name: str) -> None:
    plan, reports = CROWDS[name]()
    whole = fold(plan, reports)
    apart = scattered(plan, run_over(parts_of(plan, reports)))
    assert numbers_of(apart.estimate()) == numbers_of(whole.estimate())


def test_tables_of_one_shape_are_asked_for_at_once() -> None:
    schema = sv.Schema(**{f"a{number}": sv.Boolean() for number in range(5)})
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="em"), epsilon=4.0, people=1000)
    draws = np.random.default_rng(15)
    reports = sv.simulate(plan, {name: draws.integers(0, 2, 200) for name in schema}, seed=1)
    asked: list[PartTask] = []
    estimate = scattered(plan, run_over(parts_of(plan, reports), asked)).estimate()
    assert len(estimate.marginals(2)) == 10
    assert len(asked) == 1 + 2  # the people; then all pairs, for tables and for errors


def test_a_plan_without_rows_is_folded_and_no_more() -> None:
    plan, reports = CROWDS["subsets"]()
    asked: list[PartTask] = []
    assert scattered(plan, run_over(parts_of(plan, reports), asked)) == fold(plan, reports)
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["together", "kept"])
def test_it_is_asked_and_nothing_else(name: str) -> None:
    plan, reports = CROWDS[name]()
    apart = scattered(plan, run_over(parts_of(plan, reports)))
    whole = fold(plan, reports)
    tries: list[Callable[[], Any]] = [
        apart.to_bytes,
        lambda: list(apart.pieces()),
        lambda: apart.add(reports),
        lambda: apart.absorb(whole),
        lambda: whole.merge(apart),
        lambda: apart.merge(whole),
        lambda: apart.add_pieces(list(whole.pieces())),
        lambda: apart == whole,
    ]
    for wrong in tries:
        with pytest.raises(InvalidInput, match="its rows lie where its reports are"):
            wrong()
    assert apart.people == len(reports)
    assert whole == fold(plan, reports)


def test_reports_that_were_taken_away_are_seen() -> None:
    plan, reports = CROWDS["kept"]()
    weights = np.where(np.arange(len(reports)) < 5, -1, 1)
    apart = scattered(plan, run_over(parts_of(plan, reports, weights)))
    assert apart.counts.is_signed
    assert apart.people == len(reports) - 10


def test_an_answer_that_is_lost_is_refused() -> None:
    plan, reports = CROWDS["kept"]()
    parts = parts_of(plan, reports)
    whole = run_over(parts)
    lost: list[bool] = []

    def run(task: PartTask) -> list[Piece]:
        return [] if lost else list(whole(task))

    apart = scattered(plan, run)
    assert apart.support(0, 0).any()
    lost.append(True)
    with pytest.raises(CorruptReport, match="missing"):
        apart.support(0, 0)


def test_a_bad_question_never_travels() -> None:
    plan, reports = CROWDS["kept"]()
    asked: list[PartTask] = []
    apart = scattered(plan, run_over(parts_of(plan, reports), asked))
    with pytest.raises(InvalidInput):
        apart.support(0, 0, [99])
    with pytest.raises(InvalidInput, match="have no sums"):
        apart.state(0, 0)
    with pytest.raises(InvalidInput, match="not kept together"):
        apart.over_rows(0, (0, 2), lambda *_: np.zeros(1, np.int64))
    assert len(asked) == 1


SHAPE = (3, 1 << 16)


def vector(seed: int) -> Any:
    return np.random.default_rng(seed).integers(-(1 << 40), 1 << 40, SHAPE)


def test_vectors_travel_in_pieces() -> None:
    plan = plan_of("listed")
    one, other = vector(1), vector(2)
    pieces = [*vector_pieces(plan.id, one), *vector_pieces(plan.id, other)]
    assert len(pieces) == 6
    assert np.array_equal(vector_of(plan.id, pieces, SHAPE), one + other)
    assert np.array_equal(vector_of(plan.id, summed(pieces), SHAPE), one + other)
    for place in range(3):
        with pytest.raises(CorruptReport, match="missing, or there twice"):
            vector_of(plan.id, pieces[:place] + pieces[place + 1 :], SHAPE)
    with pytest.raises(CorruptReport, match="no such piece"):
        vector_of(plan.id, pieces, (3, 1 << 15))
    with pytest.raises(PlanMismatch, match="another plan"):
        vector_of(plan_of("kept").id, pieces, SHAPE)
    large = list(vector_pieces(plan.id, np.array([1 << 62])))
    with pytest.raises(InvalidInput, match="64 bits"):
        vector_of(plan.id, large * 2, (1,))


# -- sums of products, of the conjunctive estimator


def random_sums(terms: int, magnitude: int) -> tuple[ProductSums, list[Any]]:
    """Two dimensions with a level each, and what the levels' weights are."""
    draws = np.random.default_rng(12)
    sources = [cast(PureOracle, sv.oracle("oue", size=size, epsilon=1.0)) for size in (7, 4)]
    weights = [draws.random((terms, source.size)) * 3 - 1 for source in sources]
    levels = [
        LevelWeights.of(axis, source, each)
        for axis, (source, each) in enumerate(zip(sources, weights, strict=True))
    ]
    wholes = [draws.random(terms), np.zeros(terms)]
    return ProductSums.of(wholes, levels, magnitude), [sources, weights, wholes]


def test_sums_of_products_are_those_of_every_person() -> None:
    draws = np.random.default_rng(13)
    people, terms = 600, 3
    counts = draws.integers(1, 5, people)
    sums, (sources, weights, wholes) = random_sums(terms, int(counts.sum()))
    payloads = [source.simulate(draws.integers(0, source.size, people), 3) for source in sources]
    first, second = sums.read(sums(payloads, counts))
    each = np.ones((people, terms))
    for source, own, whole, payload in zip(sources, weights, wholes, payloads, strict=True):
        for person in range(people):
            bits = np.unpackbits(payload[person], count=source.size, bitorder="little")
            each[person] *= whole + own @ ((bits - source.q) / source.gap)
    assert np.allclose(first, counts @ each, rtol=1e-8)
    assert np.allclose(second, (each * counts[:, None]).T @ each, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("heavy", [1, 1 << 32])
def test_sums_of_products_are_the_same_in_any_order(heavy: int) -> None:
    draws = np.random.default_rng(14)
    people = PEOPLE_AT_ONCE + 500
    counts = draws.integers(1, 4 * heavy, people)
    sums, (sources, *_) = random_sums(4, int(counts.sum()))
    payloads = [source.simulate(draws.integers(0, source.size, people), 3) for source in sources]
    whole = sums(payloads, counts)
    order = draws.permutation(people)
    parts = sum(
        sums([payload[rows] for payload in payloads], counts[rows])
        for rows in np.array_split(order, 7)
    )
    assert np.array_equal(parts, whole)
    assert whole.any()


def test_a_selection_that_holds_nobody_adds_nothing() -> None:
    sums, (sources, *_) = random_sums(2, 100)
    nothing = replace(sums.levels[1], weights=np.zeros_like(sums.levels[1].weights))
    sums = ProductSums.of(sums.wholes, [sums.levels[0], nothing], 100)
    payloads = [source.simulate(np.zeros(100, int), 3) for source in sources]
    assert not sums(payloads, None).any()
