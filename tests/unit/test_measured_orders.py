"""Residuals of narrow tables and wider ones filled in: the rule that chooses, and what is told."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.central import measured_orders as rule
from sottovoce.central.choice import choose
from sottovoce.central.measured_orders import best_order, measured_orders, predicted
from sottovoce.central.methods import METHODS
from sottovoce.central.residual import Residual
from sottovoce.central.residual_plan import ResidualPlan
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from tests.central_tables import known_table, ledger_of, terms_of, tied_codes, true_table

SIZES = (2, 3, 4, 2, 3)
WIDE = (9, 16, 15, 42, 7, 6)  # triples have thousands of cells


def test_what_is_not_measured_costs_nothing_and_is_marked() -> None:
    table = known_table(SIZES, tied_codes(SIZES, 2000, seed=1))
    terms = terms_of(1, 3, measured=2)
    ledger = ledger_of(terms)
    released = Residual().release(table, terms, ledger, Seeded(1))
    # the ledger is that of pairs alone, and so are the counts
    pairs = terms_of(1, 2)
    spent = ledger_of(pairs)
    narrow = Residual().release(table, pairs, spent, Seeded(1))
    assert [step.squared_mu for step in ledger.steps] == [step.squared_mu for step in spent.steps]
    for count in (1, 2):
        assert np.array_equal(released.tuples[count].counts, narrow.tuples[count].counts)
        assert np.array_equal(released.tuples[count].std_errors, narrow.tuples[count].std_errors)
    assert any("more than 2 attributes were not measured" in note for note in released.notes)
    assert any("are a guess" in note for note in released.notes)
    assert released.estimate is not None
    measured = released.estimate.marginal("a0", "a1")
    filled = released.estimate.marginal("a0", "a1", "a2")
    assert measured.is_unbiased
    assert not measured.is_reconstructed
    assert not filled.is_unbiased
    assert filled.is_reconstructed
    assert "not measured" in filled.remark
    assert (released.tuples[3].counts >= 0).all()


def test_without_noise_filled_tables_are_those_of_maximum_entropy() -> None:
    # of a chain each attribute looks at the one before, so pairs say all there is of neighbours
    codes = tied_codes((2, 3, 4), 400_000, seed=2)
    table = known_table((2, 3, 4), codes)
    terms = terms_of(10_000, 3, delta="0.5", measured=2)
    fit = Residual().fit(table, terms, ledger_of(terms), Seeded(1))
    true = true_table(codes, (2, 3, 4), (0, 1, 2)) / len(codes)
    (told,) = fit.tables([(0, 1, 2)])
    # a chain's triple differs from its pairs by sampling alone: chi-squared of (1)(2)(3) = 6
    # degrees of freedom over n is the relative squared distance, 60 is beyond its 1e-10 quantile
    distance = ((told.reshape(true.shape) - true) ** 2 / np.maximum(true, 1e-9)).sum()
    assert distance * len(codes) < 60
    # a mutant that fills in by independence is rejected
    singles = [true.sum(axis=tuple({0, 1, 2} - {axis})) for axis in range(3)]
    product = np.einsum("a,b,c->abc", *singles)
    assert ((product - true) ** 2 / np.maximum(true, 1e-9)).sum() * len(codes) > 60


def test_predicted_noise_is_that_of_the_tables() -> None:
    plan = ResidualPlan.of(SIZES, terms_of(1, 2))
    tables = []
    for places in combinations(range(len(SIZES)), 2):
        cells = SIZES[places[0]] * SIZES[places[1]]
        tables.append(cells * float(plan.cell_variance(places)))
    assert plan.table_noise(2) == pytest.approx(np.mean(tables))
    wide = []
    for places in combinations(range(len(SIZES)), 3):
        cells = int(np.prod([SIZES[place] for place in places]))
        wide.append(cells * float(plan.cell_variance(places)))
    assert plan.table_noise(3) == pytest.approx(np.mean(wide))
    found = predicted(plan, 3, 1000)
    every = plan.table_noise(1) + plan.table_noise(2) + plan.table_noise(3)
    assert found.noise == pytest.approx(every / 3 / 1000**2)
    assert found.missed == pytest.approx(rule.USUAL_MISS / 3)


def test_few_people_or_wide_tables_are_filled_in_and_many_people_measured() -> None:
    binary = (2,) * 8
    few = best_order(measured_orders(binary, terms_of(1, 3), 2_000))
    many = best_order(measured_orders(binary, terms_of(1, 3), 2_000_000))
    assert (few.order, many.order) == (2, 3)
    wide = best_order(measured_orders(WIDE, terms_of(1, 3), 200_000))
    assert wide.order == 2
    # pairs are always measured
    assert [each.order for each in measured_orders(binary, terms_of("0.01", 2), 10)] == [2]


def test_auto_chooses_by_public_facts_alone_and_says_why() -> None:
    choices = []
    for people, seed in ((100, 1), (300_000, 2)):
        table = known_table(WIDE, tied_codes(WIDE, people, seed=seed))
        choice = choose("auto", METHODS, table, terms_of(1, 3))
        choices.append((choice.method.name, dict(choice.options), choice.why))
    assert choices[0] == choices[1]  # neither people nor their number is looked at
    name, options, why = choices[0]
    assert (name, options) == ("residual", {"measured": 2})
    assert "filled in by maximum entropy" in why
    assert "65,536 people assumed" in why


def test_auto_listens_to_how_many_people_there_are() -> None:
    binary = (2,) * 8
    table = known_table(binary, tied_codes(binary, 100, seed=1))
    few, many = (
        choose("auto", (Residual(),), table, terms_of(1, 3, expected_people=people))
        for people in (2_000, 2_000_000)
    )
    assert few.options == {"measured": 2}
    assert many.options == {}
    assert "2,000,000 people)" in many.why
    # where people are replaced their number is public
    public = choose("auto", (Residual(),), table, terms_of(1, 3, neighbours="replace-one"))
    assert "100 people)" in public.why


def test_a_method_that_is_named_measures_all_unless_told() -> None:
    table = known_table(WIDE, tied_codes(WIDE, 100, seed=1))
    assert choose("residual", METHODS, table, terms_of(1, 3)).options == {}
    # and auto leaves alone what was asked for
    asked = choose("auto", METHODS, table, terms_of(1, 3, measured=3))
    assert asked.options == {}
    weighed = choose("auto", METHODS, table, terms_of(1, 3, weights=[1, 1, 5]))
    assert weighed.options == {}


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"measured": 4}, r"measured \(4\) must be at most up_to \(3\)"),
        ({"measured": 0}, "measured"),
        ({"measured": "two"}, "measured"),
        ({"measured": 2, "weights": [1, 1, 1]}, r"weights \(3 of them\)"),
        ({"expected_people": 0}, "expected_people"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], wrong: str) -> None:
    table = known_table(SIZES, tied_codes(SIZES, 10, seed=1))
    terms = replace(terms_of(1, 3), options=options)
    with pytest.raises(InvalidInput, match=wrong):
        Residual().refuse(table, terms)


@pytest.mark.parametrize("repair", ["none", "simplex"])
def test_filled_tables_are_the_same_when_read_back(tmp_path: Path, repair: str) -> None:
    draws = np.random.default_rng(3)
    schema = sv.Schema(
        smoker=sv.Boolean(), drinks=sv.Categorical(["never", "daily"]), age=sv.Ordinal(0, 3)
    )
    people = {
        "smoker": (draws.random(5000) < 0.3).tolist(),
        "drinks": [None if each < 1 else "daily" for each in draws.integers(0, 4, 5000)],
        "age": draws.integers(0, 4, 5000).tolist(),
    }
    told = sv.release(
        people,
        epsilon=1,
        delta="1e-6",
        up_to=3,
        schema=schema,
        may_be_empty=["drinks"],
        output=tmp_path / "out",
        repair=repair,
        expected_people=100,
    )
    assert told.choice["options"] == {"measured": 2}
    again = sv.load_release(tmp_path / "out")
    for names in (("smoker",), ("smoker", "drinks"), ("smoker", "drinks", "age")):
        one, two = told.marginal(*names), again.marginal(*names)
        assert np.allclose(one.values, two.values, atol=1e-4)
        assert one.is_reconstructed == two.is_reconstructed == (len(names) == 3)
    assert np.allclose(told.tuples[3].counts, again.tuples[3].counts)
