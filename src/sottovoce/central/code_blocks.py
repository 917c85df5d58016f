"""Codes of a table as they come, in memory or in a temporary file.

The file has no name and is gone when the process ends, however it ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.central.values import Codes

MEMORY_BYTES = 1 << 28  # of codes that are kept in memory


class FileCodes:
    """Codes that lie in a file, (rows, width), of which some rows at a time are in memory."""

    def __init__(self, file: Any, type: np.dtype[Any], rows: int, width: int) -> None:
        self._file = file  # without a name: it is there as long as it is open
        self._type = type
        self._shape = (rows, width)

    def __len__(self) -> int:
        return self._shape[0]

    def __getitem__(self, index: Any) -> Codes:
        """What an array of all codes would have there, as a copy.

        The file is mapped anew each time, since pages of a mapping stay in memory as long as it
        does, and after a pass over a table that would be the table.
        """
        mapped = np.memmap(self._file, self._type, "r", shape=self._shape)
        return np.array(mapped[index])


class CodeBlocks:
    """Takes codes in: into memory, and from ``MEMORY_BYTES`` on into a file."""

    def __init__(self, types: Sequence[type[np.signedinteger[Any]]]) -> None:
        """Of columns.

        Args:
            types: of the codes of each column; they are kept in the widest of them.
        """
        self._width = len(types)
        self._type = np.result_type(*types)
        self._blocks: list[Codes] = []
        self._file: Any = None
        self._rows = 0

    def append(self, codes: Codes) -> None:
        """Codes of some rows, (rows, width)."""
        block = np.ascontiguousarray(codes, self._type)
        self._rows += len(block)
        if self._file is not None:
            self._file.write(block)
            return
        self._blocks.append(block)
        if self._type.itemsize * self._width * self._rows > MEMORY_BYTES:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the table)
            for waiting in self._blocks:
                self._file.write(waiting)
            self._blocks.clear()

    def finished(self) -> Codes | FileCodes:
        """All of them, (rows, width)."""
        if self._file is None:
            none = np.zeros((0, self._width), self._type)
            return np.concatenate([none, *self._blocks])
        self._file.flush()
        return FileCodes(self._file, self._type, self._rows, self._width)
