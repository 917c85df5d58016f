"""The blanket of every oracle: its channel is gamma times the blanket and the rest by the value."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import bucket, keyed_hash
from sottovoce.oracles import CohortOracle, Oracle, SubsetSelection
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.hashing import SeededLocalHashing
from tests.exact.test_set_hashing import answer_law, made, sets_of
from tests.oracles import ENUMERABLE, sizes, small

REFUSED = ("she", "rappor")
CLAIMED = tuple(name for name in ENUMERABLE if name not in (*REFUSED, "o-rappor"))


def supported(oracle: Oracle, output: Any, value: int) -> bool:
    """Whether a report is likelier for a value; what o-rr's buckets support is its answer."""
    if isinstance(oracle, CohortOracle):
        answer, cohort = output
        own = oracle.places(cohort, value)[0]
        is_filter = oracle.names[0] == "o-rappor"
        return bool(answer >> own & 1) if is_filter else bool(answer == own)
    return oracle.supports(output, value)


def law_of(oracle: Oracle, blanket: Blanket) -> dict[Any, Fraction]:
    """w of the definition, which every value must agree on."""
    law: dict[Any, Fraction] = {}
    for output in oracle.outputs():
        chances = set()
        for value, channel in enumerate(oracle.exact_channel()):
            scale = blanket.ratio if supported(oracle, output, value) else 1
            chances.add(channel[output] / (blanket.gamma * scale))
        assert len(chances) == 1, output
        law[output] = chances.pop()
    return law


def check(oracle: Oracle, blanket: Blanket) -> None:
    law = law_of(oracle, blanket)
    assert sum(law.values()) == 1
    assert blanket.gamma * (1 + blanket.q * (blanket.ratio - 1)) == 1
    together = {}
    for count in (1, 2, 3):
        for values in combinations(range(oracle.size), count):
            together[values] = sum(
                chance
                for output, chance in law.items()
                if all(supported(oracle, output, value) for value in values)
            )
    by_count = {
        count: {share for values, share in together.items() if len(values) == count}
        for count in (1, 2, 3)
    }
    assert by_count[1] == {blanket.q}
    assert min(by_count[2]) >= blanket.both
    if oracle.names[0] not in ("cms", "hcms", "o-rr", "o-rappor"):  # whose hashes are given
        assert min(by_count[2]) == blanket.both
        assert blanket.pair in by_count[2]
        assert blanket.triple is None or blanket.triple in by_count[3]
        assert (blanket.triple is None) <= (oracle.size == 2 or oracle.names[0] == "square-wave")


@pytest.mark.parametrize("name", CLAIMED)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_channels_are_blankets_and_the_rest(name: str, epsilon: float) -> None:
    for size in sizes(name, (2, 3, 4)):
        oracle = small(name, size, epsilon)
        check(oracle, oracle.blanket())


def test_a_wrong_blanket_is_found() -> None:
    oracle = small("olh", 3, 1.0)
    good = oracle.blanket()
    for wrong in (
        Blanket.of(good.ratio * Fraction(99, 100), good.q, good.both),
        Blanket.of(good.ratio, good.q * Fraction(99, 100), good.both),
        Blanket.of(good.ratio, good.q, good.both * Fraction(101, 100)),
    ):
        with pytest.raises(AssertionError):
            check(oracle, wrong)


def test_filters_of_one_hash_have_one_and_those_of_more_do_not() -> None:
    oracle = sv.oracle("o-rappor", size=3, epsilon=1, cohorts=2, buckets=3)
    check(oracle, oracle.blanket())
    two = sv.oracle("o-rappor", size=3, epsilon=1, cohorts=2, buckets=4, hashes=2)
    with pytest.raises(InvalidInput, match="o-rappor has no privacy blanket: a value sets"):
        two.blanket()


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_none_says_why(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} has no privacy blanket: .+ has one"):
        small(name, 3, 1.0).blanket()


@pytest.mark.parametrize("chosen", [1, 2, 3, 4])
def test_subsets_of_every_length(chosen: int) -> None:
    oracle = sv.oracle("ss", size=5, epsilon=1, chosen=chosen)
    assert isinstance(oracle, SubsetSelection)
    check(oracle, oracle.blanket())


@pytest.mark.parametrize("size", [3, 4, 5, 6, 7])
def test_lines_over_a_field_for_every_hash_size(size: int) -> None:
    for count in range(2, size + 1):
        oracle = sv.oracle("olh-field", size=size, epsilon=1, hash_size=count)
        check(oracle, oracle.blanket())


def test_seeded_hashes_for_any_seed() -> None:
    """The blanket is uniform answers beside a uniform seed, whatever the hash function does."""
    oracle = sv.oracle("olh-seeded", size=4, epsilon=1, hash_size=3)
    assert isinstance(oracle, SeededLocalHashing)
    blanket = oracle.blanket()
    other = 1 - oracle.exact_p
    for seed in range(20):
        for value in range(4):
            own = bucket(keyed_hash(seed, value), 3)
            law = dict.fromkeys(range(3), other / 2) | {own: oracle.exact_p}
            assert {chance / blanket.gamma * 3 for chance in law.values()} == {1, blanket.ratio}
    assert blanket.q == Fraction(1, 3)
    assert blanket.both == 0


@pytest.mark.parametrize("length", [1, 2])
def test_sets_are_means_of_full_sets_of_answers(length: int) -> None:
    """Every law of a set lies between gamma w and E gamma w, and full sets reach both."""
    chosen = made(4, 1.0, length, hash_size=5)
    blanket = chosen.blanket()
    assert blanket.q == Fraction(length, 5)
    for seed in range(20):
        for members in sets_of(4, length):
            near = {bucket(keyed_hash(seed, value), 5) for value in members}
            law = answer_law(chosen, members, seed)
            # the mean over all full sets that hold the near answers
            full = [each for each in combinations(range(5), length) if near <= set(each)]
            for answer in range(5):
                mean = sum(
                    blanket.gamma / 5 * (blanket.ratio if answer in each else 1) for each in full
                ) / len(full)
                assert law[answer] == mean
