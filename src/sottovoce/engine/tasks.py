"""Tasks: pure functions of jobs, which any worker that has this package can run."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.pieces import Piece
from sottovoce.engine.jobs import FilesJob
from sottovoce.protocol.plan import Plan


@lru_cache(maxsize=4)
def plan_of(text: str, plan_id: str) -> Plan:
    """A plan from its own text, read once by each worker: they are used again."""
    return Plan.from_json(text, id=plan_id)


@dataclass(frozen=True)
class FoldTask:
    """Folds the reports of a job."""

    plan_text: str
    plan_id: str

    def __call__(self, job: FilesJob) -> Iterator[Piece]:
        total = Aggregate(plan_of(self.plan_text, self.plan_id))
        for part in job.parts:
            for reports in part.opened().stream(part.groups, threads=False):
                total.add(reports)
        return total.pieces()


@dataclass(frozen=True)
class EachTask:
    """Calls a function with each job, and brings its result back as it is."""

    function: Callable[[Any], Any]

    def __call__(self, job: tuple[int, Any]) -> Iterator[Piece]:
        number, argument = job
        yield Piece(number, pickle.dumps(self.function(argument)))
