"""What was computed for recent queries, up to a number of things."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class RecentCache(Generic[Kept]):
    """Things by key; the one that was not asked for longest goes first.

    >>> squares = RecentCache[int](2)
    >>> [squares.get(each, lambda each=each: each**2) for each in (1, 2, 1, 3)], len(squares)
    ([1, 4, 1, 9], 2)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: dict[Hashable, Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def values(self) -> list[Kept]:
        """All that is kept."""
        return list(self._kept.values())

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What is kept under a key, made now if it is not."""
        found = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = found  # the latest stands last
        if len(self._kept) > self.most:
            self._kept.pop(next(iter(self._kept)))
        return found
