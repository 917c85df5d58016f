"""A checksum for each stored report, so that a damaged one is set aside instead of counted."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.protocol.reports import Reports

Checksums = NDArray[np.uint32]
CHECKSUM_BYTES = 4


def checksums(ids: NDArray[np.uint8], reports: Reports) -> Checksums:
    """CRC-32 of the plan's id, the report's id, its cohort (4 bytes, low first), padded payload.

    >>> reports = Reports("00" * 32, np.array([7], np.uint32), np.array([[1, 2]], np.uint8))
    >>> found = checksums(np.zeros((1, 16), np.uint8), reports)
    >>> int(found[0]) == zlib.crc32(bytes(48) + bytes([7, 0, 0, 0, 1, 2]))
    True
    """
    first = zlib.crc32(bytes.fromhex(reports.plan_id))
    cohorts = np.ascontiguousarray(reports.cohorts, "<u4").view(np.uint8).reshape(-1, 4)
    columns = [np.ascontiguousarray(rows) for rows in (ids, cohorts, reports.payload)]
    kernel = _kernel()
    if kernel is None:
        rows = np.concatenate(columns, axis=1)  # (reports, bytes)
        return np.array([zlib.crc32(row.tobytes(), first) for row in rows], np.uint32)
    found: Any = np.full(len(ids), first, np.uint32)
    for column in columns:
        found = kernel(column, found)
    return np.asarray(found, np.uint32)


@lru_cache(maxsize=1)
def _kernel() -> Callable[[Any, Any], Any] | None:
    """The compiled loop; none in an install for a collector alone, which does without numba."""
    try:
        from sottovoce.kernels.checksums import CRC_TABLES, crc32_rows
    except ModuleNotFoundError:
        return None
    return lambda rows, start: crc32_rows(rows, start, CRC_TABLES)


def checksum_of(plan_id: str, id: bytes, cohort: int, payload: bytes) -> int | None:
    """The same of one report; None if its cohort cannot be one."""
    if not 0 <= cohort < 1 << 32:
        return None
    return zlib.crc32(bytes.fromhex(plan_id) + id + cohort.to_bytes(4, "little") + payload)
