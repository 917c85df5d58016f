"""Analysts' text reaches DuckDB with files, extensions and settings out of reach."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow as pa
import pytest

from sottovoce.questions.queries.sql.engine import Engine, EngineError

secret_table = pa.table({"x": [1]})  # a variable, not a table


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '{file}.csv'",
        "EXPORT DATABASE '{file}.dir'",
        "ATTACH '{file}.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET memory_limit",
        "PRAGMA memory_limit = '9GB'",
        "SELECT * FROM secret_table",
        "SELECT getenv('HOME')",
    ],
)
def test_nothing_outside_is_reached(tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    engine = Engine()
    with pytest.raises(EngineError) as wrong:
        engine.ask(sql.format(file=file))
    assert "1,2" not in str(wrong.value)
    assert list(tmp_path.iterdir()) == [file]


def test_errors_do_not_echo_values() -> None:
    engine = Engine()
    engine.add("people", pa.table({"word": ["private words"]}))
    with pytest.raises(EngineError) as wrong:
        engine.ask("SELECT CAST(word AS INTEGER) AS answer FROM people")
    assert "private" not in str(wrong.value)


def test_too_much_memory_is_refused() -> None:
    with pytest.raises(EngineError):
        Engine().ask("SELECT repeat('x', 100000000) AS answer FROM range(1000) ORDER BY 1")


def test_an_interrupt_ends_what_duckdb_is_at() -> None:
    """The query would run for years; whoever waits for it gets the interrupt, and may ask again."""
    engine = Engine()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            engine.ask("SELECT sum(a.range * b.range) FROM range(1000000) a, range(100000000) b")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert engine.ask("SELECT 1 AS x").column("x").to_pylist() == [1]
    engine.close()
