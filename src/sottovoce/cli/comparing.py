"""What the commands share that compare methods: a table or JSON, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.commands import print_json
from sottovoce.cli.engines import EngineChoice

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Seed = Annotated[int, typer.Option(min=0, help="Of the simulations.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw it, with its spread over runs: .svg, .png, .html or .json.",
    ),
]


def check_plot(plot: Path | None) -> None:
    """Refuse a picture's file before the long part."""
    if plot is not None:
        from sottovoce.results.plots import check_ending

        check_ending(str(plot))


def compared(
    chosen: EngineChoice,
    compare: Callable[..., Iterable[Any]],
    epsilons: Sequence[str],
    methods: Sequence[str] | None,
    runs: int,
    quiet: bool,
    *,
    methods_together: bool = False,
) -> list[Any]:
    """The rows of a comparison, measured here or by an engine.

    Args:
        chosen: who measures.
        compare: with all arguments but epsilons, methods and progress.
        epsilons: as typed.
        methods: as typed; None if ``compare`` knows which fit.
        runs: of each method and epsilon, all methods together.
        quiet: whether to show no progress.
        methods_together: see :func:`sottovoce.engine.comparisons.compare_apart`.
    """
    from sottovoce.console.progress import progress

    if chosen.is_local:
        with progress("comparing", runs, quiet) as advance:
            return list(compare(epsilons=epsilons, methods=methods, progress=advance))
    from sottovoce.engine.comparisons import compare_apart

    jobs = len(epsilons) * (1 if methods is None or methods_together else len(methods))
    with chosen.opened() as workers, progress("comparing", jobs, quiet) as advance:
        apart = compare_apart(
            workers, compare, epsilons, methods, advance, methods_together=methods_together
        )
        return list(apart)


def show(
    rows: Sequence[Any],
    table: Callable[[], RichTable],
    picture: Callable[[], Any],
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print what was measured, then draw it if a file for it was named."""
    if as_json:
        print_json([row.to_json() for row in rows])
    else:
        from sottovoce.console.tables import console

        console().print(table())
    if plot is None:
        return
    from sottovoce.results.plots import save

    save(picture(), str(plot))
    typer.echo(f"Drawn: {plot}", err=as_json)
