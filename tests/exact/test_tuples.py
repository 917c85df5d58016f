"""Tuples of unknown domains: the whole law of tiny releases, false tuples, and noise by number."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

from sottovoce.accounting import NEIGHBOUR_RELATIONS, GaussianStep, Ledger, Neighbours
from sottovoce.accounting.steps import ThresholdStep
from sottovoce.central import finding, limited_counts
from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.counting import above_threshold
from sottovoce.central.limits import exponential_choice
from sottovoce.central.method import MemoryTable, ReleasedCounts, ReleaseTerms
from sottovoce.central.tuples import DpMarginals
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.ground.noise import discrete_gaussian_above
from sottovoce.ground.tails import gaussian_tail, number_above
from tests.central_tables import counted, rows_table, sets_table
from tests.statistics import ALPHA, chi_limit, chi_squared

REACH = 70  # of noise that is enumerated
Law = tuple[np.ndarray, np.ndarray]


def noise_law(variance: Fraction) -> np.ndarray:
    places = np.arange(-REACH, REACH + 1)
    chances = np.exp(-(places**2) / (2 * float(variance)))
    return chances / chances.sum()


def published(count: int, noise: np.ndarray, threshold: int) -> np.ndarray:
    """The law of one noisy count: hidden, or its value above the threshold."""
    values = np.arange(-REACH, REACH + 1) + count
    wide = np.zeros(2 * REACH + 20)
    for value, chance in zip(values, noise, strict=True):
        if count and value > threshold:
            wide[value] += chance
    wide[0] = 1 - wide.sum()
    return wide


def tiny_law(
    crowd: Sequence[tuple[int, ...]],
    limit: int,
    variance: Fraction,
    threshold: int,
    pair_variance: Fraction,
) -> Law:
    """Two items, and their pair if both are found: every noisy count, with its chance.

    The pair's count is there even below its threshold: what hides it only reveals less.
    """
    noise = noise_law(variance)
    pairs = sum(len(own) == 2 for own in crowd)
    pair_law = np.zeros(2 * REACH + 20)
    pair_law[pairs + 5 : pairs + 6 + 2 * REACH] = noise_law(pair_variance)
    choices = [list(combinations(own, min(limit, len(own)))) for own in crowd]
    items = np.zeros((2 * REACH + 20, 2 * REACH + 20))
    ways = 0
    for kept in product(*choices):
        counts = [sum(item in own for own in kept) for item in (0, 1)]
        laws = [published(count, noise, threshold) for count in counts]
        items += np.multiply.outer(*laws)
        ways += 1
    items /= ways
    both = items[1:, 1:, None] * pair_law
    items[1:, 1:] = 0
    return items, both


def excess(one: Law, other: Law, epsilon: float) -> float:
    """delta at epsilon between two laws."""
    scale = math.exp(epsilon)
    parts = [np.maximum(0, a - scale * b).sum() for a, b in zip(one, other, strict=True)]
    return float(sum(parts))


def tiny_steps(neighbours: Neighbours, limit: int) -> tuple[ThresholdStep, GaussianStep]:
    options = {"find": "counts", "limit": [limit, 1], "shares": ["0.5", "0.5"]}
    terms = ReleaseTerms(Decimal(1), Decimal("0.02"), 2, neighbours, options)
    ledger = Ledger(neighbours, epsilon=1, delta="0.02")
    crowd = [(0, 1)] * 60
    DpMarginals().release(sets_table(crowd, 2), terms, ledger, Seeded(1))
    first, second = ledger.steps
    assert isinstance(first, ThresholdStep)
    assert isinstance(second, GaussianStep)
    return first, second


CROWDS = ([], [(0,)], [(0, 1)], [(0, 1), (0,)])
ALL_OWN = ((0,), (1,), (0, 1))


def worst(neighbours: Neighbours, limit: int, threshold: int, steps: Any) -> float:
    first, second = steps
    largest = 0.0
    for rest in CROWDS:
        numbers = (limit, first.variance, threshold, second.variance)
        laws = [tiny_law([*rest, own], *numbers) for own in ALL_OWN]
        if neighbours == "add-remove":
            alone = tiny_law(rest, *numbers)
            pairs = [(law, alone) for law in laws]
        else:
            pairs = list(combinations(laws, 2))
        for one, other in pairs:
            largest = max(largest, excess(one, other, 1.0), excess(other, one, 1.0))
    return largest


@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("limit", [1, 2])
def test_the_whole_law_of_a_tiny_release_is_private(neighbours: Neighbours, limit: int) -> None:
    steps = tiny_steps(neighbours, limit)
    assert worst(neighbours, limit, int(steps[0].threshold), steps) <= 0.02


def test_half_of_the_threshold_is_convicted() -> None:
    steps = tiny_steps("add-remove", 2)
    assert worst("add-remove", 2, int(steps[0].threshold / 2), steps) > 0.02


def test_a_limit_chosen_on_the_data_is_convicted() -> None:
    """The longest set decides how much noise there is, and that tells of whoever has it."""
    steps = tiny_steps("add-remove", 1)
    first, second = steps
    threshold = int(first.threshold)
    rest = [(0,)] * 12
    alone = tiny_law(rest, 1, first.variance, threshold, second.variance)
    # with a set of two items the limit is 2, and the noise has twice the variance
    longer = tiny_law([*rest, (0, 1)], 2, 2 * first.variance, threshold, second.variance)
    assert max(excess(longer, alone, 1.0), excess(alone, longer, 1.0)) > 0.02
    fixed = tiny_law([*rest, (0, 1)], 1, first.variance, threshold, second.variance)
    assert max(excess(fixed, alone, 1.0), excess(alone, fixed, 1.0)) <= 0.02


def some_rows(seed: int, rows: int = 3000) -> MemoryTable:
    generator = np.random.default_rng(seed)
    sizes = [2, 3, 4, 2, 5]
    columns = []
    for size in sizes:
        weights = 1 / np.arange(1, size + 1)
        drawn = generator.choice(size, rows, p=weights / weights.sum())
        columns.append(np.where(generator.random(rows) < 0.2, -1, drawn))
    return rows_table(np.column_stack(columns).tolist(), sizes)


def release_of(
    table: MemoryTable,
    up_to: int,
    options: dict[str, Any],
    seed: int = 1,
    neighbours: Neighbours = "add-remove",
    epsilon: str = "1",
) -> tuple[ReleasedCounts, Ledger]:
    terms = ReleaseTerms(Decimal(epsilon), Decimal("1e-6"), up_to, neighbours, options)
    ledger = Ledger(neighbours, epsilon=epsilon, delta="1e-6")
    return DpMarginals().release(table, terms, ledger, Seeded(seed)), ledger


@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize(
    "options",
    [{}, {"limit": [5, 10, 10]}, {"no_spurious": True}, {"accounting": "zcdp"}],
)
def test_every_setting_spends_what_it_may(neighbours: Neighbours, options: dict[str, Any]) -> None:
    table = some_rows(1)
    release, ledger = release_of(table, 3, options, 1, neighbours, "4")
    assert ledger.delta_at(4.0) <= 1e-6
    for k, found in release.tuples.items():
        truth = counted(table, k)
        assert len(found.counts) > 0
        named = [
            tuple(zip(attributes, codes, strict=True))
            for attributes, codes in zip(
                found.attributes.tolist(), found.codes.tolist(), strict=True
            )
        ]
        errors = found.counts - np.array([truth[each] for each in named])
        # limits lose a few; noise and choice above a threshold do the rest
        assert np.abs(errors).max() < 7 * found.std_errors[0] + 0.05 * 3000
        if k == 1 or "no_spurious" in options:
            assert all(truth[each] > 0 for each in named)
            assert not found.may_be_spurious.any()


@pytest.mark.parametrize("epsilon", ["1", "8"])
@pytest.mark.parametrize("limit", [None, [100, 1 << 16]])
def test_small_sets_are_counted_within_the_budget(epsilon: str, limit: list[int] | None) -> None:
    """Counts have a limit of their own, however large that of weights is, and it costs more."""
    crowd = [(item % 6, (item + 1) % 6) for item in range(3000)]
    table = sets_table([tuple(sorted(each)) for each in crowd], 6)
    options = {} if limit is None else {"limit": limit}
    release, ledger = release_of(table, 2, options, epsilon=epsilon)
    assert len(release.tuples[2].counts) >= 6
    # shares leave little: a hundredth of epsilon where a person moves few weights of the lattice
    assert 0.97 * float(epsilon) < ledger.epsilon_at(1e-6) <= float(epsilon)


def test_what_cannot_be_composed_is_refused_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(delta: str, told: str) -> None:
        ledger = Ledger(epsilon=1, delta=delta)
        terms = ReleaseTerms(Decimal(1), Decimal(delta), 2, options={"percentile": "exponential"})
        with pytest.raises(SottovoceError, match=told):
            DpMarginals().release(some_rows(3, 100), terms, ledger, Seeded(1))
        assert not ledger.steps

    refused("1e-20", r"delta \(1E-20\) must be at least 1e-11")
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    refused("1e-6", "dp.accounting")


def double_noise(variance: Fraction, count: int, entropy: Seeded) -> np.ndarray:
    """A mutant: noise of the right law, in doubles."""
    return math.sqrt(variance) * np.random.default_rng(1).standard_normal(count)


@pytest.mark.parametrize("find", ["counts", "weighted"])
def test_counts_are_whole_and_noise_in_doubles_is_seen(
    find: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sets_table([(0, 1, 2)] * 2000, 3)
    whole, _ = release_of(table, 2, {"find": find})
    monkeypatch.setattr(finding, "discrete_gaussian", double_noise)
    monkeypatch.setattr(limited_counts, "discrete_gaussian", double_noise)
    broken, _ = release_of(table, 2, {"find": find})
    assert all(len(told.counts) == 3 for told in whole.tuples.values())
    assert all((told.counts % 1 == 0).all() for told in whole.tuples.values())
    assert (broken.tuples[1].counts % 1 != 0).all()


def test_an_exponential_percentile_is_composed() -> None:
    pytest.importorskip("dp_accounting")
    release, ledger = release_of(some_rows(2), 2, {"percentile": "exponential"}, epsilon="4")
    assert [step.mechanism for step in ledger.steps].count("exponential") == 2
    assert ledger.delta_at(4.0) <= 1e-6
    assert len(release.tuples[2].counts) > 0


def test_a_person_with_many_rows_counts_once() -> None:
    rows = [[0, 0]] * 50 + [[0, 1]] * 1
    users = [0] * 50 + [1]
    table = rows_table(rows, [1, 2], users)
    assert counted(table, 2) == {((0, 0), (1, 0)): 1, ((0, 0), (1, 1)): 1}
    release, _ = release_of(table, 2, {"limit": [2, 1]})
    assert len(release.tuples[1].counts) == 0  # nobody else has these values


def false_pairs(eta: str, runs: int) -> tuple[int, float]:
    """Pairs that nobody holds, over many releases, and the number that eta allows."""
    people = [[item] for item in range(60) for _ in range(150)]  # no pairs at all
    table = sets_table(people, 60)
    seen, allowed = 0, 0.0
    for seed in range(runs):
        options = {"find": "counts", "limit": [1, 1], "eta": eta}
        release, _ = release_of(table, 2, options, seed, epsilon="4")
        seen += len(release.tuples[2].counts)
        allowed += float(Fraction(eta)) * len(release.tuples[1].counts)
    return seen, allowed


def test_false_tuples_are_at_most_a_share_of_eta(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, allowed = false_pairs("0.05", 60)
    assert allowed > 100
    assert seen <= poisson.isf(ALPHA, allowed)
    assert seen >= poisson.isf(1 - ALPHA, allowed / 2)  # the threshold wastes little
    # a threshold at four fifths is seen
    usual = finding.Curator._tuple_threshold
    monkeypatch.setattr(finding.Curator, "_tuple_threshold", lambda *given: usual(*given) * 4 // 5)
    seen, allowed = false_pairs("0.05", 60)
    assert seen > poisson.isf(ALPHA, allowed)


def test_noise_by_number_has_the_law_of_noise_one_by_one() -> None:
    """Six candidate pairs of four items, two of which are held: every set that may be found."""
    variance, threshold = Fraction(4), 1
    pairs = TupleCandidates.single(np.arange(1, 5)).grown(np.arange(4))
    keys = pairs.at(np.arange(6))
    held, sums = keys[[1, 4]], np.array([2, 1])
    chances = []
    for key in keys.tolist():
        count = int(sums[held == key].sum())
        chances.append(float(gaussian_tail(variance, threshold + 1 - count)))
    outputs = list(product([False, True], repeat=6))
    law = np.array(
        [
            math.prod(p if is_in else 1 - p for p, is_in in zip(chances, each, strict=True))
            for each in outputs
        ]
    )
    entropy = Seeded(6)
    drawn = []
    for _ in range(5_000):
        found = above_threshold(held, sums, pairs, variance, threshold, entropy)
        assert (found.sums > threshold).all()
        drawn.append(tuple(np.isin(keys, found.keys).tolist()))
    statistic, degrees = chi_squared(outputs, law, drawn)
    assert statistic < chi_limit(degrees)
    wrong = np.array(
        [
            math.prod(p if is_in else 1 - p for p, is_in in zip(chances[::-1], each, strict=True))
            for each in outputs
        ]
    )
    statistic, degrees = chi_squared(outputs, wrong, drawn)
    assert statistic > chi_limit(degrees)


@pytest.mark.parametrize("least", [1, 4, 15])
def test_noise_beyond_a_point_has_its_law(least: int) -> None:
    places = np.arange(least, least + 60)
    chances = np.exp(-(places**2) / 50.0)
    draws = discrete_gaussian_above(Fraction(25), least, 100_000, Seeded(7)).tolist()
    law = chances / chances.sum()
    statistic, degrees = chi_squared(places.tolist(), law, draws)
    assert statistic < chi_limit(degrees, 3)
    other = np.exp(-(places**2) / 56.0)  # a variance larger by an eighth
    statistic, degrees = chi_squared(places.tolist(), other / other.sum(), draws)
    assert statistic > chi_limit(degrees, 3)


def test_numbers_above_are_binomial() -> None:
    chance = float(gaussian_tail(Fraction(25), 8))
    entropy = Seeded(8)
    draws = [number_above(20, 8, Fraction(25), entropy) for _ in range(5000)]
    law = [math.comb(20, m) * chance**m * (1 - chance) ** (20 - m) for m in range(21)]
    statistic, degrees = chi_squared(list(range(21)), np.array(law), draws)
    assert statistic < chi_limit(degrees)
    more = 1.15 * chance
    wrong = [math.comb(20, m) * more**m * (1 - more) ** (20 - m) for m in range(21)]
    statistic, degrees = chi_squared(list(range(21)), np.array(wrong), draws)
    assert statistic > chi_limit(degrees)


def test_tails_sum_to_one() -> None:
    for variance in (Fraction(1, 3), Fraction(7), Fraction(90_000)):
        for least in (1, 5, 40):
            together = gaussian_tail(variance, least) + gaussian_tail(variance, 1 - least)
            assert abs(together - 1) < Decimal(10) ** -50


def test_exponential_choices_have_their_law() -> None:
    exponents = [Fraction(0), Fraction(-1, 2), Fraction(-2), Fraction(-300)]
    entropy = Seeded(9)
    draws = [exponential_choice(exponents, entropy) for _ in range(20_000)]
    chances = np.exp([float(each) for each in exponents])
    statistic, degrees = chi_squared(list(range(4)), chances / chances.sum(), draws)
    assert statistic < chi_limit(degrees)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"eta": "0.9"}, r"eta \(9/10\) must be above 0 and below 1/2"),
        ({"shares": [1]}, r"shares \(\[1\]\) must be 2 numbers, one for each k"),
        ({"shares": 3}, r"shares \(3\) must be 2 numbers, one for each k"),
        ({"shares": "12"}, r"shares \(12\) must be 2 numbers, one for each k"),
        ({"no_spurious": "false"}, r"no_spurious \(false\) must be true or false"),
        ({"limit": [1]}, "limit must be one whole number, or 2 of them"),
        ({"limit": 2.5}, r"limit \(2.5\) must be a whole number"),
        ({"find": "all"}, r"find \(all\) must be one of counts, weighted"),
        ({"find": "weighted", "no_spurious": True}, "goes with none of no_spurious"),
        ({"find": "weighted", "accounting": "zcdp"}, "goes with none of no_spurious"),
        ({"find": "weighted", "limit": 5000}, r"limit \(5000\) of single values must be at most"),
    ],
)
def test_options_are_checked(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        release_of(some_rows(3, 10), 2, options)


def test_more_values_than_columns_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"up_to \(6\) must be at most the 5 columns"):
        release_of(some_rows(3, 10), 6, {})


@pytest.mark.parametrize("is_sets", [True, False])
def test_nothing_held_is_nothing_found(is_sets: bool) -> None:
    table = sets_table([], 3) if is_sets else rows_table([], [2, 2])
    release, _ = release_of(table, 2, {})
    assert [len(found.counts) for found in release.tuples.values()] == [0, 0]
