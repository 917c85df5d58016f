"""The least of many losses along a line, of which few are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def descended(
    loss: Callable[[int], float], place: int, strides: Sequence[int], least: int, most: int
) -> int:
    """Where neighbours at the last stride are no better, from a place on, stride by stride.

    Args:
        loss: at a place; asked for again at places where it was.
        place: where to begin.
        strides: the longest first.
        least: the first place.
        most: the last one.

    >>> descended(lambda steps: (steps - 5) ** 2, -8, (4, 1), -48, 16)
    5
    """
    for stride in strides:
        while True:
            sides = [
                side
                for side in (place - stride, place + stride)
                if least <= side <= most and loss(side) < loss(place)
            ]
            if not sides:
                break
            place = min(sides, key=loss)
    return place
