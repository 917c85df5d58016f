"""What sums and averages can be at all, and what is noted of values that nobody holds."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.questions.queries.sql.expressions import Product, Weight
from sottovoce.questions.queries.sql.measures import EstimatedNumber
from sottovoce.questions.queries.sql.possible import possible
from sottovoce.questions.queries.sql.rows import RowGroup
from tests.sql.plans import plan, reports

AGES = (((0,), np.array([-2.0, 1.0, 3.0])),)


def test_sums_lie_between_those_of_the_least_and_of_the_most() -> None:
    values = np.array([4.0, -1.0, 0.5, 2.0])
    products = (Product(2.0, Weight("w", values), AGES), Product(-1.0), Product(1.0, None, AGES))
    groups = [RowGroup(np.array([0, 1]), (0,), 2), RowGroup(np.array([3]), (1,), 1)]
    found = possible(products, groups)
    lows, highs = [], []
    for value in values[[0, 1, 3]]:
        # each product by itself, whatever the whispered value is
        ends = [2 * value * age for age in (-2.0, 1.0, 3.0)]
        lows.append(min(ends) - 1 - 2)
        highs.append(max(ends) - 1 + 3)
    assert (found.each_low, found.each_high) == (min(lows), max(highs))
    assert found.low == pytest.approx(sum(min(low, 0.0) for low in lows))
    assert found.high == pytest.approx(sum(max(high, 0.0) for high in highs))


def test_without_a_weight_all_reports_are_alike() -> None:
    found = possible((Product(1.0, None, AGES),), [RowGroup(None, (), 50)])
    assert (found.low, found.high) == (-100.0, 150.0)
    assert (found.each_low, found.each_high) == (-2.0, 3.0)


def test_a_value_that_cannot_be_stays_within_its_interval() -> None:
    found = possible((Product(1.0, None, AGES),), [RowGroup(None, (), 50)])
    cell = EstimatedNumber(160.0, 40.0, 80.0, 240.0)
    assert (found.sum_within(cell).low, found.sum_within(cell).high) == (80.0, 160.0)


def test_intervals_of_few_people_hold_nothing_that_cannot_be() -> None:
    heard = reports("auto", 2.0)[:600]
    amounts = heard.public["amount"].values / 100
    answer = sv.query(
        plan("auto", 2.0),
        heard,
        "SELECT SUM(amount), SUM(-amount), AVG(amount), AVG(age), AVG(-amount) FROM people "
        "WHERE age BETWEEN 30 AND 33 AND state = 'CA'",
    )
    (row,) = answer.rows
    total, negated, average, age, opposite = row.cells
    assert 0.0 == total.low < total.value < total.high <= amounts.sum()
    # their values differ in the last digit too
    assert negated.low == pytest.approx(-total.high, rel=1e-12)
    assert negated.high == 0.0
    for cell, low, high in (
        (average, amounts.min(), amounts.max()),
        (age, 18, 81),
        (opposite, -amounts.max(), -amounts.min()),
    ):
        assert isnan(cell.value) or low <= cell.low <= cell.value <= cell.high <= high


@pytest.mark.parametrize(
    ("condition", "note"),
    [
        ("state = 'ny'", "state = 'ny': state has no value 'ny'; did you mean 'NY'?"),
        ("channel = 'Web'", "channel = 'Web': channel has no value 'Web'; did you mean 'web'?"),
        ("channel IN ('shop', 'x')", "channel IN ('shop', 'x'): channel has no value 'x'"),
        (
            "amount > 1e6",
            "amount > 1e6: 1e6 lies above the domain of amount (0.00 to 500.00); "
            "the range is clipped to it",
        ),
    ],
)
def test_what_nobody_holds_is_noted_of_public_columns_too(condition: str, note: str) -> None:
    sql = f"SELECT COUNT(*) FROM people WHERE {condition}"
    assert list(sv.query(plan("tree", 2.0), reports("tree", 2.0), sql).notes) == [note]


def test_a_column_is_compared_with_values_that_it_has_without_a_note() -> None:
    sql = "SELECT COUNT(*) FROM people WHERE channel = 'web' AND amount > 20 AND 18 <= age"
    assert list(sv.query(plan("tree", 2.0), reports("tree", 2.0), sql).notes) == []
