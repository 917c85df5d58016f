"""Releases of known domains by residuals: the algebra, the ledger, what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.accounting import mu_of
from sottovoce.central.domains import NarrowedTable
from sottovoce.central.method import EMPTY_CODE, MemoryTable
from sottovoce.central.residual import Residual
from sottovoce.central.residual_plan import ResidualPlan, kept_share
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import BudgetExceeded, InvalidInput
from tests.central_tables import known_table, ledger_of, terms_of, tied_codes, true_table

SIZES = (2, 3, 4, 2, 3)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_without_noise_every_table_is_exact(neighbours: str) -> None:
    codes = tied_codes(SIZES, 500, seed=1)
    terms = terms_of(10_000, 3, delta="0.5", neighbours=neighbours)  # noise far below one count
    released = Residual().release(known_table(SIZES, codes), terms, ledger_of(terms), Seeded(1))
    for count in (1, 2, 3):
        told = released.tuples[count]
        start = 0
        for places in combinations(range(len(SIZES)), count):
            true = true_table(codes, SIZES, places)
            span = slice(start, start + true.size)
            start = span.stop
            assert (told.attributes[span] == places).all()
            indices = np.indices(true.shape).reshape(count, -1).T
            assert np.array_equal(told.codes[span], indices)
            assert told.counts[span] == pytest.approx(true.ravel(), abs=0.4)
        assert start == len(told.counts)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("sizes", [(2,) * 6, SIZES, (2, 100, 50)])
def test_the_ledger_has_what_the_algebra_says(sizes: tuple[int, ...], neighbours: str) -> None:
    terms = terms_of(1, 2, neighbours=neighbours)
    table = known_table(sizes, np.zeros((1, len(sizes)), np.int64))
    ledger = ledger_of(terms)
    Residual().release(table, terms, ledger, Seeded(1))
    plan = Residual().plan(table, terms)
    spent = sum(step.squared_mu for step in ledger.steps)
    assert spent == plan.squared_mu
    if neighbours == "add-remove":
        algebra = Fraction(0)  # mu^2 = sum of P_B / s_B^2
        for count in (0, 1, 2):
            for own in combinations(range(len(sizes)), count):
                shape = tuple(sorted(sizes[place] for place in own))
                algebra += kept_share(shape) / plan.variance(own)
        assert spent == algebra
    # all of the budget, and no more
    assert 0.9999 * mu_of(1.0, 1e-6) < sqrt(spent) <= mu_of(1.0, 1e-6)
    assert 0.9999 < ledger.epsilon_at(1e-6) <= 1
    with pytest.raises(BudgetExceeded):
        Residual().release(table, terms, ledger, Seeded(1))


def test_shares_of_the_noise_are_the_best_ones() -> None:
    terms = terms_of(1, 2)
    plan = ResidualPlan.of(SIZES, terms)

    def loss(variances: dict[tuple[int, ...], float]) -> float:
        """mean variance of a count, added over 1 and 2 attributes, times mu^2."""
        total = 0.0
        for count in (1, 2):
            sets = list(combinations(range(len(SIZES)), count))
            cells = {own: int(np.prod([SIZES[place] for place in own])) for own in sets}
            for own in sets:
                variance = 0.0
                for part in [(), *combinations(own, 1), *combinations(own, 2)]:
                    if set(part) <= set(own):
                        shape = [SIZES[place] for place in part]
                        others = cells[own] / np.prod(shape)
                        kept = np.prod([1 - 1 / size for size in shape])
                        variance += variances[part] * kept / others**2
                total += cells[own] * variance / sum(cells.values())
        cost = 0.0
        for part, variance in variances.items():
            cost += np.prod([1 - 1 / SIZES[place] for place in part]) / variance
        return total * cost

    sets = [own for count in range(3) for own in combinations(range(len(SIZES)), count)]
    best = {own: float(plan.variance(own)) for own in sets}
    least = loss(best)
    draws = np.random.default_rng(1)
    for _ in range(50):
        other = {own: each * draws.uniform(0.7, 1.4) for own, each in best.items()}
        assert loss(other) > least * (1 - 1e-4)
    mean = sum(plan.mean_variance(count) for count in (1, 2))
    assert mean * float(plan.squared_mu) == pytest.approx(least)
    predicted = Residual().predict(known_table(SIZES, np.zeros((1, 5), np.int64)), terms)
    assert predicted == pytest.approx(mean / 2)


def test_tables_may_weigh_the_same_however_large() -> None:
    sizes = (2, 3, 50)
    table = known_table(sizes, np.zeros((1, 3), np.int64))
    counts, tables = (
        Residual().plan(table, terms_of(1, 2, equal=equal)) for equal in ("counts", "tables")
    )
    pairs = list(combinations(range(3), 2))

    def by_table(plan: ResidualPlan) -> float:
        singles = np.mean([float(plan.cell_variance((place,))) for place in range(3)])
        return float(singles + np.mean([float(plan.cell_variance(pair)) for pair in pairs]))

    def by_count(plan: ResidualPlan) -> float:
        return plan.mean_variance(1) + plan.mean_variance(2)

    # each is best at what it is for
    assert by_table(tables) < by_table(counts)
    assert by_count(counts) < by_count(tables)
    same = [Residual().plan(known_table((2,) * 5, np.zeros((1, 5), np.int64)), terms_of(1, 2))]
    same.append(
        Residual().plan(
            known_table((2,) * 5, np.zeros((1, 5), np.int64)), terms_of(1, 2, equal="tables")
        )
    )
    assert same[0].cell_variance((0, 1)) == same[1].cell_variance((0, 1))


def direct_variance(attributes: int, up_to: int, squared_mu: float) -> float:
    """A 1-way count's variance if every table is noised by itself, with the best shares."""
    # Var_k = C(d, k) / (mu^2 share_k), share_k ~ sqrt(C(d, k))     gopi2024marginals, algorithm 1
    roots = [sqrt(comb(attributes, count)) for count in range(1, up_to + 1)]
    share = roots[0] / sum(roots)
    return attributes / (squared_mu * share)


@pytest.mark.parametrize("attributes", [16, 32])
def test_counts_vary_eight_times_less_than_table_by_table(attributes: int) -> None:
    sizes = (2,) * attributes
    codes = tied_codes(sizes, 1000, seed=2)
    terms = terms_of(1, 3)
    released = Residual().release(known_table(sizes, codes), terms, ledger_of(terms), Seeded(4))
    singles = released.tuples[1]
    direct = direct_variance(attributes, 3, mu_of(1.0, 1e-6) ** 2)
    assert direct / singles.std_errors[0] ** 2 > 8


def test_user_with_many_rows_counts_once() -> None:
    codes = np.array([[0, 0]] * 1000 + [[1, 1]] * 10)
    users = np.array([0] * 1000 + list(range(1, 11)))
    values = (("x", "y"), ("x", "y"))
    table = MemoryTable(("a", "b"), values, (True, True), codes, users, 11)
    terms = terms_of(1000, 1, delta="0.5")
    released = Residual().release(table, terms, ledger_of(terms), Seeded(1))
    assert released.tuples[1].counts == pytest.approx([1, 10, 1, 10], abs=0.5)


def test_empty_is_a_value_where_it_is_said_to_be() -> None:
    codes = np.array([[0, 0], [1, EMPTY_CODE], [1, 1], [0, EMPTY_CODE]])
    table = MemoryTable(("a", "b"), (("x", "y"), ("p", "q")), (True, True), codes, np.arange(4), 4)
    terms = terms_of(10_000, 2, delta="0.5")
    ledger = ledger_of(terms)
    with pytest.raises(InvalidInput, match=r"attribute 'b' has empty cells: name it in may_be_emp"):
        Residual().release(table, terms, ledger, Seeded(1))
    assert ledger.steps == ()
    terms = terms_of(10_000, 2, delta="0.5", may_be_empty=("b",))
    released = Residual().release(table, terms, ledger_of(terms), Seeded(1))
    assert released.tuples[2].counts == pytest.approx([1, 0, 0, 1], abs=0.2)
    assert released.estimate.marginal("b")["(empty)"].value == pytest.approx(0.5, abs=0.05)
    with pytest.raises(InvalidInput, match=r"may_be_empty \(z\) must name attributes"):
        Residual().refuse(table, terms_of(1, 2, may_be_empty=("z",)))


def test_found_values_and_the_rest() -> None:
    codes = np.array([[0, 1], [1, EMPTY_CODE], [2, 0], [2, 2]])
    values = (("a", "b", "c"), (1, 2, 3))
    table = MemoryTable(("x", "y"), values, (False, False), codes, np.arange(4), 4)
    assert "not public" in str(Residual().refuse(table, terms_of(1, 2)))
    narrow = NarrowedTable(table, [[2], [0, 2]])
    terms = terms_of(10_000, 2, delta="0.5")
    released = Residual().release(narrow, terms, ledger_of(terms), Seeded(1))
    # c with 1, 3, other; other with 1, 3, other
    assert released.tuples[2].counts == pytest.approx([1, 1, 0, 0, 0, 2], abs=0.2)


def test_what_does_not_fit_is_refused_with_the_reason() -> None:
    small = known_table((2, 2), np.zeros((3, 2), np.int64))
    large = known_table((400, 400, 400), np.zeros((3, 3), np.int64))
    single = known_table((2, 1), np.zeros((3, 2), np.int64))
    sets = MemoryTable(
        ("item",), ((1, 2),), (True,), np.zeros((2, 1), np.int64), np.arange(2), 2, is_sets=True
    )
    method = Residual()
    assert method.refuse(small, terms_of(1, 2)) is None
    assert "64,481,200 cells in all, more than 33,554,432" in str(
        method.refuse(large, terms_of(1, 3))
    )
    assert "up_to (3) is more than the 2 attributes" in str(method.refuse(small, terms_of(1, 3)))
    assert "attribute 'a1' has fewer than two values" in str(method.refuse(single, terms_of(1, 2)))
    assert "of sets every item that nobody holds would cost" in str(
        method.refuse(sets, terms_of(1, 1))
    )
    with pytest.raises(InvalidInput, match=r"method \(residual\) does not fit: tables of up to"):
        method.release(large, terms_of(1, 3), ledger_of(terms_of(1, 3)), Seeded(1))
    for wrong, why in (
        ({"weights": [1]}, r"weights \(1 of them\) must be as many as up_to \(2\)"),
        ({"weights": [1, 0]}, "weights must be finite and greater than 0"),
        ({"repair": "magic"}, r"repair \(magic\) must be one of none, simplex"),
        ({"equal": "none"}, r"equal \(none\) must be one of counts, tables"),
        ({"colour": 1}, r"option \(colour\) is not one of residual's"),
    ):
        with pytest.raises(InvalidInput, match=why):
            method.refuse(small, terms_of(1, 2, **wrong))


def test_repair_is_marked_consistent_and_not_farther_from_the_truth() -> None:
    sizes = (2, 3, 4, 2, 3, 2)
    codes = tied_codes(sizes, 2000, seed=3)
    table = known_table(sizes, codes)
    raw_terms, terms = terms_of(0.2, 2), terms_of(0.2, 2, repair="simplex")
    raw = Residual().release(table, raw_terms, ledger_of(raw_terms), Seeded(5))
    repaired = Residual().release(table, terms, ledger_of(terms), Seeded(5))
    assert (raw.tuples[2].counts < 0).any()
    for count in (1, 2):
        assert (repaired.tuples[count].counts >= 0).all()
        assert np.array_equal(repaired.tuples[count].std_errors, raw.tuples[count].std_errors)
    assert any("not negative" in note for note in repaired.notes)
    assert not any("not negative" in note for note in raw.notes)
    marginal = repaired.estimate.marginal("a0", "a1")
    assert not marginal.is_unbiased
    assert "repaired by simplex" in marginal.origin
    assert raw.estimate.marginal("a0", "a1").is_unbiased

    def error(released: object) -> float:
        total = 0.0
        for places in combinations(range(len(sizes)), 2):
            (told,) = released.estimate.fit.tables([places])  # type: ignore[attr-defined]
            total += float(((told - true_table(codes, sizes, places).ravel() / 2000) ** 2).sum())
        return total

    assert error(repaired) < error(raw)
    # tables agree on what they share, to a small part of a standard error
    one = repaired.estimate.marginal("a0", "a1").values.reshape(2, 3).sum(1)
    two = repaired.estimate.marginal("a0", "a2").values.reshape(2, 4).sum(1)
    error_of_one = float(raw.estimate.marginal("a0").std_error[0])
    assert np.abs(one - two).max() < 0.1 * error_of_one


def test_analysis_serves_a_release() -> None:
    codes = tied_codes((2, 3, 2, 4), 20_000, seed=6)
    terms = terms_of(1, 2)
    table = known_table((2, 3, 2, 4), codes)
    estimate = Residual().release(table, terms, ledger_of(terms), Seeded(2)).estimate
    assert estimate is not None
    assert abs(estimate.people - 20_000) < 200
    tests = sv.associate(estimate)
    by_pair = {test.attributes: test for test in tests}
    assert by_pair["a0", "a1"].p_value < 1e-6
    assert sv.dependency_tree(estimate).edges[0].is_clear
    assert len(sv.synthesize(estimate, people=50, seed=1)) == 50
    assert estimate.correlations().loc["a0", "a1"] > 0.1
    wide = estimate.marginal("a0", "a1", "a2", "a3")  # beyond up_to
    assert wide.is_reconstructed
    assert wide.values.sum() == pytest.approx(1)
    true = true_table(codes, (2, 3, 2, 4), (0, 1, 2, 3)).ravel() / 20_000
    assert (np.abs(wide.values - true) < 5 * wide.std_error + 0.01).all()
    turned = estimate.marginal("a1", "a0").values.reshape(3, 2)
    assert np.array_equal(turned.T.ravel(), estimate.marginal("a0", "a1").values)
    total = estimate.marginal("a0", "a1").total([("v0", "v0"), ("v0", "v1"), ("v0", "v2")])
    alone = estimate.marginal("a0")["v0"]
    assert total.std_error == pytest.approx(alone.std_error, rel=1e-6)
