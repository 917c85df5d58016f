"""Counts: integers of any family merge, and are what oracles make of the reports."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation.aggregate import counts_of
from sottovoce.aggregation.answer_counts import AnswerCounts
from sottovoce.aggregation.counts import Counts
from sottovoce.aggregation.merging import is_rising, sum_equal
from sottovoce.aggregation.row_counts import RowCounts
from sottovoce.aggregation.rows import CountedRows, distinct_rows
from sottovoce.aggregation.sum_counts import SumCounts
from sottovoce.aggregation.table_counts import TableCounts
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles import SummedOracle
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import (
    Block,
    Listed,
    Signs,
)
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.models.signs import sign_family
from tests.family_plans import (
    KINDS,
    ask,
    each_family,
    plan_of,
    reports_of,
)
from tests.vectors.asks import Asks


def test_what_is_kept_is_chosen_by_keep_and_not_by_the_class_of_a_family() -> None:
    """The same cohorts, in two plans: of the one sums are kept, of the other rows."""
    expected = {
        "listed": TableCounts,
        "subsets": TableCounts,
        "views": TableCounts,
        "signs": AnswerCounts,
        "together": RowCounts,
        "kept": SumCounts,
    }
    assert {kind: type(counts_of(plan_of(kind).cohorts)) for kind in KINDS} == expected
    for kind in ("listed", "kept"):
        cohorts = list(KINDS[kind](Decimal(2)))
        sums, rows = Listed(cohorts), Listed(cohorts, keep="rows")
        assert (sums.kind, rows.kind) == ("listed", "together")
        assert sums != rows
        assert isinstance(counts_of(sums), SumCounts if kind == "kept" else TableCounts)
        assert isinstance(counts_of(rows), RowCounts)
        with pytest.raises(InvalidInput, match=r"keep \(row\) must be one of sums, rows"):
            Listed(cohorts, keep="row")  # type: ignore[arg-type]
        assert counts_of(sums).holds_reports is (kind == "kept")
        assert counts_of(rows).holds_reports


def rows_of(counts: Counts, index: int, asks: Any) -> Any:
    """What is counted: the rows of a cohort, and how often each was sent."""
    seen: list[Any] = []

    def count(payloads: Any, people: Any) -> Any:
        seen.append((payloads, people))
        return np.zeros(0, np.int64)

    counts.count_rows(index, asks, count)
    return seen[0]


@pytest.mark.parametrize("kind", ["listed", "kept"])
def test_sums_and_rows_support_the_same_values(kind: str) -> None:
    cohorts = list(KINDS[kind](Decimal(2)))
    reports = reports_of(plan_of(kind))
    both = [counts_of(Listed(cohorts, keep=keep)) for keep in ("sums", "rows")]
    for counts in both:
        for batch in counts.cohorts.batches(reports.cohorts):
            counts.add(batch, reports.cohorts[batch.rows], reports.payload[batch.rows])
    sums, rows = both
    assert sums.people == rows.people == 400
    for index, cohort in enumerate(cohorts):
        assert sums.cohort_people(index) == rows.cohort_people(index)
        for place, oracle in enumerate(cohort.oracles):
            assert sums.support(index, place).tolist() == rows.support(index, place).tolist()
            if isinstance(oracle, SummedOracle):
                assert sums.state(index, place).tolist() == rows.state(index, place).tolist()
                with pytest.raises(InvalidInput, match="not kept together"):
                    rows_of(sums, index, [place])
            else:
                (told,), people_ = rows_of(sums, index, [place])
                assert people_ is None
                (other,), _ = rows_of(rows, index, [place])
                assert sorted(map(bytes, told)) == sorted(map(bytes, other))
                for counts in both:
                    with pytest.raises(InvalidInput, match="have no sums"):
                        counts.state(index, place)
        if len(cohort.oracles) > 1:
            with pytest.raises(InvalidInput, match="not kept together"):
                rows_of(sums, index, [0, 1])
            parts, counted = rows_of(rows, index, [1, 0])
            own = reports.payload[reports.cohorts == index]
            wanted = [np.concatenate([row[cohort.slices[1]], row[cohort.slices[0]]]) for row in own]
            found = np.concatenate(parts, axis=1)
            found = np.repeat(found, 1 if counted is None else counted, axis=0)
            assert sorted(map(bytes, found)) == sorted(map(bytes, wanted))
    with pytest.raises(InvalidInput, match="one by one"):
        _ = sums.answers


@each_family
def test_any_split_and_order_gives_the_same_bytes(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    whole = sv.Aggregate(plan).add(reports)
    mixed = np.random.default_rng(9).permutation(len(reports))
    shuffled = sv.Reports(plan.id, reports.cohorts[mixed], reports.payload[mixed])
    a, b, c = (sv.Aggregate(plan).add(shuffled[start : start + 150]) for start in (0, 150, 300))
    for merged in (
        a.merge(b).merge(c),
        c.merge(a.merge(b)),
        b.merge(sv.Aggregate(plan)).merge(c).merge(a),
    ):
        assert merged.to_bytes() == whole.to_bytes()
        assert merged.people == 400
    assert sv.Aggregate(plan).add(iter([shuffled[:7], shuffled[7:]])) == whole
    assert sv.Aggregate(plan).people == 0
    assert sv.Aggregate(plan).add(reports[:399]) != whole


@each_family
def test_one_by_one_is_the_batch_and_merging_changes_neither(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan, 60)
    single = sv.Aggregate(plan)
    for report in reports.single(plan):
        single.add(report)
    batch = sv.Aggregate(plan).add(reports)
    assert single == batch
    before = single.to_bytes(), batch.to_bytes()
    single.merge(batch).add(reports)
    assert (single.to_bytes(), batch.to_bytes()) == before


@each_family
def test_bytes_survive_and_damage_is_refused(kind: str) -> None:
    plan = plan_of(kind)
    whole = sv.Aggregate(plan).add(reports_of(plan))
    again = sv.Aggregate.from_bytes(plan, whole.to_bytes())
    assert again == whole
    more = reports_of(plan, seed=2)
    assert again.add(more) == whole.merge(sv.Aggregate(plan).add(more))
    assert sv.Aggregate.from_bytes(plan, sv.Aggregate(plan).to_bytes()).people == 0
    with pytest.raises(CorruptReport):
        counts_of(plan.cohorts).read(whole.counts.to_bytes() + bytes(16))


@each_family
def test_a_cohort_is_what_its_oracles_make_of_its_reports(kind: str) -> None:
    plan = plan_of(kind)
    reports = reports_of(plan)
    whole = sv.Aggregate(plan).add(reports)
    for index in {*reports.cohorts[:20].tolist(), len(plan.cohorts) - 1}:
        cohort = plan.cohorts[index]
        own = reports.payload[reports.cohorts == index]
        assert whole.cohort_people(index) == len(own)
        for place, (oracle, part) in enumerate(zip(cohort.oracles, cohort.slices, strict=True)):
            if isinstance(oracle, SummedOracle):
                brute = oracle.accumulate(oracle.empty(), np.ascontiguousarray(own[:, part]))
                assert np.array_equal(whole.state(index, place), brute)
    assert sv.Aggregate(plan).cohort_people(0) == 0


def joint(rows: list[bytes], counts: list[int]) -> bytes:
    return len(counts).to_bytes(8, "little") + np.array(counts, "<i8").tobytes() + b"".join(rows)


def test_a_joint_ledger_holds_each_report_once_in_order() -> None:
    plan = plan_of("together")
    counts = sv.Aggregate(plan).add(reports_of(plan, 5000)).counts
    assert isinstance(counts, RowCounts)
    payloads, counts = rows_of(counts, 0, range(4))
    listed_rows = [bytes(4) + row.tobytes() for row in np.concatenate(payloads, axis=1)]
    assert listed_rows == sorted(set(listed_rows))
    assert counts is not None
    assert int(counts.sum()) == 5000
    assert int(counts.max()) > 1
    first, second = listed_rows[:2]
    fine = counts_of(plan.cohorts)
    fine.read(joint([first, second], [1, 2]))
    assert fine.people == 3
    for rows_, counts_ in (
        ([second, first], [1, 1]),  # not increasing
        ([first, first], [1, 1]),  # one report twice
        ([first, second], [0, 1]),
        ([first, second], [1, 1 << 62]),
        ([first[:1] + b"\x03" + first[2:]], [1]),  # an answer beyond the three of b
        ([first], [1, 1]),
        ([first + second], [1]),
    ):
        with pytest.raises(CorruptReport):
            counts_of(plan.cohorts).read(joint(rows_, counts_))


def test_rows_of_any_width_are_counted_in_the_order_of_their_bytes() -> None:
    draws = np.random.default_rng(1)
    for width in (1, 7, 8, 9, 21):
        rows = draws.integers(0, 2, (200, width)).astype(np.uint8) * 255
        counts = draws.integers(1, 5, 200)
        expected: dict[bytes, int] = {}
        for row, count in zip(rows, counts.tolist(), strict=True):
            expected[row.tobytes()] = expected.get(row.tobytes(), 0) + count
        found = distinct_rows(CountedRows(rows, counts))
        assert found.counts is not None
        pairs = zip(map(bytes, found.payload), found.counts.tolist(), strict=True)
        assert list(pairs) == sorted(expected.items())
        assert distinct_rows(found) is found


def test_equal_things_are_summed_as_one_by_one() -> None:
    draws = np.random.default_rng(2)
    for width in (1, 2, 3):
        keys = [draws.integers(-2, 3, 300) for _ in range(width)]
        for counts in (None, draws.integers(-2, 3, 300)):
            expected: dict[tuple[int, ...], int] = {}
            for row, key in enumerate(zip(*(key.tolist() for key in keys), strict=True)):
                expected[key] = expected.get(key, 0) + (1 if counts is None else int(counts[row]))
            expected = {key: count for key, count in expected.items() if count}
            places, sums = sum_equal(keys, counts)
            found = list(zip(*(key[places].tolist() for key in keys), strict=True))
            assert list(zip(found, sums.tolist(), strict=True)) == sorted(expected.items())
            assert is_rising([key[places] for key in keys], strictly=True)
    assert not is_rising([np.array([1, 1]), np.array([2, 2])], strictly=True)
    assert is_rising([np.array([1, 1]), np.array([2, 2])], strictly=False)
    assert not is_rising([np.array([1, 1]), np.array([3, 2])], strictly=False)
    assert is_rising([np.zeros(0, int)], strictly=True)


def test_a_tally_refuses_answers_and_cohorts_that_cannot_be() -> None:
    plan = plan_of("signs")
    family = plan.cohorts
    counts = sv.Aggregate(plan).add(reports_of(plan)).counts
    assert isinstance(counts, AnswerCounts)
    assert isinstance(family, Signs)
    cohorts, _, counts = counts.answers
    assert int(counts.sum()) == 400
    assert bool((np.diff(cohorts) >= 0).all())
    bits = family.answer_bits
    for keys, numbers in (
        ([5, 4], [1, 1]),
        ([4, 4], [1, 1]),
        ([4], [0]),
        ([-1], [1]),
        ([len(family) << bits], [1]),
        ([(1 << bits) - 1], [1]),  # the first cohort reports one bit
    ):
        body = np.array([*keys, *numbers], "<i8").tobytes()
        with pytest.raises(CorruptReport):
            counts_of(family).read(body)


def test_the_only_ask_of_an_only_cohort_is_still_checked() -> None:
    """A report with padding that is not zero must not slip in, whatever counts the answers."""
    alone = sv.Schema(a=sv.Boolean())
    cell = Cells.of(alone, "a")
    coin = sv.oracle("rr", size=2, epsilon=1.0)
    families = (
        Listed([Cohort((Ask(cell, coin),))]),
        Listed([Cohort((Ask(cell, coin),))], keep="rows"),
        sign_family(alone, ["a"], [1], [Block("parity", 1)], Decimal(1)),
    )
    for family in families:
        plan = Plan.write(
            alone, {"kind": Asks.kind, "name": ""}, Terms.of(1, 1000), family, Series(), "device"
        )
        column = np.zeros(3, np.uint32)
        whole = sv.Aggregate(plan).add(
            sv.Reports(plan.id, column, np.array([[0], [1], [1]], np.uint8))
        )
        with pytest.raises(CorruptReport):
            whole.add(sv.Reports(plan.id, column, np.array([[0], [1], [2]], np.uint8)))
        assert whole.people == whole.counts.magnitude == 3


def test_answers_of_several_cohorts_are_kept_together() -> None:
    """Each cohort gets back its own reports, every person's answers in one row, however they came
    in.
    """
    family = Listed(
        [Cohort((ask("a", "rr", 1.0), ask("b", "grr", 1.0))), Cohort((ask("b", "grr", 1.0),))],
        keep="rows",
    )
    wide, narrow = (cohort.bytes for cohort in family)
    draws = np.random.default_rng(5)
    cohorts = draws.integers(0, 2, 400).astype(np.uint32)
    payload = draws.integers(0, 2, (400, wide)).astype(np.uint8)
    payload[cohorts == 1, narrow:] = 0
    counts, other = counts_of(family), counts_of(family)
    order = draws.permutation(400)
    for batch in family.batches(cohorts):
        counts.add(batch, cohorts[batch.rows], payload[batch.rows])
    for rows in np.array_split(order, 7):
        for batch in family.batches(cohorts[rows]):
            other.add(batch, cohorts[rows][batch.rows], payload[rows][batch.rows])
    assert counts.to_bytes() == other.to_bytes()
    back = counts_of(family)
    back.read(counts.to_bytes())
    assert isinstance(back, RowCounts)
    for index, cohort in enumerate(family):
        parts, counted = rows_of(back, index, range(len(cohort.oracles)))
        seen = np.repeat(np.concatenate(parts, axis=1), counted, axis=0)
        own = payload[cohorts == index, : cohort.bytes]
        assert sorted(map(bytes, seen)) == sorted(map(bytes, own))
        assert back.cohort_people(index) == len(own)
    beyond = bytearray(counts.to_bytes())
    beyond[-wide - 4 : -wide] = (7).to_bytes(4, "big")
    with pytest.raises(CorruptReport, match="cohort must be below 2"):
        counts_of(family).read(bytes(beyond))
    padded = counts.to_bytes()[:-1] + b"\1"
    with pytest.raises(CorruptReport, match="padding"):
        counts_of(family).read(padded)


@pytest.mark.parametrize("kind", KINDS)
def test_an_aggregate_that_forgot_all_reports_is_a_new_one(kind: str) -> None:
    plan = plan_of(kind)
    some, more = reports_of(plan, seed=1), reports_of(plan, seed=2)
    new = sv.Aggregate(plan).add(more)
    used = sv.Aggregate(plan).add(some)
    before = sv.Aggregate(plan).absorb(used)
    used.clear()
    assert (used.people, used.magnitude) == (0, 0)
    assert used == sv.Aggregate(plan)
    assert used.to_bytes() == sv.Aggregate(plan).to_bytes()
    assert used.add(more) == new
    assert used.to_bytes() == new.to_bytes()
    assert list(used.pieces()) == list(new.pieces())
    assert before == sv.Aggregate(plan).add(some)  # what was copied stays
