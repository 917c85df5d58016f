"""Choices of some of many things, and their ranks: how a family by a rule numbers its cohorts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


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
        counts = [[1] * (len(weights) + 1)] + [[0] * (len(weights) + 1) for _ in range(order)]
        for size in range(1, order + 1):
            for place in reversed(range(len(weights))):
                counts[size][place] = (
                    counts[size][place + 1] + weights[place] * counts[size - 1][place + 1]
                )
        self.counts = counts

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
