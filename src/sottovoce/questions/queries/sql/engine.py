"""DuckDB, without files, network or settings: it gives expressions their meaning."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import duckdb

from sottovoce.ground.extras import imported

MEMORY_LIMIT = "2GB"
INTERRUPT_EVERY = 0.05  # seconds, until a query has ended
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": MEMORY_LIMIT,
}


class EngineError(Exception):
    """What DuckDB says of an expression; the message names no value of a table."""


class Engine:
    """A database in memory that reads no file and whose settings cannot be changed.

    >>> engine = Engine()
    >>> engine.add("numbers", imported("pyarrow").table({"x": [1, 2, 3]}))
    >>> engine.ask("SELECT x > 1 AS y FROM numbers").column("y").to_pylist()
    [False, True, True]
    """

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config=dict(_CLOSED))
        # Python's variables are no tables; the setting's name differs between versions
        for setting in ("python_enable_replacements", "python_enable_replacement_scans"):
            try:
                self._connection.execute(f"SET {setting} = false")
            except duckdb.Error:
                continue
        self._connection.execute("SET preserve_insertion_order = true")
        self._connection.execute("SET lock_configuration = true")
        self._names: set[str] = set()
        # beside whoever asks, who can be interrupted while DuckDB is at work
        self._worker = ThreadPoolExecutor(1, "duckdb")

    def has(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return name in self._names

    def add(self, name: str, table: Any) -> None:
        """Make an Arrow table known under a name."""
        self._connection.register(name, table)
        self._names.add(name)

    def ask(self, sql: str) -> Any:
        """The Arrow table that a query gives, in the order of the rows it reads.

        An interrupt ends the query, not only the waiting for it.
        """
        asked = None
        try:
            asked = self._worker.submit(lambda: self._connection.sql(sql).to_arrow_table())
            return asked.result()
        except (duckdb.Error, OverflowError) as wrong:
            raise EngineError(_explained(wrong)) from None
        except imported("pyarrow").ArrowException:
            raise EngineError("a value is outside of the range of its type") from None
        finally:
            if asked is None or not asked.done():
                self._end_query()

    def _end_query(self) -> None:
        """Interrupt what the worker is at, and leave a connection that answers."""
        rested = self._worker.submit(self._answers)  # its turn comes when the query has ended
        while not rested.done():
            self._connection.interrupt()  # in vain if the query has not begun yet
            wait([rested], timeout=INTERRUPT_EVERY)
        while not self._answers():  # an interrupt that came late ends the next query
            continue

    def _answers(self) -> bool:
        """Whether the connection is free, and was not interrupted."""
        try:
            self._connection.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return False
        return True

    def close(self) -> None:
        """Let go of all tables."""
        self._worker.shutdown()
        self._connection.close()


def _explained(wrong: Exception) -> str:
    """An error in one line; values that were read stay out of it."""
    if isinstance(wrong, duckdb.ConversionException):
        return "text stands where a number is needed, or a value does not fit its type"
    if isinstance(wrong, duckdb.OutOfRangeException):
        return "a value is outside of the range of its type"
    if isinstance(wrong, duckdb.OutOfMemoryException):
        return f"it needs more than {MEMORY_LIMIT} of memory"
    if isinstance(wrong, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        first = str(wrong).partition("\n")[0]
        if "Cannot compare values of type" in first or "No function matches" in first:
            return "text stands where a number is needed, or a number where text is needed"
        return first.partition(": ")[2] or first
    return "DuckDB cannot evaluate it"
