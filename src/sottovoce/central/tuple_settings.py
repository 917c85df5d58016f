"""What may be chosen about a release of tuples, and how its budget is shared; all of it public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from sottovoce.accounting import mu_of
from sottovoce.accounting.zcdp import rho_of
from sottovoce.central.budget import Budget, CountShare, budget_of, shares_of
from sottovoce.central.method import CentralTable, ReleaseTerms
from sottovoce.central.union import LARGEST_COUNT_LIMIT, MAX_UNION_VALUES
from sottovoce.central.union import PER_UNIT as VALUE_STEPS
from sottovoce.ground.arguments import share as part_of_one
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.tails import LARGEST_TAIL_SIGMA

Find = Literal["counts", "weighted"]
Percentile = Literal["histogram", "exponential"]
Accounting = Literal["exact", "zcdp"]
FINDS: tuple[Find, ...] = ("counts", "weighted")
PERCENTILES: tuple[Percentile, ...] = ("histogram", "exponential")
ACCOUNTINGS: tuple[Accounting, ...] = ("exact", "zcdp")

MOST_TUPLES = 1 << 16  # that a person may contribute
LEAST_LIMITS = (1, 8)  # that may be chosen from the data, for k = 1 and for k above
DEFAULT_ETA = Fraction(1, 100)
LIMIT_SHARE = Fraction(1, 50)  # of mu^2, for the choice of one limit
PERCENTILE_PART = Fraction(1, 10)  # of rho, for all percentiles by the exponential mechanism
FAILURES = Fraction(1, 4)  # of delta, for thresholds at every k
# where tuples are found by weights and counted apart: parts of a k's share for both
FOUND_PART = Fraction(9, 20)
LEAST_COMPOSED_DELTA = 1e-11  # a hundred times what numerical composition errs by
FIND_LIMIT = 1000  # of a person's tuples, each of which weighs 1/sqrt of their number
TUPLE_STEPS = 1 << 10  # of the lattice in a weight of 1, for tuples of several values


@dataclass(frozen=True)
class TupleSettings:
    """The options of ``dp-marginals``, checked."""

    limits: tuple[int | None, ...]  # by k; None for one that is chosen from the data
    shares: tuple[Fraction, ...]  # by k, of what limits leave
    eta: Fraction = DEFAULT_ETA
    find: Find = "counts"
    percentile: Percentile = "histogram"
    accounting: Accounting = "exact"
    no_spurious: bool = False

    @classmethod
    def of(cls, table: CentralTable, terms: ReleaseTerms) -> TupleSettings:
        """From the options of a release.

        Args:
            table: only its public form is read.
            terms: of the release.
        """
        options = terms.options
        percentile = _one_of("percentile", options, PERCENTILES, "histogram")
        accounting = _one_of("accounting", options, ACCOUNTINGS, "exact")
        is_strict = _truth("no_spurious", options)
        needs_counts = is_strict or percentile == "exponential" or accounting == "zcdp"
        usual: Find = "weighted" if table.is_sets and not needs_counts else "counts"
        find = _one_of("find", options, FINDS, usual)
        eta = part_of_one("eta", options.get("eta", DEFAULT_ETA))
        if not 0 < eta < Fraction(1, 2):
            raise InvalidInput(f"eta ({eta}) must be above 0 and below 1/2")
        if find == "weighted" and needs_counts:
            raise InvalidInput(
                "find ('weighted') goes with none of no_spurious, percentile 'exponential' and "
                "accounting 'zcdp'"
            )
        shares = options.get("shares", default_shares(terms.up_to, table.is_sets))
        if terms.up_to == 1 and isinstance(shares, int | float | str):
            shares = [shares]
        if not isinstance(shares, list | tuple) or len(shares) != terms.up_to:
            raise InvalidInput(f"shares ({shares}) must be {terms.up_to} numbers, one for each k")
        limits = _limits(options.get("limit"), terms.up_to)
        if find == "weighted" and (limits[0] or 1) > LARGEST_COUNT_LIMIT:
            raise InvalidInput(
                f"limit ({limits[0]}) of single values must be at most {LARGEST_COUNT_LIMIT}, "
                "where find is 'weighted'"
            )
        return cls(
            limits,
            shares_of("shares", shares),
            eta,
            find,
            percentile,
            accounting,
            is_strict,
        )


def default_shares(up_to: int, is_sets: bool) -> Sequence[int]:
    """Shares that grow with k: 1, 3, 6, 10, ...; for sets up to pairs more so, see
    docs/central.md.

    >>> default_shares(3, is_sets=False)
    [1, 3, 6]
    """
    if is_sets and up_to == 2:
        return [3, 17]
    return [k * (k + 1) // 2 for k in range(1, up_to + 1)]


def _one_of(name: str, options: Mapping[str, Any], choices: Sequence[Any], usual: Any) -> Any:
    given = options.get(name, usual)
    if given not in choices:
        raise InvalidInput(f"{name} ({given}) must be one of {', '.join(choices)}")
    return given


def _truth(name: str, options: Mapping[str, Any]) -> bool:
    """An option that is true or false, and false if it is not given."""
    given = options.get(name, False)
    if not isinstance(given, bool):
        raise InvalidInput(f"{name} ({given}) must be true or false")
    return given


def _limits(given: Any, up_to: int) -> tuple[int | None, ...]:
    """A public limit for each k: one for all, a list of them, or none."""
    if given is None:
        return (None,) * up_to
    listed = given if isinstance(given, list | tuple) else [given] * up_to
    if len(listed) != up_to:
        raise InvalidInput(f"limit must be one whole number, or {up_to} of them, one for each k")
    return tuple(None if each is None else whole("limit", each, 1, MOST_TUPLES) for each in listed)


@dataclass(frozen=True)
class TuplePlan:
    """The budget, and what each k gets of it."""

    budget: Budget
    limit: tuple[Fraction, ...]  # of mu^2 by k, for a limit's histogram; 0 if there is none
    find: tuple[Fraction, ...]  # of mu^2 by k; all of k's share if it counts at once
    count: tuple[Fraction, ...]  # of mu^2 by k; 0 if what finds also counts
    percentile_epsilon: Fraction | None = None  # of each choice by the exponential mechanism


def most_tuples(table: CentralTable, k: int) -> int:
    """How many k-tuples a person may contribute at most.

    Those of one full row, where a person has one; sets and the rows of a user have no such bound.
    """
    if is_unbounded(table):
        return MOST_TUPLES
    return min(MOST_TUPLES, math.comb(len(table.columns), k))


def is_unbounded(table: CentralTable) -> bool:
    """Whether nothing public bounds how many tuples a person holds."""
    return table.is_sets or table.has_user_column


def least_limit(table: CentralTable, k: int) -> int:
    """The lowest limit that may be chosen from the data."""
    return min(LEAST_LIMITS[min(k, 2) - 1], most_tuples(table, k))


def tuple_plan(table: CentralTable, terms: ReleaseTerms, settings: TupleSettings) -> TuplePlan:
    """How the budget is shared, from public facts."""
    levels = range(1, terms.up_to + 1)
    is_weighted = settings.find == "weighted"
    chosen = [limit is None for limit in settings.limits]
    if settings.percentile == "exponential" or settings.accounting == "zcdp":
        return _closed_plan(terms, settings, chosen)
    limit = [LIMIT_SHARE if is_chosen or is_weighted else Fraction(0) for is_chosen in chosen]
    rest = 1 - sum(limit)
    shares = [rest * share for share in settings.shares]
    find = [share * FOUND_PART if is_weighted else share for share in shares]
    count = [share - part for share, part in zip(shares, find, strict=True)]
    spent = [CountShare(part) for part in limit if part]
    counted = count if is_weighted else find
    for k, part in zip(levels, counted, strict=True):
        # what is found by weights is counted up to another limit, which is chosen from the data
        given = None if is_weighted else settings.limits[k - 1]
        spent.append(CountShare(part, given or least_limit(table, k)))
    finer = finer_loss(terms, settings, find) if is_weighted else Fraction(0)
    failures = FAILURES if settings.no_spurious else Fraction(0)
    budget = budget_of(terms, spent, finer, failures)
    if is_weighted:
        _check_tails(terms, budget, find)
    return TuplePlan(budget, tuple(limit), tuple(find), tuple(count))


def _check_tails(terms: ReleaseTerms, budget: Budget, find: Sequence[Fraction]) -> None:
    """Refuse, before anything is spent, noise whose tail on the lattice cannot be computed."""
    for share in find[1:]:  # a threshold of values alone needs no tail
        if budget.variance(share, 1) * TUPLE_STEPS**2 > LARGEST_TAIL_SIGMA**2:
            raise InvalidInput(
                f"epsilon ({terms.epsilon}) must be larger for find 'weighted', whose lattice is "
                "too fine for so much noise; find 'counts' needs none"
            )


def finer_loss(terms: ReleaseTerms, settings: TupleSettings, find: Sequence[Fraction]) -> Fraction:
    """What the lattices of weights take from epsilon, at most.

    Args:
        terms: of the release.
        settings: whose limits say how many weights a person moves.
        find: of mu^2 by k.
    """
    # |v|_1 / variance in steps of the lattice, |v|_1 <= sqrt(moved) |v|_2, 1/variance = share mu^2
    whole_mu = Fraction(mu_of(float(terms.epsilon), float(terms.delta)))
    loss = find[0] * Fraction(math.isqrt(MAX_UNION_VALUES) + 1, VALUE_STEPS)
    for share, limit in zip(find[1:], settings.limits[1:], strict=True):
        loss += share * Fraction(math.isqrt(limit or FIND_LIMIT) + 1, TUPLE_STEPS)
    return loss * whole_mu**2


def _check_composition(terms: ReleaseTerms) -> None:
    """Refuse, before anything is spent, what the ledger cannot compose numerically."""
    if float(terms.delta) < LEAST_COMPOSED_DELTA:
        raise InvalidInput(
            f"delta ({terms.delta}) must be at least {LEAST_COMPOSED_DELTA:g} for percentile "
            "'exponential', whose steps are composed numerically"
        )
    imported("dp_accounting.pld.privacy_loss_distribution")


def _closed_plan(terms: ReleaseTerms, settings: TupleSettings, chosen: Sequence[bool]) -> TuplePlan:
    """By theorem 1.1 of gopi2021marginals, corrected, see docs/errata:

    T eps_Q^2/8 + 1/2 sum 1/sigma_i^2 <= (sqrt(eps + L) - sqrt L)^2, L = ln(2/delta)

    with eps_Q^2/2 for a histogram of contributions in place of a percentile.
    """
    # what lattices take is less than what the closed form wastes, or the ledger refuses
    epsilon, delta = float(terms.epsilon), float(terms.delta)
    rho = Fraction(rho_of(epsilon, delta))
    budget = Budget(epsilon, delta, terms.neighbours, 2 * rho, 0.0)
    limit = [Fraction(0)] * terms.up_to
    percentile_epsilon = None
    rest = Fraction(1)
    if any(chosen) and settings.percentile == "exponential":
        _check_composition(terms)
        # sum of eps_Q^2/8 = rho/10, rounded down
        squared = 8 * PERCENTILE_PART * rho / sum(chosen)
        percentile_epsilon = Fraction(math.isqrt(math.floor(squared * 10**12)), 10**6)
        rest = 1 - PERCENTILE_PART
    elif any(chosen):
        limit = [LIMIT_SHARE if is_chosen else Fraction(0) for is_chosen in chosen]
        rest = 1 - sum(limit, Fraction(0))
    shares = tuple(rest * share for share in settings.shares)
    none = (Fraction(0),) * terms.up_to
    return TuplePlan(budget, tuple(limit), shares, none, percentile_epsilon)
