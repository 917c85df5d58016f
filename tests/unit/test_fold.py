"""Folding: reports are checked once, weights repeat them, aggregates absorb each other, and support
adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation.aggregate import fold
from sottovoce.aggregation.counts import Counts
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch
from sottovoce.oracles.shape import Shape
from tests.family_plans import each_family, plan_of, reports_of
from tests.vectors.aggregates import plans

KEPT = (
    "heavy-hitters/spm",
    "heavy-hitters/hash",
    "heavy-hitters/pem",
    "frequencies/olh-seeded",
    "top-items",
)


def rows(reports: sv.Reports, places: Any) -> sv.Reports:
    return sv.Reports(reports.plan_id, reports.cohorts[places], reports.payload[places])


def weights_repeat_reports(plan: sv.Plan, reports: sv.Reports) -> None:
    weights = np.random.default_rng(3).integers(0, 4, len(reports))
    repeated = fold(plan, rows(reports, np.repeat(np.arange(len(reports)), weights)))
    weighted = fold(plan, reports, weights)
    assert weighted.to_bytes() == repeated.to_bytes()
    assert weighted.people == int(weights.sum())
    assert sv.Aggregate.from_bytes(plan, weighted.to_bytes()) == repeated
    for index in set(reports.cohorts[:10].tolist()):
        assert weighted.cohort_people(index) == repeated.cohort_people(index)
        for ask, oracle in enumerate(plan.cohorts[index].oracles):
            some = np.arange(min(oracle.size, 5))
            assert (
                weighted.support(index, ask, some).tolist()
                == repeated.support(index, ask, some).tolist()
            )


@each_family
def test_a_weight_repeats_its_report(kind: str) -> None:
    plan = plan_of(kind)
    weights_repeat_reports(plan, reports_of(plan))


@pytest.mark.parametrize("name", KEPT)
def test_a_weight_repeats_a_report_that_is_kept(name: str) -> None:
    plan, columns = next((plan, columns) for each, plan, columns in plans() if each == name)
    weights_repeat_reports(plan, sv.simulate(plan, columns, seed=2))


@each_family
def test_counts_that_ignore_weights_are_told_apart(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(kind)
    own = type(sv.Aggregate(plan).counts)
    add: Callable[..., None] = own.add

    def blind(self: Counts, batch: Any, cohorts: Any, payload: Any, weights: Any = None) -> None:
        add(self, batch, cohorts, payload, None)

    monkeypatch.setattr(own, "add", blind)
    with pytest.raises(AssertionError):
        weights_repeat_reports(plan, reports_of(plan))


@each_family
def test_a_negative_weight_takes_reports_away(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    ones = np.ones(len(reports), np.int64)
    gone = fold(plan, reports).absorb(fold(plan, reports, -ones))
    assert gone == sv.Aggregate(plan)
    assert gone.people == 0
    half = np.where(np.arange(len(reports)) < 150, -1, 0)
    assert fold(plan, reports).absorb(fold(plan, reports, half)) == fold(plan, reports[150:])


@each_family
def test_absorbing_is_merging_in_place(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    one, other = fold(plan, reports[:150]), fold(plan, reports[150:])
    before = other.to_bytes()
    merged = one.merge(other)
    assert one.absorb(other) is one
    assert one == merged == fold(plan, reports)
    one.add(reports)
    assert other.to_bytes() == before
    twice = fold(plan, reports)
    assert twice.absorb(twice) == fold(plan, reports, [2] * len(reports))
    stranger = fold(plan_of(kind, epsilon=1.0), reports_of(plan_of(kind, epsilon=1.0), 3))
    with pytest.raises(PlanMismatch):
        one.absorb(stranger)


@each_family
def test_folding_changes_nothing_else(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    payload, cohorts = reports.payload.copy(), reports.cohorts.copy()
    assert fold(plan, reports) == fold(plan, reports) == sv.Aggregate(plan).add(reports)
    assert np.array_equal(reports.payload, payload)
    assert np.array_equal(reports.cohorts, cohorts)


@each_family
def test_support_adds_up_over_parts(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    whole, parts = fold(plan, reports), [fold(plan, reports[start::3]) for start in range(3)]
    for index in {*reports.cohorts[:10].tolist(), len(plan.cohorts) - 1}:
        cohort = plan.cohorts[index]
        own = reports.payload[reports.cohorts == index]
        assert (
            whole.cohort_people(index)
            == sum(part.cohort_people(index) for part in parts)
            == len(own)
        )
        for ask, (oracle, place) in enumerate(zip(cohort.oracles, cohort.slices, strict=True)):
            brute = oracle.support(np.ascontiguousarray(own[:, place]), np.arange(oracle.size))
            assert whole.support(index, ask).tolist() == brute.tolist()
            assert sum(part.support(index, ask) for part in parts).tolist() == brute.tolist()  # type: ignore[union-attr]
            assert whole.support(index, ask, [1, 0]).tolist() == brute[[1, 0]].tolist()
            if len(own):
                made = oracle.estimate_reports(np.ascontiguousarray(own[:, place]))
                for one, two in zip(whole.frequencies(index, ask), made, strict=True):
                    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("name", ["she", "hcms", "o-rr", "oue", "olh-seeded"])
def test_frequencies_are_the_estimates_of_the_oracle(name: str) -> None:
    plan, columns = next(
        (plan, columns) for each, plan, columns in plans() if each == f"frequencies/{name}"
    )
    reports = sv.simulate(plan, columns, seed=2)
    whole = fold(plan, reports)
    made = plan.cohorts[0].oracles[0].estimate_reports(reports.payload)
    for one, two in zip(whole.frequencies(0), made, strict=True):
        assert one.tobytes() == two.tobytes()


@each_family
def test_a_report_is_checked_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    looks: list[int] = []
    plain = Shape.validate  # which the oracles' own ones call

    def counted(self: Shape, payload: Any) -> None:
        looks.append(len(payload))
        plain(self, payload)

    monkeypatch.setattr(Shape, "validate", counted)
    sv.Aggregate(plan).add(reports)
    asks = [len(plan.cohorts[index].asks) for index in reports.cohorts.tolist()]
    assert sum(looks) == sum(asks)


@each_family
def test_bad_reports_change_nothing(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    bad = rows(reports, slice(None))
    payload = bad.payload.copy()
    payload[-1] = 0xFF
    whole = fold(plan, reports)
    before, size = whole.to_bytes(), whole.counts.magnitude
    with pytest.raises(CorruptReport):
        whole.add(sv.Reports(plan.id, bad.cohorts, payload))
    assert (whole.to_bytes(), whole.counts.magnitude) == (before, size)


def test_weights_are_whole_numbers_that_leave_room() -> None:
    plan = plan_of("listed")
    reports = reports_of(plan, 4)
    most = fold(plan, reports).counts.most_weight
    for wrong in (
        [1, 2, 3],
        [0.5] * 4,
        [True] * 4,
        [[1]] * 4,
        [most, 0, 0, 1],
        [1 << 62] * 4,
    ):
        with pytest.raises(InvalidInput, match="weights"):
            fold(plan, reports, wrong)
    full = fold(plan, reports, [most, 0, 0, 0])
    assert full.people == most
    before = full.to_bytes()
    with pytest.raises(InvalidInput, match="weights"):
        full.add(reports)
    with pytest.raises(InvalidInput, match="weights"):
        full.absorb(fold(plan, reports))
    assert full.to_bytes() == before
    assert fold(plan, reports[:0], []).people == 0


def test_large_weights_stay_exact_in_every_oracle() -> None:
    """A report with the largest weight supports what it supports, times the weight: no sum leaves
    its integers.
    """
    for name, plan, columns in plans():
        if not name.startswith("frequencies/") or name.endswith("budget"):
            continue
        reports = sv.simulate(plan, columns, seed=2)[:3]
        oracle = plan.cohorts[0].oracles[0]
        most = oracle.most_weight
        for weight in (most, -most):
            large = fold(plan, reports[:1], [weight])
            expected = [weight * int(each) for each in fold(plan, reports[:1]).support(0)]
            assert [int(each) for each in large.support(0)] == expected, name


def test_nothing_is_estimated_from_weights_that_cancel() -> None:
    name, plan, columns = next(plans())
    reports = sv.simulate(plan, columns, seed=2)
    for weight in (0, -1):
        with pytest.raises(InvalidInput, match="no reports yet"):
            fold(plan, reports, [weight] * len(reports)).estimate()
    twice = fold(plan, reports, [2] * len(reports)).estimate().marginal("x")
    assert twice.values.tolist() == fold(plan, reports).estimate().marginal("x").values.tolist(), (
        name
    )


@pytest.mark.parametrize("method", ["pem", "windows", "hash", "spm"])
def test_heavy_hitters_are_found_in_weighted_reports(method: str) -> None:
    """Reports of weight 2 and of weight 0 give what the first ones give if they are sent twice."""
    plan, columns = next(
        (plan, columns) for each, plan, columns in plans() if each == f"heavy-hitters/{method}"
    )
    reports = sv.simulate(plan, columns, seed=2)
    weights = np.where(np.arange(len(reports)) < 300, 2, 0)
    sent = sv.Aggregate(plan).add([reports[:300], reports[:300]])
    (one,), (two,) = (
        list(each.estimate().tables.values()) for each in (fold(plan, reports, weights), sent)
    )
    assert one.labels == two.labels
    assert one.values.tobytes() == two.values.tobytes()
    if method == "spm":
        with pytest.raises(InvalidInput, match="not negative"):
            fold(plan, reports, np.where(np.arange(len(reports)) < 100, -1, 1)).estimate()
