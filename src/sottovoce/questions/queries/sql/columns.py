"""Names of a query: which columns are whispered and which are public, and what they hold."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
from sqlglot import exp

from sottovoce.ground.extras import imported
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.sql.engine import Engine, EngineError
from sottovoce.questions.queries.sql.recent import RecentCache
from sottovoce.questions.queries.sql.rows import RowColumn, RowGroup
from sottovoce.questions.queries.sql.source import QuerySource, WhisperedColumn
from sottovoce.questions.queries.sql.spans import refused

# by the number of a dimension or of a public column
WHISPERED, PUBLIC = "w", "u"
PUBLIC_TABLE = "public_columns"
MAX_KEPT_COLUMNS = 8  # of public expressions, one value for each report

MAX_JOINED_TEXTS = 32  # times || in an expression: all that is in between is held in memory

# functions of one row that give the same for the same values, whoever asks and whenever
ALLOWED_FUNCTIONS: tuple[type[exp.Expr], ...] = (
    exp.Abs, exp.And, exp.Case, exp.Cast, exp.Ceil, exp.Coalesce, exp.Concat, exp.Contains,
    exp.EndsWith, exp.Exp, exp.Floor, exp.Greatest, exp.If, exp.Least, exp.Left, exp.Length,
    exp.Ln, exp.Log, exp.Lower, exp.Nullif, exp.Or, exp.Pow, exp.RegexpLike, exp.Replace,
    exp.Right, exp.Round, exp.Sign, exp.Sqrt, exp.StartsWith, exp.Substring, exp.Trim,
    exp.TryCast, exp.Upper,
)  # fmt: skip
_OPERATORS: tuple[type[exp.Expr], ...] = (
    exp.Add, exp.Alias, exp.Between, exp.BitwiseAnd, exp.BitwiseNot, exp.BitwiseOr,
    exp.BitwiseXor, exp.Boolean, exp.Column, exp.DPipe, exp.DataType, exp.DataTypeParam, exp.Div,
    exp.EQ, exp.Escape, exp.GT, exp.GTE, exp.Identifier, exp.ILike, exp.In, exp.IntDiv, exp.Is,
    exp.LT, exp.LTE, exp.Like, exp.Literal, exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Paren, exp.SimilarTo, exp.Sub,
)  # fmt: skip


class QueryColumns:
    """The columns of a source, as a query names them."""

    def __init__(self, source: QuerySource, engine: Engine) -> None:
        self.source = source
        self.engine = engine
        self._arrow: dict[str, Any] = {}
        self.row_columns = RecentCache[RowColumn](MAX_KEPT_COLUMNS)
        self.weights = RecentCache[tuple[Any, bool]](MAX_KEPT_COLUMNS)
        self.row_groups = RecentCache[list[RowGroup]](MAX_KEPT_COLUMNS)

    # -- names

    def resolve(self, node: exp.Expr, text: str, tables: tuple[str, ...]) -> exp.Expr:
        """A copy in which every column is one of the source, by its number.

        Refused are unknown columns, and what is no function of one row.
        """
        joined = 0
        for part in node.walk():
            self.check(part, text)
            joined += isinstance(part, exp.DPipe | exp.Concat)
        if joined > MAX_JOINED_TEXTS:
            raise refused(f"|| must stand at most {MAX_JOINED_TEXTS} times here", node, text)
        copy = node.copy()
        places = [part for part in copy.walk() if isinstance(part, exp.Column)]
        for column in places:
            name = self._name(column, text, tables)
            column.set("table", None)
            # the place in the text stays with the identifier
            column.this.set("this", name)
            column.this.set("quoted", True)
        return copy

    def check(self, part: exp.Expr, text: str) -> None:
        """Refuse what is no function of one row."""
        if isinstance(part, exp.Replace) and _lengthens(part):
            raise refused(
                "replace must put in written text, and no longer one than it takes out",
                part,
                text,
                "for example: replace(state, 'N.Y.', 'NY')",
            )
        if isinstance(part, _OPERATORS + ALLOWED_FUNCTIONS):
            return
        if isinstance(part, exp.AggFunc):
            raise refused(
                "an aggregate cannot stand here", part, text, "use HAVING to select by aggregates"
            )
        if isinstance(part, exp.Func):
            name = part.name if type(part) is exp.Anonymous else part.sql_name()
            raise refused(
                f"the function {name.lower()} is not answered",
                part,
                text,
                "allowed are functions of one row, such as abs, floor, lower, coalesce and CASE",
            )
        raise refused("this is not answered", part, text)

    def _name(self, column: exp.Column, text: str, tables: tuple[str, ...]) -> str:
        qualifier = ".".join(part.name for part in column.parts[:-1])
        if qualifier and qualifier.lower() not in [table.lower() for table in tables]:
            raise refused(
                f"there is no table {qualifier!r}", column, text, f"the table is {tables[0]}"
            )
        found = self.find(column.name)
        if found is not None:
            return found
        for unsent in self.source.unsent_names:
            if unsent.lower() == column.name.lower():
                raise refused(
                    f"the public column {unsent!r} does not travel with reports",
                    column,
                    text,
                    "join it from a table of your own, by the ids of reports",
                )
        names = self.names
        lowered = {name.lower(): name for name in names}
        near = get_close_matches(column.name.lower(), list(lowered), n=1, cutoff=0.5)
        hint = f"did you mean {lowered[near[0]]}? " if near else ""
        listed = ", ".join(names[:20])
        raise refused(
            f"the plan has no column {column.name!r}", column, text, f"{hint}columns: {listed}"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, the whispered ones first."""
        whispered = tuple(each.name for each in self.source.dimensions)
        return whispered + self.source.public_names

    def find(self, name: str) -> str | None:
        """The name by number, such as w0 or u1; as in SQL upper case means nothing."""
        names = self.names
        matching = [place for place, known in enumerate(names) if known == name]
        if not matching:
            matching = [place for place, known in enumerate(names) if known.lower() == name.lower()]
        if not matching:
            return None
        place, whispered = matching[0], len(self.source.dimensions)
        return f"{WHISPERED}{place}" if place < whispered else f"{PUBLIC}{place - whispered}"

    # -- what an expression is about

    def dimensions(self, node: exp.Expr) -> tuple[int, ...]:
        """The numbers of the whispered columns in a resolved expression, increasing."""
        return _numbers(node, WHISPERED)

    def publics(self, node: exp.Expr) -> tuple[int, ...]:
        """The numbers of its public columns."""
        return _numbers(node, PUBLIC)

    def dimension(self, number: int) -> WhisperedColumn:
        """A whispered column by its number."""
        return self.source.dimensions[number]

    # -- what expressions are worth

    def over_domain(
        self, node: exp.Expr, expression: str, text: str
    ) -> tuple[tuple[int, ...], Any]:
        """What DuckDB makes of an expression over all values of its dimensions.

        Returns:
            (its dimensions, an Arrow column of all combinations, the last dimension fastest).
        """
        numbers = self.dimensions(node)
        for number in numbers:
            self._add_domain(number)
        tables = ", ".join(f"domain_{number}" for number in numbers)
        order = ", ".join(f"p{number}" for number in numbers)
        sql = f"SELECT {expression} AS answer"
        if numbers:
            sql += f" FROM {tables} ORDER BY {order}"
        return numbers, self._asked(sql, node, text).column("answer").combine_chunks()

    def over_domain_and(
        self, node: exp.Expr, expression: str, text: str, table: str, place: str
    ) -> Any:
        """The same for each row of one more table, whose rows come first."""
        numbers = self.dimensions(node)
        for number in numbers:
            self._add_domain(number)
        tables = ", ".join([table, *(f"domain_{number}" for number in numbers)])
        order = ", ".join([place, *(f"p{number}" for number in numbers)])
        sql = f"SELECT {expression} AS answer FROM {tables} ORDER BY {order}"
        return self._asked(sql, node, text).column("answer").combine_chunks()

    def over_rows(self, node: exp.Expr, expression: str, text: str) -> Any:
        """What DuckDB makes of a public expression, for each report: an Arrow column."""
        self.add_public(self.publics(node))
        sql = f"SELECT {expression} AS answer FROM {PUBLIC_TABLE}"
        return self._asked(sql, node, text).column("answer").combine_chunks()

    def stored_numbers(self, node: exp.Column) -> Floats | None:
        """The numbers of a public column as they travelled, (people,); None if it is no number."""
        (number,) = self.publics(node)
        column = self.source.public(self.source.public_names[number])
        if column.values.dtype.kind != "i":
            return None
        values: Floats = column.values / 10.0 ** (column.decimals or 0)
        return values

    def _asked(self, sql: str, node: exp.Expr, text: str) -> Any:
        try:
            return self.engine.ask(sql)
        except EngineError as wrong:
            raise refused(str(wrong), node, text) from None

    def _add_domain(self, number: int) -> None:
        if self.engine.has(f"domain_{number}"):
            return
        pa = imported("pyarrow")
        values = self.dimension(number).values
        places = np.arange(len(values), dtype=np.int64)
        self.engine.add(
            f"domain_{number}",
            pa.table({f"p{number}": places, f"{WHISPERED}{number}": pa.array(values)}),
        )

    def add_public(self, numbers: tuple[int, ...]) -> None:
        """Make public columns known to DuckDB; those that no query names are never read."""
        pa = imported("pyarrow")
        names = self.source.public_names
        new = [number for number in numbers if f"{PUBLIC}{number}" not in self._arrow]
        for number in new:
            column = self.source.public(names[number])
            self._arrow[f"{PUBLIC}{number}"] = arrow_column(column)
        if new or not self.engine.has(PUBLIC_TABLE):
            if not self._arrow:
                self._arrow["none"] = pa.nulls(self.source.rows, pa.bool_())
            self.engine.add(PUBLIC_TABLE, pa.table(self._arrow))


def arrow_column(column: PublicColumn) -> Any:
    """A public column for DuckDB; scaled integers become exact decimals."""
    pa = imported("pyarrow")
    if column.decimals is None:
        return pa.array(column.values, from_pandas=False)
    # a decimal of 128 bits is the scaled integer, its sign in the upper half
    halves = np.empty((len(column), 2), np.int64)
    halves[:, 0] = column.values
    halves[:, 1] = np.where(column.values < 0, -1, 0)
    kind = pa.decimal128(18, column.decimals)
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(halves)])


def _lengthens(node: exp.Replace) -> bool:
    """Whether text may grow: one within the other, few calls of replace would fill any memory."""
    taken, put = node.args.get("expression"), node.args.get("replacement")
    if not isinstance(taken, exp.Literal) or not isinstance(put, exp.Literal):
        return True
    return len(put.this.encode()) > len(taken.this.encode())


def _numbers(node: exp.Expr, kind: str) -> tuple[int, ...]:
    found = {
        int(column.name[1:])
        for column in node.find_all(exp.Column)
        if column.name[:1] == kind and column.name[1:].isdigit()
    }
    return tuple(sorted(found))


def written(node: exp.Expr) -> str:
    """A resolved expression as DuckDB reads it."""
    return node.sql(dialect="duckdb", comments=False)


def check_size(sizes: list[int], most: int, node: exp.Expr, text: str) -> None:
    """Refuse an expression over too many combinations of values."""
    cells = 1
    for size in sizes:
        cells *= size
    if cells > most:
        raise refused(
            f"this compares columns over {cells:,} combinations of values; at most {most:,}",
            node,
            text,
            "compare each column with a number instead",
        )
