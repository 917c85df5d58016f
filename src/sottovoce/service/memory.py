"""How much of what senders sent a collector holds at once, over all connections."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class Memory:
    """Bytes of requests that are read or wait to be written; of the event loop alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more fit."""
        return self.used + size <= self._most


class HeldMemory:
    """What one request holds, given back when the block ends."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> bool:
        """Hold so many bytes more, if they fit."""
        if not self._memory.has_room(size):
            return False
        self._memory.used += size
        self._size += size
        return True

    def handed_on(self) -> HeldMemory:
        """The same for somebody else, who gives it back; nothing is left here."""
        other = HeldMemory(self._memory)
        other._size, self._size = self._size, 0
        return other

    def release(self) -> None:
        """Give it back."""
        self._memory.used -= self._size
        self._size = 0

    def release_after(self, work: asyncio.Future[Any]) -> None:
        """Give it back when this is done, not when the block ends."""
        other = self.handed_on()
        work.add_done_callback(lambda _: other.release())

    def __enter__(self) -> HeldMemory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.release()
