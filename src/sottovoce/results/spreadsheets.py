"""Tables as spreadsheets: a column for each attribute, then the figures, as CSV."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import new_folder, replacing, write_csv
from sottovoce.results.cells import Mark
from sottovoce.results.estimate import Table

LARGEST_FIRST, AS_IN_SCHEMA = "largest", "schema"
FIGURES = ("frequency", "std_error", "low", "high")
MARKS = ("significant", "expected_false")  # of popular values
MAX_NAME = 80  # letters of a file's name
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


def csv_parts(
    table: Table, level: float, order: str, marks: Sequence[Mark] | None = None
) -> Iterator[str]:
    """The same piece by piece, so that a large table is never in memory as text."""
    yield _lines([heads(table, marks)])
    for rows in row_blocks(table, level, order, marks):
        yield _lines(rows)


def heads(table: Table, marks: Sequence[Mark] | None = None) -> list[str]:
    """The columns of a table's sheet; of popular values also how surely each was found."""
    return [*table.attributes, *FIGURES, *(MARKS if marks is not None else ())]


def row_blocks(
    table: Table, level: float, order: str, marks: Sequence[Mark] | None = None
) -> Iterator[list[list[Any]]]:
    """The rows of a table's sheet, many at a time.

    Args:
        table: what is written.
        level: of its intervals.
        order: ``LARGEST_FIRST`` or ``AS_IN_SCHEMA``.
        marks: of popular values, one for each.
    """
    places = ordered(table, order)
    for start in range(0, len(places), ROWS_AT_ONCE):
        chosen = places[start : start + ROWS_AT_ONCE]
        part = table.at(chosen)
        rows = [_sheet_row(part, row) for row in part.rows(level)]
        if marks is not None:
            for row, place in zip(rows, chosen.tolist(), strict=True):
                row += [marks[place].significant, marks[place].expected_false]
        yield rows


def _sheet_row(table: Table, row: Mapping[str, Any]) -> list[Any]:
    cells = cells_of(table, row["value"])
    if len(cells) != len(table.attributes):
        raise InvalidInput("table: its labels do not fit its attributes")
    return [*cells, *(row[figure] for figure in FIGURES)]


def write_csv_file(
    table: Table, path: Path, level: float, marks: Sequence[Mark] | None = None
) -> None:
    """One table as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_parts(table, level, AS_IN_SCHEMA, marks))


def write_csv_tables(
    tables: Sequence[Table], path: Path, level: float, marks: Sequence[Mark] | None = None
) -> None:
    """Tables as CSV: one table into a file that ends in .csv, any number into a new folder."""
    if path.suffix.lower() == ".csv":
        if len(tables) != 1:
            raise InvalidInput(
                f"csv ({path}) can hold one table, not {len(tables)}: name a folder, which gets a "
                "file for each"
            )
        with replacing(path) as draft:
            write_csv_file(tables[0], draft, level, marks)
        return
    with new_folder(path) as folder:
        for table, name in zip(tables, file_names(tables), strict=True):
            write_csv_file(table, folder / f"{name}.csv", level, marks)


def file_names(tables: Sequence[Table]) -> list[str]:
    """A different name for each table, of letters and digits, made of its attributes.

    >>> from sottovoce.oracles import Noise
    >>> def table(*names): return Table(names, ["x"], np.ones(1), np.ones(1), 9, Noise(1.0, 0.0))
    >>> file_names([table("age", "a/b"), table("age", "a b")])
    ['age-a_b', 'age-a_b-2']
    """
    names: list[str] = []
    for table in tables:
        words = [re.sub(r"\W+", "_", name).strip("_") or "table" for name in table.attributes]
        stem = "-".join(words)[:MAX_NAME]
        taken = {name.lower() for name in names}
        numbered = [f"{stem}-{number}" for number in range(2, len(tables) + 2)]
        names.append(next(name for name in [stem, *numbered] if name.lower() not in taken))
    return names


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    write_csv(out, rows)
    return out.getvalue()
