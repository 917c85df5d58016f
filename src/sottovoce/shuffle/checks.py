"""Spot checks: whether one's own reports came through, from the list that a collector publishes.

A checker sends reports of its own as everybody does, remembers their nonces, and looks for them in
the list of a finished batch. Shufflers cannot tell its onions from others by what they are, so that
whoever changes a share phi of a batch changes the same share of the checker's reports on average.
The first one sees where onions come from: the checker's must come as everybody's do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from math import ceil, log1p

from sottovoce.ground.errors import CorruptReport, InvalidInput

LISTED_BYTES = 16  # of a nonce's hash
_LISTED, _STORED = b"sottovoce nonce 1 listed", b"sottovoce nonce 1 stored"


def listed(plan_id: str, nonce: bytes) -> bytes:
    """What stands for a nonce in the public list.

    >>> len(listed("00" * 32, bytes(16)))
    16
    """
    return hashlib.sha256(_LISTED + bytes.fromhex(plan_id) + nonce).digest()[:LISTED_BYTES]


def report_id(plan_id: str, nonce: bytes) -> bytes:
    """The id under which a shuffled report is stored: it tells no time, and nothing of the list.

    >>> report_id("00" * 32, bytes(16)) == listed("00" * 32, bytes(16))
    False
    """
    return hashlib.sha256(_STORED + bytes.fromhex(plan_id) + nonce).digest()[:16]


def written_list(plan_id: str, nonces: Iterable[bytes]) -> bytes:
    """The public list of a finished batch: hashes in increasing order, one after another."""
    return b"".join(sorted(listed(plan_id, nonce) for nonce in nonces))


def missing(plan_id: str, nonces: Iterable[bytes], published: bytes) -> list[bytes]:
    """Those of one's own nonces whose reports did not come through.

    >>> found = written_list("00" * 32, [b"a" * 16, b"b" * 16])
    >>> missing("00" * 32, [b"b" * 16, b"c" * 16], found)
    [b'cccccccccccccccc']
    """
    if len(published) % LISTED_BYTES:
        raise CorruptReport(f"list: {len(published)} bytes are no whole number of hashes")
    there = {published[at : at + LISTED_BYTES] for at in range(0, len(published), LISTED_BYTES)}
    return [nonce for nonce in nonces if listed(plan_id, nonce) not in there]


def chance_of_seeing(share: float, checks: int) -> float:
    """How likely a checker sees that this share of a batch was changed or dropped.

    >>> round(chance_of_seeing(0.01, 300), 3)
    0.951
    """
    if not 0 <= share <= 1:
        raise InvalidInput(f"share ({share}) must lie between 0 and 1")
    # 1 - (1 - phi)^s
    return float(1 - (1 - share) ** checks)


def checks_needed(share: float, chance: float) -> int:
    """How many reports a checker sends to see a changed share with this chance, at least.

    >>> checks_needed(0.01, 0.95)
    299
    """
    if not 0 < share < 1 or not 0 < chance < 1:
        raise InvalidInput(f"share ({share}) and chance ({chance}) must lie between 0 and 1")
    return ceil(log1p(-chance) / log1p(-share))
