"""Clients that do not read what they asked for are dropped, and hold nothing meanwhile; trailers
are no headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from uvicorn.server import ServerState

from sottovoce.service import connections
from sottovoce.service.bodies import WholeBodies, answer
from sottovoce.service.connections import LEAST_READ, MOST_HEAD, READ_SECONDS, Connection
from sottovoce.service.memory import Memory
from sottovoce.service.server import make_config
from sottovoce.service.settings import Settings

KIB = 1 << 10


class Line:
    """A transport whose other end reads when it is told to."""

    def __init__(self) -> None:
        self.unread = 0
        self.is_closed = self.is_aborted = False
        self.written = b""

    def get_extra_info(self, _: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True

    def write(self, data: bytes) -> None:
        self.written += data


class Timer:
    def __init__(self, seconds: float, work: Callable[..., None]) -> None:
        self.seconds, self.work, self.is_cancelled = seconds, work, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """An event loop whose timers ring when a test says so."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, work: Callable[..., None], *given: Any) -> Timer:
        self.timers.append(Timer(seconds, lambda: work(*given)))
        return self.timers[-1]

    def ring(self) -> None:
        """Let the timer of who does not read ring, if there is one."""
        mine = [
            each for each in self.timers if not each.is_cancelled and each.seconds == READ_SECONDS
        ]
        for each in mine:
            each.cancel()
            each.work()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class Talk:
    """A connection between a fake transport, fake timers, and an application."""

    def __init__(self, app: Any) -> None:
        config = make_config(app, "127.0.0.1", 0)
        config.load()
        self.state, self.clock, line = ServerState(), Clock(), Line()
        self.line: Any = line
        clock: Any = self.clock
        self.connection = Connection(
            config=config, server_state=self.state, app_state={}, _loop=clock
        )
        self.connection.connection_made(self.line)

    def is_dropped(self) -> bool:
        """Whether the client is, once its time is over."""
        self.clock.ring()
        return bool(self.line.is_aborted)

    async def settle(self) -> None:
        for _ in range(1000):  # turns of the loop, each of which does all that can be done
            await asyncio.sleep(0)
        assert not self.state.tasks


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    await answer(send, 200, {}, b"")


def talk(check: Callable[[Talk], Awaitable[None]], app: Any = nothing) -> None:
    async def run() -> None:
        await check(Talk(app))

    asyncio.run(run())


# -- clients that do not read


def test_who_does_not_read_is_dropped() -> None:
    async def check(with_: Talk) -> None:
        with_.line.unread = 100 * KIB
        with_.connection.pause_writing()
        assert with_.is_dropped()

    talk(check)


def test_who_reads_on_is_not_dropped() -> None:
    async def check(with_: Talk) -> None:
        with_.line.unread = 100 * KIB
        with_.connection.pause_writing()
        with_.line.unread = 10 * KIB
        with_.connection.resume_writing()
        assert not with_.is_dropped()
        with_.line.unread = 1000 * KIB  # a slow client, not a stalled one
        with_.connection.pause_writing()
        with_.line.unread -= LEAST_READ
        assert not with_.is_dropped()
        with_.line.unread -= LEAST_READ - 1
        assert with_.is_dropped()

    talk(check)


def test_the_end_of_an_answer_must_be_read_too() -> None:
    """A connection that is closed waits for its last bytes; it must not wait for ever."""

    async def check(with_: Talk) -> None:
        with_.line.unread = 3 * KIB
        with_.connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await with_.settle()
        assert with_.line.is_closed
        assert with_.is_dropped()

    talk(check)


def test_a_connection_that_rests_is_closed_and_then_dropped() -> None:
    async def check(with_: Talk) -> None:
        with_.line.unread = 3 * KIB
        with_.connection.timeout_keep_alive_handler()
        assert with_.is_dropped()

    talk(check)


def test_nothing_rings_for_who_is_gone() -> None:
    async def check(with_: Talk) -> None:
        with_.line.unread = 100 * KIB
        with_.connection.pause_writing()
        with_.connection.connection_lost(None)
        assert not with_.is_dropped()

    talk(check)


def test_a_body_is_let_go_of_before_the_answer_is_read() -> None:
    memory = Memory(1 << 20)
    seen: list[tuple[str, int]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        seen.append(("asked", memory.used))
        assert body == b"12345"
        await answer(send, 200, {}, b"")

    async def ask(most: int) -> None:
        async def send(message: Any) -> None:
            seen.append((message["type"], memory.used))

        async def receive() -> Any:
            return {"type": "http.request", "body": b"12345", "more_body": False}

        bounded = WholeBodies(app, Settings(most_bytes=most), memory)
        await bounded(
            {"type": "http", "headers": [(b"transfer-encoding", b"chunked")]}, receive, send
        )

    asyncio.run(ask(1 << 20))
    assert seen == [("asked", 5), ("http.response.start", 0), ("http.response.body", 0)]
    seen.clear()
    asyncio.run(ask(4))  # refused
    assert seen == [("http.response.start", 0), ("http.response.body", 0)]


# -- trailers

HEAD = (
    b"POST / HTTP/1.1\r\nHost: x\r\n"
    b"X-Forwarded-For: 198.51.100.7\r\nTransfer-Encoding: chunked\r\n\r\n"
)
CHUNKED = HEAD + b"2\r\n{}\r\n0\r\n"


class Reads:
    """An application that reads a whole body, and looks at the headers then."""

    def __init__(self) -> None:
        self.headers: list[list[tuple[bytes, bytes]]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(body)
        self.headers.append(list(scope["headers"]))
        await answer(send, 200, {}, b"")


def test_trailers_are_no_headers() -> None:
    """A proxy passes them on unseen, so they would let a client say who it is."""
    app = Reads()

    async def check(with_: Talk) -> None:
        with_.connection.data_received(CHUNKED + b"X-Forwarded-For: 203.0.113.9\r\n\r\n")
        await with_.settle()
        with_.connection.data_received(CHUNKED + b"\r\n")  # the next request's are
        await with_.settle()

    talk(check, app)
    assert app.bodies == [b"{}", b"{}"]
    sent = [
        (b"host", b"x"),
        (b"x-forwarded-for", b"198.51.100.7"),
        (b"transfer-encoding", b"chunked"),
    ]
    assert app.headers == [sent, sent]


@pytest.mark.parametrize("piece", [b"X: y\r\n" * 1000, b"v" * 8192])
def test_trailers_have_a_size(piece: bytes) -> None:
    app = Reads()

    async def check(with_: Talk) -> None:
        with_.connection.data_received(CHUNKED)
        with_.connection.data_received(b"X: ")
        for _ in range(MOST_HEAD // len(piece) + 2):
            with_.connection.data_received(piece)
        assert with_.line.is_closed
        assert with_.line.written.startswith(b"HTTP/1.1 431 ")
        with_.connection.connection_lost(None)
        await with_.settle()

    talk(check, app)
    assert app.bodies == []


def test_a_body_in_many_small_pieces_is_no_trailer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_HEAD", 200)
    app = Reads()

    async def check(with_: Talk) -> None:
        with_.connection.data_received(HEAD)
        for _ in range(200):
            with_.connection.data_received(b"1\r\n")
            with_.connection.data_received(b"x\r\n")
        with_.connection.data_received(b"0\r\n\r\n")
        await with_.settle()

    talk(check, app)
    assert app.bodies == [b"x" * 200]
