"""Local hashing of whole sets by enumeration: every hash function, every two sets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Entropy, Seeded, exact_law
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import bucket, keyed_hash
from sottovoce.oracles.sets import SetLocalHashing, least_variance, set_hash_size
from sottovoce.oracles.thresholds import exceeds
from sottovoce.protocol.encodings import Ask, Drawn
from sottovoce.schema import Sets
from tests.statistics import chi_limit, z_limit

LIMIT = 1 << 17


def made(size: int, epsilon: float, length: int, **options: int) -> SetLocalHashing:
    built = sv.oracle("olh-sets", size=size, epsilon=epsilon, length=length, **options)
    assert isinstance(built, SetLocalHashing)
    return built


def sets_of(size: int, length: int) -> list[tuple[int, ...]]:
    return [each for count in range(length + 1) for each in combinations(range(size), count)]


def answer_law(chosen: SetLocalHashing, members: tuple[int, ...], seed: int) -> dict[int, Fraction]:
    """The chances of every answer, for one seed."""

    fixed = replace(chosen)
    object.__setattr__(fixed, "public_coins", lambda entropy: [seed])
    return exact_law(lambda entropy: int(fixed.randomize(members, entropy)[1]), LIMIT)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_answer_tells_two_sets_apart_by_more_than_epsilon(epsilon: float, length: int) -> None:
    chosen = made(4, epsilon, length, hash_size=5)
    reached = Fraction(1)
    hashes = set()
    for seed in range(60):
        hashes.add(tuple(bucket(keyed_hash(seed, value), 5) for value in range(4)))
        laws = [answer_law(chosen, members, seed) for members in sets_of(4, length)]
        for answer in range(5):
            chances = [law[answer] for law in laws]
            reached = max(reached, max(chances) / min(chances))
        assert all(sum(law.values()) == 1 for law in laws)
    # values that collide and values that do not
    assert len({len(set(each)) for each in hashes}) >= 3
    assert not exceeds(reached, Decimal(str(epsilon)))
    assert reached == chosen.worst_ratio
    assert chosen.epsilon <= epsilon


def test_louder_coins_are_caught() -> None:
    chosen = made(4, 1.0, 2, hash_size=5)
    louder = SetLocalHashing(4, chosen.requested, chosen.truth * 105 // 100, 5, 2)
    assert exceeds(louder.worst_ratio, Decimal(1))


class Wasteful(SetLocalHashing):
    """A mutant: what a small set leaves over goes to all answers, also to those that its values
    hash to.
    """

    def randomize(self, value: object, entropy: Entropy) -> tuple[int, int]:
        (seed,) = self.public_coins(entropy)
        near = sorted({bucket(keyed_hash(seed, each), self.hash_size) for each in value})  # type: ignore[attr-defined]
        if entropy.coin(self.truth):
            slot = entropy.below(self.length)
            if slot < len(near):
                return seed, near[slot]
        return seed, entropy.below(self.hash_size)


def test_a_client_that_spreads_what_is_left_over_everything_is_caught() -> None:
    good = made(4, 1.0, 3, hash_size=5)
    mutant = Wasteful(4, good.requested, good.truth, 5, 3)
    worst = Fraction(0)
    for seed in range(20):
        laws = [answer_law(mutant, members, seed) for members in sets_of(4, 3)]
        worst = max(
            worst, *(max(law[a] for law in laws) / min(law[a] for law in laws) for a in range(5))
        )
    assert exceeds(worst, Decimal(1))


def test_p_and_q_over_all_hash_functions() -> None:
    """A held value is supported with chance p under every function, another one with 1/g over all
    of them.
    """
    chosen = made(3, 1.0, 2, hash_size=4)
    p, others = set(), Fraction(0)
    slot = Fraction(chosen.truth, 1 << 64) / 2
    plain = (1 - Fraction(chosen.truth, 1 << 64)) / 4
    for function in product(range(4), repeat=3):  # values 0 and 1 are held, 2 is not
        near = sorted({function[0], function[1]})
        law = {
            a: plain + (slot if a in near else slot * (2 - len(near)) / (4 - len(near)))
            for a in range(4)
        }
        assert sum(law.values()) == 1
        p |= {law[function[0]], law[function[1]]}
        others += law[function[2]] / 4**3
    assert p == {chosen.exact_p}
    assert others == chosen.exact_q


def test_one_value_is_seeded_local_hashing() -> None:
    alone, seeded = made(50, 1.0, 1), sv.oracle("olh-seeded", size=50, epsilon=1.0)
    assert isinstance(seeded, type(alone).__mro__[1])
    assert (alone.truth, alone.hash_size) == (seeded.truth, seeded.hash_size)  # type: ignore[attr-defined]
    assert alone.randomize(7, Seeded(3)) == alone.randomize((7,), Seeded(3))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("length", [1, 2, 5, 16])
def test_the_hash_size_is_the_best_one(epsilon: float, length: int) -> None:
    best = set_hash_size(length, float(np.exp(epsilon)))
    near = {
        size: made(64, epsilon, length, hash_size=size).variance(1)
        for size in range(max(length + 1, 2), 3 * best)
    }
    assert near[best] <= min(near.values()) * 1.001
    assert near[best] == pytest.approx(least_variance(length, float(np.exp(epsilon))), rel=1e-6)


@pytest.mark.parametrize("members", [(), (3,), (1, 4, 6), (0, 2, 3, 5)])
def test_simulated_sets_follow_p_and_q(members: tuple[int, ...]) -> None:
    """A crowd's reports support held values with chance p and others with q, whatever the size of
    the set.
    """
    chosen, people = made(8, 1.0, 4), 400_000
    column = Sets(
        np.arange(people + 1) * len(members), np.tile(np.array(members, np.uint64), people)
    )
    support = chosen.support(chosen.simulate(column, seed=5), np.arange(8))
    chances = np.array([chosen.p if value in members else chosen.q for value in range(8)])
    errors = (support - people * chances) / np.sqrt(people * chances * (1 - chances))
    assert np.abs(errors).max() < z_limit(8 * 4)
    swapped = (support - people * chosen.q) / np.sqrt(people * chosen.q * (1 - chosen.q))
    assert not members or np.abs(swapped).max() > z_limit(8 * 4)  # held values are told apart


def test_long_sets_are_cut_by_a_fair_draw() -> None:
    encoding = Drawn("basket", 4, None, 2)
    law = exact_law(lambda entropy: encoding.encode({"basket": [0, 1, 3]}, entropy), LIMIT)
    assert law == {pair: Fraction(1, 3) for pair in ((0, 1), (0, 3), (1, 3))}
    people = 30_000
    column = Sets(np.arange(people + 1) * 3, np.tile(np.array([0, 1, 3], np.uint64), people))
    drawn = encoding.encode_columns({"basket": column}, 7)
    counts = Counter(map(tuple, drawn.codes.reshape(-1, 2).tolist()))
    statistic = sum((counts[pair] - people / 3) ** 2 / (people / 3) for pair in law)
    assert set(counts) == set(law)
    assert statistic < chi_limit(2, 1)


def test_refusals() -> None:
    chosen = made(8, 1.0, 2)
    with pytest.raises(InvalidInput, match="at most 2"):
        chosen.randomize((1, 2, 3), Seeded(1))
    with pytest.raises(InvalidInput, match="at most 2"):
        chosen.simulate(Sets(np.array([0, 3]), np.arange(3, dtype=np.uint64)), seed=1)
    with pytest.raises(InvalidInput, match="olh-sets"):
        Ask(Drawn("basket", 8, None, 3), chosen)
