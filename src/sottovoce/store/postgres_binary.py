"""PostgreSQL's binary COPY from columns: rows of a plan have one length; numpy lays them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # a signature, no flags, no extension
_TRAILER = b"\xff\xff"

Kinds = Mapping[str, str]  # of each field, in order: a numpy type with its byte order


def _row(kinds: Kinds) -> np.dtype[Any]:
    """The number of fields, then the length and the value of each."""
    layout: list[tuple[str, str]] = [("fields", ">i2")]
    for name, kind in kinds.items():
        layout += [(f"{name} length", ">i4"), (name, kind)]
    return np.dtype(layout)


def rows_of(kinds: Kinds, columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Rows from columns; a field of bytes is a column of rows of bytes.

    >>> columns = {"place": np.array([7]), "payload": np.array([[1, 2]], np.uint8)}
    >>> rows_of({"place": ">i4", "payload": "V2"}, columns).hex(" ", 2)
    '0002 0000 0004 0000 0007 0000 0002 0102'
    """
    rows = np.zeros(len(next(iter(columns.values()))), _row(kinds))
    rows["fields"] = len(kinds)
    for name, kind in kinds.items():
        width = np.dtype(kind).itemsize
        rows[f"{name} length"] = width
        values = columns[name]
        rows[name] = (
            np.ascontiguousarray(values).view(kind).reshape(-1) if values.ndim == 2 else values
        )
    return rows.tobytes()


def stream_of(rows: Iterable[bytes]) -> bytes:
    """Rows, of whatever lengths, for COPY ... FROM STDIN (FORMAT BINARY)."""
    return b"".join([_HEADER, *rows, _TRAILER])
