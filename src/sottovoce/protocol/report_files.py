"""Files of reports: Parquet, written whole or not at all, and read in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import replacing
from sottovoce.protocol.report_places import (
    ReportPlace,
    is_folder,
    opened,
    parquet_files,
    place_of,
    shown,
)
from sottovoce.protocol.reports import PLAN_KEY, STREAM_BATCH, Reports, public_names

REPORT_ID = "id"  # the column of ids in what a store exports
REPORT_ID_BYTES = 16
Ids = NDArray[np.uint8]  # (reports, REPORT_ID_BYTES)


def write_stream(path: str | os.PathLike[str], batches: Iterable[Reports]) -> int:
    """Write batches to one Parquet file as they come; returns how many reports it holds."""
    total = 0
    with replacing(path) as draft:
        writer = None
        try:
            for batch in batches:
                table = batch.to_arrow()
                writer = writer or open_writer(draft, table.schema)
                writer.write_table(table)
                total += len(batch)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise InvalidInput("reports: there is nothing to write")
    return total


def open_writer(path: Any, schema: Any) -> Any:
    """A Parquet writer of tables with the columns ``cohort`` and ``payload``, among others; to a
    path, or to what pyarrow writes to.

    Cohorts repeat, so a dictionary of them is shorter than they are. Payloads and ids are nearly
    all different: a dictionary of those is as long as the column, and read a second time.
    """
    pq = imported("pyarrow.parquet")

    repeated = ["cohort", *public_names(schema)]
    return pq.ParquetWriter(
        path, schema, compression="zstd", write_page_checksum=True, use_dictionary=repeated
    )


def stream(
    path: str | os.PathLike[str], batch: int = STREAM_BATCH, plan_id: str | None = None
) -> Iterator[Reports]:
    """The reports of a Parquet file in batches, in constant memory; or those of all Parquet files
    in a folder, and in its folders named ``key=value``, by name. A URL that pyarrow opens
    (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``, ``file://``) is as good as a path.

    With ``plan_id`` the files of other plans in a folder are passed over.
    """
    for file in report_paths(path, plan_id):
        yield from ReportFile(file).stream(batch=batch)


def read_with_ids(path: str | os.PathLike[str], plan_id: str) -> tuple[Ids, Reports]:
    """All reports of a plan in a file or a folder, with their ids; refused if it has none.

    Ids are in what a store exports, one for each report; devices whose reports went into a file
    at once have none.
    """
    ids: list[Ids] = []
    parts: list[Reports] = []
    for file in report_paths(path, plan_id):
        ids.append(_ids_of(file))
        parts += ReportFile(file).stream()
    return np.concatenate(ids), Reports.concat(parts)


def parse_with_ids(data: bytes, name: str) -> tuple[Ids, Reports]:
    """The same of a file's bytes, whose plan is not known yet; ``name`` is for errors."""
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    damaged = CorruptReport(f"reports ({name}) must be a whole Parquet file with ids")
    try:
        # one thread: whoever has many such files reads several at once
        table = pq.read_table(
            pa.BufferReader(data), use_threads=False, page_checksum_verification=True
        )
        if REPORT_ID not in table.schema.names:
            raise damaged
        column = table.column(REPORT_ID)
        if column.null_count or column.type != pa.binary(REPORT_ID_BYTES):
            raise damaged
        return _id_rows(column), Reports.from_arrow(table)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise damaged from None


def report_paths(path: str | os.PathLike[str], plan_id: str | None) -> list[ReportPlace]:
    """A file, or those of a folder by name, of one plan if it is given."""
    place = place_of(path)
    if not is_folder(place):
        return [place]
    files = parquet_files(place)
    if plan_id is not None:
        files = [
            file
            for file in files
            if (_open(file).schema_arrow.metadata or {}).get(PLAN_KEY) == plan_id.encode()
        ]
    if not files:
        of_plan = "" if plan_id is None else " of the plan"
        raise InvalidInput(
            f"reports ({shown(place)}) must be a folder that holds Parquet files{of_plan}"
        )
    return files


def _open(place: ReportPlace) -> Any:
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    source = opened(place)
    try:
        # without pre_buffer, which would hold all that was read: the file streams
        return pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _damaged(place) from None


class ReportFile:
    """A Parquet file of reports: its row groups can be read one by one, by one thread at a time."""

    def __init__(self, path: ReportPlace) -> None:
        self.path = path
        self._file = _open(path)

    @property
    def plan_id(self) -> str:
        """The plan that the file names; empty if it names none."""
        metadata: dict[bytes, bytes] = self._file.schema_arrow.metadata or {}
        return metadata.get(PLAN_KEY, b"").decode(errors="replace")

    @property
    def group_rows(self) -> list[int]:
        """How many reports each row group holds."""
        metadata = self._file.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def stream(
        self, groups: Sequence[int] | None = None, batch: int = STREAM_BATCH, threads: bool = True
    ) -> Iterator[Reports]:
        """The reports of some row groups, or of all, in batches; if there are none, so many.

        Args:
            groups: numbers of row groups.
            batch: how many reports are held at once.
            threads: whether columns are read side by side.
        """
        pa = imported("pyarrow")

        listed = range(self._file.num_row_groups) if groups is None else groups
        empty = True
        try:
            schema = self._file.schema_arrow
            columns = ["cohort", "payload", *public_names(schema)]
            for rows in self._file.iter_batches(
                batch_size=batch, row_groups=list(listed), columns=columns, use_threads=threads
            ):
                empty = False
                yield Reports.from_arrow(rows.replace_schema_metadata(schema.metadata))
            if empty:
                yield Reports.from_arrow(schema.empty_table())
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise _damaged(self.path) from None


def _damaged(path: ReportPlace) -> CorruptReport:
    return CorruptReport(
        f"reports ({shown(path)}) must be a whole Parquet file; it was cut or damaged"
    )


def _ids_of(path: ReportPlace) -> Ids:
    pa = imported("pyarrow")

    file = _open(path)
    schema = file.schema_arrow
    if REPORT_ID not in schema.names or schema.field(REPORT_ID).type != pa.binary(REPORT_ID_BYTES):
        raise InvalidInput(
            f"reports ({shown(path)}) must have a column {REPORT_ID!r} of "
            f"{REPORT_ID_BYTES} bytes each to be joined with a table, as in what "
            "`sottovoce export` writes"
        )
    try:
        column = file.read([REPORT_ID]).column(REPORT_ID)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _damaged(path) from None
    if column.null_count:
        raise CorruptReport(f"reports ({shown(path)}): no id may be missing")
    return _id_rows(column)


def _id_rows(column: Any) -> Ids:
    """A column of ids without gaps, as rows of bytes."""
    parts = [
        np.frombuffer(chunk.buffers()[1] or b"", np.uint8)[
            chunk.offset * REPORT_ID_BYTES : (chunk.offset + len(chunk)) * REPORT_ID_BYTES
        ]
        for chunk in column.chunks
    ]
    joined = np.concatenate([np.zeros(0, np.uint8), *parts])
    return joined.reshape(-1, REPORT_ID_BYTES)
