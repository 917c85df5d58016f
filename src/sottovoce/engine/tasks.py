"""Tasks: pure functions of jobs, which any worker that has this package can run."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.pieces import Piece
from sottovoce.aggregation.scattered import PartTask
from sottovoce.device.simulation import simulate_block
from sottovoce.engine.jobs import BlocksJob, ReportsJob
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import write_stream
from sottovoce.protocol.reports import Reports

# People who do not exist, as a table: of a block's number and how many rows it has. It must be
# picklable, and give the same people each time.
Crowd = Callable[[int, int], Any]


@lru_cache(maxsize=4)
def plan_of(text: str, plan_id: str) -> Plan:
    """A plan from its own text, read once by each worker: they are used again."""
    return Plan.from_json(text, id=plan_id)


@dataclass(frozen=True)
class FoldTask:
    """Folds the reports of a job."""

    plan_text: str
    plan_id: str

    def __call__(self, job: ReportsJob) -> Iterator[Piece]:
        return self.total(job).pieces()

    def total(self, job: ReportsJob) -> Aggregate:
        """What the reports of the job add up to."""
        total = Aggregate(plan_of(self.plan_text, self.plan_id))
        for part in job.parts:
            for reports in part.stream():
                total.add(reports)
        return total


@dataclass(frozen=True)
class AskTask:
    """Asks the reports of a job something that adds up, of plans that keep rows."""

    fold: FoldTask
    question: PartTask

    def __call__(self, job: ReportsJob) -> Iterable[Piece]:
        return self.question(self.fold.total(job))


@dataclass(frozen=True)
class FoldCrowdTask:
    """Simulates blocks of people, and folds their reports."""

    plan_text: str
    plan_id: str
    crowd: Crowd
    seed: int

    def __call__(self, job: BlocksJob) -> Iterator[Piece]:
        total = Aggregate(plan_of(self.plan_text, self.plan_id))
        for block, rows in job.blocks():
            total.add(self.reports(block, rows))
        return total.pieces()

    def reports(self, block: int, rows: int) -> Reports:
        """Those of one block."""
        plan = plan_of(self.plan_text, self.plan_id)
        return simulate_block(plan, self.crowd(block, rows), self.seed, block)


@dataclass(frozen=True)
class WriteCrowd:
    """Simulates blocks of people into files of a folder, a file for each job; how many reports.

    A file is there whole or not at all, and the same whoever writes it again.
    """

    fold: FoldCrowdTask
    folder: str

    def __call__(self, job: BlocksJob) -> int:
        path = Path(self.folder) / f"{self.fold.plan_id[:16]}-{job.first:08}.parquet"
        return write_stream(path, (self.fold.reports(*block) for block in job.blocks()))


@dataclass(frozen=True)
class EachTask:
    """Calls a function with each job, and brings its result back as it is."""

    function: Callable[[Any], Any]

    def __call__(self, job: tuple[int, Any]) -> Iterator[Piece]:
        number, argument = job
        yield Piece(number, pickle.dumps(self.function(argument)))
