"""Hierarchies of intervals: how the codes of a dimension are cut, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.target import Target

MAX_COUNTED_CELLS = 1 << 25  # of all levels that are counted cell by cell
Level = tuple[int, ...]  # for each dimension which level of its hierarchy


@dataclass(frozen=True)
class Hierarchy:
    """A tree of intervals over the codes of one dimension.

    Level 0 is the whole; each interval of a level is cut into ``fanout`` of the next, down to
    single codes. A dimension without an order has two levels, the whole and its values
    (wang2021thesis, section 7.4.2).

    >>> Hierarchy(20, 5, True).widths, Hierarchy(20, 5, False).widths
    ((25, 5, 1), (20, 1))
    """

    size: int
    fanout: int
    is_ordered: bool

    @cached_property
    def height(self) -> int:
        """How many levels there are below the whole."""
        if not self.is_ordered:
            return 1
        height = 1
        while self.fanout**height < self.size:
            height += 1
        return height

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many codes an interval has, for each level; the last one of a level may have less."""
        if not self.is_ordered:
            return (self.size, 1)
        return tuple(self.fanout ** (self.height - level) for level in range(self.height + 1))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many intervals there are, for each level."""
        return tuple(-(-self.size // width) for width in self.widths)

    def shares(self, level: int) -> Floats:
        """The share of all codes that each interval of a level holds."""
        starts = np.arange(self.counts[level]) * self.widths[level]
        ends = np.minimum(starts + self.widths[level], self.size)
        return np.asarray((ends - starts) / self.size)

    def decompose(self, weights: Floats) -> list[Floats]:
        """The fewest intervals whose weighted sum weighs every code as asked.

        An interval is taken where all its codes weigh the same and those of the one above do not.

        Args:
            weights: one for each code, (size,).

        Returns:
            For each level the weights of its intervals, (counts[level],).

        >>> middle = np.repeat([0.0, 1.0, 0.0], [3, 8, 9])
        >>> [part.tolist() for part in Hierarchy(20, 5, True).decompose(middle)[:2]]
        [[0.0], [0.0, 1.0, 0.0, 0.0]]
        """
        found = []
        is_above_even = np.zeros(1, bool)  # nothing stands above the whole
        for level, count in enumerate(self.counts):
            starts = np.arange(count) * self.widths[level]
            least = np.minimum.reduceat(weights, starts)
            most = np.maximum.reduceat(weights, starts)
            is_even = least == most
            above = np.zeros(count, np.int64)
            if level:
                above = starts // self.widths[level - 1]
            is_taken = is_even & ~is_above_even[above]
            found.append(np.where(is_taken, least, 0.0))
            is_above_even = is_even | is_above_even[above]
        return found


@dataclass(frozen=True)
class Hierarchies:
    """One hierarchy for each dimension; a level of all of them is a grid."""

    each: tuple[Hierarchy, ...]

    @classmethod
    def of(cls, target: Target, fanout: int) -> Hierarchies:
        """Those of a target, with one fan-out for all its ordered dimensions."""
        return cls(tuple(Hierarchy(one.size, fanout, one.is_ordered) for one in target.dimensions))

    @cached_property
    def level_count(self) -> int:
        """How many levels tell something: all but (0, ..., 0), see docs/errata."""
        return prod(one.height + 1 for one in self.each) - 1

    @cached_property
    def most_cells(self) -> int:
        """Of the finest level."""
        return prod(one.size for one in self.each)

    def levels(self) -> list[Level]:
        """All levels that tell something, the coarse ones of the first dimension first."""
        listed = product(*(range(one.height + 1) for one in self.each))
        return [level for level in listed if any(level)]

    def cells(self, level: Level) -> int:
        """How many cells a level has."""
        return prod(one.counts[depth] for one, depth in zip(self.each, level, strict=True))

    @cached_property
    def numbers(self) -> dict[Level, int]:
        """The place of each level in :meth:`levels`."""
        return {level: number for number, level in enumerate(self.levels())}

    @cached_property
    def listed_cells(self) -> int:
        """The cells of the largest level whose cells are all counted, as those of all smaller
        ones are.
        """
        total, largest = 0, 0
        for cells in sorted(self.cells(level) for level in self.levels()):
            total += cells
            if total > MAX_COUNTED_CELLS:
                break
            largest = cells
        return largest

    def axes(self, level: Level) -> tuple[int, ...]:
        """The dimensions that a level cuts."""
        return tuple(axis for axis, depth in enumerate(level) if depth)

    def widths(self, level: Level) -> tuple[int, ...]:
        """Of the intervals of those dimensions."""
        return tuple(self.each[axis].widths[level[axis]] for axis in self.axes(level))

    def decompose(self, selections: Sequence[Term]) -> list[list[Floats]]:
        """For each dimension and level the weights of its intervals: (selections, intervals)."""
        found: list[list[Floats]] = []
        for axis, one in enumerate(self.each):
            whole = np.ones(one.size)
            parts = [one.decompose(np.asarray(each.get(axis, whole), float)) for each in selections]
            found.append([np.stack(of_level) for of_level in zip(*parts, strict=True)])
        return found
