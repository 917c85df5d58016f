"""Run inside an environment of its own that has ``mbi`` (private-pgm): the maximum spanning tree
mechanism on a table of codes, and how far its tables of three attributes are off, as one JSON line.

``python -m bench.pgm_child TABLE.npz EPSILON DELTA SEED``. Nothing here imports sottovoce. The
mechanism is that of mckenna2021winning: single attributes are counted with noise, rare values are
merged, a spanning tree of pairs is drawn by the exponential mechanism, its pairs are counted with
noise, and mbi infers the distribution; each step has a third of the budget in zCDP. Noise is of
floats and from a seed, and the number of people is told without noise: this is a yardstick, not a
release.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations, pairwise
from math import exp, log1p, prod, sqrt
from typing import Any

import numpy as np

ITERATIONS = 2000  # of mirror descent
RARE = 3.0  # standard deviations below which values are merged
Edge = tuple[int, int]


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP promises (epsilon, delta): canonne2020discrete, proposition 7."""
    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        if _delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def _delta(rho: float, epsilon: float) -> float:
    if rho == 0:
        return 0.0
    least = 1.0
    for alpha in 1 + np.geomspace(1e-3, 1e3, 20_000):
        power = (alpha - 1) * (alpha * rho - epsilon) + alpha * log1p(-1 / alpha)
        if power < 0:
            least = min(least, exp(power) / (alpha - 1))
    return least


@dataclass(frozen=True, eq=False)
class Merged:
    """A table whose rare values are one value, the last.

    Attributes:
        codes: (people, attributes).
        sizes: of the attributes.
        spreads: for each attribute how a merged value goes back to the values it stands for,
            evenly, (merged values, values).
    """

    codes: Any
    sizes: tuple[int, ...]
    spreads: tuple[Any, ...]


def merged(codes: Any, noisy: list[Any], sigma: float) -> tuple[Merged, list[Any]]:
    """The table with rare values merged, and the noisy counts of what is left with their scales."""
    columns, sizes, spreads, counts = [], [], [], []
    for place, told in enumerate(noisy):
        kept = told >= RARE * sigma
        if kept.sum() < 2:
            kept[:] = True
        others = int((~kept).sum())
        numbers = np.cumsum(kept) - 1
        numbers[~kept] = kept.sum()
        size = int(kept.sum()) + (others > 0)
        spread = np.zeros((size, told.size))
        spread[numbers, np.arange(told.size)] = 1.0
        spread /= spread.sum(axis=1, keepdims=True)
        columns.append(numbers[codes[:, place]])
        sizes.append(size)
        spreads.append(spread)
        counts.append(np.bincount(numbers, told, minlength=size))
    return Merged(np.stack(columns, axis=1), tuple(sizes), tuple(spreads)), counts


def table_of(codes: Any, sizes: tuple[int, ...], places: tuple[int, ...]) -> Any:
    """Exact counts, an axis for each attribute."""
    shape = [sizes[place] for place in places]
    cells = np.ravel_multi_index([codes[:, place] for place in places], shape)
    return np.bincount(cells, minlength=prod(shape)).reshape(shape).astype(float)


def inferred(
    sizes: tuple[int, ...], told: dict[tuple[int, ...], Any], sigmas: dict[Any, float], people: int
) -> Any:
    """The model of mbi that is nearest to noisy counts."""
    mbi: Any = import_module("mbi")
    names = [f"a{place}" for place in range(len(sizes))]
    domain = mbi.Domain(names, sizes)
    measurements = []
    for places, counts in told.items():
        clique = tuple(names[place] for place in places)
        measurements.append(mbi.LinearMeasurement(counts.ravel(), clique, sigmas[places]))
    descent = mbi.estimation.MirrorDescent()
    return descent.estimate(domain, measurements, known_total=float(people), iters=ITERATIONS)


def drawn_tree(scores: dict[Edge, float], count: int, rho: float, draws: Any) -> list[Edge]:
    """A spanning tree of ``count`` attributes, each edge by the exponential mechanism."""
    # an edge costs epsilon^2 / 8, and a person moves an L1 distance by at most 1
    epsilon = sqrt(8 * rho / (count - 1))
    groups = list(range(count))
    edges: list[Edge] = []
    while len(edges) < count - 1:
        open_ = [edge for edge in scores if groups[edge[0]] != groups[edge[1]]]
        powers = np.array([epsilon / 2 * scores[edge] for edge in open_])
        chances = np.exp(powers - powers.max())
        edge = open_[draws.choice(len(open_), p=chances / chances.sum())]
        edges.append(edge)
        joined, gone = groups[edge[0]], groups[edge[1]]
        groups = [joined if group == gone else group for group in groups]
    return edges


class TreeTables:
    """Tables of three attributes of a distribution that is a tree of pairs.

    In a tree the three paths between three attributes meet in one, given which they are
    independent.
    """

    def __init__(self, count: int, pairs: dict[Edge, Any]) -> None:
        self._near: dict[int, dict[int, Any]] = {place: {} for place in range(count)}
        for (first, second), table in pairs.items():
            shares = np.maximum(table, 0) / table.sum()
            self._near[first][second] = _given_rows(shares)
            self._near[second][first] = _given_rows(shares.T)
        first, second = next(iter(pairs))
        self._root = first
        table = np.maximum(pairs[first, second], 0)
        self._root_shares = table.sum(axis=1) / table.sum()

    def path(self, start: int, end: int) -> list[int]:
        """The attributes between two, with both."""
        behind = {start: start}
        waiting = [start]
        for place in waiting:
            fresh = [other for other in self._near[place] if other not in behind]
            behind.update(dict.fromkeys(fresh, place))
            waiting += fresh
        found = [end]
        while found[-1] != start:
            found.append(behind[found[-1]])
        return found[::-1]

    def given(self, start: int, end: int) -> Any:
        """P(end | start), (values of start, values of end)."""
        path = self.path(start, end)
        found = None
        for here, there in pairwise(path):
            step = self._near[here][there]
            found = step if found is None else found @ step
        return found

    def shares(self, place: int) -> Any:
        """P of one attribute."""
        given = self.given(self._root, place)
        return self._root_shares if given is None else self._root_shares @ given

    def triple(self, places: tuple[int, int, int], spreads: tuple[Any, ...]) -> Any:
        """P of three attributes, rare values spread out."""
        first, second, third = places
        middle = (
            set(self.path(first, second))
            & set(self.path(first, third))
            & set(self.path(second, third))
        ).pop()
        shares = self.shares(middle)
        sides = []
        for place in places:
            given = self.given(middle, place)
            given = np.eye(shares.size) if given is None else given
            sides.append(given @ spreads[place])
        both = np.einsum("m,ma,mb->abm", shares, sides[0], sides[1])
        return np.tensordot(both, sides[2], axes=1)


def _given_rows(shares: Any) -> Any:
    sums = shares.sum(axis=1, keepdims=True)
    even = np.full_like(shares, 1 / shares.shape[1])
    return np.divide(shares, sums, out=even, where=sums > 0)


def spanning_tree(codes: Any, sizes: tuple[int, ...], rho: float, draws: Any) -> Any:
    """The mechanism: from a table to the shares of any three attributes."""
    people, count = codes.shape
    third = rho / 3
    sigma = sqrt(count / (2 * third))
    noisy = []
    for place in range(count):
        exact = table_of(codes, sizes, (place,))
        noisy.append(exact + sigma * draws.standard_normal(exact.size))
    table, counts = merged(codes, noisy, sigma)
    told: dict[tuple[int, ...], Any] = {}
    sigmas: dict[tuple[int, ...], float] = {}
    for place in range(count):
        told[place,] = counts[place]
        sigmas[place,] = sigma
    # with single attributes alone, the model that is nearest is their product
    alone = inferred(table.sizes, told, sigmas, people)
    single = [np.asarray(alone.project((f"a{place}",)).datavector()) for place in range(count)]
    scores = {}
    for pair in combinations(range(count), 2):
        expected = np.outer(single[pair[0]], single[pair[1]]) / people
        scores[pair] = float(np.abs(table_of(table.codes, table.sizes, pair) - expected).sum())
    edges = drawn_tree(scores, count, third, draws)
    wide = sqrt((count - 1) / (2 * third))
    for pair in edges:
        exact = table_of(table.codes, table.sizes, pair)
        told[pair] = exact + wide * draws.standard_normal(exact.shape)
        sigmas[pair] = wide
    model = inferred(table.sizes, told, sigmas, people)
    pairs = {}
    for pair in edges:
        names = tuple(f"a{place}" for place in pair)
        shape = [table.sizes[place] for place in pair]
        pairs[pair] = np.asarray(model.project(names).datavector()).reshape(shape)
    return TreeTables(count, pairs), table.spreads


def main(path: str, epsilon: float, delta: float, seed: int) -> dict[str, float]:
    """Run the mechanism on a file of codes and sizes, and measure it."""
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    held = np.load(path)
    codes, sizes = held["codes"], tuple(int(size) for size in held["sizes"])
    draws = np.random.default_rng(seed)
    start = time.perf_counter()
    rho = rho_of(epsilon, delta)
    trees, spreads = spanning_tree(codes, sizes, rho, draws)
    total = 0.0
    sets = list(combinations(range(len(sizes)), 3))
    for places in sets:
        true = table_of(codes, sizes, places) / len(codes)
        total += float(((trees.triple(places, spreads) - true) ** 2).sum())
    seconds = time.perf_counter() - start
    return {"sse": total / len(sets), "tables": len(sets), "rho": rho, "seconds": seconds}


if __name__ == "__main__":
    file, promised, chance, number = sys.argv[1:]
    print(json.dumps(main(file, float(promised), float(chance), int(number))))
