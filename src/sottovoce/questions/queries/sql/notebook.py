"""SQL in a notebook's cell: ``%load_ext sottovoce``, then ``%%sottovoce plan reports``."""

from __future__ import annotations

import argparse
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, NoReturn

from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.queries.sql import query

if TYPE_CHECKING:
    from sottovoce.questions.queries.sql.answer import QueryAnswer

MAGIC = "sottovoce"
USAGE = f"%%{MAGIC} PLAN REPORTS [--level 0.95] [--table TABLE] [--on COLUMN] [--into NAME]"


class _Line(argparse.ArgumentParser):
    """What stands behind the magic's name; a fault in it must not end the notebook."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"%%{MAGIC}: {message}; write {USAGE}")


def _line() -> _Line:
    line = _Line(prog=f"%%{MAGIC}", add_help=False)
    line.add_argument("plan")
    line.add_argument("reports")
    line.add_argument("--level", type=float, default=0.95)
    line.add_argument("--table")
    line.add_argument("--on", default="id")
    line.add_argument("--into")
    return line


def answer_cell(line: str, cell: str, names: MutableMapping[str, Any]) -> QueryAnswer:
    """The answer to a cell of SQL.

    Args:
        line: the names of a plan and of its reports, and options; reports and a table may be
            paths, too.
        cell: a SELECT.
        names: the notebook's variables; ``--into NAME`` adds the answer to them.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(age=sv.Ordinal(18, 81))
    >>> plan = sv.plan(schema, sv.Queries(["age"], method="tree"), epsilon=4.0, people=4000)
    >>> reports = sv.simulate(plan, {"age": [20, 40, 60, 41] * 1000}, seed=1)
    >>> variables = {"plan": plan, "reports": reports}
    >>> answer_cell("plan reports --into found", "SELECT COUNT(*) FROM people", variables).value
    4000.0
    >>> sorted(variables)
    ['found', 'plan', 'reports']
    """
    asked = _line().parse_args(line.split())
    if asked.plan not in names:
        raise InvalidInput(f"%%{MAGIC}: there is no variable {asked.plan!r}; write {USAGE}")
    table = None if asked.table is None else names.get(asked.table, asked.table)
    answer = query(
        names[asked.plan],
        names.get(asked.reports, asked.reports),
        cell,
        level=asked.level,
        table=table,
        on=asked.on,
    )
    if asked.into is not None:
        names[asked.into] = answer
    return answer


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext sottovoce`` calls: make ``%%sottovoce`` known to a notebook."""

    def sottovoce(line: str, cell: str) -> QueryAnswer:
        """Answer SQL over whispers."""
        return answer_cell(line, cell, shell.user_ns)

    shell.register_magic_function(sottovoce, magic_kind="cell", magic_name=MAGIC)
