"""Latent classes behind signs: the method that makes the least error on most data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.cohorts import Cohorts
from sottovoce.marginals.classes import ClassModel, Posterior
from sottovoce.marginals.loglinear import Features, cell_variances, features, maximum_entropy
from sottovoce.marginals.method import POSTERIOR, Fit, Floats, Method
from sottovoce.marginals.signs import (
    Moments,
    SignSpace,
    attribute_weights,
    moments,
    shared_out,
    sign_cohorts,
    sign_options,
)
from sottovoce.marginals.thirds import shrink
from sottovoce.marginals.workload import Places, Workload
from sottovoce.oracles.options import whole
from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregate import Aggregate

CHARACTERS_BELOW = Decimal("0.62")  # epsilon below which a single character tells more than a corner
TRIPLES_FROM = Decimal("1.2")  # where half of the people tell three attributes at once
ONLY_TRIPLES_ABOVE = Decimal("2")
MOST_WORK = 2e8  # cells x features^2 up to which a table is solved by Newton steps
EDGE = 0.9999


class SignFit(Fit):
    """Tables from the means of signs and of their products: maximum entropy given what is known of them."""

    errors: ClassVar[str] = POSTERIOR

    def __init__(self, work: Workload, heard: Moments, posterior: Posterior) -> None:
        self.work, self.heard, self.posterior = work, heard, posterior
        self.space = heard.space

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return self._answers(sets, self._solve)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        return self._answers(sets, self._spread)

    def is_reconstructed(self, places: Places) -> bool:
        return len(places) > 2

    def _answers(self, sets: Sequence[Places], solve: Any) -> list[Floats]:
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, places in enumerate(sets):
            alike[self.work.shape(places)].append(number)
        out: list[Any] = [None] * len(sets)
        for shape, numbers in alike.items():
            for number, table in zip(numbers, solve(shape, [sets[each] for each in numbers]), strict=True):
                out[number] = table
        return out

    @property
    def order(self) -> int:
        return 2 if self.third is None else 3

    def _newton(self, shape: tuple[int, ...]) -> Features | None:
        order = min(self.order, len(shape))
        cells = int(np.prod(shape))
        count = _feature_count(shape, order)
        return sign_features(shape, order) if cells * count**2 <= MOST_WORK else None

    def _solve(self, shape: tuple[int, ...], sets: list[Places]) -> Sequence[Floats]:
        known = self._newton(shape)
        if known is None:
            return [self._fitted(places) for places in sets]
        targets, variances = self._targets(known, sets)
        tables: Floats = maximum_entropy(known.values, targets, variances)
        return tables

    def _spread(self, shape: tuple[int, ...], sets: list[Places]) -> Sequence[Floats]:
        known = self._newton(shape)
        tables = np.array(self._solve(shape, sets))
        if known is None:
            return [self._class_variance(places) for places in sets]
        _, variances = self._targets(known, sets)
        return cell_variances(known.values, tables, variances) 

    def _targets(self, known: Features, sets: list[Places]) -> tuple[Floats, Floats]:
        places = np.array(sets)
        targets = np.empty((len(sets), len(known.owners)))
        variances = np.empty_like(targets)
        picked = [independent_rows(size) for size in known.shape]
        for column, owner in enumerate(known.owners):
            signs = [self.space.starts[places[:, at]] + picked[at][function] for at, function in owner]
            if len(owner) == 1:
                targets[:, column] = self.posterior.single[signs[0]]
                variances[:, column] = self.posterior.single_variance[signs[0]]
            elif len(owner) == 2:
                targets[:, column] = self.posterior.pair[signs[0], signs[1]]
                variances[:, column] = self.posterior.pair_variance[signs[0], signs[1]]
            else:
                assert self.third is not None
                targets[:, column] = self.third[0][signs[0], signs[1], signs[2]]
                variances[:, column] = self.third[1][signs[0], signs[1], signs[2]]
        return np.clip(targets, -EDGE, EDGE), variances

    # -- large tables

    def pair_table(self, one: int, two: int) -> Floats:
        """The table of two attributes that the pairs' means say, made a table."""
        rows = [np.vstack([np.ones(size), self.space.rows[at]]) for at, size in ((one, self.work.sizes[one]), (two, self.work.sizes[two]))]
        mean = np.ones((len(rows[0]), len(rows[1])))
        mean[1:, 0] = self.posterior.single[self.space.of(one)]
        mean[0, 1:] = self.posterior.single[self.space.of(two)]
        mean[1:, 1:] = self.posterior.pair[self.space.of(one), self.space.of(two)]
        table = np.maximum(rows[0].T @ mean @ rows[1] / mean.size, 1e-9)
        return table / table.sum()

    def class_table(self, places: Places) -> Floats:
        """What the latent classes themselves say, averaged over the draws."""
        starts = np.cumsum([0, *self.work.sizes])
        weights = self.posterior.weights.reshape(-1, 1)
        table = weights
        for at in places[:-1]:
            chances = self.posterior.chances[:, :, starts[at] : starts[at + 1]].reshape(len(weights), -1)
            table = (table[:, :, None] * chances[:, None, :]).reshape(len(weights), -1)
        last = places[-1]
        chances = self.posterior.chances[:, :, starts[last] : starts[last + 1]].reshape(len(weights), -1)
        return (table.T @ chances).ravel()

    def _fitted(self, places: Places) -> Floats:
        base = 0.999 * self.class_table(places) + 0.001 / self.work.cells(places)
        constraints = [
            ((a, b), self.pair_table(places[a], places[b])) for a, b in combinations(range(len(places)), 2)
        ]
        shape = self.work.shape(places)
        return np.asarray(proportional_fit(shape, constraints, start=base.reshape(shape))).ravel()

    def _class_variance(self, places: Places) -> Floats:
        return np.full(self.work.cells(places), 1e-4)

    # -- third order

    @cached_property
    def third(self) -> tuple[Floats, Floats] | None:
        """Means and variances of products of three signs, where reports told any; yes-or-no attributes only so far."""
        if self.heard.third is None or max(self.work.sizes) > 2 or len(self.work.sizes) < 3:
            return None
        triples = np.array(list(combinations(range(len(self.work.sizes)), 3)))
        known = sign_features((2, 2, 2), 2)
        targets, variances = self._targets(known, [tuple(row) for row in triples.tolist()])
        tables = maximum_entropy(known.values, targets, variances)
        predicted = tables @ sign_features((2, 2, 2), 3).values[:, -1]
        sums, information = (part[tuple(triples.T)] for part in self.heard.third)
        information = np.maximum(information, 1e-6)
        spread = np.sqrt(np.maximum(1 - self.posterior.single**2, 0.02))
        scale = spread[triples].prod(1)
        found = shrink((sums / information - predicted) / scale, 1 / information / scale**2, np.arange(len(triples)))
        mean, variance = (np.zeros((len(self.work.sizes),) * 3) for _ in range(2))
        mean[tuple(triples.T)] = predicted + found.mean * scale
        variance[tuple(triples.T)] = found.variance * scale**2 + 1e-4
        return mean, variance


@lru_cache(maxsize=256)
def independent_rows(size: int) -> tuple[int, ...]:
    """The first signs that, with the constant, span all functions of ``size`` values."""
    rows = SignSpace((size,)).rows[0]
    chosen: list[int] = []
    basis = np.ones((1, size))
    for number, row in enumerate(rows):
        larger = np.vstack([basis, row])
        if np.linalg.matrix_rank(larger) > len(basis):
            basis = larger
            chosen.append(number)
        if len(chosen) == size - 1:
            break
    return tuple(chosen)


@lru_cache(maxsize=64)
def sign_features(shape: tuple[int, ...], order: int) -> Features:
    bases = tuple(SignSpace((size,)).rows[0][list(independent_rows(size))] for size in shape)
    return features(shape, bases, order)


def _feature_count(shape: tuple[int, ...], order: int) -> int:
    sums = [1] + [0] * order
    for size in shape:
        for each in reversed(range(order)):
            sums[each + 1] += (size - 1) * sums[each]
    return sum(sums[1:])


def collection(epsilon: Decimal) -> dict[tuple[str, int], float]:
    """Which signs people report, in which shares: what tells most about singles and pairs at this epsilon."""
    if epsilon < CHARACTERS_BELOW:
        return {("parity", 1): 0.4, ("parity", 2): 0.6}
    if epsilon < TRIPLES_FROM:
        return {("corner", 2): 0.5, ("star", 3): 0.5}
    if epsilon <= ONLY_TRIPLES_ABOVE:
        return {("corner", 2): 0.25, ("star", 3): 0.25, ("corner", 3): 0.5}
    return {("corner", 3): 1.0}


class Latent(Method):
    """Signs of few attributes from everybody; latent classes fitted to them; pairs shrunk toward the classes; maximum
    entropy for larger tables."""

    name: ClassVar[str] = "latent"
    about: ClassVar[str] = "signs of few attributes, latent classes, maximum entropy"
    source: ClassVar[str] = "docs/marginals.md"

    def refuse(self, work: Workload, epsilon: Decimal, people: int) -> str | None:
        if len(work.names) < 2:
            return "there must be two attributes or more"
        space = SignSpace(work.sizes)
        if space.count > 1500:
            return f"its attributes have {space.count} signs, more than 1500"
        return None

    def settle(self, work: Workload, epsilon: Decimal, people: int, **options: Any) -> dict[str, Any]:
        super().settle(work, epsilon, people, **options)
        weights = attribute_weights(work.sizes)
        shares = collection(epsilon)
        if len(work.names) < 3:
            shares = {key: share for key, share in shares.items() if key[1] < 3} or {("corner", 2): 1.0}
        return sign_options(weights, shared_out(work, weights, shares))

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> Cohorts:
        return sign_cohorts(schema, work, epsilon, options)

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Fit:
        heard = moments(work, aggregate)
        return SignFit(work, heard, ClassModel(heard).posterior())

    def predict(self, work: Workload, epsilon: Decimal, people: int, options: Mapping[str, Any]) -> float:
        return 0.01
