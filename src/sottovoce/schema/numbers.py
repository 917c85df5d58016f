"""Whole numbers: of a range, or of so many bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import LARGEST_INTEGER
from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.attribute import (
    MOST_LABELS,
    MOST_SPELLED,
    Codes,
    Label,
    Single,
    Words,
    interval_codes,
    plain,
    whole_number,
)


@dataclass(frozen=True)
class Ordinal(Single):
    """A whole number from ``low`` to ``high``, ends included; in equal ``bins``, or each integer.

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
            object.__setattr__(self, field_name, plain(getattr(self, field_name)))
        whole_ends = all(
            isinstance(end, int) and not isinstance(end, bool) for end in (self.low, self.high)
        )
        if not whole_ends or self.high <= self.low:
            raise InvalidInput(
                f"high ({self.high}) must be an integer greater than low ({self.low})"
            )
        whole_bins = self.bins is None or (
            isinstance(self.bins, int) and not isinstance(self.bins, bool)
        )
        if not whole_bins or (
            self.bins is not None and not 2 <= self.bins <= self.high - self.low + 1
        ):
            raise InvalidInput(
                f"bins ({self.bins}) must lie between 2 and the number of integers in the range"
            )
        if max(abs(self.low), abs(self.high)) > LARGEST_INTEGER:
            raise InvalidInput(
                "low and high must lie within 2^53, so that every language can read the plan"
            )
        self._settle_other()

    @property
    def size(self) -> int:
        return self.bins or self.high - self.low + 1

    def code(self, value: Any) -> int:
        whole = whole_number(value)
        if not self.low <= whole <= self.high:
            raise ValueError
        return (whole - self.low) * self.size // (self.high - self.low + 1)

    def codes(self, column: NDArray[Any]) -> Codes:
        if column.dtype.kind not in "iu":
            return super().codes(column)
        offsets = interval_codes(column, self.low, self.high)
        if self.bins is None:
            return offsets
        if (self.high - self.low) * self.bins >= 1 << 63:
            return super().codes(column)
        return offsets * np.uint64(self.bins) // np.uint64(self.high - self.low + 1)

    def labels(self) -> Sequence[Label]:
        if self.bins is None:
            return range(self.low, self.high + 1)
        return [
            str(first) if first == last else f"{first} to {last}" for first, last in self.spans()
        ]

    def spans(self) -> Sequence[tuple[int, int]]:
        count, width = self.size, self.high - self.low + 1
        first = [self.low - (-code * width // count) for code in range(count + 1)]
        return [(start, end - 1) for start, end in pairwise(first)]

    def options(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "bins": self.bins, **self._other_option()}

    def _written(self, code: int) -> Label:
        # the smallest number of its bin
        return self.low - (-code * (self.high - self.low + 1) // self.size)

    @property
    def rule(self) -> str:
        return f"value is outside the schema's range ({self.low} to {self.high}, whole numbers)"


@dataclass(frozen=True)
class Integer(Single):
    """A whole number of up to 128 bits, such as an address or a hash: nobody can list them all.

    >>> Integer(bits=32).code(7)
    7
    """

    bits: int
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bits", plain(self.bits))
        if (
            not isinstance(self.bits, int)
            or isinstance(self.bits, bool)
            or not 1 <= self.bits <= MOST_SPELLED
        ):
            raise InvalidInput(f"bits ({self.bits}) must be an integer from 1 to {MOST_SPELLED}")
        self._settle_other()
        if self.other is not None and int(self.other) > LARGEST_INTEGER:
            raise InvalidInput(
                "other must lie within 2^53, so that every language can read the plan"
            )

    @property
    def size(self) -> int:
        return 1 << self.bits

    def code(self, value: Any) -> int:
        whole = whole_number(value)
        if not 0 <= whole < self.size:
            raise ValueError
        return whole

    def codes(self, column: NDArray[Any]) -> Codes:
        if column.dtype.kind in "iu":
            return interval_codes(column, 0, self.size - 1)
        return super().codes(column)

    def spelled(self, number: int) -> Label | None:
        return number if 0 <= number < self.size else None

    def spell_column(self, column: NDArray[Any]) -> Words:
        if column.dtype.kind not in "iu":
            return super().spell_column(column)
        return np.stack([np.zeros(len(column), np.uint64), self.codes(column)], axis=1)

    def labels(self) -> Sequence[Label]:
        return range(self.size) if self.size <= MOST_LABELS else super().labels()

    def spans(self) -> Sequence[tuple[int, int]] | None:
        if self.size > MOST_LABELS:
            return None
        return [(number, number) for number in range(self.size)]

    def options(self) -> dict[str, Any]:
        return {"bits": self.bits, **self._other_option()}

    def _written(self, code: int) -> Label:
        return code

    @property
    def rule(self) -> str:
        return f"value must be a whole number of at most {self.bits} bits"
