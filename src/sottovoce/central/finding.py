"""Noise and thresholds of one k: what is found, and how often it is counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sottovoce.accounting import GaussianStep, Ledger, rounded_variance
from sottovoce.accounting.steps import ThresholdStep
from sottovoce.accounting.threshold import hiding_threshold
from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.counting import (
    above_threshold,
    equal_weights,
    sizes_held,
    summed,
    unit_weights,
)
from sottovoce.central.limited_counts import LimitedShares, limited_counts
from sottovoce.central.limits import (
    exponential_limit,
    limit_grid,
    noisy_sizes,
    percentile_limit,
)
from sottovoce.central.method import CentralTable, Floats, Integers
from sottovoce.central.tuple_settings import (
    FAILURES,
    FIND_LIMIT,
    TUPLE_STEPS,
    TuplePlan,
    TupleSettings,
    is_unbounded,
    least_limit,
    most_tuples,
)
from sottovoce.central.union import UnionSettings, find_values
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.extras import imported
from sottovoce.ground.noise import discrete_gaussian
from sottovoce.ground.tails import gaussian_tail

_TAIL_DIGITS = 20
UNION_LIMIT = 100  # of a person's values, where these are found by descent


@dataclass(frozen=True, eq=False)
class Found:
    """The found tuples of one k."""

    keys: Integers  # of candidates, ascending
    counts: Floats  # noisy
    variance: Fraction  # of their noise
    limit: int = 1  # of tuples that a person was counted for


@dataclass(frozen=True, eq=False)
class Curator:
    """What every step needs."""

    table: CentralTable
    settings: TupleSettings
    plan: TuplePlan
    ledger: Ledger
    entropy: Entropy

    def find_first(self, numbers: Integers) -> Found:
        """The values themselves, of an unknown domain."""
        if self.settings.find == "weighted":
            return self._found_by_descent(numbers)
        everything = TupleCandidates.single(numbers + 1)
        limit = self._limit(1, numbers, everything)
        share = self.plan.find[0]
        variance = self.plan.budget.variance(share, limit)
        threshold = self._value_threshold(1, share, limit, variance)
        return self._held_above(1, numbers, everything, limit, variance, threshold)

    def find_more(self, numbers: Integers, candidates: TupleCandidates, shorter: int) -> Found:
        """Tuples of k values, k above 1.

        Args:
            numbers: of the table's values.
            candidates: which tuples may be found.
            shorter: how many tuples of k - 1 values were found.
        """
        k = candidates.k
        if self.settings.find == "weighted":
            return self._found_by_weights(numbers, candidates, shorter)
        limit = self._limit(k, numbers, candidates)
        share = self.plan.find[k - 1]
        variance = self.plan.budget.variance(share, limit)
        if self.settings.no_spurious:
            threshold = self._value_threshold(k, share, limit, variance)
            return self._held_above(k, numbers, candidates, limit, variance, threshold)
        neighbours = self.plan.budget.neighbours
        step = GaussianStep.of_counts(
            f"{k}-tuples", "which exist, and their counts", limit, variance, neighbours
        )
        self.ledger.spend(step)
        keys, sums = summed(
            self.table, numbers, candidates, limit, unit_weights(limit), self.entropy
        )
        threshold = self._tuple_threshold(candidates, shorter, variance)
        found = above_threshold(keys, sums, candidates, variance, threshold, self.entropy)
        return Found(found.keys, found.sums.astype(np.float64), variance, limit)

    def _limit(self, k: int, numbers: Integers, candidates: TupleCandidates) -> int:
        """How many k-tuples a person may contribute."""
        given = self.settings.limits[k - 1]
        if given is not None:
            return given
        sizes = sizes_held(self.table, numbers, candidates)
        grid = limit_grid(least_limit(self.table, k), most_tuples(self.table, k))
        name = f"{k}-tuples"
        epsilon = self.plan.percentile_epsilon
        if epsilon is not None:
            return exponential_limit(sizes, grid, name, epsilon, self.ledger, self.entropy)
        variance = self.plan.budget.variance(self.plan.limit[k - 1], 1)
        neighbours = self.plan.budget.neighbours
        histogram = noisy_sizes(sizes, grid, name, variance, neighbours, self.ledger, self.entropy)
        # few bins of one row's tuples; beyond them noise alone would reach for the largest limit
        unclear = math.sqrt(variance) if is_unbounded(self.table) else 0.0
        return percentile_limit(histogram, grid, unclear)

    def _value_threshold(self, k: int, share: Fraction, limit: int, variance: Fraction) -> int:
        """A threshold that hides tuples which one person alone holds."""
        budget = self.plan.budget
        if self.settings.no_spurious:
            up_to = len(self.settings.limits)
            failure = float(FAILURES / up_to) * budget.delta
            return int(hiding_threshold(math.log1p(-failure), variance, limit, "counts"))
        if self.settings.accounting == "zcdp" or self.plan.percentile_epsilon is not None:
            return int(hiding_threshold(math.log1p(-budget.delta / 2), variance, limit, "counts"))
        return math.ceil(budget.threshold(share, limit, "counts"))

    def _held_above(
        self,
        k: int,
        numbers: Integers,
        candidates: TupleCandidates,
        limit: int,
        variance: Fraction,
        threshold: int,
    ) -> Found:
        """Noise on what people hold, and nothing else."""
        step = ThresholdStep(
            f"{k}-tuples",
            "which exist, and their counts",
            limit,
            "counts",
            variance,
            Fraction(threshold),
        )
        self.ledger.spend(step)
        keys, sums = summed(
            self.table, numbers, candidates, limit, unit_weights(limit), self.entropy
        )
        noisy = sums + discrete_gaussian(variance, len(sums), self.entropy)
        is_above = noisy > threshold
        return Found(keys[is_above], noisy[is_above].astype(np.float64), variance, limit)

    def _tuple_threshold(
        self, candidates: TupleCandidates, shorter: int, variance: Fraction
    ) -> int:
        """rho_k, above which noise alone rises with chance eta min(1, |S_(k-1)|/|V_k|) at most.

        As in gopi2021marginals, 1.1, but with the tail of the noise on its lattice. It does not
        touch privacy.

        Args:
            candidates: V_k.
            shorter: how many tuples of k - 1 values were found.
            variance: of the noise, in squared steps of the lattice.
        """
        chance = self.settings.eta * min(Fraction(1), Fraction(shorter, candidates.total))
        quantile = -float(imported("scipy.special").ndtri(float(chance)))
        threshold = max(0, math.floor(quantile * math.sqrt(variance)) - 1)
        while gaussian_tail(variance, threshold + 1, _TAIL_DIGITS) > chance:
            threshold += 1
        return threshold

    def _found_by_descent(self, numbers: Integers) -> Found:
        settings = UnionSettings(limit=self.settings.limits[0] or UNION_LIMIT)
        share = self.plan.find[0]
        values = find_values(
            self.table, settings, self.plan.budget, share, self.ledger, self.entropy
        )
        return self._counted(1, _only(numbers, values), None, values)

    def _found_by_weights(
        self, numbers: Integers, candidates: TupleCandidates, shorter: int
    ) -> Found:
        k = candidates.k
        limit = self.settings.limits[k - 1] or FIND_LIMIT
        variance = self.plan.budget.variance(self.plan.find[k - 1], 1)
        # |v|_1 / variance in steps of the lattice, |v|_1 <= sqrt(limit) |v|_2 for each person
        people = self.plan.budget.people
        loss = people * Fraction(math.isqrt(limit) + 1, TUPLE_STEPS) / variance
        step = GaussianStep(f"{k}-tuples: weights", "which exist", Fraction(people), variance, loss)
        self.ledger.spend(step)
        weights = equal_weights(limit, TUPLE_STEPS)
        keys, sums = summed(self.table, numbers, candidates, limit, weights, self.entropy)
        in_steps = rounded_variance(variance * TUPLE_STEPS**2)
        threshold = self._tuple_threshold(candidates, shorter, in_steps)
        found = above_threshold(keys, sums, candidates, in_steps, threshold, self.entropy)
        return self._counted(k, numbers, candidates.restricted(found.keys), found.keys)

    def _counted(
        self, k: int, numbers: Integers, candidates: TupleCandidates | None, keys: Integers
    ) -> Found:
        """Counts of what was found, and of nothing else.

        Args:
            k: how many values a tuple has.
            numbers: of the table's values; for k = 1 the found ones are numbered from 0.
            candidates: the found tuples; None for values.
            keys: what they are called in the end.
        """
        if not len(keys):
            return Found(keys, np.zeros(0), Fraction(1))
        least = least_limit(self.table, k)
        grid = limit_grid(least, max(least, min(len(keys), most_tuples(self.table, k))))
        told = limited_counts(
            self.table,
            numbers,
            candidates or TupleCandidates.single(np.arange(len(keys)) + 1),
            np.arange(len(keys)) if candidates is None else keys,
            grid,
            f"{k}-tuples",
            self.plan.budget,
            LimitedShares(self.plan.limit[k - 1], self.plan.count[k - 1]),
            self.ledger,
            self.entropy,
        )
        return Found(keys, told.counts, told.variance, told.limit)


def _only(numbers: Integers, values: Integers) -> Integers:
    """Numbers from 0 for some of the values, and none for the others."""
    chosen = np.full(len(numbers), -1, np.int64)
    chosen[values] = np.arange(len(values))
    return chosen
