"""Tables from what is known of signs: maximum entropy given means of contrasts and their products.

A table of few attributes is solved by Newton steps (``loglinear``). One too large for that starts
from the latent classes' table and is fitted to its pairs by iterative proportional fitting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.questions.marginals.method import POSTERIOR, Fit, Floats
from sottovoce.questions.marginals.models.evidence import Interactions, interactions
from sottovoce.questions.marginals.models.loglinear import (
    Features,
    cell_variances,
    features,
    maximum_entropy,
)
from sottovoce.questions.marginals.models.posterior import Posterior, class_table
from sottovoce.questions.marginals.models.sign_evidence import SignOverlaps, SignPair
from sottovoce.questions.marginals.models.signs import Moments, contrasts
from sottovoce.questions.marginals.models.structure import UNKNOWN_TIE
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.models.ties import unknown_variances
from sottovoce.questions.marginals.workload import Places, Workload

MAX_NEWTON_WORK = 2e8  # cells x features^2 up to which a table is solved by Newton steps
MAX_TRIPLE_WORK = MAX_NEWTON_WORK / 10  # the same for the tables of all triples, which are many
LARGEST_MEAN = 0.9999  # of a feature's largest value: beyond, no table has such a mean
SMALLEST_CELL = 1e-12  # of a table, whose error is relative to it
SMALLEST_PAIR_CELL = 1e-9  # of a table of two, before it is scaled to sum to 1
SMALLEST_LARGE_TABLE_PAIR = 1e-7  # of a pair, whose error is relative to it
UNIFORM_SHARE = 0.001  # mixed into the classes' table, so that fitting can move every cell
# the parts of an interval that docs/intervals.md found on public data
POSTERIOR_FACTOR = 1.2  # posterior variances of single attributes and pairs are too small by this
CHAINED_TIES = 0.2  # squared relative error for two attributes tied to a third, by their ties
DISAGREEMENT = 0.3  # share of the squared distance to the latent classes' table
# of what is cut off at zero, the share that counts, by the number of attributes
AT_THE_EDGE: Mapping[int, float] = {1: 0.5}
STRONGLY_SHRUNK = 0.5  # of a tie, the share missed from which it counts as unknown
BELIEVED_EVIDENCE = 0.5  # for three-way structure, above which it enters a table


class SignFit(Fit):
    """Tables from the means of contrasts and of their products: maximum entropy given those."""

    errors: ClassVar[str] = POSTERIOR

    def __init__(
        self,
        work: Workload,
        heard: Moments,
        posterior: Posterior | Callable[[], Posterior],
        people: int,
        at_the_edge: Mapping[int, float] = AT_THE_EDGE,
        overlaps: SignOverlaps | None = None,
    ) -> None:
        """Keep what tables are made of.

        Args:
            work: the attributes and their sizes.
            heard: the means of signs that reports tell.
            posterior: means and variances of contrasts and of their products in pairs, or what
                makes them once a table is asked for; a test of independence does not need them.
            people: how many reports there are.
            at_the_edge: of a linear estimate's standard error, the share that a cell pushed to zero
                still has, 0 to 1, in tables of one and of two attributes.
            overlaps: which reports tell what together, for tests of independence.
        """
        self.work = work
        self.moments = heard
        self._posterior = posterior
        self.people = people
        self.at_the_edge = at_the_edge
        self.overlaps = overlaps
        self.space = heard.space
        self._squared_ties: dict[Places, float] = {}

    @cached_property
    def posterior(self) -> Posterior:
        """Means and variances of contrasts and of their products in pairs."""
        return self._posterior() if callable(self._posterior) else self._posterior

    def __getstate__(self) -> dict[str, Any]:
        """What is kept of it in a file holds the posterior, not what makes it."""
        return self.__dict__ | {"_posterior": self.posterior, "posterior": self.posterior}

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        """The tables of some sets of attributes, flat: (cells,) each."""
        with one_thread():
            return by_shape(self.work, sets, self._solve)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        """The posterior's variances, and what tables may hold beyond the model: (cells,) each.

        The squared error of a cell: that of the posterior, to first order; part of the distance to
        what the latent classes say; what three attributes may hold beyond their pairs, which is
        more where pairs are tied. Where the classes expect more than the cell holds, the difference
        is added. Then come whole people, what few of them leave unknown, and what was cut off at
        zero.
        """
        with one_thread():
            tables = self.tables(sets)
            posterior_variances = by_shape(self.work, sets, self._spread)
        out = []
        for places, cells, variance in zip(sets, tables, posterior_variances, strict=True):
            # e^2 = 1.2 v  for one or two attributes, for more
            # e^2 = v + 0.3 (classes - p)^2 + 0.2 p^2 sum over a, b < c of r_ab^2 r_ac^2
            # Var = (e + m - p)^2 + m / n + unknown + cut off,  m = max(p, classes)
            table = np.maximum(cells, SMALLEST_CELL)
            classes = self.class_table(places)
            if self.is_reconstructed(places):
                missed = DISAGREEMENT * (classes - table) ** 2
                chained = CHAINED_TIES * self._chained_ties(places) * table**2
                squared = variance + missed + chained
            else:
                squared = POSTERIOR_FACTOR * variance
            largest = np.maximum(table, classes)
            error = np.sqrt(squared) + largest - table
            unknown = self._unknown(places)
            unknown_part = unknown_variances(self.work, places, table, unknown, unknown)
            unknown_part = unknown_part * (largest / table) ** 2
            cut_off = self._cut_off(places, table)
            out.append(error**2 + largest / self.people + unknown_part + cut_off)
        return out

    def _cut_off(self, places: Places, table: Floats) -> Floats:
        """What cells of one or two attributes may hold that noise pushed to zero: (cells,).

        Such a cell hardly moves to first order. Where a linear estimate's standard error is larger
        than the cell, part of what lies beyond it counts.
        """
        share = self.at_the_edge.get(len(places), 0.0)
        if not share:
            return np.zeros_like(table)
        if len(places) == 1:
            basis = self.space.bases[places[0]]  # (values, contrasts)
            variances = basis**2 @ self.posterior.single_variance[self.space.contrasts_of(*places)]
        else:
            variances = self._pair_variance(*places).ravel()
        beyond = np.maximum(np.sqrt(variances) - table, 0)
        return np.asarray((share * beyond) ** 2)

    def _chained_ties(self, places: Places) -> float:
        """Over all attributes of a table and any two others, the products of their squared ties."""
        # sum over a of sum over b < c of r_ab^2 r_ac^2
        #   = sum over a of ((sum over b of r_ab^2)^2 - sum over b of r_ab^4) / 2
        squares = np.zeros((len(places), len(places)))
        for one, two in combinations(range(len(places)), 2):
            squares[one, two] = squares[two, one] = self._squared_tie(places[one], places[two])
        chains = squares.sum(1) ** 2 - (squares**2).sum(1)
        return float(chains.sum() / 2)

    def _squared_tie(self, one: int, two: int) -> float:
        """Cramer's V of the fitted table of two attributes, squared."""
        if (one, two) not in self._squared_ties:
            table = self.pair_table(one, two)
            expected = np.outer(table.sum(1), table.sum(0))
            square = ((table - expected) ** 2 / expected).sum() / (min(table.shape) - 1)
            self._squared_ties[one, two] = min(float(square), 1.0)
        return self._squared_ties[one, two]

    def evidence(self, pairs: Sequence[Places]) -> list[SignPair] | None:
        """The unbiased means of signs and their products, before the classes or any prior."""
        if self.overlaps is None:
            return None
        return [SignPair.of(self.moments, self.overlaps, pair) for pair in pairs]

    def errs_by_factor(self, places: Places) -> bool:
        """Whether a table is put together from pairs of which nothing is left unknown."""
        return self.is_reconstructed(places) and not self._unknown(places)

    def is_reconstructed(self, places: Places) -> bool:
        """Whether a table is put together from smaller ones."""
        return len(places) > 2

    def is_heard(self, part: Places) -> bool:
        """Whether reports tell anything of an attribute, or of two together."""
        return bool((self._information(part) > 0).any())

    def heard_share(self, part: Places) -> float:
        """Of the signs of an attribute, or products of two, the share that reports tell."""
        return float((self._information(part) > 0).mean())

    def _information(self, part: Places) -> Floats:
        """How much reports tell (1 / variance) of each sign of an attribute, or product of two.

        Returns:
            Floats of shape (signs,) for one attribute, (signs, signs) for two.
        """
        _, information = (self.moments.first, self.moments.second)[len(part) - 1]
        signs = [self._signs_of(attribute) for attribute in part]
        return np.asarray(information[np.ix_(*signs)])

    def _unknown(self, places: Places) -> dict[Places, float]:
        """The attributes and pairs of a table, each with the share of its variance left unknown.

        Of attributes, their signs that nobody told. Of pairs, what shrinkage may hide: a product
        of signs told with variance v, shrunk as if any tie were as likely as any other, of mean
        square u, misses v / (v + u) of its mean; all of it if nobody told it. Counted where that is
        more than half: where v is larger than u. Parts with nothing unknown are left out.
        """
        shares: dict[Places, float] = {}
        for single in combinations(places, 1):
            shares[single] = 1 - self.heard_share(single)
        for pair in combinations(places, 2):
            # v / (v + u) = 1 / (1 + u / v)
            missed = 1 / (1 + UNKNOWN_TIE * self._information(pair))  # (signs, signs)
            counted = np.where(missed > STRONGLY_SHRUNK, missed**2, 0)
            shares[pair] = float(counted.mean())
        return {part: share for part, share in shares.items() if share > 0}

    def _signs_of(self, attribute: int) -> NDArray[np.int64]:
        """The numbers of an attribute's signs."""
        span = self.space.of(attribute)
        return np.arange(span.start, span.stop)

    # -- tables by Newton steps

    def _features(self, shape: tuple[int, ...], places: Places) -> Features | None:
        """The features that a table is made of; None if they are too many for Newton steps."""
        triples: list[tuple[int, ...]] = []
        if self.thirds is not None:
            for positions in combinations(range(len(shape)), 3):
                attributes = tuple(places[position] for position in positions)
                if self.thirds.evidence[attributes] > BELIEVED_EVIDENCE:
                    triples.append(positions)
        if _newton_work(shape, triples) > MAX_NEWTON_WORK:
            return None
        return contrast_features(shape, tuple(triples))

    def _solve(self, shape: tuple[int, ...], sets: list[Places]) -> list[Floats]:
        """Tables of one shape."""

        def solve(known: Features, targets: Floats, variances: Floats) -> Floats:
            return maximum_entropy(known.values, targets, variances)

        return self._by_features(shape, sets, self._fitted, solve)

    def _spread(self, shape: tuple[int, ...], sets: list[Places]) -> list[Floats]:
        """Posterior variances of the cells of tables of one shape."""

        def spread(known: Features, targets: Floats, variances: Floats) -> Floats:
            tables = maximum_entropy(known.values, targets, variances)  # (tables, cells)
            return cell_variances(known.values, tables, variances)

        return self._by_features(shape, sets, self._pair_spread, spread)

    def _by_features(
        self,
        shape: tuple[int, ...],
        sets: list[Places],
        alone: Callable[[Places], Floats],
        together: Callable[[Features, Floats, Floats], Floats],
    ) -> list[Floats]:
        """Tables with the same features together, those with too many features alone.

        Args:
            shape: of every table.
            sets: the attributes of each table.
            alone: the cells of one table, (cells,).
            together: the cells of tables with the same features, from these, their target means
                and their variances, (tables, features) each: (tables, cells).
        """
        known = [self._features(shape, places) for places in sets]
        out: list[Any] = [None] * len(sets)
        for shared in set(known):
            # features are cached, so the same ones are one object
            numbers = [number for number, own in enumerate(known) if own is shared]
            alike = [sets[number] for number in numbers]
            solved: Any
            if shared is None:
                solved = [alone(places) for places in alike]
            else:
                targets, variances = self._targets(shared, alike)
                solved = together(shared, targets, variances)
            for number, cells in zip(numbers, solved, strict=True):
                out[number] = cells
        return out

    def _targets(self, known: Features, sets: list[Places]) -> tuple[Floats, Floats]:
        """The means that each table's features should have, and their variances.

        Returns:
            Two arrays of shape (tables, features).
        """
        first_contrasts = self.space.contrast_starts[np.array(sets)]  # (tables, attributes)
        targets = np.empty((len(sets), len(known.owners)))
        variances = np.empty_like(targets)
        for column, owner in enumerate(known.owners):
            # the numbers of the contrasts that this feature multiplies: (tables,) for each
            index = tuple(first_contrasts[:, position] + contrast for position, contrast in owner)
            mean, variance = self._moments_of(len(owner))
            targets[:, column] = mean[index]
            variances[:, column] = variance[index]
        # a mean at the end of a feature's range would need infinite eta
        reach = LARGEST_MEAN * np.abs(known.values).max(0)  # (features,)
        return np.clip(targets, -reach, reach), variances

    def _moments_of(self, order: int) -> tuple[Floats, Floats]:
        """Means and variances of products of ``order`` contrasts, an axis for each."""
        if order == 1:
            return self.posterior.single, self.posterior.single_variance
        if order == 2:
            return self.posterior.pair, self.posterior.pair_variance
        assert self.thirds is not None
        return self.thirds.mean, self.thirds.variance

    # -- large tables

    def pair_table(self, one: int, two: int) -> Floats:
        """The table of two attributes that the means of contrasts say, made a table.

        Returns:
            Floats of shape (values of one, values of two), positive, that sum to 1.
        """
        # f(x, y) = f(x)/L + g(y)/K - 1/(K L) + sum over contrasts c, d of E[c d] c(x) d(y)
        first = self.space.bases[one]  # (values, contrasts)
        second = self.space.bases[two]
        first_span = self.space.contrasts_of(one)
        second_span = self.space.contrasts_of(two)
        single_one = 1 / len(first) + first @ self.posterior.single[first_span]
        single_two = 1 / len(second) + second @ self.posterior.single[second_span]
        table = single_one[:, None] / len(second) + single_two[None, :] / len(first)
        interaction = first @ self.posterior.pair[first_span, second_span] @ second.T
        table = table - 1 / table.size + interaction
        table = np.maximum(table, SMALLEST_PAIR_CELL)
        return np.asarray(table / table.sum())

    def class_table(self, places: Places) -> Floats:
        """What the latent classes themselves say: (cells,)."""
        return class_table(self.work, self.posterior, places)

    def _fitted(self, places: Places) -> Floats:
        """The table nearest to the latent classes' that has the pairs' tables: (cells,)."""
        shape = self.work.shape(places)
        classes = self.class_table(places)
        start = (1 - UNIFORM_SHARE) * classes + UNIFORM_SHARE / self.work.cells(places)
        constraints = []
        for one, two in combinations(range(len(places)), 2):
            constraints.append(((one, two), self.pair_table(places[one], places[two])))
        fitted = proportional_fit(shape, constraints, start=start.reshape(shape))
        return np.asarray(fitted).ravel()

    def _pair_spread(self, places: Places) -> Floats:
        """The variances of the cells of a table too large for Newton steps: (cells,)."""
        # relative errors of the pairs' cells add up:  Var[p] / p^2 = sum over pairs Var[f] / f^2
        shape = self.work.shape(places)
        relative = np.zeros(shape)
        for one, two in combinations(range(len(places)), 2):
            pair = (places[one], places[two])
            table = np.maximum(self.pair_table(*pair), SMALLEST_LARGE_TABLE_PAIR)
            along = [size if axis in (one, two) else 1 for axis, size in enumerate(shape)]
            relative += (self._pair_variance(*pair) / table**2).reshape(along)
        (cells,) = self.tables([places])
        return np.asarray(relative.ravel() * cells**2)

    def _pair_variance(self, one: int, two: int) -> Floats:
        """The variances of the cells that :meth:`pair_table` sums up, before it is made a table."""
        first = self.space.bases[one] ** 2  # (values, contrasts)
        second = self.space.bases[two] ** 2
        first_span = self.space.contrasts_of(one)
        second_span = self.space.contrasts_of(two)
        single_one = first @ self.posterior.single_variance[first_span]
        single_two = second @ self.posterior.single_variance[second_span]
        singles = single_one[:, None] / len(second) ** 2 + single_two[None, :] / len(first) ** 2
        pairs = first @ self.posterior.pair_variance[first_span, second_span] @ second.T
        return np.asarray(singles + pairs)

    # -- third order

    @cached_property
    def thirds(self) -> Interactions | None:
        """Means of products of three contrasts, where reports told any."""
        if self.moments.third is None or len(self.work.sizes) < 3:
            return None
        return interactions(self.work, self.moments, 3, self.posterior.single, self._pairwise)

    def _pairwise(self, shape: tuple[int, ...], sets: list[Places]) -> Floats:
        """Tables of three attributes from their pairs alone: (tables, cells)."""
        if _newton_work(shape, ()) > MAX_TRIPLE_WORK:
            return np.array([self._fitted(places) for places in sets])
        known = contrast_features(shape, ())
        targets, variances = self._targets(known, sets)
        return maximum_entropy(known.values, targets, variances)


def by_shape(
    work: Workload,
    sets: Sequence[Places],
    solve: Callable[[Any, Any], Any],
) -> list[Floats]:
    """``solve(shape, sets)`` for the sets of each shape, put back in order."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, places in enumerate(sets):
        alike[work.shape(places)].append(number)
    out: list[Any] = [None] * len(sets)
    for shape, numbers in alike.items():
        tables = solve(shape, [sets[number] for number in numbers])
        for number, table in zip(numbers, tables, strict=True):
            out[number] = table
    return out


@lru_cache(maxsize=4096)
def contrast_features(
    shape: tuple[int, ...],
    triples: tuple[tuple[int, ...], ...],
) -> Features:
    """Contrasts of a table's attributes, products of two, and those of three for some triples.

    Args:
        shape: of the table.
        triples: positions in the shape, three each.
    """
    functions = tuple(contrasts(size).T for size in shape)  # (contrasts, values) each
    sets = (*_singles_and_pairs(len(shape)), *triples)
    return features(shape, functions, sets)


def _singles_and_pairs(count: int) -> list[tuple[int, ...]]:
    """Positions of a table of ``count`` attributes, by ones and twos."""
    return [*combinations(range(count), 1), *combinations(range(count), 2)]


def _newton_work(shape: tuple[int, ...], triples: Sequence[tuple[int, ...]]) -> int:
    """What a Newton step costs: cells x features^2."""
    count = 0
    for positions in (*_singles_and_pairs(len(shape)), *triples):
        count += prod(shape[position] - 1 for position in positions)
    return prod(shape) * count**2
