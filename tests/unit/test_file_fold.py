"""Folding files: any number of threads gives the same integers; the first bad report is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.aggregation import file_fold
from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.file_fold import count_files, fold_files
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.report_files import write_stream
from tests.family_plans import each_family, plan_of, reports_of


def parts_of(reports: sv.Reports, size: int) -> list[sv.Reports]:
    return [reports[start : start + size] for start in range(0, len(reports), size)]


def spoilt(reports: sv.Reports) -> sv.Reports:
    payload = reports.payload.copy()
    payload[0] = 0xFF
    return sv.Reports(reports.plan_id, reports.cohorts, payload)


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_fold, "JOB_REPORTS", 100)


@each_family
def test_threads_give_the_same_integers(kind: str, tmp_path: Path) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan, 1000)
    for number, part in enumerate(parts_of(reports, 300)):
        write_stream(tmp_path / f"{number}.parquet", parts_of(part, 40))
    sv.Reports.empty(plan).write(tmp_path / "none.parquet")
    stranger = plan_of(kind, epsilon=1.0)
    reports_of(stranger, 10).write(tmp_path / "other.parquet")
    whole = Aggregate(plan).add(reports).to_bytes()
    for threads in (1, 2, 3):
        seen: list[int] = []
        found = fold_files(plan, tmp_path, threads=threads, advance=seen.append)
        assert found.to_bytes() == whole
        assert seen == sorted(seen)
        assert seen[-1] == count_files(plan, tmp_path) == 1000
    alone = fold_files(plan, tmp_path / "0.parquet")
    assert alone == Aggregate(plan).add(reports[:300])
    assert fold_files(plan, tmp_path / "none.parquet") == Aggregate(plan)
    with pytest.raises(sv.PlanMismatch):
        fold_files(plan, tmp_path / "other.parquet")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_failure_is_the_one_that_is_told(threads: int, tmp_path: Path) -> None:
    plan = plan_of("signs")
    parts = parts_of(reports_of(plan, 1000), 100)
    far = sv.Reports(plan.id, parts[7].cohorts + np.uint32(1 << 20), parts[7].payload)
    mixed = [*parts[:3], spoilt(parts[3]), *parts[4:7], far, *parts[8:]]
    write_stream(tmp_path / "reports.parquet", mixed)
    with pytest.raises(CorruptReport, match="payload"):
        fold_files(plan, tmp_path / "reports.parquet", threads=threads)
    write_stream(tmp_path / "reports.parquet", [*parts[:7], far, spoilt(parts[8])])
    with pytest.raises(CorruptReport, match="cohort must be below"):
        fold_files(plan, tmp_path / "reports.parquet", threads=threads)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    plan = plan_of("listed")
    path = tmp_path / "reports.parquet"
    with pytest.raises(InvalidInput, match="exists"):
        fold_files(plan, path)
    write_stream(path, parts_of(reports_of(plan, 1000), 100))
    with pytest.raises(InvalidInput, match="threads"):
        fold_files(plan, path, threads=0)
    data = path.read_bytes()
    start = pq.read_metadata(path).row_group(5).column(1).data_page_offset
    path.write_bytes(data[: start + 40] + bytes([data[start + 40] ^ 1]) + data[start + 41 :])
    with pytest.raises(CorruptReport, match="cut or damaged"):
        fold_files(plan, path, threads=2)
    path.write_bytes(data.replace(b"cohort", b"\x9cohort"))  # a name that is no text
    with pytest.raises(CorruptReport, match="cut or damaged"):
        count_files(plan, path)


def test_threads_that_would_hold_too_much_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of("listed")
    write_stream(tmp_path / "reports.parquet", parts_of(reports_of(plan, 400), 100))
    made: list[Any] = []
    work = file_fold._SharedJobs.work
    monkeypatch.setattr(file_fold._SharedJobs, "work", lambda self: made.append(self) or work(self))
    most = Aggregate(plan).counts.most_bytes(200)
    for room, threads in ((2 * most, 2), (2 * most - 1, 1), (0, 1)):
        monkeypatch.setattr(file_fold, "MAX_PARTS_BYTES", room)
        made.clear()
        fold_files(plan, tmp_path / "reports.parquet", threads=2)
        assert len(made) == threads
