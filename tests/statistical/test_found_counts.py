"""Counts of tuples that were found: their standard errors, and how many of them nobody holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from sottovoce.central import finding
from sottovoce.central.limits import limit_grid, percentile_limit
from sottovoce.central.method import EMPTY_CODE, MemoryTable, ReleasedCounts
from sottovoce.central.tuples import DpMarginals
from sottovoce.central.union import SetUnion
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from tests.central_tables import ledger_of, rows_table, sets_table, terms_of
from tests.statistics import ALPHA

USERS = 600
COLUMNS, VALUES = 3, 4


def found(
    table: MemoryTable, up_to: int, seed: int, epsilon: str = "2", **options: Any
) -> ReleasedCounts:
    """A simulated release by dp-marginals."""
    terms = terms_of(epsilon, up_to, **options)
    return DpMarginals().release(table, terms, ledger_of(terms), Seeded(seed))


def rows_of_users() -> MemoryTable:
    """Everybody has four rows, and holds every value by one of them."""
    rows = [[value] * COLUMNS for _ in range(USERS) for value in range(VALUES)]
    users = np.repeat(np.arange(USERS), VALUES).tolist()
    return rows_table(rows, [VALUES] * COLUMNS, users)


def squared_errors(table: MemoryTable, runs: int, neighbours: str) -> tuple[float, int]:
    """Of all counts of values, in squared standard errors; and how many counts there were."""
    total, number = 0.0, 0
    for seed in range(runs):
        values = found(table, 1, seed, neighbours=neighbours).tuples[1]
        errors = (values.counts - USERS) / values.std_errors
        total += float((errors**2).sum())
        number += len(errors)
    return total, number


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_counts_of_users_with_many_rows_err_as_they_say(neighbours: str) -> None:
    table = rows_of_users()
    total, number = squared_errors(table, 20, neighbours)
    assert number == 20 * COLUMNS * VALUES  # all are found
    assert chi2.isf(1 - ALPHA, number) < total < chi2.isf(ALPHA, number)
    # a limit of what one row holds leaves out three quarters of what a user has
    total, number = squared_errors(replace(table, has_user_column=False), 20, neighbours)
    assert total > 10 * chi2.isf(ALPHA, max(1, number))


def test_a_limit_that_may_have_left_something_out_is_noted() -> None:
    by_user = rows_of_users()
    assert "A user was counted for at most 12 values" in " ".join(found(by_user, 1, 1).notes)
    one_row = replace(by_user, users=np.arange(len(by_user.codes)), has_user_column=False)
    assert "A user was counted" not in " ".join(found(one_row, 1, 1, limit=3).notes)
    assert "at most 2 values" in " ".join(found(one_row, 1, 1, limit=2).notes)

    sets = sets_table([[item % 30, (item + 1) % 30, (item + 2) % 30] for item in range(3000)], 30)
    terms = terms_of("2", 1)
    released = SetUnion().release(sets, terms, ledger_of(terms), Seeded(1))
    assert len(released.tuples[1].counts) > 3
    assert "A user was counted for at most 3 values" in " ".join(released.notes)


@pytest.mark.parametrize("option", [{"accounting": "zcdp"}, {"no_spurious": True}])
def test_sets_are_counted_at_once_where_that_is_asked_for(option: dict[str, Any]) -> None:
    sets = sets_table([[0, 1]] * 2000, 2)
    terms = terms_of("2", 2, **option)
    ledger = ledger_of(terms)
    released = DpMarginals().release(sets, terms, ledger, Seeded(1))
    assert [len(released.tuples[k].counts) for k in (1, 2)] == [2, 1]
    assert ledger.delta_at(2.0) <= 1e-6
    assert not any("weights" in step.name for step in ledger.steps)


def test_noise_without_a_tail_is_refused_before_anything_is_spent() -> None:
    sets = sets_table([[0, 1]] * 20_000, 2)
    terms = terms_of("0.02", 2)
    ledger = ledger_of(terms)
    with pytest.raises(InvalidInput, match=r"epsilon \(0.02\) must be larger for find 'weighted'"):
        DpMarginals().release(sets, terms, ledger, Seeded(1))
    assert ledger.steps == ()


def test_noise_alone_does_not_reach_for_the_largest_limit() -> None:
    grid = limit_grid(1, 1 << 16)
    deviation = 30.0
    too_large = {"bounded": 0, "unbounded": 0}
    for seed in range(200):
        histogram = np.random.default_rng(seed).normal(0, deviation, len(grid) + 1)
        histogram[1 + np.searchsorted(grid, 12)] += 900
        too_large["bounded"] += percentile_limit(histogram, grid, deviation) > 12
        too_large["unbounded"] += percentile_limit(histogram, grid) > 12
    # the chance that one of some thirty bins is above four deviations
    chance = len(grid) * norm.sf(4)
    limit = binom.isf(ALPHA, 200, chance)
    assert too_large["bounded"] <= limit < too_large["unbounded"]


def lonely_rows() -> MemoryTable:
    """Rows of one value each, so that nobody holds a pair."""
    rows = []
    for value in range(30):
        rows += [[value, EMPTY_CODE], [EMPTY_CODE, value]] * 150
    return rows_table(rows, [30, 30])


def lonely_sets() -> MemoryTable:
    """Sets of one item each."""
    return sets_table([[item] for item in range(60) for _ in range(150)], 60)


ETA = Fraction(1, 20)
RELEASES = 40
LONELY = {
    "rows": (lonely_rows, 30 * 30, {"find": "counts", "limit": [2, 1]}),
    "sets": (lonely_sets, 60 * 59 // 2, {"find": "weighted", "limit": [1, 1]}),
}


def false_pairs(kind: str, runs: int) -> tuple[int, int]:
    """Pairs that nobody holds, over many releases; and how many chance allows."""
    make, pairs, options = LONELY[kind]
    table = make()
    seen = 0
    for seed in range(runs):
        released = found(table, 2, seed, "4", eta=str(ETA), **options)
        assert len(released.tuples[1].counts) == 60  # so that the number of candidates is fixed
        seen += len(released.tuples[2].counts)
    # each of the pairs is found with chance eta |S_1| / |V_2| at most
    limit = binom.isf(ALPHA, runs * pairs, float(ETA * Fraction(60, pairs)))
    return seen, int(limit)


@pytest.mark.parametrize("kind", sorted(LONELY))
def test_in_many_releases_false_pairs_are_at_most_what_eta_allows(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, limit = false_pairs(kind, RELEASES)
    assert 0 < seen <= limit
    # a threshold at four fifths is seen
    usual = finding.Curator._tuple_threshold
    monkeypatch.setattr(finding.Curator, "_tuple_threshold", lambda *given: usual(*given) * 4 // 5)
    seen, limit = false_pairs(kind, RELEASES)
    assert seen > limit
