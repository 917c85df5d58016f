"""A Spark master with workers, and sessions of Spark, on loopback and on ports that were free."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from sottovoce.engine.spark import SparkEngine, connect_spark, start_spark

ROOT = Path(__file__).parents[2]
START_SECONDS = 180  # on a machine that others keep busy

has_spark = bool(find_spec("pyspark") and shutil.which("java"))
needs_spark = pytest.mark.skipif(
    not (has_spark and find_spec("grpc")), reason="Java, PySpark or grpcio is missing"
)
CLUSTER_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # what is killed here would fill pages
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # a second attempt at every job that is not among the first to end
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.minTaskRuntime": "0",
    "spark.speculation.interval": "50ms",
}


def environment() -> dict[str, str]:
    """Of Spark's processes: this interpreter, with this folder to import tests from."""
    home = Path(find_spec("pyspark").origin).parent  # type: ignore[union-attr, arg-type]
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_DAEMON_MEMORY": "512m",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """A Java process of Spark with a log, that is waited for until the log says some words."""

    def __init__(self, folder: Path, name: str, *command: str) -> None:
        self._log = folder / f"{name}.log"
        home = Path(environment()["SPARK_HOME"])
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [str(home / "bin" / command[0]), *command[1:]],
                stdout=log,
                stderr=log,
                env=environment(),
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, words: str) -> None:
        def told() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended: {self._log.read_text()[-2000:]}")
            return re.search(words, self._log.read_text()) is not None

        wait_until(told)

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for something that happens, however busy the machine is."""
    end = time.monotonic() + START_SECONDS
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


class Cluster:
    """A master and two workers of one core; on two addresses, so that a second attempt at a task
    has another host to go to.
    """

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._folder = folder
        place = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._master = self._start("master", "org.apache.spark.deploy.master.Master", *place)
        self._master.wait_for("I have been elected leader")
        self.workers = [self._worker(number) for number in (1, 2)]

    def wait_for_workers(self) -> None:
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def _worker(self, number: int) -> Process:
        place = ("--host", f"127.0.0.{number}", "--webui-port", "0")
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / f"w{number}"))
        name = "org.apache.spark.deploy.worker.Worker"
        return self._start(f"worker{number}", name, self.url, *place, *size)

    def _start(self, name: str, *arguments: str) -> Process:
        return Process(self._folder, name, "spark-class", *arguments)

    def executor_of(self, pid: int) -> int:
        """The executor, which is below a worker, that a process is of."""
        workers = {worker.pid for worker in self.workers}
        while parent_of(pid) not in workers:
            pid = parent_of(pid)
        return pid

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            if process.process.poll() is None:
                process.kill()


def parent_of(pid: int) -> int:
    """The process that started another one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()


class Sessions:
    """Sessions of one Java process: on a cluster, of which Spark Connect is a part, or on threads.

    Whoever asks for another master than before ends what ran on that one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        self._engines: dict[str, SparkEngine] = {}
        self.cluster: Cluster

    def local(self) -> SparkEngine:
        """Threads of this machine, as users start them."""
        if "local" not in self._engines:
            self.close()
            engine = self._open.enter_context(start_spark("local[2]"))
            self._engines = {"local": engine}
        return self._engines["local"]

    def on_cluster(self) -> SparkEngine:
        """A master and two workers."""
        if "cluster" not in self._engines:
            self._start_cluster()
        return self._engines["cluster"]

    def connect(self) -> SparkEngine:
        """The same workers over Spark Connect."""
        if "connect" not in self._engines:
            self.on_cluster()
            address = f"sc://127.0.0.1:{self._connect_port}"
            self._engines["connect"] = self._open.enter_context(connect_spark(address))
        return self._engines["connect"]

    def speculate(self, is_on: bool) -> None:
        """Whether jobs from now on get second attempts at once. Spark looks at each job's start;
        the session itself began with them.
        """
        settings = self.on_cluster()._session.sparkContext._jsc.sc().conf()
        settings.set("spark.speculation", str(is_on).lower())

    def close(self) -> None:
        self._engines = {}
        self._open.close()

    def _start_cluster(self) -> None:
        from pyspark.sql import SparkSession

        self.close()
        self.cluster = self._open.enter_context(running_cluster(self._folder))
        self._connect_port = free_port()
        builder = SparkSession.builder.master(self.cluster.url)
        builder.config("spark.connect.grpc.binding.port", str(self._connect_port))
        for name, value in CLUSTER_SETTINGS.items():
            builder.config(name, value)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYSPARK_PYTHON", sys.executable)
            patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
            session = builder.getOrCreate()
        engine = self._open.enter_context(SparkEngine(session, owns=True))
        self.cluster.wait_for_workers()
        self._engines = {"cluster": engine}
        self.speculate(False)
