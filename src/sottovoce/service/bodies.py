"""Bodies of requests: within a size and a time, or a problem."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sottovoce.service.memory import HeldMemory, Memory
from sottovoce.service.problems import MEDIA_TYPE, Problem
from sottovoce.service.settings import MOST_ANALYST_BYTES, Settings


class HungUp(Exception):
    """The sender went before all of its body came; nobody is there to be answered."""


async def read_body(
    headers: dict[bytes, bytes], receive: Receive, most: int, held: HeldMemory
) -> bytes:
    """The whole body, if it has at most so many bytes, and all connections' are not too many."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    total = 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise HungUp
        parts.append(message.get("body", b""))
        total += len(parts[-1])
        if total > most:
            raise _too_large(most)
        if not held.take(len(parts[-1])):
            raise Problem(
                "busy", "more is being sent than fits; send it again", {"Retry-After": "1"}
            )
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem("body-too-large", f"the body must have at most {most} bytes")


async def within(settings: Settings, reading: Coroutine[Any, Any, bytes]) -> bytes:
    """A body, if it comes in time; a bare timer, since every report passes here."""
    task = asyncio.current_task()
    assert task is not None
    late: list[bool] = []

    def interrupt() -> None:
        late.append(True)
        task.cancel()

    timer = asyncio.get_running_loop().call_later(settings.body_seconds, interrupt)
    try:
        return await reading
    except asyncio.CancelledError:
        if not late:
            raise
        task.uncancel()
        limit = f"the body must arrive within {settings.body_seconds:g} seconds"
        raise Problem("body-too-slow", limit) from None
    finally:
        timer.cancel()


async def refuse(problem: Problem, send: Send) -> None:
    """Answer with a problem."""
    headers = {"content-type": MEDIA_TYPE, **problem.headers}
    if problem.name == "body-too-slow":
        headers["connection"] = "close"  # the rest of the body is not waited for
    await answer(send, problem.status, headers, problem.body())


async def answer(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    """A whole answer."""
    listed = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    listed.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


class WholeBodies:
    """Middleware: an application gets a body when all of it has come, and never sees one that is
    too large or slow.
    """

    def __init__(self, app: ASGIApp, settings: Settings, memory: Memory) -> None:
        self._app, self._settings, self._memory = app, settings, memory
        self._most = min(settings.most_bytes, MOST_ANALYST_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if b"content-length" not in headers and b"transfer-encoding" not in headers:
            await self._app(scope, receive, send)  # it has none
            return
        with HeldMemory(self._memory) as held:
            try:
                reading = read_body(headers, receive, self._most, held)
                data = await within(self._settings, reading)
            except HungUp:
                return
            except Problem as wrong:
                held.release()
                await refuse(wrong, send)
                return
            messages: list[Message] = [{"type": "http.request", "body": data, "more_body": False}]
            del data

            async def replay() -> Message:
                return messages.pop() if messages else await receive()

            async def release_and_send(message: Message) -> None:
                messages.clear()
                # the application is done with it; sending takes as long as its client wants
                held.release()
                await send(message)

            await self._app(scope, replay, release_and_send)
