"""POST /v1/reports, the path that thousands take each second: a plain ASGI endpoint with as little as can be on it."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send

from sottovoce.service.envelopes import read_envelope
from sottovoce.service.logs import log_problem
from sottovoce.service.metrics import Metrics
from sottovoce.service.problems import MEDIA_TYPE, Problem, problem_of
from sottovoce.service.settings import Settings
from sottovoce.service.shelf import Shelf
from sottovoce.service.writer import Receipt, Writer

_JSON = (b"content-type", b"application/json")


class Ingest:
    """Reads a body within its limits, has it written, says so."""

    def __init__(self, shelf: Shelf, writer: Writer, metrics: Metrics, settings: Settings) -> None:
        self._shelf, self._writer, self._metrics, self._settings = shelf, writer, metrics, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] != "POST":
                raise Problem("method-not-allowed", "reports are sent by POST", {"Allow": "POST"})
            receipt = await self._taken(dict(scope["headers"]), receive)
        except Exception as wrong:
            await self._refuse(wrong, send)
        else:
            self._metrics.answered("ok")
            self._metrics.taken(receipt.stored, receipt.duplicates)
            body = b'{"stored":%d,"duplicates":%d}' % (receipt.stored, receipt.duplicates)
            await _answer(send, 200, [_JSON], body)

    async def _taken(self, headers: dict[bytes, bytes], receive: Receive) -> Receipt:
        """Two limits of time with one clock: to send a body, and to have it written."""
        loop = asyncio.get_running_loop()
        late = Problem("body-too-slow", f"the body must arrive within {self._settings.body_seconds:g} seconds")
        try:
            async with asyncio.timeout(self._settings.body_seconds) as clock:
                data = await self._body(headers, receive)
                clock.reschedule(loop.time() + self._settings.answer_seconds)
                late = Problem(
                    "busy", "the reports could not be written in time; send them again", {"Retry-After": "1"}
                )
                kind = headers.get(b"content-type", b"").decode("latin-1")
                return await self._writer.write(read_envelope(kind, data, self._shelf, self._settings.most_reports))
        except TimeoutError:
            raise late from None

    async def _refuse(self, wrong: BaseException, send: Send) -> None:
        problem = problem_of(wrong)
        self._metrics.answered(problem.name)
        log_problem("/v1/reports", problem, wrong)
        headers = [(b"content-type", MEDIA_TYPE.encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        if problem.name in ("body-too-large", "body-too-slow"):
            headers.append((b"connection", b"close"))  # the rest of the body is not waited for
        await _answer(send, problem.status, headers, problem.body())

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self._settings.most_bytes
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise Problem("body-too-large", f"the body must have at most {most} bytes")
        parts: list[bytes] = []
        total = 0
        while True:
            message: Any = await receive()
            if message["type"] == "http.disconnect":
                raise Problem("malformed-body", "the sender hung up")
            parts.append(message.get("body", b""))
            total += len(parts[-1])
            if total > most:
                raise Problem("body-too-large", f"the body must have at most {most} bytes")
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
