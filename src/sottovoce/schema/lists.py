"""Values that can be listed: yes or no, and one of a known list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from sottovoce.ground.arguments import LARGEST_INTEGER
from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.attribute import Codes, Label, Single, interval_codes, plain, whole_number


@dataclass(frozen=True)
class Boolean(Single):
    """Yes or no.

    >>> Boolean().code(True)
    1
    """

    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle_other()

    @property
    def size(self) -> int:
        return 2

    def code(self, value: Any) -> int:
        if isinstance(value, str):
            return {"false": 0, "true": 1, "no": 0, "yes": 1, "0": 0, "1": 1}[value.strip().lower()]
        if value not in (0, 1):
            raise ValueError
        return 1 if value == 1 else 0

    def labels(self) -> Sequence[Label]:
        return (False, True)

    def _written(self, code: int) -> Label:
        return code == 1

    def options(self) -> dict[str, Any]:
        return self._other_option()


@dataclass(frozen=True)
class Categorical(Single):
    """One of a known list of values (strings or integers).

    ``other``: the one of them that is reported for a person whose value is not in the list.

    Args:
        values: the values, in order.

    >>> Categorical(["red", "green"]).code("green")
    1
    >>> Categorical(["red", "green", "other"], other="other").other
    'other'
    """

    values: Sequence[Label]
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        super().__post_init__()
        values = (
            self.values
            if isinstance(self.values, range)
            else tuple(plain(value) for value in self.values)
        )
        if len(values[:2]) < 2:
            raise InvalidInput("values must be at least 2")
        ends = (values[0], values[-1]) if isinstance(values, range) else values
        if any(isinstance(value, int) and abs(value) > LARGEST_INTEGER for value in ends):
            raise InvalidInput(
                "values must lie within 2^53, so that every language can read the plan"
            )
        if not isinstance(values, range):
            wrong = [value for value in values if not isinstance(value, str | int)]
            if wrong:
                raise InvalidInput("values must be strings or integers (plans hold no floats)")
            if len(set(values)) < len(values):
                raise InvalidInput("values must be distinct")
        object.__setattr__(self, "values", values)
        lookup = (
            None
            if isinstance(values, range)
            else {value: code for code, value in enumerate(values)}
        )
        object.__setattr__(self, "_lookup", lookup)
        self._settle_other()

    @property
    def size(self) -> int:
        return len(self.values)

    def code(self, value: Any) -> int:
        value = plain(value)
        lookup: dict[Label, int] | None = self._lookup  # type: ignore[attr-defined]
        if lookup is None:
            return self.values.index(whole_number(value))
        if isinstance(value, bool) and not any(isinstance(known, bool) for known in lookup):
            raise ValueError
        if value not in lookup and isinstance(value, str):
            return lookup[int(value)]  # a CSV column holds text
        return lookup[value]

    def codes(self, column: NDArray[Any]) -> Codes:
        if isinstance(self.values, range) and self.values.step == 1 and column.dtype.kind in "iu":
            return interval_codes(column, self.values.start, self.values.stop - 1)
        return super().codes(column)

    def labels(self) -> Sequence[Label]:
        return self.values

    def spans(self) -> Sequence[tuple[int, int]] | None:
        numbers = [each for each in self.values if isinstance(each, int)]
        if len(numbers) < self.size or any(isinstance(each, bool) for each in numbers):
            return None
        return [(number, number) for number in numbers]

    def options(self) -> dict[str, Any]:
        if isinstance(self.values, range):
            return {
                "range": [self.values.start, self.values.stop, self.values.step],
                **self._other_option(),
            }
        return {"values": list(self.values), **self._other_option()}

    def _written(self, code: int) -> Label:
        return self.values[code]
