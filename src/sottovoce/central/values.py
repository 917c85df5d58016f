"""The values of a curator's columns: what Arrow holds, as plain labels with codes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.central.method import EMPTY_CODE
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.schema import Attribute, Items

Label = str | int | float | bool
Codes = NDArray[np.signedinteger[Any]]  # as narrow as the values of a schema allow

EMPTY_TEXTS = frozenset(("", "NaN", "nan"))  # that say nothing, as None and NaN do
MAX_ATTRIBUTE_VALUES = 1 << 24  # of one attribute
UNIQUE_SHARE = 0.9  # of the filled cells that have a value of their own, from which on it is an id
UNIQUE_CELLS = 20  # fewer cells are no evidence


def check_type(name: str, type: Any) -> None:
    """Refuse values that are neither text, numbers nor truth values.

    Args:
        name: of the column, for the error.
        type: Arrow's.
    """
    types = imported("pyarrow").types
    if types.is_dictionary(type):
        type = type.value_type
    if is_list(type):
        raise InvalidInput(f"column {name!r} holds lists: name it as items, or leave it out")
    is_number = types.is_integer(type) or types.is_floating(type) or types.is_boolean(type)
    if not is_number and not _is_written(type):
        raise InvalidInput(f"column {name!r}: its values must be text, numbers or truth values")


def _is_written(type: Any) -> bool:
    """Whether values are taken as they are written: text, and also dates and decimals."""
    types = imported("pyarrow").types
    is_text = types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)
    is_exact = types.is_temporal(type) or types.is_decimal(type)
    return bool(is_text or is_exact or types.is_null(type))


def is_list(type: Any) -> bool:
    """Whether an Arrow type is one of lists."""
    types = imported("pyarrow").types
    return bool(types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def flattened(name: str, column: Any) -> Any:
    """An Arrow array of plain values: no dictionaries, dates and decimals as text."""
    pa = imported("pyarrow")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    check_type(name, column.type)
    if _is_written(column.type):
        column = column.cast(pa.string())
    return column


def label_of(value: Any) -> Label | None:
    """A value as it is released; None if it says nothing. A whole number is one however it is held.

    >>> label_of(2.0), label_of("tea"), label_of(float("nan")), label_of("")
    (2, 'tea', None, None)
    """
    if value is None or value in EMPTY_TEXTS:
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() else value
    label: Label = value
    return label


def text_of(label: Any) -> str:
    """A label as a file holds it.

    >>> text_of(True), text_of(2.5), text_of("tea")
    ('true', '2.5', 'tea')
    """
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def narrowest_type(size: int) -> type[np.signedinteger[Any]]:
    """The least type of integers that holds so many codes and EMPTY_CODE.

    >>> narrowest_type(128), narrowest_type(129)
    (<class 'numpy.int8'>, <class 'numpy.int16'>)
    """
    for narrow in (np.int8, np.int16):
        if size - 1 <= np.iinfo(narrow).max:
            return narrow
    return np.int32


class Coder(ABC):
    """Gives the labels of one column their codes."""

    is_known: bool
    code_type: type[np.signedinteger[Any]] = np.int32  # of its codes, in every batch

    def __init__(self, name: str, empty: Collection[str]) -> None:
        self.name = name
        self._empty = frozenset(empty)

    @property
    @abstractmethod
    def values(self) -> tuple[Any, ...]:
        """The label of each code."""

    @abstractmethod
    def _code(self, label: Label) -> int:
        """The code of a label that says something."""

    def codes(self, column: Any) -> Codes:
        """The codes of an Arrow array, EMPTY_CODE where it says nothing."""
        column = flattened(self.name, column)
        encoded = column.dictionary_encode()
        listed = encoded.dictionary.to_pylist()
        # the last place is for what is null
        lookup = np.full(len(listed) + 1, EMPTY_CODE, self.code_type)
        for place, value in enumerate(listed):
            label = label_of(value)
            if label is not None and text_of(label) not in self._empty:
                lookup[place] = self._code(label)
        places = encoded.indices.fill_null(len(listed)).to_numpy(zero_copy_only=False)
        found: Codes = lookup[places]
        return found


class DiscoveredValues(Coder):
    """Values are numbered as they come; none is a public fact until it is released."""

    is_known = False

    def __init__(self, name: str, empty: Collection[str], may_be_unique: bool) -> None:
        super().__init__(name, empty)
        self._codes: dict[Label, int] = {}
        self._filled = 0
        self._may_be_unique = may_be_unique

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(self._codes)

    def _code(self, label: Label) -> int:
        if isinstance(label, float) and math.isinf(label):
            raise InvalidInput(f"column {self.name!r}: its numbers must be finite")
        return self._codes.setdefault(label, len(self._codes))

    def codes(self, column: Any) -> Codes:
        found = super().codes(column)
        self._filled += int(np.count_nonzero(found != EMPTY_CODE))
        if len(self._codes) > MAX_ATTRIBUTE_VALUES:
            raise InvalidInput(
                f"column {self.name!r} has more than {MAX_ATTRIBUTE_VALUES:,} different values: "
                "leave it out, or give a schema that puts them together"
            )
        return found

    def check_is_shared(self) -> None:
        """Refuse a column in which nearly every cell has a value of its own."""
        if self._may_be_unique or self._filled < UNIQUE_CELLS:
            return
        if len(self._codes) >= UNIQUE_SHARE * self._filled:
            raise InvalidInput(
                f"column {self.name!r}: nearly every row has a value of its own, as an id has, so "
                "none is shared by enough people to be released and the budget would be lost on "
                "it: leave it out, name it as user, give it bins by a schema, or force it"
            )


class ListedValues(Coder):
    """Values that a schema lists."""

    is_known = True

    def __init__(self, name: str, empty: Collection[str], attribute: Attribute) -> None:
        super().__init__(name, empty)
        if attribute.size > MAX_ATTRIBUTE_VALUES:
            raise InvalidInput(
                f"attribute {name!r} has {attribute.size:,} values, more than "
                f"{MAX_ATTRIBUTE_VALUES:,}: put them into bins"
            )
        self._attribute = attribute
        self._values = tuple(attribute.labels())
        self.code_type = narrowest_type(attribute.size)

    @property
    def values(self) -> tuple[Any, ...]:
        return self._values

    def _code(self, label: Label) -> int:
        attribute = self._attribute
        try:
            if isinstance(attribute, Items):
                return attribute.members([label])[0]
            return attribute.code(label)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise InvalidInput(
                f"attribute {self.name!r}: a value is not one of the schema's {attribute.size} "
                "values"
            ) from None
