"""An oblivious shuffle whose parties share a process, so that all that is sent can be looked at."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from gmpy2 import mpz

from sottovoce.ground.entropy import Seeded
from sottovoce.shuffle.peos.dgk import DgkPrivateKey, DgkPublicKey
from sottovoce.shuffle.peos.oblivious import ObliviousShuffler, holder_of, shuffle_rounds
from sottovoce.shuffle.peos.shares import Words, read_words, split


@dataclass
class Message:
    sender: int
    to: int
    kind: bytes
    data: bytes = field(repr=False)


class Room:
    """Queues between all parties, and a log of what went through them."""

    def __init__(self) -> None:
        self.log: list[Message] = []
        self._queues: dict[tuple[int, int], asyncio.Queue[Message]] = defaultdict(asyncio.Queue)

    def links(self, number: int) -> RoomLinks:
        return RoomLinks(self, number)


@dataclass
class RoomLinks:
    room: Room
    number: int

    async def send(self, to: int, kind: bytes, data: bytes) -> None:
        message = Message(self.number, to, kind, data)
        self.room.log.append(message)
        self.room._queues[self.number, to].put_nowait(message)

    async def receive(self, sender: int, kind: bytes, size: int) -> bytes:
        message = await self.room._queues[sender, self.number].get()
        assert (message.kind, len(message.data)) == (kind, size)
        return message.data


@dataclass
class Shuffled:
    """What came out, and what an observer of everything saw."""

    key: DgkPrivateKey
    log: list[Message]
    first: list[mpz]  # the ciphertexts that users sent, in their order
    last: list[mpz]  # those that the server got
    words: Words

    @property
    def handed(self) -> list[list[mpz]]:
        """The ciphertexts of every hand-over between shufflers."""
        public = self.key.public
        return [public.unpack(each.data) for each in self.log if each.kind == b"C"]


def shuffled(
    key: DgkPrivateKey,
    words: Words,
    parties: int,
    seed: int,
    *,
    fakes: int = 0,
    public: DgkPublicKey | None = None,
    kinds: dict[int, type[ObliviousShuffler]] | None = None,
) -> Shuffled:
    """Shuffle words. ``public``: a key with other operations; ``kinds``: parties that misbehave."""
    public = public or key.public
    shares = split(words, parties, Seeded(seed))
    first = key.public.encrypt_many(shares[-1], Seeded(seed + 1))
    shufflers = []
    for number in range(parties):
        kind = (kinds or {}).get(number, ObliviousShuffler)
        entropy = Seeded(seed + 2 + number)
        if number == parties - 1:
            shuffler = kind(number, parties, public, entropy, np.zeros_like(words), list(first))
        else:
            shuffler = kind(number, parties, public, entropy, shares[number])
        shuffler.add_fakes(fakes)
        shufflers.append(shuffler)
    room = Room()

    async def run() -> None:
        await asyncio.gather(*(each.take_part(room.links(each.number)) for each in shufflers))

    asyncio.run(run())
    results = [each.result() for each in shufflers]
    holder = holder_of(shuffle_rounds(parties)[-1])
    last = public.unpack(results[holder][1])
    total, valid = key.decrypt(last)
    assert valid.all()
    for number, (kept, packed) in enumerate(results):
        assert bool(packed) == (number == holder)
        if number != holder:
            total += read_words(kept, public.plaintext_bits)
    return Shuffled(key, room.log, first, last, total)
