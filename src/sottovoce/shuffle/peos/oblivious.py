"""The encrypted oblivious shuffle: hiders permute what seekers cannot follow, round by round.

Of r parties t = floor(r/2) + 1 hide in each round and r - t seek, and every choice of hiders has
its round. So of any floor(r/2) parties that conspire there is a round in which all of them seek.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.shuffle.peos.dgk import DgkPublicKey
from sottovoce.shuffle.peos.shares import Words, read_words, split, uniform_words, word_type

MOST_PARTIES = 9  # 126 rounds
SEED_BYTES = 32

Hiders = tuple[int, ...]


def check_parties(parties: int) -> None:
    """Refuse numbers of parties of which no half is the smaller one."""
    if parties not in range(3, MOST_PARTIES + 1, 2):
        raise InvalidInput(f"parties ({parties}) must be odd and lie between 3 and {MOST_PARTIES}")


def shuffle_rounds(parties: int) -> list[Hiders]:
    """The hiders of each round: every set of floor(r/2) + 1 parties once.

    The hider with the largest number holds the ciphertexts (:func:`holder_of`). Rounds come in
    falling order of it, so ciphertexts change hands as rarely as they can: floor(r/2) times, and
    once more to the server.

    >>> shuffle_rounds(3)
    [(0, 2), (1, 2), (0, 1)]
    """
    check_parties(parties)
    return sorted(combinations(range(parties), parties // 2 + 1), key=lambda hiders: -hiders[-1])


def holder_of(hiders: Hiders) -> int:
    """Who holds the ciphertexts while these hide."""
    return hiders[-1]


def permutation(seed: bytes, count: int) -> NDArray[np.intp]:
    """The order that a seed stands for: rows sorted by keys of 128 bits, drawn again on a tie.

    >>> sorted(permutation(b"seed", 5).tolist())
    [0, 1, 2, 3, 4]
    """
    for attempt in range(256):
        stream = hashlib.shake_256(seed + bytes([attempt])).digest(16 * count)
        keys = np.frombuffer(stream, "<u8").reshape(2, count)
        order = np.lexsort(keys)
        low, high = keys[0][order], keys[1][order]
        if not ((low[1:] == low[:-1]) & (high[1:] == high[:-1])).any():
            return order
    raise AssertionError("128-bit keys do not keep colliding")


class Links(Protocol):
    """What carries messages between a party and the others; nobody else reads or changes them."""

    async def send(self, to: int, kind: bytes, data: bytes) -> None:
        """Send one message."""

    async def receive(self, sender: int, kind: bytes, size: int) -> bytes:
        """The next message of a sender, of this kind and so many bytes."""


@dataclass
class ObliviousShuffler:
    """One of r parties: its shares of the rows, and the ciphertexts while it holds them.

    The holder's share of a row is what its ciphertext holds *plus* its word, so that it adds to
    words while it keeps the ciphertexts. Whenever ciphertexts leave, the word goes into them, the
    difference is hidden by uniform words, and every mask is replaced (:meth:`_leaving`).

    Guarantee: the server and any floor(r/2) parties together learn the reports, not whose they are;
               parties without the server learn nothing.
    Assumes:   parties follow the protocol; DGK's assumption and a key that was made as stated;
               SHA-3 behaves as a random function; links are private.
    Source:    wang2021thesis, section 9.5.1, algorithm 5, corrected (fresh zeros at every
               hand-over), see docs/errata; laur2011oblivious.
    Checked:   tests/shuffle/test_oblivious.py
    """

    number: int
    parties: int
    key: DgkPublicKey
    entropy: Entropy
    words: Words  # (rows,)
    ciphers: list[mpz] | None = None  # of the holder

    def __post_init__(self) -> None:
        check_parties(self.parties)
        self._bits = self.key.plaintext_bits
        if self.words.dtype != word_type(self._bits):
            raise InvalidInput(f"words ({self.words.dtype}) must have {self._bits} bits")
        if (self.ciphers is not None) != (self.number == self.parties - 1):
            raise InvalidInput("ciphers must be with the last party, and with it alone")
        if self.ciphers is not None and len(self.ciphers) != len(self.words):
            raise InvalidInput("ciphers and words must be as many")

    @property
    def rows(self) -> int:
        return len(self.words)

    def add_fakes(self, count: int) -> None:
        """Append this party's shares of fake reports: uniform words, of the holder encrypted.

        A fake is the sum of all parties' shares, so it is uniform if one of them draws honestly.

        Guarantee: fakes are uniform whatever all parties but one choose as their shares.
        Assumes:   one party draws uniformly and keeps its shares to itself.
        Source:    wang2021thesis, section 9.5.1, algorithm 5.
        Checked:   tests/shuffle/test_shares.py
        """
        drawn = self._fake_shares(count)
        if self.ciphers is None:
            self.words = np.concatenate([self.words, drawn])
        else:
            self.words = np.concatenate([self.words, np.zeros_like(drawn)])
            self.ciphers = [*self.ciphers, *self.key.encrypt_many(drawn, self.entropy)]

    def _fake_shares(self, count: int) -> Words:
        return uniform_words(count, self._bits, self.entropy)

    def _leaving(self, hiding: Words) -> bytes:
        """The ciphertexts for somebody else: this party's whole share, less what hides it.

        The mask of a DGK ciphertext survives additions: who has the private key, or a party that
        had the ciphertexts before, would know each one again. So each gets a fresh zero.
        """
        assert self.ciphers is not None
        moved = self.key.add_words(self.ciphers, self.words - hiding)
        packed = self.key.pack(self.key.fresh(moved, self.entropy))
        self.ciphers = None
        return packed

    # -- one round

    def hide_parts(self, hiders: Hiders) -> tuple[dict[int, Words], bytes]:
        """What a seeker hands to the hiders: words to each; or, of the holder, words to all but the
        next holder, and the ciphertexts for that one. It keeps nothing.
        """
        if self.ciphers is None:
            parts = split(self.words, len(hiders), self.entropy)
            self.words = np.zeros_like(self.words)
            return dict(zip(hiders, parts, strict=True)), b""
        hiding = {to: uniform_words(self.rows, self._bits, self.entropy) for to in hiders[:-1]}
        packed = self._leaving(sum(hiding.values(), np.zeros_like(self.words)))
        self.words = np.zeros_like(self.words)
        return hiding, packed

    def take_words(self, part: Words) -> None:
        """A part of somebody else's words: from now on in this party's share."""
        self.words = self.words + part

    def take_ciphers(self, packed: bytes) -> None:
        """Become the holder."""
        self.ciphers = self.key.unpack(packed)
        if len(self.ciphers) != self.rows:
            raise CorruptReport("ciphertexts and words must be as many")

    def permute(self, seeds: Mapping[int, bytes]) -> None:
        """Bring the rows into the order that the hiders' seeds give together."""
        joined = b"".join(bytes([number]) + seeds[number] for number in sorted(seeds))
        order = permutation(hashlib.sha256(joined).digest(), self.rows)
        self.words = self.words[order]
        if self.ciphers is not None:
            self.ciphers = [self.ciphers[row] for row in order.tolist()]

    def reshare_parts(self) -> dict[int, Words]:
        """A hider's words in new uniform shares, one for everybody else; its own it keeps."""
        others = [number for number in range(self.parties) if number != self.number]
        *parts, self.words = split(self.words, self.parties, self.entropy)
        return dict(zip(others, parts, strict=True))

    # -- all of it

    async def take_part(self, links: Links) -> None:
        """All rounds, with the other parties at the other ends of the links."""
        holder = self.parties - 1
        for hiders in shuffle_rounds(self.parties):
            await self._hide(hiders, holder, links)
            holder = holder_of(hiders)
            if self.number in hiders:
                await self._permute(hiders, links)
            await self._reshare(hiders, links)

    async def _hide(self, hiders: Hiders, before: int, links: Links) -> None:
        """``before``: who holds the ciphertexts as the round begins."""
        if self.number not in hiders:
            parts, packed = self.hide_parts(hiders)
            for to, part in parts.items():
                await links.send(to, b"H", part.tobytes())
            if packed:
                await links.send(holder_of(hiders), b"C", packed)
            return
        for sender in range(self.parties):
            if sender in hiders:
                continue
            if sender == before and self.number == holder_of(hiders):
                size = self.rows * self.key.cipher_bytes
                self.take_ciphers(await links.receive(sender, b"C", size))
            else:
                await self._take_words(sender, b"H", links)

    async def _take_words(self, sender: int, kind: bytes, links: Links) -> None:
        data = await links.receive(sender, kind, self.rows * self._bits // 8)
        self.take_words(read_words(data, self._bits))

    async def _permute(self, hiders: Hiders, links: Links) -> None:
        own = self.entropy.bits(8 * SEED_BYTES).to_bytes(SEED_BYTES, "little")
        others = [number for number in hiders if number != self.number]
        for to in others:
            await links.send(to, b"S", own)
        seeds = {self.number: own}
        for sender in others:
            seeds[sender] = await links.receive(sender, b"S", SEED_BYTES)
        self.permute(seeds)

    async def _reshare(self, hiders: Hiders, links: Links) -> None:
        if self.number in hiders:
            for to, part in self.reshare_parts().items():
                await links.send(to, b"R", part.tobytes())
        for sender in hiders:
            if sender != self.number:
                await self._take_words(sender, b"R", links)

    def result(self) -> tuple[bytes, bytes]:
        """What goes to the server: words, and of the holder ciphertexts instead."""
        if self.ciphers is None:
            return self.words.tobytes(), b""
        return b"", self._leaving(np.zeros_like(self.words))
