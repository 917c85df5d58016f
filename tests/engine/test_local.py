"""Threads: the same integers as one by one, from whole files and from pieces; clear errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.aggregation.pieces import Piece
from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine import LocalEngine, TaskEngine, open_engine
from sottovoce.engine.base import Task
from sottovoce.engine.jobs import fold_jobs
from sottovoce.ground.errors import ClusterError, CorruptReport, InvalidInput, PlanMismatch
from sottovoce.protocol.report_files import stream, write_stream
from tests.engine import work
from tests.engine.plans import PLANS, plan_of, put_files, reports_of, write_files
from tests.shipping.object_store import serving


@pytest.mark.parametrize("name", PLANS)
def test_pieces_of_any_number_of_jobs_give_the_integers_of_the_reports(
    name: str, tmp_path: Path
) -> None:
    plan = plan_of(name)
    reports = reports_of(plan)
    write_files(tmp_path, plan, reports)
    whole = sv.Aggregate(plan).add(reports)
    for threads in (1, 2):
        engine = LocalEngine(threads)
        assert engine.fold(plan, tmp_path) == whole
        assert TaskEngine.fold(engine, plan, tmp_path) == whole  # in pieces, as on a cluster
    mutant = sv.Aggregate(plan).add(reports[1:])
    assert mutant != whole


class Losing(LocalEngine):
    """Leaves out the first job, or does it twice: what no engine may do."""

    def __init__(self, times: int) -> None:
        super().__init__(2)
        self._times = times

    def run(self, task: Task, jobs: Sequence[Any], merge: bool) -> Iterator[Piece]:
        return super().run(task, [*jobs[:1] * self._times, *jobs[1:]], merge)


@pytest.mark.parametrize("times", [0, 2])
def test_a_job_that_is_lost_or_counted_twice_is_noticed(times: int, tmp_path: Path) -> None:
    """Each job gives one whole piece of such a plan: no piece says that another is missing."""
    plan = plan_of("latent")
    write_files(tmp_path, plan, reports_of(plan))
    assert len(fold_jobs(plan, tmp_path, 2)) > 1
    engine = Losing(times)
    for work_of in (TaskEngine.fold, TaskEngine.asked):
        with pytest.raises(ClusterError, match=r"engine local: .* of .* reports were counted"):
            work_of(engine, plan, tmp_path)


def test_jobs_hold_every_row_group_once(tmp_path: Path) -> None:
    plan = plan_of("latent")
    write_files(tmp_path, plan, reports_of(plan))
    groups = sum(pq.read_metadata(file).num_row_groups for file in tmp_path.glob("*.parquet"))
    for slots in (1, 2, 3, 100):
        jobs = fold_jobs(plan, tmp_path, slots)
        parts = [part for job in jobs for part in job.parts]
        held = [(part.path, group) for part in parts for group in part.groups]
        assert len(held) == len(set(held)) == groups
        assert sum(sum(part.rows) for part in parts) == 6000
        assert len(jobs) <= 2 * slots
        assert len(jobs) >= min(slots, groups)
        assert [group for _, group in held] == [group for _, group in sorted(held)]


def test_a_plan_without_reports_folds_to_nobody(tmp_path: Path) -> None:
    plan = plan_of("olh")
    sv.Reports.empty(plan).write(tmp_path / "none.parquet")
    engine = LocalEngine(2)
    for found in (engine.fold(plan, tmp_path), TaskEngine.fold(engine, plan, tmp_path)):
        assert found == sv.Aggregate(plan)


def test_the_first_bad_file_is_named(tmp_path: Path) -> None:
    plan = plan_of("joint")
    write_files(tmp_path, plan, reports_of(plan))
    engine = LocalEngine(2)
    spoilt = sorted(tmp_path.glob("*.parquet"))[1]
    data = bytearray(spoilt.read_bytes())
    data[pq.read_metadata(spoilt).row_group(1).column(1).data_page_offset + 40] ^= 1
    spoilt.write_bytes(data)
    with pytest.raises(CorruptReport, match=f"{spoilt.name}.* cut or damaged"):
        TaskEngine.fold(engine, plan, tmp_path)
    other = plan_of("latent")
    reports_of(other).write(tmp_path / "other.parquet")
    with pytest.raises(PlanMismatch, match=r"other\.parquet"):
        TaskEngine.fold(engine, plan, tmp_path / "other.parquet")
    with pytest.raises(InvalidInput, match=r"missing\.parquet.* exists"):
        TaskEngine.fold(engine, plan, tmp_path / "missing.parquet")


def test_a_file_that_changes_after_it_was_listed_is_refused(tmp_path: Path) -> None:
    plan = plan_of("latent")
    write_files(tmp_path, plan, reports_of(plan))
    jobs = fold_jobs(plan, tmp_path, 2)
    changed = Path(jobs[0].parts[0].path)
    write_stream(changed, [reports_of(plan)[:499]])
    with pytest.raises(InvalidInput, match="must not change"):
        jobs[0].parts[0].opened()


def test_urls_are_as_good_as_paths(tmp_path: Path) -> None:
    plan = plan_of("latent")
    reports = reports_of(plan)
    folder = tmp_path / "day 1"
    (folder / "minute=a").mkdir(parents=True)
    (folder / "aside").mkdir()
    write_files(folder / "minute=a", plan, reports[:3000])
    write_files(folder, plan, reports[3000:])
    write_files(folder / "aside", plan, reports)  # which is not looked into
    whole = sv.Aggregate(plan).add(reports)
    engine = LocalEngine(2)
    for source in (folder, folder.as_uri(), f"{folder.as_uri()}/"):
        assert engine.fold(plan, source) == whole
        assert TaskEngine.fold(engine, plan, source) == whole
    with pytest.raises(InvalidInput, match=r"missing.* exists"):
        engine.fold(plan, f"{tmp_path.as_uri()}/missing")
    with pytest.raises(InvalidInput, match="must be a path, a store, or a URL"):
        engine.fold(plan, "ftp://somebody:secret@host/reports")
    with pytest.raises(InvalidInput, match="ftp://host/reports"):
        engine.fold(plan, "ftp://somebody:secret@host/reports")
    with pytest.raises(InvalidInput, match=r"^reports \(s3://\.\.\.\) must be a URL"):
        engine.fold(plan, "s3://somebody:secret@[host/reports")


def test_an_object_store_is_read_in_place() -> None:
    plan = plan_of("latent")
    reports = reports_of(plan)
    whole = sv.Aggregate(plan).add(reports)
    engine = LocalEngine(2)
    with serving() as store:
        url = put_files(store, plan, reports)
        assert engine.fold(plan, url) == whole
        assert TaskEngine.fold(engine, plan, url) == whole
        name = next(iter(store.objects))
        store.objects[name] = store.objects[name][:-100]
        with pytest.raises(CorruptReport, match=r"s3://bucket/collected/reports/.* cut") as told:
            TaskEngine.fold(engine, plan, url)
        assert "secret" not in str(told.value)


@pytest.mark.parametrize("name", ["olh-seeded", "pem"])
def test_rows_are_asked_where_they_are(name: str, tmp_path: Path) -> None:
    plan = plan_of(name)
    reports = reports_of(plan)
    write_files(tmp_path, plan, reports)
    whole = sv.Aggregate(plan).add(reports)
    asked = TaskEngine.asked(LocalEngine(2), plan, tmp_path)
    values = np.arange(100)
    for cohort in range(len(plan.cohorts)):
        assert (asked.support(cohort, 0, values) == whole.support(cohort, 0, values)).all()
    assert repr(asked.estimate()) == repr(whole.estimate())


def test_a_simulated_crowd_is_the_same_in_one_table_and_in_blocks(tmp_path: Path) -> None:
    plan = plan_of("latent")
    people = 2 * BLOCK_PEOPLE + 1000
    rows = [BLOCK_PEOPLE, BLOCK_PEOPLE, 1000]
    blocks = [work.yes_or_no(block, count) for block, count in enumerate(rows)]
    table = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    reports = sv.simulate(plan, table, seed=5)
    for threads in (1, 2):
        engine = LocalEngine(threads)
        assert engine.fold_crowd(plan, work.yes_or_no, people, 5) == sv.Aggregate(plan).add(reports)
    assert engine.simulate(plan, work.yes_or_no, people, 5, tmp_path) == people
    assert sv.Reports.concat(stream(tmp_path)) == reports
    with pytest.raises(InvalidInput, match=r"folder .* must be one that exists"):
        engine.simulate(plan, work.yes_or_no, people, 5, tmp_path / "no")
    # other slots cut the crowd into other files, and both would be read
    with pytest.raises(InvalidInput, match=r"folder .* must hold no reports of the plan yet"):
        LocalEngine(1).simulate(plan, work.yes_or_no, people, 5, tmp_path)
    assert sv.Reports.concat(stream(tmp_path)) == reports


def test_each_gives_the_results_in_the_order_of_the_jobs() -> None:
    with open_engine("local") as engine:
        assert list(engine.each(np.sqrt, [4.0, 9.0, 1.0])) == [2.0, 3.0, 1.0]


def test_engines_have_names() -> None:
    with pytest.raises(InvalidInput, match=r"engine \(flink\) must be local, spark or sc://host"):
        open_engine("flink")
    with pytest.raises(InvalidInput, match="master is for the engine spark"):
        open_engine("local", "spark://host:7077")
