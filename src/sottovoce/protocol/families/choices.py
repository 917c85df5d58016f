"""Choices of some of many things, and their ranks: how a family by a rule numbers its cohorts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


@overload
def extended(sums: Sequence[int], value: int) -> list[int]: ...


@overload
def extended(sums: Sequence[Any], value: Any) -> list[Any]: ...


def extended(sums: Sequence[Any], value: Any) -> list[Any]:
    """The elementary symmetric polynomials of some values and one more.

    Args:
        sums: e_0, e_1, ..., of the values so far.
        value: A number, or an array of them.

    >>> extended([1, 3, 2], 3)  # of 1 and 2, then of 1, 2 and 3
    [1, 6, 11]
    """
    # e_(j+1)(v_1 .. v_i) = e_(j+1)(v_1 .. v_(i-1)) + v_i e_j(v_1 .. v_(i-1))
    return [1, *(sums[j + 1] + value * sums[j] for j in range(len(sums) - 1))]


@overload
def elementary(values: Sequence[int], most: int) -> list[int]: ...


@overload
def elementary(values: Sequence[Any], most: int) -> list[Any]: ...


def elementary(values: Sequence[Any], most: int) -> list[Any]:
    """Elementary symmetric polynomials, of orders 0 to ``most``: sums over choices of products.

    >>> elementary([1, 2, 3], 2)  # 1;  1 + 2 + 3;  1*2 + 1*3 + 2*3
    [1, 6, 11]
    """
    sums: list[Any] = [1] + [0] * most
    for value in values:
        sums = extended(sums, value)
    return sums


class Choices:
    """All ways to choose ``order`` of some things and a digit of ``range(weights[i])`` for each.

    A choice has a rank: sets come in the order of their members, digits in the order of a number's.

    >>> Choices((1, 2, 1), 2).total, Choices((1, 2, 1), 2).unrank(3)
    (5, ((1, 2), (0, 0)))
    """

    def __init__(self, weights: Sequence[int], order: int) -> None:
        self.weights, self.order = tuple(weights), order
        # counts[j][i]: choices of j among the things from i on,
        # the elementary symmetric polynomial of their weights
        columns = [[1] + [0] * order]  # of no things
        for weight in reversed(self.weights):
            columns.append(extended(columns[-1], weight))
        self.counts: list[list[int]] = [list(row) for row in zip(*reversed(columns), strict=True)]

    @property
    def total(self) -> int:
        return self.counts[self.order][0]

    def unrank(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The members and digits of one rank."""
        members, digits, place = [], [], 0
        for left in reversed(range(self.order)):
            while rank >= self.weights[place] * self.counts[left][place + 1]:
                rank -= self.weights[place] * self.counts[left][place + 1]
                place += 1
            digit, rank = divmod(rank, self.counts[left][place + 1])
            members.append(place)
            digits.append(digit)
            place += 1
        return tuple(members), tuple(digits)

    def rank(self, members: Sequence[int], digits: Sequence[int]) -> int:
        """The inverse of :meth:`unrank`."""
        rank, place = 0, 0
        for left, member, digit in zip(reversed(range(self.order)), members, digits, strict=True):
            rank += sum(
                self.weights[other] * self.counts[left][other + 1] for other in range(place, member)
            )
            rank += digit * self.counts[left][member + 1]
            place = member + 1
        return rank

    @cached_property
    def _arrays(self) -> tuple[Places, Places]:
        """(counts, before): before[j][i] choices of j + 1 things have their first before i."""
        counts = np.array(self.counts, np.int64)
        return counts, counts[1:, :1] - counts[1:]

    def unrank_column(self, ranks: Places) -> tuple[Places, Places]:
        """Members and digits of many ranks, one row each."""
        counts, before = self._arrays
        members = np.empty((len(ranks), self.order), np.int64)
        digits = np.empty_like(members)
        place = np.zeros(len(ranks), np.int64)  # the first that may be the next member
        rest = np.asarray(ranks, np.int64)
        for slot, left in enumerate(reversed(range(self.order))):
            rest = rest + before[left][place]
            member = np.searchsorted(before[left], rest, side="right") - 1
            rest = rest - before[left][member]
            digits[:, slot], rest = np.divmod(rest, counts[left][member + 1])
            members[:, slot] = member
            place = member + 1
        return members, digits

    def rank_column(self, members: Places, digits: Places) -> Places:
        """The ranks of many choices."""
        counts, before = self._arrays
        ranks = np.zeros(len(members), np.int64)
        place = np.zeros(len(members), np.int64)
        for slot, left in enumerate(reversed(range(self.order))):
            member = members[:, slot]
            ranks += before[left][member] - before[left][place]
            ranks += digits[:, slot] * counts[left][member + 1]
            place = member + 1
        return ranks

    def ranks_of_sets(self, sets: Sequence[Sequence[int]]) -> list[int]:
        """The ranks of many sets, where all weights are 1: there are no digits."""
        if self._is_small:
            members = np.array(sets, np.int64).reshape(len(sets), self.order)
            ranks: list[int] = self.rank_column(members, np.zeros_like(members)).tolist()
            return ranks
        return [self.rank(each, (0,) * self.order) for each in sets]

    def sets_of_ranks(self, ranks: Sequence[int]) -> list[tuple[int, ...]]:
        """The inverse of :meth:`ranks_of_sets`."""
        if self._is_small:
            members, _ = self.unrank_column(np.array(ranks, np.int64))
            return [tuple(each) for each in members.tolist()]
        return [self.unrank(rank)[0] for rank in ranks]

    @cached_property
    def _is_small(self) -> bool:
        """Whether ranks fit into 64 bits, all the way."""
        return max(map(max, self.counts)) < 1 << 62
