"""Requests that wait for the writing thread, in order; one that was given up leaves its place."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from sottovoce.service.memory import HeldMemory
from sottovoce.service.wire import Envelope


@dataclass(frozen=True)
class Receipt:
    """What became of a request's reports."""

    stored: int
    duplicates: int


@dataclass(eq=False)
class Waiting:
    """A request that waits; all but the envelope is of the event loop alone."""

    envelope: Envelope
    future: asyncio.Future[Receipt]
    loop: asyncio.AbstractEventLoop = field(repr=False)
    until: float = 0.0  # by the loop's clock, after which the sender is told to come again
    is_written: bool = False  # or was refused: the thread has let go of it
    # its memory, if the sender has gone while the thread still has it
    left: HeldMemory | None = None


class WriteQueue:
    """Between the event loop, which puts requests in, and the one thread that takes them out."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[Waiting, None] = OrderedDict()
        self._is_closed = False

    def put(self, each: Waiting) -> None:
        """Let it wait behind the others."""
        with self._changed:
            self._waiting[each] = None
            self._changed.notify()

    def remove(self, each: Waiting) -> bool:
        """Take one out that nobody waits for any longer; False if the thread has it."""
        with self._changed:
            if each not in self._waiting:
                return False
            del self._waiting[each]
            return True

    def wait(self) -> bool:
        """Wait until there is a request; False if none will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return bool(self._waiting)

    def take(self, fits: Callable[[Envelope], bool]) -> Waiting | None:
        """The first one, if there is one and it fits."""
        with self._changed:
            first = next(iter(self._waiting), None)
            if first is None or not fits(first.envelope):
                return None
            del self._waiting[first]
            return first

    def close(self) -> None:
        """No more will come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
