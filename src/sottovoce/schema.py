"""Attributes and records: what a person may answer, and the integer code each answer has."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput

Codes = NDArray[np.uint64]
Label = str | int | bool
LARGEST_INTEGER = 1 << 53  # that every language's JSON keeps
OPEN = 1 << 64  # the number of codes of an open alphabet: 64-bit fingerprints


@dataclass(frozen=True)
class Attribute(ABC):
    """One column of a record. ``size`` counts its codes; ``sensitive`` attributes only ever leave as whispers."""

    kind: ClassVar[str]
    sensitive: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.sensitive, bool):
            raise InvalidInput(f"sensitive ({self.sensitive}) must be true or false")

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def code(self, value: Any) -> int:
        """The code of one value; raises ``ValueError`` or ``TypeError`` (without a message) if it has none."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What the constructor needs, as JSON without floats."""

    @property
    def is_open(self) -> bool:
        return self.size >= OPEN

    def labels(self) -> Sequence[Label]:
        """The name of each code, in order."""
        raise InvalidInput(f"{self.kind}: an open alphabet has no list of labels; give candidates")

    def codes(self, column: NDArray[Any]) -> Codes:
        """The codes of a whole column: each distinct value is looked up once."""
        if column.dtype == object:
            listed = column.tolist()
            known = {value: self.code(value) for value in set(listed)}
            return np.fromiter((known[value] for value in listed), np.uint64, len(listed))
        distinct, place = np.unique(column, return_inverse=True)
        table = np.array([self.code(value) for value in distinct.tolist()], dtype=np.uint64)
        return table[place]


@dataclass(frozen=True)
class Boolean(Attribute):
    """Yes or no.

    >>> Boolean().code(True)
    1
    """

    kind: ClassVar[str] = "boolean"

    @property
    def size(self) -> int:
        return 2

    def code(self, value: Any) -> int:
        if isinstance(value, str):
            return {"false": 0, "true": 1, "no": 0, "yes": 1, "0": 0, "1": 1}[value.strip().lower()]
        if value not in (0, 1):
            raise ValueError
        return int(value)

    def labels(self) -> Sequence[Label]:
        return (False, True)

    def options(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Categorical(Attribute):
    """One of a known list of values (strings or integers).

    >>> Categorical(["red", "green"]).code("green")
    1
    """

    values: Sequence[Label]
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        super().__post_init__()
        values = self.values if isinstance(self.values, range) else tuple(_plain(value) for value in self.values)
        if len(values[:2]) < 2:
            raise InvalidInput("values must be at least 2")
        ends = (values[0], values[-1]) if isinstance(values, range) else values
        if any(isinstance(value, int) and abs(value) > LARGEST_INTEGER for value in ends):
            raise InvalidInput("values must lie within 2^53, so that every language can read the plan")
        if not isinstance(values, range):
            wrong = [value for value in values if not isinstance(value, str | int)]
            if wrong:
                raise InvalidInput("values must be strings or integers (plans hold no floats)")
            if len(set(values)) < len(values):
                raise InvalidInput("values must be distinct")
        object.__setattr__(self, "values", values)
        lookup = None if isinstance(values, range) else {value: code for code, value in enumerate(values)}
        object.__setattr__(self, "_lookup", lookup)

    @property
    def size(self) -> int:
        return len(self.values)

    def code(self, value: Any) -> int:
        value = _plain(value)
        lookup: dict[Label, int] | None = self._lookup  # type: ignore[attr-defined]
        if lookup is None:
            return self.values.index(_whole(value))
        if isinstance(value, bool) and not any(isinstance(known, bool) for known in lookup):
            raise ValueError
        if value not in lookup and isinstance(value, str):
            return lookup[int(value)]  # a CSV column holds text
        return lookup[value]

    def codes(self, column: NDArray[Any]) -> Codes:
        if isinstance(self.values, range) and self.values.step == 1 and column.dtype.kind in "iu":
            return _interval_codes(column, self.values.start, self.values.stop - 1)
        return super().codes(column)

    def labels(self) -> Sequence[Label]:
        return self.values

    def options(self) -> dict[str, Any]:
        if isinstance(self.values, range):
            return {"range": [self.values.start, self.values.stop, self.values.step]}
        return {"values": list(self.values)}


@dataclass(frozen=True)
class Ordinal(Attribute):
    """A whole number from ``low`` to ``high``, ends included; ``bins`` of equal width, or every integer.

    >>> Ordinal(18, 97, bins=16).code(23)
    1
    """

    low: int
    high: int
    bins: int | None = None
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field_name in ("low", "high", "bins"):
            object.__setattr__(self, field_name, _plain(getattr(self, field_name)))
        if not (isinstance(self.low, int) and isinstance(self.high, int)) or self.high <= self.low:
            raise InvalidInput(f"high ({self.high}) must be an integer greater than low ({self.low})")
        whole_bins = self.bins is None or (isinstance(self.bins, int) and not isinstance(self.bins, bool))
        if not whole_bins or (self.bins is not None and not 2 <= self.bins <= self.high - self.low + 1):
            raise InvalidInput(f"bins ({self.bins}) must lie between 2 and the number of integers in the range")
        if max(abs(self.low), abs(self.high)) > LARGEST_INTEGER:
            raise InvalidInput("low and high must lie within 2^53, so that every language can read the plan")

    @property
    def size(self) -> int:
        return self.bins or self.high - self.low + 1

    def code(self, value: Any) -> int:
        whole = _whole(value)
        if not self.low <= whole <= self.high:
            raise ValueError
        return (whole - self.low) * self.size // (self.high - self.low + 1)

    def codes(self, column: NDArray[Any]) -> Codes:
        if column.dtype.kind not in "iu":
            return super().codes(column)
        offsets = _interval_codes(column, self.low, self.high)
        if self.bins is None:
            return offsets
        if (self.high - self.low) * self.bins >= 1 << 63:
            return super().codes(column)
        return offsets * np.uint64(self.bins) // np.uint64(self.high - self.low + 1)

    def labels(self) -> Sequence[Label]:
        if self.bins is None:
            return range(self.low, self.high + 1)
        span = self.high - self.low + 1
        first = [self.low - (-code * span // self.bins) for code in range(self.bins + 1)]
        return [str(start) if end - start == 1 else f"{start} to {end - 1}" for start, end in pairwise(first)]

    def options(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "bins": self.bins}


@dataclass(frozen=True)
class Text(Attribute):
    """A string nobody can list beforehand: an open alphabet, up to ``bytes`` bytes of UTF-8.

    Its code is a 64-bit fingerprint (the first eight bytes of SHA-256, little endian).

    >>> Text(bytes=20).code("hello") == Text(bytes=20).code("hello")
    True
    """

    bytes: int
    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bytes, int) or self.bytes < 1:
            raise InvalidInput(f"bytes ({self.bytes}) must be an integer of at least 1")

    @property
    def size(self) -> int:
        return OPEN

    def code(self, value: Any) -> int:
        if not isinstance(value, str):
            raise TypeError
        data = value.encode()
        if len(data) > self.bytes:
            raise ValueError
        return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")

    def options(self) -> dict[str, Any]:
        return {"bytes": self.bytes}


@dataclass(frozen=True)
class Items(Attribute):
    """A set of known values, such as a basket. Questions about sets sample from it; none reads it whole.

    >>> Items(["milk", "bread"]).size
    2
    """

    values: Sequence[Label]
    kind: ClassVar[str] = "items"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_each", Categorical(self.values))
        object.__setattr__(self, "values", self._each.values)  # type: ignore[attr-defined]

    @property
    def size(self) -> int:
        return len(self.values)

    def code(self, value: Any) -> int:
        raise TypeError  # a set has no single code

    def members(self, value: Iterable[Any]) -> list[int]:
        """The codes of a set's members, each once."""
        return sorted({self._each.code(member) for member in value})  # type: ignore[attr-defined]

    def labels(self) -> Sequence[Label]:
        return self.values

    def options(self) -> dict[str, Any]:
        each: dict[str, Any] = self._each.options()  # type: ignore[attr-defined]
        return each


ATTRIBUTES: tuple[type[Attribute], ...] = (Boolean, Categorical, Ordinal, Text, Items)


class Schema(Mapping[str, Attribute]):
    """The attributes of a record, by name.

    >>> schema = Schema(smoker=Boolean(), age=Ordinal(18, 97, bins=16))
    >>> schema.encode({"smoker": True, "age": 41})
    {'smoker': 1, 'age': 4}
    """

    def __init__(self, /, **attributes: Attribute) -> None:
        if not attributes:
            raise InvalidInput("a schema must have at least one attribute")
        for name, attribute in attributes.items():
            if not isinstance(attribute, Attribute):
                raise InvalidInput(f"attribute {name!r} must be Boolean, Categorical, Ordinal, Text or Items")
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
        try:
            return self[name].code(value)
        except (ValueError, TypeError, KeyError, OverflowError) as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise InvalidInput(f"attribute {name!r}: {_rule(self[name])}") from None

    def encode(self, record: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, int]:
        """One person's record as codes, for the attributes in ``names`` (all of them by default)."""
        unknown = [name for name in record if name not in self._attributes]
        if unknown:
            raise InvalidInput(f"attribute {unknown[0]!r} is not in the schema")
        wanted = list(self if names is None else names)
        for name in wanted:
            if name not in record:
                raise InvalidInput(f"attribute {name!r} is missing from the record")
        return {name: self.code(name, record[name]) for name in wanted}

    def encode_table(self, table: Any, names: Iterable[str]) -> dict[str, Codes]:
        """Columns of a dict, pandas or Arrow table as codes."""
        return {name: self._column(name, table) for name in names}

    def _column(self, name: str, table: Any) -> Codes:
        present = next((getattr(table, key) for key in ("column_names", "columns") if hasattr(table, key)), table)
        if name not in list(present):
            raise InvalidInput(f"attribute {name!r} is missing from the table")
        try:
            return self[name].codes(_array(name, table[name]))
        except (ValueError, TypeError, KeyError, OverflowError) as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise InvalidInput(f"attribute {name!r}: {_rule(self[name])}") from None

    def to_json(self) -> dict[str, Any]:
        """The schema as JSON without floats."""
        return {
            name: {"kind": attribute.kind, "sensitive": attribute.sensitive, **attribute.options()}
            for name, attribute in self.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """The inverse of :meth:`to_json`; also reads the ``[schema]`` part of a survey file."""
        return cls(**{name: _attribute(name, dict(body)) for name, body in data.items()})


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
        raise InvalidInput(f"attribute {name!r}: options ({', '.join(body)}) do not fit {kind}") from None


def _rule(attribute: Attribute) -> str:
    if isinstance(attribute, Ordinal):
        return f"value is outside the schema's range ({attribute.low} to {attribute.high}, whole numbers)"
    if isinstance(attribute, Text):
        return f"value must be text of at most {attribute.bytes} bytes of UTF-8"
    if isinstance(attribute, Items):
        return "value is a set; ask a question about sets"
    return f"value is not one of the schema's {attribute.size} values"


def _interval_codes(column: NDArray[Any], low: int, high: int) -> Codes:
    if column.size and (int(column.min()) < low or int(column.max()) > high):
        raise ValueError
    if column.dtype.kind == "u" and low >= 0:
        return column.astype(np.uint64) - np.uint64(low)
    return (column.astype(np.int64) - low).astype(np.uint64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _whole(value: Any) -> int:
    value = _plain(value)
    if isinstance(value, bool):
        raise TypeError
    number = int(value)
    if not isinstance(value, str) and number != value:
        raise ValueError
    return number


def _array(name: str, column: Any) -> NDArray[Any]:
    """A column as numpy has it; text stays as objects, since numpy's own strings lose trailing zero characters."""
    missing = InvalidInput(f"attribute {name!r}: the column must have no missing values")
    if getattr(column, "null_count", 0) or (hasattr(column, "isna") and bool(column.isna().any())):
        raise missing
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
    if array.dtype == object and any(value is None or (isinstance(value, float) and isnan(value)) for value in array):
        raise missing
    return array
