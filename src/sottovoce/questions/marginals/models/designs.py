"""Designs: which sets of attributes to ask for, so that every small set lies in one of them, or at random."""

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
DRAWS = 8  # random choices of views to take the best of

# Six quadruples hold every pair of 8 points                                zhang2018calm, section 4.1
PAIRS_OF_EIGHT = ((0, 1, 2, 3), (0, 4, 5, 6), (1, 2, 4, 7), (3, 5, 6, 7), (1, 2, 5, 6), (0, 3, 4, 7))


def least_blocks(points: int, size: int, strength: int) -> int:
    """Schoenheim's bound: no fewer sets of ``size`` hold every set of ``strength`` points.

    >>> least_blocks(8, 4, 3)
    14
    """
    # C(v, k, t) >= ceil(v/k ceil((v-1)/(k-1) ... ceil((v-t+1)/(k-t+1))))
    bound = 1
    for step in reversed(range(strength)):
        bound = -(-(points - step) * bound // (size - step))
    return bound


@lru_cache(maxsize=512)
def cover(points: int, size: int, strength: int, most: int = MOST_BLOCKS) -> tuple[Places, ...] | None:
    """Sets of ``size`` points such that every ``strength`` points lie in one of them; None if that takes over ``most``.

    The same design every time. It need not be a smallest one, but known ones are: all sets, one set, quadruples that
    hold every triple of a power of two, six that hold every pair of 8. Others come from a greedy search, which also
    gives up (None) where there is too much to cover.

    >>> len(cover(8, 4, 3)), len(cover(16, 4, 3)), cover(32, 8, 6)
    (14, 140, None)
    """
    if not 1 <= strength <= size or points < 1:
        raise InvalidInput(f"strength ({strength}) must lie between 1 and size ({size})")
    if size >= points:
        return (tuple(range(points)),)
    if least_blocks(points, size, strength) > most:
        return None
    made = _known(points, size, strength)
    if made is None and comb(points, strength) <= MOST_TARGETS:
        made = _greedy(points, size, strength, most)
    return made if made is not None and len(made) <= most else None


def _known(points: int, size: int, strength: int) -> tuple[Places, ...] | None:
    if strength == 1:
        starts = [min(start, points - size) for start in range(0, points, size)]
        return tuple(tuple(range(start, start + size)) for start in starts)
    if size == strength:
        return tuple(combinations(range(points), size))
    if (points, size, strength) == (8, 4, 2):
        return PAIRS_OF_EIGHT
    if (size, strength) == (4, 3) and points.bit_count() == 1:
        # {a, b, c, a xor b xor c}: the Steiner quadruple system of the planes of an affine space over two elements
        blocks = {tuple(sorted((a, b, c, a ^ b ^ c))) for a, b, c in combinations(range(points), 3)}
        return tuple(sorted(blocks))
    return None


def _greedy(points: int, size: int, strength: int, most: int) -> tuple[Places, ...] | None:
    """Block after block with the most sets that no block before holds, then without those that became superfluous."""
    if comb(points, size) * comb(size, strength) <= MOST_INCIDENCES:
        blocks = _best_blocks(points, size, strength, 2 * most)
    else:
        blocks = _grown_blocks(points, size, strength, 2 * most)
    return None if blocks is None else _without_spare(blocks, strength)


def _best_blocks(points: int, size: int, strength: int, most: int) -> list[Places] | None:
    """The best of all blocks each time: the gain of every block is kept up to date."""
    numbers = {own: number for number, own in enumerate(combinations(range(points), strength))}
    blocks = np.array(list(combinations(range(points), size)), np.int64)
    held = _ranks(blocks, points, strength)  # (block, place) -> the set that it holds
    order = np.argsort(held.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(held.ravel(), minlength=len(numbers)))
    gains = np.full(len(blocks), held.shape[1], np.int64)
    is_open = np.ones(len(numbers), bool)
    chosen: list[Places] = []
    while is_open.any():
        if len(chosen) == most:
            return None
        best = int(gains.argmax())
        chosen.append(tuple(blocks[best].tolist()))
        for own in held[best][is_open[held[best]]].tolist():
            first = int(ends[own - 1]) if own else 0
            gains[order[first : ends[own]] // held.shape[1]] -= 1
        is_open[held[best]] = False
    return chosen


def _ranks(blocks: NDArray[np.int64], points: int, strength: int) -> NDArray[np.int64]:
    """The number, in lexicographic order, of each set of ``strength`` points that a block holds."""
    # the number of combinations before c_1 < ... < c_t:  C(v, t) - 1 - sum over i of C(v - 1 - c_i, t + 1 - i)
    table = np.array([[comb(rest, count) for count in range(strength + 1)] for rest in range(points)], np.int64)
    places = list(combinations(range(blocks.shape[1]), strength))
    out = np.full((len(blocks), len(places)), comb(points, strength) - 1, np.int64)
    for number, own in enumerate(places):
        for at, place in enumerate(own):
            out[:, number] -= table[points - 1 - blocks[:, place], strength - at]
    return out


def _grown_blocks(points: int, size: int, strength: int, most: int) -> list[Places] | None:
    """Each block grows from the first set not yet held, by the point that adds the most."""
    left = dict.fromkeys(combinations(range(points), strength))
    chosen: list[Places] = []
    while left:
        if len(chosen) == most:
            return None
        block = next(iter(left))
        while len(block) < size:
            others = list(combinations(block, strength - 1))

            def gain(point: int, others: list[Places] = others) -> int:
                return sum(tuple(sorted((*own, point))) in left for own in others)

            best = max((point for point in range(points) if point not in block), key=gain)
            block = tuple(sorted((*block, best)))
        chosen.append(block)
        for own in combinations(block, strength):
            left.pop(own, None)
    return chosen


def completed(points: int, size: int, views: Sequence[Places], parts: Iterable[Places]) -> tuple[Places, ...]:
    """Some views, and as many more of up to ``size`` points as it takes to hold all ``parts``: points and pairs.

    >>> completed(4, 3, [(0, 1)], [(0, 1), (1, 2), (2, 3)])
    ((0, 1), (1, 2, 3))
    """
    held = {part for view in views for part in _small_parts(view)}
    left = dict.fromkeys(sorted((part for part in parts if part not in held), key=len, reverse=True))
    added: list[Places] = []
    while left:
        block = next(iter(left))
        while len(block) < size:
            gains = {
                point: sum(tuple(sorted((other, point))) in left for other in block)
                for point in range(points)
                if point not in block
            }
            best = max(gains, key=lambda point: gains[point], default=None)
            if best is None or not gains[best]:
                break  # a wider view would only bring more noise
            block = tuple(sorted((*block, best)))
        added.append(block)
        for part in _small_parts(block):
            left.pop(part, None)
    return tuple(sorted({*views, *added}))


def _small_parts(view: Places) -> list[Places]:
    return [*((place,) for place in view), *combinations(view, 2)]


def _without_spare(blocks: list[Places], strength: int) -> tuple[Places, ...]:
    """The blocks less those, latest first, whose sets all lie in others."""
    times: dict[Places, int] = {}
    for block in blocks:
        for own in combinations(block, strength):
            times[own] = times.get(own, 0) + 1
    kept = []
    for block in reversed(blocks):
        held = list(combinations(block, strength))
        if all(times[own] > 1 for own in held):
            for own in held:
                times[own] -= 1
        else:
            kept.append(block)
    return tuple(sorted(kept))


@lru_cache(maxsize=512)
def drawn(points: int, size: int, count: int) -> tuple[Places, ...]:
    """``count`` different random sets of ``size`` points, the same every time; every point lies in one of them.

    As many more as that takes, and never more than there are. Of a few draws it is the one that holds the most pairs.

    >>> len(drawn(5, 2, 3)), len(drawn(5, 2, 100)), len(drawn(9, 2, 1))
    (3, 10, 5)
    """
    size = min(size, points)
    there_are = comb(points, size)
    count = min(max(count, -(-points // size)), there_are)
    if count == there_are:
        return tuple(combinations(range(points), size))
    draws = np.random.Generator(np.random.PCG64([points, size, count]))
    return max((_drawn(points, size, count, draws) for _ in range(DRAWS)), key=_evenness)


def _drawn(points: int, size: int, count: int, draws: np.random.Generator) -> tuple[Places, ...]:
    shuffled = draws.permutation(points).tolist()
    chosen: set[Places] = set()
    for start in range(0, points, size):  # these alone hold every point; the last one borrows from the first
        chosen.add(tuple(sorted((shuffled[start : start + size] + shuffled)[:size])))
    if comb(points, size) <= 4 * count:
        others = [own for own in combinations(range(points), size) if own not in chosen]
        picked = draws.choice(len(others), count - len(chosen), replace=False)
        return tuple(sorted([*chosen, *(others[number] for number in picked)]))
    while len(chosen) < count:
        chosen.add(tuple(sorted(draws.choice(points, size, replace=False).tolist())))
    return tuple(sorted(chosen))


def _evenness(views: tuple[Places, ...]) -> tuple[int, int]:
    """How many pairs some views hold, and how often the rarest point."""
    pairs = {pair for view in views for pair in combinations(view, 2)}
    times = np.bincount([point for view in views for point in view])
    return len(pairs), int(times.min())
