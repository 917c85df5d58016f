"""This machine's threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from typing import Any, ClassVar

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.file_fold import fold_files
from sottovoce.aggregation.pieces import Piece, sum_pieces
from sottovoce.engine.base import Advance, Task, TaskEngine
from sottovoce.ground.arguments import whole
from sottovoce.ground.threads import MAX_THREADS, thread_count
from sottovoce.protocol.plan import Plan


class LocalEngine(TaskEngine):
    """Threads of this process; by default as many as ``SOTTOVOCE_THREADS`` or the cores say."""

    name: ClassVar[str] = "local"

    def __init__(self, threads: int | None = None) -> None:
        self._threads = (
            thread_count() if threads is None else whole("threads", threads, 1, MAX_THREADS)
        )

    @property
    def slots(self) -> int:
        return self._threads

    def run(self, task: Task, jobs: Sequence[Any], merge: bool) -> Iterator[Piece]:
        with ThreadPoolExecutor(self._threads) as pool:
            made = pool.map(lambda job: list(task(job)), jobs)
            if not merge:
                for pieces in made:
                    yield from pieces
                return
            bodies: dict[int, list[bytes]] = {}
            for pieces in made:
                for piece in pieces:
                    bodies.setdefault(piece.number, []).append(piece.body)
        for number in sorted(bodies):
            yield Piece(number, sum_pieces(number, bodies[number]))

    def fold(
        self, plan: Plan, path: str | PathLike[str], advance: Advance | None = None
    ) -> Aggregate:
        """As of every engine; threads share one memory, so nothing is cut into pieces."""
        return fold_files(plan, path, threads=self._threads, advance=advance)

    def asked(
        self, plan: Plan, path: str | PathLike[str], advance: Advance | None = None
    ) -> Aggregate:
        """The rows are in this memory, too."""
        return self.fold(plan, path, advance)
