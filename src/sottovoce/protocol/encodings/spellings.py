"""Encodings of spellings: some bits, beside a public hash of others; how listed prefixes go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import permuted, tag
from sottovoce.ground.seeds import Seed
from sottovoce.protocol.encodings.base import Encoding
from sottovoce.schema import SPELLING, Codes, Schema, Words


@dataclass(frozen=True)
class Window(Encoding):
    """``fresh`` bits from bit ``start`` on, after ``tag`` bits of a hash of the first ``tagged``.

    The first bit is the highest. ``scrambled``: the spelling goes through a fixed public
    permutation first, so that any of its bits tell values apart. Nothing tagged and nothing skipped
    is a prefix.
    """

    attribute: str
    bits: int  # of the whole spelling
    start: int
    fresh: int
    tag: int = 0
    tagged: int = 0
    scrambled: bool = False
    kind: ClassVar[str] = "window"
    form: ClassVar[str] = SPELLING

    def __post_init__(self) -> None:
        whole("plan: start", self.start, 0, self.bits - 1)
        whole("plan: fresh", self.fresh, 1, self.bits - self.start)
        whole("plan: tag", self.tag, 0, 32)
        whole("plan: tagged", self.tagged, 1 if self.tag else 0, self.bits if self.tag else 0)
        if self.tag and self.tag + self.fresh > 64:
            raise InvalidInput(
                f"plan: tag ({self.tag}) and fresh ({self.fresh}) must be at most 64 bits"
            )
        if not isinstance(self.scrambled, bool):
            raise InvalidInput("plan: scrambled must be true or false")

    @property
    def attributes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.attribute,)

    @property
    def size(self) -> int:
        return 1 << (self.tag + self.fresh)

    def place(self, spelling: int) -> int:
        """The value of one spelling."""
        number = permuted(spelling, self.bits) if self.scrambled else spelling
        return self.of(number)

    def of(self, number: int) -> int:
        """The value of a spelling that is scrambled already, if it must be."""
        fresh = number >> (self.bits - self.start - self.fresh) & (1 << self.fresh) - 1
        if not self.tag:
            return fresh
        return tag(number >> (self.bits - self.tagged), self.tagged, self.tag) << self.fresh | fresh

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        return self.place(codes[self.attribute])

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes | Words:
        from sottovoce.kernels.spelling import permute_words

        words = codes[self.attribute]
        return self.of_columns(permute_words(words, self.bits) if self.scrambled else words)

    def of_columns(self, words: Words) -> Codes | Words:
        """The values of spellings that are scrambled already, if they must be."""
        from sottovoce.kernels.spelling import window_words

        values: Words = window_words(
            np.ascontiguousarray(words), self.bits, self.start, self.fresh, self.tag, self.tagged
        )
        return values[:, 1] if self.tag + self.fresh <= 64 else values

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "attribute": self.attribute,
            "start": self.start,
            "fresh": self.fresh,
            "tag": self.tag,
            "tagged": self.tagged,
            "scrambled": self.scrambled,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Window:
        parts = {name: data[name] for name in ("start", "fresh", "tag", "tagged", "scrambled")}
        return cls(data["attribute"], schema[data["attribute"]].spelling_bits, **parts)


@dataclass(frozen=True)
class Extensions(Encoding):
    """How listed prefixes go on: which one the spelling starts with, and its next ``fresh`` bits.

    A prefix is (its bits, their number); none may begin with another. A spelling that starts with
    none of them has the last value.
    """

    attribute: str
    bits: int
    fresh: int
    prefixes: tuple[tuple[int, int], ...]
    kind: ClassVar[str] = "extensions"
    form: ClassVar[str] = SPELLING

    def __post_init__(self) -> None:
        whole("plan: fresh", self.fresh, 1, 16)
        if not self.prefixes:
            raise InvalidInput("plan: prefixes must be at least one")
        for length, number in self.prefixes:
            whole("plan: a prefix's length", length, 0, self.bits - self.fresh)
            whole("plan: a prefix", number, 0, (1 << length) - 1)
        known = set(self.prefixes)
        if len(known) < len(self.prefixes):
            raise InvalidInput("plan: prefixes must be different")
        for length, number in known:
            if any((shorter, number >> (length - shorter)) in known for shorter in range(length)):
                raise InvalidInput("plan: no prefix may begin with another")

    @property
    def attributes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.attribute,)

    @property
    def size(self) -> int:
        return (len(self.prefixes) << self.fresh) + 1

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        spelling: int = codes[self.attribute]
        for place, (length, number) in enumerate(self.prefixes):
            if spelling >> (self.bits - length) == number:
                return (
                    place << self.fresh
                    | spelling >> (self.bits - length - self.fresh) & (1 << self.fresh) - 1
                )
        return self.size - 1

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        from sottovoce.kernels.spelling import window_words

        words = np.ascontiguousarray(codes[self.attribute])
        values = np.full(len(words), self.size - 1, np.uint64)
        for length in sorted({length for length, _ in self.prefixes}):
            own = {
                number: place
                for place, (bits, number) in enumerate(self.prefixes)
                if bits == length
            }
            starts = (
                window_words(words, self.bits, 0, length, 0, 0) if length else np.zeros_like(words)
            )
            distinct, where = np.unique(starts, axis=0, return_inverse=True)
            places = np.array(
                [own.get(int(high) << 64 | int(low), -1) for high, low in distinct.tolist()],
                np.int64,
            )
            found = places[where.ravel()]
            begun = found >= 0
            fresh = window_words(words[begun], self.bits, length, self.fresh, 0, 0)[:, 1]
            values[begun] = found[begun].astype(np.uint64) << np.uint64(self.fresh) | fresh
        return values

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "attribute": self.attribute,
            "fresh": self.fresh,
            "prefixes": [[length, str(number)] for length, number in self.prefixes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Extensions:
        prefixes = tuple((length, int(number)) for length, number in data["prefixes"])
        return cls(
            data["attribute"], schema[data["attribute"]].spelling_bits, data["fresh"], prefixes
        )
