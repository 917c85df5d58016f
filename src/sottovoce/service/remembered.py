"""Which reports were found to use their assignments, so that none is derived again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b

from sottovoce.device.assignment import Assignment

MOST_REMEMBERED = 1 << 16  # reports, of about 150 bytes each
_DIGEST = 16  # bytes


class Remembered:
    """Digests of the reports checked last; those asked for longest ago are forgotten first.

    That a report uses the coins of a signature stays true for ever, so nothing here depends on a
    key or on the time: whether the signature holds is for the caller to verify each time.
    """

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def has(self, digest: bytes) -> bool:
        """Whether it was added, and not so long ago that it is forgotten."""
        with self._lock:
            if digest not in self._seen:
                return False
            self._seen.move_to_end(digest)
            return True

    def add(self, digest: bytes) -> None:
        """Remember it."""
        with self._lock:
            self._seen[digest] = None
            self._seen.move_to_end(digest)
            if len(self._seen) > self._most:
                self._seen.popitem(last=False)


def digest_of(given: Assignment, cohort: int, payload: bytes) -> bytes:
    """Of all that was checked: the plan, the assignment, the report."""
    head = (
        bytes.fromhex(given.plan_id)
        + given.id
        + given.expires.to_bytes(8, "little")
        + given.signature
    )
    return blake2b(head + f"{cohort:x} ".encode() + payload, digest_size=_DIGEST).digest()
