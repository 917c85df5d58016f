"""Connections that threads borrow for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Generic, Protocol, TypeVar

from sottovoce.errors import StoreError


class Closable(Protocol):
    def close(self) -> None: ...


Connection = TypeVar("Connection", bound=Closable)


class Pool(Generic[Connection]):
    """As many connections as threads read at one time. One that failed is not lent again."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._lock = Lock()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection that nobody else uses meanwhile."""
        connection = self._taken()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._return(connection)

    def _taken(self) -> Connection:
        with self._lock:
            if self._closed:
                raise StoreError("store: it is closed")
            found = self._idle.pop() if self._idle else None
        return self._connect() if found is None else found

    def _return(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def clear(self) -> None:
        """Close those that nobody uses: they may have been lost."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """No more lending; those that are out are closed when they come back."""
        with self._lock:
            self._closed = True
        self.clear()
