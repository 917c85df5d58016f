"""A query that a plan can answer, for whoever has not written one yet."""

from __future__ import annotations

import re

from sottovoce.protocol.plan import Plan
from sottovoce.schema import Attribute, Boolean, Categorical, FixedPoint, Ordinal

MAX_GROUPED_VALUES = 64  # of a column that an example groups by
_BARE_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = (
    "all", "and", "any", "as", "asc", "between", "by", "case", "cast", "desc", "distinct", "else",
    "end", "false", "from", "group", "having", "in", "is", "join", "like", "limit", "not", "null",
    "offset", "on", "or", "order", "select", "table", "then", "true", "union", "using", "when",
    "where", "with",
)  # fmt: skip


def example_query(plan: Plan) -> str:
    """A SELECT over the plan's own columns: a range of a whispered one, a public measure if there
    is one, grouped by a column of few values.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(age=sv.Ordinal(18, 81), state=sv.Categorical(["NY", "WA"]))
    >>> plan = sv.plan(schema, sv.Queries(["age", "state"], method="tree"), epsilon=1, people=1000)
    >>> print(example_query(plan))
    SELECT state, COUNT(*)
    FROM people
    WHERE age BETWEEN 34 AND 50
    GROUP BY state
    """
    whispered = plan.cohorts.attributes
    selected = next((name for name in whispered if _is_ordered(plan.schema[name])), whispered[0])
    listed = [*plan.columns, *whispered]
    group = next((n for n in listed if n != selected and _is_list(plan.schema[n])), None)
    measure = next((n for n in plan.columns if isinstance(plan.schema[n], FixedPoint)), None)
    aggregate = "COUNT(*)" if measure is None else f"SUM({quoted(measure)})"
    heads = [aggregate] if group is None else [quoted(group), aggregate]
    lines = [f"SELECT {', '.join(heads)}", "FROM people"]
    lines.append(f"WHERE {_condition(quoted(selected), plan.schema[selected])}")
    if group is not None:
        lines.append(f"GROUP BY {quoted(group)}")
    return "\n".join(lines)


def quoted(name: str) -> str:
    """A column's name as SQL has it.

    >>> quoted("age"), quoted("hours-per-week"), quoted("group")
    ('age', '"hours-per-week"', '"group"')
    """
    if _BARE_NAME.fullmatch(name) and name not in _RESERVED:
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _is_ordered(attribute: Attribute) -> bool:
    return isinstance(attribute, Ordinal)


def _is_list(attribute: Attribute) -> bool:
    return isinstance(attribute, Boolean | Categorical) and attribute.size <= MAX_GROUPED_VALUES


def _condition(name: str, attribute: Attribute) -> str:
    """The second quarter of a range, or the first value."""
    if isinstance(attribute, Ordinal):
        quarter = (attribute.high - attribute.low + 1) // 4
        return f"{name} BETWEEN {attribute.low + quarter} AND {attribute.low + 2 * quarter}"
    first = attribute.labels()[0]
    if isinstance(attribute, Boolean):
        return name
    if isinstance(first, int):
        return f"{name} = {first}"
    text = str(first).replace("'", "''")
    return f"{name} = '{text}'"
