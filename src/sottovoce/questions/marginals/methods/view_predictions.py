"""The error to expect of tables that come from views, before anybody is asked.

A table is the sum of its parts, one for each set S of its attributes (see ``Overlap``). Averaged
over the views that hold S, its part has prod (K_a - 1) coefficients of variance 1/(cells of S times
the weight of S), where the weight of S is the sum over these views of 1/(cells of the view times
their variance). It enters the table divided by the cells of the table's other attributes. Where
maximum entropy fills in, others enter by their frequencies: the sum of f^2 for 1/K. What no view
holds is missed as far as attributes are usually tied. Repair then takes away some of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import comb, inf, prod

import numpy as np
from numpy.typing import NDArray

from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.designs import all_sets, ranks
from sottovoce.questions.marginals.models.structure import EVENNESS, PAIR_TIE, TRIPLE_TIE
from sottovoce.questions.marginals.workload import Integers, Places

Words = NDArray[np.uint64]
Shape = tuple[int, ...]

MOST_TERMS = 15_000  # (table, set of its attributes) pairs that a prediction adds up
MOST_SHAPES = 24  # views of different shapes that a prediction projects
TRIALS = 64  # typical tables that stand for all of a shape
MAX_KEPT_CELLS = 1024  # cells of a shape whose typical tables are kept for the next prediction
MOST_AT_ONCE = 1 << 14  # cells that are projected in one go, which the processor's cache holds
# the error that tables made consistent and non-negative approach, however much noise there is
SATURATION = 0.3
SEED = 20_240_229
WORD_BITS = 64  # bits
MOST_WORDS = 1 << 17  # that are worked on in one go
BOUND_ROUNDING = 1e-9  # by which a bound may be off, relatively


@dataclass(frozen=True)
class Expected:
    """The expected sum of squares of a table's errors.

    Attributes:
        noise: That of the reports, as it averages out and is repaired.
        reconstruction: What maximum entropy may miss.
    """

    noise: float
    reconstruction: float

    @property
    def error(self) -> float:
        """Both together."""
        return self.noise + self.reconstruction


@dataclass(frozen=True, eq=False)
class TypicalTables:
    """The tables that a prediction averages over, as arrays, and the levels of their sets.

    Tables may have different numbers of attributes. Where one has fewer, ``members`` names the
    point after the last, which has one value and is in no view, so that it changes nothing.

    Attributes:
        points: How many there are to make views of.
        members: The points of each table, (k, tables).
        sizes: Their numbers of values, (k, tables).
        masses: The expected sum of their squared frequencies, (k, tables).
        levels: The sets of 1, 2, ... of a table's k places.
    """

    points: int
    members: Integers
    sizes: Integers
    masses: Floats
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, sample: Sequence[Places], sizes: Sequence[int], longest: int) -> TypicalTables:
        """Some of a workload's tables, few enough to add up all sets of ``longest`` points or
        fewer.

        Args:
            sample: The workload's tables, as increasing points.
            sizes: Of each point, how many values it has.
            longest: How many points the largest view has, or 3 if it has fewer.
        """
        terms = sum(comb(len(sample[0]), count) for count in range(1, longest + 1))
        step = max(1, -(-len(sample) * terms // MOST_TERMS))
        tables = sample[::step]
        points = len(sizes)
        order = max(len(table) for table in tables)
        lengths = np.array([len(table) for table in tables])
        rows = np.full((len(tables), order), points)
        rows[np.arange(order) < lengths[:, None]] = list(chain.from_iterable(tables))
        members = rows.T
        values = np.array([*sizes, 1])
        # E[sum f^2] = (a + 1) / (K a + 1) for a Dirichlet law of parameter a over K values
        masses = (EVENNESS + 1) / (values * EVENNESS + 1)
        levels = tuple(_level(order, count) for count in range(1, min(longest, order) + 1))
        return cls(points, members, values[members], masses[members], levels)


class Level:
    """The sets of c of a table's k places, numbered in lexicographic order.

    Attributes:
        places: The sets, (sets, c).
        others: For each set the places outside it, (sets, k - c).
        masks: The sets as bits, (sets,).
    """

    def __init__(self, order: int, count: int) -> None:
        self._order = order  # k
        self._count = count  # c
        self.places = all_sets(order, count)
        is_inside = np.zeros((len(self.places), order), bool)
        is_inside[np.arange(len(self.places))[:, None], self.places] = True
        self.others = np.nonzero(~is_inside)[1].reshape(len(self.places), order - count)
        self.masks: Integers = is_inside @ (1 << np.arange(order))

    @cached_property
    def prefix(self) -> Integers:
        """For each set the number of the set without its last place, (sets,)."""
        return ranks(self.places[:, :-1], self._order, self._count - 1)[:, 0]

    @cached_property
    def wider(self) -> Integers:
        """For each set and each other place the set with that place, (sets, k - c)."""
        repeated = np.repeat(self.places[:, None, :], self.others.shape[1], axis=1)
        sets = np.concatenate([repeated, self.others[:, :, None]], axis=2)
        sets.sort(axis=2)
        width = self._count + 1
        return ranks(sets.reshape(-1, width), self._order, width).reshape(self.others.shape)


@lru_cache(maxsize=64)
def _level(order: int, count: int) -> Level:
    return Level(order, count)


@dataclass(frozen=True)
class Unrepaired:
    """What an error is made of before repair.

    Attributes:
        noise: The expected squared error of a table by noise, none of it repaired.
        reconstruction: What maximum entropy may miss.
        by_shape: For shapes of what views hold of tables, the noise of that part alone.
    """

    noise: float
    reconstruction: float
    by_shape: tuple[tuple[Shape, float], ...]


def expected(
    tables: TypicalTables,
    views: tuple[Places, ...],
    shares: tuple[float, ...],
    most: float = inf,
) -> Expected | None:
    """The error of a table to expect, in the mean over tables.

    Args:
        tables: Those of the workload.
        views: Sets of points that people report.
        shares: For each view, 1/(its cells times the variance of a contrast of them).
        most: The error beyond which nobody asks how large it is.

    Returns:
        The error; None if it is sure to be more than ``most``.
    """
    parts = _unrepaired(tables, views, shares)
    if not parts.by_shape:
        return _repaired(parts, 1.0)
    limit = noise_within(most - parts.reconstruction)
    before = sum(noise for _, noise in parts.by_shape)
    after = 0.0  # what repair leaves of it
    # small shapes first: the large ones take longer, and may not be needed
    for shape, noise in sorted(parts.by_shape, key=lambda own: prod(own[0])):
        after += projected(shape, noise)
        if parts.noise * after / before > limit:
            return None
    return _repaired(parts, after / before)


def _repaired(parts: Unrepaired, kept: float) -> Expected:
    """The error if repair leaves a share ``kept`` of the noise."""
    left = parts.noise * kept
    return Expected(left * SATURATION / (left + SATURATION), parts.reconstruction)


def noise_within(most: float) -> float:
    """The noise, less what repair takes away, that leaves an error of ``most`` when it
    saturates.
    """
    # x s/(x + s) = m  for  x = m s/(s - m)
    if most >= SATURATION:
        return inf
    return most * SATURATION / (SATURATION - most) * (1 + BOUND_ROUNDING)


@lru_cache(maxsize=256)
def _unrepaired(
    tables: TypicalTables, views: tuple[Places, ...], shares: tuple[float, ...]
) -> Unrepaired:
    """The noise of the parts of tables that views hold, and what is missed of the others."""
    weights = _weights(tables, views, shares)
    sizes, masses = tables.sizes, tables.masses
    depth = len(tables.levels)
    noise = reconstruction = 0.0
    squares = (1 / (sizes * EVENNESS + 1), PAIR_TIE**2, TRIPLE_TIE**2)
    for count, (level, weight) in enumerate(zip(tables.levels, weights, strict=True), start=1):
        is_known = weight > 0  # (sets, tables)
        # of the places outside a set: 1/K if a view holds them with the set, else sum f^2
        outside = masses[level.others]  # (sets, k - count, tables)
        missed = outside.prod(axis=1)
        if count < depth:
            is_wider_known = weights[count][level.wider] > 0
            outside = np.where(is_wider_known, 1 / sizes[level.others], outside)
        told = (1 - 1 / sizes)[level.places].prod(axis=1) * outside.prod(axis=1)
        noise += float((told[is_known] / weight[is_known]).sum())
        if count <= len(squares):
            tie = squares[count - 1] * (1 - masses)[level.places].prod(axis=1)
            reconstruction += float((tie * missed)[~is_known].sum())
    number = tables.members.shape[1]
    return Unrepaired(noise / number, reconstruction / number, _by_shape(tables, weights))


def _weights(
    tables: TypicalTables, views: tuple[Places, ...], shares: tuple[float, ...]
) -> list[Floats]:
    """For each level the weights of its sets in all views, (sets, tables); 0 if none holds a set.

    Views are bits of words, so that those that hold a set are found by a few operations. Views of
    equal share stand in the same words, whose bits then need only be counted.
    """
    holders, share_of_word = _packed(views, shares, tables.points)
    number = tables.members.shape[1]
    sets = max(len(level.places) for level in tables.levels)
    columns = max(1, MOST_WORDS // (sets * len(share_of_word)))  # tables at once
    out = [np.empty((len(level.places), number)) for level in tables.levels]
    for start in range(0, number, columns):
        span = slice(start, start + columns)
        of_place = holders[tables.members[:, span]]  # (k, tables, words)
        inside = of_place  # the views that hold a set, (sets, tables, words)
        for count, level in enumerate(tables.levels, start=1):
            if count > 1:
                inside = inside[level.prefix] & of_place[level.places[:, -1]]
            out[count - 1][:, span] = np.bitwise_count(inside) @ share_of_word
    return out


def _packed(
    views: tuple[Places, ...], shares: tuple[float, ...], points: int
) -> tuple[Words, Floats]:
    """Which views hold each point, as bits of words, each word for views of one share.

    Returns:
        The words, (points + 1, words), the last row for no point; and each word's share, (words,).
    """
    values, group = np.unique(shares, return_inverse=True)
    sizes = np.bincount(group)  # views of each share
    words = -(-sizes // WORD_BITS)  # of each share, rounded up
    # the bit of a view: the first of its share, and then its number among those
    first_bit = (np.cumsum(words) - words) * WORD_BITS
    number = np.empty(len(views), np.int64)
    in_order = np.argsort(group, kind="stable")
    number[in_order] = np.arange(len(views)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    bits = (first_bit[group] + number).tolist()

    holders = np.zeros((points + 1, int(words.sum()) * WORD_BITS), bool)
    for view, bit in zip(views, bits, strict=True):
        holders[list(view), bit] = True
    packed = np.packbits(holders, axis=1, bitorder="little").view(np.uint64)
    return packed, np.repeat(values, words)


def _by_shape(tables: TypicalTables, weights: Sequence[Floats]) -> tuple[tuple[Shape, float], ...]:
    """The noise of the largest parts of some tables that a view holds, in the mean by shape."""
    step = max(1, tables.members.shape[1] // MOST_SHAPES)
    sizes = tables.sizes[:, ::step]  # (k, tables)
    number = sizes.shape[1]
    part = np.zeros(number, np.int64)  # the places of each table's largest part, as bits
    for level, weight in reversed(list(zip(tables.levels, weights, strict=True))):
        by_mask = np.argsort(level.masks)
        is_known = (weight[by_mask, ::step] > 0) & (part == 0)  # (sets, tables)
        first = level.masks[by_mask[is_known.argmax(axis=0)]]
        part = np.where(is_known.any(axis=0), first, part)

    # a coefficient of S has variance 1/(cells of S, times its weight), and enters over (cells of
    # the part)/(cells of S)
    amounts = np.zeros(number)
    for level, weight in zip(tables.levels, weights, strict=True):
        is_inside = level.masks[:, None] & ~part == 0
        coefficients = (sizes - 1)[level.places].prod(axis=1)  # (sets, tables)
        own = np.where(is_inside, weight[:, ::step], np.inf)
        amounts += (coefficients / own).sum(axis=0)

    found: dict[Shape, list[float]] = {}
    for mask, values, amount in zip(part.tolist(), sizes.T.tolist(), amounts.tolist(), strict=True):
        if mask:
            shape = tuple(size for place, size in enumerate(values) if mask >> place & 1)
            found.setdefault(shape, []).append(amount / prod(shape))
    return tuple((shape, float(np.mean(noises))) for shape, noises in found.items())


@lru_cache(maxsize=4096)
def projected(shape: Shape, noise: float) -> float:
    """The mean squared error of typical tables of a shape, brought back to the simplex.

    It grows with the noise, though not more than in proportion. For if t is in a convex set, the
    distance from t to the point of the set that is nearest to t + x e grows with x, and falls if it
    is divided by x.

    Args:
        shape: That of the tables.
        noise: Their summed squared error before.
    """
    cells = prod(shape)
    truth, normal = _kept(shape) if cells <= MAX_KEPT_CELLS else _typical(shape)
    scale = np.sqrt(noise / max(cells - 1, 1))
    rows = max(1, MOST_AT_ONCE // cells)
    total = 0.0
    for start in range(0, TRIALS, rows):
        true = truth[start : start + rows]
        errors = scale * normal[start : start + rows]
        errors -= errors.mean(1, keepdims=True)  # the total is known
        total += float(((norm_sub(true + errors) - true) ** 2).sum())
    return total / TRIALS


def _typical(shape: Shape) -> tuple[Floats, Floats]:
    """Typical tables of a shape with independent attributes, and normal draws, (trials, cells)."""
    draws = np.random.Generator(np.random.PCG64(SEED))
    truth = np.ones((TRIALS, 1))
    for size in shape:
        law = draws.dirichlet(np.full(size, EVENNESS), TRIALS)
        truth = (truth[:, :, None] * law[:, None, :]).reshape(TRIALS, -1)
    return truth, draws.standard_normal(truth.shape)


_kept = lru_cache(maxsize=64)(_typical)
