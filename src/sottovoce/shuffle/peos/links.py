"""Encrypted, authenticated links between two parties over TCP.

Two parties share a key of 32 bytes. Each connection begins with a random number of either side;
keys of the two directions follow from all three, so nothing of an older connection fits. Every
record is sealed (ChaCha20-Poly1305) under a counter, so none can be changed, dropped, repeated or
moved without being seen.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sottovoce.ground.errors import CorruptReport, SottovoceError

LINK_KEY_BYTES = 32
RECORD_BYTES = 1 << 20
MOST_MESSAGE_BYTES = 1 << 36
_MAGIC = b"SVLINK\x01"
_HELLO = b"A"
_NONCE_BYTES = 32
_LENGTH_BYTES = 8
_TAG_BYTES = 16


class LinkLost(SottovoceError):
    """The party at the other end closed the link, or ended."""


class Link:
    """One end of a connection. A task reads all the time, so that two may send at once."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, out: bytes, in_: bytes
    ) -> None:
        self._reader, self._writer = reader, writer
        self._seal, self._open = ChaCha20Poly1305(out), ChaCha20Poly1305(in_)
        self._sent_records = self._read_records = 0
        self.sent_bytes = 0
        self._messages: asyncio.Queue[tuple[bytes, bytes] | Exception] = asyncio.Queue()
        self._task = asyncio.create_task(self._read_all())

    @classmethod
    async def connect(cls, host: str, port: int, number: int, other: int, key: bytes) -> Self:
        """The end that calls: ``number`` is its own, ``other`` the one it expects to answer."""
        reader, writer = await asyncio.open_connection(host, port, limit=2 * RECORD_BYTES)
        own = os.urandom(_NONCE_BYTES)
        writer.write(_MAGIC + bytes([number]) + own)
        await writer.drain()
        theirs = await reader.readexactly(_NONCE_BYTES)
        to, back = _keys(key, own + theirs, number, other)
        link = cls(reader, writer, to, back)
        await link.send(_HELLO, b"")  # which only who has the key can seal
        return link

    @classmethod
    async def accept(
        cls,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        number: int,
        keys: Mapping[int, bytes],
    ) -> tuple[int, Self]:
        """The end that is called: (who calls, the link). Who is none of ``keys``, or lacks the key,
        is refused.
        """
        head = await reader.readexactly(len(_MAGIC) + 1 + _NONCE_BYTES)
        caller, theirs = head[len(_MAGIC)], head[len(_MAGIC) + 1 :]
        if head[: len(_MAGIC)] != _MAGIC or caller not in keys:
            writer.close()
            raise CorruptReport("link: the caller is no party of this shuffle")
        own = os.urandom(_NONCE_BYTES)
        writer.write(own)
        await writer.drain()
        back, to = _keys(keys[caller], theirs + own, caller, number)
        link = cls(reader, writer, to, back)
        try:
            await link.receive(_HELLO, 0)
        except SottovoceError:
            await link.close()
            raise
        return caller, link

    async def send(self, kind: bytes, data: bytes) -> None:
        """Send a message: its kind and size, then its bytes, in sealed records."""
        await self._send_record(kind + len(data).to_bytes(_LENGTH_BYTES, "big"))
        for start in range(0, len(data), RECORD_BYTES):
            await self._send_record(data[start : start + RECORD_BYTES])

    async def _send_record(self, data: bytes) -> None:
        nonce = self._sent_records.to_bytes(12, "big")
        sealed = self._seal.encrypt(nonce, data, None)
        self._writer.write(len(sealed).to_bytes(4, "big") + sealed)
        self._sent_records += 1
        self.sent_bytes += 4 + len(sealed)
        await self._writer.drain()

    async def receive(self, kind: bytes, size: int | None) -> bytes:
        """The next message; refused unless it is of this kind and size (None: any size)."""
        found = await self._messages.get()
        if isinstance(found, Exception):
            raise found
        if found[0] != kind or (size is not None and len(found[1]) != size):
            raise CorruptReport("link: a message is not the one that the protocol has here")
        return found[1]

    async def _read_all(self) -> None:
        try:
            while True:
                head = await self._read_record()
                size = int.from_bytes(head[1:], "big")
                if len(head) != 1 + _LENGTH_BYTES or size > MOST_MESSAGE_BYTES:
                    raise CorruptReport("link: a message has no size that it can have")
                data = bytearray()
                while len(data) < size:
                    data += await self._read_record()
                self._messages.put_nowait((head[:1], bytes(data)))
        except (OSError, EOFError):
            self._messages.put_nowait(LinkLost("link: the other party is gone"))
        except CorruptReport as wrong:
            self._messages.put_nowait(wrong)

    async def _read_record(self) -> bytes:
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        if not _TAG_BYTES < length <= RECORD_BYTES + _TAG_BYTES:
            raise CorruptReport("link: a record is empty or too long")
        sealed = await self._reader.readexactly(length)
        nonce = self._read_records.to_bytes(12, "big")
        self._read_records += 1
        try:
            return self._open.decrypt(nonce, sealed, None)
        except InvalidTag:
            raise CorruptReport("link: a record was not sealed with this link's key") from None

    async def close(self) -> None:
        """Let all that was sent leave, then close."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)


def _keys(key: bytes, salt: bytes, caller: int, called: int) -> tuple[bytes, bytes]:
    """The keys of the two directions: from the caller, and to the caller."""
    info = _MAGIC + bytes([caller, called])
    both = HKDF(SHA256(), 2 * LINK_KEY_BYTES, salt, info).derive(key)
    return both[:LINK_KEY_BYTES], both[LINK_KEY_BYTES:]
