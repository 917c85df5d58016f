"""The aggregate: integers that merge by addition, so any split, order or engine gives the same bits."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sottovoce.aggregation.counts import counts_of
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch, SottovoceError
from sottovoce.oracles.base import Integers
from sottovoce.protocol.families.base import Batch
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report, Reports

if TYPE_CHECKING:
    from sottovoce.results.estimate import Estimate

_MAGIC = b"SVA\x01"
MANY_TIMES = 16  # the people that a plan expects: more reports need bytes of their own
REPORTS_PER_BYTE = 4  # that compressed bytes may hold; real ones hold a random seed or a few bits each


class Aggregate:
    """What a plan's reports add up to, in integers.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> one = Aggregate(plan).add(sv.simulate(plan, {"x": [True] * 10}, seed=1))
    >>> one.merge(one).people
    20
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.counts = counts_of(plan.cohorts)

    @property
    def people(self) -> int:
        """How many reports it holds."""
        return self.counts.people

    def cohort(self, index: int) -> tuple[int, list[Integers]]:
        """People and states of one cohort; those of nobody if it was not heard from."""
        return self.counts.cohort(index)

    def add(self, reports: Reports | Report | Iterable[Reports | Report]) -> Self:
        """Take in reports: columns, a single one, or a stream of either. Each is taken whole or, if bad, not at all."""
        if isinstance(reports, Report):
            reports = Reports.collect(self.plan, [reports])
        if not isinstance(reports, Reports):
            for part in reports:
                self.add(part)
            return self
        if reports.plan_id != self.plan.id:
            raise PlanMismatch("reports: they belong to another plan")
        self._check(reports)
        batches = list(self.plan.cohorts.batches(reports.cohorts))
        for batch in batches:
            self._validate(batch, reports.payload[batch.rows])
        for batch in batches:
            self.counts.add(batch, reports.cohorts[batch.rows], reports.payload[batch.rows])
        return self

    def _check(self, reports: Reports) -> None:
        if reports.payload.shape[1] != self.plan.cohorts.bytes:
            raise CorruptReport(f"reports: payloads must have {self.plan.cohorts.bytes} bytes")
        if len(reports) and int(reports.cohorts.max()) >= len(self.plan.cohorts):
            raise CorruptReport(f"reports: cohort must be below {len(self.plan.cohorts)}")

    def _validate(self, batch: Batch, payload: Any) -> None:
        if payload[:, batch.slices[-1].stop :].any():
            raise CorruptReport("reports: the padding must be zero")
        if len(self.plan.cohorts) == 1 and len(batch.oracles) == 1:
            return  # accumulate validates the only ask before it changes anything
        for oracle, part in zip(batch.oracles, batch.slices, strict=True):
            oracle.validate(np.ascontiguousarray(payload[:, part]))

    def merge(self, other: Aggregate) -> Aggregate:
        """Both crowds together; neither of the two changes."""
        if other.plan.id != self.plan.id:
            raise PlanMismatch("aggregates: only those of one plan can be merged")
        out = Aggregate(self.plan)
        out.counts = self.counts.merge(other.counts)
        return out

    def estimate(self, **options: Any) -> Estimate:
        """The question's estimate from what was heard so far."""
        return self.plan.question.estimate(self, **options)

    def to_bytes(self) -> bytes:
        """One form for equal aggregates, whatever the order of their reports."""
        body = zlib.compress(self.counts.to_bytes(), 1)
        head = _MAGIC + bytes.fromhex(self.plan.id)
        return head + body + zlib.crc32(head + body).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, plan: Plan, data: bytes, reports: int | None = None) -> Aggregate:
        """The inverse of :meth:`to_bytes`; refuses damaged data and other plans.

        It inflates no further than its plan allows for so many ``reports``, if the caller knows how many there are;
        by default as many as the bytes can hold, or some times the people that the plan expects.
        """
        if len(data) < 40 or data[:4] != _MAGIC:
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
        except (zlib.error, ValueError, TypeError, IndexError, RecursionError, OverflowError) as wrong:
            if isinstance(wrong, SottovoceError):
                raise
            raise CorruptReport("aggregate: its content is malformed") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregate) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def require_people(self) -> int:
        """The number of people, or one clear error if nobody was heard yet."""
        if not self.people:
            raise InvalidInput("aggregate: no reports yet, nothing to estimate")
        return self.people


def _inflated(body: bytes, most: int) -> bytes:
    """The bytes that were compressed, if they are at most so many: no more than that is ever held."""
    stream = zlib.decompressobj()
    found = stream.decompress(body, most + 1)
    if len(found) > most:
        raise CorruptReport(f"aggregate: it inflates to more than the {most} bytes that its plan allows")
    if not stream.eof or stream.unused_data:
        raise CorruptReport("aggregate: its content is malformed")
    return found
