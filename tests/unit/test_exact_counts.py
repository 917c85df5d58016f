"""Tables of known domains are counted together, and are the same as counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sottovoce.central import domains
from sottovoce.central.domains import TableDomain, exact_counts, joint_sets, one_row_each
from sottovoce.central.method import EMPTY_CODE, MemoryTable, RowBatch
from sottovoce.ground.entropy import Seeded
from tests.central_tables import known_table, tied_codes, true_table

SIZES = (2, 3, 4, 2, 3)
PAIRS = list(combinations(range(len(SIZES)), 2))


@pytest.mark.parametrize("cells", [1, 30, 100, 1 << 16])
@pytest.mark.parametrize("all_cells", [1, 1 << 21])
def test_joint_counts_are_those_of_each_table(
    cells: int, all_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "MAX_JOINT_CELLS", cells)
    monkeypatch.setattr(domains, "MAX_ALL_JOINT_CELLS", all_cells)
    codes = tied_codes(SIZES, 700, seed=1)
    table = known_table(SIZES, codes)
    sets = [*PAIRS, (1,), (0, 2, 4), ()]
    counts = exact_counts(table, TableDomain.of(table), sets, Seeded(1))
    assert set(counts) == set(sets)
    for own in sets[:-1]:
        assert np.array_equal(counts[own], true_table(codes, SIZES, own))
    assert counts[()] == 700


def test_joint_tables_are_few_and_stay_small() -> None:
    sizes = (2,) * 30
    triples = list(combinations(range(30), 3))
    joint = joint_sets(triples, sizes)
    assert sorted(joint) == triples
    assert all(set(own) <= set(wide) for own, wide in joint.items())
    assert all(2 ** len(wide) <= domains.MAX_JOINT_CELLS for wide in joint.values())
    assert len(set(joint.values())) < len(triples) / 50
    large = (1000, 1000, 1000, 1000)
    pairs = list(combinations(range(4), 2))
    assert joint_sets(pairs, large) == {own: own for own in pairs}


def test_very_many_tables_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "MAX_JOINT_SETS", len(PAIRS) - 1)
    assert joint_sets(PAIRS, SIZES) == {own: own for own in PAIRS}


def test_counting_leaves_the_table_as_it_was() -> None:
    codes = np.array([[0], [EMPTY_CODE], [1]])
    table = MemoryTable(("a",), (("x", "y"),), (True,), codes, np.arange(3), 3)
    domain = TableDomain.of(table, ["a"])
    for _ in range(2):
        counts = exact_counts(table, domain, [(0,)], Seeded(1))
        assert counts[(0,)].tolist() == [1, 1, 1]
    assert codes.ravel().tolist() == [0, EMPTY_CODE, 1]


def test_of_a_user_with_several_rows_one_counts() -> None:
    codes = np.arange(6)[:, None]
    kept = one_row_each(RowBatch(codes, np.array([0, 1, 1, 1, 2, 2])), Seeded(1))
    assert len(kept) == 3
    assert kept[0, 0] == 0
    assert 1 <= kept[1, 0] <= 3
    assert 4 <= kept[2, 0] <= 5
    alone = one_row_each(RowBatch(codes, np.arange(6)), Seeded(1))
    assert np.array_equal(alone, codes)
