"""Files that a process wrote to be sent: streamed, and gone when they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from weakref import finalize

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sottovoce.service.concurrency import Turn

PIECE = 1 << 16  # bytes that are read at once


@dataclass(frozen=True)
class Download:
    """A file that is written to be sent, and the turn of whoever asked for it."""

    path: Path
    turn: Turn

    def drop(self) -> None:
        """Nobody will send it."""
        self.path.unlink(missing_ok=True)
        self.turn.end()


class FileStream(StreamingResponse):
    """An answer of a file's bytes. The file is closed, and its turn ends,
    however the answer does.
    """

    def __init__(
        self, file: BinaryIO, turn: Turn, media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(_pieces(file), media_type=media_type, headers=headers)
        self._file = file
        self._end_turn = finalize(self, turn.end)  # also if it is never sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()
            self._end_turn()


def file_stream(
    download: Download, media_type: str, headers: Mapping[str, str] | None = None
) -> FileStream:
    """An answer of a file's bytes; the file, nameless by now, is gone however the answer ends."""
    try:
        file = download.path.open("rb")
        download.path.unlink()
    except BaseException:
        download.drop()
        raise
    length = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
    return FileStream(file, download.turn, media_type, {**length, **(headers or {})})


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece
