"""Schemas and records: the attributes of a person by name, read one by one or by the column."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.attribute import CODE, MEMBERS, SPELLING, Attribute, Sets
from sottovoce.schema.fixed import FixedPoint
from sottovoce.schema.lists import Boolean, Categorical
from sottovoce.schema.numbers import Integer, Ordinal
from sottovoce.schema.sets import Items
from sottovoce.schema.text import Text

# Every attribute there is.
# A new one is a class in a file of this folder, a line here, and its kind in docs/wire.md.
ATTRIBUTES: tuple[type[Attribute], ...] = (
    Boolean,
    Categorical,
    Ordinal,
    Integer,
    Text,
    Items,
    FixedPoint,
)
_CLASSES = tuple(attribute.__name__ for attribute in ATTRIBUTES)

# characters that nobody sees, beside those for control and format: signs that are drawn as nothing
# (a braille pattern, a filler, a note without a head, blank hieroglyphs, an object's place), and
# Unicode's Default_Ignorable_Code_Point
_UNSEEN = frozenset((
    0x2800, 0xFFFC, 0x13441, 0x13442, 0x16FE4, 0x1D159,
    0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2065, 0x3164, 0xFFA0,
    *range(0x13430, 0x13440), *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9),
    *range(0xE0000, 0xE1000),
))  # fmt: skip


class Schema(Mapping[str, Attribute]):
    """The attributes of a record, by name.

    Args:
        attributes: what a person may answer, by name.

    Throughout:
        name: of an attribute.
        names: of some attributes.
        value: what a person answered.
        record: one person's answers by attribute.
        table: a dict of columns, a pandas or an Arrow table.
        form: what an encoding reads: ``code``, ``spelling`` or ``members``.
        rows: of the table: a mask or a slice; all by default.

    >>> schema = Schema(smoker=Boolean(), age=Ordinal(18, 97, bins=16))
    >>> schema.encode({"smoker": True, "age": 41})
    {'smoker': 1, 'age': 4}
    """

    def __init__(self, /, **attributes: Attribute) -> None:
        if not attributes:
            raise InvalidInput("a schema must have at least one attribute")
        for name, attribute in attributes.items():
            _check_name(name)
            if not isinstance(attribute, Attribute):
                raise InvalidInput(f"attribute {name!r} must be one of {', '.join(_CLASSES)}")
        self._attributes = dict(attributes)

    def __getitem__(self, name: str) -> Attribute:
        if name not in self._attributes:
            known = ", ".join(self._attributes)
            raise InvalidInput(f"attribute {name!r} is not in the schema (it has: {known})")
        return self._attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={attribute}' for name, attribute in self.items())})"

    def code(self, name: str, value: Any) -> int:
        """The code of one value of one attribute."""
        code: int = self.read(name, value, CODE)
        return code

    def read(self, name: str, value: Any, form: str) -> Any:
        """One value as an encoding reads it: its code, its spelling, or its members."""
        attribute = self[name]
        reading = {CODE: attribute.code, SPELLING: attribute.spell, MEMBERS: attribute.members}[
            form
        ]
        return _reading(name, attribute, form, lambda: reading(value))

    def encode(
        self, record: Mapping[str, Any], names: Iterable[str] | None = None, form: str = CODE
    ) -> dict[str, Any]:
        """One person's record as codes, for the attributes in ``names`` (by default all)."""
        unknown = [name for name in record if name not in self._attributes]
        if unknown:
            raise InvalidInput(f"attribute {unknown[0]!r} is not in the schema")
        wanted = list(self if names is None else names)
        for name in wanted:
            if name not in record:
                raise InvalidInput(f"attribute {name!r} is missing from the record")
        return {name: self.read(name, record[name], form) for name in wanted}

    def encode_valid(
        self, record: Mapping[str, Any], names: Iterable[str], form: str = CODE
    ) -> dict[str, Any]:
        """As :meth:`encode`, of whatever a record holds, without what has no valid value.

        Of a set, the members that the schema lists are read, and what else it holds is left out.
        """
        found = {}
        for name in names:
            attribute = self[name]
            reading = {
                CODE: attribute.code,
                SPELLING: attribute.spell,
                MEMBERS: attribute.known_members,
            }[form]
            with suppress(Exception):  # no value may make a device fail, whatever it is
                found[name] = reading(record[name])
        return found

    def encode_table(
        self,
        table: Any,
        names: Iterable[str],
        form: str = CODE,
        rows: NDArray[np.bool_] | None = None,
    ) -> dict[str, Any]:
        """Columns of a dict, pandas or Arrow table as codes, or another form; of ``rows`` only."""
        return {name: self._column(name, table, form, rows) for name in names}

    def rows_of(self, table: Any, name: str) -> int:
        """How many rows a table's column has."""
        present = next(
            (getattr(table, key) for key in ("column_names", "columns") if hasattr(table, key)),
            table,
        )
        if name not in list(present):
            raise InvalidInput(f"attribute {name!r} is missing from the table")
        return len(table[name])

    def part(self, table: Any, names: Iterable[str], rows: slice) -> dict[str, Any]:
        """Some columns of a dict, pandas or Arrow table, in a slice of its rows."""
        return {name: _sliced(table[name], rows) for name in names}

    def column(self, name: str, table: Any, rows: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """A table's column as it is, in the marked rows, if no value is missing."""
        self.rows_of(table, name)
        return _array(name, table[name] if rows is None else _chosen(table[name], rows))

    def _column(self, name: str, table: Any, form: str, rows: NDArray[np.bool_] | None) -> Any:
        self.rows_of(table, name)
        attribute = self[name]
        column = table[name] if rows is None else _chosen(table[name], rows)
        if form == MEMBERS:
            column = _without_missing(name, column)
            return _reading(name, attribute, form, lambda: attribute.members_column(column))
        array = _array(name, column)
        reading = attribute.codes if form == CODE else attribute.spell_column
        return _reading(name, attribute, form, lambda: reading(array))

    def to_json(self) -> dict[str, Any]:
        """The schema as JSON without floats."""
        return {
            name: {"kind": attribute.kind, "sensitive": attribute.sensitive, **attribute.options()}
            for name, attribute in self.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """The inverse of :meth:`to_json`; also reads the ``[schema]`` part of a survey file.

        Args:
            data: what :meth:`to_json` gave, or the part of a survey file.
        """
        return cls(**{name: _attribute(name, dict(body)) for name, body in data.items()})


def _check_name(name: str) -> None:
    """Refuse names that JavaScript would move, and those that look like another name, with an
    account of its own.
    """
    if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0"):
        raise InvalidInput(
            f"attribute {name!r}: a name must not be a number, which JavaScript would move"
        )
    if name != " ".join(name.split()):
        raise InvalidInput(
            f"attribute {name!r}: a name must have no spaces but single ones between its words"
        )
    if any(
        unicodedata.category(letter) in ("Cc", "Cf") or ord(letter) in _UNSEEN for letter in name
    ):
        raise InvalidInput(
            f"attribute {name!a}: a name must have no control characters and no invisible ones"
        )
    if not unicodedata.is_normalized("NFC", name):
        raise InvalidInput(f"attribute {name!a}: a name must be in Unicode's normal form C")


def _attribute(name: str, body: dict[str, Any]) -> Attribute:
    kind = body.pop("kind", None)
    known = {attribute.kind: attribute for attribute in ATTRIBUTES}
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(f"attribute {name!r}: kind ({kind}) must be one of {', '.join(known)}")
    try:
        if "range" in body:
            body["values"] = range(*body.pop("range"))
        return known[kind](**body)
    except InvalidInput as wrong:
        raise InvalidInput(f"attribute {name!r}: {wrong}") from None
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"attribute {name!r}: options ({', '.join(body)}) do not fit {kind}"
        ) from None


def _reading(name: str, attribute: Attribute, form: str, read: Callable[[], Any]) -> Any:
    """What is read, or one clear error that does not repeat the value."""
    try:
        return read()
    except (ValueError, TypeError, KeyError, OverflowError) as wrong:
        if isinstance(wrong, InvalidInput):
            raise
        is_set = isinstance(attribute, Items) and form != MEMBERS
        rule = "value is a set; ask a question about sets" if is_set else attribute.rule
        raise InvalidInput(f"attribute {name!r}: {rule}") from None


def _chosen(column: Any, rows: NDArray[np.bool_]) -> Any:
    """Some rows of a column, whatever holds it."""
    if type(column).__module__.startswith("pyarrow"):
        return column.filter(rows)
    if hasattr(column, "iloc") or isinstance(column, np.ndarray | Sets):
        return column[rows]
    return [value for value, wanted in zip(column, rows.tolist(), strict=True) if wanted]


def _sliced(column: Any, rows: slice) -> Any:
    """A slice of a column, whatever holds it, without copying it where that can be."""
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


def _without_missing(name: str, column: Any) -> Any:
    if getattr(column, "null_count", 0) or (hasattr(column, "isna") and bool(column.isna().any())):
        raise InvalidInput(f"attribute {name!r}: the column must have no missing values")
    return column


def _array(name: str, column: Any) -> NDArray[Any]:
    """A column as numpy has it; text as objects, since numpy's strings lose trailing zeros."""
    missing = InvalidInput(f"attribute {name!r}: the column must have no missing values")
    column = _without_missing(name, column)
    if type(column).__module__.startswith("pyarrow"):
        array = np.asarray(column.to_numpy(zero_copy_only=False))
    else:
        array = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if array.dtype.kind == "f" and array.size and bool(np.isnan(array).any()):
        raise missing
    if array.dtype.kind in "US" and not isinstance(column, np.ndarray):
        array = np.array(list(column), dtype=object)
    if array.ndim != 1:
        raise InvalidInput(f"attribute {name!r}: the column must hold one value per person")
    if array.dtype == object and any(
        value is None or (isinstance(value, float) and isnan(value)) for value in _few(array)
    ):
        raise missing
    return array


def _few(array: NDArray[Any]) -> Iterable[Any]:
    """The different values of a column, if they can be told apart at once."""
    values: list[Any] = array.tolist()
    try:
        return set(values)
    except TypeError:
        return values
