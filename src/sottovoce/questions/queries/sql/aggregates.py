"""Aggregates as a query names them: what is counted, summed or ranked, and of whom."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import TokenType, exp

from sottovoce.questions.queries.sql.columns import QueryColumns, written
from sottovoce.questions.queries.sql.spans import refused, span_of

COUNT_KIND, SUM_KIND, AVG_KIND, VARIANCE_KIND, STDDEV_KIND, QUANTILE_KIND = (
    "count",
    "sum",
    "avg",
    "variance",
    "stddev",
    "quantile",
)
_KINDS: tuple[tuple[type[exp.Expr], str, bool], ...] = (
    (exp.Sum, SUM_KIND, False),
    (exp.Avg, AVG_KIND, False),
    (exp.StddevPop, STDDEV_KIND, True),
    (exp.StddevSamp, STDDEV_KIND, False),
    (exp.Stddev, STDDEV_KIND, False),
    (exp.VariancePop, VARIANCE_KIND, True),
    (exp.Variance, VARIANCE_KIND, False),
)
_WRAPPED = (exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)  # what stands around an aggregate
ANSWERED = "COUNT, SUM, AVG, STDDEV, VARIANCE, MEDIAN and QUANTILE"


@dataclass(frozen=True)
class Call:
    """One aggregate of a query, its columns resolved.

    ``argument``: what is added up; None for all people. ``condition``: that of FILTER.
    ``population``: whether a variance divides by the count, not by one less.
    ``dimension``, ``share``: of a quantile.
    """

    key: str  # the same for the same aggregate
    kind: str
    node: exp.Expr
    argument: exp.Expr | None = None
    condition: exp.Expr | None = None
    population: bool = False
    dimension: int = 0
    share: float = 0.5


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, or one with FILTER."""
    if isinstance(node, exp.Filter | exp.AggFunc):
        return True
    if isinstance(node, _WRAPPED):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() == "var"


def find_aggregates(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates in an expression, FILTER included."""
    if is_aggregate(node):
        return [node]
    found = []
    for child in node.iter_expressions():
        found += find_aggregates(child)
    return found


def read_call(node: exp.Expr, columns: QueryColumns, text: str, tables: tuple[str, ...]) -> Call:
    """An aggregate, or a refusal of it."""
    condition = None
    function = node
    if isinstance(node, exp.Filter):
        condition = columns.resolve(node.expression.this, text, tables)
        function = node.this
    if isinstance(function, exp.WithinGroup):
        raise refused("WITHIN GROUP is not answered", function, text, "use QUANTILE(column, share)")
    if isinstance(function, _WRAPPED):
        function = function.this
    _refuse_distinct(function, text)
    key = _key(node, columns, text, tables)
    if isinstance(function, exp.Count):
        counted = function.this
        if function.expressions:
            raise refused("COUNT takes one expression, or *", function, text)
        argument = None
        if isinstance(counted, exp.Star) and any(counted.args.values()):
            raise refused("COUNT(*) counts people, whatever their columns are", function, text)
        if counted is not None and not isinstance(counted, exp.Star):
            argument = columns.resolve(counted, text, tables)
        return Call(key, COUNT_KIND, node, argument, condition)
    if isinstance(function, exp.CountIf):
        _refuse_more(function, 1, text)
        where = columns.resolve(function.this, text, tables)
        both = where if condition is None else exp.and_(condition, where)
        return Call(key, COUNT_KIND, node, None, both)
    if isinstance(function, exp.Anonymous) and len(function.expressions) == 1:
        argument = columns.resolve(function.expressions[0], text, tables)
        return Call(key, VARIANCE_KIND, node, argument, condition)
    for known, kind, population in _KINDS:
        if type(function) is known and not isinstance(function.this, exp.Star):
            argument = columns.resolve(function.this, text, tables)
            return Call(key, kind, node, argument, condition, population)
    if isinstance(function, exp.Median | exp.Quantile | exp.PercentileDisc):
        return _quantile(function, key, node, condition, columns, text, tables)
    raise _refusal(function, columns, text)


def _key(node: exp.Expr, columns: QueryColumns, text: str, tables: tuple[str, ...]) -> str:
    """The same for the same aggregate, however its columns are spelled."""
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        column.replace(columns.resolve(column, text, tables))
    return written(copy)


def _quantile(
    function: exp.Expr,
    key: str,
    node: exp.Expr,
    condition: exp.Expr | None,
    columns: QueryColumns,
    text: str,
    tables: tuple[str, ...],
) -> Call:
    share = 0.5
    if not isinstance(function, exp.Median):
        _refuse_more(function, 2, text)
        given = function.args.get("quantile") or function.args.get("expression")
        is_number = isinstance(given, exp.Literal) and not given.is_string
        share = float(given.this) if is_number and given is not None else -1.0
        if not 0 < share < 1:
            where = given if isinstance(given, exp.Expression) else function
            raise refused(
                "a quantile must be a number greater than 0 and less than 1",
                where,
                text,
                "for example: QUANTILE(age, 0.9)",
            )
    of = columns.resolve(function.this, text, tables)
    dimensions = columns.dimensions(of)
    if not isinstance(of, exp.Column) or not dimensions:
        raise refused(
            "quantiles are answered of a whispered column, by itself",
            function,
            text,
            "for example: MEDIAN(age)",
        )
    if not columns.dimension(dimensions[0]).is_number:
        name = columns.dimension(dimensions[0]).name
        raise refused(f"{name} has no order, and no quantiles", function, text, "use GROUP BY")
    return Call(key, QUANTILE_KIND, node, None, condition, dimension=dimensions[0], share=share)


def _refuse_distinct(function: exp.Expr, text: str) -> None:
    if function.find(exp.Distinct):
        raise refused(
            "DISTINCT is not answered: who was not seen cannot be told from who is rare",
            function,
            text,
            "use GROUP BY to see how many people have each value",
        )
    if function.find(exp.Order):
        raise refused("ORDER BY inside of an aggregate is not answered", function, text)


def _refuse_more(function: exp.Expr, count: int, text: str) -> None:
    """Refuse more arguments than there can be, which the parser would leave out."""
    start, _ = span_of(function, text)
    depth, commas = 0, 0
    for token in sqlglot.tokenize(text[start:], dialect="duckdb"):
        kind = token.token_type  # a text in quotes may be a comma or a bracket, too
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        commas += kind == TokenType.COMMA and depth == 1
        if kind == TokenType.R_PAREN and depth == 0:
            break
    if commas >= count:
        name = text[start:].partition("(")[0].strip().upper()
        rule = "one argument" if count == 1 else "a column and a share"
        raise refused(f"{name} takes {rule}", function, text)


def _refusal(function: exp.Expr, columns: QueryColumns, text: str) -> Exception:
    start, _ = span_of(function, text)
    called = re.match(r"\w+", text[start:])  # as it was written
    name = called[0].upper() if called else "this"
    if isinstance(function, exp.Min | exp.Max):
        hint = "for example: QUANTILE(age, 0.99); one person's value is hidden by design"
        return refused(f"{name} is not answered", function, text, hint)
    if isinstance(function, exp.PercentileCont):
        return refused(
            "quantiles that interpolate are not answered",
            function,
            text,
            "use QUANTILE(column, share)",
        )
    if isinstance(function.this, exp.Star):
        return refused(f"{name} takes an expression", function, text, "for example: COUNT(*)")
    return refused(
        f"the aggregate {name} is not answered", function, text, f"answered are {ANSWERED}"
    )
