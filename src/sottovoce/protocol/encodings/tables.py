"""Encodings of codes: the cell of a table or of a grid, the signs of characters."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.protocol.encodings.base import Encoding
from sottovoce.schema import Codes, Schema


@dataclass(frozen=True)
class Cells(Encoding):
    """The cell of a table over ``attributes``, the last varying fastest; one is its own table."""

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    kind: ClassVar[str] = "cells"

    @classmethod
    def of(cls, schema: Schema, *attributes: str) -> Cells:
        return cls(attributes, tuple(schema[name].size for name in attributes))

    @property
    def size(self) -> int:
        total = 1
        for size in self.sizes:
            total *= size
        return total

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        cell = 0
        for name, size in zip(self.attributes, self.sizes, strict=True):
            cell = cell * size + codes[name]
        return cell

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        cell: Codes = codes[self.attributes[0]]
        for name, size in zip(self.attributes[1:], self.sizes[1:], strict=True):
            cell = cell * np.uint64(size) + codes[name]
        return cell

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "attributes": list(self.attributes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Cells:
        return cls.of(schema, *data["attributes"])


@dataclass(frozen=True)
class Parities(Encoding):
    """The signs of characters: a product has a mask per attribute; its bit is their parity.

    The first product gives the highest bit. A mask selects bits of the attribute's code, so mask r
    is row r of the Hadamard matrix; a mask of 0 leaves the attribute out.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]
    kind: ClassVar[str] = "parities"

    def __post_init__(self) -> None:
        for product in self.products:
            if len(product) != len(self.sizes) or not any(product):
                raise InvalidInput(
                    "plan: a product must have one mask per attribute, and not all of them 0"
                )
            for mask, size in zip(product, self.sizes, strict=True):
                whole("plan: mask", mask, 0, (1 << (size - 1).bit_length()) - 1)

    @property
    def size(self) -> int:
        return 1 << len(self.products)

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        value = 0
        for product in self.products:
            ones = sum(
                (mask & codes[name]).bit_count()
                for name, mask in zip(self.attributes, product, strict=True)
            )
            value = value << 1 | ones & 1
        return value

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        value = np.zeros(len(codes[self.attributes[0]]), np.uint64)
        for product in self.products:
            ones = np.zeros(len(value), np.uint64)
            for name, mask in zip(self.attributes, product, strict=True):
                ones += np.bitwise_count(codes[name] & np.uint64(mask))
            value = value << np.uint64(1) | ones & np.uint64(1)
        return value

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "attributes": list(self.attributes),
            "products": [list(product) for product in self.products],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Parities:
        names = tuple(data["attributes"])
        return cls(
            names,
            tuple(schema[name].size for name in names),
            tuple(tuple(row) for row in data["products"]),
        )


@dataclass(frozen=True)
class Grid(Encoding):
    """The cell of a grid over ``attributes``, the last varying fastest.

    Codes are cut into intervals: along each attribute the interval of a code is (code + shift)
    div width, with 0 <= shift < width, so that a shift makes the first interval shorter. An
    attribute that a width covers whole tells nothing, and is refused.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    shifts: tuple[int, ...]
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        count = len(self.attributes)
        if not count or len(set(self.attributes)) < count:
            raise InvalidInput("plan: a grid must name one or more attributes, each once")
        if len(self.widths) != count or len(self.shifts) != count:
            raise InvalidInput("plan: a grid must have a width and a shift for each attribute")
        for size, width, shift in zip(self.sizes, self.widths, self.shifts, strict=True):
            whole("plan: width", width, 1, LARGEST_INTEGER)
            whole("plan: shift", shift, 0, width - 1)
            if size + shift <= width:
                raise InvalidInput(
                    f"plan: width ({width}) must cut the {size} values of its attribute"
                )

    @classmethod
    def of(
        cls,
        schema: Schema,
        attributes: Sequence[str],
        widths: Sequence[int],
        shifts: Sequence[int] | None = None,
    ) -> Grid:
        """A grid over attributes of a schema; without shifts unless they are given."""
        sizes = tuple(schema[name].size for name in attributes)
        own = (0,) * len(sizes) if shifts is None else tuple(shifts)
        return cls(tuple(attributes), sizes, tuple(widths), own)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many intervals there are along each attribute."""
        parts = zip(self.sizes, self.widths, self.shifts, strict=True)
        return tuple(-(-(size + shift) // width) for size, width, shift in parts)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def edges(self) -> tuple[tuple[int, ...], ...]:
        """For each attribute the codes at which its intervals begin, and the end of the last.

        >>> Grid(("age",), (10,), (4,), (1,)).edges
        ((0, 3, 7, 10),)
        """
        parts = zip(self.sizes, self.widths, self.shifts, strict=True)
        return tuple((0, *range(width - shift, size, width), size) for size, width, shift in parts)

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        cell = 0
        for place, count in enumerate(self.shape):
            interval = (codes[self.attributes[place]] + self.shifts[place]) // self.widths[place]
            cell = cell * count + interval
        return cell

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        cell = np.zeros(len(codes[self.attributes[0]]), np.uint64)
        for place, count in enumerate(self.shape):
            shifted = codes[self.attributes[place]] + np.uint64(self.shifts[place])
            cell = cell * np.uint64(count) + shifted // np.uint64(self.widths[place])
        return cell

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "attributes": list(self.attributes),
            "widths": list(self.widths),
            "shifts": list(self.shifts),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Grid:
        return cls.of(schema, data["attributes"], data["widths"], data["shifts"])


@dataclass(frozen=True)
class Intervals(Encoding):
    """The interval of one attribute's code: ``cuts`` are the codes at which all intervals but the
    first begin, so that they may be of any widths.

    >>> from sottovoce.ground.entropy import Seeded
    >>> Intervals(("age",), (10,), (3, 7)).encode({"age": 3}, Seeded(1))
    1
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    cuts: tuple[int, ...]
    kind: ClassVar[str] = "intervals"

    def __post_init__(self) -> None:
        if len(self.attributes) != 1 or not self.cuts:
            raise InvalidInput("plan: intervals must be of one attribute, and two or more")
        if not all(isinstance(cut, int) for cut in self.cuts):
            raise InvalidInput("plan: cuts must be whole numbers")
        before = 0
        most = min(self.sizes[0] - 1, LARGEST_INTEGER)
        for cut in self.cuts:
            before = whole("plan: cut", cut, before + 1, most)

    @classmethod
    def of(cls, schema: Schema, attribute: str, cuts: Sequence[int]) -> Intervals:
        """Intervals of an attribute of a schema."""
        return cls((attribute,), (schema[attribute].size,), tuple(cuts))

    @property
    def size(self) -> int:
        return len(self.cuts) + 1

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        return bisect_right(self.cuts, codes[self.attributes[0]])

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        cuts = np.array(self.cuts, np.uint64)
        found = np.searchsorted(cuts, codes[self.attributes[0]], side="right")
        return np.asarray(found, np.uint64)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "attribute": self.attributes[0], "cuts": list(self.cuts)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Intervals:
        return cls.of(schema, data["attribute"], data["cuts"])
