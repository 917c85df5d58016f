"""Public columns: attributes that are not sensitive and travel in clear beside the whisper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.column_types import UNREADABLE, ColumnType, PublicColumn, Rows, column_type
from sottovoce.schema import Label, Schema

RESERVED = ("id", "cohort", "payload")  # the columns that every table of reports has

Values = tuple[Label, ...]  # one report's, in the order of the columns
Public = Mapping[str, PublicColumn]


@dataclass(frozen=True)
class Columns:
    """The public columns of a plan, in its order.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(state=sv.Categorical(["NY", "WA"], sensitive=False), x=sv.Boolean())
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
                raise InvalidInput(
                    f"public: attribute {name!r} is sensitive, and only ever leaves as a whisper"
                )
            if name.lower() in RESERVED:
                raise InvalidInput(
                    f"public: attribute {name!r} must not be called {' or '.join(RESERVED)}"
                )
        return cls(tuple(column_type(name, schema[name]) for name in names))

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
        """What a record holds of them; as they are public, an invalid value is refused."""
        found: list[Label] = []
        for each in self.types:
            if each.name not in record:
                raise InvalidInput(
                    f"attribute {each.name!r} is missing from the record; its plan needs it in "
                    "clear"
                )
            try:
                found.append(each.read(record[each.name]))
            except UNREADABLE:
                raise InvalidInput(f"attribute {each.name!r}: {each.attribute.rule}") from None
        return tuple(found)

    def pack(self, values: Values) -> bytes:
        """The wire's form of the stored values of a report."""
        if len(values) != len(self.types):
            raise CorruptReport(
                f"report: public values ({len(values)}) must be {len(self.types)}, as its plan says"
            )
        return b"".join(
            [self._pack(each, value) for each, value in zip(self.types, values, strict=True)]
        )

    def _pack(self, each: ColumnType, value: Label) -> bytes:
        try:
            return each.pack(value)
        except UNREADABLE:
            raise _refused(each) from None

    def unpack(self, data: bytes) -> Values:
        """The inverse of :meth:`pack`, of all these bytes and no others."""
        found: list[Label] = []
        end = 0
        for each in self.types:
            try:
                value, end = each.unpack(data, end)
            except UNREADABLE:
                raise _refused(each) from None
            found.append(value)
        if end != len(data):
            raise CorruptReport(
                f"report: {len(data) - end} bytes to spare behind its public values"
            )
        return tuple(found)

    def to_json(self, values: Values) -> dict[str, Label]:
        """Stored values by name; a fixed-point number as text with all its decimals."""
        return {
            each.name: each.to_json(value) for each, value in zip(self.types, values, strict=True)
        }

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
            except UNREADABLE:
                raise _refused(each) from None
        return tuple(found)

    # -- many reports

    def read_table(
        self, schema: Schema, table: Any, rows: NDArray[np.bool_] | None = None
    ) -> dict[str, PublicColumn]:
        """What a table holds of them, in the marked rows; refused as one record is."""
        found = {}
        for each in self.types:
            column = schema.column(each.name, table, rows)
            try:
                found[each.name] = each.read_column(column)
            except UNREADABLE:
                raise InvalidInput(f"attribute {each.name!r}: {each.attribute.rule}") from None
        return found

    def collect(self, rows: Sequence[Values]) -> dict[str, PublicColumn]:
        """Columns from the stored values of single reports."""
        return {
            each.name: each.column([row[place] for row in rows])
            for place, each in enumerate(self.types)
        }

    def single(self, public: Public, count: int) -> Iterator[Values]:
        """The stored values of each report."""
        if not self.types:
            return iter([()] * count)
        return zip(*(public[name].values.tolist() for name in self.names), strict=True)

    def to_rows(self, public: Public, count: int) -> Rows:
        """Each report's values in ``width`` bytes, if they are the plan's."""
        if list(public) != list(self.names):
            raise CorruptReport(
                f"reports: their public columns must be {', '.join(self.names) or 'none'}"
            )
        found = np.zeros((count, self.width), np.uint8)
        start = 0
        for each in self.types:
            column = public[each.name]
            try:
                if column.values.dtype != each.dtype or column.decimals != each.decimals:
                    raise TypeError
                found[:, start : start + each.width] = each.to_rows(column)
            except UNREADABLE:
                raise _refused(each) from None
            start += each.width
        return found

    def from_rows(self, rows: Rows) -> dict[str, PublicColumn]:
        """The inverse of :meth:`to_rows`."""
        found, start = {}, 0
        for each in self.types:
            try:
                found[each.name] = each.from_rows(rows[:, start : start + each.width])
            except UNREADABLE:
                raise _refused(each) from None
            start += each.width
        return found


NO_COLUMNS = Columns()


def _refused(each: ColumnType) -> CorruptReport:
    return CorruptReport(f"report: public attribute {each.name!r}: {each.attribute.rule}")
