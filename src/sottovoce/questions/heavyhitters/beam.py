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

    values: NDArray[np.int32]
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
        """The values of the largest scores, in falling order; noise of this variance fills most of
        them.
        """
        size = len(self.values)
        count = min(count, size)
        ndtri = imported("scipy.special").ndtri
        limit = -np.sqrt(variance) * ndtri(min(0.3, 2 * count / size))
        places = np.flatnonzero(self.values > limit)
        if len(places) < count:
            places = np.argpartition(self.values, size - count)[size - count :]
        places = places[np.argsort(-self.values[places], kind="stable")[:count]]
        return (
            beam.unscramble(places.astype(np.uint64), self.width).astype(np.int64)
            if self.scrambled
            else places
        )


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
            place = ahead % len(self.windows)
            if place not in self._decoded:
                self._decoded[place] = self._decoder.submit(self._decode, place)
        return self._decoded[number].result()

    def _decode(self, number: int) -> Scores:
        table, width, people = self.states[number], self.oracles[number].width, self.people[number]
        if (
            number == 0
        ):  # only its largest scores are looked for, so that it need not be put in order
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
        return sum(self.people)

    def cells(self, words: Words) -> Integers:
        """The cell of each whole (scrambled) value in each window."""
        return np.stack(
            [window.of_columns(words).astype(np.int64) for window in self.windows], axis=1
        )

    def best_of(self, words: Words, count: int) -> Candidates:
        """Those of some whole (scrambled) values that have the largest scores."""
        totals = np.zeros(len(words), np.int64)
        for number, window in enumerate(self.windows):
            totals += self.scores(number).at(window.of_columns(words).astype(np.int64))
        rows = (
            np.argpartition(totals, len(totals) - count)[len(totals) - count :]
            if count < len(totals)
            else slice(None)
        )
        cells = self.cells(words[rows])
        columns = [self.scores(number).at(cells[:, number]) for number in range(len(self.windows))]
        return Candidates(words[rows], np.stack(columns, axis=1).astype(float))


@dataclass(frozen=True, eq=False)
class KnownValues:
    """Values that were found, and what they put into each window's cells."""

    words: Words
    cells: Integers
    amounts: Floats

    @classmethod
    def nothing(cls, windows: int) -> KnownValues:
        return cls(
            np.zeros((0, 2), np.uint64), np.zeros((0, windows), np.int64), np.zeros((0, windows))
        )

    @contextmanager
    def taken_out(self, number: int, scores: Scores) -> Iterator[None]:
        """While this lasts, the known values are not in a window's scores."""
        places = scores.places(self.cells[:, number])
        amounts = np.round(self.amounts[:, number]).astype(scores.values.dtype)
        np.subtract.at(scores.values, places, amounts)
        yield
        np.add.at(scores.values, places, amounts)

    def share(self, number: int, cells: Integers) -> Floats:
        """What they put into some cells of a window."""
        order = np.argsort(self.cells[:, number], kind="stable")
        own = self.cells[order, number]
        sums = np.concatenate([[0.0], np.cumsum(self.amounts[order, number])])
        whole: Floats = (
            sums[np.searchsorted(own, cells, side="right")]
            - sums[np.searchsorted(own, cells, side="left")]
        )
        return whole


@dataclass(frozen=True, eq=False)
class Candidates:
    """Values with their scores, window by window."""

    words: Words
    scores: Floats

    @property
    def totals(self) -> Floats:
        sums: Floats = self.scores.sum(axis=1)
        return sums

    def __getitem__(self, rows: Any) -> Candidates:
        return Candidates(self.words[rows], self.scores[rows])

    def joined(self, other: Candidates) -> Candidates:
        """Both, one after the other."""
        return Candidates(
            np.concatenate([self.words, other.words]), np.concatenate([self.scores, other.scores])
        )

    @property
    def firsts(self) -> Integers:
        """The rows at which a value stands for the first time."""
        _, rows = np.unique(self.words, axis=0, return_index=True)
        return np.sort(rows)


def evidence(totals: Floats, people: float, buckets: int) -> Floats:
    """The log likelihood ratio of the best frequency against none: nats that a score is worth."""
    # n KL(s || q) for the share s of reports that support the value, of which q = 1/2^b would by
    # chance
    share = np.clip((totals / people + 1) / buckets, 1 / buckets, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - 1 / buckets)), 0)
    nats: Floats = people * (share * np.log(share * buckets) + rest)
    return nats


def survivors(tables: Tables, known: KnownValues, top: int) -> Candidates:
    """The most promising whole values, by a beam through the windows."""
    scores = tables.scores(0)
    with known.taken_out(0, scores):
        first = max(FIRST_KEPT, 64 * top) if len(tables.windows) > 1 else max(LAST_KEPT, 8 * top)
        cells = scores.largest(first, tables.people[0] * (tables.buckets - 1))
        heard = scores.at(cells).astype(float)[:, None]
    words = np.stack([np.zeros(len(cells), np.uint64), cells.astype(np.uint64)], axis=1)
    roots = np.arange(len(cells))
    people, bits = tables.people[0], tables.windows[0].fresh
    for number in range(1, len(tables.windows)):
        window = tables.windows[number]
        scores = tables.scores(number)
        with known.taken_out(number, scores):
            best, suffixes = beam.extend(
                scores.values, words, window.tagged, window.tag, window.fresh, EXTENSIONS
            )
        ways = best.shape[1]
        words = beam.append_bits(np.repeat(words, ways, axis=0), suffixes.ravel(), window.fresh)
        heard = np.concatenate(
            [np.repeat(heard, ways, axis=0), best.ravel()[:, None].astype(float)], axis=1
        )
        roots = np.repeat(roots, ways)
        people, bits = people + tables.people[number], bits + window.fresh
        is_last = number == len(tables.windows) - 1
        count = max(LAST_KEPT, 8 * top) if is_last else max(NEXT_KEPT, 16 * top)
        weights = _promise(
            evidence(heard.sum(axis=1), people, tables.buckets), roots, bits * log(2) - log(top)
        )
        kept = np.argsort(-weights, kind="stable")[:count]
        words, heard, roots = words[kept], heard[kept], roots[kept]
    return Candidates(words, heard)


def _promise(nats: Floats, roots: Integers, limit: float) -> Floats:
    """How promising each candidate is: its evidence, less all evidence of its own root or less the
    limit.

    The evidence of one first window is shared out among what was built on it: the sum alone would
    keep ghosts of one strong value, and nothing else.
    """
    largest = np.zeros(int(roots.max(initial=0)) + 1)
    np.maximum.at(largest, roots, nats)
    sums = np.zeros_like(largest)
    np.add.at(sums, roots, np.exp(nats - largest[roots]))
    whole = largest + np.log(np.maximum(sums, 1e-300))
    return nats - np.maximum(whole, limit)[roots]


def peel(
    tables: Tables, found: Candidates, count: int, prior: Floats | None = None
) -> tuple[Integers, Floats]:
    """(rows, totals): again and again the candidate of the largest evidence, which is then taken
    out of its cells.

    ``prior``: nats for each candidate, beside its evidence. What shares cells with a stronger value
    looks strong until that one is taken out, so that no candidate may be dropped before.
    """
    cells = tables.cells(found.words)
    shares = np.array(tables.people) / tables.total
    left = found.scores.copy()
    totals = left.sum(axis=1)
    base = np.zeros(len(totals)) if prior is None else prior.copy()
    weights = evidence(totals, tables.total, tables.buckets) + base
    rows: list[int] = []
    sums: list[float] = []
    for _ in range(min(count, len(totals))):
        row = int(np.argmax(weights))
        rows.append(row)
        sums.append(float(totals[row]))
        base[row] = -np.inf
        same = cells == cells[row]
        touched = np.flatnonzero(same.any(axis=1))
        left[touched] -= same[touched] * (totals[row] * shares)
        totals[touched] = left[touched].sum(axis=1)
        weights[touched] = evidence(totals[touched], tables.total, tables.buckets) + base[touched]
    return np.array(rows, np.int64), np.array(sums)


def search(tables: Tables, top: int, limit: float) -> Candidates:
    """The candidates of two passes: what is surely found comes out of the tables before the second.

    ``limit``: nats at which a value is as likely there as not.
    """
    found = survivors(tables, KnownValues.nothing(len(tables.windows)), top)
    if len(tables.windows) == 1:
        return found
    rows, totals = peel(tables, found, top)
    strong = evidence(totals, tables.total, tables.buckets) > limit + STRONG_NATS
    if not strong.any():
        return found
    sure = found[rows[strong]]
    amounts = np.outer(totals[strong], np.array(tables.people) / tables.total)
    known = KnownValues(sure.words, tables.cells(sure.words), amounts)
    weak = survivors(tables, known, top)
    cells = tables.cells(weak.words)
    back = np.stack(
        [known.share(number, cells[:, number]) for number in range(cells.shape[1])], axis=1
    )
    both = sure.joined(Candidates(weak.words, weak.scores + back))
    return both[both.firsts]
