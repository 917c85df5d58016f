"""SQL where the reports lie: the same integers, and so the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.aggregation.aggregate import fold
from sottovoce.engine import queries as engine_queries
from sottovoce.engine.jobs import fold_jobs
from sottovoce.engine.queries import ChosenFold, EngineSource, ask_reports
from sottovoce.engine.tasks import FoldTask
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.questions.queries.evidence import cohort_squares
from sottovoce.questions.queries.sql import open_session
from tests.engine.commands import run_command
from tests.engine.plans import write_files
from tests.engine.sending import Sending
from tests.sql import plans

NAMES = ("amount", "channel")
QUERIES = [
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 50",
    "SELECT channel, COUNT(*) FROM people WHERE state = 'NY' GROUP BY channel",
    "SELECT SUM(amount), AVG(amount) FROM people WHERE age < 40",
    "SELECT channel, AVG(amount) FROM people WHERE age < 40 AND amount > 5.5 GROUP BY channel",
    "SELECT AVG(age) FROM people WHERE channel = 'web' AND amount - 20 < age",
    "SELECT floor(amount / 100) AS step, COUNT(*), SUM(amount - 30) FROM people GROUP BY step",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports")
    write_files(path, plans.plan("tree", 4.0), plans.reports("tree", 4.0))
    return path


def figures(answer: Any) -> list[Any]:
    """All numbers of an answer; keys as text."""
    rows = [
        (row.keys, [(c.value, c.std_error, c.low, c.high) for c in row.cells])
        for row in answer.rows
    ]
    return [([str(key) for key in keys], cells) for keys, cells in rows]


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_those_of_the_reports_themselves(sql: str, folder: Path) -> None:
    plan = plans.plan("tree", 4.0)
    there = figures(ask_reports(Sending(2), plan, folder, sql))
    here = figures(open_session(plan, plans.reports("tree", 4.0)).ask(sql))
    assert [keys for keys, _ in there] == [keys for keys, _ in here]
    for (_, own), (_, others) in zip(there, here, strict=True):
        np.testing.assert_allclose(own, others, rtol=1e-9)


def test_a_plan_that_keeps_rows_is_asked_there(tmp_path: Path) -> None:
    plan, reports = plans.plan("sc", 4.0), plans.reports("sc", 4.0)[:3000]
    write_files(tmp_path, plan, reports)
    sql = "SELECT channel, SUM(amount) FROM people WHERE age < 40 GROUP BY channel"
    there = figures(ask_reports(Sending(2), plan, tmp_path, sql))
    here = figures(open_session(plan, reports).ask(sql))
    for (_, own), (_, others) in zip(there, here, strict=True):
        np.testing.assert_allclose(own, others, rtol=1e-9)


def test_weighted_reports_add_up_to_the_same_integers(folder: Path) -> None:
    plan, reports = plans.plan("tree", 4.0), plans.reports("tree", 4.0)
    engine = Sending(2)
    source = EngineSource(engine, plan, folder, NAMES)
    amounts, channels = source.public("amount"), source.public("channel")
    assert source.rows < source.people == len(reports)
    times = source.times(None)
    assert times is not None
    assert times.sum() == len(reports)
    web = channels.values.tolist().index("web")  # a row of each channel, and some amounts
    rows = np.flatnonzero((channels.values == channels.values[web]) & (amounts.values > 1000))
    weights = amounts.values[rows] * 1_000_003
    table = source._counted.select(list(NAMES)).take(rows).append_column(" weight", [weights])
    task = ChosenFold(FoldTask(plan.to_json(), plan.id), NAMES, engine_queries._packed(table))
    jobs = fold_jobs(plan, folder, 2)
    assert len(jobs) > 1
    whole = sv.Aggregate(plan)
    for job in jobs:
        whole.absorb(task.total(job))
    columns = reports.public
    chosen = (columns["channel"].values == "web") & (columns["amount"].values > 1000)
    own = columns["amount"].values[chosen] * 1_000_003
    assert whole == fold(plan, reports[chosen], own)
    squares = cohort_squares(reports[chosen].cohorts, own, len(plan.cohorts))
    np.testing.assert_allclose(source._squares(task), squares, rtol=1e-12)
    mutant = fold(plan, reports[chosen], own + 1)
    assert whole != mutant


def test_rows_of_many_columns_are_told_apart() -> None:
    # 64^11 = 2^66 combinations, which no number of 64 bits tells apart
    listed = np.random.default_rng(1).permuted(np.tile(np.arange(64), (11, 1)), axis=1)
    names = [f"c{place}" for place in range(len(listed))]
    finder = engine_queries._RowFinder(names, pa.table(dict(zip(names, listed, strict=True))))
    other = listed.copy()
    other[0] = np.roll(other[0], 1)  # known values, in rows that are not listed
    heard = np.concatenate([listed[:, ::-1], other], axis=1)
    public = {name: PublicColumn(row, 0) for name, row in zip(names, heard, strict=True)}
    plan = "0" * 64
    cohorts, payload = np.zeros(128, np.uint32), np.zeros((128, 1), np.uint8)
    places = finder.places(sv.Reports(plan, cohorts, payload, public))
    assert places.tolist() == [*range(63, -1, -1), *[-1] * 64]


def test_too_many_public_rows_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_queries, "MAX_COUNTED_ROWS", 3)
    sql = "SELECT SUM(amount) FROM people WHERE age < 40"
    with pytest.raises(InvalidInput, match=r"\(amount\) take more than 3 different values"):
        ask_reports(Sending(2), plans.plan("tree", 4.0), folder, sql)


def test_the_command_asks_where_the_reports_lie(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sottovoce.engine.open_engine", lambda name, master=None: Sending(2))
    (tmp_path / "plan.json").write_text(plans.plan("tree", 4.0).to_json())
    command = ("query", tmp_path / "plan.json", folder, QUERIES[1], "--engine", "spark")
    code, out, err = run_command(capsys, *command)
    assert (code, err) == (0, "")
    assert out == run_command(capsys, *command[:4])[1]
    code, _, err = run_command(capsys, *command, "--table", "mine.csv")
    assert code == 2
    assert "table is joined by the engine local" in err
    code, _, err = run_command(capsys, *command[:3], "SELECT agee FROM people", *command[4:])
    assert code == 2
    assert "agee" in err
    code, _, err = run_command(capsys, *command[:2], "sqlite:///no.db", *command[3:])
    assert code == 2
    assert "sottovoce export" in err
