"""Rows: the one way in which reports are kept, and what estimators may ask of them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation import rows as rows_file
from sottovoce.aggregation.aggregate import Aggregate, RowCount, counts_of, fold
from sottovoce.aggregation.merging import sum_equal
from sottovoce.aggregation.rows import KeptRows
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles.base import Integers
from tests.family_plans import each_family, kept, plan_of, reports_of
from tests.vectors.aggregates import plans

CASES = {name: (plan, columns) for name, plan, columns in plans()}
LISTED = {"heavy-hitters/o-rr": {"candidates": list(range(50))}}


class Parts(Aggregate):
    """Aggregates of parts of the reports, which are asked and never merged: what an engine has."""

    def __init__(self, parts: Sequence[Aggregate]) -> None:
        self.plan = parts[0].plan
        self.parts = parts

    @property
    def counts(self) -> Any:
        raise AssertionError("an estimator looked inside")

    @property
    def people(self) -> int:
        return sum(part.people for part in self.parts)

    def cohort_people(self, index: int) -> int:
        return sum(part.cohort_people(index) for part in self.parts)

    def support(self, cohort: int, ask: int = 0, values: Any = None) -> Integers:
        return np.sum([part.support(cohort, ask, values) for part in self.parts], axis=0)

    def state(self, cohort: int, ask: int = 0) -> Integers:
        return np.sum([part.state(cohort, ask) for part in self.parts], axis=0)

    def over_rows(self, cohort: int, asks: Sequence[int], count: RowCount) -> Integers:
        sent = pickle.loads(pickle.dumps(count))  # to where a part lies
        return np.sum([part.over_rows(cohort, asks, sent) for part in self.parts], axis=0)

    @property
    def answers(self) -> tuple[Integers, Integers, Integers]:
        columns = zip(*(part.answers for part in self.parts), strict=True)
        cohorts, answers, people = (np.concatenate(column) for column in columns)
        places, sums = sum_equal([cohorts, answers], people)
        return cohorts[places], answers[places], sums

    def require_people(self) -> int:
        return self.people

    def require_counts(self, method: str) -> None:
        for part in self.parts:
            part.require_counts(method)


def tables_of(estimate: Any) -> list[sv.Table]:
    if estimate.tables:
        return list(estimate.tables.values())
    return [estimate.marginal(*names) for names in (("a", "b"), ("b", "c"), ("c", "d"))]


# An optimizer that stops early makes much of a last digit, which may depend on where arrays lie in
# memory: on a busy machine bits differed once.
BY_OPTIMIZER = ("marginals/latent",)


@pytest.mark.parametrize("name", list(CASES))
def test_estimators_ask_and_parts_answer(name: str) -> None:
    """Nothing is read but what adds up: parts that are never merged give the same estimate."""
    plan, columns = CASES[name]
    reports = sv.simulate(plan, columns, seed=5)
    options = LISTED.get(name, {})
    parts = Parts([fold(plan, reports[start::3]) for start in range(3)])
    merged = fold(plan, reports).estimate(**options)
    for one, other in zip(tables_of(parts.estimate(**options)), tables_of(merged), strict=True):
        assert one.labels == other.labels
        if name in BY_OPTIMIZER:
            assert one.values == pytest.approx(other.values, abs=one.std_error.min() / 10)
            continue
        assert one.values.tobytes() == other.values.tobytes()
        assert one.variances.tobytes() == other.variances.tobytes()


# -- keeping


@pytest.mark.parametrize("name", ["marginals/em", "heavy-hitters/spm", "frequencies/olh-seeded"])
def test_whether_rows_are_sorted_as_they_come_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, columns = CASES[name]
    reports = sv.simulate(plan, columns, seed=5)
    weights = np.arange(len(reports)) % 4
    made = []
    for bits in (0, 1 << 20):
        monkeypatch.setattr(rows_file, "REPEATING_BITS", bits)
        whole = Aggregate(plan)
        for start in range(0, len(reports), 37):
            whole.add(reports[start : start + 37])
        whole.absorb(fold(plan, reports, weights))
        tables = tables_of(whole.estimate())
        made.append((whole.to_bytes(), [table.values.tobytes() for table in tables]))
    assert made[0] == made[1]


def test_rows_of_few_bits_are_kept_once_and_long_ones_as_they_came() -> None:
    short, long = (
        sv.oracle("grr", size=5, epsilon=1.0),
        sv.oracle("olh-seeded", size=5, epsilon=1.0),
    )
    for oracle, is_once in ((short, True), (long, False)):
        payload = oracle.simulate(np.arange(1000) % 5, seed=1)
        rows = KeptRows([oracle])
        for _ in range(2):
            rows.add(payload, None, 0)
        table = rows.table()
        assert (len(table.payload) < 6) is is_once
        assert (table.counts is None) is not is_once
        assert rows.people == 2000
        assert rows.support(0, None).tolist() == (2 * oracle.support(payload, range(5))).tolist()


@pytest.mark.parametrize("name", ["frequencies/olh-seeded", "heavy-hitters/spm"])
def test_rows_are_copied_and_shared_arrays_never_change(name: str) -> None:
    plan, columns = CASES[name]
    reports = sv.simulate(plan, columns, seed=5)
    payload = reports.payload.copy()
    whole = fold(plan, sv.Reports(plan.id, reports.cohorts, payload))
    one, other = Aggregate(plan).absorb(whole), Aggregate(plan).absorb(whole)
    before = whole.to_bytes()
    payload[:] = 0
    one.add(reports).absorb(other)
    assert whole.to_bytes() == other.to_bytes() == before
    assert one == fold(plan, reports, [3] * len(reports))


def test_a_report_in_many_pieces_is_kept_in_few() -> None:
    """Single reports do not pile up: they are put into one table, again and again."""
    oracle = sv.oracle("olh-seeded", size=5, epsilon=1.0)
    payload = oracle.simulate(np.arange(300) % 5, seed=1)
    rows = KeptRows([oracle])
    pieces = 0
    for row in payload:
        rows.add(row[None, :], None, 0)
        pieces = max(pieces, len(rows._tables) - len(rows._tables[0].payload))
    assert pieces <= 1
    assert len(rows._tables) < 256
    assert rows.people == 300


# -- as bytes


@each_family
def test_weights_of_any_sign_survive_as_bytes(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    draws = np.random.default_rng(8)
    for weights in (
        draws.integers(-3, 4, len(reports)),
        np.full(len(reports), -2),
        np.where(np.arange(len(reports)) % 2, 1, -1),
        np.where(np.arange(len(reports)) % 2, 1 << 25, 1),
    ):
        whole = fold(plan, reports, weights)
        again = Aggregate.from_bytes(plan, whole.to_bytes())
        assert again == whole
        assert again.to_bytes() == whole.to_bytes()
        assert again.people == int(weights.sum())
        index = int(reports.cohorts[0])
        for ask in range(len(plan.cohorts[index].oracles)):
            assert again.support(index, ask).tolist() == whole.support(index, ask).tolist()
        assert again.absorb(fold(plan, reports, -weights)) == Aggregate(plan)


@each_family
def test_room_is_remembered_where_weights_cancelled(kind: str) -> None:
    """What went in counts for the limits, or what is left does: never less than that."""
    plan = plan_of(kind)
    reports = reports_of(plan, 2)
    most = fold(plan, reports).counts.most_weight
    half = most // 2
    whole = fold(plan, reports, [half, -half])
    again = Aggregate.from_bytes(plan, whole.to_bytes())
    assert again.counts.magnitude in (0, 2 * half)
    for cohort in {*reports.cohorts.tolist()}:
        if whole.cohort_people(cohort):
            assert again.counts.magnitude == 2 * half
    if again.counts.magnitude:
        with pytest.raises(InvalidInput, match="weights"):
            again.add(reports)
    plain = fold(plan, reports, [half, half])
    assert Aggregate.from_bytes(plan, plain.to_bytes()).counts.magnitude == 2 * half


def body_of(header: Sequence[Any], *arrays: Any) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    parts = [np.array(array, "<i8").tobytes() for array in arrays]
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def test_rows_that_no_crowd_sent_are_refused() -> None:
    """The second cohort of these keeps a seed and an answer of a few values."""
    family = kept(Decimal("0.7"))
    limit = family[1].oracles[0].layout.fields[1].limit
    assert limit == 3
    fine = counts_of(family)
    fine.read(body_of([[1, 2, [[2, 2]]]], [[-5, 0], [7, 1]]))
    assert (fine.people, fine.magnitude) == (2, 2)
    fine = counts_of(family)
    fine.read(body_of([[1, -1, [[2, 3]], 3]], [[-5, 0, 1], [7, 1, -2]]))
    assert (fine.people, fine.magnitude) == (-1, 3)
    for header, array in (
        ([[1, 2, [[2, 2]]]], [[7, 1], [-5, 0]]),  # not increasing
        ([[1, 3, [[2, 2]]]], [[-5, 0], [7, 1]]),  # more people than reports
        ([[1, 2, [[2, 2]]]], [[-5, 0], [7, limit]]),  # an answer beyond the last
        ([[1, 2, [[2, 2]]]], [[-5, -1], [7, 1]]),
        ([[1, 2, [[2, 3]]]], [[-5, 0, 1], [-5, 0, 1]]),  # one report twice
        ([[1, 1, [[2, 3]]]], [[-5, 0, 1], [7, 1, 0]]),
        ([[1, 0, [[2, 3]], 9]], [[-5, 0, 1 << 62], [7, 1, -(1 << 62)]]),
        ([[1, 2, [[1, 4]]]], [[-5, 0, 7, 1]]),
        ([[1, -1, [[2, 3]]]], [[-5, 0, 1], [7, 1, -2]]),  # less magnitude than weight
        ([[1, -1, [[2, 3]], 0]], [[-5, 0, 1], [7, 1, -2]]),
        ([[1, 2, [[2, 2]]], [1, 0, [[0, 2]]]], [[-5, 0], [7, 1]]),  # a cohort twice
    ):
        with pytest.raises((CorruptReport, InvalidInput), match=r"^(aggregate|payload): "):
            counts_of(family).read(body_of(header, array))


# -- methods that take counts for those of people


@pytest.mark.parametrize(
    "name",
    [
        "marginals/em",
        "marginals/inp-em",
        "heavy-hitters/spm",
        "marginals/latent",
        "marginals/inp-ht",
    ],
)
def test_counts_below_zero_are_refused_by_who_cannot_take_them(name: str) -> None:
    plan, columns = CASES[name]
    reports = sv.simulate(plan, columns, seed=5)
    sent = [(report.cohort, report.payload) for report in reports.single(plan)]
    weights = [-1 if each == sent[0] else 9 for each in sent]
    with pytest.raises(InvalidInput, match="needs reports whose weights are not negative"):
        tables_of(fold(plan, reports, weights).estimate())
    # who is only taken away after having been there leaves nothing behind
    taken = fold(plan, reports).absorb(fold(plan, reports[:40], [-1] * 40))
    left = fold(plan, reports[40:])
    assert taken == left
    for one, other in zip(tables_of(taken.estimate()), tables_of(left.estimate()), strict=True):
        assert one.values.tobytes() == other.values.tobytes()


@each_family
def test_signs_are_told_where_nothing_made_up_for_them(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan, 9)
    assert not fold(plan, reports).counts.is_signed
    taken = fold(plan, reports, [-1] * 9)
    assert taken.counts.is_signed
    assert not taken.absorb(fold(plan, reports)).counts.is_signed


def test_a_cohort_of_less_than_nobody_is_not_estimated() -> None:
    plan, columns = CASES["marginals/calm"]
    reports = sv.simulate(plan, columns, seed=5)
    whole = fold(plan, reports, np.where(reports.cohorts == 0, -1, 2))
    assert whole.people > 0
    with pytest.raises(InvalidInput, match="add up to less than 0"):
        whole.estimate()


@pytest.mark.parametrize(
    ("name", "repair"),
    [("grr", "maximum-likelihood"), ("grr", "em"), ("oue", "composite-likelihood")],
)
def test_likelihoods_refuse_counts_that_are_none(name: str, repair: str) -> None:
    plan, columns = CASES[f"frequencies/{name}"]
    reports = sv.simulate(plan, columns, seed=5)
    oracle = plan.cohorts[0].oracles[0]
    supports_first = [oracle.support(reports.payload[[row]], [0])[0] for row in range(400)]
    weights = np.where(supports_first, -1, 2)
    table = fold(plan, reports, weights).estimate().marginal("x")
    assert table.law is not None
    assert table.law.support.min() < 0
    with pytest.raises(InvalidInput, match="weights are not negative"):
        sv.postprocess(table, repair)
    doubled = sv.postprocess(fold(plan, reports, abs(weights)).estimate().marginal("x"), repair)
    assert doubled.values.sum() == pytest.approx(1)
