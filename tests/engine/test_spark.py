"""Spark: the same integers as threads, on a cluster, over Connect and on this machine, whatever
dies in mid-job; and one clear error.

All of it is one module, so that one worker of the tests starts Spark, once: first a master with two
workers, of which Spark Connect is a part; the threads of this machine come last.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.aggregation.piece_bytes import MAX_PIECE_BYTES
from sottovoce.aggregation.totals import read_total
from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine import LocalEngine, TaskEngine, open_engine
from sottovoce.engine import spark as engine_spark
from sottovoce.engine.jobs import fold_jobs
from sottovoce.engine.queries import ask_reports
from sottovoce.engine.tasks import FoldTask
from sottovoce.ground.errors import ClusterError, CorruptReport, InvalidInput, PlanMismatch
from sottovoce.measure import compare_oracles
from sottovoce.protocol.report_files import stream
from sottovoce.questions.queries.sql import open_session
from sottovoce.sending.crowd_files import write_simulated
from tests.engine import work
from tests.engine.cluster import Sessions, needs_spark, parent_of
from tests.engine.commands import run_command
from tests.engine.crowd import Crowd
from tests.engine.plans import PLANS, plan_of, put_files, reports_of, write_files
from tests.shipping.object_store import serving
from tests.sql import plans as shop

pytestmark = needs_spark


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    opened = Sessions(tmp_path_factory.mktemp("spark"))
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def engine(sessions: Sessions) -> TaskEngine:
    return sessions.on_cluster()


def same_integers(engine: TaskEngine, name: str, folder: Path) -> bool:
    """Whether it folds a plan's reports as they are folded here."""
    plan = plan_of(name)
    write_files(folder, plan, reports_of(plan))
    return engine.fold(plan, folder.as_uri()) == sv.Aggregate(plan).add(reports_of(plan))


# -- a master and two workers


@pytest.mark.parametrize("name", PLANS)
def test_a_cluster_gives_every_aggregate(name: str, sessions: Sessions, tmp_path: Path) -> None:
    assert same_integers(sessions.on_cluster(), name, tmp_path)
    plan = plan_of(name)
    mutant = sv.Aggregate(plan).add(reports_of(plan)[1:])
    assert mutant != sv.Aggregate(plan).add(reports_of(plan))


@pytest.mark.parametrize("name", ["olh-seeded", "pem"])
def test_rows_are_asked_where_they_are(name: str, engine: TaskEngine, tmp_path: Path) -> None:
    plan = plan_of(name)
    reports = reports_of(plan)
    write_files(tmp_path, plan, reports)
    asked = engine.asked(plan, tmp_path)
    assert repr(asked.estimate()) == repr(sv.Aggregate(plan).add(reports).estimate())


def test_a_simulated_crowd_is_that_of_threads(engine: TaskEngine, tmp_path: Path) -> None:
    plan = plan_of("latent")
    people = BLOCK_PEOPLE + 1000
    whole = LocalEngine(1).fold_crowd(plan, work.yes_or_no, people, 5)
    assert engine.fold_crowd(plan, work.yes_or_no, people, 5) == whole
    assert engine.simulate(plan, work.yes_or_no, people, 5, tmp_path) == people
    assert LocalEngine(1).fold(plan, tmp_path) == whole


def test_pieces_are_small_in_order_and_added_up(engine: TaskEngine, tmp_path: Path) -> None:
    plan = plan_of("olh")
    write_files(tmp_path, plan, reports_of(plan))
    jobs = fold_jobs(plan, tmp_path, engine.slots)
    task = FoldTask(plan.to_json(), plan.id)
    parts = list(engine.run(task, jobs, merge=False))
    whole = list(engine.run(task, jobs, merge=True))
    numbers = [piece.number for piece in whole]
    assert len(jobs) > 1
    assert len(parts) == len(jobs) * len(whole)
    assert numbers == list(range(len(whole)))
    assert len(whole) > 4
    assert max(len(piece.body) for piece in parts + whole) <= MAX_PIECE_BYTES


def test_each_gives_results_in_order_from_workers_of_one_thread(engine: TaskEngine) -> None:
    assert list(engine.each(len, ["abc", "", "a"])) == [3, 0, 1]
    assert list(engine.each(work.threads, [1])) == [1]


def test_workers_read_an_object_store_themselves(engine: TaskEngine) -> None:
    plan = plan_of("latent")
    reports = reports_of(plan)
    with serving() as store:
        found = engine.fold(plan, put_files(store, plan, reports))
    assert found == sv.Aggregate(plan).add(reports)


def test_a_session_of_ones_own_stays(engine: TaskEngine) -> None:
    with open_engine("spark") as again:
        assert list(again.each(len, ["ab"])) == [2]
    assert list(engine.each(len, ["ab"])) == [2]
    with pytest.raises(ClusterError, match="another master"):
        open_engine("spark", "local[3]")


def test_bad_reports_are_told_once_with_their_file(engine: TaskEngine, tmp_path: Path) -> None:
    plan = plan_of("joint")
    write_files(tmp_path, plan, reports_of(plan))
    spoilt = sorted(tmp_path.glob("*.parquet"))[1]
    whole = spoilt.read_bytes()
    data = bytearray(whole)
    data[pq.read_metadata(spoilt).row_group(1).column(1).data_page_offset + 40] ^= 1
    spoilt.write_bytes(data)
    with pytest.raises(CorruptReport, match=f"{spoilt.name}.* cut or damaged"):
        engine.fold(plan, tmp_path)
    spoilt.write_bytes(whole)
    jobs = fold_jobs(plan, tmp_path, engine.slots)
    spoilt.unlink()  # after it was listed
    with pytest.raises(InvalidInput, match=f"{spoilt.name}.* exists"):
        list(engine.run(FoldTask(plan.to_json(), plan.id), jobs, merge=True))
    other = plan_of("latent")
    reports_of(other).write(tmp_path / "other.parquet")
    with pytest.raises(PlanMismatch, match=r"other\.parquet"):
        engine.fold(plan, tmp_path / "other.parquet")
    with pytest.raises(InvalidInput, match=r"missing\.parquet.* exists"):
        engine.fold(plan, tmp_path / "missing.parquet")


def test_a_mistake_in_a_task_is_told_by_its_name(engine: TaskEngine) -> None:
    with pytest.raises(ClusterError, match="ZeroDivisionError"):
        list(engine.each(work.divide, [1, 0]))


def test_workers_with_another_version_are_refused(
    engine: TaskEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of("latent")
    write_files(tmp_path, plan, reports_of(plan))
    monkeypatch.setattr(engine_spark, "__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"must have sottovoce 0\.0\.1.* found: "):
        engine.fold(plan, tmp_path)


def test_the_command_writes_the_same_total(
    engine: TaskEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of("latent")
    write_files(tmp_path, plan, reports_of(plan))
    (tmp_path / "plan.json").write_text(plan.to_json())
    here = (tmp_path / "plan.json", tmp_path)
    total = tmp_path / "total.sva"
    code, out, err = run_command(capsys, "fold", *here, "-o", total, "--engine", "spark")
    assert (code, out, err) == (0, f"6,000 reports folded into {total}\n", "")
    assert read_total(plan, total) == sv.Aggregate(plan).add(reports_of(plan))
    code, out, _ = run_command(
        capsys, "estimate", *here, "--marginal", "a0,a1", "--engine", "spark"
    )
    assert (code, out) == run_command(capsys, "estimate", *here, "--marginal", "a0,a1")[:2]


@pytest.mark.parametrize("name", ["latent", "olh-seeded"])
def test_a_data_frame_is_folded_as_files_are(name: str, sessions: Sessions, tmp_path: Path) -> None:
    engine, plan = sessions.on_cluster(), plan_of(name)
    write_files(tmp_path, plan, reports_of(plan))
    whole = sv.Aggregate(plan).add(reports_of(plan))
    frame = engine._session.read.parquet(str(tmp_path))
    assert engine.fold_frame(plan, frame) == whole
    named = frame.selectExpr("*", f"'{plan.id}' AS plan", "1 AS other")
    if name == "olh-seeded":
        assert repr(engine.ask_frame(plan, named).estimate()) == repr(whole.estimate())
        return
    assert engine.fold_frame(plan, named) == whole
    with pytest.raises(PlanMismatch, match="another plan"):
        engine.fold_frame(plan, frame.selectExpr("*", "'x' AS plan"))
    with pytest.raises(CorruptReport, match="1 bytes each"):
        engine.fold_frame(plan, frame.selectExpr("cohort", "substr(payload, 2) AS payload"))
    with pytest.raises(InvalidInput, match=r"'cohort' of type .* and has string"):
        engine.fold_frame(plan, frame.selectExpr("'a' AS cohort", "payload"))
    with pytest.raises(InvalidInput, match="'payload' of type binary, and has none"):
        engine.fold_frame(plan, frame.select("cohort"))


def test_sql_is_asked_where_the_reports_lie(engine: TaskEngine, tmp_path: Path) -> None:
    plan, reports = shop.plan("tree", 4.0), shop.reports("tree", 4.0)
    write_files(tmp_path, plan, reports)
    sql = "SELECT SUM(amount) FROM people WHERE age < 40 AND channel = 'web'"
    (there,) = ask_reports(engine, plan, tmp_path, sql).rows[0].cells
    (here,) = open_session(plan, reports).ask(sql).rows[0].cells
    assert (there.value, there.low) == pytest.approx((here.value, here.low), rel=1e-9)


def test_workers_compare_methods_and_whisper(
    engine: TaskEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("compare", "oracles", "--size", 4, "--epsilon", "1,2", "--people", 500, "--runs", 1)
    code, out, _ = run_command(capsys, *command, "--oracles", "grr", "--json", "--engine", "spark")
    found = [(row["epsilon"], row["measured"]) for row in json.loads(out)]
    here = compare_oracles(["grr"], 4, ["1", "2"], 500, 1, 1)
    assert (code, found) == (0, [(row.epsilon, row.measured) for row in here])
    plan = plan_of("latent")
    pq.write_table(pa.table(work.yes_or_no(0, 1000)), tmp_path / "people.parquet")
    written = write_simulated(engine, plan, tmp_path / "people.parquet", tmp_path / "new", 5)
    assert written == 1000
    whispered = sv.Reports.concat(stream(tmp_path / "new"))
    assert whispered == sv.simulate(plan, work.yes_or_no(0, 1000), seed=5)


# -- the same workers over Spark Connect, which is all that hosted services offer


@pytest.mark.parametrize("name", PLANS)
def test_connect_gives_every_aggregate(name: str, sessions: Sessions, tmp_path: Path) -> None:
    assert same_integers(sessions.connect(), name, tmp_path)


def test_connect_tells_errors_once(sessions: Sessions, tmp_path: Path) -> None:
    engine = sessions.connect()
    plan = plan_of("joint")
    write_files(tmp_path, plan, reports_of(plan))
    spoilt = sorted(tmp_path.glob("*.parquet"))[1]
    data = bytearray(spoilt.read_bytes())
    data[pq.read_metadata(spoilt).row_group(1).column(1).data_page_offset + 40] ^= 1
    spoilt.write_bytes(data)
    with pytest.raises(CorruptReport, match=f"{spoilt.name}.* cut or damaged"):
        engine.fold(plan, tmp_path)
    assert list(engine.each(len, ["abc", ""])) == [3, 0]
    with pytest.raises(ClusterError, match="a worker failed with ZeroDivisionError"):
        list(engine.each(work.divide, [1, 0]))


# -- what happens to a cluster in mid-job


def test_a_second_attempt_at_a_slow_job_counts_once(sessions: Sessions, tmp_path: Path) -> None:
    crowd = Crowd(tmp_path, "latent")
    sessions.speculate(True)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(crowd.folded, sessions.on_cluster())
        try:
            crowd.wait_for_another_attempt()
            assert found.result() == crowd.whole  # while the first attempt still waits
        finally:
            crowd.go_on()
            sessions.speculate(False)


@pytest.mark.parametrize("victim", ["python", "executor", "worker"])
def test_what_is_killed_in_mid_job_changes_nothing(
    victim: str, sessions: Sessions, tmp_path: Path
) -> None:
    engine = sessions.on_cluster()
    crowd = Crowd(tmp_path, {"python": "joint", "executor": "windows", "worker": "pem"}[victim])
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(crowd.folded, engine)
        try:
            pid = crowd.holder()
            if victim != "python":
                pid = sessions.cluster.executor_of(pid)
            if victim == "worker":
                pid = parent_of(pid)
            assert not crowd.has_another_attempt
            os.kill(pid, signal.SIGKILL)
            crowd.wait_for_another_attempt()
        finally:
            crowd.go_on()
        assert found.result() == crowd.whole


# -- threads of this machine


@pytest.mark.parametrize("name", PLANS)
def test_this_machine_gives_every_aggregate(name: str, sessions: Sessions, tmp_path: Path) -> None:
    assert same_integers(sessions.local(), name, tmp_path)
