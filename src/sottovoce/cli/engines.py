"""Options of commands that fold reports: who does the work."""

from __future__ import annotations

from typing import Annotated

import typer

EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Who adds up: local (threads), spark, or sc://host (a server of Spark Connect).",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Of the engine spark: spark://host:7077; by default this machine."
    ),
]
