"""Counted reports: a count beside each row is the same as so many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.ground.errors import CorruptReport, InvalidInput
from tests.family_plans import each_family, plan_of, reports_of


def counted(reports: sv.Reports) -> tuple[Any, Any, Any]:
    """(cohorts, payloads, times) of the different reports, in Arrow columns as a database gives."""
    table = reports.to_arrow().select(["cohort", "payload"])
    found = table.group_by(["cohort", "payload"]).aggregate([([], "count_all")])
    payloads = found.column("payload").cast(pa.binary())
    return found.column("cohort").cast(pa.int64()), payloads, found.column("count_all")


@each_family
def test_counts_beside_different_reports_are_all_of_them(kind: str) -> None:
    plan = plan_of(kind)
    reports = sv.Reports.concat([reports_of(plan)] * 2)  # seeds repeat too
    cohorts, payloads, times = counted(reports)
    rows = sv.Reports.from_columns(plan, cohorts, payloads)
    found = sv.Aggregate(plan).add(rows, times)
    assert found.people == 800
    assert found.to_bytes() == sv.Aggregate(plan).add(reports).to_bytes()
    assert sv.Aggregate(plan).add(rows) != found
    listed = sv.Reports.from_columns(plan, cohorts.to_pylist(), payloads.to_pylist())
    assert listed == rows
    assert found.add(rows, np.zeros(len(rows), np.int64)).people == 800


def test_times_count_people() -> None:
    plan = plan_of("listed")
    reports = reports_of(plan, 3)
    total = sv.Aggregate(plan).add(next(iter(reports.single(plan))), times=[5])
    assert total.people == 5
    before = total.to_bytes()
    for wrong in ([1, 2], [1.0, 2.0, 3.0], [[1, 2, 3]], [True] * 3):
        with pytest.raises(InvalidInput, match="times must be a column of 3 signed integers"):
            total.add(reports, wrong)
    with pytest.raises(InvalidInput, match="times must not be negative"):
        total.add(reports, [1, -1, 1])
    with pytest.raises(InvalidInput, match="times must stand beside reports in columns"):
        total.add([reports], [1, 1, 1])
    assert total.to_bytes() == before


def test_columns_of_a_database_are_read_strictly() -> None:
    plan = plan_of("together")
    width = plan.cohorts.bytes
    good = [bytes(width)] * 2
    assert len(sv.Reports.from_columns(plan, [], [])) == 0
    assert sv.Reports.from_columns(plan, np.zeros(2, np.int64), good).cohorts.tolist() == [0, 0]
    for cohorts, payloads in (
        ([0.0, 0.0], good),
        ([True, False], good),
        (["0", "0"], good),
        ([-1, 0], good),
        ([1 << 32, 0], good),
        ([0, 0], [bytes(width), bytes(width + 1)]),
        ([0, 0], ["x" * width] * 2 if width > 1 else [1, 2]),
        ([0], good),
        (pa.array([0, 0]), pa.array([bytes(width), bytes(width - 1)], pa.binary())),
    ):
        with pytest.raises(CorruptReport, match="cohorts must be whole numbers"):
            sv.Reports.from_columns(plan, cohorts, payloads)
    with pytest.raises(CorruptReport, match="missing"):
        sv.Reports.from_columns(plan, [0, None], good)
