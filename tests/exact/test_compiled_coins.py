"""The compiled loops that whisper for a whole file: their law is that of a device, exactly."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.columns import whisper_block
from sottovoce.ground.entropy import WHOLE, Entropy, System, exact_law
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import SystemDraws
from sottovoce.kernels import draws, field_hashing, hashing, sets, whisper, wide
from sottovoce.oracles import Oracle
from tests.family_plans import each_family, people, plan_of
from tests.oracles import ENUMERABLE, NAMES, ordinary, sizes, small

WAYS = 1 << 16
FEWER = {"rappor": {"buckets": 3}}  # a loop draws as many coins for every bucket
KERNELS = (whisper, hashing, field_hashing, sets, wide)


class Word:
    """A uniform word of which only what a loop asks is decided."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def __lt__(self, threshold: np.uint64) -> bool:
        return self._entropy.coin(int(threshold))

    def __ge__(self, threshold: np.uint64) -> bool:
        return not self < threshold

    def __and__(self, mask: np.uint64) -> np.uint64:
        assert int(mask) & (int(mask) + 1) == 0
        return np.uint64(self._entropy.below(int(mask) + 1))


class Coins:
    """A word of independent coins, of which the lowest are asked for."""

    def __init__(self, entropy: Entropy, threshold: int) -> None:
        self._entropy, self._threshold = entropy, threshold

    def __and__(self, mask: np.uint64) -> np.uint64:
        count = int(mask).bit_length()
        assert int(mask) == (1 << count) - 1
        return np.uint64(self._entropy.coins(self._threshold, count))


class Choices:
    """Columns of draws, one after another."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def integers(self, low: int, high: int, size: int, dtype: Any) -> np.ndarray:
        return np.array([self._entropy.below(high - low) + low for _ in range(size)], dtype)


@pytest.fixture
def law(monkeypatch: pytest.MonkeyPatch) -> Callable[[Oracle, int], dict[bytes, Fraction]]:
    """The exact law of one report from the loops' own source, over every way it can go."""
    drawing = {
        "uniform_word": Word,
        "below": lambda entropy, limit: np.uint64(entropy.below(int(limit))),
        "below32": lambda entropy, limit: np.uint64(entropy.below(int(limit))),
        "coin_word": lambda entropy, threshold: Coins(entropy, int(threshold)),
    }
    for kernel in KERNELS:
        for name in [name for name in vars(kernel) if name.startswith("whisper_")]:
            monkeypatch.setattr(kernel, name, getattr(kernel, name).py_func)
        for name in drawing.keys() & vars(kernel).keys():
            monkeypatch.setattr(kernel, name, drawing[name])

    using: list[Entropy] = []  # what decides the way that is walked now
    monkeypatch.setattr(draws, "in_chunks", lambda n, _, work: work(slice(0, n), using[-1]))
    for module in ("cohorts", "sketch"):
        monkeypatch.setattr(f"sottovoce.oracles.{module}.draws", lambda *_: Choices(using[-1]))

    def found(oracle: Oracle, value: int) -> dict[bytes, Fraction]:
        def one(entropy: Entropy) -> bytes:
            using[:] = [entropy]
            return bytes(oracle.simulate([value], None)[0].tobytes())

        return exact_law(one, WAYS)

    return found


def channel(oracle: Oracle, value: int) -> dict[bytes, Fraction]:
    """What a device sends, packed, and the chance of it."""
    return {oracle.pack(output): chance for output, chance in oracle.exact_channel()[value].items()}


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("name", ENUMERABLE)
def test_the_compiled_loop_has_the_channel_of_the_device(
    name: str, epsilon: float, law: Callable[[Oracle, int], dict[bytes, Fraction]]
) -> None:
    for size in sizes(name, (2, 3)):
        oracle = small(name, size, epsilon, **FEWER.get(name, {}))
        for value in range(size):
            expected = channel(oracle, value)
            assert {key: found for key, found in law(oracle, value).items() if found} == expected


def test_a_loop_with_another_coin_is_caught(
    law: Callable[[Oracle, int], dict[bytes, Fraction]], monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = small("grr", 3, 1.0)
    assert law(oracle, 1) == channel(oracle, 1)
    monkeypatch.setattr(Word, "__lt__", lambda self, coin: self._entropy.coin(int(coin) + 1))
    assert law(oracle, 1) != channel(oracle, 1)


def tape(*words: int) -> np.ndarray:
    return np.array([draws.TAPE_HEADER, 0, 0, 0, *words], np.uint64)


@pytest.mark.parametrize("threshold", [0, 1, 3 << 62, WHOLE // 3, WHOLE - 1])
def test_64_coins_at_once_compare_64_uniform_integers(threshold: int) -> None:
    source = random.Random(1)
    near = [max(0, threshold - 1), threshold, min(WHOLE - 1, threshold + 1), 0, WHOLE - 1]
    lanes = near + [source.getrandbits(64) for _ in range(64 - len(near))]
    planes = [
        sum((lane >> place & 1) << number for number, lane in enumerate(lanes))
        for place in reversed(range(64))
    ]
    found = int(coin_word(tape(*planes), threshold))
    assert [found >> number & 1 for number in range(64)] == [lane < threshold for lane in lanes]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 8, 100])
def test_a_limit_is_drawn_by_rejection(limit: int) -> None:
    reach = 1 << (limit - 1).bit_length()
    accepted = [value for value in range(reach) if value < limit]
    for value in range(reach):
        high = value + (7 << 40)  # what lies above the mask is no matter
        assert int(below(tape(high, 0), limit)) == (value if value in accepted else 0)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 12, 1000, (1 << 32) - 1])
def test_multiplying_gives_every_value_as_often(limit: int) -> None:
    """Of the 2^32 high halves of a word, as many give each value; the others are drawn again."""
    least = (1 << 32) % limit
    shares = set()
    for value in {0, 1 % limit, limit // 2, limit - 1}:
        first = -(-((value << 32) + least) // limit)
        last = -(-((value + 1) << 32) // limit) - 1
        shares.add(last - first + 1)
        for half in {first, last} if last >= first else ():
            assert int(below32(tape(half << 32, 0), limit)) == value
        before = first - 1
        if before >= 0 and before * limit >> 32 == value:  # too low: the next word decides
            assert int(below32(tape(before << 32, (1 << 64) - 1), limit)) == limit - 1
    assert shares == {(1 << 32) // limit}


# compiled as the loops compile them
def coin_word(state: np.ndarray, threshold: int) -> Any:
    return draws.coin_word(state, np.uint64(threshold))


def below(state: np.ndarray, limit: int) -> Any:
    return draws.below(state, np.uint64(limit))


def below32(state: np.ndarray, limit: int) -> Any:
    return draws.below32(state, np.uint64(limit))


class Source:
    """The operating system's generator as a test sees it: bytes that come round after round."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).randbytes
        self.drawn = 0

    def __call__(self, count: int) -> bytes:
        self.drawn += count
        return self._draw(count)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_depends_on_where_a_tape_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = ordinary(name, 1.0)
    values = np.arange(300) % oracle.size
    from_tape = draws._from_tape

    def from_the_start(*args: Any) -> int:
        monkeypatch.setattr(os, "urandom", Source(1))
        return from_tape(*args)

    monkeypatch.setattr(draws, "_from_tape", from_the_start)
    found = []
    for words in (1 << 12, 1, 3):
        monkeypatch.setattr(os, "urandom", Source(1))
        monkeypatch.setattr(draws, "FIRST_PEOPLE", len(values))
        monkeypatch.setattr(draws, "FIRST_WORDS", words)
        found.append(oracle.simulate(values, None))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_report_without_a_seed_is_made_of_the_systems_words(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is drawn from: no seeded generator is made, and the same words give the same."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a seeded generator")

    for maker in ("numpy.random.SeedSequence", "numpy.random.PCG64", "numpy.random.default_rng"):
        monkeypatch.setattr(maker, refuse)
    monkeypatch.setattr("sottovoce.ground.seeds.Seeded", refuse)
    oracle = ordinary(name, 1.0)
    values = np.arange(2000) % oracle.size
    found = []
    for seed in (1, 1, 2):
        monkeypatch.setattr(os, "urandom", source := Source(seed))
        found.append(oracle.simulate(values, None))
        assert source.drawn >= 2000 * 8  # a word or more for everybody
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@each_family
def test_whole_reports_are_made_of_the_systems_words(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a seeded generator")

    plan, crowd = plan_of(kind), people(3000)
    for maker in ("numpy.random.SeedSequence", "numpy.random.PCG64", "numpy.random.default_rng"):
        monkeypatch.setattr(maker, refuse)
    monkeypatch.setattr("sottovoce.ground.seeds.Seeded", refuse)
    found = []
    for seed in (1, 1, 2):
        monkeypatch.setattr(os, "urandom", Source(seed))
        found.append(whisper_block(plan, crowd))
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert len(found[0].checked(plan)) == 3000


def test_many_draws_of_the_system_are_uniform_by_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all words that a short tape can hold, every value has as many."""
    monkeypatch.setattr(System, "words", lambda self, count: queue(count))
    for limit in (1, 3, 5, 8):
        reach = 1 << (limit - 1).bit_length()
        counts = [0] * limit
        for pair in itertools.product(range(reach), repeat=2):
            words = itertools.chain(pair, itertools.repeat(0))
            queue = lambda count, words=words: np.array(  # noqa: E731
                list(itertools.islice(words, count)), np.uint64
            )
            (value,) = SystemDraws().integers(10, 10 + limit, 1)
            counts[int(value) - 10] += 1
        # two words in a row that are too large give the zero behind them
        spare = (reach - limit) ** 2
        assert [count - spare * (value == 0) for value, count in enumerate(counts)] == [
            (reach**2 - spare) // limit
        ] * limit


def test_an_order_of_the_system_has_no_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: Iterator[list[int]] = iter([[5, 5, 1], [3, 9, 3], [2, 8, 4]])
    monkeypatch.setattr(System, "words", lambda self, count: np.array(next(drawn), np.uint64))
    assert SystemDraws().random(3).tolist() == [2, 8, 4]


def test_assigned_coins_and_rounds_are_not_for_whole_files() -> None:
    schema = sv.Schema(x=sv.Boolean(), item=sv.Items(range(9)))
    assigned = sv.plan(schema, sv.Frequencies("x"), epsilon=1, people=1000, coin="assigned")
    with pytest.raises(InvalidInput, match="assignment is required"):
        whisper_block(assigned, {"x": [True]})
    rounds = sv.plan(schema, sv.TopItems("item", top=2), epsilon=2, people=10_000)
    with pytest.raises(InvalidInput, match="rows is required"):
        whisper_block(rounds, {"item": [[1]]})
