"""Comparisons of releases count what is true by brute force, and see what a method gets wrong."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.accounting import Ledger
from sottovoce.central import comparison
from sottovoce.central.comparison import compare_releases
from sottovoce.central.method import (
    CentralTable,
    ReleasedCounts,
    ReleaseTerms,
    TupleCounts,
)
from sottovoce.central.tables import EncodedTable, read_table
from sottovoce.central.truth import SetTruth, truth_of
from sottovoce.ground.entropy import Entropy
from tests.central.methods import NoisyValues

DRAWS = np.random.default_rng(3)
ROWS = {
    "who": DRAWS.integers(0, 40, 120),
    "a": DRAWS.integers(0, 3, 120),
    "b": [None if code == 0 else int(code) for code in DRAWS.integers(0, 5, 120)],
    "c": DRAWS.choice(["x", "y"], 120),
}
SETS = {"items": [DRAWS.integers(0, 9, DRAWS.integers(0, 6)).tolist() for _ in range(60)]}


def brute(table: EncodedTable, k: int) -> Counter[tuple[tuple[int, int], ...]]:
    """How many users hold each k-tuple of (attribute, code)."""
    held: dict[int, set[tuple[tuple[int, int], ...]]] = {}
    for batch in table.batches():
        for user, codes in zip(batch.users.tolist(), batch.codes.tolist(), strict=True):
            pairs = [(place, code) for place, code in enumerate(codes) if code >= 0]
            if table.is_sets:
                held.setdefault(user, set()).update(((0, code),) for code in codes)
            else:
                held.setdefault(user, set()).update(combinations(pairs, k))
    if table.is_sets:
        for user, items in held.items():
            listed = sorted(item for (item,) in items)
            held[user] = set(combinations(listed, k))
    return Counter(each for tuples in held.values() for each in tuples)


TABLES = {
    "rows": {"table": {name: ROWS[name] for name in "abc"}},
    "users": {"table": ROWS, "user": "who"},
    "sets": {"table": SETS, "items": "items"},
}


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_truth_is_that_of_brute_force(kind: str, k: int) -> None:
    given: dict[str, Any] = dict(TABLES[kind])
    table = read_table(given.pop("table"), **given)
    truth = truth_of(table)
    expected = brute(table, k)
    listed = sorted(expected)
    attributes = np.array([[place for place, _ in each] for each in listed])
    codes = np.array([[code for _, code in each] for each in listed])
    zeros = np.zeros(len(listed))
    told = TupleCounts(attributes, codes, zeros, zeros, zeros.astype(bool))
    if isinstance(truth, SetTruth) and not truth.is_countable(k):
        found = truth.count_each(codes)
        assert found.tolist() == [expected[each] for each in listed]
        return
    numbers, cells = truth.placed(told, k)
    counted = {
        (number, cell): count
        for number, true in truth.tables(k)
        for cell, count in zip(true.cells.tolist(), true.counts.tolist(), strict=True)
    }
    places = zip(numbers.tolist(), cells.tolist(), strict=True)
    assert {place: expected[each] for place, each in zip(places, listed, strict=True)} == counted


class Wrong(NoisyValues):
    """Tells the first value of the first attribute with 3 users too many, and one nobody holds."""

    name: ClassVar[str] = "wrong"

    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        exact = sum(int((batch.codes[:, 0] == 0).sum()) for batch in table.batches())
        counts = np.array([exact + 3.0, 5.0])
        told = TupleCounts(
            np.zeros((2, 1), np.int64),
            np.array([[0], [3]]),
            counts,
            np.ones(2),
            np.zeros(2, bool),
        )
        return ReleasedCounts({1: told})


def test_figures_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "METHODS", (Wrong(),))
    people = {"a": [0] * 50 + [1] * 30 + [2] * 20}
    table = read_table(people, schema=sv.Schema(a=sv.Ordinal(0, 3)))
    (row,) = compare_releases(table, ["wrong"], [1], 1e-6, 1, above="0.25", runs=2)
    assert (row.found, row.spurious, row.recall, row.above) == (2, 1, 0.5, 25)
    assert row.count_mse == pytest.approx((3**2 + 5**2) / 2)
    assert row.sse == pytest.approx((3**2 + 5**2 + 30**2 + 20**2) / 100**2)
    assert (row.chosen, row.runs, row.k) == ("wrong", 2, 1)
    assert set(row.to_json()) >= {
        "method", "epsilon", "k", "found", "spurious", "recall", "sse", "seconds",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"methods": ["magic"]}, "method .magic. must be one of auto, set-union"),
        ({"up_to": 9}, "up_to .9. must be at most the number of attributes"),
        ({"above": "2"}, "above .2. must lie between 0 and 1"),
        ({"runs": 0}, "runs .0. must lie between 1 and"),
        ({"epsilons": ["-1"]}, "epsilon .-1. must be finite"),
    ],
)
def test_bad_comparisons_are_refused(given: dict[str, Any], rule: str) -> None:
    table = read_table({"a": [0, 1] * 30})
    terms = {"methods": ["auto"], "epsilons": ["1"], "delta": "1e-6", "up_to": 1, **given}
    with pytest.raises(sv.InvalidInput, match=rule):
        list(compare_releases(table, **terms))
