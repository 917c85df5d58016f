"""Folding files: threads over row groups, each with an aggregate of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from os import PathLike
from threading import Lock
from typing import NamedTuple

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.arguments import whole
from sottovoce.ground.threads import MAX_THREADS, thread_count
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import ReportFile, report_paths
from sottovoce.protocol.report_places import ReportPlace
from sottovoce.protocol.reports import STREAM_BATCH

JOB_REPORTS = 8 * STREAM_BATCH  # so many are one thread's before it asks for more
MAX_PARTS_BYTES = 1 << 30  # of the integers that all threads hold


class FoldJob(NamedTuple):
    """Row groups of one file, one after another."""

    path: ReportPlace
    groups: list[int]


def fold_files(
    plan: Plan,
    path: str | PathLike[str],
    *,
    threads: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> Aggregate:
    """What the reports of a Parquet file, or of all those of a plan in a folder, add up to; files
    may be larger than memory.

    Args:
        plan: whose reports they are; impossible ones are refused, the first of them in the order of
            the files.
        path: a file or a folder, see :func:`~sottovoce.protocol.report_files.stream`.
        threads: how many work at once; by default
            :func:`~sottovoce.ground.threads.thread_count`, or fewer where each would hold much.
        advance: gets how many reports were taken so far.
    """
    jobs, reports = _jobs_of(report_paths(path, plan.id))
    most = thread_count() if threads is None else whole("threads", threads, 1, MAX_THREADS)
    wanted = min(most, len(jobs))
    shared = _SharedJobs(plan, jobs, advance)
    if wanted > 1:
        each = Aggregate(plan).counts.most_bytes(-(-reports // wanted))
        wanted = max(1, min(wanted, MAX_PARTS_BYTES // max(1, each)))
    with ThreadPoolExecutor(wanted) as pool:
        try:
            parts = list(pool.map(lambda _: shared.work(), range(wanted)))
        except BaseException:  # somebody interrupts
            shared.stop()
            raise
    if shared.failures:
        raise shared.failures[min(shared.failures)]
    return reduce(Aggregate.absorb, parts)


def count_files(plan: Plan, path: str | PathLike[str]) -> int:
    """How many reports :func:`fold_files` will find, as the files say."""
    return _jobs_of(report_paths(path, plan.id))[1]


def _jobs_of(paths: list[ReportPlace]) -> tuple[list[FoldJob], int]:
    """(all row groups, as jobs of about ``JOB_REPORTS``; how many reports they hold)."""
    jobs, reports = [], 0
    for path in paths:
        job, room = FoldJob(path, []), JOB_REPORTS
        jobs.append(job)  # of a file without reports too: it must be one of the plan's
        for group, rows in enumerate(ReportFile(path).group_rows):
            if job.groups and rows > room:
                job, room = FoldJob(path, []), JOB_REPORTS
                jobs.append(job)
            job.groups.append(group)
            room -= rows
            reports += rows
    return jobs, reports


class _SharedJobs:
    """Jobs that threads take in order. After a failure no more are handed out; since all before it
    were, and are finished, the first failure of all is among those that are found.
    """

    def __init__(
        self, plan: Plan, jobs: list[FoldJob], advance: Callable[[int], None] | None
    ) -> None:
        self.plan = plan
        self.failures: dict[int, Exception] = {}
        self._jobs: Iterator[tuple[int, FoldJob]] = iter(enumerate(jobs))
        self._advance = advance
        self._done = 0
        self._lock = Lock()

    def _next(self) -> Iterator[tuple[int, FoldJob]]:
        while True:
            with self._lock:
                job = None if self.failures else next(self._jobs, None)
            if job is None:
                return
            yield job

    def stop(self) -> None:
        """Hand out no more jobs."""
        with self._lock:
            self._jobs = iter(())

    def work(self) -> Aggregate:
        """What the jobs that one thread took add up to."""
        own = Aggregate(self.plan)
        file = None
        for number, job in self._next():
            try:
                if file is None or file.path != job.path:
                    file = ReportFile(job.path)
                for reports in file.stream(job.groups, threads=False):
                    own.add(reports)
                    self._count(len(reports))
            except Exception as wrong:  # raised again by whoever waits for all threads
                with self._lock:
                    self.failures[number] = wrong
        return own

    def _count(self, more: int) -> None:
        if self._advance is not None:
            with self._lock:
                self._done += more
                self._advance(self._done)
