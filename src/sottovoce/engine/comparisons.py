"""Comparisons of methods by an engine: each method at each epsilon is a job by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.engine.base import TaskEngine

# Of sottovoce.measure and sottovoce.central, with all arguments but epsilons, methods and progress.
Compare = Callable[..., Iterable[Any]]
Advance = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class CompareTask:
    """The rows of some epsilons and methods."""

    compare: Compare

    def __call__(self, job: tuple[Sequence[Any], Sequence[str] | None]) -> list[Any]:
        epsilons, methods = job
        return list(self.compare(epsilons=epsilons, methods=methods))


def compare_apart(
    engine: TaskEngine,
    compare: Compare,
    epsilons: Sequence[Any],
    methods: Sequence[str] | None,
    advance: Advance,
    *,
    methods_together: bool = False,
) -> Iterator[Any]:
    """The rows of a comparison, in its own order, figures and all; seconds are those of workers.

    Args:
        engine: who measures.
        compare: picklable, so a ``functools.partial`` of a function of a module.
        epsilons: one or more.
        methods: None if ``compare`` knows which fit.
        advance: gets how many jobs are done.
        methods_together: whether a method's coins depend on its place among the methods.
    """
    groups = [methods] if methods is None or methods_together else [[each] for each in methods]
    jobs = [([epsilon], group) for epsilon in epsilons for group in groups]
    for done, rows in enumerate(engine.each(CompareTask(compare), jobs), start=1):
        advance(done)
        yield from rows
