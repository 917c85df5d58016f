"""The search of coded windows: a beam through the windows' tables, then greedy choice with what is
found taken out.

A window's score of a value is 2^b times the reports that support it, less the people of the window:
of mean zero for a value that nobody holds, of mean (2^b p - 1) for every person who does. Scores of
different windows are of different people, so they add up to a score from everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.kernels import beam
from sottovoce.kernels.hashing import scramble
from sottovoce.oracles.hashing import LocalHashing
from sottovoce.protocol.encodings import Window

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
EXTENSIONS = 4  # of each survivor that are looked at
# survivors after the first, another and the last window
FIRST_KEPT, NEXT_KEPT, LAST_KEPT = (
    16_384,
    4_096,
    1_024,
)
STRONG_NATS = 5.0  # nats above the limit at which a value is taken for found and out of the tables
AHEAD = 2  # windows that are decoded at once
MOST_CACHED = 1 << 27  # cells of decoded tables that are kept for the second pass, of 4 bytes each


@dataclass(frozen=True, eq=False)
class Scores:
    """The score of every value of one window, in order or, as the transform leaves them, at
    scrambled places.
    """

    values: NDArray[np.int32]  # (2^width,)
    width: int
    scrambled: bool

    def places(self, cells: Integers) -> Integers:
        """Where the scores of some values stand."""
        if not self.scrambled:
            return cells
        places: Integers = scramble(cells.astype(np.uint64), self.width).astype(np.int64)
        return places

    def at(self, cells: Integers) -> NDArray[np.int32]:
        """The scores of some values."""
        return self.values[self.places(cells)]

    def largest(self, count: int, variance: float) -> Integers:
        """The values of the largest scores, in falling order.

        Args:
            count: how many are wanted.
            variance: that of the noise, which fills most of the scores.

        Returns:
            The values, (count,) or all if there are fewer.
        """
        size = len(self.values)
        count = min(count, size)
        # noise alone puts about twice as many as are wanted above this limit: fewer to sort
        tail = min(0.3, 2 * count / size)
        quantile = imported("scipy.special").ndtri(tail)
        limit = -np.sqrt(variance) * quantile
        places = np.flatnonzero(self.values > limit)
        if len(places) < count:
            dropped = size - count
            places = np.argpartition(self.values, dropped)[dropped:]
        falling = np.argsort(-self.values[places], kind="stable")
        places = places[falling[:count]]
        if not self.scrambled:
            return places
        values: Integers = beam.unscramble(places.astype(np.uint64), self.width).astype(np.int64)
        return values


@dataclass(frozen=True, eq=False)
class Tables:
    """What the crowd said of each window: integer tables, decoded when they are needed."""

    windows: Sequence[Window]
    oracles: Sequence[LocalHashing]
    states: Sequence[Integers]
    people: Sequence[int]

    @cached_property
    def _decoded(self) -> dict[int, Future[Scores]]:
        return {}

    @cached_property
    def _decoder(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(AHEAD)

    def scores(self, number: int) -> Scores:
        """The scores of a window; the next ones are decoded meanwhile."""
        if sum(window.size for window in self.windows) > MOST_CACHED:
            self._decoded.pop(number - 1, None)
        for ahead in range(number, number + AHEAD):
            window = ahead % len(self.windows)
            if window not in self._decoded:
                self._decoded[window] = self._decoder.submit(self._decode, window)
        return self._decoded[number].result()

    def _decode(self, number: int) -> Scores:
        table = self.states[number]
        people = self.people[number]
        width = self.oracles[number].width
        if number == 0:
            # only its largest scores are looked for, so that it need not be put in order
            return Scores(beam.decode_scrambled(table, people), width, scrambled=True)
        return Scores(beam.decode_window(table, width, people), width, scrambled=False)

    @property
    def buckets(self) -> int:
        """2^b, the values of a hash; one person's score for a value that she does not hold has
        variance 2^b - 1.
        """
        return self.oracles[0].buckets

    @property
    def total(self) -> int:
        """The people of all windows."""
        return sum(self.people)

    @property
    def shares(self) -> Floats:
        """The share of the people who tell each window, (windows,)."""
        return np.array(self.people) / self.total

    def cells(self, words: Words) -> Integers:
        """The cell of each whole (scrambled) value in each window, (values, windows)."""
        columns = [window.of_columns(words).astype(np.int64) for window in self.windows]
        return np.stack(columns, axis=1)

    def best_of(self, words: Words, count: int) -> Candidates:
        """Those of some whole (scrambled) values that have the largest scores.

        Args:
            words: the values, (values, 2).
            count: how many of them are kept.
        """
        totals = np.zeros(len(words), np.int64)  # (values,)
        for number, window in enumerate(self.windows):
            cells = window.of_columns(words).astype(np.int64)
            totals += self.scores(number).at(cells)
        if count < len(totals):
            dropped = len(totals) - count
            kept = np.argpartition(totals, dropped)[dropped:]
            words = words[kept]
        columns = []
        for number, cells in enumerate(self.cells(words).T):
            columns.append(self.scores(number).at(cells))
        scores = np.stack(columns, axis=1)  # (kept, windows)
        return Candidates(words, scores.astype(float))


@dataclass(frozen=True, eq=False)
class KnownValues:
    """Values that were found, and what they put into each window's cells."""

    words: Words  # (values, 2)
    cells: Integers  # (values, windows)
    amounts: Floats  # (values, windows)

    @classmethod
    def nothing(cls, windows: int) -> KnownValues:
        """No value at all."""
        words = np.zeros((0, 2), np.uint64)
        cells = np.zeros((0, windows), np.int64)
        return cls(words, cells, np.zeros((0, windows)))

    @contextmanager
    def taken_out(self, number: int, scores: Scores) -> Iterator[None]:
        """While this lasts, the known values are not in a window's scores."""
        places = scores.places(self.cells[:, number])
        rounded = np.round(self.amounts[:, number])
        amounts = rounded.astype(scores.values.dtype)
        np.subtract.at(scores.values, places, amounts)
        yield
        np.add.at(scores.values, places, amounts)

    def share(self, number: int, cells: Integers) -> Floats:
        """What they put into some cells of a window, (cells,)."""
        order = np.argsort(self.cells[:, number], kind="stable")
        own = self.cells[order, number]
        # sums[i]: the amounts of the first i known values, in the order of their cells
        amounts_so_far = np.cumsum(self.amounts[order, number])
        sums = np.concatenate([[0.0], amounts_so_far])
        start = np.searchsorted(own, cells, side="left")
        end = np.searchsorted(own, cells, side="right")
        amounts: Floats = sums[end] - sums[start]
        return amounts


@dataclass(frozen=True, eq=False)
class Candidates:
    """Values with their scores, window by window."""

    words: Words  # (values, 2)
    scores: Floats  # (values, windows)

    @property
    def totals(self) -> Floats:
        """Each value's score from everybody, (values,)."""
        sums: Floats = self.scores.sum(axis=1)
        return sums

    def __getitem__(self, rows: Any) -> Candidates:
        return Candidates(self.words[rows], self.scores[rows])

    def joined(self, other: Candidates) -> Candidates:
        """Both, one after the other."""
        words = np.concatenate([self.words, other.words])
        return Candidates(words, np.concatenate([self.scores, other.scores]))

    @property
    def firsts(self) -> Integers:
        """The rows at which a value stands for the first time."""
        _, rows = np.unique(self.words, axis=0, return_index=True)
        return np.sort(rows)


def evidence(totals: Floats, people: float, buckets: int) -> Floats:
    """The log likelihood ratio of the best frequency against none: nats that a score is worth.

    Args:
        totals: scores, (values,).
        people: from whom they come.
        buckets: 2^b, the values of a hash.
    """
    # n KL(s || q) for the share s of reports that support the value, of which q = 1/2^b would by
    # chance: n [s log(s/q) + (1 - s) log((1 - s)/(1 - q))]
    chance = 1 / buckets
    supported = (totals / people + 1) / buckets
    share = np.clip(supported, chance, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = (1 - share) * np.log((1 - share) / (1 - chance))
    rest = np.where(share < 1, missed, 0)  # 0 log 0 = 0
    divergence = share * np.log(share * buckets) + rest
    nats: Floats = people * divergence
    return nats


# -- from window to window


def kept_counts(windows: int, top: int) -> list[int]:
    """How many beginnings the search keeps after each window.

    >>> kept_counts(3, 16), kept_counts(1, 16)
    ([16384, 4096, 1024], [1024])
    """
    counts = [max(NEXT_KEPT, 16 * top)] * windows
    counts[0] = max(FIRST_KEPT, 64 * top)
    counts[-1] = max(LAST_KEPT, 8 * top)
    return counts


def survivors(tables: Tables, known: KnownValues, top: int) -> Candidates:
    """The most promising whole values, by a beam through the windows.

    Args:
        tables: what the crowd said.
        known: values to leave out of it.
        top: how many values are wanted in the end.
    """
    counts = kept_counts(len(tables.windows), top)
    frontier = _first_beam(tables, known, counts[0])
    for number in range(1, len(tables.windows)):
        frontier = _extended(tables, known, frontier, number)
        frontier = _kept(tables, frontier, number + 1, top, counts[number])
    return Candidates(frontier.words, frontier.scores)


@dataclass(frozen=True, eq=False)
class Beam:
    """The beginnings of values that the search goes on with."""

    words: Words  # (prefixes, 2)
    scores: Floats  # (prefixes, windows so far)
    roots: Integers  # (prefixes,): the row of the first window's value that each began with


def _first_beam(tables: Tables, known: KnownValues, count: int) -> Beam:
    """The ``count`` best values of the first window."""
    variance = tables.people[0] * (tables.buckets - 1)
    scores = tables.scores(0)
    with known.taken_out(0, scores):
        cells = scores.largest(count, variance)  # (prefixes,)
        own = scores.at(cells).astype(float)
    low = cells.astype(np.uint64)
    words = np.stack([np.zeros_like(low), low], axis=1)
    return Beam(words, own[:, None], np.arange(len(cells)))


def _extended(tables: Tables, known: KnownValues, before: Beam, number: int) -> Beam:
    """The best ways in which each prefix goes on into a window."""
    window = tables.windows[number]
    scores = tables.scores(number)
    with known.taken_out(number, scores):
        best, suffixes = beam.extend(
            scores.values, before.words, window.tagged, window.tag, window.fresh, EXTENSIONS
        )  # (prefixes, ways) each
    ways = best.shape[1]
    # each prefix once for every way in which it goes on: (prefixes * ways, ...)
    words = np.repeat(before.words, ways, axis=0)
    earlier = np.repeat(before.scores, ways, axis=0)
    roots = np.repeat(before.roots, ways)
    own = best.ravel()[:, None].astype(float)
    longer = beam.append_bits(words, suffixes.ravel(), window.fresh)
    return Beam(longer, np.concatenate([earlier, own], axis=1), roots)


def _kept(tables: Tables, wide: Beam, windows: int, top: int, count: int) -> Beam:
    """The ``count`` most promising prefixes of the first so many ``windows``."""
    people = sum(tables.people[:windows])
    bits = sum(window.fresh for window in tables.windows[:windows])
    totals = wide.scores.sum(axis=1)
    nats = evidence(totals, people, tables.buckets)
    limit = bits * log(2) - log(top)
    weights = _promise(nats, wide.roots, limit)
    rows = np.argsort(-weights, kind="stable")[:count]
    return Beam(wide.words[rows], wide.scores[rows], wide.roots[rows])


def _promise(nats: Floats, roots: Integers, limit: float) -> Floats:
    """How promising each candidate is: its evidence, less all evidence of its own root or less the
    limit.

    The evidence of one first window is shared out among what was built on it: the sum alone would
    keep ghosts of one strong value, and nothing else.

    Args:
        nats: the evidence of each candidate, (candidates,).
        roots: the root of each, (candidates,).
        limit: nats at which a value is as likely there as not.
    """
    count = int(roots.max(initial=0)) + 1
    largest = np.zeros(count)
    np.maximum.at(largest, roots, nats)
    # log of the sum of e^nats over a root's candidates, with the largest taken out of the sum
    sums = np.zeros(count)
    parts = np.exp(nats - largest[roots])
    np.add.at(sums, roots, parts)
    of_root = largest + np.log(np.maximum(sums, 1e-300))  # (roots,)
    return nats - np.maximum(of_root, limit)[roots]


# -- one value after the other


def peel(
    tables: Tables, found: Candidates, count: int, prior: Floats | None = None
) -> tuple[Integers, Floats]:
    """Again and again the candidate of the largest evidence, which is then taken out of its cells.

    What shares cells with a stronger value looks strong until that one is taken out, so that no
    candidate may be dropped before.

    Args:
        tables: what the crowd said.
        found: the candidates.
        count: how many are chosen.
        prior: nats for each candidate, beside its evidence.

    Returns:
        The rows of the chosen candidates, (count,), and their scores when they were chosen,
        (count, windows).
    """
    people, buckets = tables.total, tables.buckets
    cells = tables.cells(found.words)  # (candidates, windows)
    shares = tables.shares  # (windows,)
    left = found.scores.copy()  # (candidates, windows)
    totals = left.sum(axis=1)
    base = np.zeros(len(totals))
    if prior is not None:
        base += prior
    weights = evidence(totals, people, buckets) + base
    rows: list[int] = []
    chosen: list[Floats] = []
    for _ in range(min(count, len(totals))):
        row = int(np.argmax(weights))
        rows.append(row)
        chosen.append(left[row].copy())
        base[row] = -np.inf  # it is not chosen again
        same = cells == cells[row]  # (candidates, windows)
        touched = np.flatnonzero(same.any(axis=1))
        amounts = totals[row] * shares  # that it put into its cells, (windows,)
        left[touched] -= same[touched] * amounts
        totals[touched] = left[touched].sum(axis=1)
        nats = evidence(totals[touched], people, buckets)
        weights[touched] = nats + base[touched]
    scores = np.array(chosen).reshape(len(rows), len(shares))
    return np.array(rows, np.int64), scores


def search(tables: Tables, top: int, limit: float) -> Candidates:
    """The candidates of two passes: what is surely found comes out of the tables before the second.

    Args:
        tables: what the crowd said.
        top: how many values are wanted.
        limit: nats at which a value is as likely there as not.
    """
    nothing = KnownValues.nothing(len(tables.windows))
    found = survivors(tables, nothing, top)
    if len(tables.windows) == 1:
        return found
    rows, scores = peel(tables, found, top)
    totals = scores.sum(axis=1)
    nats = evidence(totals, tables.total, tables.buckets)
    is_strong = nats > limit + STRONG_NATS
    if not is_strong.any():
        return found
    sure = found[rows[is_strong]]
    amounts = np.outer(totals[is_strong], tables.shares)  # (sure, windows)
    known = KnownValues(sure.words, tables.cells(sure.words), amounts)
    weak = survivors(tables, known, top)
    # the second pass scored what was left: what the sure ones put into these cells comes back
    columns = []
    for number, cells in enumerate(tables.cells(weak.words).T):
        columns.append(known.share(number, cells))
    scores = weak.scores + np.stack(columns, axis=1)
    both = sure.joined(Candidates(weak.words, scores))
    return both[both.firsts]
