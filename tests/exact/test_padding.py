"""Padding and sampling by enumeration: the channel of whole sets, where amplification holds, and
where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from math import comb, exp, log

import pytest
from scipy.stats import binom

from sottovoce.ground.entropy import Entropy, exact_law
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle, PureOracle, oracle
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.encodings import Ask, Padded
from sottovoce.protocol.encodings.sets import amplified_epsilon, most_together
from sottovoce.questions.itemsets.padding import padded_ask, padded_noise

LIMIT = 1 << 17
Law = dict[int, Fraction]


def every_set(items: int) -> Iterator[list[int]]:
    for size in range(items + 1):
        yield from (list(each) for each in combinations(range(items), size))


def laws(encoding: Padded, chosen: Oracle, items: int) -> list[Law]:
    """The chances of every report, for every set of items."""

    def draw(members: Sequence[int]) -> Law:
        def report(entropy: Entropy) -> int:
            return int(chosen.randomize(encoding.encode({"basket": members}, entropy), entropy))

        return exact_law(report, LIMIT)

    return [draw(members) for members in every_set(items)]


def worst(found: list[Law]) -> Fraction:
    return max(
        max(law[answer] for law in found) / min(law[answer] for law in found) for answer in found[0]
    )


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("candidates", [None, ((0,), (2,), (0, 2), (1, 2, 3))])
def test_a_sampled_answer_keeps_epsilon_for_every_two_sets(
    epsilon: str, length: int, candidates: tuple[tuple[int, ...], ...] | None
) -> None:
    """Also for sets longer than the padding, and for candidates that are sets themselves."""
    items = 4
    ask = padded_ask("basket", items, candidates, length, "grr", Decimal(epsilon))
    assert isinstance(ask.encoding, Padded)
    found = laws(ask.encoding, ask.oracle, items)
    assert all(sum(law.values()) == 1 for law in found)
    assert not exceeds(worst(found), Decimal(epsilon))
    # and it is reached
    assert log_ratio(worst(found)) == pytest.approx(ask.guarantee.per_report, abs=1e-12)
    assert ask.guarantee.per_report <= float(epsilon)
    assert ask.requested == Fraction(epsilon)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_budget_for_one_more_item_is_too_much(length: int) -> None:
    items, epsilon = 4, Decimal(1)
    louder = amplified_epsilon(epsilon, length + 1)
    encoding = Padded("basket", items, None, length)
    mutant = oracle("grr", size=encoding.size, epsilon=louder)
    assert exceeds(worst(laws(encoding, mutant, items)), epsilon)
    with pytest.raises(InvalidInput, match="amplifies"):
        Ask(Padded("basket", items, None, length, epsilon), mutant)


def test_a_client_that_forgets_to_pad_is_caught() -> None:
    class Unpadded(Padded):
        def encode(self, codes: object, entropy: Entropy) -> int:
            held = self.held(codes["basket"])  # type: ignore[index]
            return held[entropy.below(len(held))] if held else self.count

    encoding = Unpadded("basket", 4, None, 3, Decimal(1))
    assert exceeds(worst(laws(encoding, encoding.oracle(Decimal(1)), 4)), Decimal(1))


def test_hashing_is_not_amplified() -> None:
    """All items of a set may share a hash value: then sampling hides nothing (wang2021thesis,
    theorem 5.2.2).
    """
    encoding = Padded("basket", 4, None, 2)
    chosen = oracle("blh", size=encoding.size, epsilon=amplified_epsilon(Decimal(1), 2))

    def law(members: list[int]) -> dict[object, Fraction]:
        return exact_law(
            lambda e: chosen.randomize(encoding.encode({"basket": members}, e), e), LIMIT
        )

    found = [law(list(members)) for members in combinations(range(4), 2)]
    ratio = max(one[answer] / two[answer] for one in found for two in found for answer in one)
    assert exceeds(ratio, Decimal(1))
    plain = padded_ask("basket", 3, None, 2, "blh", Decimal(1))
    assert plain.guarantee.per_report <= 1.0  # so that it spends epsilon itself


# -- wang2021thesis, tables 5.1 and 5.2, and the errata

LENGTHS = (2, 5, 10, 20, 50, 100)
TABLE_1 = {
    "0.1": (0.19, 0.42, 0.72, 1.13, 1.83, 2.44),
    "0.5": (0.83, 1.45, 2.01, 2.64, 3.51, 4.19),
    "1": (1.49, 2.26, 2.90, 3.57, 4.46, 5.15),
    "2": (2.62, 3.49, 4.17, 4.86, 5.77, 6.46),
    "4": (4.68, 5.59, 6.29, 6.98, 7.89, 8.59),
}
TABLE_2 = {
    (3, "0.1"): (0.10, 0.10, 0.11, 0.13, 0.15, 0.15),
    (3, "0.5"): (0.50, 0.50, 0.54, 0.62, 0.68, 0.80),
    (3, "1"): (1.00, 1.00, 1.24, 1.35, 1.59, 1.73),
    (3, "2"): (2.00, 2.20, 2.62, 3.10, 3.71, 4.28),
    (3, "4"): (4.00, 4.50, 5.19, 5.88, 6.80, 7.20),
    (9, "0.1"): (0.10, 0.10, 0.10, 0.10, 0.12, 0.14),
    (9, "0.5"): (0.50, 0.50, 0.50, 0.52, 0.59, 0.65),
    (9, "1"): (1.00, 1.00, 1.00, 1.07, 1.30, 1.51),
    (9, "2"): (2.00, 2.00, 2.00, 2.38, 2.93, 3.49),
    (9, "4"): (4.00, 4.00, 4.50, 5.04, 5.82, 6.51),
}


def test_table_5_1() -> None:
    for epsilon, row in TABLE_1.items():
        for length, printed in zip(LENGTHS, row, strict=True):
            assert float(amplified_epsilon(Decimal(epsilon), length)) == pytest.approx(
                printed, abs=0.0051
            )


def test_table_5_2_follows_from_its_formula_in_47_of_60_cells() -> None:
    agree = 0
    for (digits, epsilon), row in TABLE_2.items():
        for length, printed in zip(LENGTHS, row, strict=True):
            together = most_together(Decimal(epsilon), length, Fraction(1, 10**digits))
            agree += (
                abs(float(amplified_epsilon(Decimal(epsilon), length, together)) - printed) < 0.0051
            )
    assert agree == 47


@pytest.mark.parametrize("length", [2, 5, 20])
def test_16_the_last_step_of_theorem_5_2_1(length: int) -> None:
    """Docs/errata, 16: e^eps'/l, not e^eps/l."""
    odds = exp(1.0)
    inner = exp(float(amplified_epsilon(Decimal(1), length)))
    assert inner / length + (length - 1) / length == pytest.approx(odds)
    printed = odds / length + (length - 1) / length
    assert abs(printed - odds) > 0.5


EPSILON, LENGTH, TOGETHER, SIZE = 1.0, 10, 7, 5
CLAIMED = comb(LENGTH, TOGETHER + 1) / SIZE**TOGETHER


def _chances() -> tuple[float, float]:
    """(p', q') of randomized response on a hash of 5 values, at the amplified epsilon."""
    odds = LENGTH / TOGETHER * (exp(EPSILON) - 1) + 1
    return odds / (odds + SIZE - 1), 1 / (odds + SIZE - 1)


def test_5_a_linear_hash_does_not_keep_the_claimed_delta() -> None:
    """Ten items of a plane over GF(5) against ten of a parallel plane: docs/errata, 5."""
    assert most_together(Decimal(1), LENGTH, Fraction(1, 1000)) == TOGETHER
    assert pytest.approx(5.8e-4, rel=0.01) == CLAIMED
    p, q = _chances()
    plane = [(one, two, 0) for one in range(5) for two in range(5)][1 : LENGTH + 1]
    parallel = [(one, two, 1) for one, two, _ in plane]

    def law(items: list[tuple[int, int, int]], row: tuple[int, ...]) -> list[float]:
        hashed = [
            sum(part * each for part, each in zip(row, item, strict=True)) % SIZE for item in items
        ]
        return [q + hashed.count(answer) / LENGTH * (p - q) for answer in range(SIZE)]

    excess = 0.0
    for row in product(range(SIZE), repeat=3):
        ours, theirs = law(plane, row), law(parallel, row)
        excess += sum(
            max(0.0, one - exp(EPSILON) * two) for one, two in zip(ours, theirs, strict=True)
        )
    delta = excess / SIZE**3
    assert delta == pytest.approx(3.2e-3, rel=0.02)
    assert delta > 5 * CLAIMED


def test_5_a_random_hash_keeps_it_also_for_longer_sets() -> None:
    """The excess over all hash functions, for a set of any size against one that never shares a
    hash value.
    """
    p, q = _chances()

    def delta(size: int) -> float:
        held = max(size, LENGTH)
        loads = range(held + 1)
        excess = [max(0.0, q + load / held * (p - q) - exp(EPSILON) * q) for load in loads]
        return SIZE * float(
            sum(
                binom.pmf(load, held, 1 / SIZE) * each
                for load, each in zip(loads, excess, strict=True)
            )
        )

    assert max(delta(size) for size in range(1, 200)) < CLAIMED
    assert log((p + 9 * q) / (10 * q)) < EPSILON  # one item alone would stay far below


def test_a_delta_is_for_the_seeded_hash_alone() -> None:
    ask = padded_ask("basket", 100, None, LENGTH, "olh-seeded", Decimal(1), Fraction(1, 1000))
    assert ask.guarantee.delta == pytest.approx(1e-3)
    assert ask.guarantee.per_report <= 1.0
    assert float(ask.oracle.requested) == pytest.approx(1.24, abs=0.005)
    for name in ("olh", "grr", "adaptive"):
        with pytest.raises(InvalidInput, match="olh-seeded"):
            padded_ask("basket", 100, None, LENGTH, name, Decimal(1), Fraction(1, 1000))
    wrong = oracle("olh", size=110, epsilon=ask.oracle.requested)
    with pytest.raises(InvalidInput, match="amplifies"):
        Ask(replace(ask.encoding, delta=Fraction(1, 1000)), wrong)  # type: ignore[type-var]


@pytest.mark.parametrize("length", [1, 2, 4])
def test_the_stated_variance_is_that_of_one_answer(length: int) -> None:
    """Theorem 5.2.4: of an item that a person holds, and of one that she does not, exactly."""
    ask = padded_ask("basket", 4, None, length, "grr", Decimal(1))
    encoding, source = ask.encoding, ask.oracle
    assert isinstance(encoding, Padded)
    assert isinstance(source, PureOracle)
    law = exact_law(lambda e: int(source.randomize(encoding.encode({"basket": [1]}, e), e)), LIMIT)
    noise = padded_noise(source, length, 1)
    for item, frequency in ((1, 1.0), (0, 0.0)):
        support = float(law[item])
        stated = float(noise.variance(frequency))
        assert stated == pytest.approx((length / source.gap) ** 2 * support * (1 - support))
        mean = length * (support - source.q) / source.gap
        assert mean == pytest.approx(frequency, abs=1e-12)
