"""What hops say to each other: messages under a key that only the two of them can compute.

The key is derived from the Diffie-Hellman secret of their two keys in the plan. A message is the
sender's hop, a body, and before both an authentication code over the kind of message, the plan, the
sender and the body. An answer has one too, over the question's: nobody else can say that something
was taken.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from sottovoce.device.sealing import PrivateKey, hops_of
from sottovoce.ground.errors import CorruptReport, SottovoceError
from sottovoce.protocol.plan import Plan

MAC_BYTES = 32
CHUNK_BYTES = 1 << 19  # of a batch in one message, at most
MAX_CHUNKS = 1 << 16
BATCH_KIND, COMMIT_KIND, HALF_KIND, OPENING_KIND = "batch", "commit", "half", "open"  # of messages
_LINK, _MESSAGE, _ANSWER = b"sottovoce hops 1", b"sottovoce message 1", b"sottovoce answer 1"
_NUMBER_BYTES = 4

_mac = partial(hmac.digest, digest="sha256")


class NotAuthentic(SottovoceError):
    """A message that the hop which it names has not sent, or an answer that it has not given."""


@dataclass(frozen=True)
class Message:
    """What one hop says to another."""

    kind: str
    sender: int
    body: bytes
    mac: bytes


class HopLink:
    """Two hops of a plan, seen from one of them."""

    def __init__(self, plan: Plan, hop: int, key: PrivateKey, other: int) -> None:
        self._hop, self._other, self._plan_id = hop, other, bytes.fromhex(plan.id)
        shared = key.shared(hops_of(plan)[other])
        self._key = _mac(shared, _LINK + self._plan_id)

    def write(self, kind: str, body: bytes) -> bytes:
        """A message to the other hop: authentication code || sender || body."""
        return self._mac(kind, self._hop, body) + bytes([self._hop]) + body

    def read(self, kind: str, data: bytes) -> Message:
        """A message of the other hop; refuses everybody else's."""
        mac, sender, body = data[:MAC_BYTES], data[MAC_BYTES : MAC_BYTES + 1], data[MAC_BYTES + 1 :]
        expected = self._mac(kind, self._other, body)
        if sender != bytes([self._other]) or not hmac.compare_digest(mac, expected):
            raise NotAuthentic("message: it is not of the hop that the plan names")
        return Message(kind, self._other, body, mac)

    def answer(self, message: Message, value: bytes = b"") -> dict[str, str]:
        """What is said to a message, as JSON holds it."""
        return {"value": value.hex(), "mac": self._answer_mac(message.mac, value).hex()}

    def read_answer(self, sent: bytes, body: object) -> bytes:
        """The value of the other hop's answer to what was sent."""
        try:
            value = bytes.fromhex(body["value"])  # type: ignore[index]
            mac = bytes.fromhex(body["mac"])  # type: ignore[index]
        except (KeyError, TypeError, ValueError):
            raise NotAuthentic("answer: it is none of the next hop's") from None
        if not hmac.compare_digest(mac, self._answer_mac(sent[:MAC_BYTES], value)):
            raise NotAuthentic("answer: it is not of the hop that the plan names")
        return value

    def _mac(self, kind: str, sender: int, body: bytes) -> bytes:
        head = _MESSAGE + self._plan_id + kind.encode() + b"\0" + bytes([sender])
        return _mac(self._key, head + body)

    def _answer_mac(self, question: bytes, value: bytes) -> bytes:
        return _mac(self._key, _ANSWER + question + value)


def sender_of(data: bytes) -> int:
    """Which hop a message says that it comes from; to be believed only after it was read."""
    if len(data) <= MAC_BYTES:
        raise CorruptReport(f"message: {len(data)} bytes are too few")
    return data[MAC_BYTES]


@dataclass(frozen=True)
class Chunk:
    """Part of something long: its number, of how many, its bytes.

    >>> Chunk.read(Chunk(1, 3, b"so").write())
    Chunk(number=1, count=3, data=b'so')
    """

    number: int
    count: int
    data: bytes

    def write(self) -> bytes:
        head = (self.number, self.count)
        return b"".join(each.to_bytes(_NUMBER_BYTES, "little") for each in head) + self.data

    @classmethod
    def read(cls, body: bytes) -> Chunk:
        """The inverse of :meth:`write`."""
        if len(body) < 2 * _NUMBER_BYTES:
            raise CorruptReport(f"chunk: {len(body)} bytes are too few")
        number, count = (
            int.from_bytes(body[at : at + _NUMBER_BYTES], "little") for at in (0, _NUMBER_BYTES)
        )
        if not number < count <= MAX_CHUNKS:
            raise CorruptReport(
                f"chunk: number ({number}) must be below count ({count}), which is at most "
                f"{MAX_CHUNKS}"
            )
        return cls(number, count, body[2 * _NUMBER_BYTES :])


def chunks(data: Iterable[bytes], size: int) -> list[Chunk]:
    """Pieces of one ``size`` in chunks, never a piece in two of them; one empty chunk of nothing.

    >>> [chunk.data for chunk in chunks([b"ab", b"cd"], 2)]
    [b'abcd']
    """
    pieces = list(data)
    each = max(1, CHUNK_BYTES // size)
    starts = range(0, max(1, len(pieces)), each)
    return [
        Chunk(number, len(starts), b"".join(pieces[start : start + each]))
        for number, start in enumerate(starts)
    ]


def split(data: bytes, size: int) -> Iterator[bytes]:
    """The pieces of one ``size`` that bytes consist of.

    >>> list(split(b"abcd", 2))
    [b'ab', b'cd']
    """
    if len(data) % size:
        raise CorruptReport(f"body: {len(data)} bytes must be pieces of {size} bytes each")
    return (data[at : at + size] for at in range(0, len(data), size))
