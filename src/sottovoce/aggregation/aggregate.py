"""The aggregate: integers that merge by addition, so any split, order or engine gives the same
bits.
"""

from __future__ import annotations

import hashlib
import inspect
import zlib
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from sottovoce.aggregation.answer_counts import AnswerCounts
from sottovoce.aggregation.counts import Counts
from sottovoce.aggregation.pieces import Piece, add_pieces, pieces_of
from sottovoce.aggregation.row_counts import RowCounts
from sottovoce.aggregation.rows import RowCount
from sottovoce.aggregation.sum_counts import SumCounts
from sottovoce.aggregation.table_counts import TableCounts, fits_tables
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch, SottovoceError
from sottovoce.ground.html import facts_html
from sottovoce.oracles import Oracle, PureOracle, SummedOracle
from sottovoce.oracles.base import Floats, Integers
from sottovoce.oracles.counter import weighed, whole_weights
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report, Reports

if TYPE_CHECKING:
    from sottovoce.results.estimate import Estimate

AGGREGATE_MAGIC = b"SVA\x01"
MANY_TIMES = 16  # the people that a plan expects: more reports need bytes of their own
# that compressed bytes may hold; real ones hold a random seed or a few bits each
REPORTS_PER_BYTE = 4


def counts_of(cohorts: Family) -> Counts:
    """Empty counts: the rows of all reports if the question chose that, else their sums."""
    if cohorts.keep == "rows":
        return RowCounts(cohorts)
    if cohorts.answer_bits is not None:
        return AnswerCounts(cohorts)
    return TableCounts(cohorts) if fits_tables(cohorts) else SumCounts(cohorts)


class Aggregate:
    """What a plan's reports add up to, in integers.

    Estimators ask it (:meth:`support` and its like) and do not look inside: each of the answers
    adds up over parts of the reports, so that they may lie in many places.

    Args:
        plan: whose reports are added up.

    Throughout:
        cohort: the cohort's index.
        ask: which of the cohort's asks.
        other: an aggregate of the same plan.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> one = Aggregate(plan).add(sv.simulate(plan, {"x": [True] * 10}, seed=1))
    >>> one.merge(one).people
    20
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.counts = counts_of(plan.cohorts)

    def __repr__(self) -> str:
        return f"<Aggregate of plan {self.plan.id[:16]}: {self.people:,} people>"

    def _repr_html_(self) -> str:
        """In a notebook: whose reports it holds, and how many."""
        kept = "whole numbers, which add up" if self.plan.cohorts.keep != "rows" else "reports"
        lines = [
            f"Plan: {self.plan.id[:16]} ({self.plan.asked['kind']})",
            f"People: {self.people:,}, of {self.plan.round_people:,} expected",
            f"Holds: {kept}",
        ]
        return facts_html("Aggregate", lines)

    @property
    def people(self) -> int:
        """How many reports it holds, or how much weight."""
        return self.counts.people

    @property
    def magnitude(self) -> int:
        """How many reports came, or their absolute weights added up: no count of them is larger."""
        return self.counts.magnitude

    # -- what was told

    def cohort_people(self, index: int) -> int:
        """How many reports of one cohort it holds, or how much weight.

        Args:
            index: of the cohort.
        """
        return self.counts.cohort_people(index)

    def support(self, cohort: int, ask: int = 0, values: ArrayLike | None = None) -> Integers:
        """How many reports of a cohort, or how much weight, support each value of one of its asks.

        Support adds up: that of a crowd is the sum of its parts' supports.

        Args:
            cohort: the cohort's index.
            ask: which of the cohort's asks.
            values: codes of the ask's oracle; all of them by default, if they are few enough to
            list.

        Returns:
            One integer for each value, in the order of ``values``.
        """
        return self.counts.support(cohort, ask, values)

    def frequencies(
        self, cohort: int, ask: int = 0, values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Unbiased frequencies of the values of one ask in its cohort, and the variances of their
        errors.

        They are made of the support and the people alone wherever the oracle can do so.

        Args:
            values: codes of the ask's oracle; all of them by default.
        """
        oracle = self.oracle(cohort, ask)
        people = self.cohort_people(cohort)
        if isinstance(oracle, SummedOracle) and oracle.uses_state:
            return oracle.estimate(self.state(cohort, ask), people, values)
        return oracle.estimate_support(self.support(cohort, ask, values), people)

    @property
    def fake_share(self) -> Fraction:
        """How many of the reports that it holds are fakes: all that its plan's shufflers add."""
        part = self.plan.shuffling
        if part is None or not part.fakes:
            return Fraction(0)
        if self.people <= part.fakes:
            raise InvalidInput(
                f"aggregate: its {self.people} reports must be more than the {part.fakes} fakes "
                "that its plan adds"
            )
        return Fraction(part.fakes, self.people)

    def oracle(self, cohort: int, ask: int = 0) -> Oracle:
        """The oracle of an ask, for estimates: its p and q are those of a report that is heard, who
        or what sent it.
        """
        oracle = self.plan.cohorts[cohort].oracles[ask]
        share = self.fake_share
        return oracle.among_fakes(share) if share and isinstance(oracle, PureOracle) else oracle

    def state(self, cohort: int, ask: int = 0) -> Integers:
        """What the reports to one ask of a cohort add up to, for estimators that need more than the
        support of values. Its oracle's reports must be ones that can be summed.
        """
        return self.counts.state(cohort, ask)

    def over_rows(self, cohort: int, asks: Sequence[int], count: RowCount) -> Integers:
        """What is counted in the rows of a cohort, for questions that support does not answer.

        Rows are there if the question keeps them (``keep="rows"``), for any asks together, or if
        the oracle of one ask has reports that cannot be summed, for that ask alone.

        Args:
            cohort: the cohort's index.
            asks: which of the cohort's asks ``count`` is about.
            count: what is counted. It gets the packed reports to each of the asks, one row for each
                person or for all who sent the same, and how often each row was sent, or its weight
                (None for once each). What it gives must add up: of two crowds' rows together it is
                the sum of what it is of each. It must be one that can be pickled, a function of a
                module or a frozen dataclass, since rows may lie elsewhere.
        """
        return self.counts.count_rows(cohort, asks, count)

    @property
    def answers(self) -> tuple[Integers, Integers, Integers]:
        """(cohort, answer, people) in columns, for families of cohorts whose answers are few."""
        return self.counts.answers

    # -- growing

    def add(
        self,
        reports: Reports | Report | Iterable[Reports | Report],
        times: ArrayLike | None = None,
    ) -> Self:
        """Take in reports: columns, a single one, or a stream of either. Each is taken whole or, if
        bad, not at all.

        Args:
            reports: what people sent.
            times: how many people sent each row of columns; once each by default. With it what a
                ``GROUP BY`` counted is added up as if all had come one by one.
        """
        if isinstance(reports, Report):
            reports = Reports.collect(self.plan, [reports])
        if isinstance(reports, Reports):
            self._fold(reports, None if times is None else _whole_times(times, len(reports)))
            return self
        if times is not None:
            raise InvalidInput("times must stand beside reports in columns, not beside a stream")
        for part in reports:
            self.add(part)
        return self

    def _fold(self, reports: Reports, weights: ArrayLike | None) -> None:
        """The one place where reports become integers: they are checked here, once, and nowhere
        below.
        """
        checked = reports.checked(self.plan)
        column = None if weights is None else whole_weights(weights, len(checked))
        self.counts.grow(len(checked) if column is None else weighed(column).magnitude)
        for batch in self.plan.cohorts.groups(checked.cohorts):
            own = None if column is None else column[batch.rows]
            self.counts.add(batch, checked.cohorts[batch.rows], checked.payload[batch.rows], own)

    def clear(self) -> Self:
        """Forget all reports. Whoever folds one crowd after the other so spares what new memory
        of large tables costs.
        """
        self.counts = self.counts.emptied()
        return self

    def absorb(self, other: Aggregate) -> Self:
        """Add another crowd's integers to these, in place; the other aggregate stays as it is."""
        if other.plan.id != self.plan.id:
            raise PlanMismatch("aggregates: only those of one plan can be merged")
        other_counts = (
            other.counts if other is not self else other.counts.merge(counts_of(self.plan.cohorts))
        )
        self.counts.grow(other_counts.magnitude)
        self.counts.absorb(other_counts)
        return self

    def merge(self, other: Aggregate) -> Aggregate:
        """Both crowds together; neither of the two changes."""
        return Aggregate(self.plan).absorb(self).absorb(other)

    # -- in pieces

    def pieces(self, *, rows: bool = True) -> Iterator[Piece]:
        """All that it holds, cut into pieces that add up by number, see
        :mod:`sottovoce.aggregation.pieces`. Empty ones are left out, except piece 0.

        Rows that are kept travel as well, in pieces by a hash; one that would be larger than 1 MiB
        is refused, since far more people sent reports than the plan expects.

        Args:
            rows: whether rows travel too. Where they stay, they are asked through
                :func:`sottovoce.aggregation.scattered.scattered`.
        """
        return pieces_of(self.plan.id, self.counts, self.plan.people, rows)

    def add_pieces(self, pieces: Iterable[Piece]) -> Self:
        """Add the pieces of other aggregates of the same plan: all pieces of each, as they were
        made or added up by number (:func:`~sottovoce.aggregation.pieces.sum_pieces`), in any order.

        Nothing changes if one of them is damaged or of another plan, is missing, or is there twice.

        Args:
            pieces: of the other aggregates.
        """
        add_pieces(self.plan.id, self.counts, list(pieces))
        return self

    # -- estimating and storing

    def estimate(
        self, *, candidates: Any = None, decoder: str | None = None, complete: bool = False
    ) -> Estimate:
        """The question's estimate from what was heard so far.

        Args:
            candidates: values that may be among the answers: a list, or one for each attribute by
                its name. Open alphabets need them; the search for popular values takes them where
                its method can.
            decoder: of ``rappor``, ``o-rr`` and ``o-rappor``: ``least-squares`` (unbiased, the
                default), ``nnls`` or ``lasso``.
            complete: of the same: whether the candidates are declared to be all that people say.
        """
        question = self.plan.question
        taken = inspect.signature(question.estimate).parameters
        given = {"candidates": candidates, "decoder": decoder, "complete": complete or None}
        options = {name: option for name, option in given.items() if option is not None}
        for name in options:
            if name not in taken:
                raise InvalidInput(f"{name} is no option of the estimate of {question.kind}")
        return question.estimate(self, **options)

    def to_bytes(self) -> bytes:
        """One form for the same reports and weights, whatever their order. Builds of zlib compress
        differently, so ``==`` and digests are those of the integers, not of these bytes.
        """
        body = zlib.compress(self.counts.to_bytes(), 1)
        head = AGGREGATE_MAGIC + bytes.fromhex(self.plan.id)
        return head + body + zlib.crc32(head + body).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, plan: Plan, data: bytes, reports: int | None = None) -> Aggregate:
        """The inverse of :meth:`to_bytes`; refuses damaged data and other plans.

        It inflates no further than its plan allows for so many ``reports``, if the caller knows how
        many there are; by default as many as the bytes can hold, or some times the people that the
        plan expects.

        Args:
            plan: whose aggregate it is.
            data: what :meth:`to_bytes` gave.
            reports: how many there are at most.
        """
        if len(data) < 40 or data[:4] != AGGREGATE_MAGIC:
            raise CorruptReport("aggregate: these bytes are not an aggregate")
        if zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
            raise CorruptReport("aggregate: the checksum does not match; it was cut or damaged")
        if data[4:36].hex() != plan.id:
            raise PlanMismatch("aggregate: it belongs to another plan")
        try:
            out = cls(plan)
            if reports is None:
                reports = max(MANY_TIMES * plan.people, REPORTS_PER_BYTE * len(data))
            out.counts.read(_inflated(data[36:-4], out.counts.most_bytes(reports)))
            return out
        except (
            zlib.error,
            ValueError,
            TypeError,
            IndexError,
            RecursionError,
            OverflowError,
        ) as wrong:
            if isinstance(wrong, SottovoceError):
                raise
            raise CorruptReport("aggregate: its content is malformed") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregate) or self.plan.id != other.plan.id:
            return False
        return self.counts.holds_same(other.counts)

    @property
    def digest(self) -> str:
        """The SHA-256 of the plan's id and of the integers: equal aggregates have equal ones, also
        where they are compressed by other libraries.
        """
        return hashlib.sha256(bytes.fromhex(self.plan.id) + self.counts.held_bytes()).hexdigest()

    __hash__ = None  # type: ignore[assignment]

    def require_people(self) -> int:
        """The number of people, or one clear error if nobody was heard yet, or if so much weight
        was taken away that less than nothing is left.
        """
        if self.people < 1:
            raise InvalidInput("aggregate: no reports yet, nothing to estimate")
        if self.counts.fewest < 0:
            raise InvalidInput(
                "aggregate: the weights of a cohort's reports add up to less than 0, nothing to "
                "estimate"
            )
        return self.people

    def require_counts(self, method: str) -> None:
        """One clear error if reports were taken away that are not there: for methods that take
        counts for those of people.

        Args:
            method: the name of the method that needs them.
        """
        if self.counts.is_signed:
            raise InvalidInput(f"aggregate: {method} needs reports whose weights are not negative")


def fold(plan: Plan, reports: Reports, weights: ArrayLike | None = None) -> Aggregate:
    """What reports add up to. Nothing else changes, so any engine may fold parts and
    :meth:`~Aggregate.absorb` them.

    Args:
        plan: whose reports they are; others, and impossible ones, are refused.
        reports: in columns. They are checked once, unless they were.
        weights: an integer beside each report, in fixed point; it may be negative. The aggregate is
        that of each report
            repeated as often as its weight says, and its ``people`` are the weights added up. Their
            absolute values may add up to 2^50 at most, which keeps every sum within 64 bits (to
            2^49 under ``rappor``, ``o-rappor`` and ``o-rr``, to 2^32 under ``she``).

    Frequencies of a weighted aggregate are unbiased for the shares of the weight. The variances
    beside them are those of as many people as there is weight, not those of weighted reports, which
    depend on the squares of the weights.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> reports = sv.simulate(plan, {"x": [True, False]}, seed=1)
    >>> fold(plan, reports, weights=[2, 1]) == fold(plan, reports).absorb(fold(plan, reports[:1]))
    True
    """
    out = Aggregate(plan)
    out._fold(reports, weights)
    return out


def _whole_times(times: ArrayLike, count: int) -> Integers:
    """How often each of ``count`` reports was sent: weights that count people."""
    column = whole_weights(times, count, "times")
    if int(column.min(initial=0)) < 0:
        raise InvalidInput("times must not be negative: they count people")
    return column


def _inflated(body: bytes, most: int) -> bytes:
    """The bytes that were compressed, if they are at most so many:
    no more than that is ever held.
    """
    stream = zlib.decompressobj()
    found = stream.decompress(body, most + 1)
    if len(found) > most:
        raise CorruptReport(
            f"aggregate: it inflates to more than the {most} bytes that its plan allows"
        )
    if not stream.eof or stream.unused_data:
        raise CorruptReport("aggregate: its content is malformed")
    return found
