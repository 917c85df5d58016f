"""A store's reports as Parquet files, whose names sort in order of arrival."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.device.assignment import ID_BYTES
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import open_writer
from sottovoce.protocol.reports import STREAM_BATCH, Reports
from sottovoce.store.base import Ids, Progress, Store

PARTITION = 8 * STREAM_BATCH  # reports in one file, about a million


def export(
    store: Store, plan: Plan, folder: str | os.PathLike[str], progress: Progress | None = None
) -> int:
    """Write a plan's reports to ``folder``, which is made if it is not there; how many they are.

    The files have the columns ``id``, ``cohort`` and ``payload``, and name the plan. They appear
    only when all of them are whole, and replace those of an earlier export of the same plan.
    """
    target = Path(folder).resolve()
    if not target.parent.is_dir() or (target.exists() and not target.is_dir()):
        raise InvalidInput(f"output ({folder}) must be a folder, or lie in one that exists")
    name = plan.id[:16]
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as draft:
        total = _write(store, plan, Path(draft), name, progress)
        target.mkdir(exist_ok=True)
        files = sorted(Path(draft).iterdir())
        for file in files:
            os.replace(file, target / file.name)
    for file in target.glob(f"{name}-*.parquet"):
        if file.name > files[-1].name:
            file.unlink()
    return total


def export_file(store: Store, plan: Plan, path: Path) -> None:
    """The same in one file, however many they are."""
    writer = None
    try:
        for _, ids, reports in store.read(plan, batch=STREAM_BATCH):
            table = table_of(ids, reports)
            writer = writer or open_writer(path, table.schema)
            writer.write_table(table)
        if writer is None:
            empty = table_of(np.zeros((0, ID_BYTES), np.uint8), Reports.empty(plan))
            writer = open_writer(path, empty.schema)
    finally:
        if writer is not None:
            writer.close()


def _write(store: Store, plan: Plan, folder: Path, name: str, progress: Progress | None) -> int:
    total = number = rows = 0
    writer = None
    try:
        for _, ids, reports in store.read(plan, batch=STREAM_BATCH):
            if writer is not None and rows >= PARTITION:
                writer.close()
                writer, rows, number = None, 0, number + 1
            table = table_of(ids, reports)
            writer = writer or open_writer(folder / f"{name}-{number:05}.parquet", table.schema)
            writer.write_table(table)
            rows, total = rows + len(reports), total + len(reports)
            if progress is not None:
                progress(total)
        if not total:
            empty = table_of(np.zeros((0, ID_BYTES), np.uint8), Reports.empty(plan))
            writer = open_writer(folder / f"{name}-00000.parquet", empty.schema)
    finally:
        if writer is not None:
            writer.close()
    return total


def table_of(ids: Ids, reports: Reports) -> Any:
    """Reports as Arrow columns, with their ids before them."""
    pa = imported("pyarrow")

    data = pa.py_buffer(np.ascontiguousarray(ids))
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_BYTES), len(ids), [None, data])
    return reports.to_arrow().add_column(
        0, pa.field("id", pa.binary(ID_BYTES), nullable=False), column
    )
