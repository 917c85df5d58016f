"""Sets of known values, such as baskets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sottovoce.ground.entropy import Entropy
from sottovoce.schema.attribute import Attribute, Label, Sets
from sottovoce.schema.lists import Categorical


@dataclass(frozen=True)
class Items(Attribute):
    """A set of known values, such as a basket. Questions sample from it; none reads it whole.

    Args:
        values: what a set may hold.

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

    def members(self, value: Any) -> list[int]:
        return sorted({self._each.code(member) for member in _elements(value)})  # type: ignore[attr-defined]

    def known_members(self, value: Any) -> list[int]:
        codes = set()
        for member in _elements(value):
            with suppress(Exception):  # whatever has no code
                codes.add(self._each.code(member))  # type: ignore[attr-defined]
        return sorted(codes)

    def substitute(self, form: str, entropy: Entropy) -> Any:
        return []  # who has no set holds nothing

    def members_column(self, column: Any) -> Sets:
        if isinstance(column, Sets):  # read before
            if len(column.codes) and int(column.codes.max()) >= self.size:
                raise ValueError
            return column
        if hasattr(column, "combine_chunks"):
            column = column.combine_chunks()
        if hasattr(column, "value_lengths"):  # lists of Arrow's: look each different member up once
            lengths = column.value_lengths().to_numpy(zero_copy_only=False)
            codes = self._each.codes(column.flatten().to_numpy(zero_copy_only=False))  # type: ignore[attr-defined]
        else:
            listed = column.to_pylist() if hasattr(column, "to_pylist") else column
            told = [self.members(value) for value in listed]
            lengths = np.array([len(each) for each in told], np.int64)
            codes = np.array([code for each in told for code in each], np.uint64)
        return Sets.of(len(lengths), np.repeat(np.arange(len(lengths)), lengths), codes, self.size)

    def labels(self) -> Sequence[Label]:
        return self.values

    def options(self) -> dict[str, Any]:
        each: dict[str, Any] = self._each.options()  # type: ignore[attr-defined]
        return each

    @property
    def rule(self) -> str:
        return f"value must be a set of some of the schema's {self.size} values"


def _elements(value: Any) -> Iterable[Any]:
    """The elements of a set, however it was given."""
    if isinstance(value, str):  # a CSV column holds text
        return [part.strip() for part in value.split(";")] if value.strip() else []
    if not isinstance(value, Iterable) or isinstance(value, bytes | dict):
        raise TypeError
    return value
