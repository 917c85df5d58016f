"""What a query asks for, its names resolved: keys, aggregates, and what is shown of them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sottovoce.questions.queries.sql.aggregates import (
    Call,
    find_aggregates,
    is_aggregate,
    read_call,
)
from sottovoce.questions.queries.sql.columns import QueryColumns, written
from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.parse import Item, Select
from sottovoce.questions.queries.sql.spans import refused, span_of


@dataclass(frozen=True)
class Shown:
    """A column of the answer: a key or an aggregate, by its number."""

    name: str
    key: int | None = None
    call: int | None = None


@dataclass(frozen=True)
class Outline:
    """Keys and aggregates; the first ones are shown, others only choose or order rows."""

    select: Select
    where: exp.Expr | None
    keys: tuple[exp.Expr, ...]  # resolved
    calls: tuple[Call, ...]
    shown: tuple[Shown, ...]


def outline(select: Select, columns: QueryColumns) -> Outline:
    """Resolve all names of a query, or refuse it."""
    text, tables = select.text, select.table
    where = None
    if select.where is not None:
        _refuse_aggregates(select.where, "WHERE", text)
        where = columns.resolve(select.where, text, tables)
    keys: list[exp.Expr] = []
    for each in select.groups:
        node = _by_alias(each, select, columns)
        _refuse_aggregates(node, "GROUP BY", text)
        key = columns.resolve(node, text, tables)
        _check_key(key, columns, text)
        if written(key) not in [written(each) for each in keys]:
            keys.append(key)
    calls: dict[str, Call] = {}
    shown = []
    for item in select.items:
        shown.append(_shown(item, keys, calls, columns, select))
    if not calls:
        raise SqlError(
            "SELECT has no aggregate",
            text,
            (0, len(text)),
            "for example: SELECT state, COUNT(*) FROM people GROUP BY state",
        )
    others = [] if select.having is None else [select.having]
    for node in [*others, *select.order]:
        for aggregate in find_aggregates(node):
            call = read_call(aggregate, columns, text, tables)
            calls.setdefault(call.key, call)
    return Outline(select, where, tuple(keys), tuple(calls.values()), tuple(shown))


def _by_alias(node: exp.Expr, select: Select, columns: QueryColumns) -> exp.Expr:
    """What is selected under a name; as in DuckDB, a column of this name comes first."""
    if not isinstance(node, exp.Column) or node.table or columns.find(node.name) is not None:
        return node
    for item in select.items:
        is_alias = not isinstance(item.node, exp.Column) or item.node.name != item.name
        if is_alias and item.name.lower() == node.name.lower():
            return item.node
    return node


def _refuse_aggregates(node: exp.Expr, clause: str, text: str) -> None:
    found = find_aggregates(node)
    if found:
        hint = "use HAVING" if clause == "WHERE" else None
        raise refused(f"{clause} cannot hold an aggregate", found[0], text, hint)


def _check_key(key: exp.Expr, columns: QueryColumns, text: str) -> None:
    if columns.dimensions(key) and columns.publics(key):
        raise refused(
            "a key of GROUP BY must be of public or of whispered columns, not of both",
            key,
            text,
            "group by each of them",
        )
    if not columns.dimensions(key) and not columns.publics(key):
        raise refused("a key of GROUP BY must have a column in it", key, text)


def _shown(
    item: Item,
    keys: list[exp.Expr],
    calls: dict[str, Call],
    columns: QueryColumns,
    select: Select,
) -> Shown:
    text = select.text
    node = item.node
    while isinstance(node, exp.Paren):
        node = node.this
    if is_aggregate(node):
        call = read_call(node, columns, text, select.table)
        calls.setdefault(call.key, call)
        return Shown(item.name, call=list(calls).index(call.key))
    inner = find_aggregates(node)
    if inner:
        raise refused(
            "arithmetic on aggregates is not answered",
            node,
            text,
            "ask for each aggregate by itself; AVG(x) is SUM(x) / COUNT(*) with its error",
        )
    resolved = columns.resolve(node, text, select.table)
    listed = [written(key) for key in keys]
    if written(resolved) in listed:
        return Shown(item.name, key=listed.index(written(resolved)))
    raise _not_grouped(node, resolved, columns, text)


def _not_grouped(node: exp.Expr, resolved: exp.Expr, columns: QueryColumns, text: str) -> SqlError:
    dims = columns.dimensions(resolved)
    if dims and isinstance(resolved, exp.Column):
        name = columns.dimension(dims[0]).name
        return refused(
            f"{name} is whispered: nobody's value is known",
            node,
            text,
            f"count people by it: SELECT {name}, COUNT(*) ... GROUP BY {name}",
        )
    if not dims and not columns.publics(resolved):
        return refused("SELECT answers keys of GROUP BY and aggregates alone", node, text)
    start, end = span_of(node, text)
    name = " ".join(text[start:end].split())
    return refused(
        f"{name} must stand in GROUP BY, or within an aggregate",
        node,
        text,
        f"for example: SELECT {name}, COUNT(*) ... GROUP BY {name}",
    )
