"""`sottovoce query` and `sottovoce sql`."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.questions.queries.sql.session import Session
from sottovoce.store import open_store
from sottovoce.store.base import ID_BYTES
from tests.cli.helpers import Command, refused
from tests.sql.plans import plan, reports

COUNT_OLD = "SELECT state, COUNT(*) FROM people WHERE age > 50 GROUP BY state"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("shop")
    made = plan("tree", 2.0)
    (here / "plan.json").write_bytes(made.to_json().encode())
    reports("tree", 2.0).write(here / "reports.parquet")
    return here


def test_a_query_is_answered_as_a_table_or_as_json(
    sottovoce: Command, folder: Path, tmp_path: Path
) -> None:
    files = (folder / "plan.json", folder / "reports.parquet")
    table = sottovoce("query", *files, COUNT_OLD, "-q", "--explain")
    assert table.code == 0
    assert table.out.split()[:2] == ["state", "COUNT(*)"]
    assert "Whispered: age > 50: 31 of 64 values" in table.out
    plot = tmp_path / "old.svg"
    found = sottovoce("query", *files, COUNT_OLD, "-q", "--json", "--plot", plot)
    rows = json.loads(found.out)
    assert [row["columns"]["state"] for row in rows] == ["CA", "NY", "TX"]
    assert rows[0]["low"] < rows[0]["value"] < rows[0]["high"]
    assert plot.exists()


def test_what_to_know_of_an_answer_stands_beside_its_json(sottovoce: Command, folder: Path) -> None:
    files = (folder / "plan.json", folder / "reports.parquet")
    sql = "SELECT COUNT(*) FROM people WHERE age > 300"
    found = sottovoce("query", *files, sql, "-q", "--json")
    assert json.loads(found.out)[0]["value"] == 0.0
    assert found.err.splitlines() == [
        "Note: age > 300: 300 lies above the domain of age (18 to 81); the range is clipped to it"
    ]


def test_a_refused_query_shows_where(sottovoce: Command, folder: Path) -> None:
    files = (folder / "plan.json", folder / "reports.parquet")
    found = sottovoce("query", *files, "SELECT COUNT(*) FROM people WHERE agee > 3", "-q")
    assert found.code == 2
    assert found.out == ""
    assert found.err.splitlines() == [
        "error: the plan has no column 'agee'",
        "  SELECT COUNT(*) FROM people WHERE agee > 3",
        "                                    ^^^^",
        "  did you mean age? columns: age, state, amount, channel",
    ]


def test_other_plans_and_missing_files_are_refused(
    sottovoce: Command, folder: Path, tmp_path: Path
) -> None:
    other = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=100)
    (tmp_path / "other.json").write_bytes(other.to_json().encode())
    found = sottovoce("query", tmp_path / "other.json", folder / "reports.parquet", "SELECT 1")
    refused(found, "its question must be queries, not frequencies")
    found = sottovoce("query", folder / "plan.json", tmp_path / "none.parquet", COUNT_OLD)
    refused(found, "none.parquet")


def test_the_prompt_answers_what_is_piped_in(
    sottovoce: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    made, heard = plan("tree", 2.0), reports("tree", 2.0)[:2000]
    with open_store(store) as kept:
        kept.add_plan(made)
        ids = np.random.default_rng(1).integers(0, 256, (2000, ID_BYTES), np.uint8)
        kept.append(made, ids, heard)
    lines = [
        ".explain",
        ".columns",
        "SELECT COUNT(*)",
        "FROM people;",
        "SELECT agee FROM people;",
        "SELECT channel, COUNT(*) FROM people WHERE age > 30 GROUP BY channel",
        "",
        ".explain",
        f".plot {tmp_path}/last.svg",
        ".quit",
        "SELECT never;",
    ]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines) + "\n"))
    found = sottovoce("sql", folder / "plan.json", store, "-q")
    assert found.code == 0
    assert "age: whispered, 18 to 81" in found.out
    assert "2,000.0 exact" in found.out
    assert "In clear: GROUP BY channel" in found.out
    assert (tmp_path / "last.svg").exists()
    assert found.err.startswith("error: ask a query first\nerror: the plan has no column 'agee'")
    assert "never" not in found.err


def test_a_table_of_ones_own_is_joined_by_the_ids_of_a_store(
    sottovoce: Command, tmp_path: Path
) -> None:
    schema = sv.Schema(age=sv.Ordinal(18, 25), city=sv.Categorical(["a", "b"], sensitive=False))
    made = sv.plan(schema, sv.Queries(["age"], method="tree"), epsilon=2.0, people=100)
    (tmp_path / "plan.json").write_bytes(made.to_json().encode())
    ids = np.random.default_rng(1).integers(0, 256, (100, ID_BYTES), np.uint8)
    store = f"sqlite:///{tmp_path}/shop.db"
    with open_store(store) as kept:
        kept.add_plan(made)
        kept.append(made, ids, sv.simulate(made, {"age": [20] * 100}, seed=1))
    rows = [f"{each.tobytes().hex()},{'ab'[place % 2]}" for place, each in enumerate(ids[:90])]
    (tmp_path / "own.csv").write_text("report,city\n" + "\n".join(rows) + "\n")
    asked = ("SELECT city, COUNT(*) FROM people GROUP BY city", "-q")
    own = ("--table", tmp_path / "own.csv", "--on", "report")
    assert sottovoce("export", store, "-o", tmp_path / "exported", "-q").code == 0
    for source in (store, tmp_path / "exported"):
        found = sottovoce("query", tmp_path / "plan.json", source, *asked, *own, "--json")
        assert [row["value"] for row in json.loads(found.out)] == [45.0, 45.0]
    table = sottovoce("query", tmp_path / "plan.json", store, *asked, *own)
    assert "10 of 100 reports have no row in the joined table" in table.out
    unjoined = sottovoce("query", tmp_path / "plan.json", store, *asked)
    assert "the public column 'city' does not travel with reports" in unjoined.err


def test_a_missing_library_is_named_with_its_extra(
    sottovoce: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    found = sottovoce("query", folder / "plan.json", folder / "reports.parquet", COUNT_OLD, "-q")
    refused(found, 'sqlglot is not installed; it comes with: pip install "sottovoce[queries]"')


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_ends_a_query_with_one_line(
    sottovoce: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (folder / "plan.json", folder / "reports.parquet")
    monkeypatch.setattr(Session, "ask", interrupted)
    found = sottovoce("query", *files, COUNT_OLD, "-q")
    assert (found.code, found.out, found.err) == (130, "", "interrupted\n")


def test_an_interrupt_at_the_prompt_ends_the_query_alone(
    sottovoce: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "ask", interrupted)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{COUNT_OLD};\n.columns\n"))
    found = sottovoce("sql", folder / "plan.json", folder / "reports.parquet", "-q")
    assert (found.code, found.err) == (0, "interrupted\n")
    assert "age: whispered" in found.out


def test_a_time_limit_ends_a_query_and_leaves_no_clock_behind(
    sottovoce: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (folder / "plan.json", folder / "reports.parquet")
    before = signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(Session, "ask", lambda *_: signal.pause())
    found = sottovoce("query", *files, COUNT_OLD, "-q", "--timeout", "0.01")
    late = "error: no answer after 0.01 seconds (--timeout)\n"
    assert (found.code, found.out, found.err) == (124, "", late)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    monkeypatch.undo()
    assert sottovoce("query", *files, COUNT_OLD, "-q", "--timeout", "1000").code == 0


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_time_limit_is_some_seconds(sottovoce: Command, folder: Path, seconds: str) -> None:
    files = (folder / "plan.json", folder / "reports.parquet")
    found = sottovoce("query", *files, COUNT_OLD, "-q", f"--timeout={seconds}")
    assert found.code == 2
    assert "must be finite and greater than 0" in found.err
