"""Connections of the web server: the head of a request within a size and a time, and nothing said
of who hangs up.

A body is read within its limits by the application (:mod:`sottovoce.service.bodies`). If a request
was answered before all of it came, the rest is dropped here, within a size and a time too; then the
connection ends. So does one whose client does not read what it asked for.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sottovoce.service.problems import MEDIA_TYPE, Problem

MOST_HEAD = 64 << 10  # bytes of a request's first line and headers
HEAD_SECONDS = 10.0  # to send them
# bytes of a body that are dropped after the answer, so that its sender gets to read that
MOST_UNREAD = 8 << 20
UNREAD_SECONDS = 10.0  # to send them
READ_SECONDS = 30.0  # in which a client reads so much of an answer that waits for it, or is gone:
LEAST_READ = 32 << 10  # bytes
_APART = 4  # bytes between a header and its value, and after it


class _HeadTooLarge(Exception):
    """The parser stops here."""


class Connection(HttpToolsProtocol):
    """The server's own, which by itself waits for any head, however long and for however long."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head = 0  # bytes of it that were understood
        # bytes that came since it began, or since the last of a body, understood or not
        self._pieces = 0
        self._begun = 0  # requests that began in one piece of data
        self._is_in_head = self._is_in_body = self._is_refused = False
        self._has_body = False  # whether the last piece of data held some of one
        self._unread = 0  # bytes of a body that came after the answer
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None  # of a client that has not read its answer
        self._left = 0  # bytes of it when that timer was started
        self._answering: Any = None  # the request that is answered now, while those behind it wait

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_reading()
        waiting = [cycle for cycle, _ in self.pipeline]
        self.pipeline.clear()
        for cycle in (self._answering, *waiting):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        was_in_head, was_in_body = self._is_in_head, self._is_in_body
        self._begun = 0
        if not self._is_in_body:
            self._start_timer(HEAD_SECONDS)
        elif self._is_unread:
            self._unread += len(data)
            if self._unread > MOST_UNREAD:
                self._end()
                return
        self._has_body = False
        super().data_received(data)
        self._count_pieces(len(data), was_in_head, was_in_body)

    def _count_pieces(self, size: int, was_in_head: bool, was_in_body: bool) -> None:
        """Count what the parser may hold of a head or of trailers that have not ended."""
        if self._is_refused:
            return
        if self._is_in_head:
            self._start_timer(HEAD_SECONDS)
            is_all_head = self._begun == 0 if was_in_head else self._begun == 1 and not was_in_body
            self._pieces += size if is_all_head else 0
        elif self._is_in_body and was_in_body and self._begun == 0 and not self._has_body:
            self._pieces += size
        if self._pieces > MOST_HEAD:
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = self._pieces = 0
        self._begun += 1
        self._is_in_head = True

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _APART)
        if not self._is_in_body:  # a trailer is no header: no proxy has looked at it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._pieces = 0
        self._is_in_head, self._is_in_body = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._has_body, self._pieces = True, 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_unread:
            self._stop_timer()
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_reading()
            return
        if not self._is_unread:
            return
        if self.expect_100_continue:  # what comes next may be this body or another request
            self._end()
        else:
            self._unread = 0
            self._start_timer(UNREAD_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_reading()

    def resume_writing(self) -> None:
        self._stop_reading()
        super().resume_writing()
        if self.transport.is_closing():  # what is left of the last answer
            self._start_reading()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._start_reading()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            self._start_reading()

    def _start_reading(self) -> None:
        """Give a client time to read; a closed connection lasts until all of an answer is read."""
        unread = self.transport.get_write_buffer_size()
        if self._reading is None and unread:
            self._left = unread
            self._reading = self.loop.call_later(READ_SECONDS, self._end_reading)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _end_reading(self) -> None:
        """Drop a client that has read too little, and with it all that it was to be sent."""
        self._reading = None
        if self._left - self.transport.get_write_buffer_size() < LEAST_READ:
            self.transport.abort()
        else:
            self._start_reading()

    @property
    def _is_unread(self) -> bool:
        """Whether a body is still being sent whose request was answered."""
        return self._is_in_body and self.cycle is not None and self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        if self._head > MOST_HEAD:
            self._refuse(_too_large())
        else:
            self._is_refused = True
            super().send_400_response(msg)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MOST_HEAD:
            raise _HeadTooLarge

    def _start_timer(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, self._end_waiting)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_waiting(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if (
            self.cycle is not None and not self.cycle.response_complete
        ):  # it is we who do not read on
            self._start_timer(HEAD_SECONDS)
        elif self._is_in_head:
            self._refuse(
                Problem("head-too-slow", f"the headers must arrive within {HEAD_SECONDS:g} seconds")
            )
        else:
            self._end()

    def _end(self) -> None:
        """Close the connection; nothing more is read from it."""
        self._is_refused = True
        self._stop_timer()
        self.transport.close()
        self._start_reading()

    def _refuse(self, problem: Problem) -> None:
        answering = self._answering
        if answering is not None and answering.response_started and not answering.response_complete:
            self._end()  # one answer cannot stand within another
            return
        body = problem.body()
        lines = (
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[problem.status] + lines.encode() + body)
        self._end()


def _too_large() -> Problem:
    return Problem(
        "head-too-large", f"the address and the headers must have at most {MOST_HEAD} bytes"
    )
