"""Connections that threads borrow for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Generic, Protocol, TypeVar

from sottovoce.ground.errors import StoreError

MOST_READERS = 8  # connections of one pool: a server has few, and several collectors share them
MOST_IDLE = 4  # that stay open while nobody uses them
LEND_PATIENCE = 10.0  # seconds to wait for one


class Closable(Protocol):
    def close(self) -> None: ...


Connection = TypeVar("Connection", bound=Closable)


class Pool(Generic[Connection]):
    """As many connections as threads read at one time, up to a limit; failed ones are not lent."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        most: int = MOST_READERS,
        patience: float = LEND_PATIENCE,
    ) -> None:
        self._connect = connect
        self._most = most
        self._patience = patience
        self._idle: list[Connection] = []
        self._lent = 0
        self._changed = Condition()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection that nobody else uses meanwhile; waits for one, but not for ever."""
        found = self._taken()
        try:
            connection = self._connect() if found is None else found
        except BaseException:
            self._one_fewer()
            raise
        try:
            yield connection
        except BaseException:
            self._dismiss(connection)
            raise
        self._give_back(connection)

    def _taken(self) -> Connection | None:
        """An idle connection, or None: the right to make one."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._closed or self._lent < self._most, self._patience
            ):
                raise StoreError(
                    f"store: all of its {self._most} connections are in use; come again"
                )
            if self._closed:
                raise StoreError("store: it is closed")
            self._lent += 1
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        """Keep it for the next one who asks, unless enough are kept."""
        with self._changed:
            if not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                self._one_fewer()
                return
        self._dismiss(connection)

    def _dismiss(self, connection: Connection) -> None:
        try:
            connection.close()
        finally:
            self._one_fewer()

    def _one_fewer(self) -> None:
        with self._changed:
            self._lent -= 1
            self._changed.notify()

    def clear(self) -> None:
        """Close those that nobody uses: they may have been lost."""
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """No more lending; those that are out are closed when they come back."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.clear()
