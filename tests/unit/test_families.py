"""Families: ranks invert, tickets give the weights, devices and columns agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import (
    FAMILIES,
    Choices,
    Signs,
)
from sottovoce.protocol.plan import Plan
from tests.family_plans import (
    KINDS,
    NAMES,
    SCHEMA,
    each_family,
    people,
    plan_of,
)
from tests.statistics import NO_COINS, chi_limit, chi_squared


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


@pytest.mark.parametrize("kind", ["subsets", "views", "signs", "together"])
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
