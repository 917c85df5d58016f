"""Text to the parts of one SELECT; whatever is not such a SELECT is refused by its shape."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.spans import from_keyword, refused, span_of

MAX_TEXT = 100_000  # characters of a query
MAX_BRACKET_DEPTH = 100  # brackets inside brackets
BYTE_ORDER_MARK = "\ufeff"  # which some editors put before a text
NEAR = 0.7  # how much alike a word and the keyword are that it may be meant to be
TOO_DEEP = "the query is nested too deeply"
EXAMPLE = "SELECT COUNT(*) FROM people WHERE age > 30"

_ANSWERED_PARTS = (
    "expressions", "from_", "where", "group", "having", "order", "limit", "offset",
)  # fmt: skip
_KEYWORDS = ("FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "BETWEEN", "AND", "OR")
_UNREAD_STATEMENTS = (
    "CALL", "CHECKPOINT", "DEALLOCATE", "DESCRIBE", "EXECUTE", "EXPLAIN", "EXPORT", "IMPORT",
    "INSTALL", "LOAD", "PRAGMA", "PREPARE", "RESET", "SET", "SHOW", "SUMMARIZE", "VACUUM",
)  # fmt: skip
# other parts of a SELECT, and what to do instead
_REFUSED_PARTS: tuple[tuple[str, str, str], ...] = (
    ("with_", "WITH is not answered", "a query is one SELECT over the people of the plan"),
    ("joins", "joins are not answered", "all columns belong to one table, the people of the plan"),
    ("laterals", "LATERAL is not answered", "a query is one SELECT over the people of the plan"),
    ("windows", "windows are not answered", "use GROUP BY"),
    ("qualify", "QUALIFY is not answered", "use HAVING"),
    ("distinct", "SELECT DISTINCT is not answered", "use GROUP BY"),
    ("sample", "samples are not answered", "every report counts; leave it out"),
    ("into", "SELECT INTO is not answered", "the answer has to_pandas() and to_arrow()"),
)


@dataclass(frozen=True)
class Item:
    """One of the SELECT list: an expression and the name of its column."""

    node: exp.Expr
    name: str


@dataclass(frozen=True)
class Select:
    """The parts of a query. ``table``: the names by which columns may be qualified."""

    text: str
    items: tuple[Item, ...]
    table: tuple[str, ...]
    where: exp.Expr | None
    groups: tuple[exp.Expr, ...]
    having: exp.Expr | None
    order: tuple[exp.Ordered, ...]
    limit: int | None
    offset: int


def parse(text: str) -> Select:
    """The parts of a query, or :class:`SqlError`.

    >>> parse("SELECT COUNT(*) AS n FROM people WHERE age > 30").items[0].name
    'n'
    """
    if not isinstance(text, str):
        raise SqlError("sql must be text, such as " + EXAMPLE)
    if len(text) > MAX_TEXT:
        raise SqlError(f"sql ({len(text)} characters) must have at most {MAX_TEXT}")
    text = text.removeprefix(BYTE_ORDER_MARK)
    _check_depth(text)
    statement = _statement(text)
    if isinstance(statement, exp.SetOperation):
        span = span_of(statement.expression, text)
        problem = "UNION, INTERSECT and EXCEPT are not answered"
        raise SqlError(problem, text, span, "use OR and AND")
    if not isinstance(statement, exp.Select):
        kind = text.split(maxsplit=1)[0].upper() if text.split() else "this"
        start = len(text) - len(text.lstrip())
        raise SqlError(
            f"only SELECT is answered, not {kind}",
            text,
            (start, start + len(kind)),
            f"for example: {EXAMPLE}",
        )
    _refuse_parts(statement, text)
    _refuse_nodes(statement, text)
    items = tuple(_item(node, text) for node in statement.expressions)
    if not items:
        raise SqlError("SELECT is empty", text, (0, len(text)), f"for example: {EXAMPLE}")
    where = statement.args.get("where")
    having = statement.args.get("having")
    order = statement.args.get("order")
    return Select(
        text=text,
        items=items,
        table=_table(statement, text),
        where=None if where is None else where.this,
        groups=_groups(statement, items, text),
        having=None if having is None else having.this,
        order=() if order is None else tuple(order.expressions),
        limit=_whole(statement.args.get("limit"), "LIMIT", text),
        offset=_whole(statement.args.get("offset"), "OFFSET", text) or 0,
    )


def _check_depth(text: str) -> None:
    """Refuse so many brackets inside brackets that a parser would run out of stack."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth > MAX_BRACKET_DEPTH:
            raise SqlError(
                f"brackets stand more than {MAX_BRACKET_DEPTH} deep", text, (place, place + 1)
            )


def _statement(text: str) -> exp.Expr:
    """The only statement of a text."""
    first = text.split(None, 1)[0].upper() if text.split() else ""
    if first.rstrip(";") in _UNREAD_STATEMENTS:
        # the parser would keep these as unread text, and write a line to the log
        start = len(text) - len(text.lstrip())
        hint = "answer.explain() says how a query was answered" if first == "EXPLAIN" else None
        span = (start, start + len(first))
        raise SqlError(
            f"only SELECT is answered, not {first}", text, span, hint or f"for example: {EXAMPLE}"
        )
    try:
        statements = sqlglot.parse(text, dialect="duckdb", error_message_context=len(text))
    except ParseError as wrong:
        raise _syntax_error(wrong, text) from None
    except TokenError:
        raise _token_error(text) from None
    except RecursionError:
        raise SqlError(TOO_DEEP) from None
    found = [statement for statement in statements if statement is not None]
    found = [statement for statement in found if not isinstance(statement, exp.Semicolon)]
    if not found:
        raise SqlError("sql is empty", hint=f"for example: {EXAMPLE}")
    if len(found) > 1:
        start = text.find(";") + 1
        start += len(text[start:]) - len(text[start:].lstrip())
        raise SqlError(
            "two statements: a query is one SELECT",
            text,
            (start, len(text.rstrip())),
            "ask them one after the other",
        )
    trailing = re.search(r",(?=\s*(FROM|WHERE|GROUP|HAVING|ORDER|LIMIT|\Z))", text, re.IGNORECASE)
    if trailing is not None and not _is_quoted(text, trailing.start()):
        span = trailing.span()
        raise SqlError("nothing follows this comma", text, span, "remove it")
    return found[0]


def _is_quoted(text: str, place: int) -> bool:
    """Whether a place stands within quotes."""
    before = text[:place]
    return before.count("'") % 2 == 1 or before.count('"') % 2 == 1


def _syntax_error(wrong: ParseError, text: str) -> SqlError:
    """The parser's complaint in words of the query's language."""
    if not wrong.errors:
        return SqlError("the query cannot be read as SQL", text, (0, len(text)))
    error = wrong.errors[0]
    start = len(error.get("start_context") or "")
    highlight = error.get("highlight") or ""
    span = (start, start + max(1, len(highlight)))
    description = str(error.get("description") or "")
    where = (
        f"line {text.count(chr(10), 0, start) + 1}, column {start - text.rfind(chr(10), 0, start)}"
    )
    is_last = not text[span[1] :].strip("; \n\t")
    if description.startswith("Required keyword") or (is_last and highlight.upper() in _KEYWORDS):
        problem = f"syntax error at {where}: something is missing after {highlight!r}"
    elif description.startswith("Expecting"):
        wanted = description.removeprefix("Expecting").strip()
        problem = f"syntax error at {where}: {wanted} is missing before {highlight!r}"
    else:
        problem = f"syntax error at {where}: {highlight!r} cannot stand here"
    return SqlError(problem, text, span, _misspelled(text[:start]))


def _misspelled(before: str) -> str | None:
    """A hint, if the word before an error is nearly a keyword; the first word should be SELECT."""
    words = re.findall(r"[A-Za-z_]+", before)
    for word, keywords in ((words[:1], ("SELECT",)), (words[-1:], _KEYWORDS)):
        near = get_close_matches(word[0].upper(), keywords, n=1, cutoff=NEAR) if word else []
        if near and near[0] != word[0].upper():
            return f"did you mean {near[0]} in place of {word[0]}?"
    return None


def _token_error(text: str) -> SqlError:
    """Text that cannot be split into words: a quote or a comment that never ends."""
    for quote in ("'", '"'):
        if text.count(quote) % 2:
            start = text.rfind(quote)
            line = text.count("\n", 0, start) + 1
            column = start - text.rfind("\n", 0, start)
            problem = f"syntax error at line {line}, column {column}: the quote is never closed"
            return SqlError(problem, text, (start, len(text)))
    return SqlError("syntax error: the query cannot be read as SQL", text, (0, len(text)))


def _refuse_parts(statement: exp.Select, text: str) -> None:
    for key, problem, hint in _REFUSED_PARTS:
        part = statement.args.get(key)
        if not part:
            continue
        node = part[0] if isinstance(part, list) else part
        span = span_of(node, text)
        keyword = {"with_": "WITH", "joins": "JOIN", "distinct": "DISTINCT"}.get(key)
        if keyword is not None:
            span = from_keyword(keyword, span, text) if span != (0, len(text)) else span
        raise SqlError(problem, text, span, hint)
    others = [key for key, part in statement.args.items() if part and key not in _ANSWERED_PARTS]
    if others:
        name = others[0].strip("_").upper()
        raise SqlError(f"this is not answered: {name}", text, (0, len(text)), "leave it out")


def _refuse_nodes(statement: exp.Select, text: str) -> None:
    """What may stand nowhere in a query."""
    for node in statement.walk():
        if node is statement:
            continue
        if isinstance(node, exp.Query):
            raise refused("subqueries are not answered", node, text, "write one SELECT")
        if isinstance(node, exp.Window):
            span = from_keyword("OVER", (len(text), len(text)), text)
            start = span_of(node.this, text)[0]
            end = text.find(")", span[0]) + 1 or len(text)
            raise SqlError("windows are not answered", text, (start, end), "use GROUP BY")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise SqlError(
                "placeholders are not answered", text, (0, len(text)), "write the value itself"
            )
        if isinstance(node, exp.Lambda | exp.Columns | exp.Array | exp.Struct):
            raise refused("lists and structures are not answered", node, text)


def _item(node: exp.Expr, text: str) -> Item:
    if isinstance(node, exp.Alias):
        return Item(node.this, node.alias)
    if isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    ):
        raise refused(
            "people's rows are not there to be selected",
            node,
            text,
            f"ask for aggregates, for example: {EXAMPLE}",
        )
    start, end = span_of(node, text)
    written = " ".join(text[start:end].split())
    return Item(node, node.name if isinstance(node, exp.Column) else written)


def _table(statement: exp.Select, text: str) -> tuple[str, ...]:
    """The name of the one table and its alias."""
    source = statement.args.get("from_")
    if source is None:
        raise SqlError("FROM is missing", text, (0, len(text)), f"for example: {EXAMPLE}")
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refused("FROM must name one table", table, text, "any name will do, such as people")
    name = table.this.name
    if not re.fullmatch(r"\w+", name) or table.args.get("db"):
        raise refused(
            "FROM must name one table, not a file", table, text, "any name will do, such as people"
        )
    others = [key for key, part in table.args.items() if part and key not in ("this", "alias")]
    if others or table.alias_column_names:
        raise refused("FROM must name one table, and nothing else", table, text)
    return (table.alias or name,)


def _groups(statement: exp.Select, items: tuple[Item, ...], text: str) -> tuple[exp.Expr, ...]:
    """The keys of GROUP BY; a number stands for what is selected there."""
    group = statement.args.get("group")
    if group is None:
        return ()
    if group.args.get("all"):
        return tuple(item.node for item in items if not item.node.find(exp.AggFunc))
    if any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")) or any(
        isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) for node in group.expressions
    ):
        node = group.expressions[0] if group.expressions else group
        raise refused(
            "ROLLUP, CUBE and GROUPING SETS are not answered", node, text, "ask one query for each"
        )
    if not group.expressions:
        span = from_keyword("GROUP", (len(text), len(text)), text)
        raise SqlError("nothing follows GROUP BY", text, span, "name a column, or leave it out")
    return tuple(_selected(node, items, text) for node in group.expressions)


def _selected(node: exp.Expr, items: tuple[Item, ...], text: str) -> exp.Expr:
    if not isinstance(node, exp.Literal) or node.is_string:
        return node
    place = int(node.this) if node.this.isdigit() else 0
    if not 1 <= place <= len(items):
        raise refused(
            f"GROUP BY {node.this} must lie between 1 and {len(items)}, the columns of SELECT",
            node,
            text,
        )
    return items[place - 1].node


def _whole(clause: exp.Expr | None, name: str, text: str) -> int | None:
    if clause is None:
        return None
    node = clause.args.get("expression")
    others = [key for key, part in clause.args.items() if part and key != "expression"]
    if others:  # a share of the rows, or so many of each kind
        raise refused(f"{name} must be a whole number of rows, and nothing else", clause, text)
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
        where = node if isinstance(node, exp.Expression) else clause
        raise refused(f"{name} must be a whole number", where, text)
    return int(node.this)
