"""Where a part of a parsed query stands in its text."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from sottovoce.questions.queries.sql.errors import SqlError

_CALL = re.compile(r"\w+\s*\(\s*(DISTINCT\s*)?\Z", re.IGNORECASE)
_TEST = re.compile(r"\s+IS\s+(NOT\s+)?(NULL|TRUE|FALSE)\b", re.IGNORECASE)
Span = tuple[int, int]


def span_of(node: exp.Expr, text: str) -> Span:
    """(first character, one past the last) of a node; the whole text if it is not known.

    The parser keeps the places of names and literals only: brackets and the names of functions
    around them are added.
    """
    starts: list[int] = []
    ends: list[int] = []
    for part in node.walk():
        meta: dict[str, Any] = part.meta
        if "start" in meta and "end" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
    if not starts:
        return 0, len(text)
    start, end = min(starts), max(ends)
    called_node = node.this if isinstance(node, exp.Filter) else node
    if isinstance(called_node, exp.Func) and "start" not in called_node.meta:
        called = _CALL.search(text, 0, start)
        if called is not None:
            start = called.start()
    if isinstance(node, exp.Is | exp.Not):
        tested = _TEST.match(text, end)
        if tested is not None:
            end = tested.end()
    return _balanced(text, start, end)


def _balanced(text: str, start: int, end: int) -> Span:
    """The span with as many brackets closed as are opened in it."""
    missing = text.count("(", start, end) - text.count(")", start, end)
    while missing > 0:
        closing = text.find(")", end)
        if closing < 0:
            break
        missing += text.count("(", end, closing) - 1
        end = closing + 1
    return start, end


def from_keyword(keyword: str, span: Span, text: str) -> Span:
    """The span from the last time that a keyword stands before it."""
    found = None
    for match in re.finditer(rf"\b{keyword}\b", text[: span[0]], re.IGNORECASE):
        found = match.start()
    return span if found is None else (found, span[1])


def refused(problem: str, node: exp.Expr, text: str, hint: str | None = None) -> SqlError:
    """A refusal of the clause that a node is."""
    return SqlError(problem, text, span_of(node, text), hint)
