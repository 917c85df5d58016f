"""Links: nobody without the key gets through, and nothing is changed on its way unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sottovoce.ground.errors import CorruptReport, SottovoceError
from sottovoce.shuffle.peos.links import RECORD_BYTES, Link, LinkLost

KEY, OTHER_KEY = bytes(32), bytes([1]) * 32
HOST = "127.0.0.1"
Changed = Callable[[bytes], bytes]


async def pair(
    use: Callable[[Link, Link], Awaitable[None]], key: bytes = KEY, number: int = 0
) -> None:
    """Use both ends of a link; ``key`` and ``number``: what the caller has."""
    loop = asyncio.get_running_loop()
    accepted: asyncio.Future[tuple[int, Link]] = loop.create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            accepted.set_result(await Link.accept(reader, writer, 1, {0: KEY}))
        except SottovoceError as wrong:
            accepted.set_exception(wrong)

    async with await asyncio.start_server(accept, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        calling = asyncio.create_task(Link.connect(HOST, port, number, 1, key))
        try:
            caller, called = await accepted
        finally:
            (end,) = await asyncio.gather(calling, return_exceptions=True)
            if isinstance(end, Link):
                server.close()
        assert caller == number
        assert isinstance(end, Link)
        await use(end, called)
        await end.close()
        await called.close()


def test_messages_arrive_whole_and_in_order() -> None:
    large = bytes(range(256)) * (RECORD_BYTES // 100)

    async def use(one: Link, other: Link) -> None:
        # both send more than any buffer holds before either reads
        await asyncio.gather(one.send(b"a", large), other.send(b"b", large))
        await one.send(b"c", b"")
        assert await other.receive(b"a", len(large)) == large
        assert await one.receive(b"b", None) == large
        assert await other.receive(b"c", 0) == b""
        assert one.sent_bytes > len(large)

    asyncio.run(pair(use))


@pytest.mark.parametrize(("key", "number"), [(OTHER_KEY, 0), (KEY, 3)])
def test_strangers_are_refused(key: bytes, number: int) -> None:
    async def use(one: Link, other: Link) -> None:
        raise AssertionError("they are linked")

    with pytest.raises(CorruptReport, match=r"link's key|no party"):
        asyncio.run(pair(use, key, number))


@pytest.mark.parametrize(("kind", "size"), [(b"b", 3), (b"a", 4)])
def test_another_message_than_the_protocol_has_is_refused(kind: bytes, size: int) -> None:
    async def use(one: Link, other: Link) -> None:
        await one.send(b"a", b"123")
        await other.receive(kind, size)

    with pytest.raises(CorruptReport, match="not the one"):
        asyncio.run(pair(use))


def cut(data: bytes) -> bytes:
    return data[:4] + bytes([data[4] ^ 1]) + data[5:]


CHANGES: dict[str, Changed] = {
    "changed": cut,
    "repeated": lambda data: data + data,
    "swapped": lambda data: data[len(data) // 2 :] + data[: len(data) // 2],
    "left out": lambda data: b"",
    "too long": lambda data: b"\xff" + data[1:],
}


@pytest.mark.parametrize("name", CHANGES)
def test_records_that_were_changed_are_refused(name: str) -> None:
    async def use(one: Link, other: Link) -> None:
        writer, whole = one._writer, bytearray()
        written = writer.write
        writer.write = whole.extend  # type: ignore[method-assign, assignment]
        await one.send(b"a", b"12345678")  # two records
        writer.write = written  # type: ignore[method-assign]
        head = 4 + int.from_bytes(whole[:4], "big")
        written(CHANGES[name](bytes(whole[:head])) + whole[head:])
        await other.receive(b"a", 8)

    with pytest.raises(CorruptReport, match=r"not sealed|too long|no size"):
        asyncio.run(pair(use))


def test_a_link_that_closes_is_lost() -> None:
    async def use(one: Link, other: Link) -> None:
        await one.close()
        await other.receive(b"a", 1)

    with pytest.raises(LinkLost, match="is gone"):
        asyncio.run(pair(use))


def test_every_connection_has_keys_of_its_own() -> None:
    seen = []

    async def use(one: Link, other: Link) -> None:
        written: list[bytes] = []
        one._writer.write = written.append  # type: ignore[method-assign, assignment]
        await one.send(b"a", b"1234")
        seen.append(b"".join(written))

    for _ in range(2):
        asyncio.run(pair(use))
    assert seen[0] != seen[1]
