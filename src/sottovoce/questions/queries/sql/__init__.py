"""SQL over a fitted table: an analyst's text in, a table with standard errors out.

The stages are files: ``parse`` (text to parts of a SELECT), ``columns`` and ``outline`` (names),
``predicates`` (conditions), ``rows`` (what runs in clear), ``masks`` or ``normal_form`` (conditions
to selections), ``fits`` and ``linear`` (selections to estimates), ``measures`` and ``quantiles``
(estimates to aggregates), ``ordering`` and ``answer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import finalize

from sottovoce.ground.extras import imported
from sottovoce.questions.queries.sql.errors import SqlError

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.questions.queries.sql.answer import QueryAnswer
    from sottovoce.questions.queries.sql.plan_source import Heard
    from sottovoce.questions.queries.sql.session import Session

__all__ = ["SqlError", "open_session", "query"]


def query(
    plan: Plan,
    reports: Heard,
    sql: str,
    *,
    level: float = 0.95,
    table: Any = None,
    on: str = "id",
    ids: Any = None,
) -> QueryAnswer:
    """The answer to one query, with standard errors and intervals.

    Args:
        plan: of :class:`~sottovoce.Queries`.
        reports: what was heard: reports, the path of a file or a folder of them, or an aggregate
            where no public column is needed.
        sql: a SELECT; the table may have any name. See docs/sql-language.md.
        level: of the intervals.
        table: your own, with public columns of the plan that do not travel: a pandas or Arrow
            table, a dict of columns, or the path of a CSV or Parquet file.
        on: the column of ``table`` that holds the ids of reports, in hexadecimal digits.
        ids: of the reports, in their order, if ``reports`` is an object: rows of 16 bytes, or
            hexadecimal digits. A file that a store exported has them.

    What was fitted to an object of reports is kept as long as the object, for the next query; not
    so with a table, which :func:`open_session` keeps.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(age=sv.Ordinal(18, 81))
    >>> plan = sv.plan(schema, sv.Queries(["age"], method="tree"), epsilon=4.0, people=4000)
    >>> reports = sv.simulate(plan, {"age": [20, 40, 60, 41] * 1000}, seed=1)
    >>> answer = query(plan, reports, "SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 50")
    >>> bool(abs(answer.value - 2000) < 4 * answer.rows[0].cells[0].std_error)
    True
    """
    if table is None:
        return _session_of(plan, reports).ask(sql, level)
    return open_session(plan, reports, table=table, on=on, ids=ids).ask(sql, level)


def open_session(
    plan: Plan, reports: Heard, *, table: Any = None, on: str = "id", ids: Any = None
) -> Session:
    """What was heard, ready for many queries: ``open_session(plan, reports).ask("SELECT ...")``.

    What one query fitted is kept for the next. See :func:`query` for ``table``, ``on``, ``ids``.
    """
    for library in ("sqlglot", "duckdb", "pyarrow"):
        imported(library)
    from sottovoce.questions.queries.sql.joining import JoinTable
    from sottovoce.questions.queries.sql.plan_source import PlanSource
    from sottovoce.questions.queries.sql.session import Session

    own = None if table is None else JoinTable(table, on)
    return Session(PlanSource(plan, reports, own, ids))


# by the identity of reports: what was fitted to them, until they are gone
_SESSIONS: dict[int, Session] = {}


def _session_of(plan: Plan, reports: Heard) -> Session:
    """The session of reports that were asked before, or a new one."""
    from sottovoce.protocol.reports import Reports

    if not isinstance(reports, Reports):  # a file may change, and an aggregate grow
        return open_session(plan, reports)
    key = id(reports)
    known = _SESSIONS.get(key)
    if known is not None and known.source.plan_id == plan.id:
        return known
    made = open_session(plan, reports)
    if known is None:
        finalize(reports, _SESSIONS.pop, key, None)
    _SESSIONS[key] = made
    return made
