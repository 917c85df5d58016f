"""How much a survey may ask for if it is made over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.questions.base import Question
from sottovoce.schema import Schema

MAX_SURVEY_VALUES = 1 << 20  # of a survey made over HTTP, unless whoever runs the collector chooses
MAX_SURVEY_ATTRIBUTES = 64  # the same
# of a table of several attributes that somebody asks for, if its plan does not
MAX_SURVEY_TABLE_CELLS = 1 << 16
MAX_QUERY_BYTES = 1 << 12  # of an analyst's SQL
MAX_QUERY_ROWS = 10_000  # of the answer to it: one for each group and aggregate
# of a survey whose public columns are read for queries
MAX_QUERY_REPORTS = 20_000_000


def check_attributes(schema: Schema, most: int) -> None:
    """Refuse a survey of too many attributes: planning takes long in their number."""
    if len(schema) > most:
        raise InvalidInput(
            f"attributes ({len(schema):,}) must be at most {most:,} in a survey that is made over "
            "HTTP; give a larger plan to the command that starts the collector"
        )


def check_values(schema: Schema, question: Question, most: int) -> None:
    """Refuse a question whose answers would hold too many values."""
    values = question.values(schema)
    if values > most:
        raise InvalidInput(
            f"values ({values:,}) must be at most {most:,} in a survey that is made over HTTP; "
            "give a larger plan to the command that starts the collector"
        )


def check_table(plan: Plan, names: Sequence[str], most_cells: int, most_values: int) -> None:
    """Refuse a table that is too large to be made for whoever asks.

    Of several attributes it may have ``most_cells``. One attribute by itself, and a table that the
    plan itself asks for, may have ``most_values``: a survey of more is not made over HTTP.
    """
    asked = [plan.schema[name] for name in dict.fromkeys(names) if name in plan.schema]
    cells = prod(each.size for each in asked if not each.is_open)
    most = (
        most_values
        if len(asked) == 1 or plan.question.is_planned(plan.schema, names)
        else most_cells
    )
    if cells > most:
        raise InvalidInput(
            f"attributes: their table would have {cells:,} cells, and must have at most {most:,} "
            "here; ask about fewer attributes, or make it with `sottovoce estimate --marginal`"
        )


def check_query(plan: Plan, people: int, sql: str) -> None:
    """Refuse SQL of a survey that answers none, text that is too long, and reports that are too
    many to be read for it.
    """
    if not plan.question.answers_sql:
        raise InvalidInput(
            "survey: SQL needs a survey whose question is queries, and this one's is "
            f"{plan.question.kind}; ask for its estimates or tables"
        )
    size = len(sql.encode(errors="replace"))
    if size > MAX_QUERY_BYTES:
        raise InvalidInput(f"sql ({size:,} bytes) must have at most {MAX_QUERY_BYTES:,} bytes")
    if plan.columns and people > MAX_QUERY_REPORTS:
        raise InvalidInput(
            f"survey: queries of public columns are answered here for at most "
            f"{MAX_QUERY_REPORTS:,} reports; give the store to `sottovoce sql`"
        )
