"""The aggregate: integers that merge by addition, so any split, order or engine gives the same bits."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sottovoce.errors import CorruptReport, InvalidInput, PlanMismatch, SottovoceError
from sottovoce.oracles.base import Integers
from sottovoce.oracles.options import whole
from sottovoce.plans import Plan
from sottovoce.reports import Report, Reports, rows_by_cohort

if TYPE_CHECKING:
    from sottovoce.estimate import Estimate

_MAGIC = b"SVA\x01"


class Aggregate:
    """What a plan's reports add up to. Holds, for each cohort heard from, its people and one state per ask.

    >>> from sottovoce import front, frequencies, schema
    >>> plan = front.plan(
    ...     schema.Schema(x=schema.Boolean()), frequencies.Frequencies("x"), epsilon=1.0, people=1000)
    >>> one = Aggregate(plan).add(front.simulate(plan, {"x": [True] * 10}, seed=1))
    >>> one.merge(one).people
    20
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cohorts: dict[int, tuple[int, list[Integers]]] = {}

    @property
    def people(self) -> int:
        """How many reports it holds."""
        return sum(people for people, _ in self._cohorts.values())

    def cohort(self, index: int) -> tuple[int, list[Integers]]:
        """People and states of one cohort; those of nobody if it was not heard from."""
        if index in self._cohorts:
            return self._cohorts[index]
        return 0, [ask.oracle.empty() for ask in self.plan.cohorts[index].asks]

    def add(self, reports: Reports | Report | Iterable[Reports | Report]) -> Self:
        """Take in reports: columns, a single one, or a stream of either. Each is taken whole or, if bad, not at all."""
        if isinstance(reports, Report):
            reports = Reports.collect(self.plan, [reports])
        if not isinstance(reports, Reports):
            for batch in reports:
                self.add(batch)
            return self
        if reports.plan_id != self.plan.id:
            raise PlanMismatch("reports: they belong to another plan")
        self._check(reports)
        grouped = list(rows_by_cohort(reports.cohorts, len(self.plan.cohorts)))
        for index, rows in grouped:
            self._validate(index, reports.payload[rows])
        for index, rows in grouped:
            payload = reports.payload[rows]
            people, states = self.cohort(index)
            cohort = self.plan.cohorts[index]
            states = [
                ask.oracle.accumulate(state, np.ascontiguousarray(payload[:, part]))
                for ask, part, state in zip(cohort.asks, cohort.slices, states, strict=True)
            ]
            self._cohorts[index] = (people + len(payload), states)
        return self

    def _check(self, reports: Reports) -> None:
        if reports.payload.shape[1] != self.plan.cohorts.bytes:
            raise CorruptReport(f"reports: payloads must have {self.plan.cohorts.bytes} bytes")
        if len(reports) and int(reports.cohorts.max()) >= len(self.plan.cohorts):
            raise CorruptReport(f"reports: cohort must be below {len(self.plan.cohorts)}")

    def _validate(self, index: int, payload: Any) -> None:
        cohort = self.plan.cohorts[index]
        if payload[:, cohort.bytes :].any():
            raise CorruptReport("reports: the padding must be zero")
        if len(self.plan.cohorts) == 1 and len(cohort.asks) == 1:
            return  # accumulate validates the only ask before it changes anything
        for ask, part in zip(cohort.asks, cohort.slices, strict=True):
            ask.oracle.validate(np.ascontiguousarray(payload[:, part]))

    def merge(self, other: Aggregate) -> Aggregate:
        """Both crowds together; neither of the two changes."""
        if other.plan.id != self.plan.id:
            raise PlanMismatch("aggregates: only those of one plan can be merged")
        out = Aggregate(self.plan)
        for index in sorted({*self._cohorts, *other._cohorts}):
            (people, states), (more, others) = self.cohort(index), other.cohort(index)
            merged = [
                ask.oracle.merge(one, two)
                for ask, one, two in zip(self.plan.cohorts[index].asks, states, others, strict=True)
            ]
            out._cohorts[index] = (people + more, merged)
        return out

    def estimate(self, **options: Any) -> Estimate:
        """The question's estimate from what was heard so far."""
        return self.plan.question.estimate(self, **options)

    def _canonical(self) -> Iterator[tuple[int, int, list[Integers]]]:
        for index in sorted(self._cohorts):
            people, states = self._cohorts[index]
            if people:
                asks = self.plan.cohorts[index].asks
                yield index, people, [a.oracle.canonical(s) for a, s in zip(asks, states, strict=True)]

    def to_bytes(self) -> bytes:
        """One form for equal aggregates, whatever the order of their reports."""
        header, arrays = [], []
        for index, people, states in self._canonical():
            header.append([index, people, [list(state.shape) for state in states]])
            arrays += [np.ascontiguousarray(state, "<i8").tobytes() for state in states]
        text = json.dumps(header, separators=(",", ":")).encode()
        body = zlib.compress(len(text).to_bytes(8, "little") + text + b"".join(arrays), 1)
        head = _MAGIC + bytes.fromhex(self.plan.id)
        return head + body + zlib.crc32(head + body).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, plan: Plan, data: bytes) -> Aggregate:
        """The inverse of :meth:`to_bytes`; refuses damaged data and other plans."""
        if len(data) < 40 or data[:4] != _MAGIC:
            raise CorruptReport("aggregate: these bytes are not an aggregate")
        if zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
            raise CorruptReport("aggregate: the checksum does not match; it was cut or damaged")
        if data[4:36].hex() != plan.id:
            raise PlanMismatch("aggregate: it belongs to another plan")
        try:
            return cls(plan)._read(zlib.decompress(data[36:-4]))
        except (zlib.error, ValueError, TypeError, IndexError, RecursionError, OverflowError) as wrong:
            if isinstance(wrong, SottovoceError):
                raise
            raise CorruptReport("aggregate: its content is malformed") from None

    def _read(self, body: bytes) -> Self:
        start = 8 + int.from_bytes(body[:8], "little")
        for index, people, shapes in json.loads(body[8:start]):
            asks = self.plan.cohorts[whole("aggregate: cohort", index, 0, len(self.plan.cohorts) - 1)].asks
            states = []
            for ask, shape in zip(asks, shapes, strict=True):
                expected = ask.oracle.state_shape
                if len(shape) != len(expected) or any(e not in (0, s) for e, s in zip(expected, shape, strict=True)):
                    raise CorruptReport("aggregate: a state has another shape than its oracle's")
                count = math.prod(whole("aggregate: shape", part, 0, 1 << 40) for part in shape)
                states.append(np.frombuffer(body, "<i8", count, start).reshape(shape).astype(np.int64))
                start += 8 * count
            self._cohorts[index] = (whole("aggregate: people", people, 0, 1 << 62), states)
        if start != len(body):
            raise CorruptReport("aggregate: it has bytes to spare")
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregate) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def require_people(self) -> int:
        """The number of people, or one clear error if nobody was heard yet."""
        if not self.people:
            raise InvalidInput("aggregate: no reports yet, nothing to estimate")
        return self.people
