"""What an analyst should know of an answer: ranges that were clipped, values nobody can have."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sqlglot import exp

from sottovoce.questions.queries.sql.columns import QueryColumns
from sottovoce.questions.queries.sql.spans import span_of
from sottovoce.schema import Attribute, Categorical, FixedPoint, Ordinal

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def domain_notes(node: exp.Expr, columns: QueryColumns, text: str) -> list[str]:
    """What an atom compares a column with that nobody can hold."""
    column, literals = _compared(node.this if isinstance(node, exp.Not) else node)
    known = None if column is None else _known(column, columns)
    if known is None:
        return []
    start, end = span_of(node.this if isinstance(node, exp.Not) else node, text)
    clause = " ".join(text[start:end].split())
    notes = [_outside(literal, *known) for literal in literals]
    return [f"{clause}: {note}" for note in notes if note is not None]


def _compared(node: exp.Expr) -> tuple[exp.Expr | None, list[exp.Expr]]:
    """The side of a comparison that may be a column, and what it is compared with."""
    if isinstance(node, exp.Between):
        return node.this, [node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        return node.this, list(node.expressions)
    if isinstance(node, _COMPARISONS):
        if isinstance(node.this, exp.Column):
            return node.this, [node.expression]
        return node.expression, [node.this]
    return None, []


def _known(column: exp.Expr, columns: QueryColumns) -> tuple[str, Attribute] | None:
    """The name of a column, and what it may hold, if that is known."""
    if not isinstance(column, exp.Column):
        return None
    dimensions, publics = columns.dimensions(column), columns.publics(column)
    if dimensions:
        whispered = columns.dimension(dimensions[0])
        return whispered.name, whispered.attribute
    if publics:
        name = columns.source.public_names[publics[0]]
        attribute = columns.source.public_attribute(name)
        return None if attribute is None else (name, attribute)
    return None


def _outside(literal: exp.Expr, name: str, attribute: Attribute) -> str | None:
    number = _number(literal)
    if number is not None and isinstance(attribute, Ordinal | FixedPoint):
        low, high = attribute.low, attribute.high  # a fixed-point number has text
        if float(low) <= number <= float(high):
            return None
        side = "below" if number < float(low) else "above"
        return (
            f"{literal.sql()} lies {side} the domain of {name} ({low} to {high}); "
            "the range is clipped to it"
        )
    if (
        isinstance(literal, exp.Literal)
        and literal.is_string
        and isinstance(attribute, Categorical)
    ):
        labels = [str(label) for label in attribute.labels()]
        if literal.this in labels:
            return None
        near = _nearest(literal.this, labels)
        hint = f"; did you mean {near!r}?" if near is not None else ""
        return f"{name} has no value {literal.this!r}{hint}"
    return None


def _nearest(text: str, labels: Sequence[str]) -> str | None:
    """The label that is meant, perhaps: capitals are what is mistaken most."""
    lowered = {label.lower(): label for label in reversed(labels)}
    near = get_close_matches(text.lower(), lowered, n=1)
    return lowered[near[0]] if near else None


def _number(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.this)
    return None
