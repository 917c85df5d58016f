"""Encodings: how a record becomes one value of a finite domain, and the ask that whispers it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from sottovoce.errors import InvalidInput
from sottovoce.guarantee import Guarantee
from sottovoce.oracles import Oracle
from sottovoce.oracles import from_json as oracle_from_json
from sottovoce.oracles.options import whole
from sottovoce.schema import Codes, Schema


class Encoding(ABC):
    """How a record becomes one value of a finite domain."""

    kind: ClassVar[str]
    attributes: tuple[str, ...]  # the attributes it reads

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values there are."""

    @abstractmethod
    def encode(self, codes: Mapping[str, int]) -> int:
        """The value of one record."""

    @abstractmethod
    def encode_columns(self, codes: Mapping[str, Codes]) -> Codes:
        """The values of many records."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a device needs to know."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Encoding:
        """The inverse of :meth:`to_json`."""


@dataclass(frozen=True)
class Cells(Encoding):
    """The cell of a table over ``attributes``, the last one varying fastest; one attribute is its own table."""

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

    def encode(self, codes: Mapping[str, int]) -> int:
        cell = 0
        for name, size in zip(self.attributes, self.sizes, strict=True):
            cell = cell * size + codes[name]
        return cell

    def encode_columns(self, codes: Mapping[str, Codes]) -> Codes:
        cell = codes[self.attributes[0]]
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
    """The signs of characters: a product has a mask per attribute, and its bit is the parity of all masked bits.

    The first product gives the highest bit. A mask selects bits of the attribute's code, so mask r is row r of the
    Hadamard matrix; a mask of 0 leaves the attribute out.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]
    kind: ClassVar[str] = "parities"

    def __post_init__(self) -> None:
        for product in self.products:
            if len(product) != len(self.sizes) or not any(product):
                raise InvalidInput("plan: a product must have one mask per attribute, and not all of them 0")
            for mask, size in zip(product, self.sizes, strict=True):
                whole("plan: mask", mask, 0, (1 << (size - 1).bit_length()) - 1)

    @property
    def size(self) -> int:
        return 1 << len(self.products)

    def encode(self, codes: Mapping[str, int]) -> int:
        value = 0
        for product in self.products:
            ones = sum((mask & codes[name]).bit_count() for name, mask in zip(self.attributes, product, strict=True))
            value = value << 1 | ones & 1
        return value

    def encode_columns(self, codes: Mapping[str, Codes]) -> Codes:
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
        return cls(names, tuple(schema[name].size for name in names), tuple(tuple(row) for row in data["products"]))


ENCODINGS: tuple[type[Encoding], ...] = (Cells, Parities)


@dataclass(frozen=True)
class Ask:
    """One thing a cohort is asked: a record becomes a value of a finite domain, an oracle whispers it."""

    encoding: Encoding
    oracle: Oracle

    @property
    def guarantee(self) -> Guarantee:
        return self.oracle.guarantee

    def to_json(self) -> dict[str, Any]:
        return {"encoding": self.encoding.to_json(), "oracle": self.oracle.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Ask:
        encoding = of_kind("encoding", data["encoding"]["kind"], ENCODINGS)
        ask = cls(encoding.from_json(data["encoding"], schema), oracle_from_json(data["oracle"]))
        if ask.encoding.size != ask.oracle.size:
            raise InvalidInput(f"plan: an oracle of size {ask.oracle.size} cannot take {ask.encoding.size} values")
        return ask


K = TypeVar("K")


def of_kind(part: str, kind: Any, known: Sequence[type[K]]) -> type[K]:
    """The class of this kind, of those there are."""
    for candidate in known:
        if candidate.kind == kind:  # type: ignore[attr-defined]
            return candidate
    names = ", ".join(each.kind for each in known)  # type: ignore[attr-defined]
    raise InvalidInput(f"plan: {part} ({kind}) must be one of {names}")
