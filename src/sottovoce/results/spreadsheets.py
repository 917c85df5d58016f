"""Tables as spreadsheets: a column for each attribute, then the figures, as CSV."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import write_csv
from sottovoce.results.estimate import Table

LARGEST_FIRST, AS_IN_SCHEMA = "largest", "schema"
FIGURES = ("frequency", "std_error", "low", "high")
ROWS_AT_ONCE = 1 << 16  # of a table that is written as CSV


def ordered(table: Table, order: str) -> NDArray[np.int64]:
    """The places of a table's rows in the order wanted."""
    return table.largest_first() if order == LARGEST_FIRST else np.arange(len(table.values))


def cells_of(table: Table, label: Any) -> tuple[Any, ...]:
    """A label as one cell for each attribute; a set of items with ; between them."""
    if len(table.attributes) == 1 and isinstance(label, tuple):
        return (";".join(map(str, label)),)
    return label if isinstance(label, tuple) else (label,)


def table_csv(table: Table, level: float) -> str:
    """A table for a spreadsheet: a column per attribute, then the figures."""
    return "".join(csv_parts(table, level, AS_IN_SCHEMA))


def csv_parts(table: Table, level: float, order: str) -> Iterator[str]:
    """The same piece by piece, so that a large table is never in memory as text."""
    places = ordered(table, order)
    head = [*table.attributes, *FIGURES]
    yield _lines([head])
    for start in range(0, len(places), ROWS_AT_ONCE):
        part = table.at(places[start : start + ROWS_AT_ONCE])
        yield _lines([_csv_row(part, row) for row in part.rows(level)])


def _csv_row(table: Table, row: Mapping[str, Any]) -> list[Any]:
    cells = cells_of(table, row["value"])
    if len(cells) != len(table.attributes):
        raise InvalidInput("table: its labels do not fit its attributes")
    return [*cells, row["frequency"], row["std_error"], row["low"], row["high"]]


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    write_csv(out, rows)
    return out.getvalue()
