"""SQL over the reports of real plans."""

from __future__ import annotations

import gc
import json
from math import isnan
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.questions.queries import sql as sql_package
from sottovoce.questions.queries.evidence import Integers
from sottovoce.questions.queries.fitted import FittedTable
from sottovoce.questions.queries.sql import SqlError, open_session
from sottovoce.questions.queries.sql.plan_source import PlanSource
from sottovoce.questions.queries.sql.session import Session
from tests.sql.plans import PEOPLE, database, plan, reports

LARGE = (
    "SELECT COUNT(*), SUM(amount), AVG(amount), STDDEV(amount) FROM people "
    "WHERE age BETWEEN 30 AND 60",
    "SELECT channel, COUNT(*), SUM(amount), AVG(age), VARIANCE(age), QUANTILE(age, 0.5) "
    "FROM people WHERE state IN ('CA', 'NY') OR age < 40 GROUP BY channel ORDER BY channel",
    "SELECT state, age // 20 AS part, COUNT(*), SUM(amount * age) FROM people WHERE age >= 20 "
    "AND age < 60 GROUP BY state, part ORDER BY state, part",
    "SELECT COUNT(*) FROM people WHERE NOT (state = 'CA' AND channel = 'web') AND amount > 20",
    "SELECT COUNT(*) FROM people WHERE NOT (age > 30 OR NOT (lower(state) = 'ny')) OR NULL",
    "SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR) LIKE '3%' AND NULLIF(age, 33) <> 35",
    "SELECT COUNT(*) FROM people WHERE age < amount AND age BETWEEN 30.5 AND 1e9",
    "SELECT state, channel, COUNT(*) n, AVG(amount) FROM people GROUP BY ALL HAVING n > 10 "
    "ORDER BY 1, 2",
    "SELECT NULLIF(channel, 'web') k, SUM(-amount), STDDEV(age) FROM people WHERE age < 50 "
    "GROUP BY k ORDER BY k",
    "SELECT floor(amount / 50) s, COUNT(*) FILTER (WHERE state <> 'TX'), AVG(age) FROM people "
    "WHERE age > 30 GROUP BY s HAVING COUNT(*) > 200 ORDER BY s",
)


@pytest.mark.parametrize("sql", LARGE)
def test_at_a_large_epsilon_answers_are_within_a_percent_of_duckdb(sql: str) -> None:
    answer = sv.query(plan("auto", 50.0), reports("auto", 50.0), sql)
    expected = database().sql(sql).fetchall()
    assert len(answer.rows) == len(expected)
    for row, wanted in zip(answer.rows, expected, strict=True):
        keys = len(row.keys)
        assert row.keys == wanted[:keys]
        for cell, true in zip(row.cells, wanted[keys:], strict=True):
            assert cell.value == pytest.approx(float(true), rel=0.01)


# 2 methods x 12 figures; if they are normal, one is beyond 4.5 standard errors in 1 of 6,000 seeds
@pytest.mark.parametrize("method", ["tree", "hio"])
def test_errors_are_those_that_are_told(method: str) -> None:
    sql = (
        "SELECT channel, COUNT(*), SUM(amount), AVG(amount), STDDEV(amount), AVG(age), "
        "AVG(age * amount) FROM people WHERE age > 40 OR state = 'CA' GROUP BY channel "
        "ORDER BY channel"
    )
    expected = database().sql(sql).fetchall()
    answer = sv.query(plan(method, 4.0), reports(method, 4.0), sql)
    scores = []
    for row, wanted in zip(answer.rows, expected, strict=True):
        for cell, true in zip(row.cells, wanted[1:], strict=True):
            assert cell.low < cell.value < cell.high
            scores.append((cell.value - float(true)) / cell.std_error)
    assert max(np.abs(scores)) < 4.5
    # errors told ten times too small would be found out
    assert max(np.abs(scores)) * 10 > 4.5


def test_sums_of_a_constant_agree_with_the_count() -> None:
    sql = "SELECT COUNT(*), SUM(3), AVG(3), SUM(3 * 1.0) FROM people WHERE age > 50"
    (row,) = sv.query(plan("tree", 2.0), reports("tree", 2.0), sql).rows
    count, thrice, average, _ = row.cells
    assert thrice.value == pytest.approx(3 * count.value, rel=1e-12)
    assert thrice.std_error == pytest.approx(3 * count.std_error, rel=1e-9)
    assert average.value == pytest.approx(3.0)
    assert average.std_error == pytest.approx(0.0, abs=1e-6)


def test_what_is_public_is_exact() -> None:
    sql = "SELECT channel, COUNT(*), SUM(amount) FROM people GROUP BY channel ORDER BY channel"
    answer = sv.query(plan("tree", 2.0), reports("tree", 2.0), sql)
    for row, wanted in zip(answer.rows, database().sql(sql).fetchall(), strict=True):
        assert [cell.mark for cell in row.cells] == ["exact", "exact"]
        assert [cell.value for cell in row.cells] == pytest.approx(list(wanted[1:]))
    assert answer.explanation.tables == 0


def test_empty_selections_count_nobody_and_have_no_average() -> None:
    asked = open_session(plan("tree", 2.0), reports("tree", 2.0))
    (row,) = asked.ask("SELECT COUNT(*), SUM(amount), AVG(amount) FROM people WHERE age > 90").rows
    assert [cell.value for cell in row.cells[:2]] == [0.0, 0.0]
    assert isnan(row.cells[2].value)
    assert row.cells[2].mark == "undefined"
    # nobody is 18 in TX but noise: a count with its error
    few = asked.ask("SELECT COUNT(*) FROM people WHERE age = 81 AND state = 'TX'")
    assert few.rows[0].cells[0].std_error > 0


def test_groups_fold_every_report_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = PlanSource(plan("tree", 2.0), reports("tree", 2.0))
    fitted: list[int] = []
    fit = heard.fit

    def counted(rows: np.ndarray | None, weights: np.ndarray | None) -> object:
        fitted.append(PEOPLE if rows is None else len(rows))
        return fit(rows, weights)

    monkeypatch.setattr(heard, "fit", counted)
    sql = "SELECT floor(amount / 10), COUNT(*) FROM people WHERE age > 30 GROUP BY 1"
    answer = Session(heard).ask(sql)
    assert len(fitted) == len(answer.rows) > 10
    assert sum(fitted) == PEOPLE


def test_an_aggregate_answers_what_needs_no_public_column() -> None:
    made, heard = plan("tree", 2.0), reports("tree", 2.0)
    aggregate = sv.Aggregate(made).add(heard)
    sql = "SELECT state, COUNT(*) FROM people WHERE age > 50 GROUP BY state"
    assert sv.query(made, aggregate, sql).to_rows() == sv.query(made, heard, sql).to_rows()
    with pytest.raises(sv.InvalidInput, match="the public column 'amount' is only in reports"):
        sv.query(made, aggregate, "SELECT SUM(amount) FROM people WHERE age > 50")


def test_reports_may_be_a_file_and_must_be_of_the_plan(tmp_path: Path) -> None:
    made, heard = plan("tree", 2.0), reports("tree", 2.0)
    heard.write(tmp_path / "reports.parquet")
    sql = "SELECT COUNT(*) FROM people WHERE age > 50"
    assert sv.query(made, tmp_path / "reports.parquet", sql).value == pytest.approx(
        sv.query(made, heard, sql).value
    )
    with pytest.raises(sv.PlanMismatch):
        sv.query(made, reports("hio", 4.0), sql)
    with pytest.raises(sv.InvalidInput, match="reports must be reports"):
        sv.query(made, 7, sql)  # type: ignore[arg-type]
    other = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=100)
    with pytest.raises(sv.InvalidInput, match="question is queries, not frequencies"):
        sv.query(other, heard, sql)
    with pytest.raises(sv.InvalidInput, match="level"):
        sv.query(made, heard, sql, level=1.5)
    with pytest.raises(sv.InvalidInput, match=r"^level \(much\) must be a number$"):
        sv.query(made, heard, sql, level="much")  # type: ignore[arg-type]
    with pytest.raises(SqlError):
        sv.query(made, heard, "SELECT ages FROM people")


def test_an_answer_has_many_forms(tmp_path: Path) -> None:
    sql = "SELECT state, COUNT(*) AS n, AVG(amount) FROM people WHERE age > 50 GROUP BY state"
    answer = sv.query(plan("tree", 2.0), reports("tree", 2.0), sql)
    rows = json.loads(answer.to_json())
    assert len(rows) == 6
    assert set(rows[0]) == {"columns", "aggregate", "value", "std_error", "low", "high"}
    assert rows[0]["columns"] == {"state": "CA"}
    assert [row["aggregate"] for row in rows[:2]] == ["COUNT(*)", "AVG(amount)"]
    frame = answer.to_pandas()
    assert list(frame.columns)[:5] == ["state", "n", "n_std_error", "n_low", "n_high"]
    assert answer.to_arrow().num_rows == len(answer) == 3
    assert str(answer).splitlines()[0].split()[:4] == ["state", "n", "std", "error"]
    assert "<th>AVG(amount)</th>" in answer._repr_html_()
    answer.plot(str(tmp_path / "answer.svg"))
    assert (tmp_path / "answer.svg").read_text().startswith("<svg")
    assert "by tree (unbiased)" in answer.explain()


def test_the_shop_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from examples.shop import QUERIES, main

    answers = main(people=5000)
    assert len(answers) == len(QUERIES)
    printed = capsys.readouterr().out
    assert "In clear: amount, channel" in printed
    assert "SELECT channel, COUNT(*)" in printed


def test_what_was_fitted_is_kept_as_long_as_the_reports() -> None:
    made = plan("tree", 2.0)
    heard = reports("tree", 2.0)[:5000]
    sql = "SELECT channel, COUNT(*), SUM(-amount) FROM people WHERE age > 50 GROUP BY channel"
    first = sv.query(made, heard, sql)
    kept = len(sql_package._SESSIONS)
    assert sv.query(made, heard, sql).to_rows() == first.to_rows()
    assert len(sql_package._SESSIONS) == kept
    del heard
    gc.collect()
    assert len(sql_package._SESSIONS) == kept - 1


def test_the_sum_of_negated_numbers_is_the_negated_sum() -> None:
    sql = "SELECT SUM(amount), SUM(-amount), SUM(amount - 20), COUNT(*) FROM people WHERE age > 50"
    (row,) = sv.query(plan("tree", 2.0), reports("tree", 2.0), sql).rows
    plus, minus, moved, count = row.cells
    assert minus.value == pytest.approx(-plus.value)
    assert minus.std_error == pytest.approx(plus.std_error)
    # least squares weigh levels by the weights, which are moved by a little more than 20
    assert moved.value == pytest.approx(plus.value - 20 * count.value, rel=1e-3)
    # its errors cancel those of the count in part, and never more than all of them
    assert abs(plus.std_error - 20 * count.std_error) < moved.std_error < plus.std_error


def test_the_order_of_reports_does_not_matter() -> None:
    """They are read by cohort, with the public columns beside them."""
    sql = (
        "SELECT channel, COUNT(*), SUM(amount), AVG(amount) FROM people WHERE age > 40 "
        "GROUP BY channel"
    )
    heard = reports("auto", 2.0)
    shuffled = heard[np.random.default_rng(9).permutation(len(heard))]
    rows = [sv.query(plan("auto", 2.0), each, sql).rows for each in (heard, shuffled)]
    for one, other in zip(*rows, strict=True):
        assert one.keys == other.keys
        for cell, again in zip(one.cells, other.cells, strict=True):
            assert cell.value == pytest.approx(again.value, rel=1e-9)
            assert cell.std_error == pytest.approx(again.std_error, rel=1e-9)


def test_many_public_groups_are_fitted_once_and_kept() -> None:
    """A hundred tables of fifty groups are there for the next query."""
    people = 4000
    draws = np.random.default_rng(3)
    names = [f"s{number}" for number in range(50)]
    schema = sv.Schema(
        age=sv.Ordinal(0, 63),
        place=sv.Categorical(names, sensitive=False),
        amount=sv.Number(0, 100, sensitive=False),
    )
    question = sv.Queries(["age"], measures=["amount"], method="grids")
    made = sv.plan(schema, question, epsilon=2.0, people=people, public=["place"])
    crowd = {
        "age": draws.integers(0, 64, people),
        "place": draws.choice(names, people),
        "amount": draws.integers(0, 100, people),
    }
    asked = open_session(made, sv.simulate(made, crowd, seed=1))
    fitted = []
    fit = asked.source.fit

    def counted(rows: Integers | None, weights: Integers | None) -> FittedTable:
        fitted.append(0 if rows is None else len(rows))
        return fit(rows, weights)

    asked.source.fit = counted  # type: ignore[method-assign]
    sql = "SELECT place, COUNT(*), SUM(amount) FROM people WHERE age < {} GROUP BY place"
    assert len(asked.ask(sql.format(20)).rows) == 50
    # each report is folded once for the counts and once for the sums
    assert (len(fitted), sum(fitted)) == (100, 2 * people)
    asked.ask(sql.format(30))
    assert len(fitted) == 100
