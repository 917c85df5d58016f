"""Where an aggregate's integers are kept: a state per cohort, a sparse tally of answers, or the
reports themselves.

Reports may have weights, integers in fixed point. Then wherever people are counted weights are
added up: what is kept is what reports would give that are repeated as often as their weights say,
and a negative weight takes reports away.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import Oracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.counter import Weighed, too_much, weighed
from sottovoce.oracles.layout import Payload
from sottovoce.protocol.families import Family, Signs
from sottovoce.protocol.families.base import Batch, rows_by

_WORD = 8  # bytes of an integer
_COHORT_LINE = 64  # at most: a cohort's number and people, as text
_SHAPE_TEXT = 64  # at most: a state's shape, as text


class Counts(ABC):
    """The integers of the reports heard under a family of cohorts.
    Two of them merge by addition.
    """

    name: ClassVar[str]  # by which a family chooses it

    def __init__(self, cohorts: Family) -> None:
        self.cohorts = cohorts
        self.magnitude = 0  # of all reports: their absolute weights added up, or how many there are

    @cached_property
    def most_weight(self) -> int:
        """The largest magnitude with which no integer of any cohort can overflow."""
        return min(oracle.most_weight for kind in self.cohorts.kinds for oracle in kind.oracles)

    def grow(self, more: int) -> None:
        """Make room for reports of a magnitude; one clear error, before anything changes, if there
        is none.
        """
        if self.magnitude + more > self.most_weight:
            raise too_much(self.most_weight)
        self.magnitude += more

    @property
    @abstractmethod
    def people(self) -> int:
        """How many reports it holds, or how much weight."""

    @property
    @abstractmethod
    def holds_reports(self) -> bool:
        """Whether the reports themselves, each by itself, can be read off it: then it is no sum."""

    @property
    @abstractmethod
    def fewest(self) -> int:
        """The people of the smallest cohort that was heard from: of one person alone a sum is the
        report. 0 if none.
        """

    @abstractmethod
    def cohort(self, index: int) -> tuple[int, list[Integers]]:
        """People and states of one cohort; those of nobody if it was not heard from."""

    def state(self, index: int, ask: int) -> Integers:
        """The state of one ask of a cohort."""
        return self.cohort(index)[1][ask]

    @abstractmethod
    def cohort_people(self, index: int) -> int:
        """The people of one cohort, or their weight."""

    def support(self, index: int, ask: int, values: ArrayLike | None = None) -> Integers:
        """How many reports of a cohort, or how much weight, support each value of one of its asks
        (all by default).
        """
        oracle = self.cohorts[index].oracles[ask]
        return oracle.support_of(self.state(index, ask), oracle.asked(values))

    @abstractmethod
    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        """Take in a batch's checked reports: the cohorts, payloads and weights of its people. See
        :meth:`grow`.
        """

    @abstractmethod
    def absorb(self, other: Self) -> None:
        """Add another crowd, which stays as it is. See :meth:`grow`."""

    def merge(self, other: Self) -> Self:
        """Both crowds together; neither of the two changes."""
        out = type(self)(self.cohorts)
        for part in (self, other):
            out.grow(part.magnitude)
            out.absorb(part)
        return out

    @abstractmethod
    def to_bytes(self) -> bytes:
        """One form for equal crowds, whatever the order of their reports."""

    @abstractmethod
    def most_bytes(self, reports: int) -> int:
        """What :meth:`to_bytes` gives at most for so many reports under these cohorts."""

    @abstractmethod
    def read(self, body: bytes) -> None:
        """Fill empty counts with what :meth:`to_bytes` wrote."""


@dataclass
class CohortState:
    """What one cohort said: its people (or their weight), their magnitude, and a state per ask."""

    people: int
    magnitude: int
    states: list[Integers]

    @property
    def is_nothing(self) -> bool:
        """Whether it is what a cohort says that was not heard from."""
        return self.people == 0 and not any(state.any() for state in self.states)


class StateCounts(Counts):
    """One state per ask for each cohort heard from."""

    name: ClassVar[str] = "states"

    def __init__(self, cohorts: Family) -> None:
        super().__init__(cohorts)
        self._heard: dict[int, CohortState] = {}

    @property
    def people(self) -> int:
        return sum(heard.people for heard in self._heard.values())

    @property
    def holds_reports(self) -> bool:
        """An oracle whose state grows with the people (a part of its shape is 0) keeps their
        reports.
        """
        return any(
            0 in oracle.state_shape for kind in self.cohorts.kinds for oracle in kind.oracles
        )

    @property
    def fewest(self) -> int:
        return min((heard.people for heard in self._heard.values() if heard.people), default=0)

    def cohort(self, index: int) -> tuple[int, list[Integers]]:
        if index in self._heard:
            return self._heard[index].people, self._heard[index].states
        return 0, [oracle.empty() for oracle in self.cohorts[index].oracles]

    def cohort_people(self, index: int) -> int:
        return self._heard[index].people if index in self._heard else 0

    def _room(self, index: int, oracles: tuple[Oracle, ...], more: int) -> CohortState:
        """What a cohort said, in integers that hold reports of a further magnitude as well."""
        if index not in self._heard:
            self._heard[index] = CohortState(0, 0, [oracle.empty(more) for oracle in oracles])
        heard = self._heard[index]
        heard.magnitude += more
        heard.states = [
            oracle.fitted(state, heard.magnitude)
            for oracle, state in zip(oracles, heard.states, strict=True)
        ]
        return heard

    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        for index, rows in rows_by(cohorts, len(self.cohorts)):
            own = payload[rows]
            own_weights = None if weights is None else weights[rows]
            more = Weighed(len(own), len(own)) if own_weights is None else weighed(own_weights)
            heard = self._room(index, batch.oracles, more.magnitude)
            heard.people += more.total
            for place, (oracle, part) in enumerate(zip(batch.oracles, batch.slices, strict=True)):
                told = np.ascontiguousarray(own[:, part])
                heard.states[place] = oracle._accumulate(heard.states[place], told, own_weights)

    def absorb(self, other: Self) -> None:
        for index in sorted(other._heard):
            more = other._heard[index]
            oracles = self.cohorts[index].oracles
            heard = self._room(index, oracles, more.magnitude)
            heard.people += more.people
            for place, (oracle, state) in enumerate(zip(oracles, more.states, strict=True)):
                heard.states[place] = oracle.absorb(heard.states[place], state)

    def _canonical(self) -> Iterator[tuple[int, int, list[Integers]]]:
        for index in sorted(self._heard):
            heard = self._heard[index]
            if not heard.is_nothing:
                oracles = self.cohorts[index].oracles
                states = [
                    o.canonical(state) for o, state in zip(oracles, heard.states, strict=True)
                ]
                yield index, heard.people, states

    def to_bytes(self) -> bytes:
        header, arrays = [], []
        for index, people, states in self._canonical():
            header.append([index, people, [list(state.shape) for state in states]])
            arrays += [np.ascontiguousarray(state, "<i8").tobytes() for state in states]
        text = json.dumps(header, separators=(",", ":")).encode()
        return len(text).to_bytes(8, "little") + text + b"".join(arrays)

    def most_bytes(self, reports: int) -> int:
        heard = min(len(self.cohorts), reports)
        most = 0  # of one cohort's line and states
        row = 0  # of one report, where reports are kept
        for cohort in self.cohorts.kinds:
            fixed = _COHORT_LINE
            for oracle in cohort.oracles:
                parts = [part for part in oracle.state_shape if part]
                is_kept = len(parts) < len(oracle.state_shape)
                fixed += _SHAPE_TEXT + (0 if is_kept else _WORD * math.prod(parts))
                row = max(row, _WORD * math.prod(parts) if is_kept else 0)
            most = max(most, fixed)
        asks = max(len(cohort.oracles) for cohort in self.cohorts.kinds)
        return _WORD + _COHORT_LINE + heard * most + reports * asks * row

    def read(self, body: bytes) -> None:
        start = 8 + int.from_bytes(body[:8], "little")
        for index, people, shapes in json.loads(body[8:start]):
            oracles = self.cohorts[
                whole("aggregate: cohort", index, 0, len(self.cohorts) - 1)
            ].oracles
            states = []
            for oracle, shape in zip(oracles, shapes, strict=True):
                expected = oracle.state_shape
                if len(shape) != len(expected) or any(
                    e not in (0, s) for e, s in zip(expected, shape, strict=True)
                ):
                    raise CorruptReport("aggregate: a state has another shape than its oracle's")
                count = math.prod(whole("aggregate: shape", part, 0, 1 << 40) for part in shape)
                states.append(
                    np.frombuffer(body, "<i8", count, start).reshape(shape).astype(np.int64)
                )
                start += 8 * count
            total = whole("aggregate: people", people, 0, self.most_weight)
            self._heard[index] = CohortState(total, total, states)
            self.grow(total)
        if start != len(body):
            raise CorruptReport("aggregate: it has bytes to spare")


class AnswerCounts(Counts):
    """How many people of each cohort gave each answer, for families whose oracles count answers."""

    name: ClassVar[str] = "tally"

    def __init__(self, cohorts: Family) -> None:
        super().__init__(cohorts)
        assert isinstance(cohorts, Signs)
        self._bits = cohorts.answer_bits
        self.keys = np.zeros(0, np.int64)  # cohort and answer in one number, increasing
        self.counts = np.zeros(0, np.int64)

    @property
    def people(self) -> int:
        return int(self.counts.sum())

    @property
    def holds_reports(self) -> bool:
        """A tally with more places than people counts hardly anybody together with others."""
        return len(self.cohorts) << self._bits > self.people

    @property
    def fewest(self) -> int:
        cohorts, _, counts = self.answers
        _, people = _summed([(cohorts, counts)])
        return int(people.min(initial=self.people))

    @property
    def answers(self) -> tuple[Integers, Integers, Integers]:
        """(cohort, answer, people) in columns, in increasing order."""
        return self.keys >> self._bits, self.keys & self._mask, self.counts

    def _part(self, index: int) -> slice:
        """Where the answers of a cohort stand."""
        first, last = np.searchsorted(
            self.keys, [index << self._bits, (index + 1) << self._bits]
        ).tolist()
        return slice(first, last)

    def cohort_people(self, index: int) -> int:
        return int(self.counts[self._part(index)].sum())

    def cohort(self, index: int) -> tuple[int, list[Integers]]:
        oracle = self.cohorts[index].oracles[0]
        part = self._part(index)
        payload = self._payload(oracle, self.keys[part] & self._mask)
        return self.cohort_people(index), [
            oracle._accumulate(oracle.empty(), payload, self.counts[part])
        ]

    @property
    def _mask(self) -> int:
        return (1 << self._bits) - 1

    @staticmethod
    def _payload(oracle: Oracle, answers: Integers) -> Payload:
        """The reports that answers came from: a tallied oracle's report is one field."""
        payload = np.zeros((len(answers), oracle.layout.bytes), np.uint8)
        oracle.layout.write(payload, oracle.layout.fields[0].name, answers.astype(np.uint64))
        return payload

    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        layout = batch.oracles[0].layout
        answers = layout.read(payload[:, : layout.bytes], layout.fields[0].name)
        keys = cohorts.astype(np.int64) << self._bits | answers.astype(np.int64)
        counts = np.ones(len(keys), np.int64) if weights is None else weights
        self.keys, self.counts = _summed([(self.keys, self.counts), (keys, counts)])

    def absorb(self, other: Self) -> None:
        self.keys, self.counts = _summed([(self.keys, self.counts), (other.keys, other.counts)])

    def to_bytes(self) -> bytes:
        return self.keys.astype("<i8").tobytes() + self.counts.astype("<i8").tobytes()

    def most_bytes(self, reports: int) -> int:
        return 2 * _WORD * min(len(self.cohorts) << self._bits, reports)

    def read(self, body: bytes) -> None:
        if not body:
            return  # of nobody
        both = np.frombuffer(body, "<i8").astype(np.int64)
        if len(both) % 2:
            raise CorruptReport("aggregate: it has bytes to spare")
        self.keys, self.counts = both[: len(both) // 2], both[len(both) // 2 :]
        rising = bool((np.diff(self.keys) > 0).all()) and (
            not len(self.keys) or int(self.keys[0]) >= 0
        )
        if (
            not rising
            or bool((self.counts < 1).any())
            or float(self.counts.astype(float).sum()) > self.most_weight
        ):
            raise CorruptReport("aggregate: its content is malformed")
        self.grow(self.people)
        self._check_answers()

    def _check_answers(self) -> None:
        cohorts, answers, _ = self.answers
        if len(cohorts) and int(cohorts[-1]) >= len(self.cohorts):
            raise CorruptReport(f"aggregate: cohort must be below {len(self.cohorts)}")
        for batch in self.cohorts.batches(cohorts.astype(np.uint32)):
            own = answers[batch.rows]
            if len(own) and int(own.max()) >> batch.oracles[0].layout.bits:
                raise CorruptReport("aggregate: an answer is not one of its oracle's")
            batch.oracles[0].validate(self._payload(batch.oracles[0], own))


def _summed(parts: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Sparse counts added up, by increasing key; what adds up to nothing is left out."""
    keys = np.concatenate([key for key, _ in parts])
    counts = np.concatenate([count for _, count in parts])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    if not len(keys):
        return keys, counts
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    keys, counts = keys[first], np.add.reduceat(counts, first)
    is_held = counts != 0
    return keys[is_held], counts[is_held]


class RowCounts(Counts):
    """Which reports were sent, and how often each: the columnar table of payloads, for asks that
    are kept together.
    """

    name: ClassVar[str] = "joint"

    def __init__(self, cohorts: Family) -> None:
        super().__init__(cohorts)
        self._sorted = (
            np.zeros((0, _COHORT_BYTES + cohorts.bytes), np.uint8),
            np.zeros(0, np.int64),
        )
        # not yet sorted in, and never more than what is
        self._pending: list[tuple[Payload, Integers]] = []

    @property
    def rows(self) -> tuple[Payload, Integers]:
        """(cohort and payload, people) in columns: the different reports, in increasing order of
        their bytes.
        """
        if self._pending:
            self._sorted = _summed_rows([self._sorted, *self._pending])
            self._pending = []
        return self._sorted

    def told(self, index: int) -> tuple[list[Payload], Integers]:
        """The different reports of one cohort: what they say to each ask, and how many people sent
        each.
        """
        rows, people = self.rows
        cohorts = _cohorts_of(rows)
        first, last = np.searchsorted(cohorts, [index, index + 1])
        payload = rows[first:last, _COHORT_BYTES:]
        parts = [np.ascontiguousarray(payload[:, part]) for part in self.cohorts[index].slices]
        return parts, people[first:last]

    @property
    def people(self) -> int:
        return sum(int(counts.sum()) for _, counts in (self._sorted, *self._pending))

    @property
    def holds_reports(self) -> bool:
        return True

    @property
    def fewest(self) -> int:
        rows, counts = self.rows
        _, people = _summed([(_cohorts_of(rows), counts)])
        return int(people.min(initial=self.people))

    def cohort_people(self, index: int) -> int:
        rows, people = self.rows
        first, last = np.searchsorted(_cohorts_of(rows), [index, index + 1]).tolist()
        return int(people[first:last].sum())

    def cohort(self, index: int) -> tuple[int, list[Integers]]:
        payloads, people = self.told(index)
        weights = None if bool((people == 1).all()) else people
        states = [
            oracle._accumulate(oracle.empty(), payload, weights)
            for oracle, payload in zip(self.cohorts[index].oracles, payloads, strict=True)
        ]
        return int(people.sum()), states

    def state(self, index: int, ask: int) -> Integers:
        payloads, people = self.told(index)
        oracle = self.cohorts[index].oracles[ask]
        weights = None if bool((people == 1).all()) else people
        return oracle._accumulate(oracle.empty(), payloads[ask], weights)

    def add(
        self,
        batch: Batch,
        cohorts: NDArray[np.uint32],
        payload: Payload,
        weights: Integers | None = None,
    ) -> None:
        labels = cohorts.astype(">u4").view(np.uint8).reshape(-1, _COHORT_BYTES)
        people = np.ones(len(payload), np.int64) if weights is None else weights
        self._pending.append((np.concatenate([labels, payload], axis=1), people))
        if sum(len(part) for part, _ in self._pending) > len(self._sorted[0]):
            self._sorted, self._pending = self.rows, []

    def absorb(self, other: Self) -> None:
        self._sorted = _summed_rows([self.rows, other.rows]) if len(self.rows[0]) else other.rows

    def to_bytes(self) -> bytes:
        rows, people = self.rows
        return len(people).to_bytes(8, "little") + people.astype("<i8").tobytes() + rows.tobytes()

    def most_bytes(self, reports: int) -> int:
        return _WORD + reports * (_WORD + _COHORT_BYTES + self.cohorts.bytes)

    def read(self, body: bytes) -> None:
        count = int.from_bytes(body[:8], "little")
        width = _COHORT_BYTES + self.cohorts.bytes
        if len(body) != 8 + count * (8 + width):
            raise CorruptReport("aggregate: it has bytes to spare or too few")
        people = np.frombuffer(body, "<i8", count, 8).astype(np.int64)
        rows = np.frombuffer(body, np.uint8, offset=8 + 8 * count).reshape(count, width).copy()
        if bool((people < 1).any()) or float(people.astype(float).sum()) > self.most_weight:
            raise CorruptReport("aggregate: its content is malformed")
        self.grow(int(people.sum()))
        again, _ = _summed_rows([(rows, people)])
        if not np.array_equal(again, rows):
            raise CorruptReport("aggregate: its reports are not in increasing order")
        if count and int(_cohorts_of(rows)[-1]) >= len(self.cohorts):
            raise CorruptReport(f"aggregate: cohort must be below {len(self.cohorts)}")
        self._sorted = rows, people
        for index in np.unique(_cohorts_of(rows)).tolist():
            if rows[_cohorts_of(rows) == index, _COHORT_BYTES + self.cohorts[index].bytes :].any():
                raise CorruptReport("aggregate: the padding must be zero")
            for oracle, payload in zip(
                self.cohorts[index].oracles, self.told(index)[0], strict=True
            ):
                oracle.validate(payload)


# before a kept report, highest first, so that reports are in the order of their cohorts
_COHORT_BYTES = 4


def _cohorts_of(rows: Payload) -> Integers:
    return np.ascontiguousarray(rows[:, :_COHORT_BYTES]).view(">u4").ravel().astype(np.int64)


def _summed_rows(parts: list[tuple[Payload, Integers]]) -> tuple[Payload, Integers]:
    """Counted rows of bytes added up, by increasing row; what adds up to nothing is left out."""
    rows = np.concatenate([part for part, _ in parts])
    counts = np.concatenate([count for _, count in parts])
    if not len(rows):
        return rows, counts
    words = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    words[:, : rows.shape[1]] = rows
    keys = words.view(">u8").astype(np.uint64)
    order = np.lexsort(keys.T[::-1])
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)]))
    counts = np.add.reduceat(counts, first)
    is_held = counts != 0
    return np.ascontiguousarray(rows[order[first[is_held]]]), counts[is_held]


COUNTS: tuple[type[Counts], ...] = (StateCounts, AnswerCounts, RowCounts)


def counts_of(cohorts: Family) -> Counts:
    """Empty counts for a family of cohorts."""
    kind = next(each for each in COUNTS if each.name == cohorts.counted_by)
    return kind(cohorts)
