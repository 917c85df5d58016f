"""Which values exist? Set union over an unknown domain, and then how many people hold each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from sottovoce.accounting import Ledger, mu_of, rounded_variance
from sottovoce.accounting.steps import ThresholdStep, Weights
from sottovoce.accounting.threshold import hiding_threshold, least_log_hidden, threshold_for
from sottovoce.central.budget import Budget, CountShare, budget_of, check_ledger
from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.counting import collected, equal_weights, summed
from sottovoce.central.limited_counts import LimitedShares, limited_counts
from sottovoce.central.limits import limit_grid, limit_note
from sottovoce.central.method import (
    CentralTable,
    Integers,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
    TupleCounts,
)
from sottovoce.central.records import ABSENT, each_value, shuffled
from sottovoce.ground.arguments import number_in, whole
from sottovoce.ground.arguments import share as part_of_one
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import discrete_gaussian
from sottovoce.kernels.descent import descend

Form = Literal["descent", "weighted", "parallel"]
UNION_FORMS: tuple[Form, ...] = ("descent", "weighted", "parallel")

PER_UNIT = 1 << 32  # steps of the lattice in a weight of 1
COARSE = 1 << 10  # steps that a threshold is searched on: every one is a step of the lattice too
MAX_UNION_PEOPLE = 1 << 28  # for which the doubles of a descent are near enough
MAX_UNION_VALUES = 1 << 36
LARGEST_SLACK = 1 / 8  # that doubles may cost a person's move
DEFAULT_LIMIT = 100
DEFAULT_ALPHA = 4  # standard deviations above the threshold at which a value takes no more weight
DEFAULT_COUNTS = Fraction(3, 20)  # of mu^2, for counts of what was found
DEFAULT_ROUNDS = 3
LIMIT_PART = Fraction(1, 10)  # of the counts' share, for their limit
LARGEST_COUNT_LIMIT = 1 << 12
_ROUND_RATIO = 3  # mu^2 of a round of the parallel form over that of the one before
_EARLY_FAILURES = Fraction(1, 4)  # of delta, for the thresholds of all rounds but the last


@dataclass(frozen=True)
class UnionSettings:
    """What may be chosen, all of it public."""

    form: Form = "descent"
    limit: int = DEFAULT_LIMIT
    alpha: Fraction = Fraction(DEFAULT_ALPHA)
    counts: Fraction = DEFAULT_COUNTS
    rounds: int = DEFAULT_ROUNDS

    @classmethod
    def of(cls, options: Any) -> UnionSettings:
        """From the options of a release, each checked."""
        form = options.get("form", "descent")
        if form not in UNION_FORMS:
            raise InvalidInput(f"form ({form}) must be one of {', '.join(UNION_FORMS)}")
        counts = part_of_one("counts", options.get("counts", DEFAULT_COUNTS))
        if counts == 1:
            raise InvalidInput("counts (1) must be below 1, or nothing is left to find values")
        alpha = number_in(str(options.get("alpha", DEFAULT_ALPHA)))
        if alpha is None or not 0 <= alpha <= 100:
            raise InvalidInput(f"alpha ({options['alpha']}) must lie between 0 and 100")
        return cls(
            form,
            whole("limit", options.get("limit", DEFAULT_LIMIT), 1, LARGEST_COUNT_LIMIT),
            alpha,
            counts,
            whole("rounds", options.get("rounds", DEFAULT_ROUNDS), 1, 10),
        )


def descent_slack(limit: int, level: float) -> float:
    """By how much doubles and the lattice may lengthen the distance of neighbours, at most.

    In real numbers, a person's move brings the weights of neighbours no farther apart than they
    were: gaps g become g max(0, 1 - 1/|g|), which is g less its projection onto the unit ball. In
    doubles, a gap and a sum are off by a unit of the last place of ``level``, and the
    length of a move by as many roundings as it has terms; both runs may be off, for every person.
    At last weights go to the nearest step of the lattice.

    Args:
        limit: the most values of one person.
        level: the highest weight.
    """
    last_place = level * 2.0**-51
    move = math.sqrt(limit) * last_place + limit * 2.0**-51
    lattice = math.sqrt(MAX_UNION_VALUES) / PER_UNIT
    return 2 * MAX_UNION_PEOPLE * move + lattice


class SetUnion(ReleaseMethod):
    """Weights that people add to their values, noise, and a threshold; then counts of the found.

    Descent: one person after another, in a drawn order, moves the unfinished ones of her values
    towards a level by at most 1 in L2, in proportion to what they lack. Weighted: 1/sqrt(t) on each
    of t values. Parallel: weighted several times, with what was found taken out.

    Options:
        form: descent, weighted or parallel; by default descent.
        limit: how many values of a person count, by default 100.
        alpha: deviations above the threshold at which a value takes no more weight, by default 4.
        counts: the part of the budget that counts what was found, by default 3/20.
        rounds: parallel: how often, by default 3.

    Guarantee: (epsilon, delta) for one person, by ThresholdStep and GaussianStep of the ledger.
    Assumes:   at most 2^28 people and 2^36 values; the noise's entropy is uniform.
    Source:    gopi2020union, algorithms 1 and 4; swanberg2023sips; wilkins2024gaussian.
    Checked:   tests/exact/test_union.py
    """

    name: ClassVar[str] = "set-union"
    about: ClassVar[str] = "which values exist, of an unknown domain, and how many people hold them"
    source: ClassVar[str] = "gopi2020union, with an exact threshold"
    options: ClassVar[tuple[str, ...]] = ("form", "limit", "alpha", "counts", "rounds")

    def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        if terms.up_to != 1:
            return f"up_to ({terms.up_to}) must be 1: set-union finds single values"
        UnionSettings.of(terms.options)  # refuses what it cannot read
        return None

    def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
        return None  # the count's limit is chosen from the data

    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        reason = self.refuse(table, terms)
        if reason:
            raise InvalidInput(reason)
        check_ledger(terms, ledger)
        settings = UnionSettings.of(terms.options)
        budget = union_budget(terms, settings)
        found = find_values(table, settings, budget, 1 - settings.counts, ledger, entropy)
        tuples, limit = _with_counts(table, found, settings, budget, ledger, entropy)
        notes = [f"{len(found):,} values were found; every one is held by somebody."]
        if settings.counts == 0:
            notes.append("No counts were paid for: all are unknown.")
        elif limit < len(found):
            notes.append(limit_note(limit, 1))
        return ReleasedCounts({1: tuples}, tuple(notes))


def union_budget(terms: ReleaseTerms, settings: UnionSettings) -> Budget:
    """mu^2 of the whole release."""
    shares = []
    if settings.counts:
        shares.append(CountShare(settings.counts * LIMIT_PART))
        shares.append(CountShare(settings.counts * (1 - LIMIT_PART)))
    # the losses of finds, as in _threshold_step, if all of mu^2 = people/variance were theirs
    whole_mu = Fraction(mu_of(float(terms.epsilon), float(terms.delta)))
    finer = Fraction(math.isqrt(MAX_UNION_VALUES) + 1, PER_UNIT) * whole_mu**2
    failures = _EARLY_FAILURES if settings.form == "parallel" else Fraction(0)
    return budget_of(terms, shares, finer, failures)


def find_values(
    table: CentralTable,
    settings: UnionSettings,
    budget: Budget,
    share: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> Integers:
    """The values that are found, numbered through and ascending.

    Args:
        table: what the curator holds.
        settings: of the find.
        budget: of the release.
        share: of mu^2, for the find.
        ledger: where it is spent.
        entropy: where order, choices and noise come from.
    """
    if sum(map(len, table.values)) > MAX_UNION_VALUES or table.people > MAX_UNION_PEOPLE:
        raise InvalidInput("the table must have at most 2^36 values and 2^28 people")
    if settings.form == "descent":
        return _descent(table, settings, budget, share, ledger, entropy)
    rounds = settings.rounds if settings.form == "parallel" else 1
    return _weighted(table, settings, rounds, budget, share, ledger, entropy)


def _descent(
    table: CentralTable,
    settings: UnionSettings,
    budget: Budget,
    share: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> Integers:
    variance = budget.variance(share, 1)
    sigma = math.sqrt(variance)
    # moves are shorter by the slack, so new values weigh as if a person could have a few more
    slack = descent_slack(settings.limit, float(settings.alpha + 50) * max(1.0, sigma))
    if slack > LARGEST_SLACK:
        raise InvalidInput(
            f"epsilon ({budget.epsilon}) must be larger for form 'descent', whose doubles are not "
            "near enough for so much noise; form 'weighted' is exact"
        )
    length = 1 - slack
    declared = math.ceil(settings.limit / (length - slack) ** 2)
    threshold = budget.threshold(share, declared, "descent", COARSE)
    level = float(threshold) + float(settings.alpha) * sigma
    ledger.spend(
        _threshold_step("values", declared, "descent", variance, threshold, MAX_UNION_VALUES)
    )

    numbers = np.arange(sum(map(len, table.values)))
    everything = TupleCandidates.single(numbers + 1)
    starts, items = collected(table, numbers, everything, settings.limit, entropy)
    order = shuffled(len(starts) - 1, entropy)
    heights = np.zeros(len(numbers))
    descend(starts, items, order, level, length, heights)
    return _noisy_union(np.rint(heights * PER_UNIT).astype(np.int64), variance, threshold, entropy)


def _weighted(
    table: CentralTable,
    settings: UnionSettings,
    rounds: int,
    budget: Budget,
    share: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> Integers:
    parts = [Fraction(_ROUND_RATIO) ** number for number in range(rounds)]
    shares = [share * part / sum(parts) for part in parts]
    thresholds = _round_thresholds(settings.limit, shares, budget)
    weights = equal_weights(settings.limit, PER_UNIT)
    left = np.arange(sum(map(len, table.values)))
    found: list[Integers] = []
    for number, (part, threshold) in enumerate(zip(shares, thresholds, strict=True), 1):
        variance = budget.variance(part, 1)
        name = "values" if rounds == 1 else f"values, round {number}"
        step = _threshold_step(name, settings.limit, "equal", variance, threshold, settings.limit)
        ledger.spend(step)
        everything = TupleCandidates.single(np.arange(len(left)) + 1)
        numbers = np.full(sum(map(len, table.values)), ABSENT)
        numbers[left] = np.arange(len(left))
        keys, sums = summed(table, numbers, everything, settings.limit, weights, entropy)
        heights = np.zeros(len(left), np.int64)
        heights[keys] = sums
        is_found = np.zeros(len(left), bool)
        is_found[_noisy_union(heights, variance, threshold, entropy)] = True
        found.append(left[is_found])
        left = left[~is_found]
    return np.sort(np.concatenate(found))


def _round_thresholds(limit: int, shares: list[Fraction], budget: Budget) -> list[Fraction]:
    """Thresholds of rounds: all but the last fail by a fixed part of delta, the last exactly."""
    early = []
    log_hidden = 0.0
    for part in shares[:-1]:
        variance = budget.variance(part, 1)
        failure = float(_EARLY_FAILURES * part / sum(shares)) * budget.delta
        early.append(hiding_threshold(math.log1p(-failure), variance, limit, "equal", COARSE))
        log_hidden += least_log_hidden(early[-1], variance, limit, "equal")
    last = threshold_for(
        budget.epsilon,
        budget.delta,
        budget.variance(shares[-1], 1),
        limit,
        "equal",
        budget.neighbours,
        per_unit=COARSE,
        lattice_loss=budget.lattice_loss,
        other_squared_mu=float((1 - shares[-1]) * budget.squared_mu),
        other_log_hidden=log_hidden,
    )
    return [*early, last]


def _threshold_step(
    name: str, limit: int, weights: Weights, variance: Fraction, threshold: Fraction, moved: int
) -> ThresholdStep:
    """The step of a find; ``moved``: how many weights a person moves, at most."""
    # |v|_1 / variance, both in steps of the lattice, and |v|_1 <= sqrt(moved) |v|_2
    loss = Fraction(math.isqrt(moved) + 1, PER_UNIT) / variance
    return ThresholdStep(name, "which values exist", limit, weights, variance, threshold, loss)


def _noisy_union(
    heights: Integers, variance: Fraction, threshold: Fraction, entropy: Entropy
) -> Integers:
    """Which values' noisy weights are above the threshold, of those that have any."""
    held = np.flatnonzero(heights)
    in_steps = rounded_variance(variance * PER_UNIT**2)
    noise = discrete_gaussian(in_steps, len(held), entropy)
    limit = math.floor(threshold * PER_UNIT)
    return held[heights[held] + noise > limit]


def _with_counts(
    table: CentralTable,
    found: Integers,
    settings: UnionSettings,
    budget: Budget,
    ledger: Ledger,
    entropy: Entropy,
) -> tuple[TupleCounts, int]:
    """How many people hold each found value, if that is paid for; and for how many a person was
    counted.
    """
    attributes, codes = each_value(table)
    counts = np.full(len(found), np.nan)
    deviation = math.nan
    limit = len(found)
    if settings.counts and len(found):
        numbers = np.full(len(attributes), ABSENT)
        numbers[found] = np.arange(len(found))
        told = limited_counts(
            table,
            numbers,
            TupleCandidates.single(np.arange(len(found)) + 1),
            np.arange(len(found)),
            limit_grid(1, min(len(found), LARGEST_COUNT_LIMIT)),
            "counts",
            budget,
            LimitedShares(settings.counts * LIMIT_PART, settings.counts * (1 - LIMIT_PART)),
            ledger,
            entropy,
        )
        counts, deviation, limit = told.counts, math.sqrt(told.variance), told.limit
    tuples = TupleCounts(
        attributes[found][:, None],
        codes[found][:, None],
        counts,
        np.full(len(found), deviation),
        np.zeros(len(found), bool),
    )
    return tuples, limit
