"""Words modulo 2^l, and the shares that add up to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import CorruptReport, InvalidInput

SHARE_BITS = (32, 64)

Words = NDArray[Any]  # unsigned integers of l bits: their sums are those modulo 2^l


def check_word_bits(name: str, bits: int) -> None:
    """Refuse words that are no machine words."""
    if bits not in SHARE_BITS:
        raise InvalidInput(f"{name} ({bits}) must be {' or '.join(map(str, SHARE_BITS))}")


def word_type(bits: int) -> np.dtype[Any]:
    """The array type of words of so many bits, low byte first.

    >>> word_type(32)
    dtype('uint32')
    """
    return np.dtype(f"<u{bits // 8}")


def uniform_words(count: int, bits: int, entropy: Entropy) -> Words:
    """Independent uniform words."""
    drawn = entropy.words(-(-count * bits // 64))
    return drawn.view(word_type(bits))[:count].copy()


def split(words: Words, parties: int, entropy: Entropy) -> list[Words]:
    """Shares of words: all but one are uniform, the last is what is missing modulo 2^l.

    Any shares but all of them together are uniform, whatever the words are.

    Guarantee: parties that lack one share learn nothing of a word.
    Assumes:   uniform entropy.
    Source:    wang2021thesis, section 9.1 (additive secret sharing).
    Checked:   tests/shuffle/test_shares.py
    """
    bits = 8 * words.dtype.itemsize
    shares = [uniform_words(len(words), bits, entropy) for _ in range(parties - 1)]
    missing = words.copy()
    for share in shares:
        missing -= share
    return [*shares, missing]


def read_words(data: bytes, bits: int) -> Words:
    """Words as they travel: l bits each, low byte first."""
    if len(data) % (bits // 8):
        raise CorruptReport(f"words ({len(data)} bytes) must have {bits // 8} bytes each")
    return np.frombuffer(data, word_type(bits)).copy()
