"""Folding in one pass: tables hold the integers that folding cohort by cohort gives, for every
oracle, with weights and without, however the reports are split.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation.aggregate import counts_of
from sottovoce.aggregation.answer_counts import AnswerCounts
from sottovoce.aggregation.counts import Counts
from sottovoce.aggregation.sum_counts import SumCounts
from sottovoce.aggregation.table_counts import MAX_TABLED_CELLS, TableCounts
from sottovoce.aggregation.tallies import (
    MAX_DENSE_CELLS,
    DenseTally,
    SparseTally,
    Tally,
    tally_of,
)
from sottovoce.ground.errors import CorruptReport
from sottovoce.oracles import SummedOracle, oracle
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.families.base import FEW_LABELS, rows_by
from tests.family_plans import KINDS
from tests.oracles import NAMES

TABLE = sv.Schema(x=sv.Categorical(range(37)), y=sv.Boolean(), z=sv.Categorical(range(200)))
SUMMED = [
    name
    for name in NAMES
    if isinstance(oracle(name, size=2 if name == "rr" else 37, epsilon=1.5), SummedOracle)
]


def reports_under(family: Family, count: int, seed: int = 1) -> tuple[Any, Any]:
    """Cohorts at random, and what people whose values are random say in them."""
    draws = np.random.default_rng(seed)
    cohorts = draws.integers(0, len(family), count).astype(np.uint32)
    payload = np.zeros((count, family.bytes), np.uint8)
    for number, members, oracles in family.grouping:
        rows = np.flatnonzero(np.isin(cohorts, members))
        start = 0
        for each in oracles:
            stop = start + each.layout.bytes
            values = draws.integers(0, each.size, len(rows)).astype(np.uint64)
            payload[rows, start:stop] = each.simulate(values, seed + number)
            start = stop
    return cohorts, payload


def folded(counts: Counts, cohorts: Any, payload: Any, weights: Any, parts: int) -> Counts:
    """The same reports in so many parts."""
    for rows in np.array_split(np.arange(len(cohorts)), parts):
        column = cohorts[rows]
        own = None if weights is None else weights[rows]
        counts.grow(len(rows) if own is None else int(np.abs(own).sum()))
        for batch in counts.cohorts.groups(column):
            share = None if own is None else own[batch.rows]
            counts.add(batch, column[batch.rows], payload[rows][batch.rows], share)
    return counts


def same_as_cohort_by_cohort(family: Family) -> None:
    cohorts, payload = reports_under(family, 900)
    draws = np.random.default_rng(5)
    for weights in (None, draws.integers(0, 4, 900), draws.integers(-5, 6, 900)):
        plain = folded(SumCounts(family), cohorts, payload, weights, 1)
        for parts in (1, 3):
            fast = folded(TableCounts(family), cohorts, payload, weights, parts)
            assert fast.to_bytes() == plain.to_bytes()
            assert (fast.people, fast.fewest) == (plain.people, plain.fewest)
            assert fast.is_signed == plain.is_signed
            assert fast.holds_reports == plain.holds_reports
        back = TableCounts(family)
        back.read(plain.to_bytes())
        assert back.to_bytes() == plain.to_bytes()
        assert back.holds_same(fast)
        assert fast.merge(back).to_bytes() == plain.merge(plain).to_bytes()
        for index in (0, len(family) - 1):
            assert fast.cohort_people(index) == plain.cohort_people(index)
            assert fast.state(index, 0).tolist() == plain.state(index, 0).tolist()
            assert fast.support(index, 0).tolist() == plain.support(index, 0).tolist()


@pytest.mark.parametrize("name", SUMMED)
def test_tables_hold_what_folding_cohort_by_cohort_gives(name: str) -> None:
    cells = Cells.of(TABLE, "y" if name == "rr" else "x")
    options = {"hashes": 16, "width": 32} if name in ("cms", "hcms") else {}
    ask = Ask(cells, oracle(name, size=cells.size, epsilon=1.5, **options))
    same_as_cohort_by_cohort(Listed([Cohort((ask,))] * 11))


@pytest.mark.parametrize("kind", ["listed", "subsets", "views"])
def test_tables_of_cohorts_with_other_oracles(kind: str) -> None:
    same_as_cohort_by_cohort(KINDS[kind](Decimal(2)))


def test_tables_of_several_asks_and_words() -> None:
    wide = Ask(Cells.of(TABLE, "z"), oracle("oue", size=200, epsilon=1))
    narrow = Ask(Cells.of(TABLE, "x"), oracle("ss", size=37, epsilon=1))
    same_as_cohort_by_cohort(Listed([Cohort((wide, narrow))] * 3 + [Cohort((narrow,))] * 20))


def test_a_row_in_the_wrong_table_row_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Listed([Cohort((Ask(Cells.of(TABLE, "x"), oracle("ss", size=37, epsilon=1)),))] * 11)
    own = type(family[0].oracles[0])
    right = own._accumulate_groups

    def wrong(self: Any, states: Any, groups: Any, payload: Any, weights: Any) -> None:
        right(self, states, np.maximum(groups - 1, 0), payload, weights)

    monkeypatch.setattr(own, "_accumulate_groups", wrong)
    with pytest.raises(AssertionError):
        same_as_cohort_by_cohort(family)


def test_tables_are_for_several_cohorts_whose_states_are_small() -> None:
    cells = Cells.of(TABLE, "x")
    cohort = Cohort((Ask(cells, oracle("ss", size=37, epsilon=1)),))
    assert isinstance(counts_of(Listed([cohort])), SumCounts)
    most = MAX_TABLED_CELLS // 37
    assert isinstance(counts_of(Listed([cohort] * most)), TableCounts)
    assert isinstance(counts_of(Listed([cohort] * (most + 1))), SumCounts)


def test_states_of_another_shape_are_refused() -> None:
    cells = Cells.of(TABLE, "x")
    family = Listed([Cohort((Ask(cells, oracle("ss", size=37, epsilon=1)),))] * 3)
    cohorts, payload = reports_under(family, 30)
    body = folded(counts_of(family), cohorts, payload, None, 1).to_bytes()
    with pytest.raises(CorruptReport, match="another shape"):
        counts_of(family).read(body.replace(b"[37]", b"[36]"))


def signs_in(family: Family, tally: Tally) -> AnswerCounts:
    counts = AnswerCounts(family)
    counts._tally = tally
    return counts


def absorbed(one: Counts, other: Counts) -> bytes:
    """The bytes of the first, which takes in the second."""
    one.absorb(other)
    return one.to_bytes()


def same_dense_as_sparse(dense: Callable[[int], Tally]) -> None:
    family = KINDS["signs"](Decimal(2))
    assert isinstance(counts_of(family), AnswerCounts)
    size = len(family) << (family.answer_bits or 0)
    cohorts, payload = reports_under(family, 900)
    draws = np.random.default_rng(5)
    for weights in (None, draws.integers(0, 4, 900), draws.integers(-5, 6, 900)):
        plain = folded(signs_in(family, SparseTally()), cohorts, payload, weights, 1)
        for parts in (1, 3):
            fast = folded(signs_in(family, dense(size)), cohorts, payload, weights, parts)
            assert fast.to_bytes() == plain.to_bytes()
            assert (fast.people, fast.fewest) == (plain.people, plain.fewest)
            assert fast.is_signed == plain.is_signed
            twice = [
                absorbed(signs_in(family, tally), counts)
                for tally, counts in ((dense(size), fast), (SparseTally(), plain))
            ]
            assert twice[0] == twice[1] == fast.to_bytes()
            for index in range(len(family)):
                assert fast.cohort_people(index) == plain.cohort_people(index)
                assert fast.state(index, 0).tolist() == plain.state(index, 0).tolist()


def test_dense_tallies_hold_what_sparse_ones_hold() -> None:
    same_dense_as_sparse(DenseTally)


def test_a_dense_tally_that_counts_equal_numbers_once_is_told_apart() -> None:
    class Once(DenseTally):
        def add(self, numbers: Any, counts: Any) -> None:
            self._cells[numbers] += 1 if counts is None else counts

    with pytest.raises(AssertionError):
        same_dense_as_sparse(Once)


def test_tallies_are_dense_where_they_are_small() -> None:
    assert isinstance(tally_of(MAX_DENSE_CELLS), DenseTally)
    assert isinstance(tally_of(MAX_DENSE_CELLS + 1), SparseTally)


@pytest.mark.parametrize("count", [2, FEW_LABELS, FEW_LABELS + 1])
def test_rows_of_labels_are_found_with_and_without_sorting(count: int) -> None:
    labels = np.random.default_rng(2).integers(0, count, 200)
    for column in (labels, np.sort(labels), np.zeros(5, np.int64), labels[:0]):
        found = {label: np.arange(len(column))[rows] for label, rows in rows_by(column, count)}
        assert list(found) == sorted(set(column.tolist()))
        for label, rows in found.items():
            assert np.array_equal(rows, np.flatnonzero(column == label))
