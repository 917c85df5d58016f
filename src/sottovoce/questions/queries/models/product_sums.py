"""Sums over people of products of what they said along each dimension, in fixed point.

Integers add up to the same sum in any order, so that people's rows may lie in many places. What a
person adds depends on her row alone: sums over intervals are exact, since their weights are rounded
to few bits first, and all that follows is done number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from sottovoce.oracles import PureOracle
from sottovoce.oracles.base import Floats, Integers
from sottovoce.oracles.layout import Payload

PEOPLE_AT_ONCE = 1 << 13
WEIGHT_BITS = 30  # of an interval's weight; with up to 2^14 intervals sums stay below 2^53
SUM_BITS = 61  # of all people's products together
SQUARE_BITS = 20  # of a person's product at most, where two of them are multiplied
_EXACT = 1 << 53  # up to here floats hold all integers


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """The weights of one level's intervals in some terms."""

    axis: int
    source: PureOracle  # the coins of its bits
    taken: Integers  # (intervals,) those that any term takes
    weights: Floats  # (intervals, terms) whole numbers
    unit: float  # of the weights, a power of two

    @classmethod
    def of(cls, axis: int, source: PureOracle, weights: Floats) -> LevelWeights:
        """The same from weights as they are, (terms, intervals)."""
        taken = np.flatnonzero(weights.any(axis=0))
        unit = 2.0 ** (ceil(log2(np.abs(weights).max())) - WEIGHT_BITS)
        return cls(axis, source, taken, np.rint(weights[:, taken].T / unit), unit)

    @property
    def largest(self) -> Floats:
        """The largest absolute value that it adds for each term, (terms,)."""
        most = max(self.source.q, 1 - self.source.q) / self.source.gap
        return np.asarray(np.abs(self.weights).sum(axis=0) * self.unit * most)

    def said(self, payload: Payload) -> Floats:
        """What each person says of each term, right on average: (people, terms)."""
        bits = np.unpackbits(payload, axis=1, count=self.source.size, bitorder="little")
        held = bits[:, self.taken].astype(float) @ self.weights  # exact, in any order
        held *= self.unit
        held -= self.source.q * (self.weights.sum(axis=0) * self.unit)
        held /= self.source.gap
        return np.asarray(held)


@dataclass(frozen=True, eq=False)
class ProductSums:
    """For :meth:`Aggregate.over_rows`: with the product of each person and term, the sums of these
    products over people, and below them the sums of products of two terms', (terms + 1, terms).
    """

    wholes: tuple[Floats, ...]  # for each dimension what everybody adds, (terms,)
    levels: tuple[LevelWeights, ...]  # one for each payload
    unit: Floats  # of the first row of sums, powers of two, (terms,)
    square_unit: Floats  # of the products in the others, powers of two, (terms,)

    @classmethod
    def of(
        cls, wholes: Sequence[Floats], levels: Sequence[LevelWeights], magnitude: int
    ) -> ProductSums:
        """The same, with as many bits as the weights of all people leave."""
        bounds = [np.abs(whole) for whole in wholes]
        for level in levels:
            bounds[level.axis] = bounds[level.axis] + level.largest
        most = np.prod(bounds, axis=0)  # (terms,)
        largest = np.log2(np.where(most > 0, most, 1.0))
        people = log2(max(1, magnitude))
        bits = min(SQUARE_BITS, (SUM_BITS - people) / 2)
        unit = np.exp2(np.ceil(largest + people - SUM_BITS))
        return cls(tuple(wholes), tuple(levels), unit, np.exp2(np.ceil(largest - bits)))

    def __call__(self, payloads: Sequence[Payload], counts: Integers | None) -> Integers:
        terms = len(self.wholes[0])
        total = np.zeros((terms + 1, terms), np.int64)
        for start in range(0, len(payloads[0]), PEOPLE_AT_ONCE):
            rows = slice(start, start + PEOPLE_AT_ONCE)
            products = self._products([payload[rows] for payload in payloads])
            weights = np.ones(len(products), np.int64) if counts is None else counts[rows]
            whole = np.rint(products / self.unit).astype(np.int64)
            total[0] += (whole * weights[:, None]).sum(axis=0)
            total[1:] += _squares(np.rint(products / self.square_unit), weights)
        return total

    def _products(self, payloads: Sequence[Payload]) -> Floats:
        """What each person says of each term, right on average: (people, terms)."""
        sums = [np.tile(whole, (len(payloads[0]), 1)) for whole in self.wholes]
        for level, payload in zip(self.levels, payloads, strict=True):
            sums[level.axis] += level.said(payload)
        products = sums[0]
        for each in sums[1:]:
            products *= each
        return products

    def read(self, total: Integers) -> tuple[Floats, Floats]:
        """(sums of the products, (terms,); sums of products of two terms', (terms, terms))."""
        return total[0] * self.unit, total[1:] * np.outer(self.square_unit, self.square_unit)


def _squares(values: Floats, weights: Integers) -> Integers:
    """The sums over rows of two columns' whole numbers times the weight: (columns, columns)."""
    largest = float(np.abs(values).max(initial=0.0))
    if float(np.abs(weights.astype(float)).sum()) * largest**2 <= _EXACT:
        return np.asarray((values * weights[:, None]).T @ values).astype(np.int64)
    whole = values.astype(np.int64)
    return np.asarray((whole * weights[:, None]).T @ whole)
