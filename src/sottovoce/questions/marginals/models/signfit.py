"""Tables from what is known of signs: maximum entropy given the means of contrasts and of their products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.questions.marginals.method import POSTERIOR, Fit, Floats
from sottovoce.questions.marginals.methods.views import unknown_variances
from sottovoce.questions.marginals.models.classes import Posterior, class_table
from sottovoce.questions.marginals.models.evidence import Interactions, interactions
from sottovoce.questions.marginals.models.loglinear import (
    Features,
    cell_variances,
    features,
    linear_variances,
    maximum_entropy,
)
from sottovoce.questions.marginals.models.signs import Moments, contrasts
from sottovoce.questions.marginals.models.structure import UNKNOWN_TIE
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.workload import Places, Workload

MOST_WORK = 2e8  # cells x features^2 up to which a table is solved by Newton steps
EDGE = 0.9999
SMALLEST_CELL = 1e-9
# the parts of an interval that docs/marginals.md found on public data
TOO_SURE = 1.3
THREE_WAY = 0.002
DISAGREEMENT = 0.125
STRONGLY_SHRUNK = 0.5  # of a tie, the share missed from which it counts as unknown
BELIEVED = 0.5  # evidence for three-way structure above which it enters a table


class SignFit(Fit):
    """Tables from the means of contrasts and of their products: maximum entropy given what is known of them."""

    errors: ClassVar[str] = POSTERIOR

    def __init__(
        self, work: Workload, heard: Moments, posterior: Posterior, people: int, at_the_edge: float = 0.0
    ) -> None:
        """``at_the_edge``: of a linear estimate's standard error, the share that a cell pushed to zero still has."""
        self.work, self.heard, self.posterior, self.people = work, heard, posterior, people
        self.at_the_edge = at_the_edge
        self.space = heard.space

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        with one_thread():
            return by_shape(self.work, sets, self._solve)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        """The posterior's variances, and what tables of more than two attributes may hold beyond the model.

        Of a cell p: 1.3 times its posterior variance, an interaction of standard deviation 4.5% for every three
        attributes, half of the distance to what the latent classes say, what few people leave unknown, and half a
        person.
        """
        with one_thread():
            tables, spreads = self.tables(sets), by_shape(self.work, sets, self._spread)
        out = []
        for places, table, spread in zip(sets, tables, spreads, strict=True):
            beyond = THREE_WAY * comb(len(places), 3) * table**2
            if len(places) > 2:
                beyond = beyond + DISAGREEMENT * (self.class_table(places) - table) ** 2
            unknown = self._unknown(places)
            beyond = beyond + unknown_variances(self.work, places, table, unknown, unknown)
            out.append(TOO_SURE * spread + beyond + (0.5 / self.people) ** 2)
        return out

    def is_reconstructed(self, places: Places) -> bool:
        return len(places) > 2

    def is_heard(self, part: Places) -> bool:
        return bool((self._information(part) > 0).any())

    def heard_share(self, part: Places) -> float:
        return float((self._information(part) > 0).mean())

    def _information(self, part: Places) -> Floats:
        """Of each sign of an attribute, or product of signs of two, how much reports tell (1 / variance)."""
        information = (self.heard.first, self.heard.second)[len(part) - 1][1]
        return np.asarray(information[np.ix_(*(self._signs_of(place) for place in part))])

    def _unknown(self, places: Places) -> dict[Places, float]:
        """The attributes and pairs of a table, and of each the share of its variance that reports leave unknown.

        Of attributes, their signs that nobody told. Of pairs, what shrinkage may hide: a product of signs told with
        variance v, shrunk as if any tie were as likely as any other, of mean square u, misses v / (v + u) of its mean;
        all of it if nobody told it. Counted where that is more than half: where v is larger than u.
        """
        shares: dict[Places, float] = {(place,): 1 - self.heard_share((place,)) for place in places}
        for pair in combinations(places, 2):
            missed = 1 / (1 + UNKNOWN_TIE * self._information(pair))
            shares[pair] = float(np.where(missed > STRONGLY_SHRUNK, missed**2, 0).mean())
        return {part: share for part, share in shares.items() if share > 0}

    def _signs_of(self, place: int) -> NDArray[np.int64]:
        own = self.space.of(place)
        return np.arange(own.start, own.stop)

    def _known(self, shape: tuple[int, ...], places: Places) -> Features | None:
        """The features that a table is made of, if they are few enough for Newton steps."""
        triples: tuple[tuple[int, ...], ...] = ()
        if self.thirds is not None:
            triples = tuple(
                positions
                for positions in combinations(range(len(shape)), 3)
                if self.thirds.evidence[tuple(places[at] for at in positions)] > BELIEVED
            )
        count = _feature_count(shape, triples)
        return contrast_features(shape, triples) if prod(shape) * count**2 <= MOST_WORK else None

    def _solve(self, shape: tuple[int, ...], sets: list[Places]) -> list[Floats]:
        return self._each(shape, sets, self._fitted, lambda known, *about: maximum_entropy(known.values, *about))

    def _spread(self, shape: tuple[int, ...], sets: list[Places]) -> list[Floats]:
        def variances(known: Features, targets: Floats, slack: Floats) -> Floats:
            tables = maximum_entropy(known.values, targets, slack)
            found = cell_variances(known.values, tables, slack)
            if self.at_the_edge:
                missing = np.maximum(np.sqrt(linear_variances(known, slack)) - tables, 0)
                found = found + (self.at_the_edge * missing) ** 2
            return found

        return self._each(shape, sets, self._class_variance, variances)

    def _each(
        self,
        shape: tuple[int, ...],
        sets: list[Places],
        alone: Callable[[Places], Floats],
        together: Callable[[Features, Floats, Floats], Floats],
    ) -> list[Floats]:
        """Tables with the same features together, those with too many features alone."""
        known = [self._known(shape, places) for places in sets]
        out: list[Any] = [None] * len(sets)
        for each in set(known):
            numbers = [number for number, own in enumerate(known) if own is each]
            own_sets = [sets[number] for number in numbers]
            found = (
                [alone(places) for places in own_sets]
                if each is None
                else together(each, *self._targets(each, own_sets))
            )
            for number, table in zip(numbers, found, strict=True):
                out[number] = table
        return out

    def _targets(self, known: Features, sets: list[Places]) -> tuple[Floats, Floats]:
        """The means that each table's features should have, and their variances."""
        starts = self.space.contrast_starts[np.array(sets)]
        targets = np.empty((len(sets), len(known.owners)))
        variances = np.empty_like(targets)
        posterior = self.posterior
        for column, owner in enumerate(known.owners):
            at = tuple(starts[:, position] + function for position, function in owner)
            if len(owner) == 1:
                targets[:, column], variances[:, column] = posterior.single[at], posterior.single_variance[at]
            elif len(owner) == 2:
                targets[:, column], variances[:, column] = posterior.pair[at], posterior.pair_variance[at]
            else:
                assert self.thirds is not None
                targets[:, column], variances[:, column] = self.thirds.mean[at], self.thirds.variance[at]
        edge = EDGE * np.abs(known.values).max(0)
        return np.clip(targets, -edge, edge), variances

    # -- large tables

    def pair_table(self, one: int, two: int) -> Floats:
        """The table of two attributes that the means of contrasts say, made a table."""
        first, second = self.space.bases[one], self.space.bases[two]
        spans = self.space.contrasts_of(one), self.space.contrasts_of(two)
        singles = [
            1 / len(basis) + basis @ self.posterior.single[span]
            for basis, span in zip((first, second), spans, strict=True)
        ]
        table = singles[0][:, None] / len(second) + singles[1][None, :] / len(first)
        table = table - 1 / table.size + first @ self.posterior.pair[spans] @ second.T
        table = np.maximum(table, SMALLEST_CELL)
        return np.asarray(table / table.sum())

    def class_table(self, places: Places) -> Floats:
        """What the latent classes themselves say."""
        return class_table(self.work, self.posterior, places)

    def _fitted(self, places: Places) -> Floats:
        base = 0.999 * self.class_table(places) + 0.001 / self.work.cells(places)
        constraints = [((a, b), self.pair_table(places[a], places[b])) for a, b in combinations(range(len(places)), 2)]
        shape = self.work.shape(places)
        return np.asarray(proportional_fit(shape, constraints, start=base.reshape(shape))).ravel()

    def _class_variance(self, places: Places) -> Floats:
        """How the draws' own tables differ: for tables too large for more."""
        starts = np.cumsum([0, *self.work.sizes])
        mean, square = (np.zeros(self.work.cells(places)) for _ in range(2))
        for weights, chances in zip(self.posterior.weights, self.posterior.chances, strict=True):
            table = np.ones((len(weights), 1))
            for at in places:
                table = (table[:, :, None] * chances[:, None, starts[at] : starts[at + 1]]).reshape(len(weights), -1)
            share = weights.sum()
            own = weights @ table / share
            mean += share * own
            square += share * own**2
        return np.asarray(np.maximum(square - mean**2, 0))

    # -- third order

    @cached_property
    def thirds(self) -> Interactions | None:
        """Means of products of three contrasts, where reports told any."""
        if self.heard.third is None or len(self.work.sizes) < 3:
            return None
        return interactions(self.work, self.heard, 3, self.posterior.single, self._pairwise)

    def _pairwise(self, shape: tuple[int, ...], sets: list[Places]) -> Floats:
        """Tables of three attributes from their pairs alone."""
        if prod(shape) * _feature_count(shape, ()) ** 2 > MOST_WORK / 10:
            return np.array([self._fitted(places) for places in sets])
        known = contrast_features(shape, ())
        return maximum_entropy(known.values, *self._targets(known, sets))


def by_shape(work: Workload, sets: Sequence[Places], solve: Callable[[Any, Any], Any]) -> list[Floats]:
    """``solve(shape, sets)`` for the sets of each shape, put back in order."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, places in enumerate(sets):
        alike[work.shape(places)].append(number)
    out: list[Any] = [None] * len(sets)
    for shape, numbers in alike.items():
        for number, table in zip(numbers, solve(shape, [sets[each] for each in numbers]), strict=True):
            out[number] = table
    return out


@lru_cache(maxsize=4096)
def contrast_features(shape: tuple[int, ...], triples: tuple[tuple[int, ...], ...]) -> Features:
    """Contrasts of a table's attributes, products of two, and those of three for some triples of positions."""
    return features(shape, tuple(contrasts(size).T for size in shape), (*_pairs_and_singles(len(shape)), *triples))


def _pairs_and_singles(count: int) -> list[tuple[int, ...]]:
    return [*((place,) for place in range(count)), *combinations(range(count), 2)]


def _feature_count(shape: tuple[int, ...], triples: Sequence[tuple[int, ...]]) -> int:
    free = [size - 1 for size in shape]
    sets = (*_pairs_and_singles(len(shape)), *triples)
    return sum(prod(free[place] for place in places) for places in sets)
