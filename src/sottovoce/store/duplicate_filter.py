"""Hashes of ids, and a filter that tells most hashes from those of a crowd without a look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sottovoce.oracles.base import Integers
from sottovoce.store.base import Ids

Hashes = NDArray[np.uint64]

ROOM = 32  # bits of a filter for each hash that it has to take


class Hash:
    """Hashes of ids under a secret of the store: nobody can choose ids whose hashes are equal."""

    def __init__(self, key: bytes) -> None:
        self._key = np.frombuffer(key, "<u8").astype(np.uint64) | np.uint64(1)

    def __call__(self, ids: Ids) -> Hashes:
        halves = np.ascontiguousarray(ids).view("<u8").astype(np.uint64, copy=False)
        mixed: Hashes = (halves[:, 0] ^ self._key[3]) * self._key[0]
        mixed ^= mixed >> np.uint64(32)
        mixed += halves[:, 1]
        for factor in self._key[1:3]:
            mixed *= factor
            mixed ^= mixed >> np.uint64(31)
        return mixed


class Probe:
    """Hashes as filters look at them: the two words that each names, the bits it sets in both."""

    def __init__(self, hashes: Hashes) -> None:
        self.words = tuple((hashes >> np.uint64(start)).view(np.int64) for start in (40, 24))
        self.mask = np.zeros(len(hashes), np.uint64)
        for start in (0, 6, 12, 18):
            self.mask |= np.uint64(1) << (hashes >> np.uint64(start) & np.uint64(63))


class DuplicateFilter:
    """A Bloom filter: all hashes that were added pass; of others a full one passes 1 in 5,000.

    >>> duplicate_filter = DuplicateFilter(100)
    >>> duplicate_filter.add(Probe(np.array([3 << 40, 5 << 40], np.uint64)))
    >>> asked = np.array([1 << 40, 3 << 40, 4 << 40, 5 << 40], np.uint64)
    >>> duplicate_filter.passed(Probe(asked)).tolist()
    [1, 3]
    """

    def __init__(self, size: int) -> None:
        self._bits = np.zeros(1 << (ROOM * max(2, size) // 64 - 1).bit_length(), np.uint64)

    def add(self, probe: Probe) -> None:
        for word in probe.words:
            np.bitwise_or.at(self._bits, word & (len(self._bits) - 1), probe.mask)

    def passed(self, probe: Probe) -> Integers:
        """The places of those that pass."""
        rows = np.flatnonzero(self._hold(probe.words[0], probe.mask))
        return rows[self._hold(probe.words[1][rows], probe.mask[rows])] if len(rows) else rows

    def _hold(self, word: Integers, mask: Hashes) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = (self._bits[word & (len(self._bits) - 1)] & mask) == mask
        return held
