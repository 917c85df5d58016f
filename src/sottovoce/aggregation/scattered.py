"""Aggregates whose rows stay where the reports are.

Of plans that keep rows (``olh-seeded``, ``pem``, ``em``, ``sc`` and their like) an estimator asks
something of the rows, and what it asks adds up over parts of the crowd: support, a state, or counts
(:meth:`~sottovoce.aggregation.aggregate.Aggregate.over_rows`). So no row needs to travel. Each
question becomes a :data:`PartTask`: a pure function of the aggregate of a part, which can be
pickled, and which gives the pieces of a vector of integers.

An engine brings one function, ``run(task)``: it calls the task with the aggregate of every part,
folded where its reports are, and returns all pieces, added up by number
(:func:`~sottovoce.aggregation.pieces.sum_pieces`) or not. Then ``scattered(plan, run)`` is the
aggregate that estimators get::

    def run(task):  # of an engine of one process
        return [piece for part in parts for piece in task(part)]

    estimate = scattered(plan, run).estimate()

``run`` is called once for the people and all sums, and once for every question; `pem` asks one or
more for each round. Parts must be the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from numpy.typing import ArrayLike

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.cohort_counts import CohortCounts
from sottovoce.aggregation.pieces import Piece, vector_of, vector_pieces
from sottovoce.aggregation.rows import KeptRows, RowCount
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.base import Integers
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports

PartTask = Callable[[Aggregate], Iterable[Piece]]
Run = Callable[[PartTask], Iterable[Piece]]
Question = Callable[[Aggregate], Integers]  # whose answers add up over parts


@dataclass(frozen=True)
class SumsTask:
    """All integers of a part but its rows."""

    def __call__(self, part: Aggregate) -> Iterator[Piece]:
        return part.pieces(rows=False)


@dataclass(frozen=True)
class QuestionTask:
    """The answer of a part to a question, as a vector."""

    question: Question

    def __call__(self, part: Aggregate) -> Iterator[Piece]:
        return vector_pieces(part.plan.id, self.question(part))


@dataclass(frozen=True, eq=False)
class SupportQuestion:
    """See :meth:`Aggregate.support`."""

    cohort: int
    ask: int
    values: ArrayLike | None

    def __call__(self, part: Aggregate) -> Integers:
        return part.support(self.cohort, self.ask, self.values)


@dataclass(frozen=True)
class StateQuestion:
    """See :meth:`Aggregate.state`."""

    cohort: int
    ask: int

    def __call__(self, part: Aggregate) -> Integers:
        return part.state(self.cohort, self.ask)


@dataclass(frozen=True, eq=False)
class RowsQuestion:
    """See :meth:`Aggregate.over_rows`."""

    cohort: int
    asks: tuple[int, ...]
    count: RowCount

    def __call__(self, part: Aggregate) -> Integers:
        return part.over_rows(self.cohort, self.asks, self.count)


def scattered(plan: Plan, run: Run) -> Aggregate:
    """The aggregate of a crowd whose rows are asked where they are; without any it is as folded.

    It answers all that estimators ask, with the same integers as if all reports had been folded
    here. It cannot grow, be written or be cut into pieces.

    Args:
        plan: of the reports.
        run: calls a task with the aggregate of each part of the crowd, and returns all pieces.

    >>> import pickle
    >>> import sottovoce as sv
    >>> question = sv.Frequencies("x", oracle="olh-seeded")
    >>> plan = sv.plan(sv.Schema(x=sv.Categorical("abcd")), question, epsilon=2.0, people=1000)
    >>> reports = sv.simulate(plan, {"x": ["a", "b"] * 500}, seed=1)
    >>> parts = [Aggregate(plan).add(reports[:300]), Aggregate(plan).add(reports[300:])]
    >>> def run(task):
    ...     sent = pickle.loads(pickle.dumps(task))
    ...     return [piece for part in parts for piece in sent(part)]
    >>> whole = Aggregate(plan).add(reports)
    >>> (scattered(plan, run).support(0) == whole.support(0)).all()
    np.True_
    """
    sums = Aggregate(plan).add_pieces(run(SumsTask()))
    if not isinstance(sums.counts, CohortCounts) or not sums.counts.holds_reports:
        return sums
    nobody = Aggregate(plan)

    def answer(question: Question) -> Integers:
        shape = question(nobody).shape  # where a bad question fails, before it travels
        return vector_of(plan.id, list(run(QuestionTask(question))), shape)

    sums.counts.replace_rows(partial(AskedRows, answer))
    return ScatteredAggregate(sums)


class ScatteredAggregate(Aggregate):
    """An aggregate that is asked, and nothing else."""

    def __init__(self, sums: Aggregate) -> None:
        self.plan = sums.plan
        self.counts = sums.counts

    def _fold(self, reports: Reports, weights: ArrayLike | None) -> NoReturn:
        raise _elsewhere()

    def absorb(self, other: Aggregate) -> NoReturn:
        raise _elsewhere()

    def add_pieces(self, pieces: Iterable[Piece]) -> NoReturn:
        raise _elsewhere()


class AskedRows(KeptRows):
    """The rows of a cohort that lie in many places: what is asked of them is asked there."""

    def __init__(
        self,
        answer: Callable[[Question], Integers],
        cohort: int,
        asks: Sequence[int],
        is_signed: bool,
    ) -> None:
        self._answer = answer
        self._cohort = cohort
        self._asks = tuple(asks)  # of the cohort, in the order of this part's
        self._is_signed = is_signed

    def support(self, ask: int, values: ArrayLike | None) -> Integers:
        return self._answer(SupportQuestion(self._cohort, self._asks[ask], values))

    def state(self, ask: int) -> Integers:
        return self._answer(StateQuestion(self._cohort, self._asks[ask]))

    def count(self, asks: Sequence[int], count: RowCount) -> Integers:
        own = tuple(self._asks[ask] for ask in asks)
        return self._answer(RowsQuestion(self._cohort, own, count))

    @property
    def is_signed(self) -> bool:
        """Whether any report had a negative weight; whether it was there before, nobody can see."""
        return self._is_signed

    @property
    def _tables(self) -> NoReturn:  # type: ignore[override]
        """What all else reads that takes rows."""
        raise _elsewhere()


def _elsewhere() -> InvalidInput:
    return InvalidInput(
        "aggregate: its rows lie where its reports are; it can be asked and estimated, no more"
    )
