"""What an engine does: it calls a task with each job, somewhere, and brings back what adds up."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.pieces import Piece
from sottovoce.aggregation.scattered import scattered
from sottovoce.device.simulation import simulate_added
from sottovoce.engine.jobs import FilesJob, crowd_jobs, fold_jobs
from sottovoce.engine.tasks import AskTask, Crowd, EachTask, FoldCrowdTask, FoldTask, WriteCrowd
from sottovoce.ground.errors import ClusterError, InvalidInput
from sottovoce.protocol.plan import Plan

# A pure function of a job. It must be picklable, and so must its jobs: a frozen dataclass of a
# module, with fields that are values.
Task = Callable[[Any], Iterable[Piece]]
Advance = Callable[[int], None]


class TaskEngine(ABC):
    """Runs tasks; all that an analyst does with it is made of :meth:`run`.

    >>> from sottovoce.engine import open_engine
    >>> with open_engine("local") as engine:
    ...     list(engine.each(len, ["a", "bc"]))
    [1, 2]
    """

    name: ClassVar[str]

    @abstractmethod
    def run(self, task: Task, jobs: Sequence[Any], merge: bool) -> Iterator[Piece]:
        """The pieces that ``task`` makes of each of the jobs.

        A job may be run twice, or again after its worker died; what it made counts once. If one
        fails, the first failure is raised, and nothing comes back.

        Args:
            task: a pure function of a job.
            jobs: what it is called with.
            merge: whether pieces of one number are added up. Then numbers come in increasing order;
                otherwise in the order of the jobs.
        """

    @property
    @abstractmethod
    def slots(self) -> int:
        """About how many jobs it does at once."""

    def fold(
        self, plan: Plan, path: str | PathLike[str], advance: Advance | None = None
    ) -> Aggregate:
        """What the reports of files add up to: the same integers from every engine.

        Args:
            plan: whose reports they are.
            path: a file, a folder or a URL that every worker can read.
            advance: gets how many reports were taken so far.
        """
        jobs = fold_jobs(plan, path, self.slots)
        task = FoldTask(plan.to_json(), plan.id)
        total = Aggregate(plan).add_pieces(self.run(task, jobs, merge=True))
        self._require_all(total, jobs)
        if advance is not None:
            advance(total.people)
        return total

    def asked(
        self, plan: Plan, path: str | PathLike[str], advance: Advance | None = None
    ) -> Aggregate:
        """The same for an estimate: rows that a plan keeps stay where the reports are, and are
        asked there, while the engine is open.
        """
        jobs = fold_jobs(plan, path, self.slots)
        fold = FoldTask(plan.to_json(), plan.id)
        total = scattered(plan, lambda task: self.run(AskTask(fold, task), jobs, merge=True))
        self._require_all(total, jobs)
        if advance is not None:
            advance(total.people)
        return total

    def _require_all(self, total: Aggregate, jobs: Sequence[FilesJob]) -> None:
        """Refuse a total of other reports than were listed: pieces do not tell a job that is gone
        as a whole.
        """
        listed = sum(sum(part.rows) for job in jobs for part in job.parts)
        if total.magnitude != listed:
            raise ClusterError(
                f"engine {self.name}: {total.magnitude:,} of {listed:,} reports were counted"
            )

    def simulate(
        self, plan: Plan, crowd: Crowd, people: int, seed: int, folder: str | PathLike[str]
    ) -> int:
        """Write the reports of simulated people into files of a folder that is there, which every
        worker must see; how many they are. They are those of :func:`sottovoce.simulate`.

        Args:
            plan: what they answer.
            crowd: the people of a block, as a table: a function of the block's number and of how
                many rows it has, which gives the same each time.
            people: in all.
            seed: of the whole crowd.
            folder: gets a file for each job, and one of the fakes that shufflers add. It must hold
                no reports of the plan yet: another engine cuts the crowd into other files.
        """
        target = Path(folder).absolute()
        if not target.is_dir():
            raise InvalidInput(f"folder ({folder}) must be one that exists")
        if any(target.glob(f"{plan.id[:16]}-*.parquet")):
            raise InvalidInput(f"folder ({folder}) must hold no reports of the plan yet")
        write = WriteCrowd(FoldCrowdTask(plan.to_json(), plan.id, crowd, seed), str(target))
        total: int = sum(self.each(write, crowd_jobs(people, self.slots)))
        added = simulate_added(plan, seed)
        if len(added):
            added.write(target / f"{plan.id[:16]}-added.parquet")
        return total + len(added)

    def fold_crowd(self, plan: Plan, crowd: Crowd, people: int, seed: int) -> Aggregate:
        """What the reports of simulated people add up to; see :meth:`simulate`."""
        task = FoldCrowdTask(plan.to_json(), plan.id, crowd, seed)
        pieces = self.run(task, crowd_jobs(people, self.slots), merge=True)
        return Aggregate(plan).add_pieces(pieces).add(simulate_added(plan, seed))

    def each(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        """What ``function`` gives for each of the jobs, in their order.

        Args:
            function: of a module, as a task is.
            jobs: what it is called with.
        """
        numbered = list(enumerate(jobs))
        for piece in self.run(EachTask(function), numbered, merge=False):
            yield pickle.loads(piece.body)

    def close(self) -> None:  # noqa: B027  (threads hold nothing)
        """Give back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
