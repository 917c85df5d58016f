"""A master and two workers: the same integers, whatever dies in mid-job."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.engine import TaskEngine
from sottovoce.engine.jobs import fold_jobs
from sottovoce.engine.spark import SparkEngine
from sottovoce.engine.tasks import FoldTask
from tests.engine.cluster import ROOT, Cluster, needs_spark, parent_of, running_cluster, wait_until
from tests.engine.plans import PLANS, plan_of, reports_of, write_files
from tests.engine.work import HeldTask

pytestmark = needs_spark
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # what is killed here would fill pages
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}


@contextmanager
def session(url: str, **settings: str) -> Iterator[SparkEngine]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(url)
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    with SparkEngine(builder.getOrCreate(), owns=True) as engine:
        yield engine


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> Iterator[SparkEngine]:
    with session(cluster.url) as opened:
        yield opened


class Crowd:
    """Reports in files, their sum, and the work of folding them, one job of which is held."""

    def __init__(self, folder: Path, name: str) -> None:
        self.plan = plan_of(name)
        reports = reports_of(self.plan)
        (folder / "reports").mkdir()
        write_files(folder / "reports", self.plan, reports)
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.whole = sv.Aggregate(self.plan).add(reports)
        self.jobs = list(enumerate(fold_jobs(self.plan, folder / "reports", 2)))
        # the last one: what others made may be lost with their worker
        fold = FoldTask(self.plan.to_json(), self.plan.id)
        self.task = HeldTask(fold, str(self.marks), len(self.jobs) - 1)

    def folded(self, engine: TaskEngine) -> sv.Aggregate:
        return sv.Aggregate(self.plan).add_pieces(engine.run(self.task, self.jobs, merge=True))

    def holder(self) -> int:
        """The process that holds the job, once it does."""
        wait_until((self.marks / "pid").exists)
        return int((self.marks / "pid").read_text())

    def wait_for_another_attempt(self) -> None:
        wait_until((self.marks / "again").exists)

    def go_on(self) -> None:
        (self.marks / "go").touch()


def test_a_second_attempt_at_a_slow_job_counts_once(cluster: Cluster, tmp_path: Path) -> None:
    crowd = Crowd(tmp_path, "latent")
    at_once = {"multiplier": "1", "quantile": "0.25", "minTaskRuntime": "0", "interval": "50ms"}
    settings = {f"spark.speculation.{name}": value for name, value in at_once.items()}
    with (
        session(cluster.url, **settings, **{"spark.speculation": "true"}) as engine,
        ThreadPoolExecutor(1) as pool,
    ):
        found = pool.submit(crowd.folded, engine)
        try:
            crowd.wait_for_another_attempt()
            assert found.result() == crowd.whole  # while the first attempt still waits
        finally:
            crowd.go_on()


@pytest.mark.parametrize("name", PLANS)
def test_every_aggregate_is_that_of_threads(name: str, engine: SparkEngine, tmp_path: Path) -> None:
    plan = plan_of(name)
    reports = reports_of(plan)
    write_files(tmp_path, plan, reports)
    assert engine.fold(plan, tmp_path) == sv.Aggregate(plan).add(reports)


@pytest.mark.parametrize("victim", ["python", "executor", "worker"])
def test_what_is_killed_in_mid_job_changes_nothing(
    victim: str, engine: SparkEngine, cluster: Cluster, tmp_path: Path
) -> None:
    crowd = Crowd(tmp_path, {"python": "joint", "executor": "windows", "worker": "pem"}[victim])
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(crowd.folded, engine)
        try:
            pid = crowd.holder()
            if victim != "python":
                pid = cluster.executor_of(pid)
            if victim == "worker":
                pid = parent_of(pid)
            os.kill(pid, signal.SIGKILL)
            crowd.wait_for_another_attempt()
        finally:
            crowd.go_on()
        assert found.result() == crowd.whole
