"""DGK: what is encrypted adds up modulo 2^l, keys are checked, masks are those of the source."""

from __future__ import annotations

from dataclasses import replace

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from sottovoce.ground.entropy import Seeded, System
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.shuffle.peos import dgk
from sottovoce.shuffle.peos.dgk import (
    FULL_MODULUS_BITS,
    MASK_BITS,
    ORDER_BITS,
    TEST_MODULUS_BITS,
    DgkPrivateKey,
    DgkPublicKey,
)
from sottovoce.shuffle.peos.shares import uniform_words, word_type

Keys = dict[int, DgkPrivateKey]


def words_of(bits: int, *values: int) -> np.ndarray:
    return np.array(values, word_type(bits))


@pytest.mark.parametrize("bits", [32, 64])
def test_words_come_back(keys: Keys, bits: int) -> None:
    edges = [0, 1, 255, 256, (1 << bits) - 1, 1 << bits - 1, 1 << bits - 8]
    words = np.concatenate([words_of(bits, *edges), uniform_words(40, bits, Seeded(1))])
    key = keys[bits]
    found, valid = key.decrypt(key.public.encrypt_many(words, Seeded(2)))
    assert found.tolist() == words.tolist()
    assert valid.all()
    assert found.dtype == word_type(bits)
    single = [key.public.encrypt(word, Seeded(3)) for word in edges]
    assert key.decrypt(single)[0].tolist() == edges


@pytest.mark.parametrize("bits", [32, 64])
def test_sums_are_those_modulo_a_power_of_two(keys: Keys, bits: int) -> None:
    key, public = keys[bits], keys[bits].public
    first, second, third = (uniform_words(20, bits, Seeded(seed)) for seed in range(3))
    ciphers = public.encrypt_many(first, Seeded(4))
    pairs = zip(ciphers, public.encrypt_many(second, Seeded(5)), strict=True)
    both = [public.add(*pair) for pair in pairs]
    moved = public.fresh(public.add_words(both, third), Seeded(6))
    assert key.decrypt(moved)[0].tolist() == (first + second + third).tolist()


def test_a_key_of_full_size_works_and_is_what_the_sources_ask_for() -> None:
    key = DgkPrivateKey.generate(System())
    public, n = key.public, key.public.modulus
    assert n.bit_length() == FULL_MODULUS_BITS == 3072
    assert ORDER_BITS[FULL_MODULUS_BITS] == 256
    assert MASK_BITS[FULL_MODULUS_BITS] == 640  # 2.5 t
    assert public.cipher_bytes == 384
    words = uniform_words(6, 64, System())
    assert key.decrypt(public.encrypt_many(words, System()))[0].tolist() == words.tolist()
    assert DgkPrivateKey.from_bytes(key.to_bytes()) == key


@pytest.mark.parametrize("bits", [32, 64])
def test_orders_are_those_of_the_scheme(keys: Keys, bits: int) -> None:
    key, u = keys[bits], mpz(1) << bits
    for prime, v in ((key.p, key.v_p), (key.q, key.v_q)):
        g, h = key.public.g % prime, key.public.h % prime
        assert gmpy2.powmod(g, u * v, prime) == 1
        assert gmpy2.powmod(g, u * v // 2, prime) != 1
        assert gmpy2.powmod(g, u, prime) != 1  # else roots of unity would be public
        assert h != 1
        assert gmpy2.powmod(h, v, prime) == 1
        assert gmpy2.is_prime(v)
        assert v.bit_length() == ORDER_BITS[TEST_MODULUS_BITS]
        # g is no square, so that telling the lowest bit is deciding quadratic residuosity
        assert gmpy2.legendre(g, prime) == -1
    assert gmpy2.jacobi(key.public.g, key.public.modulus) == 1
    assert key.v_p != key.v_q
    assert gmpy2.gcd(key.p - 1, key.q - 1) == u


def test_fresh_ciphertexts_share_nothing_but_the_word(key: DgkPrivateKey) -> None:
    words = words_of(64, 5, 5, 5)
    ciphers = key.public.encrypt_many(words, Seeded(1))
    again = key.public.fresh(ciphers, Seeded(2))
    assert len({*ciphers, *again}) == 6
    assert key.decrypt(again)[0].tolist() == [5, 5, 5]
    kept = list(key.public.add_words(ciphers, words_of(64, 0, 0, 0)))
    assert kept == ciphers  # additions alone leave the mask


@pytest.mark.parametrize("bits", [32, 64])
def test_keys_come_back_from_their_bytes(keys: Keys, bits: int) -> None:
    key = keys[bits]
    assert DgkPrivateKey.from_bytes(key.to_bytes()) == key
    assert DgkPublicKey.from_bytes(key.public.to_bytes()) == key.public
    assert str(key.p) not in repr(key)
    for cut in (b"", key.public.to_bytes()[:-1], key.to_bytes(), key.public.to_bytes() + b"\0"):
        with pytest.raises(InvalidInput, match="key"):
            DgkPublicKey.from_bytes(cut)
    with pytest.raises(InvalidInput, match="no DGK key"):
        DgkPrivateKey.from_bytes(key.public.to_bytes())


def test_public_keys_that_cannot_be_right_are_refused(key: DgkPrivateKey) -> None:
    public, n = key.public, key.public.modulus
    for bad in (mpz(0), mpz(1), n - 1, n, key.p):
        with pytest.raises(InvalidInput, match=r"key: h must be a unit"):
            replace(public, h=bad)
    odd = next(mpz(a) for a in range(2, 100) if gmpy2.jacobi(a, n) == -1)
    with pytest.raises(InvalidInput, match="Jacobi"):
        replace(public, g=odd)
    for modulus in (n - 1, n >> 8):
        with pytest.raises(InvalidInput, match="modulus"):
            replace(public, modulus=modulus)
    with pytest.raises(InvalidInput, match=r"plaintext_bits \(48\) must be 32 or 64"):
        replace(public, plaintext_bits=48)


def test_private_keys_whose_parts_do_not_fit_are_refused(keys: Keys) -> None:
    key = keys[64]
    public = key.public
    with pytest.raises(InvalidInput, match="primes"):
        replace(key, p=key.q)
    with pytest.raises(InvalidInput, match=r"times an odd number|sizes"):
        replace(key, v_p=key.v_q)
    with pytest.raises(InvalidInput, match="share 2\\^l"):
        replace(key, public=replace(public, plaintext_bits=32))
    square = gmpy2.powmod(public.g, 2, public.modulus)  # half the order
    with pytest.raises(InvalidInput, match="g must have order"):
        replace(key, public=replace(public, g=square))
    with pytest.raises(InvalidInput, match="h must have order"):
        replace(key, public=replace(public, h=public.g))
    with pytest.raises(InvalidInput, match=r"modulus_bits \(1024\) must be"):
        DgkPrivateKey.generate(Seeded(1), 64, 1024)


def test_what_holds_no_word_is_marked_and_stops_nothing(key: DgkPrivateKey) -> None:
    good = key.public.encrypt_many(words_of(64, 7, 8), Seeded(1))
    strangers = [mpz(2), key.p, mpz(0)]
    words, valid = key.decrypt([good[0], *strangers, good[1]])
    assert valid.tolist() == [True, False, False, False, True]
    assert words[valid].tolist() == [7, 8]


def test_bytes_that_are_no_ciphertext_stand_for_zero(key: DgkPrivateKey) -> None:
    public = key.public
    width = public.cipher_bytes
    (cipher,) = public.encrypt_many(words_of(64, 9), Seeded(1))
    data = public.pack([cipher]) + bytes(width) + b"\xff" * width
    assert key.decrypt(public.unpack(data))[0].tolist() == [9, 0, 0]
    with pytest.raises(CorruptReport, match="must have 64 bytes each"):
        public.unpack(data[:-1])


def test_words_of_another_width_are_refused(key: DgkPrivateKey) -> None:
    with pytest.raises(InvalidInput, match="must have 64 bits"):
        key.public.encrypt_many(words_of(32, 1), Seeded(1))
    with pytest.raises(InvalidInput, match="range"):
        key.public.encrypt(1 << 64, Seeded(1))


def test_primes_are_drawn_from_the_whole_range() -> None:
    """The odd cofactor differs, and the two highest bits of a prime are 1: n has all its bits."""
    drawn = [dgk._prime_pair(mpz(1) << 32, TEST_MODULUS_BITS, Seeded(seed)) for seed in range(4)]
    assert len({p for p, _ in drawn}) == 4
    for p, v in drawn:
        assert p >> TEST_MODULUS_BITS // 2 - 2 == 3
        assert (p - 1) // ((mpz(1) << 32) * v) % 2 == 1
