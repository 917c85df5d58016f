"""Candidate tuples and what people hold of them, beside brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.counting import collected, equal_weights, sizes_held, summed, unit_weights
from sottovoce.central.method import MemoryTable
from sottovoce.central.records import each_value
from sottovoce.ground.entropy import Seeded
from tests.central_tables import counted, held, rows_table, sets_table
from tests.statistics import ALPHA


def some_table(is_sets: bool, seed: int) -> MemoryTable:
    generator = np.random.default_rng(seed)
    if is_sets:
        people = [generator.choice(9, generator.integers(0, 8)).tolist() for _ in range(30)]
        return sets_table(people, 9)
    sizes = [3, 2, 4, 2, 3]
    rows = np.column_stack([generator.integers(-1, size, 40) for size in sizes])
    users = np.sort(generator.integers(0, 25, 40))
    return rows_table(rows.tolist(), sizes, users.tolist())


def after_of(table: MemoryTable) -> np.ndarray:
    attributes, _ = each_value(table)
    if table.is_sets:
        return np.arange(1, len(attributes) + 1)
    return np.searchsorted(attributes, attributes, side="right")


@pytest.mark.parametrize("is_sets", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_candidates_and_counts_are_those_of_brute_force(is_sets: bool, seed: int) -> None:
    table = some_table(is_sets, seed)
    generator = np.random.default_rng(seed + 100)
    attributes, codes = each_value(table)
    numbers = np.arange(len(attributes))
    named = [(int(a), int(c)) for a, c in zip(attributes, codes, strict=True)]
    candidates = TupleCandidates.single(after_of(table))
    found = numbers
    kept = {(value,) for value in named}
    for k in range(2, 5):
        candidates = candidates.grown(found)
        every = {tuple(sorted(some)) for some in combinations(named, k)}
        if not is_sets:
            every = {some for some in every if len({a for a, _ in some}) == k}
        valid = {some for some in every if all(part in kept for part in combinations(some, k - 1))}
        keys = candidates.at(np.arange(candidates.total))
        listed = [tuple(named[value] for value in row) for row in candidates.tuples(keys)]
        assert set(listed) == valid
        assert len(listed) == len(valid)

        sizes = sizes_held(table, numbers, candidates)
        assert sorted(sizes) == sorted(len(own & valid) for own in held(table, k))
        present, sums = summed(table, numbers, candidates, 10**6, np.ones(200, int), Seeded(1))
        truth = {each: count for each, count in counted(table, k).items() if each in valid}
        names = [tuple(named[value] for value in row) for row in candidates.tuples(present)]
        assert dict(zip(names, sums.tolist(), strict=True)) == truth

        found = np.sort(generator.choice(keys, int(0.7 * len(keys)), replace=False))
        kept = {tuple(named[value] for value in row) for row in candidates.tuples(found)}
        only = candidates.restricted(found)
        assert only.total == len(found)
        present, sums = summed(table, numbers, only, 10**6, np.ones(200, int), Seeded(1))
        names = [tuple(named[value] for value in row) for row in candidates.tuples(present)]
        truth = {each: count for each, count in counted(table, k).items() if each in kept}
        assert dict(zip(names, sums.tolist(), strict=True)) == truth


def test_hash_table_and_plain_sums_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(True, 5)
    pairs = TupleCandidates.single(after_of(table)).grown(np.arange(9))
    plain = summed(table, np.arange(9), pairs, 100, unit_weights(100), Seeded(1))
    monkeypatch.setattr("sottovoce.central.counting._MOST_PLAIN", 0)
    hashed = summed(table, np.arange(9), pairs, 100, unit_weights(100), Seeded(1))
    assert np.array_equal(plain, hashed)


def test_nobody_exceeds_the_limit() -> None:
    """A person with thousands of tuples adds as many as anybody else may."""
    table = sets_table([list(range(120)), [0, 1]], 120)
    numbers = np.arange(120)
    pairs = TupleCandidates.single(numbers + 1).grown(numbers)
    assert sizes_held(table, numbers, pairs).tolist() == [7140, 1]
    _, sums = summed(table, numbers, pairs, 10, unit_weights(10), Seeded(2))
    assert sums.sum() == 11
    _, weights = summed(table, numbers, pairs, 10, equal_weights(10, 1 << 20), Seeded(2))
    others = (1 << 20) ** 2  # the second person's one pair
    assert (weights.astype(object) ** 2).sum() <= (1 << 20) ** 2 + others + 2 * (1 << 40)
    starts, keys = collected(table, numbers, pairs, 10, Seeded(2))
    assert np.diff(starts).tolist() == [10, 1]
    assert len(set(keys[:10].tolist())) == 10


def test_equal_weights_are_never_longer_than_one() -> None:
    weights = equal_weights(500, 1 << 20)
    kept = np.arange(501)
    assert (kept * weights.astype(object) ** 2 <= (1 << 20) ** 2).all()
    assert (kept[1:] * (weights[1:] + 1).astype(object) ** 2 > (1 << 20) ** 2).all()


def test_what_is_kept_is_a_uniform_choice() -> None:
    draws = 20_000
    table = sets_table([list(range(6))] * draws, 6)  # people who hold the same
    every = TupleCandidates.single(np.arange(1, 7))
    starts, keys = collected(table, np.arange(6), every, 2, Seeded(3))
    assert (np.diff(starts) == 2).all()
    seen = Counter(tuple(sorted(some)) for some in keys.reshape(-1, 2).tolist())
    counts = np.array([seen.get(some, 0) for some in combinations(range(6), 2)])
    statistic = float(((counts - draws / 15) ** 2 / (draws / 15)).sum())
    assert statistic < chi2.isf(ALPHA, 14)
    # the first values favoured by a twentieth would be seen
    wrong = np.ones(15)
    wrong[:5] *= 1.2
    expected = draws * wrong / wrong.sum()
    assert float(((counts - expected) ** 2 / expected).sum()) > chi2.isf(ALPHA, 14)


def test_absent_candidates_are_drawn_evenly() -> None:
    values = np.arange(2000)
    pairs = TupleCandidates.single(values + 1).grown(values)  # about two million: not listed
    present = pairs.at(np.arange(0, pairs.total, 2))
    drawn = pairs.absent(4000, present, Seeded(4))
    assert len(np.unique(drawn)) == 4000
    assert not np.isin(drawn, present).any()
    ranks = pairs.at(np.arange(pairs.total)).searchsorted(drawn)
    counts = np.histogram(ranks, 20, (0, pairs.total))[0]
    assert ((counts - 200) ** 2 / 200).sum() < chi2.isf(ALPHA, 19)
