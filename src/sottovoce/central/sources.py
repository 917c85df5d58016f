"""Where a curator's rows come from: a file, a folder of files, or a table in memory; as batches of
Arrow's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.central.values import is_list
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import PARQUET_ENDINGS, reading_table

BATCH_ROWS = 1 << 16  # that are read at once


@dataclass(frozen=True, eq=False)
class TableSource:
    """The columns of a table, and a way to read its rows once."""

    names: tuple[str, ...]
    types: Mapping[str, Any]  # Arrow's, of each column
    path: Path | None = None
    table: Any = None  # Arrow's, if it is in memory
    rows: int | None = None  # if it is known before it is read

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Arrow's record batches of some columns, in the order of the rows."""
        if self.path is None:
            yield from self.table.select(list(columns)).to_batches(max_chunksize=BATCH_ROWS)
            return
        with reading_table("table", self.path):
            yield from _file_batches(self.path, list(columns))


def open_source(table: Any, items: str | None = None) -> TableSource:
    """What :func:`sottovoce.release` was given: a path, an Arrow or pandas table, or a mapping.

    Args:
        table: the path of a CSV or Parquet file or of a folder of Parquet files, or a table.
        items: the column of items, whose sets may be any collections.
    """
    pa = imported("pyarrow")
    if isinstance(table, str | os.PathLike):
        return _file(Path(table))
    if isinstance(table, pa.Table | pa.RecordBatch):
        held = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    elif isinstance(table, Mapping):
        held = _from_columns(table, items)
    elif hasattr(table, "columns") and hasattr(table, "iloc"):
        held = _from_columns({name: table[name] for name in _names(table.columns)}, items)
    else:
        raise InvalidInput(
            f"table ({type(table).__name__}) must be a file, an Arrow or pandas table, or a "
            "mapping of columns"
        )
    return _source(held.schema, table=held, rows=held.num_rows)


def _source(schema: Any, **where: Any) -> TableSource:
    names = _names(schema.names)
    return TableSource(names, dict(zip(names, schema.types, strict=True)), **where)


def _names(names: Sequence[Any]) -> tuple[str, ...]:
    """The names of columns, if each is text and stands once."""
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"table: column {place} must have a name")
    if len(set(names)) < len(names):
        raise InvalidInput("table: a column name occurs twice")
    return tuple(names)


def _from_columns(columns: Mapping[Any, Any], items: str | None) -> Any:
    pa = imported("pyarrow")
    names = _names(list(columns))
    arrays = [_array(name, columns[name], name == items) for name in names]
    if not arrays:
        raise InvalidInput("table must have at least one column")
    if len({len(array) for array in arrays}) > 1:
        raise InvalidInput("table: columns must have equal lengths")
    return pa.table(dict(zip(names, arrays, strict=True)))


def _array(name: str, column: Any, is_items: bool) -> Any:
    """A column as Arrow has it; refused if its values are not of one kind."""
    pa = imported("pyarrow")
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise InvalidInput(f"column {name!r} must be a list or an array of values")
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InvalidInput(f"column {name!r} must hold one value in each row")
    if is_items:
        column = _without_sets(column)
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        raise InvalidInput(
            f"column {name!r}: values must be of one kind, and these are mixed (such as text and "
            "numbers): make them all text, or all numbers"
        ) from None
    return array


def _without_sets(column: Any) -> Any:
    """A column of Python's sets as one of lists, which Arrow knows."""
    if not any(isinstance(each, set | frozenset) for each in column):
        return column
    return [each if each is None else sorted(each, key=repr) for each in column]


def _file(path: Path) -> TableSource:
    pq = imported("pyarrow.parquet")
    if path.is_dir():
        with reading_table("table", path / "part.parquet"):
            found = _dataset(path)
            rows = found.count_rows()
        return _source(found.schema, path=path, rows=rows)
    if not path.is_file():
        raise InvalidInput(f"table ({path}) must be a file that exists")
    with reading_table("table", path):
        if path.suffix.lower() in PARQUET_ENDINGS:
            with pq.ParquetFile(path) as file:
                schema, rows = file.schema_arrow, file.metadata.num_rows
            return _source(schema, path=path, rows=rows)
        return _source(_csv_schema(path), path=path)


def _dataset(path: Path) -> Any:
    return imported("pyarrow.dataset").dataset(path, format="parquet")


def _file_batches(path: Path, columns: list[str]) -> Iterator[Any]:
    pq = imported("pyarrow.parquet")
    if path.is_dir():
        yield from _dataset(path).to_batches(columns=columns, batch_size=BATCH_ROWS)
    elif path.suffix.lower() in PARQUET_ENDINGS:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)
    else:
        yield from _csv_batches(path, columns)


def _csv_schema(path: Path) -> Any:
    """Every column of a CSV is text: a type that is guessed from some rows would tell of them."""
    pa = imported("pyarrow")
    csv = imported("pyarrow.csv")
    parse = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as header:
        names = header.schema.names
    return pa.schema([(name, pa.string()) for name in names])


def _csv_batches(path: Path, columns: list[str]) -> Iterator[Any]:
    pa = imported("pyarrow")
    csv = imported("pyarrow.csv")
    names = _csv_schema(path).names
    parse = csv.ParseOptions(newlines_in_values=True)
    # of one column a blank line is a person who says nothing
    parse.ignore_empty_lines = len(names) > 1
    convert = csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        include_columns=columns,
        strings_can_be_null=False,
    )
    with csv.open_csv(path, parse_options=parse, convert_options=convert) as reader:
        yield from reader


def lists_of(name: str, column: Any) -> tuple[Any, Any]:
    """The sets of a column: (values one after the other, how many each row has).

    Lists of Arrow's, or text in which ``;`` stands between items, as a CSV has it.
    """
    pa = imported("pyarrow")
    pc = imported("pyarrow.compute")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        # an empty text is a list of one empty text, which is no item
        column = pc.split_pattern(column, ";")
    if pa.types.is_null(column.type):
        return pa.array([], pa.string()), np.zeros(len(column), np.int64)
    if not is_list(column.type):
        raise InvalidInput(
            f"items ({name}) must be a column of lists, or of one item in each row with a user "
            "column that says whose it is"
        )
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    values = column.flatten()  # without those of null lists
    return values, lengths.to_numpy(zero_copy_only=False).astype(np.int64)
