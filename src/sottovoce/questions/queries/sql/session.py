"""One source, asked many queries: text in, answer out."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from sqlglot import exp

from sottovoce.questions.queries.evidence import Integers
from sottovoce.questions.queries.sql.aggregates import (
    AVG_KIND,
    COUNT_KIND,
    QUANTILE_KIND,
    STDDEV_KIND,
    SUM_KIND,
    VARIANCE_KIND,
    Call,
)
from sottovoce.questions.queries.sql.answer import AnswerRow, BinLabel, QueryAnswer
from sottovoce.questions.queries.sql.columns import QueryColumns, written
from sottovoce.questions.queries.sql.engine import Engine
from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.explain import Explanation, term_text
from sottovoce.questions.queries.sql.expressions import (
    MAX_SQUARED_PRODUCTS,
    ONE,
    Product,
    Products,
    ProductSum,
    multiplied,
    read_sum,
)
from sottovoce.questions.queries.sql.fits import Fits, JointBatch
from sottovoce.questions.queries.sql.linear import LinearPiece, LinearSums
from sottovoce.questions.queries.sql.measures import EstimatedNumber, counted, ratio, spread, total
from sottovoce.questions.queries.sql.notes import domain_notes
from sottovoce.questions.queries.sql.ordering import chosen, estimates_choose
from sottovoce.questions.queries.sql.outline import Outline, outline
from sottovoce.questions.queries.sql.parse import TOO_DEEP, parse
from sottovoce.questions.queries.sql.possible import Possible, possible
from sottovoce.questions.queries.sql.predicates import ALWAYS, And, Atoms, Formula
from sottovoce.questions.queries.sql.quantiles import quantile, up_to_each_code, value_order
from sottovoce.questions.queries.sql.rows import RowColumn, RowGroup, row_groups
from sottovoce.questions.queries.sql.selections import Mask, Selections, WhisperedKey
from sottovoce.questions.queries.sql.source import QuerySource
from sottovoce.questions.queries.sql.spans import refused, span_of
from sottovoce.results.cells import quantile as normal_quantile

MAX_ROWS = 10_000  # of an answer
MAX_QUANTILE_TERMS = 8192


class Session:
    """A source and what was fitted for it; later queries are faster than the first."""

    def __init__(self, source: QuerySource) -> None:
        self.source = source
        self.engine = Engine()
        self.columns = QueryColumns(source, self.engine)
        self.fits = Fits(source)
        self._lock = Lock()

    def ask(self, sql: str, level: float = 0.95) -> QueryAnswer:
        """The answer to a query."""
        normal_quantile(level)  # refuses what is no level
        parsed = parse(sql)
        try:
            with self._lock:  # one query at a time: what is fitted is shared
                asked = outline(parsed, self.columns)
                return _Run(self, asked, level).answer()
        except RecursionError:
            raise SqlError(TOO_DEEP) from None

    def close(self) -> None:
        """Let go of what was fitted."""
        self.engine.close()


class _Wanted:
    """An aggregate with its condition and what it adds up."""

    def __init__(self, call: Call, formula: Formula, added: ProductSum) -> None:
        self.call = call
        self.formula = formula
        self.added = added
        self.quantities = _quantities(call, added.products)


def _quantities(call: Call, added: Products) -> tuple[Products, ...]:
    """The sums that an aggregate is made of."""
    if call.kind == AVG_KIND:
        return added, ONE
    if call.kind in (VARIANCE_KIND, STDDEV_KIND):
        moved = _moved(added)
        return multiplied(moved, moved), moved, ONE
    return (ONE,) if call.kind == COUNT_KIND else (added,)


def _moved(added: Products) -> Products:
    """What is added up less a constant, which changes no variance and spares digits."""
    if len(added) != 1 or added[0].number != 1.0:
        return added
    (only,) = added
    if only.weight is not None and not only.whispered and len(only.weight.values):
        return (Product(1.0, only.weight.minus(float(only.weight.values.min()))),)
    if only.weight is None and len(only.whispered) == 1:
        dims, table = only.whispered[0]
        return (Product(1.0, None, ((dims, table - float((table.min() + table.max()) / 2)),)),)
    return added


class _Run:
    """The way of one query."""

    def __init__(self, session: Session, asked: Outline, level: float) -> None:
        self.session = session
        self.columns = session.columns
        self.asked = asked
        self.text = asked.select.text
        self.level = level
        self.atoms = Atoms(self.columns, self.text)
        self.batch = JointBatch(session.fits)
        self.explanation = Explanation(method=session.source.method)
        self.prefixes: dict[tuple[int, int], list[Any]] = {}  # of quantiles, by what they cut

    def answer(self) -> QueryAnswer:
        """All stages, one after the other."""
        where = ALWAYS if self.asked.where is None else self.atoms.formula(self.asked.where)
        wanted = [self._wanted(call, where) for call in self.asked.calls]
        public_keys, whispered_keys = self._keys()
        source = self.session.source
        groups = self.columns.row_groups.get(
            tuple(self.atoms.row_texts),
            lambda: row_groups(self.atoms.row_columns, source.rows, source.times(None)),
        )
        factors = [
            factor
            for each in wanted
            for products in each.quantities
            for product in products
            for factor in product.whispered
        ]
        self.selections = Selections(self.columns, self.atoms, whispered_keys, factors)
        places = self._output(groups, where, public_keys)
        waiting = [
            [(self._sums(each, own, place), self._possible(each, own)) for each in wanted]
            for (_, place), own in places.items()
        ]
        self.batch.run()
        rows = []
        for (labels, place), sums in zip(places, waiting, strict=True):
            keys = self._labels(labels, place, public_keys)
            cells = [
                self._measured(each.call, *linear)
                for each, linear in zip(wanted, sums, strict=True)
            ]
            rows.append(AnswerRow(keys, tuple(cells)))
        rows.sort(key=lambda row: [_sort_key(key) for key in row.keys])
        self._explain(groups, wanted)
        return self._shown(rows)

    # -- reading

    def _wanted(self, call: Call, where: Formula) -> _Wanted:
        parts = [where]
        if call.condition is not None:
            parts.append(self.atoms.formula(call.condition))
        added = ProductSum(ONE, ())
        if call.argument is not None:
            if call.kind == COUNT_KIND:
                is_column = isinstance(call.argument, exp.Column)
                nullable = () if is_column else (call.argument,)
                added = ProductSum(ONE, nullable)
            else:
                added = read_sum(call.argument, self.columns, self.text)
                self._check_square(call, added)
        for node in added.nullable:
            missing = exp.Is(this=exp.paren(node.copy()), expression=exp.Null())
            parts.append(self.atoms.formula(exp.Not(this=missing)))
        parts = [part for part in parts if part != ALWAYS]
        formula = parts[0] if len(parts) == 1 else And(tuple(parts))
        return _Wanted(call, formula, added)

    def _check_square(self, call: Call, added: ProductSum) -> None:
        if call.kind not in (VARIANCE_KIND, STDDEV_KIND):
            return
        if len(added.products) > MAX_SQUARED_PRODUCTS:
            raise refused(
                f"what is squared here must have at most {MAX_SQUARED_PRODUCTS} products",
                call.node,
                self.text,
            )

    def _keys(self) -> tuple[dict[int, int], list[WhisperedKey]]:
        """(the row column of each public key, the whispered keys)."""
        public: dict[int, int] = {}
        whispered = []
        for number, key in enumerate(self.asked.keys):
            if self.columns.publics(key):
                public[number] = self.atoms.row_column(key, f"({written(key)})")
            else:
                whispered.append(self._whispered_key(key))
        return public, whispered

    def _whispered_key(self, key: exp.Expr) -> WhisperedKey:
        dims = self.columns.dimensions(key)
        dimension = self.columns.dimension(dims[0])
        if isinstance(key, exp.Column) and dimension.is_binned:
            named = [
                BinLabel(str(label), place)
                for place, label in enumerate(dimension.attribute.labels())
            ]
            return WhisperedKey(dims, dimension.codes, named)
        _, column = self.columns.over_domain(key, f"({written(key)})", self.text)
        encoded = RowColumn.of(column)
        sizes = [len(self.columns.dimension(number).values) for number in dims]
        return WhisperedKey(dims, encoded.codes.reshape(sizes), encoded.labels)

    # -- rows of the answer

    def _output(
        self, groups: Sequence[RowGroup], where: Formula, public_keys: dict[int, int]
    ) -> dict[tuple[tuple[int, ...], int | None], list[RowGroup]]:
        """The groups of reports of each row, by its public labels and its whispered ones."""
        found: dict[tuple[tuple[int, ...], int | None], list[RowGroup]] = {}
        if not self.asked.keys:
            return {((), None): list(groups)}
        for group in groups:
            mask = self.selections.mask(where, group.labels)
            labels = tuple(group.labels[row] for row in public_keys.values())
            places: list[int | None] = [None] if mask.any() else []
            if self.selections.keys:
                present: Integers = np.unique(self.selections.key_places[mask])
                places = list(present.tolist())
            for place in places:
                found.setdefault((labels, place), []).append(group)
            if len(found) > MAX_ROWS:
                raise SqlError(
                    f"the answer has more than {MAX_ROWS:,} rows", hint="group by fewer values"
                )
        return found

    def _labels(
        self, labels: tuple[int, ...], place: int | None, public_keys: dict[int, int]
    ) -> tuple[Any, ...]:
        """The keys of a row, in the order of GROUP BY."""
        public = {
            number: self.atoms.row_columns[row].labels[label]
            for (number, row), label in zip(public_keys.items(), labels, strict=True)
        }
        whispered = iter(() if place is None else self.selections.labels(place))
        return tuple(
            public[number] if number in public else next(whispered)
            for number in range(len(self.asked.keys))
        )

    def _sums(self, wanted: _Wanted, groups: Sequence[RowGroup], place: int | None) -> LinearSums:
        """The sums of an aggregate for one row of the answer."""
        pieces: list[LinearPiece] = []
        size = len(wanted.quantities)
        if wanted.call.kind == QUANTILE_KIND:
            size = self.columns.dimension(wanted.call.dimension).size
        for group in groups:
            if not group.people:
                continue
            mask = self.selections.mask(wanted.formula, group.labels)
            if wanted.call.kind == QUANTILE_KIND:
                pieces += self._quantile_pieces(wanted, group, mask, place)
                continue
            for quantity, products in enumerate(wanted.quantities):
                for product in products:
                    terms = self.selections.terms(
                        wanted.formula, mask, group.labels, place, product.whispered
                    )
                    pieces += [
                        LinearPiece(quantity, group, product.number * number, product.weight, term)
                        for number, term in terms
                    ]
        self._note_terms(wanted.call, pieces)
        return LinearSums(size, pieces, self.session.fits, self.batch)

    def _quantile_pieces(
        self, wanted: _Wanted, group: RowGroup, mask: Mask, place: int | None
    ) -> list[LinearPiece]:
        """People up to each code of a dimension."""
        number = wanted.call.dimension
        dimension = self.columns.dimension(number)
        terms = self.selections.terms(wanted.formula, mask, group.labels, place, ())
        if len(terms) * dimension.size > MAX_QUANTILE_TERMS:
            raise SqlError(
                f"quantiles of {dimension.name} need {len(terms) * dimension.size:,} selections "
                f"here; at most {MAX_QUANTILE_TERMS:,}",
                self.text,
                span_of(wanted.call.node, self.text),
                "ask with a simpler condition",
            )
        pieces = []
        for times, term in terms:
            key = (number, id(term))
            if key not in self.prefixes:
                order = value_order(dimension)
                self.prefixes[key] = up_to_each_code(term, number, dimension.size, order)
            for quantity, cut in enumerate(self.prefixes[key]):
                pieces.append(LinearPiece(quantity, group, times, None, cut))
        return pieces

    def _possible(self, wanted: _Wanted, groups: Sequence[RowGroup]) -> Possible:
        """What a sum or an average can be, by what is public."""
        if wanted.call.kind not in (SUM_KIND, AVG_KIND):
            return Possible()
        selected = (
            group for group in groups if self.selections.mask(wanted.formula, group.labels).any()
        )
        return possible(wanted.added.products, selected)

    def _measured(self, call: Call, sums: LinearSums, can_be: Possible) -> EstimatedNumber:
        linear = sums.result()
        if call.kind == COUNT_KIND:
            return counted(linear, self.level, self.columns.source.people)
        if call.kind == SUM_KIND:
            return can_be.sum_within(total(linear, self.level))
        if call.kind == AVG_KIND:
            return can_be.average_within(ratio(linear, self.level))
        if call.kind == QUANTILE_KIND:
            dimension = self.columns.dimension(call.dimension)
            return quantile(linear, dimension, call.share, self.level)
        return spread(linear, self.level, population=call.population, root=call.kind == STDDEV_KIND)

    # -- what is told of it

    def _written(self, node: exp.Expr) -> str:
        start, end = span_of(node, self.text)
        return " ".join(self.text[start:end].split())

    def _note_terms(self, call: Call, pieces: Sequence[LinearPiece]) -> None:
        """Keep the selections of the first row in which an aggregate has any."""
        name = self._written(call.node)
        if self.explanation.terms.get(name) or call.kind == QUANTILE_KIND:
            return
        dimensions = self.session.source.dimensions
        found = {id(piece.term): piece for piece in pieces if piece.quantity == 0}
        self.explanation.terms[name] = [
            ("- " if piece.number < 0 else "") + term_text(piece.term, dimensions)
            for piece in found.values()
        ]

    def _explain(self, groups: Sequence[RowGroup], wanted: Sequence[_Wanted]) -> None:
        told = self.explanation
        told.groups = len(groups)
        told.tables = self.batch.tables
        told.is_unbiased = self.session.fits.is_unbiased
        for atom in self.atoms.listed:
            name = self._written(atom.node)
            if atom.row is not None and atom.table is None:
                told.clear.append(name)
                told.notes += domain_notes(atom.node, self.columns, self.text)
            elif atom.row is not None:
                told.whispered.append(f"{name}, with public values in clear")
            elif atom.dims and atom.table is not None:
                count = int((atom.table == 1).sum())
                told.whispered.append(f"{name}: {count:,} of {atom.table.size:,} values")
                told.notes += domain_notes(atom.node, self.columns, self.text)
        for key in self.asked.keys:
            kind = told.clear if self.columns.publics(key) else told.whispered
            kind.append(f"GROUP BY {self._written(key)}")
        for each in wanted:
            self._explain_argument(each)
        for number in sorted(self.selections.cut):
            dimension = self.columns.dimension(number)
            told.notes.append(
                f"a bin of {dimension.name} was cut; its people are taken as spread evenly in it"
            )
        self._explain_choice()
        told.clear = list(dict.fromkeys(told.clear))
        told.whispered = list(dict.fromkeys(told.whispered))
        told.notes = list(dict.fromkeys(told.notes))

    def _explain_argument(self, wanted: _Wanted) -> None:
        told = self.explanation
        argument = wanted.call.argument
        if wanted.call.kind == QUANTILE_KIND:
            told.whispered.append(self._written(wanted.call.node))
        if argument is None or wanted.call.kind == COUNT_KIND:
            return
        if self.columns.publics(argument):
            told.clear.append(f"{self._written(argument)} of each report")
        if self.columns.dimensions(argument):
            told.whispered.append(self._written(argument))
        if wanted.added.nullable:
            name = self._written(argument)
            told.notes.append(f"who has NULL for {name} is left out of its aggregates")

    def _explain_choice(self) -> None:
        by = estimates_choose(self.asked, self.columns)
        if by:
            self.explanation.notes.append(
                f"rows were selected by {by} on estimates: those that are kept look larger or "
                "smaller than they are, and intervals do not know it"
            )

    def _shown(self, rows: list[AnswerRow]) -> QueryAnswer:
        shown = self.asked.shown
        kept = [rows[place] for place in chosen(rows, self.asked, self.columns)]
        keys = [each for each in shown if each.key is not None]
        calls = [each for each in shown if each.call is not None]
        narrowed = tuple(
            AnswerRow(
                tuple(row.keys[each.key] for each in keys if each.key is not None),
                tuple(row.cells[each.call] for each in calls if each.call is not None),
            )
            for row in kept
        )
        names = [
            self._written(self.asked.calls[each.call].node)
            for each in calls
            if each.call is not None
        ]
        self.explanation.notes.extend(self.session.source.notes)
        marks = {cell.mark for row in narrowed for cell in row.cells}
        if "unstable" in marks:
            self.explanation.notes.append(
                "unstable: so few people that the average is hardly known; its interval is "
                "Fieller's, and may have no end"
            )
        if "undefined" in marks:
            self.explanation.notes.append(
                "undefined: the selection may be empty, and nothing is divided by noise"
            )
        return QueryAnswer(
            self.text,
            tuple(each.name for each in keys),
            tuple(each.name for each in calls),
            tuple(names),
            narrowed,
            self.level,
            self.explanation,
        )


def _sort_key(key: Any) -> tuple[int, Any]:
    if isinstance(key, BinLabel):
        return 0, key.place
    return (1, 0) if key is None else (0, key)
