"""Progress on standard error, and only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]  # takes how much is done so far


@contextmanager
def progress(
    label: str, total: int | Callable[[], int | None] | None, quiet: bool
) -> Iterator[Advance]:
    """A bar that the block moves by saying how much is done; none if ``quiet`` or no terminal.

    What counts how much there is to do is called only if somebody watches.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class RateColumn(TextColumn):
        """How much is done in a second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(""),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total() if callable(total) else total)
        yield lambda done: bar.update(task, completed=done)
