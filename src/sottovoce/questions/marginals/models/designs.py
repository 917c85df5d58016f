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
from sottovoce.questions.marginals.coverage import together
from sottovoce.questions.marginals.workload import Integers, Places, random_sets

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
    return _without_spare(blocks, points, strength)


def _best_blocks(points: int, size: int, strength: int, most: int) -> list[Places] | None:
    """The best of all blocks each time: the gain of every block is kept up to date."""
    targets = comb(points, strength)  # sets to cover, numbered in lexicographic order
    blocks = all_sets(points, size)  # (blocks, size)
    # numbers of the sets that each block holds, (sets in a block, blocks); in few bytes, which
    # makes them quick to sort
    kind = np.uint16 if targets <= 1 << 16 else np.int64
    covered = ranks(blocks, points, strength).T.astype(kind)
    sets_per_block = len(covered)
    # the inverse, (targets, blocks with each): a set lies in equally many blocks
    incidences = np.argsort(covered.ravel(), kind="stable")
    holders = (incidences % len(blocks)).reshape(targets, -1)
    gains = np.full(len(blocks), sets_per_block, np.int32)  # sets of each block still open
    is_open = np.ones(targets, bool)
    left = targets
    chosen: list[Places] = []
    while left:
        if len(chosen) == most:
            return None
        best = int(gains.argmax())
        chosen.append(tuple(blocks[best].tolist()))
        inside = covered[:, best]
        newly_covered = inside[is_open[inside]]
        for target in newly_covered.tolist():
            gains[holders[target]] -= 1
        is_open[newly_covered] = False
        left -= len(newly_covered)
    return chosen


def all_sets(points: int, size: int) -> Integers:
    """Every set of ``size`` points, in lexicographic order, (sets, size).

    >>> all_sets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    rows = np.arange(points - size + 1)[:, None]
    for column in range(1, size):
        largest = points - size + column  # that leaves room for the columns to come
        last = rows[:, -1]
        ways = largest - last  # how many points may follow, (rows,)
        before = np.cumsum(ways) - ways
        number = np.arange(ways.sum()) - np.repeat(before, ways)  # 0, 1, ... for each row
        following = np.repeat(last, ways) + 1 + number
        rows = np.column_stack([np.repeat(rows, ways, axis=0), following])
    return rows


@lru_cache(maxsize=64)
def _columns(size: int, strength: int) -> Integers:
    """The sets of ``strength`` places in a block, (sets in a block, strength)."""
    return all_sets(size, strength)


@lru_cache(maxsize=64)
def _binomials(points: int, most: int) -> Integers:
    """C(row, column) for rows below ``points`` and columns up to ``most``."""
    out = np.zeros((points, most + 1), np.int64)
    for rest in range(points):
        for count in range(most + 1):
            out[rest, count] = comb(rest, count)
    return out


def ranks(blocks: Integers, points: int, strength: int) -> Integers:
    """The number, in lexicographic order, of each set of ``strength`` points that a block holds.

    Args:
        blocks: increasing points, (blocks, size).
        points: how many there are.
        strength: of a set.

    Returns:
        Numbers from 0, (blocks, sets in a block).
    """
    # before c_1 < ... < c_t come  C(v, t) - 1 - sum over i of C(v - 1 - c_i, t + 1 - i)
    choose = _binomials(points, strength)
    columns = _columns(blocks.shape[1], strength)  # (sets in a block, strength)
    out = np.full((len(columns), len(blocks)), comb(points, strength) - 1, np.int64)
    after = points - 1 - blocks.T  # points beyond each one, (size, blocks)
    for position in range(strength):
        terms = choose[:, strength - position][after]  # (size, blocks)
        out -= terms[columns[:, position]]
    return out.T


def _grown_blocks(points: int, size: int, strength: int, most: int) -> list[Places] | None:
    """Each block grows from the first set not yet covered, by the point that adds the most."""
    if strength == 2:
        return _grown_from_pairs(points, size, most)
    targets = all_sets(points, strength)
    is_open = np.ones(len(targets), bool)
    chosen: list[Places] = []
    while True:
        first = int(is_open.argmax())
        if not is_open[first]:
            return chosen
        if len(chosen) == most:
            return None
        block = targets[first].tolist()
        # sets of one point less, which a point may complete to an open one
        subsets = [list(own) for own in combinations(block, strength - 1)]
        gains = np.zeros(points, np.int64)
        while True:
            gains += _completions(subsets, points, is_open)
            if len(block) == size:
                break
            gains[block] = -1
            best = int(gains.argmax())
            subsets = [[*own, best] for own in combinations(block, strength - 2)]
            block.append(best)
        block.sort()
        chosen.append(tuple(block))
        is_open[ranks(np.array([block]), points, strength)] = False


def _grown_from_pairs(points: int, size: int, most: int) -> list[Places] | None:
    """The same for pairs, whose gains are sums of rows of a matrix."""
    is_open = ~np.eye(points, dtype=bool)  # pairs not yet covered, (points, points)
    chosen: list[Places] = []
    for pair in combinations(range(points), 2):
        if not is_open[pair]:
            continue
        if len(chosen) == most:
            return None
        block = _widened(pair, size, is_open, is_filled=True)
        chosen.append(block)
        is_open[np.ix_(block, block)] = False
    return chosen


def _widened(block: Places, size: int, is_open: NDArray[np.bool_], *, is_filled: bool) -> Places:
    """A block with more points, each time the one that adds the most open pairs.

    Args:
        block: What it begins with.
        size: How many points it may have.
        is_open: Pairs that are to be added, (points, points).
        is_filled: Whether points join that add nothing.
    """
    members = list(block)
    gains = is_open[members].sum(axis=0)  # open pairs that a point would add, (points,)
    while len(members) < size:
        gains[members] = -1
        best = int(gains.argmax())
        if gains[best] < (0 if is_filled else 1):
            break
        gains += is_open[best]
        members.append(best)
    return tuple(sorted(members))


def _completions(
    subsets: Sequence[Sequence[int]],
    points: int,
    is_open: NDArray[np.bool_],
) -> Integers:
    """For each point, how many of some sets it completes to an open one, (points,).

    What it says of points inside the sets means nothing.
    """
    count, width = len(subsets), len(subsets[0])
    sets = np.empty((count, points, width + 1), np.int64)
    sets[:, :, :width] = np.array(subsets)[:, None, :]
    sets[:, :, width] = np.arange(points)
    sets.sort(axis=2)
    numbers = ranks(sets.reshape(count * points, width + 1), points, width + 1)
    return np.asarray(is_open[numbers].reshape(count, points).sum(axis=0))


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
    held = together(views, points) > 0  # (points, points)
    missing = [part for part in parts if not held[part[0], part[-1]]]
    missing.sort(key=len, reverse=True)  # pairs first: their views hold points as well
    is_open = np.zeros((points, points), bool)  # on the diagonal: points
    for part in missing:
        is_open[part[0], part[-1]] = is_open[part[-1], part[0]] = True
    added: list[Places] = []
    for part in missing:
        if not is_open[part[0], part[-1]]:
            continue
        # a view that is wider than it needs to be would only bring more noise
        block = _widened(part, size, is_open, is_filled=False)
        added.append(block)
        is_open[np.ix_(block, block)] = False
    return tuple(sorted({*views, *added}))


def _without_spare(blocks: list[Places], points: int, strength: int) -> tuple[Places, ...]:
    """The blocks less those, latest first, whose sets all lie in others."""
    held = ranks(np.array(blocks), points, strength)  # (blocks, sets in a block)
    times = np.bincount(held.ravel())  # how many blocks hold a set
    kept = []
    for block, sets in zip(reversed(blocks), held[::-1], strict=True):
        if times[sets].min() > 1:
            times[sets] -= 1
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
    best = max(candidates, key=lambda views: _evenness(views, points))
    return tuple(sorted(best))


def _drawn(
    points: int,
    size: int,
    count: int,
    draws: np.random.Generator,
) -> list[Places]:
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
        return [*chosen, *(others[number] for number in picked.tolist())]
    while len(chosen) < count:
        missing = count - len(chosen)  # as many are needed at least
        chosen.update(map(tuple, random_sets(points, size, missing, draws).tolist()))
    return list(chosen)


def _evenness(views: list[Places], points: int) -> tuple[int, int]:
    """How many pairs some views hold, and how often the rarest point."""
    times = together(views, points)
    pairs = int(np.count_nonzero(np.triu(times, 1)))
    return pairs, int(times.diagonal().min())
