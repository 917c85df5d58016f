"""Public columns that do not travel: joined from an analyst's own table, by the ids of reports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import PARQUET_ENDINGS, reading_table
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.columns import Columns
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import REPORT_ID_BYTES, Ids
from sottovoce.questions.queries.evidence import Integers

Keys = NDArray[np.bytes_]  # ids as strings, which sort; zeros at their ends are dropped from all
_ID_RULE = f"must hold ids of reports, {2 * REPORT_ID_BYTES} hexadecimal digits each"


@dataclass(frozen=True, eq=False)
class JoinTable:
    """An analyst's own table, and which of its columns holds the ids of reports.

    Args:
        table: a pandas or Arrow table, a dict of columns, or the path of a CSV or Parquet file.
        on: the column of ids: 32 hexadecimal digits, or 16 bytes.
    """

    table: Any
    on: str = "id"


@dataclass(frozen=True, eq=False)
class JoinedColumns:
    """What a table adds to reports.

    ``rows``: the reports that have a row in it, increasing; ``columns``: what their rows hold, one
    value for each of ``rows``.
    """

    rows: Integers
    columns: Mapping[str, PublicColumn]
    notes: tuple[str, ...]


def joined_columns(plan: Plan, ids: Ids, source: JoinTable) -> JoinedColumns:
    """The columns of a table that a plan knows as public, beside the reports of these ids.

    Reports without a row are left out, and rows without a report are passed over; a note says how
    many. Refused are ids that occur twice, a table that knows none of the reports, and values that
    the plan's schema does not allow.

    Args:
        plan: of the reports.
        ids: of the reports, (reports, 16).
        source: the analyst's table.
    """
    possible = plan.unsent
    if not possible:
        raise InvalidInput(
            "table: the plan has no public column that does not travel, so nothing can be joined"
        )
    table = (
        _read(Path(source.table), source.on, possible) if _is_path(source.table) else source.table
    )
    present = column_names(table)
    names = [name for name in possible if name in present]
    if source.on not in present:
        raise InvalidInput(f"on ({source.on}) must be a column of the table: the ids of reports")
    if not names:
        raise InvalidInput(
            f"table: it must have a public column of the plan that does not travel "
            f"({', '.join(possible)})"
        )
    known = _keys(_read_ids(table[source.on], source.on), f"table: column {source.on!r}")
    asked = _keys(ids, "reports: their ids")
    order = np.argsort(known)
    places = np.searchsorted(known, asked, sorter=order).clip(max=max(len(known) - 1, 0))
    has_row = known[order[places]] == asked if len(known) else np.zeros(len(asked), bool)
    if not has_row.any():
        raise InvalidInput(f"table: no id in its column {source.on!r} is that of a report")
    used = order[places[has_row]]  # (rows,): the row of the table of each report
    is_used = np.zeros(len(known), bool)
    is_used[used] = True
    columns = Columns.of(plan.schema, names).read_table(plan.schema, table, is_used)
    among_used = np.cumsum(is_used) - 1
    aligned = {name: column[among_used[used]] for name, column in columns.items()}
    notes = _notes(int(has_row.sum()), len(asked), len(known))
    return JoinedColumns(np.flatnonzero(has_row), aligned, notes)


def _notes(matched: int, reports: int, rows: int) -> tuple[str, ...]:
    found = []
    if matched < reports:
        found.append(
            f"{reports - matched:,} of {reports:,} reports have no row in the joined table and are "
            "left out"
        )
    if matched < rows:
        found.append(f"{rows - matched:,} rows of the joined table have no report")
    return tuple(found)


def column_names(table: Any) -> list[str]:
    """The columns of a dict, pandas or Arrow table."""
    for key in ("column_names", "columns"):
        if hasattr(table, key):
            return list(getattr(table, key))
    if not isinstance(table, Mapping):
        raise InvalidInput(
            "table must be a pandas or Arrow table, a dict of columns, or the path of a file"
        )
    return list(table)


def read_ids(ids: Any) -> Ids:
    """Ids of reports as rows of 16 bytes, from such rows, from bytes, or from hexadecimal text."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.uint8:
        if ids.ndim != 2 or ids.shape[1] != REPORT_ID_BYTES:
            raise InvalidInput(f"ids must be rows of {REPORT_ID_BYTES} bytes")
        return ids
    return _read_ids(ids, None)


def _read_ids(column: Any, name: str | None) -> Ids:
    what = "ids" if name is None else f"table: column {name!r}"
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    try:
        data = b"".join([_id_bytes(value) for value in values])
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} {_ID_RULE}") from None
    return np.frombuffer(data, np.uint8).reshape(-1, REPORT_ID_BYTES)


def _id_bytes(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else bytes.fromhex(value)
    if len(data) != REPORT_ID_BYTES:
        raise ValueError
    return data


def _keys(ids: Ids, what: str) -> Keys:
    """Ids that can be sorted, if none occurs twice."""
    keys: Keys = np.ascontiguousarray(ids).view(f"S{REPORT_ID_BYTES}").reshape(-1)
    ordered = np.sort(keys)
    if (ordered[1:] == ordered[:-1]).any():
        raise InvalidInput(f"{what} must be different, each of one report")
    return keys


def _is_path(table: Any) -> bool:
    return isinstance(table, str | os.PathLike)


def _read(path: Path, on: str, possible: Sequence[str]) -> Any:
    """A file's columns that may be of use; of a CSV all as text, whose types are the plan's."""
    pa = imported("pyarrow")

    if not path.is_file():
        raise InvalidInput(f"table ({path}) must be a file that exists")
    with reading_table("table", path):
        if path.suffix.lower() in PARQUET_ENDINGS:
            pq = imported("pyarrow.parquet")
            names = pq.read_schema(path).names
            return pq.read_table(path, columns=_wanted(names, on, possible))
        csv = imported("pyarrow.csv")
        parse = csv.ParseOptions(newlines_in_values=True)
        with csv.open_csv(path, parse_options=parse) as header:
            names = header.schema.names
        wanted = _wanted(names, on, possible)
        convert = csv.ConvertOptions(
            column_types={name: pa.string() for name in wanted},
            include_columns=wanted,
            strings_can_be_null=False,
        )
        return csv.read_csv(path, parse_options=parse, convert_options=convert)


def _wanted(names: Sequence[str], on: str, possible: Sequence[str]) -> list[str]:
    for name in (on, *possible):
        if list(names).count(name) > 1:
            raise InvalidInput(f"table: column {name!r} occurs twice")
    return [name for name in names if name == on or name in possible]
