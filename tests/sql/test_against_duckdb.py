"""Answers over people who are known are those that DuckDB gives, to the last digit."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.questions.queries.sql.answer import QueryAnswer
from sottovoce.questions.queries.sql.session import Session
from tests.sql.shop import database, session, source
from tests.sql.true_table import TrueTable

QUERIES = (
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*), SUM(amount), AVG(amount) FROM people WHERE age BETWEEN 30 AND 40",
    "SELECT state, SUM(amount), STDDEV(amount), VAR_POP(amount) FROM people "
    "WHERE age > 30 OR shop = 'a' GROUP BY state ORDER BY state",
    "SELECT shop, state, COUNT(*) AS n, AVG(age), VARIANCE(age), SUM(amount * age - age / 2) "
    "FROM people WHERE NOT (age > hours AND shop <> 'b') GROUP BY shop, state ORDER BY 1, 2",
    "SELECT QUANTILE(age, 0.9), QUANTILE(hours, 0.25) FROM people WHERE shop = 'a' OR smoker",
    "SELECT visits, QUANTILE(age, 0.5) FROM people WHERE age % 2 = 0 GROUP BY visits "
    "HAVING COUNT(*) > 30 ORDER BY visits",
    "SELECT shop, COUNT(*) FILTER (WHERE smoker), SUM(amount) FILTER (WHERE age < 30) FROM people "
    "GROUP BY 1 HAVING COUNT(*) > 10 ORDER BY 1 DESC",
    "SELECT age // 10 * 10 AS decade, smoker, COUNT(*) FROM people WHERE state LIKE '_A' "
    "GROUP BY decade, smoker ORDER BY decade, smoker LIMIT 5 OFFSET 1",
    "SELECT AVG(age * hours), SUM(CASE WHEN age > hours THEN age ELSE hours END) FROM people "
    "WHERE state IN ('NY', 'CA')",
    "SELECT SUM(amount / NULLIF(visits, 0)), AVG(amount / NULLIF(visits, 0)), "
    "COUNT(NULLIF(hours, 0)), AVG(NULLIF(age, 30)) FROM people WHERE age < 40",
    "SELECT visits % 3 AS v, COUNT(*), SUM(amount) FROM people WHERE (age > 30) = (hours > 20) "
    "GROUP BY v ORDER BY v",
    "SELECT p.shop, SUM(2 * AMOUNT + visits) AS s FROM people AS p WHERE Age > 20 GROUP BY p.shop "
    "ORDER BY s DESC LIMIT 1",
    "SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 50 THEN 'middle' END AS part, COUNT(*) "
    "FROM people GROUP BY part ORDER BY COUNT(*)",
    "SELECT COUNT(*) FROM people WHERE NULLIF(age, 30) <> 40 OR NOT (NULLIF(hours, 3) > 10)",
    "SELECT COUNT_IF(age > 40), COUNT(age), COUNT(1) FROM people WHERE visits > 2",
    "SELECT COUNT_IF(state <> ',(') AS others, COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people WHERE age IN (20, 30, NULL) OR state NOT IN ('NY', NULL)",
    "SELECT COUNT(*) FILTER (WHERE state = 'NY'), COUNT(*) FILTER (WHERE state = 'ny'), "
    "COUNT(*) FILTER (WHERE STATE = 'NY') FROM people",
    "SELECT state AS k, visits AS V, COUNT(*) FROM people GROUP BY K, v ORDER BY k, V",
    "SELECT COUNT(*) FROM people WHERE CASE WHEN shop = 'a' THEN visits > 3 WHEN age > 30 THEN "
    "true END OR CASE shop WHEN 'a' THEN age WHEN 'b' THEN visits ELSE 3 END > 20",
    "SELECT SUM(9223372036854775807), SUM(1e-300 * visits) FROM people WHERE age > 30",
    "SELECT COUNT(*) FROM people WHERE replace(state, 'NY', 'A') = 'A'",
)  # fmt: skip


@pytest.fixture(scope="module")
def shop() -> Session:
    return session()


@pytest.fixture(scope="module")
def boxes() -> Session:
    return session(boxes_only=True)


def assert_same(answer: QueryAnswer, sql: str) -> None:
    """Every value is DuckDB's, with an error of 0."""
    expected = database().sql(sql).fetchall()
    assert len(answer.rows) == len(expected)
    for row, wanted in zip(answer.rows, expected, strict=True):
        values = [*row.keys, *(cell.value for cell in row.cells)]
        for value, true in zip(values, wanted, strict=True):
            if true is None:
                assert value is None or isnan(value)
            elif isinstance(true, str | bool):
                assert value == true
            else:
                assert value == pytest.approx(float(true), rel=1e-9, abs=1e-7)
        assert all(cell.std_error == 0 for cell in row.cells if not isnan(cell.value))


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_those_of_duckdb(shop: Session, sql: str) -> None:
    assert_same(shop.ask(sql), sql)


def test_a_binned_column_is_cut_evenly(shop: Session) -> None:
    # a tenth of the values of a bin is taken for a tenth of its people
    whole = shop.ask("SELECT COUNT(*) FROM people WHERE salary < 300").value
    less = shop.ask("SELECT COUNT(*) FROM people WHERE salary < 200").value
    cut = shop.ask("SELECT COUNT(*) FROM people WHERE salary < 210 AND salary % 2 >= 0")
    found = database().sql("SELECT COUNT(*) FROM people WHERE salary < 300").fetchall()
    assert found == [(whole,)]
    assert cut.value == pytest.approx(less + (whole - less) / 10)
    assert cut.notes == ("a bin of salary was cut; its people are taken as spread evenly in it",)
    # both ends within one bin: on its integers, not the product of two parts of it
    inner = shop.ask("SELECT COUNT(*) FROM people WHERE salary > 209 AND salary < 220")
    assert inner.value == pytest.approx((whole - less) / 10)
    grouped = shop.ask("SELECT salary, COUNT(*) FROM people GROUP BY salary")
    assert [row.keys[0] for row in grouped.rows][:2] == ["0 to 99", "100 to 199"]


def test_bins_are_ordered_by_their_values() -> None:
    people = TrueTable({"x": sv.Ordinal(0, 49, bins=10)}, {"x": np.arange(50)}, {})
    bins = [f"{low} to {low + 4}" for low in range(0, 50, 5)]
    asked = Session(people)
    for end, expected in (
        ("", bins),
        ("ORDER BY x DESC LIMIT 3", bins[:-4:-1]),
        ("ORDER BY 1 LIMIT 2", bins[:2]),
    ):
        answer = asked.ask(f"SELECT x, COUNT(*) FROM people GROUP BY x {end}")
        assert [row.keys[0] for row in answer.rows] == expected


ATOMS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["age", "hours", "visits", "NULLIF(age, 40)", "age % 7"]),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.integers(-3, 70),
    ),
    st.builds(
        "{} {}BETWEEN {} AND {}".format,
        st.sampled_from(["age", "hours", "amount"]),
        st.sampled_from(["", "NOT "]),
        st.integers(0, 50),
        st.integers(10, 70),
    ),
    st.builds("state IN ('{}', '{}')".format, *[st.sampled_from(["NY", "WA", "XX"])] * 2),
    st.sampled_from(
        ["smoker", "shop = 'a'", "state LIKE 'N%'", "state > 'M'", "amount > 20.5", "TRUE", "NULL"]
    ),
)
COMPARED = st.sampled_from(
    ["age > hours + 10", "age > visits * 5", "smoker = (age > 40)", "hours < amount"]
)


def conditions(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=6,
    )


AGGREGATES = "COUNT(*), SUM(amount), AVG(age), SUM(hours * amount)"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(conditions(ATOMS | COMPARED))
def test_any_condition_means_what_it_means_to_duckdb(shop: Session, condition: str) -> None:
    sql = f"SELECT {AGGREGATES} FROM people WHERE {condition}"
    (expected,) = database().sql(sql).fetchall()
    (row,) = shop.ask(sql).rows
    for cell, true in zip(row.cells, expected, strict=True):
        # over nobody SQL sums up to NULL, and we to 0
        if true is None:
            assert cell.value == 0 or isnan(cell.value)
        else:
            assert cell.value == pytest.approx(float(true), rel=1e-9, abs=1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(conditions(ATOMS))
def test_inclusion_and_exclusion_says_the_same(
    shop: Session, boxes: Session, condition: str
) -> None:
    sql = f"SELECT state, COUNT(*), SUM(amount) FROM people WHERE {condition} GROUP BY state"
    one, other = shop.ask(sql), boxes.ask(sql)
    assert [row.keys for row in one.rows] == [row.keys for row in other.rows]
    for row, same in zip(one.rows, other.rows, strict=True):
        for cell, twin in zip(row.cells, same.cells, strict=True):
            assert cell.value == pytest.approx(twin.value, rel=1e-9, abs=1e-6)


def test_conditions_on_public_columns_alone_need_no_axis(boxes: Session) -> None:
    for condition in ("shop = 'a' AND visits > 3", "NOT (shop = 'a' AND visits > 3) OR visits = 2"):
        sql = f"SELECT COUNT(*), SUM(amount) FROM people WHERE {condition}"
        assert_same(boxes.ask(sql), sql)


def test_groups_of_public_columns_are_fitted_once_each() -> None:
    people = source()
    asked = Session(people)
    asked.ask("SELECT visits, COUNT(*) FROM people WHERE age > 30 GROUP BY visits")
    assert people.fits == 10  # visits 0 to 9
    asked.ask("SELECT visits, COUNT(*) FROM people WHERE hours < 30 GROUP BY visits")
    assert people.fits == 10
    asked.ask("SELECT COUNT(*) FROM people WHERE visits = 3 AND age < 30")
    assert people.fits == 10  # the same reports as before


def test_reports_are_grouped_by_what_a_comparison_tells_not_by_their_values() -> None:
    people = source()
    asked = Session(people)
    answer = asked.ask("SELECT COUNT(*), SUM(visits) FROM people WHERE hours < amount / 10")
    # amounts have hundreds of values; hours are below none, 0, 0 to 1, ... or 0 to 4
    assert answer.explanation.groups == 6
    assert people.fits <= 2 * 6


def test_columns_of_an_answer_keep_apart_whatever_they_are_called(shop: Session) -> None:
    answer = shop.ask(
        "SELECT shop AS n, state AS n, COUNT(*) AS n, SUM(amount) AS n_3_low FROM people "
        "GROUP BY shop, state"
    )
    assert answer.to_rows()[0]["columns"] == {"n": "a", "n_2": "CA"}
    parts = ["", "_std_error", "_low", "_high"]
    names = [*(f"n_3{part}" for part in parts), *(f"n_3_low_2{part}" for part in parts)]
    assert list(answer.to_pandas()) == ["n", "n_2", *names]
