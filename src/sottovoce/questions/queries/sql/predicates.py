"""Conditions: AND, OR and NOT of atoms, each with DuckDB's own meaning over its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sottovoce.ground.extras import imported
from sottovoce.questions.queries.evidence import Integers
from sottovoce.questions.queries.sql.columns import QueryColumns, check_size, written
from sottovoce.questions.queries.sql.rows import RowColumn, joined_codes
from sottovoce.questions.queries.sql.spans import refused

MAX_ATOM_CELLS = 1 << 20  # combinations of values on which one atom is evaluated
FALSE, TRUE, NULL = 0, 1, 2
Truths = NDArray[np.int8]  # FALSE, TRUE or NULL


@dataclass(frozen=True)
class Atom:
    """A condition without AND, OR or NOT: the place of it among the query's atoms."""

    number: int


@dataclass(frozen=True)
class Not:
    """True where its part is false; NULL stays NULL."""

    part: Formula


@dataclass(frozen=True)
class And:
    """True where all parts are; false where one is."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Or:
    """True where one part is; false where all are."""

    parts: tuple[Formula, ...]


Formula = Atom | Not | And | Or
ALWAYS = And(())

# where a condition is true, and where it is false; it is NULL elsewhere
Outcome = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def evaluate(formula: Formula, look: Callable[[int], Outcome]) -> Outcome:
    """The logic of SQL, with three truth values, over arrays that broadcast.

    Args:
        formula: what is asked.
        look: where the atom of a number is true, and where false.
    """
    if isinstance(formula, Atom):
        return look(formula.number)
    if isinstance(formula, Not):
        true, false = evaluate(formula.part, look)
        return false, true
    true, false = np.array(True), np.array(False)
    if isinstance(formula, Or):
        true, false = false, true
    for part in formula.parts:
        part_true, part_false = evaluate(part, look)
        if isinstance(formula, And):
            true, false = true & part_true, false | part_false
        else:
            true, false = true | part_true, false & part_false
    return true, false


@dataclass(eq=False)
class AtomTable:
    """What is known of one atom.

    ``dims``: its whispered columns. ``table``: the truth over all combinations of their values; of
    an atom that also has public parts, one for each pattern that occurs, along the first axis.
    ``row``: of an atom with public parts the number of the row column that holds its truth, or the
    pattern of it.
    """

    node: exp.Expr
    dims: tuple[int, ...]
    table: Truths | None = None
    row: int | None = None


class Atoms:
    """All atoms of a query, and the public columns that tell reports apart."""

    def __init__(self, columns: QueryColumns, text: str) -> None:
        self.columns = columns
        self.text = text
        self.listed: list[AtomTable] = []
        self.row_columns: list[RowColumn] = []
        self.row_texts: list[str] = []
        self._known: dict[str, Atom] = {}
        self._known_rows: dict[str, int] = {}

    # -- reading

    def formula(self, node: exp.Expr) -> Formula:
        """The formula of a resolved condition."""
        if isinstance(node, exp.Paren):
            return self.formula(node.this)
        if isinstance(node, exp.Not):
            if isinstance(node.this, exp.Is):
                return self._atom(node)  # x IS NOT NULL
            return Not(self.formula(node.this))
        if isinstance(node, exp.And):
            return And(tuple(self.formula(part) for part in node.flatten()))
        if isinstance(node, exp.Or):
            return Or(tuple(self.formula(part) for part in node.flatten()))
        return self._atom(node)

    def _atom(self, node: exp.Expr) -> Atom:
        key = written(node)
        if key not in self._known:
            self._known[key] = Atom(len(self.listed))
            self.listed.append(self._read(node))
        return self._known[key]

    def _read(self, node: exp.Expr) -> AtomTable:
        dims, publics = self.columns.dimensions(node), self.columns.publics(node)
        if dims:
            self._refuse_missing(node)
        expression = f"CAST(({written(node)}) AS BOOLEAN)"
        if publics and not dims:
            row = self.row_column(node, expression)
            return AtomTable(node, (), row=row)
        sizes = [len(self.columns.dimension(number).values) for number in dims]
        if len(dims) > 1:
            check_size(sizes, MAX_ATOM_CELLS, node, self.text)
        if not publics:
            _, column = self.columns.over_domain(node, expression, self.text)
            return AtomTable(node, dims, truths(column).reshape(sizes))
        return self._read_mixed(node, dims)

    def _refuse_missing(self, node: exp.Expr) -> None:
        inner = node.this if isinstance(node, exp.Not) else node
        is_null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
        if is_null and isinstance(inner.this, exp.Column):
            name = self.columns.dimension(int(inner.this.name[1:])).name
            raise refused(
                f"{name} is whispered, and nobody's is NULL",
                node,
                self.text,
                "a device without a value reports one at random, or the schema's `other`",
            )

    def _read_mixed(self, node: exp.Expr, dims: tuple[int, ...]) -> AtomTable:
        """An atom of whispered and public columns: over whispered values it is true in one of a
        few patterns, and reports with the same pattern are alike, whatever their public values.
        """
        row = self._row(f"pattern of {written(node)}", lambda: self._patterns(node, dims))
        return AtomTable(node, dims, np.stack(self.row_columns[row].labels), row)

    def _patterns(self, node: exp.Expr, dims: tuple[int, ...]) -> RowColumn:
        """The pattern of each report; labels are tables over the values of dimensions."""
        copy = node.copy()
        parts: list[RowColumn] = []
        for number, part in enumerate(list(_public_parts(copy, self.columns))):
            parts.append(self._evaluated(part, written(part)))
            part.replace(exp.column(f"k{number}", quoted=True))
        codes, firsts = joined_codes(parts, self.columns.source.rows)  # (rows,), (different,)
        sizes = [len(self.columns.dimension(number).values) for number in dims]
        check_size([len(firsts), *sizes], MAX_ATOM_CELLS, node, self.text)
        table = self._evaluate_mixed(copy, parts, firsts).reshape(len(firsts), -1)
        patterns, which = np.unique(table, axis=0, return_inverse=True)
        labels = [pattern.reshape(sizes) for pattern in patterns]
        return RowColumn(labels, which.reshape(-1)[codes])

    def _evaluate_mixed(
        self, node: exp.Expr, parts: Sequence[RowColumn], firsts: Integers
    ) -> Truths:
        """The truth for the public values of some reports, over the values of dimensions."""
        pa = imported("pyarrow")
        table = {"pk": pa.array(range(len(firsts)), pa.int64())}
        for number, part in enumerate(parts):
            table[f"k{number}"] = pa.array([part.labels[code] for code in part.codes[firsts]])
        self.columns.engine.add("combinations", pa.table(table))
        column = self.columns.over_domain_and(
            node, f"CAST(({written(node)}) AS BOOLEAN)", self.text, "combinations", "pk"
        )
        return truths(column)

    def row_column(self, node: exp.Expr, expression: str) -> int:
        """The number of the row column that holds what a public expression is worth."""
        return self._row(expression, lambda: self._evaluated(node, expression))

    def _row(self, key: str, make: Callable[[], RowColumn]) -> int:
        """The number of a row column, made now if there is none under this key."""
        if key not in self._known_rows:
            self._known_rows[key] = len(self.row_columns)
            self.row_columns.append(self.columns.row_columns.get(key, make))
            self.row_texts.append(key)
        return self._known_rows[key]

    def _evaluated(self, node: exp.Expr, expression: str) -> RowColumn:
        return RowColumn.of(self.columns.over_rows(node, expression, self.text))

    # -- once groups of reports are known

    def truth(self, number: int, labels: tuple[int, ...]) -> Truths:
        """The truth of an atom in a group of reports: over its dimensions' values, or one."""
        atom = self.listed[number]
        if atom.row is None:
            assert atom.table is not None
            return atom.table
        label = self.row_columns[atom.row].labels[labels[atom.row]]
        if atom.table is not None:  # a pattern
            pattern: Truths = label
            return pattern
        return np.array(NULL if label is None else int(label), np.int8)


def _public_parts(node: exp.Expr, columns: QueryColumns) -> Any:
    """The largest parts that are public alone."""
    is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)  # WHEN x THEN y
    if columns.publics(node) and not columns.dimensions(node) and not is_branch:
        yield node
        return
    for child in list(node.iter_expressions()):
        yield from _public_parts(child, columns)


def truths(column: Any) -> Truths:
    """An Arrow column of truth values as FALSE, TRUE and NULL."""
    filled = imported("pyarrow.compute").fill_null(column.cast("int8"), NULL)
    found: Truths = np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int8)
    return found


def outcome(truth: Truths) -> Outcome:
    """Where it is true, and where false."""
    return truth == TRUE, truth == FALSE
