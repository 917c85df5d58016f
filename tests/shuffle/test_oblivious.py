"""The oblivious shuffle: nothing is lost, nobody of a minority can follow it, and what the thesis
leaves out links every report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import comb, factorial

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from sottovoce.ground.entropy import Entropy, Seeded
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.shuffle.peos import oblivious
from sottovoce.shuffle.peos.dgk import DgkPrivateKey, DgkPublicKey
from sottovoce.shuffle.peos.oblivious import (
    ObliviousShuffler,
    holder_of,
    permutation,
    shuffle_rounds,
)
from sottovoce.shuffle.peos.shares import uniform_words
from tests.shuffle.in_process import Shuffled, shuffled
from tests.statistics import chi_limit, chi_squared

# -- who hides when


@pytest.mark.parametrize("parties", [3, 5, 7, 9])
def test_any_minority_seeks_in_some_round_and_no_majority_does(parties: int) -> None:
    rounds = shuffle_rounds(parties)
    assert len(rounds) == len(set(rounds)) == comb(parties, parties // 2 + 1)
    few, more = parties // 2, parties // 2 + 1
    for colluding in combinations(range(parties), few):
        assert any(not set(hiders) & set(colluding) for hiders in rounds)
    for colluding in combinations(range(parties), more):
        assert all(set(hiders) & set(colluding) for hiders in rounds)
    for left_out in rounds:  # none of them can be spared
        rest = [hiders for hiders in rounds if hiders != left_out]
        assert any(
            all(set(hiders) & set(colluding) for hiders in rest)
            for colluding in combinations(range(parties), few)
        )


@pytest.mark.parametrize("parties", [3, 5, 7, 9])
def test_ciphertexts_change_hands_as_rarely_as_they_can(parties: int) -> None:
    holders = [holder_of(hiders) for hiders in shuffle_rounds(parties)]
    assert holders[0] == parties - 1  # to whom users send theirs
    moves = [pair for pair in pairwise(holders) if pair[0] != pair[1]]
    assert len(moves) == parties // 2


@pytest.mark.parametrize("parties", [0, 1, 2, 4, 11])
def test_numbers_of_parties_without_a_minority_are_refused(parties: int) -> None:
    with pytest.raises(InvalidInput, match=rf"parties \({parties}\) must be odd"):
        shuffle_rounds(parties)


# -- the permutation


def test_a_seed_stands_for_a_uniform_permutation(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [number.to_bytes(32, "big") for number in range(5000)]
    drawn = [tuple(permutation(seed, 4).tolist()) for seed in seeds]
    outputs = sorted(set(drawn))
    assert len(outputs) == factorial(4)
    even = np.full(len(outputs), 1 / len(outputs))
    assert chi_squared(outputs, even, drawn)[0] < chi_limit(23)

    # ties, which 128 bits hardly ever have, are drawn again
    class Short:
        def __init__(self, data: bytes) -> None:
            self._data = data

        def digest(self, size: int) -> bytes:
            return bytes(size) if self._data.endswith(b"\0") else np.arange(size // 8).tobytes()

    monkeypatch.setattr(oblivious.hashlib, "shake_256", Short)
    assert permutation(b"", 3).tolist() == [0, 1, 2]


def test_every_hider_has_a_say_in_the_order(key: DgkPrivateKey) -> None:
    def order(*seeds: bytes) -> list[int]:
        shuffler = ObliviousShuffler(0, 3, key.public, Seeded(1), np.arange(30, dtype=np.uint64))
        shuffler.permute(dict(enumerate(seeds)))
        return shuffler.words.tolist()

    assert order(b"a", b"b") == order(b"a", b"b")
    assert len({tuple(order(*seeds)) for seeds in ((b"a", b"b"), (b"c", b"b"), (b"a", b"c"))}) == 3


# -- all of it


@pytest.mark.parametrize(("parties", "rows"), [(3, 1), (3, 40), (5, 12), (7, 5)])
@pytest.mark.parametrize("bits", [32, 64])
def test_no_row_is_lost_or_changed(
    keys: dict[int, DgkPrivateKey], bits: int, parties: int, rows: int
) -> None:
    words = uniform_words(rows, bits, Seeded(1))
    found = shuffled(keys[bits], words, parties, seed=2, fakes=3).words
    assert len(found) == rows + 3
    assert not Counter(words.tolist()) - Counter(found.tolist())


def test_seeds_go_between_hiders_alone(key: DgkPrivateKey) -> None:
    for parties in (3, 5):
        log = shuffled(key, uniform_words(2, 64, Seeded(1)), parties, seed=2).log
        pairs = Counter((each.sender, each.to) for each in log if each.kind == b"S")
        together: Counter[tuple[int, int]] = Counter()
        for hiders in shuffle_rounds(parties):
            together.update((a, b) for a in hiders for b in hiders if a != b)
        assert pairs == together


def test_what_a_party_gets_is_uniform(key: DgkPrivateKey) -> None:
    """All words on all links, of rows that are all alike."""
    rows = 2800
    result = shuffled(key, np.zeros(rows, np.uint64), 3, seed=3)
    sent = [each.data for each in result.log if each.kind in b"HR"]
    assert len(sent) == 2 + 2 + 1 + 3 * 4
    words = [np.frombuffer(data, "<u8") for data in sent]
    words += [result.key.decrypt(ciphers)[0] for ciphers in (*result.handed, result.last)]
    limit = chi_limit(255, comparisons=len(words))
    for column in words:
        drawn = (column & np.uint64(255)).tolist()
        assert chi_squared(list(range(256)), np.full(256, 1 / 256), drawn)[0] < limit


# -- who can follow


def follow(
    key: DgkPrivateKey, known: set[int], seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int]:
    """(where the first of four rows ends, where it would by the rounds in which one of ``known``
    hides).
    """
    orders: dict[bytes, np.ndarray] = {}

    def noted(joined: bytes, count: int) -> np.ndarray:
        return orders.setdefault(joined, permutation(joined, count))

    monkeypatch.setattr(oblivious, "permutation", noted)
    words = np.arange(4, dtype=np.uint64)
    found = shuffled(key, words, 3, seed).words
    place = 0
    rounds = shuffle_rounds(3)
    assert len(orders) == len(rounds)
    for hiders, order in zip(rounds, orders.values(), strict=True):
        if known & set(hiders):
            place = order.tolist().index(place)
    return found.tolist().index(0), place


@pytest.mark.parametrize("known", [{0}, {1}, {2}], ids=str)
def test_one_party_of_three_cannot_follow(
    key: DgkPrivateKey, known: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [follow(key, known, seed, monkeypatch) for seed in range(0, 2000, 10)]
    moved = [(place - predicted) % 4 for place, predicted in runs]
    even = np.full(4, 1 / 4)
    assert chi_squared(list(range(4)), even, moved)[0] < chi_limit(3, comparisons=3)


@pytest.mark.parametrize("known", [{0, 1}, {0, 2}, {1, 2}], ids=str)
def test_two_parties_of_three_can(
    key: DgkPrivateKey, known: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(0, 100, 10):
        place, predicted = follow(key, known, seed, monkeypatch)
        assert place == predicted


# -- masks


class KeepsMasks(DgkPublicKey):
    """The thesis's shuffle: words are added, masks stay."""

    def zeros(self, count: int, entropy: Entropy) -> Iterator[mpz]:
        return (mpz(1) for _ in range(count))


def tags(key: DgkPrivateKey, ciphers: list[mpz], carries: int) -> list[set[mpz]]:
    """What the owner of the key makes of ciphertexts, h^(r u): the same before and after additions.

    Args:
        carries: how often added words may have passed 2^l; each time is one factor g^(u u).
    """
    public, u = key.public, mpz(1) << key.public.plaintext_bits
    words, _ = key.decrypt(ciphers)
    back = gmpy2.invert(public.g, key.p)
    step = gmpy2.powmod(back, u * u, key.p)
    found = []
    for cipher, word in zip(ciphers, words.tolist(), strict=True):
        # c^u = g^(u M) h^(r u), for M = m + u times the carries
        tag = gmpy2.powmod(cipher, u, key.p) * gmpy2.powmod(back, u * word, key.p) % key.p
        every = set()
        for _ in range(carries + 1):
            every.add(tag)
            tag = tag * step % key.p
        found.append(every)
    return found


def linked(result: Shuffled, sent: np.ndarray) -> int:
    """How many reports the server and the last shuffler give back to those who sent them."""
    before = {
        tag: row for row, every in enumerate(tags(result.key, result.first, 0)) for tag in every
    }
    right = 0
    for word, every in zip(result.words.tolist(), tags(result.key, result.last, 4), strict=True):
        row = next((before[tag] for tag in every if tag in before), None)
        right += row is not None and int(sent[row]) == word
    return right


@pytest.mark.parametrize("parties", [3, 5])
def test_masks_that_stay_link_every_report_and_fresh_ones_none(
    key: DgkPrivateKey, parties: int
) -> None:
    sent = uniform_words(150, 64, Seeded(1))
    public = key.public
    keeping = KeepsMasks(public.modulus, public.g, public.h, public.plaintext_bits)
    assert linked(shuffled(key, sent, parties, seed=2, public=keeping), sent) == 150
    assert linked(shuffled(key, sent, parties, seed=2), sent) == 0


class RenewsAtTheEnd(ObliviousShuffler):
    """Replaces masks for the server alone, not for the next shuffler."""

    def hide_parts(self, hiders: tuple[int, ...]) -> tuple[dict[int, np.ndarray], bytes]:
        public = self.key
        self.key = KeepsMasks(public.modulus, public.g, public.h, public.plaintext_bits)
        try:
            return super().hide_parts(hiders)
        finally:
            self.key = public


@pytest.mark.parametrize("mutant", [True, False])
def test_every_hand_over_counts(key: DgkPrivateKey, mutant: bool) -> None:
    """With five parties two shufflers see ciphertexts, and rounds between them that they seek."""
    sent = uniform_words(60, 64, Seeded(1))
    kinds: dict[int, type[ObliviousShuffler]] = dict.fromkeys(range(5), RenewsAtTheEnd)
    result = shuffled(key, sent, 5, seed=2, kinds=kinds if mutant else None)
    ahead, after = result.handed
    before = {tag for every in tags(key, ahead, 0) for tag in every}
    again = sum(bool(every & before) for every in tags(key, after, 4))
    assert again == (60 if mutant else 0)


def test_plaintexts_of_ciphertexts_link_nothing_either(key: DgkPrivateKey) -> None:
    sent = uniform_words(150, 64, Seeded(1))
    result = shuffled(key, sent, 5, seed=2)
    seen = [result.first, *result.handed, result.last]
    assert len(seen) == 4
    words = [set(key.decrypt(ciphers)[0].tolist()) for ciphers in seen]
    assert sum(map(len, words)) == len(set().union(*words)) == 4 * 150


# -- what does not fit


def test_shares_that_do_not_fit_are_refused(key: DgkPrivateKey) -> None:
    words = np.zeros(3, np.uint64)
    ciphers = key.public.encrypt_many(words, Seeded(1))
    with pytest.raises(InvalidInput, match="64 bits"):
        ObliviousShuffler(0, 3, key.public, Seeded(1), words.astype(np.uint32))
    with pytest.raises(InvalidInput, match="last party"):
        ObliviousShuffler(0, 3, key.public, Seeded(1), words, ciphers)
    with pytest.raises(InvalidInput, match="last party"):
        ObliviousShuffler(2, 3, key.public, Seeded(1), words)
    with pytest.raises(InvalidInput, match="as many"):
        ObliviousShuffler(2, 3, key.public, Seeded(1), words, ciphers[:2])
    with pytest.raises(CorruptReport, match="as many"):
        ObliviousShuffler(0, 3, key.public, Seeded(1), words).take_ciphers(
            key.public.pack(ciphers[:2])
        )
