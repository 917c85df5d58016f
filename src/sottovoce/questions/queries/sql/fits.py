"""Fitted tables of groups of reports, with weights or without, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from sottovoce.questions.queries.evidence import Floats, Integers
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.models.several import restricted
from sottovoce.questions.queries.sql.expressions import Weight
from sottovoce.questions.queries.sql.recent import RecentCache
from sottovoce.questions.queries.sql.rows import RowGroup
from sottovoce.questions.queries.sql.source import QuerySource

MAX_KEPT_FITS = 64
MAX_KEPT_SMALL_FITS = 1024  # which keep some hundred kilobytes each
MAX_EXACT_TOTAL = 1 << 49  # of weights in fixed point, whose sums stay within 64 bits
MAX_ROUNDED_BITS = 45
MAX_DECIMALS = 9
CHECKED_WEIGHTS = 1 << 16  # at once, which a processor keeps at hand
JOINT_TERMS = 256  # that are asked of a table at once, so that covariances stay small


@dataclass(frozen=True, eq=False)
class GroupWeight:
    """A weight of the reports of a group, none negative; ``values`` None for 1 each."""

    key: str | None
    values: Floats | None  # (rows,)
    total: float
    times: Integers | None = None  # how many reports each row stands for; None for one each
    known: dict[str | None, float] = field(default_factory=dict)

    def alike(self, other: GroupWeight) -> float:
        """How the errors of two sums go together: the cosine of their weights.

        Of unbiased sums of independent reports, Cov[S, S'] = sum w w' Var[s], and the variance of a
        report's part hardly depends on its weight.
        """
        if self.key == other.key:
            return 1.0
        if other.key not in self.known:
            self.known[other.key] = self._cosine(other)
        return self.known[other.key]

    def _cosine(self, other: GroupWeight) -> float:
        if self.values is None or other.values is None:
            values = other.values if self.values is None else self.values
            assert values is not None
            # cos(1, w) = sum w / sqrt(n sum w^2)
            people = len(values) if self.times is None else int(self.times.sum())
            return self._sum(values) / float(np.sqrt(people * self._dot(values, values)))
        norm = np.sqrt(self._dot(self.values, self.values) * self._dot(other.values, other.values))
        return self._dot(self.values, other.values) / float(norm)

    def _sum(self, values: Floats) -> float:
        return summed(values, self.times)

    def _dot(self, one: Floats, other: Floats) -> float:
        # not by @, whose threads wait for each other on a busy machine
        if self.times is None:
            return float(np.einsum("i,i->", one, other))
        return float(np.einsum("i,i,i->", one, other, self.times))


def summed(values: Floats, times: Integers | None) -> float:
    """Numbers of rows added up, each as often as its row stands for a report."""
    return float(values.sum()) if times is None else float(np.einsum("i,i->", values, times))


class Fits:
    """All tables that were fitted for one source."""

    def __init__(self, source: QuerySource) -> None:
        self.source = source
        self._large = RecentCache[FittedTable](MAX_KEPT_FITS)
        self._small = RecentCache[FittedTable](MAX_KEPT_SMALL_FITS)

    def weights(self, group: RowGroup, weight: Weight | None) -> list[tuple[float, GroupWeight]]:
        """A weight as numbers times weights that are not negative.

        A constant is a multiple of the count, so that sums of it agree with the count; a weight
        with negative values is moved up, and the count is taken off again.
        """
        key = ("weights", None if weight is None else weight.key)
        if key not in group.known:
            group.known[key] = self._weights(group, weight)
        found: list[tuple[float, GroupWeight]] = group.known[key]
        return found

    def _weights(self, group: RowGroup, weight: Weight | None) -> list[tuple[float, GroupWeight]]:
        times = group.times
        everybody = GroupWeight(None, None, float(group.people), times)
        if weight is None:
            return [(1.0, everybody)]
        values = weight.values if group.rows is None else weight.values[group.rows]
        if not len(values):
            return []
        low, high = float(values.min()), float(values.max())
        if low == high:
            return [(low, everybody)] if low else []
        if high <= 0:  # the sum of negated numbers is the negated sum
            turned = GroupWeight(f"-({weight.key})", -values, -summed(values, times), times)
            return [(-1.0, turned)]
        moved = min(low, 0.0)
        shifted = values - moved
        key = f"{weight.key} - {moved!r}"
        found = [(1.0, GroupWeight(key, shifted, summed(shifted, times), times))]
        return [*found, (moved, everybody)] if moved else found

    @property
    def is_unbiased(self) -> bool:
        """Whether all answers are right on average."""
        kept = (*self._large.values(), *self._small.values())
        return all(table.is_unbiased for table in kept)

    def table(self, group: RowGroup, weight: GroupWeight) -> FittedTable:
        """The fitted table of a group's weight."""
        if "digest" not in group.known:
            group.known["digest"] = _digest(group.rows)
        key = (group.known["digest"], weight.key)
        for kept in (self._small, self._large):
            if key in kept:
                return kept.get(key, lambda: self._fitted(group, weight))
        made = self._fitted(group, weight)
        return (self._small if made.is_small else self._large).get(key, lambda: made)

    def _fitted(self, group: RowGroup, weight: GroupWeight) -> FittedTable:
        fixed = None if weight.values is None else fixed_point(weight.values, weight.times)
        return self.source.fit(group.rows, fixed)


def _digest(rows: Integers | None) -> str:
    return "all" if rows is None else blake2b(rows.tobytes(), digest_size=16).hexdigest()


def fixed_point(values: Floats, times: Integers | None = None) -> Integers:
    """Weights as whole numbers, exact if they are decimals of a few digits, else rounded; each is
    of one report, or of ``times`` so many.

    >>> fixed_point(np.array([0.25, 1.5])).tolist()
    [25, 150]
    """
    total = summed(np.abs(values), times)
    largest = float(np.abs(values).max())
    for decimals in range(MAX_DECIMALS + 1):
        scale = 10.0**decimals
        if total * scale > MAX_EXACT_TOTAL:
            break
        starts = range(0, len(values), CHECKED_WEIGHTS)
        parts = (values[start : start + CHECKED_WEIGHTS] * scale for start in starts)
        if all(_are_whole(part, min(1.0, largest * scale)) for part in parts):
            return np.round(values * scale).astype(np.int64)
    bits = MAX_ROUNDED_BITS - int(np.ceil(np.log2(total)))
    rounded: Integers = np.round(np.ldexp(values, bits)).astype(np.int64)
    return rounded


def _are_whole(scaled: Floats, slack: float) -> bool:
    """Whether scaled decimals are whole numbers.

    They are not exact in binary, and off by some units in the last place of what they are, or of
    ``slack``.
    """
    size = np.abs(scaled) + slack
    return bool((np.abs(scaled - np.round(scaled)) <= 4e-15 * size).all())


@dataclass(eq=False)
class Request:
    """Selections whose joint estimate is wanted; it is there once the batch has run."""

    terms: Sequence[Term]
    joint: Joint | None = None


class JointBatch:
    """Requests to fitted tables, answered many at a time."""

    def __init__(self, fits: Fits) -> None:
        self.fits = fits
        self._waiting: dict[tuple[int, str | None], list[Request]] = {}
        self._tables: dict[tuple[int, str | None], tuple[RowGroup, GroupWeight]] = {}
        self._groups: dict[int, int] = {}

    def add(self, group: RowGroup, weight: GroupWeight, terms: Sequence[Term]) -> Request:
        """Ask for the joint estimate of some selections of a group's weight."""
        key = (id(group), weight.key)
        self._tables[key] = (group, weight)
        self._groups.setdefault(id(group), len(self._groups))
        request = Request(terms)
        self._waiting.setdefault(key, []).append(request)
        return request

    @property
    def tables(self) -> int:
        """How many fitted tables are asked."""
        return len(self._tables)

    def run(self) -> None:
        """Answer all requests."""
        for key, requests in self._waiting.items():
            group, weight = self._tables[key]
            table = self.fits.table(group, weight)
            number = self._groups[id(group)]
            for alike in _by_dimensions(requests):
                chunk: list[Request] = []
                for request in alike:
                    chunk.append(request)
                    if sum(len(each.terms) for each in chunk) >= JOINT_TERMS:
                        _answer(table, chunk, number)
                        chunk = []
                _answer(table, chunk, number)
        self._waiting = {}


def _by_dimensions(requests: Sequence[Request]) -> list[list[Request]]:
    """Requests that select by the same dimensions: what intervals an answer has depends on them,
    and not on what else a query asks for.
    """
    found: dict[frozenset[int], list[Request]] = {}
    for request in requests:
        dimensions = frozenset(axis for term in request.terms for axis in restricted(term))
        found.setdefault(dimensions, []).append(request)
    return list(found.values())


def _answer(table: FittedTable, requests: Sequence[Request], number: int) -> None:
    """Ask a table once for all selections of some requests; the same one is asked once."""
    places: dict[int, int] = {}
    terms: list[Term] = []
    for request in requests:
        for term in request.terms:
            if id(term) not in places:
                places[id(term)] = len(terms)
                terms.append(term)
    if not terms:
        return
    joint = table.joint(terms)
    draws = joint.draws
    if draws is not None and number:
        # draws of different groups are independent, whatever coins they were made with
        order = np.random.default_rng(number).permutation(len(draws))
        draws = draws[order]
    for request in requests:
        own = [places[id(term)] for term in request.terms]
        request.joint = replace(joint, draws=draws).some(own)
