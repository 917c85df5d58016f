"""Options of commands whose work adds up, or is many runs: who does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.console.reading import LOCAL_ENGINE

if TYPE_CHECKING:
    from sottovoce.engine import TaskEngine
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Who does it: local (threads), spark, or sc://host (a server of Spark Connect).",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Of the engine spark: spark://host:7077; by default this machine."
    ),
]


@dataclass(frozen=True)
class EngineChoice:
    """An engine by the options of a command."""

    name: str
    master: str | None

    @property
    def is_local(self) -> bool:
        """Whether it is this process, as by default."""
        return self.name == LOCAL_ENGINE and self.master is None

    def opened(self) -> TaskEngine:
        """The engine, to be closed again."""
        from sottovoce.engine import open_engine

        return open_engine(self.name, self.master)
