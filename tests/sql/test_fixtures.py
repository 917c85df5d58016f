"""Queries with their decompositions, and queries that are refused with their exact messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.session import Session
from tests.sql.shop import session

HERE = Path(__file__).parent
REFUSED = json.loads((HERE / "refused.json").read_text(encoding="utf-8"))
DECOMPOSITIONS = json.loads((HERE / "decompositions.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shop() -> Session:
    return session()


@pytest.fixture(scope="module")
def boxes() -> Session:
    return session(boxes_only=True)


@pytest.mark.parametrize("case", REFUSED, ids=[case["sql"] for case in REFUSED])
def test_what_cannot_be_answered_is_refused_with_the_clause_underlined(
    shop: Session, case: dict[str, Any]
) -> None:
    with pytest.raises(SqlError) as wrong:
        shop.ask(case["sql"])
    assert str(wrong.value).split("\n") == case["error"]


@pytest.mark.parametrize("case", DECOMPOSITIONS, ids=[case["sql"] for case in DECOMPOSITIONS])
def test_a_query_becomes_these_selections(
    shop: Session, boxes: Session, case: dict[str, Any]
) -> None:
    asked = boxes if case.get("boxes_only") else shop
    told = asked.ask(case["sql"]).explanation.to_json()
    for part in ("clear", "whispered", "terms", "groups", "tables", "notes"):
        assert told[part] == case[part], part


def test_a_text_that_is_no_text_or_too_long_is_refused(shop: Session) -> None:
    with pytest.raises(SqlError, match="sql must be text"):
        shop.ask(None)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="must have at most 100000"):
        shop.ask("SELECT" + " " * 100_000)
    with pytest.raises(SqlError, match="brackets stand more than 100 deep"):
        shop.ask("SELECT COUNT(*) FROM people WHERE " + "(" * 5000 + "age > 1")


@pytest.mark.parametrize("joined", [" OR age = 30", " + 0"])
def test_a_long_chain_is_answered_and_a_longer_one_refused(shop: Session, joined: str) -> None:
    start = "SELECT COUNT(*) FROM people WHERE age = 30"
    assert shop.ask(start + joined * 100).value == shop.ask(start).value
    with pytest.raises(SqlError, match="the query is nested too deeply"):
        shop.ask(start + joined * 5_000)


def test_products_are_counted_before_they_are_made(shop: Session) -> None:
    many = "*".join(["(age + amount)"] * 40)  # 2^40 products
    with pytest.raises(SqlError, match="the expression has more than 64 products"):
        shop.ask(f"SELECT SUM({many}) FROM people")
    sums = "+".join(f"age * amount * {each}" for each in range(17))
    with pytest.raises(SqlError, match="what is squared here must have at most 16 products"):
        shop.ask(f"SELECT VARIANCE({sums}) FROM people")


def test_text_does_not_grow(shop: Session) -> None:
    # twelve of them would ask for 10^24 bytes
    text = "state"
    for _ in range(12):
        text = f"replace({text}, 'N', '{'N' * 100}')"
    for grown in (text, "replace(state, 'N', state)", "replace(state, lower(state), 'N')"):
        with pytest.raises(SqlError, match="no longer one than it takes out"):
            shop.ask(f"SELECT COUNT(*) FROM people WHERE {grown} = 'x'")
    assert shop.ask("SELECT COUNT(*) FROM people WHERE " + "state || " * 32 + "'' = 'x'").value == 0
    with pytest.raises(SqlError, match="at most 32 times"):
        shop.ask("SELECT COUNT(*) FROM people WHERE " + "state || " * 33 + "'' = 'x'")


def test_too_many_terms_are_refused_by_number() -> None:
    boxes = session(boxes_only=True)
    cells = [f"(age = {18 + each % 40} AND hours = {each // 40})" for each in range(300)]
    with pytest.raises(SqlError, match="the normal form of the condition has more than 256 parts"):
        boxes.ask("SELECT COUNT(*) FROM people WHERE " + " OR ".join(cells))
    # every one of the 2^12 - 1 intersections differs
    most = [f"(age <> {18 + each} AND hours <> {each})" for each in range(12)]
    with pytest.raises(SqlError, match="inclusion and exclusion needs more than 1,024 terms"):
        boxes.ask("SELECT COUNT(*) FROM people WHERE " + " OR ".join(most))


def test_a_column_of_the_answer_is_called_as_it_was_written(shop: Session) -> None:
    asked = "QUANTILE(age, 0.5) FILTER (WHERE hours > 3)"
    assert shop.ask(f"SELECT {asked} FROM people").aggregates == (asked,)
