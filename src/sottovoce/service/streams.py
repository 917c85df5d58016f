"""Files that a process wrote to be sent: streamed, and gone when they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from starlette.responses import StreamingResponse

PIECE = 1 << 16  # bytes that are read at once


def file_stream(path: Path, media_type: str, headers: Mapping[str, str] | None = None) -> StreamingResponse:
    """An answer of a file's bytes. The file has no name from now on, so it is gone however the answer ends."""
    file = path.open("rb")
    path.unlink()
    length = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
    return StreamingResponse(_pieces(file), media_type=media_type, headers={**length, **(headers or {})})


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece
