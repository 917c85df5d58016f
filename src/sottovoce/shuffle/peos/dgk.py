"""DGK encryption of words: ciphertexts that add up, and that whoever holds them can renew.

The plaintexts are the integers modulo u = 2^l, so that uniform shares of a word stay uniform when
they are encrypted, added and decrypted. Decryption is full: a discrete logarithm in a group of
order 2^l, found byte by byte (pohlig1978logarithms).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.shuffle.peos.shares import Words, check_word_bits, word_type

FULL_MODULUS_BITS = 3072
TEST_MODULUS_BITS = 512  # is factored within hours: for tests alone

# Bits of the primes v_p and v_q, by those of the modulus. Whoever finds v_p has the key, at the
# cost of 2^(t/2) steps (coron2011subgroup); 3072 bits resist factoring as well as that costs at
# t = 256: 128 bits (nist2020keys, table 2).
ORDER_BITS = {TEST_MODULUS_BITS: 96, FULL_MODULUS_BITS: 256}

# h^r for uniform r of 2.5 t bits: its order has 2 t bits, so its law is within 2^(-t/2) of uniform
MASK_BITS = {modulus: 5 * order // 2 for modulus, order in ORDER_BITS.items()}

_PUBLIC = b"SVDGK\x01"
_PRIVATE = b"SVDGK\x02"


def check_modulus_bits(bits: int) -> None:
    """Refuse sizes that are neither for use nor for tests."""
    if bits not in ORDER_BITS:
        raise InvalidInput(f"modulus_bits ({bits}) must be {' or '.join(map(str, ORDER_BITS))}")


class FixedPowers:
    """Powers of one base, from a table of its powers by every byte of an exponent.

    >>> FixedPowers(mpz(3), mpz(1009), 16).power(1000) == pow(3, 1000, 1009)
    True
    """

    def __init__(self, base: mpz, modulus: mpz, bits: int) -> None:
        self._modulus = modulus
        self._bytes = bits // 8
        self._rows: list[list[mpz]] = []
        for _ in range(self._bytes):
            row = [mpz(1)]
            for _ in range(255):
                row.append(row[-1] * base % modulus)
            self._rows.append(row)
            base = row[-1] * base % modulus

    def power(self, exponent: int) -> mpz:
        """The base to the power of an exponent of the table's bits."""
        found = mpz(1)
        digits = exponent.to_bytes(self._bytes, "little")
        for row, digit in zip(self._rows, digits, strict=True):
            found = found * row[digit] % self._modulus
        return found


@dataclass(frozen=True)
class DgkPublicKey:
    """What everybody knows: encrypt a word, add to what is encrypted, renew a ciphertext's mask.

    A word m is g^m h^r mod n. Adding leaves the mask h^r in place, so whoever has the private key
    knows a ciphertext again after any additions; a fresh zero (:meth:`fresh`) replaces the mask.

    Guarantee: who lacks the private key learns nothing of a word from its ciphertext.
    Assumes:   n cannot be factored and ciphertexts of two words cannot be told apart (DGK's
               subgroup assumption); the key was made by :meth:`DgkPrivateKey.generate`.
    Source:    damgard2008dgk; wang2021thesis, section 9.5.1.
    Checked:   tests/shuffle/test_dgk.py
    """

    modulus: mpz
    g: mpz  # of order u v_p mod p, and u v_q mod q
    h: mpz  # of order v_p mod p, and v_q mod q
    plaintext_bits: int

    def __post_init__(self) -> None:
        check_word_bits("plaintext_bits", self.plaintext_bits)
        check_modulus_bits(self.modulus.bit_length())
        if self.modulus % 2 == 0:
            raise InvalidInput("key: modulus must be odd")
        for name, element in (("g", self.g), ("h", self.h)):
            if not 1 < element < self.modulus - 1 or gmpy2.gcd(element, self.modulus) != 1:
                raise InvalidInput(f"key: {name} must be a unit modulo n other than 1 and -1")
            # else its sign would tell the lowest bit of a word
            if gmpy2.jacobi(element, self.modulus) != 1:
                raise InvalidInput(f"key: {name} must have Jacobi symbol 1")

    @property
    def modulus_bits(self) -> int:
        return int(self.modulus.bit_length())

    @property
    def cipher_bytes(self) -> int:
        """Bytes of one ciphertext."""
        return self.modulus_bits // 8

    @cached_property
    def _g_powers(self) -> FixedPowers:
        return FixedPowers(self.g, self.modulus, self.plaintext_bits)

    @cached_property
    def _h_powers(self) -> FixedPowers:
        return FixedPowers(self.h, self.modulus, MASK_BITS[self.modulus_bits])

    # -- one word: for a device, which does not make tables

    def encrypt(self, word: int, entropy: Entropy) -> mpz:
        """One word's ciphertext."""
        if not 0 <= word < 1 << self.plaintext_bits:
            raise InvalidInput(f"word must lie in range(2^{self.plaintext_bits})")
        mask = entropy.bits(MASK_BITS[self.modulus_bits])
        # c = g^m h^r mod n                                    damgard2008dgk
        part = gmpy2.powmod(self.g, word, self.modulus)
        return part * gmpy2.powmod(self.h, mask, self.modulus) % self.modulus

    def add(self, first: mpz, second: mpz) -> mpz:
        """A ciphertext of the sum of two words modulo 2^l."""
        return first * second % self.modulus

    # -- many words

    def zeros(self, count: int, entropy: Entropy) -> Iterator[mpz]:
        """Fresh encryptions of zero: h^r for uniform r."""
        bits = MASK_BITS[self.modulus_bits]
        for _ in range(count):
            yield self._h_powers.power(entropy.bits(bits))

    def encrypt_many(self, words: Words, entropy: Entropy) -> list[mpz]:
        """Ciphertexts of many words."""
        return self.fresh((self._g_powers.power(word) for word in self._listed(words)), entropy)

    def add_words(self, ciphers: Iterable[mpz], words: Words) -> Iterator[mpz]:
        """Ciphertexts of sums of words, masked as they were: never to leave as they are."""
        for cipher, word in zip(ciphers, self._listed(words), strict=True):
            yield self.add(cipher, self._g_powers.power(word))

    def fresh(self, ciphers: Iterable[mpz], entropy: Entropy) -> list[mpz]:
        """The same words under new masks, as if each had just been encrypted."""
        listed = list(ciphers)
        zeros = self.zeros(len(listed), entropy)
        return [self.add(*pair) for pair in zip(listed, zeros, strict=True)]

    def _listed(self, words: Words) -> list[int]:
        if words.dtype != word_type(self.plaintext_bits):
            raise InvalidInput(f"words ({words.dtype}) must have {self.plaintext_bits} bits")
        listed: list[int] = words.tolist()
        return listed

    # -- bytes

    def pack(self, ciphers: Iterable[mpz]) -> bytes:
        """Ciphertexts one after another, each as wide as the modulus, high byte first."""
        width = self.cipher_bytes
        return b"".join(int(cipher).to_bytes(width, "big") for cipher in ciphers)

    def unpack(self, data: bytes) -> list[mpz]:
        """The inverse of :meth:`pack`; zero and what is too large becomes an encryption of zero.

        What is no ciphertext then stands for a uniform word, as its other shares are uniform.
        """
        width = self.cipher_bytes
        if len(data) % width:
            raise CorruptReport(f"ciphertexts ({len(data)} bytes) must have {width} bytes each")
        found = []
        for start in range(0, len(data), width):
            cipher = mpz(int.from_bytes(data[start : start + width], "big"))
            found.append(cipher if 0 < cipher < self.modulus else mpz(1))
        return found

    def to_bytes(self) -> bytes:
        """A header, l, the modulus's bits, then n, g and h."""
        head = bytes([self.plaintext_bits]) + self.modulus_bits.to_bytes(2, "big")
        return _PUBLIC + head + self.pack([self.modulus, self.g, self.h])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a key, and refuse one that cannot be right."""
        bits, (modulus, g, h) = _read(data, _PUBLIC, (2, 2, 2))
        return cls(modulus, g, h, bits)


@dataclass(frozen=True, repr=False)
class DgkPrivateKey:
    """What the analyst alone has: the primes, and so the words.

    Only p and v_p decrypt; q and v_q are kept so that the key can be checked.

    >>> from sottovoce.ground.entropy import Seeded
    >>> key = DgkPrivateKey.generate(Seeded(1), plaintext_bits=32, modulus_bits=TEST_MODULUS_BITS)
    >>> sum_of_two = key.public.add(*key.public.encrypt_many(np.array([5, 9], "u4"), Seeded(2)))
    >>> key.decrypt([sum_of_two])[0].tolist()
    [14]
    """

    public: DgkPublicKey
    p: mpz = field(repr=False)
    q: mpz = field(repr=False)
    v_p: mpz = field(repr=False)
    v_q: mpz = field(repr=False)

    def __repr__(self) -> str:
        return f"<DgkPrivateKey: {self.public.modulus_bits} bits, not shown>"

    @classmethod
    def generate(
        cls, entropy: Entropy, plaintext_bits: int = 64, modulus_bits: int = FULL_MODULUS_BITS
    ) -> Self:
        """Draw a key.

        Args:
            entropy: ``System()`` wherever the key protects anybody.
            plaintext_bits: l, 32 or 64: words are added modulo 2^l.
            modulus_bits: ``FULL_MODULUS_BITS``; ``TEST_MODULUS_BITS`` protects nothing.
        """
        check_word_bits("plaintext_bits", plaintext_bits)
        check_modulus_bits(modulus_bits)
        u = mpz(1) << plaintext_bits
        while True:
            (p, v_p), (q, v_q) = (_prime_pair(u, modulus_bits, entropy) for _ in range(2))
            if gmpy2.gcd(p - 1, q - 1) == u:  # a shared factor would help to find them
                break
        # g has order u v and h order v modulo each prime; then CRT
        g = _combined(_element(p, [u, v_p], entropy), p, _element(q, [u, v_q], entropy), q)
        h = _combined(_element(p, [v_p], entropy), p, _element(q, [v_q], entropy), q)
        return cls(DgkPublicKey(p * q, g, h, plaintext_bits), p, q, v_p, v_q)

    def __post_init__(self) -> None:
        """Refuse a key whose parts do not fit: primes, sizes, and the orders of g and h."""
        u, n = mpz(1) << self.public.plaintext_bits, self.public.modulus
        order_bits = ORDER_BITS[n.bit_length()]
        parts = (self.p, self.q, self.v_p, self.v_q)
        if self.p * self.q != n or not all(gmpy2.is_prime(part, 40) for part in parts):
            raise InvalidInput("key: p, q, v_p and v_q must be primes, and n = p q")
        if gmpy2.gcd(self.p - 1, self.q - 1) != u:
            raise InvalidInput("key: p - 1 and q - 1 must share 2^l and nothing else")
        for prime, v in ((self.p, self.v_p), (self.q, self.v_q)):
            if v.bit_length() != order_bits or prime.bit_length() != n.bit_length() // 2:
                raise InvalidInput("key: the primes must have the sizes of their modulus")
            if (prime - 1) % (u * v) or not (prime - 1) // (u * v) % 2:
                raise InvalidInput("key: p - 1 must be 2^l v times an odd number, and q - 1 too")
            if not _has_order(self.public.g, [u, v], prime):
                raise InvalidInput("key: g must have order 2^l v modulo p and q")
            if not _has_order(self.public.h, [v], prime):
                raise InvalidInput("key: h must have order v modulo p and q")

    def decrypt(self, ciphers: Sequence[mpz]) -> tuple[Words, NDArray[np.bool_]]:
        """The words, and which of the ciphertexts hold one: of others the word is 0."""
        words = np.zeros(len(ciphers), word_type(self.public.plaintext_bits))
        valid = np.ones(len(ciphers), np.bool_)
        for row, cipher in enumerate(ciphers):
            word = self._logarithm(gmpy2.powmod(cipher, self.v_p, self.p))
            if word is None:
                valid[row] = False
            else:
                words[row] = word
        return words, valid

    def _logarithm(self, power: mpz) -> int | None:
        """m of (g^v_p)^m mod p, lowest byte first; None if it is no such power.

        Args:
            power: y = (g^v_p)^m, in the group of order 2^l modulo p.
        """
        p, count = self.p, self.public.plaintext_bits // 8
        # y, y^(2^8), y^(2^16), ...: shifted left by a byte each, what leaves at the top is gone
        shifted = [power]
        for _ in range(count - 1):
            above = shifted[-1]
            for _ in range(8):
                above = above * above % p
            shifted.append(above)
        digits: list[int] = []
        for place in range(count):
            shift = count - 1 - place  # leaves of m the bytes up to this one, which is the top one
            rest = shifted[shift]
            for below, digit in enumerate(digits):
                rest = rest * self._removers[below + shift][digit] % p
            found = self._top_digits.get(rest)
            if found is None:
                return None
            digits.append(found)
        return int.from_bytes(bytes(digits), "little")

    @cached_property
    def _removers(self) -> list[list[mpz]]:
        """(g^v_p)^(-d 2^(8 i)) by byte i and digit d: takes a known byte out of a power."""
        base = gmpy2.invert(gmpy2.powmod(self.public.g, self.v_p, self.p), self.p)
        rows = []
        for _ in range(self.public.plaintext_bits // 8):
            row = [mpz(1)]
            for _ in range(255):
                row.append(row[-1] * base % self.p)
            rows.append(row)
            base = row[-1] * base % self.p
        return rows

    @cached_property
    def _top_digits(self) -> dict[mpz, int]:
        """The digit d of (g^v_p)^(d 2^(l - 8)): the elements of order 2^8."""
        base = gmpy2.powmod(self.public.g, self.v_p, self.p)
        top = gmpy2.powmod(base, mpz(1) << self.public.plaintext_bits - 8, self.p)
        found, power = {}, mpz(1)
        for digit in range(256):
            found[power] = digit
            power = power * top % self.p
        return found

    def to_bytes(self) -> bytes:
        """The public key's numbers, then p, q, v_p and v_q; whoever has these bytes has the key."""
        public, half = self.public, self.public.cipher_bytes // 2
        head = bytes([public.plaintext_bits]) + public.modulus_bits.to_bytes(2, "big")
        secret = (int(part).to_bytes(half, "big") for part in (self.p, self.q, self.v_p, self.v_q))
        return _PRIVATE + head + public.pack([public.g, public.h]) + b"".join(secret)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a key, and check it as :meth:`generate` makes it."""
        bits, (g, h, *secret) = _read(data, _PRIVATE, (2, 2, 1, 1, 1, 1))
        return cls(DgkPublicKey(secret[0] * secret[1], g, h, bits), *secret)


def _read(data: bytes, magic: bytes, halves: Sequence[int]) -> tuple[int, list[mpz]]:
    """l and the numbers of a key's bytes; ``halves``: their widths in half moduli."""
    head = len(magic) + 3
    if data[: len(magic)] != magic or len(data) < head:
        raise InvalidInput("key: these bytes are no DGK key of this kind")
    half = int.from_bytes(data[head - 2 : head], "big") // 16
    if len(data) != head + half * sum(halves):
        raise InvalidInput(f"key: {len(data)} bytes are not those of its modulus")
    numbers, start = [], head
    for width in halves:
        numbers.append(mpz(int.from_bytes(data[start : start + half * width], "big")))
        start += half * width
    return data[len(magic)], numbers


def _prime_of(bits: int, entropy: Entropy) -> mpz:
    """A uniform prime of exactly so many bits."""
    while True:
        drawn = mpz(entropy.bits(bits - 1) | 1 << bits - 1 | 1)
        if gmpy2.is_prime(drawn, 40):
            return drawn


def _prime_pair(u: mpz, modulus_bits: int, entropy: Entropy) -> tuple[mpz, mpz]:
    """(p, v) with p = u v k + 1 for an odd k, so that 2^l is all of p - 1 that is even."""
    bits = modulus_bits // 2
    v = _prime_of(ORDER_BITS[modulus_bits], entropy)
    least = (mpz(3) << bits - 2) // (u * v) + 1  # the two highest bits of p are 1
    spare = (mpz(1) << bits) // (u * v) - least
    while True:
        k = (least + entropy.below(int(spare))) | 1
        p = u * v * k + 1
        if k % v and p.bit_length() == bits and gmpy2.is_prime(p, 40):
            return p, v


def _element(prime: mpz, factors: Sequence[mpz], entropy: Entropy) -> mpz:
    """A uniform element of the order that the factors (u, or primes) give together."""
    order = mpz(1)
    for factor in factors:
        order *= factor
    while True:
        drawn = entropy.below(int(prime) - 2) + 2
        found = gmpy2.powmod(drawn, (prime - 1) // order, prime)
        if _has_order(found, factors, prime):
            return found


def _has_order(element: mpz, factors: Sequence[mpz], prime: mpz) -> bool:
    """Whether an element's order is the product of the factors, each a prime or a power of 2."""
    order = mpz(1)
    for factor in factors:
        order *= factor
    smallest = [mpz(2) if factor % 2 == 0 else factor for factor in factors]
    return gmpy2.powmod(element, order, prime) == 1 and all(
        gmpy2.powmod(element, order // factor, prime) != 1 for factor in smallest
    )


def _combined(at_p: mpz, p: mpz, at_q: mpz, q: mpz) -> mpz:
    """The residue modulo p q that is the one modulo p and the other modulo q."""
    return (at_p * q * gmpy2.invert(q, p) + at_q * p * gmpy2.invert(p, q)) % (p * q)
