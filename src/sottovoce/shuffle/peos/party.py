"""One party of a shuffle as a process of its own (:func:`main`).

It reads what it must know as a line of JSON from its input, says where it listens, reads where the
others do, takes part, and writes what it has to say as a last line. Secrets come by the input, so
that no list of processes shows them. A private key never leaves the server's process.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

from sottovoce.ground.entropy import System
from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.shuffle.peos.dgk import DgkPrivateKey, DgkPublicKey
from sottovoce.shuffle.peos.links import Link, LinkLost
from sottovoce.shuffle.peos.oblivious import ObliviousShuffler, holder_of, shuffle_rounds
from sottovoce.shuffle.peos.shares import read_words

HOST = "127.0.0.1"


def server_of(parties: int) -> int:
    """The server's number: shufflers have 0 to r - 1."""
    return parties


def users_of(parties: int) -> int:
    """The number under which shares of users come in."""
    return parties + 1


@dataclass(frozen=True)
class PartySettings:
    """What a party must know before anything begins."""

    number: int
    parties: int
    word_bits: int
    modulus_bits: int
    fakes: int
    least: int
    keys: Mapping[int, bytes]  # by the other party's number

    def to_json(self) -> str:
        return json.dumps(
            vars(self) | {"keys": {str(other): key.hex() for other, key in self.keys.items()}}
        )

    @classmethod
    def from_json(cls, text: str) -> PartySettings:
        data = json.loads(text)
        keys = {int(other): bytes.fromhex(key) for other, key in data.pop("keys").items()}
        return cls(keys=keys, **data)


class PartyLinks:
    """A party's links to all others, by number."""

    def __init__(self, settings: PartySettings) -> None:
        self._settings = settings
        loop = asyncio.get_running_loop()
        self._links: dict[int, asyncio.Future[Link]] = {
            other: loop.create_future() for other in settings.keys
        }

    async def listen(self) -> int:
        """The port at which callers are waited for."""
        self._server = await asyncio.start_server(self._accept, HOST, 0, limit=1 << 21)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        settings = self._settings
        try:
            caller, link = await Link.accept(reader, writer, settings.number, settings.keys)
        except (SottovoceError, OSError, EOFError):
            return  # a stranger, who learns nothing but that
        if self._links[caller].done():
            await link.close()
        else:
            self._links[caller].set_result(link)

    async def call(self, other: int, port: int) -> None:
        """Call another party."""
        settings = self._settings
        link = await Link.connect(HOST, port, settings.number, other, settings.keys[other])
        self._links[other].set_result(link)

    async def send(self, to: int, kind: bytes, data: bytes) -> None:
        await (await self._links[to]).send(kind, data)

    async def receive(self, sender: int, kind: bytes, size: int | None) -> bytes:
        return await (await self._links[sender]).receive(kind, size)

    @property
    def sent_bytes(self) -> int:
        return sum(link.result().sent_bytes for link in self._links.values() if link.done())

    async def close(self) -> None:
        self._server.close()
        for link in self._links.values():
            if link.done():
                await link.result().close()


class _Clock:
    """CPU seconds of this process by what they were for."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = process_time()

    def note(self, what: str) -> None:
        """All since the last note was for this."""
        now = process_time()
        self.seconds[what] = now - self._last
        self._last = now


async def _shuffler(settings: PartySettings, links: PartyLinks, key: DgkPublicKey) -> _Clock:
    """Take in shares, add fakes, shuffle, hand the result to the server."""
    clock = _Clock()
    users, server = users_of(settings.parties), server_of(settings.parties)
    if settings.number == settings.parties - 1:
        ciphers = key.unpack(await links.receive(users, b"C", None))
        words = read_words(bytes(len(ciphers) * settings.word_bits // 8), settings.word_bits)
    else:
        ciphers = None
        words = read_words(await links.receive(users, b"H", None), settings.word_bits)
    if len(words) < settings.least:
        raise InvalidInput(
            f"batch ({len(words)} reports) must have at least {settings.least}: it is not shuffled"
        )
    shuffler = ObliviousShuffler(settings.number, settings.parties, key, System(), words, ciphers)
    clock.note("intake")
    shuffler.add_fakes(settings.fakes)
    clock.note("fakes")
    await shuffler.take_part(links)
    kept, packed = shuffler.result()
    clock.note("shuffle")
    await links.send(server, b"C" if packed else b"H", packed or kept)
    clock.note("sending")
    return clock


async def _server(
    settings: PartySettings, links: PartyLinks, key: DgkPrivateKey
) -> tuple[_Clock, dict[str, Any]]:
    """Take in the shares of rows that nobody can follow, and add them up."""
    clock = _Clock()
    holder = holder_of(shuffle_rounds(settings.parties)[-1])
    ciphers = key.public.unpack(await links.receive(holder, b"C", None))
    size = len(ciphers) * settings.word_bits // 8
    others = [number for number in range(settings.parties) if number != holder]
    received = [await links.receive(other, b"H", size) for other in others]
    clock.note("intake")
    words, valid = key.decrypt(ciphers)
    for data in received:
        words += read_words(data, settings.word_bits)
    clock.note("decryption")
    told = base64.b64encode(words[valid].tobytes()).decode()
    size = sum(map(len, received)) + len(ciphers) * key.public.cipher_bytes
    return clock, {"words": told, "malformed": int(np.count_nonzero(~valid)), "received": size}


async def take_part(settings: PartySettings) -> dict[str, Any]:
    """All that a party does; what it says in the end."""
    own = settings.number
    server, users = server_of(settings.parties), users_of(settings.parties)
    private = None
    if own == server:
        private = DgkPrivateKey.generate(System(), settings.word_bits, settings.modulus_bits)
    links = PartyLinks(settings)
    where = {"port": await links.listen()}
    _say(where | ({"public": private.public.to_bytes().hex()} if private else {}))
    others = json.loads(await asyncio.to_thread(sys.stdin.readline))
    for other, port in sorted((int(other), port) for other, port in others["ports"].items()):
        if own < other < users:
            await links.call(other, port)
    told: dict[str, Any] = {}
    if private:
        clock, told = await _server(settings, links, private)
    else:
        key = DgkPublicKey.from_bytes(bytes.fromhex(others["public"]))
        if (key.plaintext_bits, key.modulus_bits) != (settings.word_bits, settings.modulus_bits):
            raise InvalidInput("key: it is not of the size that this shuffle was set up with")
        clock = await _shuffler(settings, links, key)
    told |= {"cpu": clock.seconds, "sent": links.sent_bytes}
    await links.close()
    return told


def _say(told: Mapping[str, Any]) -> None:
    print(json.dumps(told), flush=True)


def main() -> int:
    """Run one party; its exit code."""
    try:
        _say(asyncio.run(take_part(PartySettings.from_json(sys.stdin.readline()))))
    except (SottovoceError, OSError, EOFError) as wrong:
        _say({"error": str(wrong), "lost": isinstance(wrong, LinkLost | OSError | EOFError)})
        return 1
    return 0
