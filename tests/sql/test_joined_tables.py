"""Public columns that do not travel, joined from an analyst's own table by the ids of reports."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.queries.sql import SqlError, open_session
from tests.sql.plans import truth

PEOPLE = 4000
SUM_BY_CHANNEL = "SELECT channel, SUM(amount) FROM people WHERE age > 40 GROUP BY channel"


def schema() -> sv.Schema:
    return sv.Schema(
        age=sv.Ordinal(18, 81),
        amount=sv.Number(0, 500, step="0.01", sensitive=False),
        channel=sv.Categorical(["shop", "web"], sensitive=False),
    )


@cache
def sent_plan() -> sv.Plan:
    """Amount and channel travel in clear."""
    question = sv.Queries(["age"], measures=["amount"], method="tree")
    return sv.plan(schema(), question, epsilon=2.0, people=PEOPLE, public=["channel"])


@cache
def unsent_plan() -> sv.Plan:
    """The same questions; nothing but whispers travels."""
    return sv.plan(schema(), sv.Queries(["age"], method="tree"), epsilon=2.0, people=PEOPLE)


def people() -> dict[str, Any]:
    return {name: truth()[name][:PEOPLE] for name in ("age", "amount", "channel")}


@cache
def heard() -> sv.Reports:
    return sv.simulate(unsent_plan(), {"age": people()["age"]}, seed=3)


@cache
def ids() -> Any:
    """One for each report; the first ends with a zero, which numpy's strings drop."""
    drawn = np.random.default_rng(9).integers(0, 256, (PEOPLE, 16), np.uint8)
    drawn[0, -1] = 0
    return drawn


def own_table(rows: Any = slice(None)) -> dict[str, Any]:
    """What the analyst has of the people in some rows, with columns that the plan lacks."""
    names = [each.tobytes().hex() for each in ids()[rows]]
    known = {name: people()[name][rows] for name in ("amount", "channel")}
    return {"report": names, "customer": np.arange(len(names)), **known}


def rows_of(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.to_rows()
    return found


def test_a_joined_table_answers_as_if_its_columns_had_travelled() -> None:
    # the same whispers with the columns beside them
    sent = sv.simulate(sent_plan(), people(), seed=3)
    assert np.array_equal(sent.payload, heard().payload)
    expected = rows_of(sv.query(sent_plan(), sent, SUM_BY_CHANNEL))
    shuffled = np.random.default_rng(2).permutation(PEOPLE)
    answer = sv.query(
        unsent_plan(),
        heard(),
        SUM_BY_CHANNEL,
        table=own_table(shuffled),
        on="report",
        ids=ids(),
    )
    assert rows_of(answer) == expected
    assert not answer.notes
    # a row that is beside another person's report gives another answer
    table = own_table(shuffled)
    table["report"] = table["report"][1:] + table["report"][:1]
    wrong = sv.query(unsent_plan(), heard(), SUM_BY_CHANNEL, table=table, on="report", ids=ids())
    assert rows_of(wrong) != expected


def test_reports_without_a_row_are_left_out_and_counted() -> None:
    kept = np.arange(0, PEOPLE, 2)
    table = own_table(kept)
    table["report"] = [*table["report"][:-5], *(f"{number:032x}" for number in range(5))]
    session = open_session(unsent_plan(), heard(), table=table, on="report", ids=ids())
    answer = session.ask("SELECT COUNT(*), SUM(amount) FROM people")
    count, total = (cell.value for cell in answer.rows[0].cells)
    assert count == len(kept) - 5
    assert total == pytest.approx(float(people()["amount"][kept[:-5]].sum()))
    assert list(answer.notes) == [
        "2,005 of 4,000 reports have no row in the joined table and are left out",
        "5 rows of the joined table have no report",
    ]


def test_tables_of_every_form_are_read(tmp_path: Path) -> None:
    table = own_table()
    expected = None
    csv = tmp_path / "own.csv"
    lines = zip(table["report"], table["amount"], table["channel"], strict=True)
    csv.write_text(
        "report,amount,channel\n" + "\n".join(",".join(map(str, each)) for each in lines)
    )
    parquet = tmp_path / "own.parquet"
    pq.write_table(pa.table(table), parquet)
    binary = {**table, "report": [each.tobytes() for each in ids()]}
    for form in (table, pa.table(table), csv, parquet, binary):
        answer = sv.query(
            unsent_plan(), heard(), SUM_BY_CHANNEL, table=form, on="report", ids=ids()
        )
        expected = expected or rows_of(answer)
        assert rows_of(answer) == expected


def test_a_file_of_reports_needs_their_ids(tmp_path: Path) -> None:
    plain, exported = tmp_path / "plain.parquet", tmp_path / "exported.parquet"
    heard().write(plain)
    column = pa.array([each.tobytes() for each in ids()], pa.binary(16))
    pq.write_table(heard().to_arrow().add_column(0, "id", column), exported)
    answer = sv.query(unsent_plan(), exported, SUM_BY_CHANNEL, table=own_table(), on="report")
    assert len(answer.rows) == 2
    with pytest.raises(InvalidInput, match="must have a column 'id' of 16 bytes each"):
        sv.query(unsent_plan(), plain, SUM_BY_CHANNEL, table=own_table(), on="report")


def changed(**columns: Any) -> dict[str, Any]:
    return {**own_table(slice(3)), **columns}


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (changed(report=["00"] * 3), "column 'report' must hold ids of reports, 32 hexadecimal"),
        (changed(report=[1, 2, 3]), "column 'report' must hold ids of reports"),
        (changed(report=["00" * 16] * 3), "column 'report' must be different"),
        (changed(report=[f"{each:032x}" for each in (1, 2, 3)]), "no id in its column 'report'"),
        (changed(amount=[1, 2, 501]), "attribute 'amount'"),
        (changed(channel=["shop", "web", None]), "attribute 'channel'"),
        ({"report": own_table()["report"]}, r"that does not travel \(amount, channel\)"),
        ({"amount": [1]}, r"on \(report\) must be a column of the table"),
        ("no.csv", r"table \(no.csv\) must be a file that exists"),
        (7, "table must be a pandas or Arrow table"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(table: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule) as refusal:
        sv.query(unsent_plan(), heard(), SUM_BY_CHANNEL, table=table, on="report", ids=ids())
    assert "501" not in str(refusal.value)


def test_what_has_no_ids_or_nothing_to_join_is_refused() -> None:
    def ask(made: sv.Plan, reports: Any, own_ids: Any) -> None:
        sv.query(made, reports, SUM_BY_CHANNEL, table=own_table(), on="report", ids=own_ids)

    with pytest.raises(InvalidInput, match="these reports have none to join a table by"):
        ask(unsent_plan(), heard(), None)
    with pytest.raises(InvalidInput, match=r"ids \(3\) must be as many as reports \(4,000\)"):
        ask(unsent_plan(), heard(), ids()[:3])
    with pytest.raises(InvalidInput, match="single reports, not with an aggregate"):
        ask(unsent_plan(), sv.Aggregate(unsent_plan()).add(heard()), ids())
    with pytest.raises(InvalidInput, match="nothing can be joined"):
        ask(sent_plan(), sv.simulate(sent_plan(), people(), seed=3), ids())


def test_the_plan_and_a_refusal_say_what_is_not_sent() -> None:
    assert unsent_plan().unsent == ("amount", "channel")
    assert "Not sent: amount, channel; an analyst may join them by report id" in str(unsent_plan())
    assert "Not sent" not in str(sent_plan())
    with pytest.raises(SqlError, match="'amount' does not travel with reports"):
        sv.query(unsent_plan(), heard(), "SELECT SUM(amount) FROM people")
