"""Apache Spark: it schedules tasks, which read their files themselves.

DataFrames alone are used, so that the same lines run in this process (``local[2]``), on a cluster
(``spark://host:7077``) and over Spark Connect (``sc://host``).
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from sottovoce import __version__
from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.pieces import Piece
from sottovoce.aggregation.scattered import scattered
from sottovoce.engine import shipped
from sottovoce.engine.base import Task, TaskEngine
from sottovoce.engine.frames import FrameRows, checked_columns
from sottovoce.engine.jobs import JOBS_PER_SLOT
from sottovoce.engine.tasks import AskTask, FoldTask
from sottovoce.ground import errors
from sottovoce.ground.errors import ClusterError, SottovoceError
from sottovoce.ground.extras import imported
from sottovoce.ground.threads import thread_count
from sottovoce.protocol.plan import Plan

CONNECT_SLOTS = 16  # a server of Spark Connect does not say how many cores it has
MAX_SUM_TASKS = 16
MIN_PYSPARK = 4  # its first number
LISTEN_SECONDS = 10  # of an address that is asked whether anybody is there
WORKER_SECONDS = 60  # until the first worker of a cluster takes part
_CONNECT_PORT = 15002

# Of sessions that are started here. What executors get stands in Spark's own spark-defaults.conf.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "512m",
    # Java does little but schedule: a second look at what it compiled would cost more than it saves
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class SparkEngine(TaskEngine):
    """The workers of a Spark session.

    Every worker needs this package in the same version, and must be able to read the files.
    """

    name: ClassVar[str] = "spark"

    def __init__(self, session: Any, *, owns: bool = False) -> None:
        """Args:
        session: of PySpark, classic or of Spark Connect.
        owns: whether to stop it at the end.
        """
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(shipped)
        self._session = session
        self._owns = owns

    @property
    def slots(self) -> int:
        if _is_connect(self._session):
            return CONNECT_SLOTS
        return int(self._session.sparkContext.defaultParallelism)

    def run(self, task: Task, jobs: Sequence[Any], merge: bool) -> Iterator[Piece]:
        runner = shipped.job_runner(__version__, pickle.dumps(task), [*map(pickle.dumps, jobs)])
        count = len(jobs)
        with _explained():
            # exactly one partition for each job
            numbers = self._session.range(0, count, 1, count)
        return self._gathered(numbers, runner, count, merge)

    def fold_frame(self, plan: Plan, frame: Any) -> Aggregate:
        """What the reports of a DataFrame add up to, where Spark alone may read them, as in a
        catalogue's table. It costs several times what files do: Spark hands rows over.

        Args:
            plan: whose reports they are; one without public columns.
            frame: of this session, with the columns ``cohort`` (whole numbers) and ``payload``
                (bytes), and perhaps ``plan``, the id of each report's plan: others are refused.
        """
        task = FoldTask(plan.to_json(), plan.id)
        return Aggregate(plan).add_pieces(self._run_frame(plan, frame, task))

    def ask_frame(self, plan: Plan, frame: Any) -> Aggregate:
        """The same for an estimate, see :meth:`asked`; it is read again for each question."""
        fold = FoldTask(plan.to_json(), plan.id)
        return scattered(plan, lambda task: self._run_frame(plan, frame, AskTask(fold, task)))

    def _run_frame(self, plan: Plan, frame: Any, task: Task) -> Iterator[Piece]:
        make = FrameRows(plan.to_json(), plan.id)
        runner = shipped.frame_runner(__version__, pickle.dumps(task), pickle.dumps(make))
        count = JOBS_PER_SLOT * self.slots
        with _explained():
            types = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
            rows = frame.select(*checked_columns(plan, types)).coalesce(count)
        return self._gathered(rows, runner, count, merge=True)

    def _gathered(
        self, source: Any, runner: Callable[[Any], Iterator[Any]], count: int, merge: bool
    ) -> Iterator[Piece]:
        """The pieces that a function of Arrow batches makes of each partition."""
        with _explained():
            rows = source.mapInArrow(runner, shipped.COLUMNS)
            if merge:
                sums = min(count, self.slots, MAX_SUM_TASKS)
                homes = rows.repartition(sums, "piece")
                rows = homes.sortWithinPartitions("piece").mapInArrow(
                    shipped.sum_rows, shipped.COLUMNS
                )
            found = rows.toArrow()
        pieces = list(shipped.rows_in(found.to_batches()))
        failures = [(number, body) for number, body in pieces if number < 0]
        if failures:  # the first job's
            raise _failure(max(failures)[1])
        if merge:
            pieces.sort()
        return iter([Piece(number, body) for number, body in pieces])

    def close(self) -> None:
        if self._owns:
            self._session.stop()


def start_spark(master: str | None = None) -> SparkEngine:
    """A session of one's own, with a master; by default threads of this machine."""
    _require_pyspark()
    running = _running_session(master)
    if running is not None:
        return SparkEngine(running)
    url = f"local[{thread_count()}]" if master is None else master
    _require_java()
    is_here = url.startswith("local")
    if url.startswith("spark://"):
        hosts = [_host_and_port(f"spark://{each}", 7077) for each in url[8:].split(",")]
        _require_answer("master", url, hosts)
        is_here = all(_is_loopback(host) for host, _ in hosts)
    if is_here:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _explained():
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(url).appName("sottovoce")
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    if url.startswith("spark://"):
        _require_worker(session, url)
    return SparkEngine(session, owns=True)


def connect_spark(url: str) -> SparkEngine:
    """A session of a Spark Connect server; needs no Java here, and leaves alone those that this
    process has.
    """
    _require_pyspark()
    _require_answer("engine", url, [_host_and_port(url, _CONNECT_PORT)])
    with _explained():
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.builder.remote(url).create()
    return SparkEngine(session, owns=True)


def _running_session(master: str | None) -> Any:
    """The session that this process has, if it fits: there can be one master only."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None or _is_connect(running):
        return None
    url = running.sparkContext.master
    if master not in (None, url):
        raise ClusterError(f"this process has a Spark session with another master ({url})")
    return running


def _is_connect(session: Any) -> bool:
    return ".connect." in type(session).__module__


def _require_pyspark() -> None:
    version = str(imported("pyspark").__version__)
    if int(version.partition(".")[0]) < MIN_PYSPARK:
        raise ClusterError(f"pyspark ({version}) must be version {MIN_PYSPARK} or later")


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") if not home else shutil.which("java", path=str(Path(home, "bin")))
    if found is None:
        where = "on the PATH" if not home else f"in JAVA_HOME ({home})"
        raise ClusterError(
            f"engine spark needs Java 17 or later, and there is no java {where}; "
            "sc://host, a server of Spark Connect, needs none here"
        )


def _host_and_port(url: str, port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        if not parts.hostname:
            raise ValueError
        return parts.hostname, parts.port or port
    except ValueError:
        scheme = url.partition("://")[0]
        raise ClusterError(
            f"engine ({scheme}://...) must be {scheme}://host or with :port"
        ) from None


def _require_answer(what: str, url: str, hosts: Sequence[tuple[str, int]]) -> None:
    """Refuse an address where nobody listens: Spark itself would try for minutes."""
    for address in hosts:
        try:
            socket.create_connection(address, timeout=LISTEN_SECONDS).close()
            return
        except OSError:
            continue
    listed = ", ".join(f"{host}:{port}" for host, port in hosts)
    scheme = url.partition("://")[0]
    raise ClusterError(f"{what} ({scheme}://...) does not answer at {listed}")


def _is_loopback(host: str) -> bool:
    try:
        return socket.gethostbyname(host).startswith("127.")
    except OSError:
        return False


def _require_worker(session: Any, url: str) -> None:
    """Wait until a worker of a cluster takes part: without any, a job would wait forever."""
    status = session.sparkContext._jsc.sc()
    end = time.monotonic() + WORKER_SECONDS
    while status.getExecutorMemoryStatus().size() < 2:  # the driver is one
        if time.monotonic() > end:
            session.stop()
            raise ClusterError(
                f"master ({url}): no worker took part within {WORKER_SECONDS} seconds"
            )
        time.sleep(0.1)


def _failure(body: bytes) -> SottovoceError:
    """The error that a worker sent, as our own."""
    name, words = pickle.loads(body)
    kind: type[SottovoceError] = getattr(errors, name, ClusterError)
    return kind(words)


@contextmanager
def _explained() -> Iterator[None]:
    """One clear error for what Spark says in many lines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of its own about pandas
            yield
    except SottovoceError:
        raise
    except Exception as wrong:
        raise ClusterError(f"engine spark: {_told(str(wrong)) or type(wrong).__name__}") from wrong


def _told(text: str) -> str:
    """Of Spark's words the line that says most; of a mistake in a task its name alone, since its
    words might quote a person.
    """
    missing = re.findall(r"^ModuleNotFoundError: (No module named '[\w.]+')", text, re.MULTILINE)
    if missing:
        return f"a worker failed: {missing[-1]}"
    names = re.findall(
        r"^([A-Za-z_.]+(?:Error|Exception))\b(?!.*\bPython worker:)", text, re.MULTILINE
    )
    python = [name for name in names if not name.startswith(("org.", "java.", "scala."))]
    if python:
        return f"a worker failed with {python[-1]}; its log says more"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
