"""Families and counts: ranks invert, tickets give the weights, devices and columns agree, integers
merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.aggregation.aggregate import counts_of
from sottovoce.aggregation.answer_counts import AnswerCounts
from sottovoce.aggregation.merging import is_rising, sum_equal
from sottovoce.aggregation.row_counts import RowCounts
from sottovoce.aggregation.rows import CountedRows, distinct_rows
from sottovoce.aggregation.sum_counts import SumCounts
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles import SummedOracle
from sottovoce.oracles.rules import oracle_by
from sottovoce.protocol import question_forms
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import (
    FAMILIES,
    Block,
    Choices,
    Family,
    Listed,
    Signs,
    Subsets,
)
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.questions.marginals.models.signs import sign_family
from sottovoce.schema import Schema
from tests.statistics import NO_COINS, chi_limit, chi_squared

SCHEMA = sv.Schema(
    a=sv.Boolean(),
    b=sv.Categorical(range(3)),
    c=sv.Categorical(range(4)),
    d=sv.Categorical(range(5)),
)
NAMES = ("a", "b", "c", "d")
SIZES = (2, 3, 4, 5)


def ask(name: str, oracle: str, epsilon: float) -> Ask:
    cells = Cells.of(SCHEMA, name)
    return Ask(cells, sv.oracle(oracle, size=cells.size, epsilon=epsilon))


def listed(epsilon: Decimal) -> Family:
    half = float(epsilon) / 2
    split = Cohort((ask("b", "grr", half), ask("c", "oue", half)), weight=2)
    return Listed([split, Cohort((ask("d", "olh", float(epsilon)),), weight=3)])


def subsets(epsilon: Decimal) -> Family:
    return Subsets(SCHEMA, NAMES, 2, "grr", epsilon, oracle_by)


def signs(epsilon: Decimal) -> Family:
    blocks = [Block("parity", 1, 3), Block("parity", 3), Block("corner", 2, 2), Block("star", 3)]
    return sign_family(SCHEMA, NAMES, [3, 1, 2, 1], blocks, epsilon)


def together(epsilon: Decimal) -> Family:
    part = float(epsilon) / 4
    asks = (
        ask("a", "rr", part),
        ask("b", "grr", part),
        ask("d", "hr", part),
        ask("c", "oue", part),
    )
    return Listed([Cohort(asks)], keep="rows")


def kept(epsilon: Decimal) -> Family:
    """Reports that cannot be summed beside such that can, in one cohort."""
    part = float(epsilon) / 4
    asks = ask("b", "olh-seeded", part), ask("c", "oue", part), ask("d", "olh-wide", 2 * part)
    return Listed([Cohort(asks), Cohort((ask("d", "olh-seeded", 4 * part),), weight=2)])


KINDS: Mapping[str, Callable[[Decimal], Family]] = {
    "listed": listed,
    "subsets": subsets,
    "signs": signs,
    "together": together,
    "kept": kept,
}
each_family = pytest.mark.parametrize("kind", list(KINDS))


@dataclass(frozen=True)
class Asks(Question):
    """A question that only names one of the families above."""

    kind: ClassVar[str] = "families"
    family: str

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        return KINDS[self.family](terms.epsilon)

    def estimate(self, aggregate: Any, **options: Any) -> Any:
        raise NotImplementedError

    def explain(self, plan: Plan) -> list[str]:
        return []

    def to_json(self) -> dict[str, Any]:
        return {"family": self.family}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


# read with the others, in these tests alone
question_forms.QUESTIONS += (
    question_forms.QuestionForm(Asks.kind, ("family",), f"{__name__}:Asks"),
)


def plan_of(kind: str, epsilon: float = 2.0) -> Plan:
    return sv.plan(SCHEMA, Asks(kind), epsilon=epsilon, people=1000)


def people(count: int, seed: int = 1) -> dict[str, Any]:
    draws = np.random.default_rng(seed)
    return {name: draws.integers(0, size, count) for name, size in zip(NAMES, SIZES, strict=True)}


def reports_of(plan: Plan, count: int = 400, seed: int = 1) -> sv.Reports:
    return sv.simulate(plan, people(count, seed), seed=seed)


# -- families


@pytest.mark.parametrize(
    ("weights", "order"), [((1, 1, 1, 1, 1), 3), ((3, 1, 7, 2), 2), ((2, 5), 1), ((4, 2, 3), 3)]
)
def test_ranks_and_choices_are_each_others_inverse(weights: tuple[int, ...], order: int) -> None:
    choices = Choices(weights, order)
    found = [choices.unrank(rank) for rank in range(choices.total)]
    assert len(set(found)) == choices.total
    assert found == sorted(
        found, key=lambda one: [part for pair in zip(*one, strict=True) for part in pair]
    )
    for rank, (members, digits) in enumerate(found):
        assert list(members) == sorted(set(members))
        assert all(
            0 <= digit < weights[member] for member, digit in zip(members, digits, strict=True)
        )
        assert choices.rank(members, digits) == rank
    columns = choices.unrank_column(np.arange(choices.total))
    assert [tuple(row) for row in columns[0].tolist()] == [members for members, _ in found]
    assert [tuple(row) for row in columns[1].tolist()] == [digits for _, digits in found]
    assert choices.rank_column(*columns).tolist() == list(range(choices.total))


@each_family
def test_every_ticket_has_its_cohort_and_every_cohort_its_weight(kind: str) -> None:
    cohorts = plan_of(kind).cohorts
    found = cohorts.at_column(np.arange(cohorts.weight))
    assert np.bincount(found, minlength=len(cohorts)).tolist() == [
        cohort.weight for cohort in cohorts
    ]
    assert [cohorts.at(ticket) for ticket in range(0, cohorts.weight, 7)] == found[::7].tolist()
    assert len(list(cohorts)) == len(cohorts)
    with pytest.raises((InvalidInput, IndexError)):
        cohorts[len(cohorts)]


def test_a_sign_is_found_by_its_attributes_and_masks() -> None:
    family = plan_of("signs").cohorts
    assert isinstance(family, Signs)
    for number, block in enumerate(family.blocks):
        column = np.arange(family.starts[number], family.starts[number + 1])
        members, masks = family.reach(number, column)
        assert family.cohorts_of(number, members, masks).tolist() == column.tolist()
        assert set(family.numbers(column).tolist()) == {number}
        for index, row, mask in zip(column.tolist(), members.tolist(), masks.tolist(), strict=True):
            encoding = family[index].asks[0].encoding
            assert encoding.attributes == tuple(NAMES[place] for place in row)
            ones = np.array(block.products)
            assert encoding.products == tuple(
                tuple((ones[bit] * mask).tolist()) for bit in range(len(ones))
            )


@each_family
def test_a_plan_with_these_cohorts_reads_back(kind: str) -> None:
    plan = plan_of(kind)
    again = Plan.from_json(plan.to_json(), id=plan.id)
    assert again.cohorts == plan.cohorts
    assert type(again.cohorts) is type(plan.cohorts)
    assert again.cohorts.keep == plan.cohorts.keep
    assert again.guarantee == plan.guarantee
    assert 1.9 < plan.guarantee.per_report <= 2.0
    assert FAMILIES[plan.cohorts.kind] is type(plan.cohorts)


def test_a_plan_whose_coins_were_changed_is_refused() -> None:
    for kind in KINDS:
        text = plan_of(kind).to_json()
        coin = text.split('"thresholds": {')[1].split('"')[3]
        with pytest.raises(InvalidInput):
            Plan.from_json(text.replace(coin, str(int(coin) + 1)))


@each_family
def test_a_batch_encodes_what_its_cohorts_encode_one_by_one(kind: str) -> None:
    cohorts = plan_of(kind).cohorts
    table = people(300)
    codes = SCHEMA.encode_table(table, cohorts.attributes)
    column = cohorts.at_column(np.random.default_rng(2).integers(0, cohorts.weight, 300))
    seen = 0
    for batch in cohorts.batches(column):
        values = cohorts.values(batch, column, codes, 0)
        rows = np.arange(300)[batch.rows]
        for place, row in enumerate(rows.tolist()):
            cohort = cohorts[int(column[row])]
            own = {name: int(codes[name][row]) for name in cohort.attributes}
            assert cohort.oracles == batch.oracles
            assert [int(each[place]) for each in values] == [
                ask.encoding.encode(own, NO_COINS) for ask in cohort.asks
            ]
        seen += len(rows)
    assert seen == 300


RECORD = {"a": 1, "b": 2, "c": 3, "d": 1}
OTHER = {"a": 0, "b": 0, "c": 1, "d": 4}


def law_of(plan: Plan, record: Mapping[str, int]) -> dict[tuple[int, tuple[Any, ...]], float]:
    """The chance of each (cohort, outputs) that one record can send, from all ways the coins can
    fall.
    """
    law: dict[tuple[int, tuple[Any, ...]], float] = {}
    for index, cohort in enumerate(plan.cohorts):
        ways: dict[tuple[Any, ...], float] = {(): cohort.weight / plan.cohorts.weight}
        for one in cohort.asks:
            chances = one.oracle.exact_channel()[one.encoding.encode(record, NO_COINS)]
            ways = {
                (*key, out): share * float(p)
                for key, share in ways.items()
                for out, p in chances.items()
            }
        law.update({(index, key): share for key, share in ways.items()})
    return law


@pytest.mark.parametrize("kind", ["subsets", "signs", "together"])
def test_a_device_and_a_simulated_crowd_have_the_same_law(kind: str) -> None:
    plan = plan_of(kind)
    law = law_of(plan, RECORD)
    outputs, expected = list(law), np.array(list(law.values()))
    assert expected.sum() == pytest.approx(1)

    def read(report: sv.Report) -> tuple[int, tuple[Any, ...]]:
        cohort = plan.cohorts[report.cohort]
        parts = zip(cohort.asks, cohort.slices, strict=True)
        return report.cohort, tuple(one.oracle.unpack(report.payload[part]) for one, part in parts)

    entropy = Seeded(3)
    device = [read(sv.Client(plan, entropy=entropy).report(RECORD)) for _ in range(3000)]
    crowd = sv.simulate(plan, {name: [value] * 8000 for name, value in RECORD.items()}, seed=4)
    simulated = [read(report) for report in crowd.single(plan)]
    wrong = sv.simulate(plan, {name: [value] * 8000 for name, value in OTHER.items()}, seed=5)
    for drawn, is_right in (
        (device, True),
        (simulated, True),
        ([read(each) for each in wrong.single(plan)], False),
    ):
        statistic, degrees = chi_squared(outputs, expected, drawn)
        assert (statistic < chi_limit(degrees, 9)) is is_right


# -- counts


def test_what_is_kept_is_chosen_by_keep_and_not_by_the_class_of_a_family() -> None:
    """The same cohorts, in two plans: of the one sums are kept, of the other rows."""
    expected = {
        "listed": SumCounts,
        "subsets": SumCounts,
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
        assert isinstance(counts_of(sums), SumCounts)
        assert isinstance(counts_of(rows), RowCounts)
        with pytest.raises(InvalidInput, match=r"keep \(row\) must be one of sums, rows"):
            Listed(cohorts, keep="row")  # type: ignore[arg-type]
        assert counts_of(sums).holds_reports is (kind == "kept")
        assert counts_of(rows).holds_reports


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
                    sums.rows(index, [place])
            else:
                (told,), people_ = sums.rows(index, [place])
                assert people_ is None
                (other,), _ = rows.rows(index, [place])
                assert sorted(map(bytes, told)) == sorted(map(bytes, other))
                for counts in both:
                    with pytest.raises(InvalidInput, match="have no sums"):
                        counts.state(index, place)
        if len(cohort.oracles) > 1:
            with pytest.raises(InvalidInput, match="not kept together"):
                sums.rows(index, [0, 1])
            parts, counted = rows.rows(index, [1, 0])
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
        for ask, (oracle, part) in enumerate(zip(cohort.oracles, cohort.slices, strict=True)):
            if isinstance(oracle, SummedOracle):
                brute = oracle.accumulate(oracle.empty(), np.ascontiguousarray(own[:, part]))
                assert np.array_equal(whole.state(index, ask), brute)
    assert sv.Aggregate(plan).cohort_people(0) == 0


def joint(rows: list[bytes], counts: list[int]) -> bytes:
    return len(counts).to_bytes(8, "little") + np.array(counts, "<i8").tobytes() + b"".join(rows)


def test_a_joint_ledger_holds_each_report_once_in_order() -> None:
    plan = plan_of("together")
    counts = sv.Aggregate(plan).add(reports_of(plan, 5000)).counts
    assert isinstance(counts, RowCounts)
    payloads, counts = counts.rows(0, range(4))
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
            alone, {"kind": Asks.kind, "family": ""}, Terms.of(1, 1000), family, Series(), "device"
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
        parts, counted = back.rows(index, range(len(cohort.oracles)))
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
