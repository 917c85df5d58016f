"""Public columns: attributes that are not sensitive and travel in clear beside the whisper, as their plan describes.

A public value is *stored* as a truth value, a whole number or text; a fixed-point number as its scaled integer. The
wire's form of a number is its place among those that the schema allows, in as many bytes as the largest one needs, and
of text its length, in the same way, and its UTF-8. A value has one form, so that none can be written in two ways.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.schema import Attribute, Boolean, Categorical, FixedPoint, Integer, Label, Ordinal, Schema, Text

RESERVED = ("id", "cohort", "payload")  # the columns that every table of reports has
MAX_TEXT_BYTES = 1024
MAX_INTEGER_BITS = 53  # that JSON keeps
_UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, AttributeError)

Rows = NDArray[np.uint8]
Values = tuple[Label, ...]  # one report's, in the order of the columns


@dataclass(frozen=True, eq=False)
class PublicColumn:
    """The stored values of many reports: truths, 64-bit integers (scaled ones with ``decimals``), or text."""

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
        """The stored value of what a person's record holds; raises ``ValueError`` or ``TypeError`` if it has none."""

    @abstractmethod
    def pack(self, value: Label) -> bytes:
        """The wire's form of a stored value; raises ``ValueError`` or ``TypeError`` if it is none."""

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
        return np.frombuffer(b"".join([known[value] for value in listed]), np.uint8).reshape(-1, self.width)

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
        kinds = {bool} if isinstance(self.attribute, Boolean) else {type(label) for label in self._samples}
        if len(kinds) > 1:
            raise InvalidInput("values must be of one type in a public column: all text, all numbers, or all truths")
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
        return self.attribute.written(int(value)) if isinstance(self.attribute, FixedPoint) else value

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
            raise InvalidInput(f"bytes ({self.attribute.bytes}) must be at most {MAX_TEXT_BYTES} in a public column")
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


Public = Mapping[str, PublicColumn]


@dataclass(frozen=True)
class Columns:
    """The public columns of a plan, in its order.

    >>> schema = Schema(state=Categorical(["NY", "WA"], sensitive=False), x=Boolean())
    >>> columns = Columns.of(schema, ["state"])
    >>> columns.read({"state": "WA", "x": True}), columns.pack(("WA",))
    (('WA',), b'\\x01')
    """

    types: tuple[ColumnType, ...] = ()

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str]) -> Columns:
        """The columns of these names, if they are of the schema, different, and not sensitive."""
        for place, name in enumerate(names):
            if not isinstance(name, str) or name not in schema:
                raise InvalidInput(f"public: attribute {name!r} is not in the schema")
            if name in names[:place]:
                raise InvalidInput(f"public: attribute {name!r} must be named once")
            if schema[name].sensitive:
                raise InvalidInput(f"public: attribute {name!r} is sensitive, and only ever leaves as a whisper")
            if name.lower() in RESERVED:
                raise InvalidInput(f"public: attribute {name!r} must not be called {' or '.join(RESERVED)}")
        return cls(tuple(_typed(name, schema[name]) for name in names))

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Iterator[ColumnType]:
        return iter(self.types)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.types)

    @cached_property
    def width(self) -> int:
        """The most bytes of a report's public part, and those of its row in a store."""
        return sum(each.width for each in self.types)

    # -- one report

    def read(self, record: Mapping[str, Any]) -> Values:
        """What a record holds of them. A missing or invalid value is refused: public data is public."""
        found: list[Label] = []
        for each in self.types:
            if each.name not in record:
                raise InvalidInput(f"attribute {each.name!r} is missing from the record; its plan needs it in clear")
            try:
                found.append(each.read(record[each.name]))
            except _UNREADABLE:
                raise InvalidInput(f"attribute {each.name!r}: {each.attribute.rule}") from None
        return tuple(found)

    def pack(self, values: Values) -> bytes:
        """The wire's form of the stored values of a report."""
        if len(values) != len(self.types):
            raise CorruptReport(f"report: public values ({len(values)}) must be {len(self.types)}, as its plan says")
        return b"".join([self._pack(each, value) for each, value in zip(self.types, values, strict=True)])

    def _pack(self, each: ColumnType, value: Label) -> bytes:
        try:
            return each.pack(value)
        except _UNREADABLE:
            raise _refused(each) from None

    def unpack(self, data: bytes) -> Values:
        """The inverse of :meth:`pack`, of all these bytes and no others."""
        found: list[Label] = []
        end = 0
        for each in self.types:
            try:
                value, end = each.unpack(data, end)
            except _UNREADABLE:
                raise _refused(each) from None
            found.append(value)
        if end != len(data):
            raise CorruptReport(f"report: {len(data) - end} bytes to spare behind its public values")
        return tuple(found)

    def to_json(self, values: Values) -> dict[str, Label]:
        """Stored values by name; a fixed-point number as text with all its decimals."""
        return {each.name: each.to_json(value) for each, value in zip(self.types, values, strict=True)}

    def from_json(self, body: Any) -> Values:
        """The inverse, of an object with exactly these names."""
        if body is None and not self.types:
            return ()
        if not self.types:
            raise CorruptReport("report: its plan has no public columns")
        if not isinstance(body, dict) or set(body) != set(self.names):
            raise CorruptReport(f"report: public must hold {', '.join(self.names)}")
        found: list[Label] = []
        for each in self.types:
            try:
                found.append(each.from_json(body[each.name]))
            except _UNREADABLE:
                raise _refused(each) from None
        return tuple(found)

    # -- many reports

    def read_table(self, schema: Schema, table: Any, rows: NDArray[np.bool_] | None = None) -> dict[str, PublicColumn]:
        """What a table holds of them, in the marked rows; refused as one record is."""
        found = {}
        for each in self.types:
            column = schema.column(each.name, table, rows)
            try:
                found[each.name] = each.read_column(column)
            except _UNREADABLE:
                raise InvalidInput(f"attribute {each.name!r}: {each.attribute.rule}") from None
        return found

    def collect(self, rows: Sequence[Values]) -> dict[str, PublicColumn]:
        """Columns from the stored values of single reports."""
        return {each.name: each.column([row[place] for row in rows]) for place, each in enumerate(self.types)}

    def single(self, public: Public, count: int) -> Iterator[Values]:
        """The stored values of each report."""
        if not self.types:
            return iter([()] * count)
        return zip(*(public[name].values.tolist() for name in self.names), strict=True)

    def to_rows(self, public: Public, count: int) -> Rows:
        """Each report's values in ``width`` bytes, if they are the plan's."""
        if list(public) != list(self.names):
            raise CorruptReport(f"reports: their public columns must be {', '.join(self.names) or 'none'}")
        found = np.zeros((count, self.width), np.uint8)
        start = 0
        for each in self.types:
            column = public[each.name]
            try:
                if column.values.dtype != each.dtype or column.decimals != each.decimals:
                    raise TypeError
                found[:, start : start + each.width] = each.to_rows(column)
            except _UNREADABLE:
                raise _refused(each) from None
            start += each.width
        return found

    def from_rows(self, rows: Rows) -> dict[str, PublicColumn]:
        """The inverse of :meth:`to_rows`."""
        found, start = {}, 0
        for each in self.types:
            try:
                found[each.name] = each.from_rows(rows[:, start : start + each.width])
            except _UNREADABLE:
                raise _refused(each) from None
            start += each.width
        return found


NO_COLUMNS = Columns()


def _refused(each: ColumnType) -> CorruptReport:
    return CorruptReport(f"report: public attribute {each.name!r}: {each.attribute.rule}")


def _typed(name: str, attribute: Attribute) -> ColumnType:
    try:
        return _column_type(name, attribute)
    except InvalidInput as wrong:
        raise InvalidInput(f"public: attribute {name!r}: {wrong}") from None


def _column_type(name: str, attribute: Attribute) -> ColumnType:
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
        raise InvalidInput(f"bits ({attribute.bits}) must be at most {MAX_INTEGER_BITS} in a public column")
    return WholeColumn(name, attribute, 0, attribute.size - 1)


def _bytes_below(size: int) -> int:
    """Bytes of the numbers below ``size``."""
    return ((size - 1).bit_length() + 7) // 8


def _filled(values: Iterable[Label], dtype: Any) -> NDArray[Any]:
    listed = list(values)
    found = np.empty(len(listed), dtype)
    found[:] = listed
    return found
