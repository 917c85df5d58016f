"""Ranks of choices: which set, and which digit for each of its members, a number stands for."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def unrank(ranks, weights, counts, members, digits):  # type: ignore[no-untyped-def]
    """Fill ``members`` and ``digits`` from ranks; ``counts[j, i]`` counts choices of j among the things from i on."""
    order = members.shape[1]
    for row in range(ranks.size):
        rank = ranks[row]
        place = 0
        for slot in range(order):
            left = order - 1 - slot
            while rank >= weights[place] * counts[left, place + 1]:
                rank -= weights[place] * counts[left, place + 1]
                place += 1
            digits[row, slot] = rank // counts[left, place + 1]
            rank = rank % counts[left, place + 1]
            members[row, slot] = place
            place += 1


@njit(cache=True, nogil=True)
def rank(members, digits, weights, counts, ranks):  # type: ignore[no-untyped-def]
    """Fill ``ranks`` from members and digits: the inverse of :func:`unrank`."""
    order = members.shape[1]
    for row in range(ranks.size):
        total = 0
        place = 0
        for slot in range(order):
            left = order - 1 - slot
            member = members[row, slot]
            while place < member:
                total += weights[place] * counts[left, place + 1]
                place += 1
            total += digits[row, slot] * counts[left, member + 1]
            place = member + 1
        ranks[row] = total
