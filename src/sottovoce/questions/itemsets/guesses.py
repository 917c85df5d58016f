"""Candidate itemsets by guessed frequency: products of what is known of their items."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import count
from math import ceil, log2

from sottovoce.protocol.encodings.sets import Candidates

# below one, so that a set with the most frequent item added seems rarer than without it
GUESS_FACTOR = 0.9


def guessed_sets(frequencies: Mapping[int, float], top: int, wanted: int) -> Candidates:
    """The ``wanted`` sets of at least two items whose guessed frequency is highest, the likeliest
    first.

    >>> guessed_sets({7: 0.5, 3: 0.4, 9: 0.1}, top=8, wanted=2)
    ((3, 7), (7, 9))
    """
    largest = max(frequencies.values(), default=0.0)
    if largest <= 0:
        return ()
    # f'(x) = 0.9 f(x) / max f;  IS: 1 < |x| < log2 k, product of f' largest
    #     wang2021thesis, section 5.3.2
    scaled = []
    for item, frequency in frequencies.items():
        if frequency > 0:
            scaled.append((GUESS_FACTOR * frequency / largest, item))
    scaled.sort(reverse=True)
    values = [value for value, _ in scaled]
    items = [item for _, item in scaled]
    most = min(len(items), _largest_below(log2(top)))
    return _best_products(values, items, max(2, most), wanted)


def _largest_below(limit: float) -> int:
    """The largest whole number that is less."""
    return ceil(limit) - 1


def _best_products(values: list[float], items: list[int], most: int, wanted: int) -> Candidates:
    """Sets in order of decreasing product, by extending or shifting the last item of sets already
    seen.

    Values decrease and are below one, so that neither move raises a product: a heap yields sets in
    order.

    Args:
        values: a guess for each item, decreasing, at least one of them.
        items: the items, in the same order.
        most: items that a set may have.
        wanted: how many sets.
    """
    order = count()  # among equal products the one that was seen first
    found: list[tuple[int, ...]] = []
    # (less the product, when it was seen, places of the items)
    heap: list[tuple[float, int, tuple[int, ...]]] = []
    heapq.heappush(heap, (-values[0], next(order), (0,)))
    while heap and len(found) < wanted:
        negative, _, places = heapq.heappop(heap)
        if len(places) > 1:
            members = sorted(items[place] for place in places)
            found.append(tuple(members))
        *others, last = places
        later = last + 1
        if later == len(values):
            continue
        shifted = negative / values[last] * values[later]
        heapq.heappush(heap, (shifted, next(order), (*others, later)))
        if len(places) < most:
            extended = negative * values[later]
            heapq.heappush(heap, (extended, next(order), (*places, later)))
    return tuple(found)
