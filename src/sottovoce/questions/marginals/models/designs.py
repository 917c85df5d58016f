"""Designs: which sets of attributes to ask for.

Either every small set of attributes lies in one of them (a covering design), or they are random.
Attributes are points 0, 1, ...; the sets of a design are its blocks, or views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.marginals.workload import Places

MOST_BLOCKS = 4096  # of a design
MOST_TARGETS = 1 << 17  # sets that a design has to cover, before the search gives up
MOST_INCIDENCES = 1 << 22  # (block, set) pairs that the full greedy search may list
VIEW_DRAWS = 8  # random choices of views to take the best of

# Six quadruples hold every pair of 8 points        zhang2018calm, section 4.1
PAIRS_OF_EIGHT = (
    (0, 1, 2, 3),
    (0, 4, 5, 6),
    (1, 2, 4, 7),
    (3, 5, 6, 7),
    (1, 2, 5, 6),
    (0, 3, 4, 7),
)


def least_blocks(points: int, size: int, strength: int) -> int:
    """Schoenheim's bound: no fewer sets of ``size`` hold every set of ``strength`` points.

    >>> least_blocks(8, 4, 3)
    14
    """
    # C(v, k, t) >= ceil(v/k ceil((v-1)/(k-1) ... ceil((v-t+1)/(k-t+1))))
    bound = 1
    for step in reversed(range(strength)):
        bound = -(-(points - step) * bound // (size - step))  # -(-a // b) is a / b, rounded up
    return bound


@lru_cache(maxsize=512)
def cover(
    points: int,
    size: int,
    strength: int,
    most: int = MOST_BLOCKS,
) -> tuple[Places, ...] | None:
    """Sets of ``size`` points such that every ``strength`` points lie in one of them.

    The same design every time. It need not be a smallest one, but known ones are: all sets, one
    set, quadruples that hold every triple of a power of two, six that hold every pair of 8. Others
    come from a greedy search, which also gives up where there is too much to cover.

    Args:
        points: how many there are.
        size: of a block; one block with all points if there are no more.
        strength: how many points at once have to be covered, 1 to ``size``.
        most: how many blocks a design may have.

    Returns:
        The blocks; None if it takes more than ``most``, or if the search gave up.

    >>> len(cover(8, 4, 3)), len(cover(16, 4, 3)), cover(32, 8, 6)
    (14, 140, None)
    """
    if not 1 <= strength <= size or points < 1:
        raise InvalidInput(f"strength ({strength}) must lie between 1 and size ({size})")
    if size >= points:
        return (tuple(range(points)),)
    if least_blocks(points, size, strength) > most:
        return None
    blocks = _known(points, size, strength)
    if blocks is None and comb(points, strength) <= MOST_TARGETS:
        blocks = _greedy(points, size, strength, most)
    if blocks is None or len(blocks) > most:
        return None
    return blocks


def _known(points: int, size: int, strength: int) -> tuple[Places, ...] | None:
    """A smallest design by construction, if one is known."""
    if strength == 1:
        # one run of points after another; the last is moved back so that it is full
        starts = [min(start, points - size) for start in range(0, points, size)]
        return tuple(tuple(range(start, start + size)) for start in starts)
    if size == strength:
        return tuple(combinations(range(points), size))
    if (points, size, strength) == (8, 4, 2):
        return PAIRS_OF_EIGHT
    if (size, strength) == (4, 3) and points.bit_count() == 1:
        # {a, b, c, a xor b xor c}: the Steiner quadruple system of the planes
        # of an affine space over two elements
        quadruples = set()
        for a, b, c in combinations(range(points), 3):
            quadruples.add(tuple(sorted((a, b, c, a ^ b ^ c))))
        return tuple(sorted(quadruples))
    return None


def _greedy(points: int, size: int, strength: int, most: int) -> tuple[Places, ...] | None:
    """Block after block with the most sets not covered yet, then without superfluous blocks."""
    if comb(points, size) * comb(size, strength) <= MOST_INCIDENCES:
        blocks = _best_blocks(points, size, strength, 2 * most)
    else:
        blocks = _grown_blocks(points, size, strength, 2 * most)
    if blocks is None:
        return None
    return _without_spare(blocks, strength)


def _best_blocks(points: int, size: int, strength: int, most: int) -> list[Places] | None:
    """The best of all blocks each time: the gain of every block is kept up to date."""
    targets = comb(points, strength)  # sets to cover, numbered in lexicographic order
    blocks = np.array(list(combinations(range(points), size)), np.int64)  # (blocks, size)
    covered = _ranks(blocks, points, strength)  # (blocks, sets in a block): numbers of sets
    sets_per_block = covered.shape[1]
    # the inverse, from sets to blocks: incidences sorted by set, and where those of each set end
    incidences = np.argsort(covered.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(covered.ravel(), minlength=targets))
    gains = np.full(len(blocks), sets_per_block, np.int64)  # sets of each block still open
    is_open = np.ones(targets, bool)
    chosen: list[Places] = []
    while is_open.any():
        if len(chosen) == most:
            return None
        best = int(gains.argmax())
        chosen.append(tuple(blocks[best].tolist()))
        newly_covered = covered[best][is_open[covered[best]]]
        for target in newly_covered.tolist():
            start = int(ends[target - 1]) if target else 0
            holders = incidences[start : ends[target]] // sets_per_block  # blocks with this set
            gains[holders] -= 1
        is_open[covered[best]] = False
    return chosen


def _ranks(blocks: NDArray[np.int64], points: int, strength: int) -> NDArray[np.int64]:
    """The number, in lexicographic order, of each set of ``strength`` points that a block holds.

    Args:
        blocks: increasing points, (blocks, size).
        points: how many there are.
        strength: of a set.

    Returns:
        Numbers from 0, (blocks, sets in a block).
    """
    # before c_1 < ... < c_t come  C(v, t) - 1 - sum over i of C(v - 1 - c_i, t + 1 - i)
    choose = np.zeros((points, strength + 1), np.int64)  # C(row, column)
    for rest in range(points):
        for count in range(strength + 1):
            choose[rest, count] = comb(rest, count)
    columns = list(combinations(range(blocks.shape[1]), strength))
    ranks = np.full((len(blocks), len(columns)), comb(points, strength) - 1, np.int64)
    for number, chosen in enumerate(columns):
        for position, column in enumerate(chosen):
            after = points - 1 - blocks[:, column]  # points beyond this one, (blocks,)
            ranks[:, number] -= choose[after, strength - position]
    return ranks


def _grown_blocks(points: int, size: int, strength: int, most: int) -> list[Places] | None:
    """Each block grows from the first set not yet covered, by the point that adds the most."""
    uncovered = dict.fromkeys(combinations(range(points), strength))  # in order
    chosen: list[Places] = []
    while uncovered:
        if len(chosen) == most:
            return None
        block = next(iter(uncovered))
        while len(block) < size:
            subsets = list(combinations(block, strength - 1))

            def gain(point: int, subsets: list[Places] = subsets) -> int:
                """How many uncovered sets a point completes."""
                return sum(tuple(sorted((*subset, point))) in uncovered for subset in subsets)

            candidates = [point for point in range(points) if point not in block]
            best = max(candidates, key=gain)
            block = tuple(sorted((*block, best)))
        chosen.append(block)
        for covered in combinations(block, strength):
            uncovered.pop(covered, None)
    return chosen


def completed(
    points: int,
    size: int,
    views: Sequence[Places],
    parts: Iterable[Places],
) -> tuple[Places, ...]:
    """Some views, and as many more as it takes to hold all parts.

    Args:
        points: how many there are.
        size: how many points a view that is added may have.
        views: those that are there already.
        parts: points and pairs, as increasing tuples.

    >>> completed(4, 3, [(0, 1)], [(0, 1), (1, 2), (2, 3)])
    ((0, 1), (1, 2, 3))
    """
    covered = {part for view in views for part in _small_parts(view)}
    missing = [part for part in parts if part not in covered]
    missing.sort(key=len, reverse=True)  # pairs first: their views hold points as well
    uncovered = dict.fromkeys(missing)
    added: list[Places] = []
    while uncovered:
        block = next(iter(uncovered))
        while len(block) < size:
            gains = {}
            for point in range(points):
                if point not in block:
                    pairs = [tuple(sorted((other, point))) for other in block]
                    gains[point] = sum(pair in uncovered for pair in pairs)
            best = max(gains, key=lambda point: gains[point], default=None)
            if best is None or not gains[best]:
                break  # a wider view would only bring more noise
            block = tuple(sorted((*block, best)))
        added.append(block)
        for part in _small_parts(block):
            uncovered.pop(part, None)
    return tuple(sorted({*views, *added}))


def _small_parts(view: Places) -> list[Places]:
    """The points of a view, then the pairs of them."""
    return [*combinations(view, 1), *combinations(view, 2)]


def _without_spare(blocks: list[Places], strength: int) -> tuple[Places, ...]:
    """The blocks less those, latest first, whose sets all lie in others."""
    times: dict[Places, int] = {}  # how many blocks hold a set
    for block in blocks:
        for subset in combinations(block, strength):
            times[subset] = times.get(subset, 0) + 1
    kept = []
    for block in reversed(blocks):
        subsets = list(combinations(block, strength))
        if all(times[subset] > 1 for subset in subsets):
            for subset in subsets:
                times[subset] -= 1
        else:
            kept.append(block)
    return tuple(sorted(kept))


@lru_cache(maxsize=512)
def drawn(points: int, size: int, count: int) -> tuple[Places, ...]:
    """Different random sets of points, the same every time; every point lies in one of them.

    Of a few draws it is the one that holds the most pairs.

    Args:
        points: how many there are.
        size: of a set, if there are as many points.
        count: how many sets; more if it takes more to hold every point, and never more than there
            are.

    >>> len(drawn(5, 2, 3)), len(drawn(5, 2, 100)), len(drawn(9, 2, 1))
    (3, 10, 5)
    """
    size = min(size, points)
    all_sets = comb(points, size)
    fewest = -(-points // size)  # points / size, rounded up
    count = min(max(count, fewest), all_sets)
    if count == all_sets:
        return tuple(combinations(range(points), size))
    draws = np.random.Generator(np.random.PCG64([points, size, count]))
    candidates = [_drawn(points, size, count, draws) for _ in range(VIEW_DRAWS)]
    return max(candidates, key=_evenness)


def _drawn(
    points: int,
    size: int,
    count: int,
    draws: np.random.Generator,
) -> tuple[Places, ...]:
    """One random choice of ``count`` different sets that hold every point."""
    shuffled = draws.permutation(points).tolist()
    chosen: set[Places] = set()
    # these alone hold every point; the last one borrows from the first
    for start in range(0, points, size):
        filled = shuffled[start : start + size] + shuffled
        chosen.add(tuple(sorted(filled[:size])))
    # drawing until a set is new takes long where most sets are wanted: then draw from those left
    if comb(points, size) <= 4 * count:
        others = [view for view in combinations(range(points), size) if view not in chosen]
        picked = draws.choice(len(others), count - len(chosen), replace=False)
        return tuple(sorted([*chosen, *(others[number] for number in picked)]))
    while len(chosen) < count:
        view = draws.choice(points, size, replace=False).tolist()
        chosen.add(tuple(sorted(view)))
    return tuple(sorted(chosen))


def _evenness(views: tuple[Places, ...]) -> tuple[int, int]:
    """How many pairs some views hold, and how often the rarest point."""
    pairs = {pair for view in views for pair in combinations(view, 2)}
    times = np.bincount([point for view in views for point in view])
    return len(pairs), int(times.min())
