"""Work of which one job is held, so that something can happen to whoever does it."""

from __future__ import annotations

from pathlib import Path

import sottovoce as sv
from sottovoce.engine import TaskEngine
from sottovoce.engine.jobs import fold_jobs
from sottovoce.engine.tasks import FoldTask
from tests.engine.cluster import wait_until
from tests.engine.plans import plan_of, reports_of, write_files
from tests.engine.work import HeldTask


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

    @property
    def has_another_attempt(self) -> bool:
        return (self.marks / "again").exists()

    def wait_for_another_attempt(self) -> None:
        wait_until(lambda: self.has_another_attempt)

    def go_on(self) -> None:
        (self.marks / "go").touch()
