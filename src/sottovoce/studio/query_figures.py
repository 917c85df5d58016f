"""The answer to a query as the studio's page shows it. Runs in the process that answers queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sottovoce.ground.labels import visible, visible_lines
from sottovoce.pages.charts import answer_chart
from sottovoce.service.query_sessions import QueryPeople

if TYPE_CHECKING:
    from sottovoce.questions.queries.sql.answer import QueryAnswer

MAX_QUERY_TABLE_ROWS = 500  # of a table on a page
MAX_QUERY_CHARTS = 4  # aggregates that are drawn


@dataclass(frozen=True)
class QueryPicture:
    """A table, its chart, and what to know of both."""

    keys: int  # columns that name a group; the others are numbers
    heads: list[str]
    rows: list[list[str]]
    more: int  # rows that are left out
    svg: str  # nothing if there are no rows
    notes: list[str]
    explanation: str
    of: QueryPeople


def query_picture(answer: QueryAnswer, of: QueryPeople) -> QueryPicture:
    """What the page shows of an answer."""
    heads, rows = answer.as_text(MAX_QUERY_TABLE_ROWS)
    return QueryPicture(
        keys=len(answer.columns),
        heads=heads,
        rows=rows,
        more=len(answer.rows) - len(rows),
        svg=answer_chart(_first(answer).plot()) if rows else "",
        notes=[visible(note) for note in answer.notes],
        explanation=visible_lines(answer.explain()),
        of=of,
    )


def _first(answer: QueryAnswer) -> QueryAnswer:
    """An answer of the first aggregates alone, with names that can be drawn."""
    rows = tuple(replace(row, cells=row.cells[:MAX_QUERY_CHARTS]) for row in answer.rows)
    names = tuple(visible(name) for name in answer.aggregates[:MAX_QUERY_CHARTS])
    columns = tuple(visible(name) for name in answer.columns)
    return replace(answer, columns=columns, aggregates=names, rows=rows)
