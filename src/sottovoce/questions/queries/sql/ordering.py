"""HAVING, ORDER BY and LIMIT: they act on estimates, and DuckDB gives them their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from math import isfinite

from sqlglot import exp

from sottovoce.ground.extras import imported
from sottovoce.questions.queries.sql.aggregates import is_aggregate, read_call
from sottovoce.questions.queries.sql.answer import AnswerRow, BinLabel
from sottovoce.questions.queries.sql.columns import QueryColumns, written
from sottovoce.questions.queries.sql.engine import EngineError
from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.outline import Outline
from sottovoce.questions.queries.sql.spans import refused


def chosen(rows: Sequence[AnswerRow], asked: Outline, columns: QueryColumns) -> list[int]:
    """The places of the rows that a query keeps, in its order.

    Args:
        rows: with all keys and all aggregates of the query.
        asked: what was asked.
        columns: of the source, whose engine compares.
    """
    select = asked.select
    everything = list(range(len(rows)))
    if select.having is None and not select.order:
        end = None if select.limit is None else select.offset + select.limit
        return everything[select.offset : end]
    pa = imported("pyarrow")
    table = {"place": pa.array(everything, pa.int64())}
    bins: dict[str, str] = {}  # by key of bins the column of their places
    for number in range(len(asked.keys)):
        keys = [row.keys[number] for row in rows]
        table[f"g{number}"] = pa.array(keys)
        if keys and isinstance(keys[0], BinLabel):
            bins[f"g{number}"] = f"b{number}"
            table[f"b{number}"] = pa.array([key.place for key in keys], pa.int64())
    for number in range(len(asked.calls)):
        values = [row.cells[number].value for row in rows]
        known = [value if isfinite(value) else None for value in values]
        table[f"a{number}"] = pa.array(known, pa.float64())
    columns.engine.add("answers", pa.table(table))
    sql = "SELECT place FROM answers"
    if select.having is not None:
        having = _rewritten(select.having, asked, columns)
        sql += f" WHERE CAST(({written(having)}) AS BOOLEAN)"
    order = []
    for each in select.order:
        ordered = _rewritten(each, asked, columns)
        name = ordered.this.name if isinstance(ordered.this, exp.Column) else ""
        if name in bins:
            ordered.set("this", exp.column(bins[name], quoted=True))
        order.append(written(ordered))
    sql += f" ORDER BY {', '.join([*order, 'place'])}"
    if select.limit is not None:
        sql += f" LIMIT {select.limit}"
    sql += f" OFFSET {select.offset}"
    try:
        found = columns.engine.ask(sql)
    except EngineError as wrong:
        first = select.having if select.having is not None else select.order[0]
        raise refused(str(wrong), first, select.text) from None
    places: list[int] = found.column("place").to_pylist()
    return places


def estimates_choose(asked: Outline, columns: QueryColumns) -> str:
    """The clauses that keep some rows of several by what was estimated of them; "" if none do."""
    select = asked.select
    if not asked.keys:
        return ""
    found = []
    if select.having is not None and _is_estimated(select.having, asked, columns):
        found.append("HAVING")
    is_cut = select.limit is not None or select.offset
    if is_cut and any(_is_estimated(each, asked, columns) for each in select.order):
        found.append("ORDER BY and LIMIT")
    return ", ".join(found)


def _is_estimated(node: exp.Expr, asked: Outline, columns: QueryColumns) -> bool:
    rewritten = _rewritten(node, asked, columns)
    return any(column.name.startswith("a") for column in rewritten.find_all(exp.Column))


def _rewritten(node: exp.Expr, asked: Outline, columns: QueryColumns) -> exp.Expr:
    """A condition or an order over the columns of the answer."""
    copy = node.copy()
    if isinstance(copy, exp.Ordered) and isinstance(copy.this, exp.Literal):
        copy.set("this", _by_number(copy.this, asked))
        return copy
    found = copy.transform(lambda part: _replaced(part, asked, columns))
    for part in found.walk():
        if not isinstance(part, exp.Ordered):
            columns.check(part, asked.select.text)
    return found


def _by_number(node: exp.Literal, asked: Outline) -> exp.Expr:
    place = int(node.this) if not node.is_string and node.this.isdigit() else 0
    if not 1 <= place <= len(asked.shown):
        raise refused(
            f"ORDER BY {node.this} must lie between 1 and {len(asked.shown)}, "
            "the columns of SELECT",
            node,
            asked.select.text,
        )
    return _shown_column(place - 1, asked)


def _shown_column(place: int, asked: Outline) -> exp.Expr:
    shown = asked.shown[place]
    name = f"g{shown.key}" if shown.key is not None else f"a{shown.call}"
    return exp.column(name, quoted=True)


def _refuse_misspelled(column: exp.Column, asked: Outline, columns: QueryColumns) -> None:
    """Refuse a name that no column has, and that is nearly one of SELECT's."""
    names = {item.name.lower(): item.name for item in asked.select.items}
    near = get_close_matches(column.name.lower(), list(names), n=1)
    if columns.find(column.name) is None and near:
        raise refused(
            f"there is no column {column.name!r}",
            column,
            asked.select.text,
            f"did you mean {names[near[0]]}?",
        )


def _replaced(part: exp.Expr, asked: Outline, columns: QueryColumns) -> exp.Expr:
    text, tables = asked.select.text, asked.select.table
    if is_aggregate(part):
        call = read_call(part, columns, text, tables)
        place = [each.key for each in asked.calls].index(call.key)
        return exp.column(f"a{place}", quoted=True)
    if not part.find(exp.Column) or any(is_aggregate(each) for each in part.walk()):
        return part
    if isinstance(part, exp.Column) and not part.table:
        for place, item in enumerate(asked.select.items):
            if item.name.lower() == part.name.lower():
                return _shown_column(place, asked)
        _refuse_misspelled(part, asked, columns)
    try:
        resolved = written(columns.resolve(part, text, tables))
    except SqlError:
        if isinstance(part, exp.Column):
            raise
        return part
    listed = [written(key) for key in asked.keys]
    if resolved in listed:
        return exp.column(f"g{listed.index(resolved)}", quoted=True)
    if isinstance(part, exp.Column):
        raise refused(f"{part.name} must stand in GROUP BY, or within an aggregate", part, text)
    return part
