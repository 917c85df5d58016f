"""The types of public columns: what a value is stored as, and its one form on the wire.

A public value is *stored* as a truth value, a whole number or text; a fixed-point number as its
scaled integer. The wire's form of a number is its place among those that the schema allows, in as
many bytes as the largest one needs, and of text its length, in the same way, and its UTF-8. A value
has one form, so that none can be written in two ways.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema import (
    Attribute,
    Boolean,
    Categorical,
    FixedPoint,
    Integer,
    Label,
    Ordinal,
    Text,
)

MAX_TEXT_BYTES = 1024
MAX_INTEGER_BITS = 53  # that JSON keeps
# what reading a value may raise
UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
    AttributeError,
)

Rows = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PublicColumn:
    """The stored values of many reports: truths, 64-bit integers (perhaps scaled), or text."""

    values: NDArray[Any]
    decimals: int | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PublicColumn)
            and self.decimals == other.decimals
            and self.values.dtype == other.values.dtype
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> PublicColumn:
        return PublicColumn(self.values[rows], self.decimals)

    @classmethod
    def concat(cls, parts: Sequence[PublicColumn]) -> PublicColumn:
        """One after another; they are of one column."""
        return cls(np.concatenate([part.values for part in parts]), parts[0].decimals)


@dataclass(frozen=True)
class ColumnType(ABC):
    """What a public column may hold, and its form on the wire."""

    name: str
    attribute: Attribute

    dtype: Any = field(init=False, default=np.int64, repr=False)
    decimals: int | None = field(init=False, default=None, repr=False)

    @property
    @abstractmethod
    def width(self) -> int:
        """The most bytes of a value."""

    @abstractmethod
    def read(self, value: Any) -> Label:
        """The stored value of what a person's record holds; raises ``ValueError`` or ``TypeError``
        if it has none.
        """

    @abstractmethod
    def pack(self, value: Label) -> bytes:
        """The wire's form of a stored value; ``ValueError`` or ``TypeError`` if it is none."""

    @abstractmethod
    def unpack(self, data: bytes, start: int) -> tuple[Label, int]:
        """(the stored value that begins there, where it ends)."""

    def to_json(self, value: Label) -> Label:
        return value

    def from_json(self, value: Any) -> Label:
        self.pack(value)
        stored: Label = value
        return stored

    def column(self, values: Iterable[Label]) -> PublicColumn:
        """Stored values as a column."""
        return PublicColumn(_filled(values, self.dtype), self.decimals)

    def read_column(self, column: NDArray[Any]) -> PublicColumn:
        """What the records of many people hold, each different value read once."""
        listed = column.tolist()
        known = {value: self.read(value) for value in set(listed)}
        return self.column([known[value] for value in listed])

    def to_rows(self, column: PublicColumn) -> Rows:
        """A column as rows of ``width`` bytes, filled up with zeros."""
        listed = column.values.tolist()
        known = {value: self.pack(value).ljust(self.width, b"\0") for value in set(listed)}
        return np.frombuffer(b"".join([known[value] for value in listed]), np.uint8).reshape(
            -1, self.width
        )

    def from_rows(self, rows: Rows) -> PublicColumn:
        """The inverse; the bytes that fill up must be zero."""
        cells = np.ascontiguousarray(rows).tobytes()
        width = self.width
        listed = [cells[start : start + width] for start in range(0, len(cells), width)]
        known = {cell: self._of_cell(cell) for cell in set(listed)}
        return self.column([known[cell] for cell in listed])

    def _of_cell(self, cell: bytes) -> Label:
        value, end = self.unpack(cell, 0)
        if any(cell[end:]):
            raise ValueError
        return value


@dataclass(frozen=True)
class NumberedColumn(ColumnType):
    """Values that have a place from 0 to ``size - 1``."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def place(self, value: Label) -> int: ...

    @abstractmethod
    def value(self, place: int) -> Label: ...

    @property
    def width(self) -> int:
        return _bytes_below(self.size)

    def pack(self, value: Label) -> bytes:
        return self.place(value).to_bytes(self.width, "little")

    def unpack(self, data: bytes, start: int) -> tuple[Label, int]:
        end = start + self.width
        place = int.from_bytes(data[start:end], "little")
        if end > len(data) or place >= self.size:
            raise ValueError
        return self.value(place), end


@dataclass(frozen=True)
class ListedColumn(NumberedColumn):
    """One of a list: truth values, whole numbers, or strings."""

    kind: type = field(init=False, default=str, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds = (
            {bool}
            if isinstance(self.attribute, Boolean)
            else {type(label) for label in self._samples}
        )
        if len(kinds) > 1:
            raise InvalidInput(
                "values must be of one type in a public column: all text, all numbers, or all "
                "truths"
            )
        (kind,) = kinds
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "dtype", {bool: np.bool_, int: np.int64, str: object}[kind])

    @property
    def _samples(self) -> Sequence[Label]:
        labels = self.attribute.labels()
        return labels[:1] if isinstance(labels, range) else labels

    @property
    def size(self) -> int:
        return self.attribute.size

    def read(self, value: Any) -> Label:
        return self.attribute.labels()[self.attribute.code(value)]

    def place(self, value: Label) -> int:
        if type(value) is not self.kind:
            raise TypeError
        place = self.attribute.code(value)
        if self.attribute.labels()[place] != value:
            raise ValueError  # text that a person may write for another value
        return place

    def value(self, place: int) -> Label:
        return self.attribute.labels()[place]


@dataclass(frozen=True)
class WholeColumn(NumberedColumn):
    """Whole numbers of a range, ends included; scaled ones of a fixed-point attribute."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if isinstance(self.attribute, FixedPoint):
            object.__setattr__(self, "decimals", self.attribute.decimals)

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def read(self, value: Any) -> Label:
        if isinstance(self.attribute, FixedPoint):
            return self.attribute.scaled(value)
        self.attribute.code(value)  # which refuses what is not in range
        return int(value)

    def place(self, value: Label) -> int:
        if type(value) is not int:
            raise TypeError
        if not self.low <= value <= self.high:
            raise ValueError
        return value - self.low

    def value(self, place: int) -> Label:
        return self.low + place

    def to_json(self, value: Label) -> Label:
        return (
            self.attribute.written(int(value)) if isinstance(self.attribute, FixedPoint) else value
        )

    def from_json(self, value: Any) -> Label:
        if not isinstance(self.attribute, FixedPoint):
            return super().from_json(value)
        if not isinstance(value, str):
            raise TypeError
        number = self.attribute.scaled(value)
        if self.attribute.written(number) != value:
            raise ValueError  # another spelling of the same number
        return number

    # as columns of numbers, which are fast

    def to_rows(self, column: PublicColumn) -> Rows:
        values = column.values
        if len(values) and (int(values.min()) < self.low or int(values.max()) > self.high):
            raise ValueError
        places = (values - self.low).astype("<u8")
        return np.ascontiguousarray(places.view(np.uint8).reshape(-1, 8)[:, : self.width])

    def from_rows(self, rows: Rows) -> PublicColumn:
        padded = np.zeros((len(rows), 8), np.uint8)
        padded[:, : self.width] = rows
        places = padded.view("<u8").reshape(-1)
        if len(places) and int(places.max()) >= self.size:
            raise ValueError
        return PublicColumn(places.astype(np.int64) + self.low, self.decimals)


@dataclass(frozen=True)
class TextColumn(ColumnType):
    """Text of a limited length."""

    attribute: Text

    def __post_init__(self) -> None:
        if self.attribute.bytes > MAX_TEXT_BYTES:
            raise InvalidInput(
                f"bytes ({self.attribute.bytes}) must be at most {MAX_TEXT_BYTES} in a public "
                "column"
            )
        object.__setattr__(self, "dtype", object)

    @property
    def _prefix(self) -> int:
        return _bytes_below(self.attribute.bytes + 1)

    @property
    def width(self) -> int:
        return self._prefix + self.attribute.bytes

    def read(self, value: Any) -> Label:
        return self.attribute.fitted(value)

    def pack(self, value: Label) -> bytes:
        if self.attribute.fitted(value) != value:
            raise ValueError
        data = str(value).encode()
        return len(data).to_bytes(self._prefix, "little") + data

    def unpack(self, data: bytes, start: int) -> tuple[Label, int]:
        begin = start + self._prefix
        end = begin + int.from_bytes(data[start:begin], "little")
        if end > len(data):
            raise ValueError
        value = data[begin:end].decode()
        if self.attribute.fitted(value) != value:
            raise ValueError
        return value, end


def column_type(name: str, attribute: Attribute) -> ColumnType:
    """The type of a column of an attribute's values, if they may travel in clear."""
    try:
        return _typed(name, attribute)
    except InvalidInput as wrong:
        raise InvalidInput(f"public: attribute {name!r}: {wrong}") from None


def _typed(name: str, attribute: Attribute) -> ColumnType:
    if isinstance(attribute, Boolean | Categorical):
        return ListedColumn(name, attribute)
    if isinstance(attribute, Ordinal):
        return WholeColumn(name, attribute, attribute.low, attribute.high)
    if isinstance(attribute, FixedPoint):
        return WholeColumn(name, attribute, attribute.first, attribute.last)
    if isinstance(attribute, Text):
        return TextColumn(name, attribute)
    if not isinstance(attribute, Integer):
        raise InvalidInput(f"kind ({attribute.kind}) cannot travel in clear")
    if attribute.bits > MAX_INTEGER_BITS:
        raise InvalidInput(
            f"bits ({attribute.bits}) must be at most {MAX_INTEGER_BITS} in a public column"
        )
    return WholeColumn(name, attribute, 0, attribute.size - 1)


def _bytes_below(size: int) -> int:
    """Bytes of the numbers below ``size``."""
    return ((size - 1).bit_length() + 7) // 8


def _filled(values: Iterable[Label], dtype: Any) -> NDArray[Any]:
    listed = list(values)
    found = np.empty(len(listed), dtype)
    found[:] = listed
    return found
