"""From the promise to what keeps it: the largest local epsilon, and the fewest people."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sottovoce.accounting.gaussian import check_delta
from sottovoce.accounting.shuffling.bounds import MAX_SHUFFLED, ShuffledCrowd
from sottovoce.accounting.shuffling.expectation import COARSE_GRID, FINE_GRID
from sottovoce.accounting.shuffling.losses import Mixture, local_epsilon
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle_with
from sottovoce.oracles.thresholds import parse_epsilon

LOCAL_DIGITS = 3  # after the point, of a local epsilon that was solved for
PEOPLE_SOLVED_TO = 1e-4  # relative
REFINED_BY = 4  # first stride of a search on the fine grid from what the coarse one found


def least_people(
    mixture: Mixture, epsilon: Any, delta: float, fakes: int = 0, colluding: float = 0
) -> int:
    """The fewest people for whom shuffled reports are surely (epsilon, delta)-private.

    The bound falls as people are added, so the promise holds for any larger number too.

    Args:
        mixture: as of :func:`~sottovoce.accounting.shuffling.bounds.shuffled_delta`.
        epsilon: the promise against the analyst.
        delta: above 0 and below 1.
        fakes: reports of the blanket that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.

    >>> from sottovoce.oracles import oracle
    >>> ask = oracle("grr", size=16, epsilon=4).blanket()
    >>> 790_000 < least_people([(1, [ask])], 0.05, 1e-9) < 800_000
    True
    """
    check_delta(delta)
    goal = float(parse_epsilon(epsilon))

    def holds(people: int, points: int) -> bool:
        crowd = ShuffledCrowd(mixture, people, fakes, colluding)
        return crowd.delta(goal, points) <= delta

    if holds(1, FINE_GRID):
        return 1
    low, high = 1, 2
    while not holds(high, COARSE_GRID):
        if high >= MAX_SHUFFLED:
            raise InvalidInput(
                f"epsilon ({goal:g}) cannot be promised to any number of people: ask for a "
                "larger one, or a smaller local one"
            )
        low, high = high, min(4 * high, MAX_SHUFFLED)
    low, high = _bisected(low, high, lambda people: holds(people, COARSE_GRID))
    # the coarse grid asks for a few people more than are needed
    low = min(low, math.floor(0.9 * high))
    if low < 1 or holds(low, FINE_GRID):
        low = 1
    while not holds(high, FINE_GRID):  # what holds on one grid need not on another
        low, high = high, high + max(1, high // 1000)
    return _bisected(low, high, lambda people: holds(people, FINE_GRID))[1]


def _bisected(low: int, high: int, holds: Callable[[int], bool]) -> tuple[int, int]:
    """Neighbouring numbers, nearly: it does not hold at the first and holds at the second."""
    while high - low > max(1, PEOPLE_SOLVED_TO * high):
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return low, high


def oracle_mixture(name: str, size: int, **options: Any) -> Callable[[Decimal], Mixture]:
    """From a local epsilon to the mixture of one oracle's reports.

    >>> build = oracle_mixture("grr", 16)
    >>> [float(ask.q) for _, asks in build(Decimal(4)) for ask in asks]
    [0.0625]
    """
    return lambda epsilon: [(1, [oracle_with(name, size, epsilon, options).blanket()])]


def local_epsilon_for(
    build: Callable[[Decimal], Mixture],
    epsilon: Any,
    delta: float,
    people: int,
    cap: Any = 8,
    fakes: int = 0,
    colluding: float = 0,
    *,
    rough: bool = False,
) -> Decimal:
    """The largest local epsilon, to three digits, whose shuffled reports keep the promise.

    Args:
        build: from a local epsilon to the mixture of what is asked; see :func:`oracle_mixture`.
        epsilon: the promise against the analyst.
        delta: above 0 and below 1.
        people: how many reports are shuffled.
        cap: the largest local epsilon.
        fakes: reports of the blanket that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.
        rough: whether the coarse grid is enough: sooner, and a little less than the largest.

    Returns:
        An epsilon at which the promise was checked with the coins that it gives.

    >>> local_epsilon_for(oracle_mixture("grr", 16), 0.05, 1e-9, 1_000_000)
    Decimal('4.19')
    """
    check_delta(delta)
    goal, most = parse_epsilon(epsilon), parse_epsilon(cap)
    people = whole("people", people, 1, MAX_SHUFFLED)
    unit = Decimal(1).scaleb(-LOCAL_DIGITS)

    def holds(steps: int, points: int) -> bool:
        mixture = build(steps * unit)
        if local_epsilon(mixture) <= float(goal):
            return True
        crowd = ShuffledCrowd(mixture, people, fakes, colluding)
        return crowd.delta(float(goal), points) <= delta

    high = int(most / unit)
    if high < 1:
        raise InvalidInput(f"cap ({most}) must be at least {unit}")
    if holds(high, COARSE_GRID):
        return parse_epsilon(high * unit)
    # what a report may cost even if nobody hides it
    low = int(goal / unit)
    if low < 1:
        raise InvalidInput(f"epsilon ({goal}) must be at least {unit} to be solved for")
    near = _last(low, high, lambda steps: holds(steps, COARSE_GRID))
    if rough:
        return parse_epsilon(near * unit)
    return parse_epsilon(_refined(low, near, high, lambda steps: holds(steps, FINE_GRID)) * unit)


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last number below ``high`` at which it holds, ``low`` if at no other."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _refined(low: int, near: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last number at which it holds, from ``low`` to ``high``, searched for around ``near``.

    >>> calls = []
    >>> _refined(1, 40, 1000, lambda number: calls.append(number) or number <= 47), len(calls)
    (47, 6)
    """
    stride = REFINED_BY
    if near > low and not holds(near):  # the fine grid is nearly never the stricter one
        return _last(low, near, holds)
    while near + stride < high and holds(near + stride):
        near, stride = near + stride, 2 * stride
    end = near + stride
    if end >= high:
        if holds(high):
            return high
        end = high
    return _last(near, end, holds)
