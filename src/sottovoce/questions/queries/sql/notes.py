"""What an analyst should know of an answer: ranges that were clipped, values nobody can have."""

from __future__ import annotations

from difflib import get_close_matches

from sqlglot import exp

from sottovoce.questions.queries.sql.columns import QueryColumns
from sottovoce.questions.queries.sql.source import WhisperedColumn
from sottovoce.questions.queries.sql.spans import span_of
from sottovoce.schema import Ordinal

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def domain_notes(node: exp.Expr, columns: QueryColumns, text: str) -> list[str]:
    """What an atom compares a whispered column with that is outside of its domain."""
    if isinstance(node, exp.Not):
        node = node.this
    if isinstance(node, exp.Between):
        column, literals = node.this, [node.args["low"], node.args["high"]]
    elif isinstance(node, exp.In):
        column, literals = node.this, list(node.expressions)
    elif isinstance(node, _COMPARISONS):
        column, literals = node.this, [node.expression]
        if not isinstance(column, exp.Column):
            column, literals = node.expression, [node.this]
    else:
        return []
    if not isinstance(column, exp.Column) or not columns.dimensions(column):
        return []
    dimension = columns.dimension(columns.dimensions(column)[0])
    start, end = span_of(node, text)
    clause = " ".join(text[start:end].split())
    found = []
    for literal in literals:
        note = _outside(literal, dimension)
        if note is not None:
            found.append(f"{clause}: {note}")
    return found


def _outside(literal: exp.Expr, dimension: WhisperedColumn) -> str | None:
    number = _number(literal)
    attribute = dimension.attribute
    if number is not None and isinstance(attribute, Ordinal):
        if attribute.low <= number <= attribute.high:
            return None
        side = "below" if number < attribute.low else "above"
        return (
            f"{literal.sql()} lies {side} the domain of {dimension.name} "
            f"({dimension.domain_text()}); the range is clipped to it"
        )
    if isinstance(literal, exp.Literal) and literal.is_string and dimension.values.dtype == object:
        labels = [str(label) for label in dimension.values]
        if literal.this in labels:
            return None
        near = get_close_matches(literal.this, labels, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{dimension.name} has no value {literal.this!r}{hint}"
    return None


def _number(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.this)
    return None
