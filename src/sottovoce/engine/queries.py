"""SQL where the reports lie: what is public of them is counted there, and each fitted table is one
more vector of integers.

A query's public columns take far fewer different rows of values than there are reports. Workers
count those rows; here they stand for the reports, each as often as it was counted. A group of
reports, or a weight of them, is then a number for each row, which workers look up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.pieces import Piece, vector_of, vector_pieces
from sottovoce.aggregation.scattered import scattered
from sottovoce.engine.base import TaskEngine
from sottovoce.engine.jobs import ReportsJob, fold_jobs
from sottovoce.engine.tasks import AskTask, FoldTask, plan_of
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.oracles.base import Integers
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import FittedTable
from sottovoce.questions.queries.question import Queries
from sottovoce.questions.queries.sql.plan_source import EstimateSource

if TYPE_CHECKING:
    from sottovoce.questions.queries.sql.answer import QueryAnswer

MAX_COUNTED_ROWS = 1 << 20  # different rows of a query's public columns, which travel to workers
COUNTED_PIECE_BYTES = 1 << 19  # of counted rows in one piece
TIMES, WEIGHT = " times", " weight"  # names that no attribute has
# a weight in limbs: below 2^52 in all, and sums of their products stay within 64 bits, since
# weights in fixed point add up to 2^49 at most
LIMB_BITS, LIMBS = 13, 4


def ask_reports(
    engine: TaskEngine, plan: Plan, path: str | PathLike[str], sql: str, level: float = 0.95
) -> QueryAnswer:
    """The answer to one query, see :func:`sottovoce.query`; no report leaves its place.

    All files are read once for the estimate, once to count public rows if the query has any, and
    once or, of sums of a public number, twice for each group of reports.
    """
    for library in ("sqlglot", "duckdb", "pyarrow"):
        imported(library)
    from sottovoce.questions.queries.sql.session import Session

    if not isinstance(plan.question, Queries):
        raise InvalidInput(
            f"plan: SQL needs a plan whose question is queries, not {plan.question.kind}"
        )
    session = Session(EngineSource(engine, plan, path, _named_columns(plan, sql)))
    try:
        return session.ask(sql, level)
    finally:
        session.close()


def _named_columns(plan: Plan, sql: str) -> tuple[str, ...]:
    """The public columns whose names stand in a query."""
    sqlglot = imported("sqlglot")
    try:
        words = {token.text.lower() for token in sqlglot.tokenize(sql)}
    except sqlglot.errors.TokenError:  # which whoever parses it explains
        return ()
    return tuple(name for name in plan.public.names if name.lower() in words)


# -- what workers do


def _batches(fold: FoldTask, job: ReportsJob) -> Iterator[Reports]:
    """The reports of a job, checked."""
    plan = plan_of(fold.plan_text, fold.plan_id)
    for part in job.parts:
        for reports in part.stream():
            yield reports.checked(plan)


@dataclass(frozen=True)
class CountRowsTask:
    """The different rows of some public columns among a job's reports, and how often each is."""

    fold: FoldTask
    names: tuple[str, ...]

    def __call__(self, job: ReportsJob) -> Iterator[Piece]:
        pa = imported("pyarrow")

        found: list[Any] = []
        for reports in _batches(self.fold, job):
            columns = {name: pa.array(reports.public[name].values) for name in self.names}
            columns[TIMES] = pa.array(np.ones(len(reports), np.int64))
            found = [counted(self.names, [*found, pa.table(columns)])]
        for table in found:
            step = max(1, int(COUNTED_PIECE_BYTES * len(table) / max(1, table.nbytes)))
            for start in range(0, len(table), step):
                yield Piece(start, _packed(table.slice(start, step)))


@dataclass(frozen=True, eq=False)
class ChosenFold:
    """Folds those of a job's reports whose public row is listed, perhaps with a weight."""

    fold: FoldTask
    names: tuple[str, ...]
    listed: bytes  # the rows, and their weights

    def total(self, job: ReportsJob) -> Aggregate:
        """What they add up to."""
        total = Aggregate(plan_of(self.fold.plan_text, self.fold.plan_id))
        for reports, weights in self.chosen(job):
            total.add(reports, weights)
        return total

    def chosen(self, job: ReportsJob) -> Iterator[tuple[Reports, Integers | None]]:
        """The reports and their weights, by the batch."""
        table = _unpacked(self.listed)
        finder = _RowFinder(self.names, table)
        weights = table.column(WEIGHT).to_numpy() if WEIGHT in table.column_names else None
        for reports in _batches(self.fold, job):
            places = finder.places(reports)
            rows = np.flatnonzero(places >= 0)
            yield reports[rows], None if weights is None else weights[places[rows]]


@dataclass(frozen=True, eq=False)
class SquaresTask:
    """The sums of squared weights, by cohort, as whole numbers: (2 LIMBS - 1, cohorts)."""

    chosen: ChosenFold

    def __call__(self, job: ReportsJob) -> Iterator[Piece]:
        fold = self.chosen.fold
        cohorts = len(plan_of(fold.plan_text, fold.plan_id).cohorts)
        sums = np.zeros((2 * LIMBS - 1, cohorts), np.int64)
        for reports, weights in self.chosen.chosen(job):
            assert weights is not None
            limbs = [
                weights >> (LIMB_BITS * place) & ((1 << LIMB_BITS) - 1) for place in range(LIMBS)
            ]
            # w^2 = sum over i, j of w_i w_j 2^(13 (i + j))
            for first, one in enumerate(limbs):
                for second, other in enumerate(limbs):
                    np.add.at(sums[first + second], reports.cohorts, one * other)
        return vector_pieces(fold.plan_id, sums)


class _RowFinder:
    """Where rows of public values stand in a list of them, each of which is there once."""

    def __init__(self, names: Sequence[str], table: Any) -> None:
        pa = imported("pyarrow")

        # of each column its different values, and which codes listed rows have up to it: these
        # are numbered anew, since a product of the sizes of all columns does not fit 64 bits
        self._known: list[tuple[str, Any, Any]] = []
        codes = np.zeros(len(table), np.int64)
        for name in names:
            values = table.column(name).unique()
            joined = _joined_codes(codes, table.column(name), values)
            listed, codes = np.unique(joined, return_inverse=True)
            self._known.append((name, values, pa.array(listed)))
        self._rows = np.empty(len(table), np.int64)  # of each code
        self._rows[codes] = np.arange(len(table))

    def places(self, reports: Reports) -> Integers:
        """The row of each report; -1 if it is not listed."""
        pa = imported("pyarrow")

        codes = np.zeros(len(reports), np.int64)
        for name, values, listed in self._known:
            joined = _joined_codes(codes, pa.array(reports.public[name].values), values)
            codes = _places_of(pa.array(joined), listed)
        found: Integers = np.where(codes >= 0, self._rows[codes], -1)
        return found


def _joined_codes(codes: Integers, column: Any, values: Any) -> Integers:
    """A number for each code beside a value; -1 if either is not listed."""
    own = _places_of(column, values)
    joined: Integers = np.where((codes >= 0) & (own >= 0), codes * len(values) + own, -1)
    return joined


def _places_of(column: Any, values: Any) -> Integers:
    """The place of each cell among some values; -1 if it is none of them."""
    found = imported("pyarrow.compute").index_in(column, value_set=values).fill_null(-1)
    places: Integers = np.asarray(found).astype(np.int64)
    return places


def counted(names: Sequence[str], tables: Sequence[Any]) -> Any:
    """The rows of some tables, each once, with how often it came in all."""
    pa = imported("pyarrow")

    whole = pa.concat_tables(tables)
    found = whole.group_by(list(names), use_threads=False).aggregate([(TIMES, "sum")])
    if len(found) > MAX_COUNTED_ROWS:
        raise InvalidInput(
            f"the public columns of the query ({', '.join(names)}) take more than "
            f"{MAX_COUNTED_ROWS:,} different values together, which would travel to all workers: "
            "the engine local reads the reports here"
        )
    return found.rename_columns([*names, TIMES])


def _packed(table: Any) -> bytes:
    pa = imported("pyarrow")

    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())


def _unpacked(data: bytes) -> Any:
    return imported("pyarrow").ipc.open_stream(data).read_all()


# -- what is done here


class EngineSource(EstimateSource):
    """Reports that an engine's workers read; see the module.

    Args:
        engine: whose workers read them.
        plan: whose question is :class:`~sottovoce.Queries`.
        path: a file, a folder or a URL of reports.
        names: the public columns that will be asked about.
    """

    def __init__(
        self, engine: TaskEngine, plan: Plan, path: str | PathLike[str], names: tuple[str, ...]
    ) -> None:
        self._engine = engine
        self._names = names
        self._jobs = fold_jobs(plan, path, engine.slots)
        self._fold = FoldTask(plan.to_json(), plan.id)
        self.unsent_names = tuple(plan.unsent)
        super().__init__(plan, cast(QueryEstimate, self._total(plan, self._fold).estimate()))

    def _total(self, plan: Plan, fold: Any) -> Aggregate:
        def run(task: Any) -> Iterator[Piece]:
            return self._engine.run(AskTask(fold, task), self._jobs, merge=True)

        return scattered(plan, run)

    @property
    def public_names(self) -> tuple[str, ...]:
        return tuple(self.plan.public.names)

    @property
    def rows(self) -> int:
        return len(self._counted) if self._names else self.people

    def times(self, rows: Integers | None) -> Integers | None:
        if not self._names:
            return None
        every: Integers = self._counted.column(TIMES).to_numpy()
        return every if rows is None else every[rows]

    @cached_property
    def _counted(self) -> Any:
        """The different rows of the public columns, in an order of their own."""
        task = CountRowsTask(self._fold, self._names)
        pieces = self._engine.run(task, self._jobs, merge=False)
        tables = [_unpacked(piece.body) for piece in pieces]
        found = counted(self._names, tables).sort_by([(name, "ascending") for name in self._names])
        people = int(found.column(TIMES).to_numpy().sum())
        if people != self.people:
            raise InvalidInput(f"reports: {people:,} of {self.people:,} were found again")
        return found

    def public(self, name: str) -> PublicColumn:
        values = self._counted.column(name).to_numpy()
        (kind,) = (each for each in self.plan.public.types if each.name == name)
        return PublicColumn(values.astype(kind.dtype), kind.decimals)

    def fit(self, rows: Integers | None, weights: Integers | None) -> FittedTable:
        if rows is None and weights is None:
            return self.estimate.fitted
        table = self._counted.select(list(self._names))
        if rows is not None:
            table = table.take(rows)
        if weights is not None:
            table = table.append_column(WEIGHT, [np.asarray(weights, np.int64)])
        chosen = ChosenFold(self._fold, self._names, _packed(table))
        total = self._total(self.plan, chosen)
        squares = None if weights is None else self._squares(chosen)
        return self.estimate.fit_weights(total, squares)

    def _squares(self, chosen: ChosenFold) -> Floats:
        """The sums of squared weights, one for each cohort."""
        pieces = list(self._engine.run(SquaresTask(chosen), self._jobs, merge=True))
        sums = vector_of(self.plan.id, pieces, (2 * LIMBS - 1, len(self.plan.cohorts)))
        scales = 2.0 ** (LIMB_BITS * np.arange(2 * LIMBS - 1))
        found: Floats = scales @ sums.astype(float)
        return found
