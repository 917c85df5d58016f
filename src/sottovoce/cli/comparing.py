"""What the commands share that compare methods: a table or JSON, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.commands import print_json

if TYPE_CHECKING:
    from rich.table import Table as RichTable

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
