"""Text: strings that nobody can list beforehand."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.attribute import OPEN, SPELLING, Attribute, Label, Words

_UTF8 = {1: 127, 2: 1_920, 3: 61_440, 4: 1 << 20}  # characters of so many bytes; NUL is the end
LONGER = REFUSE, CUT = ("refuse", "cut")  # what becomes of text that is too long


@dataclass(frozen=True)
class Text(Attribute):
    """A string nobody can list beforehand: an open alphabet.

    Its code is a 64-bit fingerprint (the first eight bytes of SHA-256, little endian); its spelling
    has the characters themselves.

    Args:
        bytes: how many bytes of UTF-8 a string may have.
        alphabet: the only characters there are, which makes popular strings easier to find.
        other: one of them that stands for all the rest.
        longer: ``refuse`` a longer string, or ``cut`` it.

    >>> Text(bytes=20).code("hello") == Text(bytes=20).code("hello")
    True
    >>> short = Text(bytes=6, alphabet="abcdefghijklmnopqrstuvwxyz", longer="cut")
    >>> short.spelling_bits, short.spelled(short.spell("sottovoce"))
    (30, 'sottov')
    """

    bytes: int
    alphabet: str | None = None
    other: str | None = None
    longer: str = REFUSE
    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bytes, int) or isinstance(self.bytes, bool) or self.bytes < 1:
            raise InvalidInput(f"bytes ({self.bytes}) must be an integer of at least 1")
        if self.longer not in LONGER:
            raise InvalidInput(f"longer ({self.longer}) must be one of {', '.join(LONGER)}")
        if self.alphabet is not None:
            self._check_alphabet(self.alphabet)
        elif self.other is not None:
            raise InvalidInput(f"other ({self.other}) needs an alphabet")

    def _check_alphabet(self, alphabet: Any) -> None:
        if not isinstance(alphabet, str) or len(alphabet) < 2 or len(set(alphabet)) < len(alphabet):
            raise InvalidInput("alphabet must be a string of at least 2 different characters")
        if self.other is not None and (
            not isinstance(self.other, str) or self.other not in set(alphabet)
        ):
            raise InvalidInput(f"other ({self.other}) must be a character of the alphabet")
        if max(map(_weight, alphabet)) > self.bytes:
            raise InvalidInput(f"bytes ({self.bytes}) must hold any character of the alphabet")

    @property
    def size(self) -> int:
        return OPEN

    @cached_property
    def _symbols(self) -> dict[str, int]:
        """The number of each character of the alphabet; 0 is the end."""
        return {character: number for number, character in enumerate(self.alphabet or "", start=1)}

    @property
    def symbol_bits(self) -> int:
        """Bits of one character (or byte) of a spelling."""
        return len(self.alphabet).bit_length() if self.alphabet is not None else 8

    @property
    def symbols(self) -> int:
        """Characters (or bytes) of the longest spelling."""
        return (
            self.bytes if self.alphabet is None else self.bytes // min(map(_weight, self.alphabet))
        )

    @property
    def spelling_bits(self) -> int:
        return self.symbol_bits * self.symbols

    @cached_property
    def spellings(self) -> int:
        weights = _UTF8 if self.alphabet is None else Counter(map(_weight, self.alphabet))
        counts = [1]  # strings of so many bytes
        for size in range(1, self.bytes + 1):
            counts.append(
                sum(
                    many * counts[size - weight]
                    for weight, many in weights.items()
                    if weight <= size
                )
            )
        return sum(counts)

    def fitted(self, value: Any) -> str:
        """The string as the schema keeps it: cut if it is too long and the schema says so.

        Args:
            value: a string.
        """
        if not isinstance(value, str):
            raise TypeError
        text: str = value
        if self.alphabet is not None:
            known = self._symbols
            if self.other is not None:
                text = "".join(
                    character if character in known else self.other for character in text
                )
            elif not known.keys() >= set(text):
                raise ValueError
        data = text.encode()
        if len(data) > self.bytes:
            if self.longer == REFUSE:
                raise ValueError
            return data[: self.bytes].decode(errors="ignore")  # never half a character
        return text

    def substitute(self, form: str, entropy: Entropy) -> Any:
        return (
            entropy.bits(self.spelling_bits)
            if form == SPELLING
            else super().substitute(form, entropy)
        )

    def code(self, value: Any) -> int:
        return int.from_bytes(hashlib.sha256(self.fitted(value).encode()).digest()[:8], "little")

    def spell(self, value: Any) -> int:
        text = self.fitted(value)
        if "\0" in text:
            raise ValueError  # the end of a spelling
        if self.alphabet is None:
            return int.from_bytes(text.encode().ljust(self.bytes, b"\0"), "big")
        number = 0
        for place in range(self.symbols):
            number = number << self.symbol_bits | (
                self._symbols[text[place]] if place < len(text) else 0
            )
        return number

    def spelled(self, number: int) -> Label | None:
        try:
            text = self._letters(number)
            return text if self.spell(text) == number else None
        except (ValueError, IndexError):
            return None

    def _letters(self, number: int) -> str:
        """The characters of a spelling up to its end."""
        if self.alphabet is None:
            return number.to_bytes(self.bytes, "big").rstrip(b"\0").decode()
        bits = self.symbol_bits
        places = [
            number >> bits * place & (1 << bits) - 1 for place in reversed(range(self.symbols))
        ]
        return "".join(self.alphabet[place - 1] for place in places if place)

    def short_spellings(self, most: int) -> Words:
        bits = self.symbol_bits
        by_length = [np.zeros(1, np.uint64)]  # the strings of so many symbols, as numbers
        for length in range(1, self.symbols + 1):
            count = sum(
                len(letters) * len(by_length[length - size])
                for size, letters in self._characters.items()
                if size <= length
            )
            if sum(map(len, by_length)) + count > most:
                break
            longer = [
                (by_length[length - size][:, None] << np.uint64(size * bits) | letters).ravel()
                for size, letters in self._characters.items()
                if size <= length
            ]
            by_length.append(np.concatenate(longer))
        shifts = [self.spelling_bits - bits * length for length in range(len(by_length))]
        return np.concatenate(
            [_shifted(each, shift) for each, shift in zip(by_length, shifts, strict=True)]
        )

    @cached_property
    def _characters(self) -> dict[int, NDArray[np.uint64]]:
        """The numbers of the printable characters of so many symbols."""
        if self.alphabet is not None:
            return {1: np.arange(1, len(self.alphabet) + 1, dtype=np.uint64)}
        by_size: dict[int, list[int]] = {}
        for character in map(
            chr, range(0x10000)
        ):  # those beyond have four bytes, and are never short
            if character.isprintable():
                data = character.encode()
                by_size.setdefault(len(data), []).append(int.from_bytes(data, "big"))
        return {size: np.array(numbers, np.uint64) for size, numbers in by_size.items()}

    def prefix_label(self, number: int, length: int) -> str:
        whole = length // self.symbol_bits * self.symbol_bits
        padded = number >> (length - whole) << (self.spelling_bits - whole)
        try:
            text = self._letters(padded)
        except (ValueError, IndexError):
            return f"{number:0{length}b}"
        return text if length == self.spelling_bits else f"{text}…"

    def options(self) -> dict[str, Any]:
        told: dict[str, Any] = {"bytes": self.bytes}
        if self.alphabet is not None:
            told["alphabet"] = self.alphabet
        if self.other is not None:
            told["other"] = self.other
        return told if self.longer == REFUSE else told | {"longer": self.longer}

    @property
    def rule(self) -> str:
        size = "" if self.longer == CUT else f" of at most {self.bytes} bytes of UTF-8"
        letters = (
            "" if self.alphabet is None or self.other is not None else " of the schema's alphabet"
        )
        return f"value must be text{size}{letters}"


def _shifted(numbers: NDArray[np.uint64], count: int) -> Words:
    """Numbers of one word, shifted left by so many bits, as words."""
    if count >= 64:
        return np.stack([numbers << np.uint64(count - 64), np.zeros_like(numbers)], axis=1)
    high = numbers >> np.uint64(64 - count) if count else np.zeros_like(numbers)
    return np.stack([high, numbers << np.uint64(count)], axis=1)


def _weight(character: str) -> int:
    return len(character.encode())
