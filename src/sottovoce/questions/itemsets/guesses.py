"""Candidate itemsets by guessed frequency: products of what is known of their items."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import count
from math import log2

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
    ranked = sorted(
        (
            (GUESS_FACTOR * value / largest, item)
            for item, value in frequencies.items()
            if value > 0
        ),
        reverse=True,
    )
    most = max(2, min(len(ranked), _largest_below(log2(top)) if top > 1 else 2))
    return _best_products(
        [value for value, _ in ranked], [item for _, item in ranked], most, wanted
    )


def _largest_below(limit: float) -> int:
    return int(limit) - 1 if limit == int(limit) else int(limit)


def _best_products(values: list[float], items: list[int], most: int, wanted: int) -> Candidates:
    """Sets in order of decreasing product, by extending or shifting the last item of sets already
    seen.

    Values decrease and are below one, so that neither move raises a product: a heap yields sets in
    order.
    """
    order = count()
    found: list[tuple[int, ...]] = []
    heap: list[tuple[float, int, tuple[int, ...]]] = (
        [(-values[0], next(order), (0,))] if values else []
    )
    while heap and len(found) < wanted:
        negative, _, places = heapq.heappop(heap)
        if len(places) > 1:
            found.append(tuple(sorted(items[place] for place in places)))
        last = places[-1]
        if last + 1 < len(values):
            shifted = (*places[:-1], last + 1)
            heapq.heappush(heap, (negative / values[last] * values[last + 1], next(order), shifted))
            if len(places) < most:
                heapq.heappush(
                    heap, (negative * values[last + 1], next(order), (*places, last + 1))
                )
    return tuple(found)
