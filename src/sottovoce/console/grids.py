"""Tables for the screen. This file loads rich, so import it where one is made."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sottovoce.ground.labels import visible


class PrintedGrid(Table):
    """A table whose heads and cells hold only characters that can be seen."""

    def add_column(self, header: Any = "", *more: Any, **options: Any) -> None:
        super().add_column(_shown(header), *more, **options)

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*map(_shown, cells), **options)


def _shown(cell: Any) -> Any:
    return visible(cell) if isinstance(cell, str) else cell
