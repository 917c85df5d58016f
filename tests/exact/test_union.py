"""Set union: how far one person moves the weights, and the whole law of what is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from sottovoce.accounting import NEIGHBOUR_RELATIONS, Ledger, Neighbours
from sottovoce.accounting.steps import ThresholdStep
from sottovoce.central import union
from sottovoce.central.method import ReleaseMethod, ReleaseTerms
from sottovoce.central.records import shuffled
from sottovoce.central.tuples import DpMarginals
from sottovoce.central.union import (
    COARSE,
    SetUnion,
    UnionSettings,
    descent_slack,
    find_values,
    union_budget,
)
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import keyed_hash
from sottovoce.kernels.descent import descend
from tests.central_tables import sets_table
from tests.statistics import chi_limit, chi_squared

Crowd = Sequence[tuple[int, ...]]
ITEMS = 3


def heights(crowd: Crowd, order: Sequence[int], level: float, items: int) -> np.ndarray:
    starts = np.concatenate([[0], np.cumsum([len(own) for own in crowd])]).astype(np.int64)
    held = np.array([item for own in crowd for item in own], np.int64)
    result = np.zeros(items)
    descend(starts, held, np.array(order, np.int64), level, 1.0, result)
    return result


def random_crowd(generator: np.random.Generator, people: int, items: int) -> list[tuple[int, ...]]:
    sizes = generator.integers(1, items, people)
    return [tuple(generator.choice(items, size, replace=False).tolist()) for size in sizes]


def test_one_person_moves_the_weights_by_at_most_one() -> None:
    """In L2, and nowhere downwards, so that one in place of another moves by sqrt 2 at most."""
    generator = np.random.default_rng(1)
    largest = 0.0
    for _ in range(3000):
        items = int(generator.integers(2, 8))
        people = int(generator.integers(2, 12))
        crowd = random_crowd(generator, people, items)
        level = float(generator.uniform(1, 4))
        order = generator.permutation(people).tolist()
        whole = heights(crowd, order, level, items)
        moves = []
        for left_out in range(2):
            rest = [person for person in order if person != left_out]
            moves.append(whole - heights(crowd, rest, level, items))
        for move in moves:
            assert move.min() >= -1e-12
            largest = max(largest, float(np.linalg.norm(move)))
        assert np.linalg.norm(moves[0] - moves[1]) <= math.sqrt(2) + 1e-12
    assert largest <= 1 + descent_slack(8, 4.0)
    assert largest > 1 - 1e-9  # it is reached


def by_place(crowd: Crowd) -> list[int]:
    """A mutant: a hash of people's positions, which one person less changes for all after her."""
    return sorted(range(len(crowd)), key=lambda place: keyed_hash(7, place))


def by_popularity(crowd: Crowd) -> list[int]:
    """A mutant: people whose items are popular come first."""
    counts = np.bincount([item for own in crowd for item in own], minlength=8)
    return sorted(range(len(crowd)), key=lambda place: -max(counts[list(crowd[place])]))


@pytest.mark.parametrize("ordered", [by_place, by_popularity])
def test_an_order_that_depends_on_data_is_convicted(
    ordered: Callable[[Crowd], list[int]],
) -> None:
    generator = np.random.default_rng(2)
    largest = 0.0
    for _ in range(300):
        crowd = random_crowd(generator, 8, 5)
        whole = heights(crowd, ordered(crowd), 3.0, 5)
        for left_out in range(len(crowd)):
            rest = [*crowd[:left_out], *crowd[left_out + 1 :]]
            move = whole - heights(rest, ordered(rest), 3.0, 5)
            largest = max(largest, float(np.linalg.norm(move)))
    assert largest > 1.1


def test_orders_are_uniform() -> None:
    entropy = Seeded(3)
    drawn = [tuple(shuffled(4, entropy).tolist()) for _ in range(20_000)]
    outputs = list(permutations(range(4)))
    statistic, degrees = chi_squared(outputs, np.full(24, 1 / 24), drawn)
    assert statistic < chi_limit(degrees)


def seen_law(crowd: Crowd, step: ThresholdStep, alpha: float, limit: int) -> dict[tuple, float]:
    """The chance of every set of found items, over all orders, choices and noises."""
    sigma = math.sqrt(step.variance)
    level = float(step.threshold) + alpha * sigma
    choices = [list(combinations(own, min(limit, len(own)))) for own in crowd]
    law: dict[tuple, float] = {}
    ways = 0
    for kept in product(*choices):
        for order in permutations(range(len(crowd))):
            weights = heights(kept, order, level, ITEMS)
            is_held = weights > 0
            # on so fine a lattice the noise's tail is that of real noise, to one part in 2^30
            tails = [
                math.erfc((float(step.threshold) - w) / sigma / math.sqrt(2)) / 2 for w in weights
            ]
            chance = np.where(is_held, tails, 0.0)
            ways += 1
            for found in product([False, True], repeat=ITEMS):
                each = np.where(found, chance, 1 - chance)
                law[found] = law.get(found, 0.0) + float(each.prod())
    return {found: total / ways for found, total in law.items()}


def excess(one: dict[tuple, float], other: dict[tuple, float], epsilon: float) -> float:
    """delta at epsilon between two laws."""
    return sum(max(0.0, chance - math.exp(epsilon) * other[found]) for found, chance in one.items())


def spent_step(neighbours: Neighbours, epsilon: str, delta: str, limit: int) -> ThresholdStep:
    terms = ReleaseTerms(
        Decimal(epsilon), Decimal(delta), 1, neighbours, {"limit": limit, "counts": 0}
    )
    ledger = Ledger(neighbours, epsilon=epsilon, delta=delta)
    SetUnion().release(sets_table([(0,)], ITEMS), terms, ledger, Seeded(1))
    (step,) = ledger.steps
    assert isinstance(step, ThresholdStep)
    return step


def worst_excess(step: ThresholdStep, neighbours: Neighbours, epsilon: float, limit: int) -> float:
    """The largest delta over all tiny crowds and their neighbours."""
    every = [own for size in (1, 2, 3) for own in combinations(range(ITEMS), size)]
    worst = 0.0
    for rest in ([], [(0,)], [(0, 1)], [(0, 1), (1, 2)], [(0,), (0,), (0,)]):
        laws = {own: seen_law([*rest, own], step, 4.0, limit) for own in every}
        alone = (
            seen_law(rest, step, 4.0, limit)
            if rest
            else {found: float(not any(found)) for found in product([False, True], repeat=ITEMS)}
        )
        if neighbours == "add-remove":
            pairs = [(law, alone) for law in laws.values()]
        else:
            pairs = list(combinations(laws.values(), 2))
        for one, other in pairs:
            worst = max(worst, excess(one, other, epsilon), excess(other, one, epsilon))
    return worst


@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_whole_law_of_what_is_found_is_private(neighbours: Neighbours, limit: int) -> None:
    step = spent_step(neighbours, "0.5", "0.01", limit)
    assert worst_excess(step, neighbours, 0.5, limit) <= 0.01


def test_a_threshold_at_half_is_convicted() -> None:
    step = spent_step("add-remove", "0.5", "0.01", 3)
    half = ThresholdStep("half", "a mutant", 3, "descent", step.variance, step.threshold / 2)
    assert worst_excess(half, "add-remove", 0.5, 3) > 0.01


def test_the_release_has_the_law_that_was_enumerated() -> None:
    crowd = [(0, 1), (0, 1), (0, 2), (0,), (0,)]
    options = {"limit": 2, "counts": 0}
    terms = ReleaseTerms(Decimal(6), Decimal("0.2"), 1, options=options)
    settings = UnionSettings.of(options)
    budget = union_budget(terms, settings)
    table = sets_table(crowd, ITEMS)
    entropy = Seeded(5)
    drawn = []
    for _ in range(3000):
        ledger = Ledger()
        found = find_values(table, settings, budget, Fraction(1), ledger, entropy)
        drawn.append(tuple(item in found for item in range(ITEMS)))
    (step,) = ledger.steps
    assert isinstance(step, ThresholdStep)
    law = seen_law(crowd, step, 4.0, 2)
    statistic, degrees = chi_squared(list(law), np.array(list(law.values())), drawn)
    assert statistic < chi_limit(degrees)
    lower = ThresholdStep("low", "", 2, "descent", step.variance, step.threshold * Fraction(4, 5))
    wrong = seen_law(crowd, lower, 4.0, 2)
    statistic, degrees = chi_squared(list(wrong), np.array(list(wrong.values())), drawn)
    assert statistic > chi_limit(degrees)


@pytest.mark.parametrize("form", ["descent", "weighted", "parallel"])
@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
def test_every_form_spends_what_it_may(form: str, neighbours: Neighbours) -> None:
    generator = np.random.default_rng(4)
    people = [generator.choice(40, 5, replace=False).tolist() for _ in range(2000)]
    table = sets_table(people, 40)
    terms = ReleaseTerms(Decimal(1), Decimal("1e-6"), 1, neighbours, {"form": form})
    ledger = Ledger(neighbours, epsilon=1, delta="1e-6")
    release = SetUnion().release(table, terms, ledger, Seeded(1))
    spent = ledger.delta_at(1.0)
    assert 0.8e-6 < spent <= 1e-6
    found = release.tuples[1]
    assert len(found.counts) == 40
    true = np.bincount(np.concatenate(people), minlength=40)[found.codes[:, 0]]
    assert np.abs(found.counts - true).max() < 8 * found.std_errors[0] + 0.3 * true.max()
    assert not found.may_be_spurious.any()


def test_thresholds_are_on_the_lattice() -> None:
    step = spent_step("add-remove", "1", "1e-6", 100)
    assert (step.threshold * COARSE).denominator == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"form": "greedy"}, r"form \(greedy\) must be one of descent, weighted, parallel"),
        ({"limit": 0}, r"limit \(0\) must lie between 1"),
        ({"counts": 1}, r"counts \(1\) must be below 1"),
        ({"alpha": "-1"}, r"alpha \(-1\) must lie between 0 and 100"),
    ],
)
def test_options_are_checked(options: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        UnionSettings.of(options)


@pytest.mark.parametrize("method", [SetUnion(), DpMarginals()])
def test_more_people_than_doubles_are_near_enough_for_are_refused(
    method: ReleaseMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(union, "MAX_UNION_PEOPLE", 9)
    terms = ReleaseTerms(Decimal(1), Decimal("1e-6"), 1)
    ledger = Ledger(epsilon=1, delta="1e-6")
    with pytest.raises(InvalidInput, match=r"at most 2\^36 values and 2\^28 people"):
        method.release(sets_table([(0,)] * 10, 1), terms, ledger, Seeded(1))
    assert not ledger.steps


def test_nothing_held_is_nothing_found() -> None:
    terms = ReleaseTerms(Decimal(1), Decimal("1e-6"), 1)
    release = SetUnion().release(sets_table([], 3), terms, Ledger(), Seeded(1))
    assert len(release.tuples[1].counts) == 0


def test_a_ledger_of_another_relation_is_refused() -> None:
    terms = ReleaseTerms(Decimal(1), Decimal("1e-6"), 1, "replace-one")
    with pytest.raises(InvalidInput, match="must be those of the ledger, add-remove"):
        SetUnion().release(sets_table([(0,)], 3), terms, Ledger(), Seeded(1))


def test_so_much_noise_that_doubles_do_not_do_is_refused() -> None:
    terms = ReleaseTerms(Decimal("0.001"), Decimal("1e-6"), 1)
    with pytest.raises(InvalidInput, match="form 'weighted' is exact"):
        SetUnion().release(sets_table([(0,)], 3), terms, Ledger(), Seeded(1))
