"""Whole numbers: of a range, or of so many bits."""

from __future__ import annotations

from bisect import bisect_right
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
    """A whole number, each by itself or in bins.

    Args:
        low: the smallest number.
        high: the largest number, which belongs to it too.
        bins: how many equal ones, or the numbers with which they start; none by default.

    >>> Ordinal(18, 97, bins=16).code(23)
    1
    >>> Ordinal(18, 49, bins=[18, 25, 35]).labels()
    ['18 to 24', '25 to 34', '35 to 49']
    """

    low: int
    high: int
    bins: int | Sequence[int] | None = None
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
        self._settle_bins()
        if max(abs(self.low), abs(self.high)) > LARGEST_INTEGER:
            raise InvalidInput(
                "low and high must lie within 2^53, so that every language can read the plan"
            )
        self._settle_other()

    def _settle_bins(self) -> None:
        """Refuse what are no bins of the range, and keep a list of starts as a tuple."""
        if self.bins is None:
            return
        if isinstance(self.bins, int):
            span = self.high - self.low + 1
            if isinstance(self.bins, bool) or not 2 <= self.bins <= span:
                raise InvalidInput(
                    f"bins ({self.bins}) must lie between 2 and the number of integers in the range"
                )
            return
        rule = (
            f"bins ({self.bins}) must be a number of bins, or a list of at least 2 rising whole "
            f"numbers, from low ({self.low}) to at most high ({self.high}), with which they start"
        )
        if not isinstance(self.bins, Sequence | np.ndarray):
            raise InvalidInput(rule)
        starts = tuple(plain(start) for start in self.bins)
        if any(isinstance(start, bool) or not isinstance(start, int) for start in starts):
            raise InvalidInput(rule)
        is_rising = all(one < next_one for one, next_one in pairwise(starts))
        if len(starts) < 2 or not is_rising or starts[0] != self.low or starts[-1] > self.high:
            raise InvalidInput(rule)
        object.__setattr__(self, "bins", starts)

    @property
    def size(self) -> int:
        if isinstance(self.bins, Sequence):
            return len(self.bins)
        return self.bins or self.high - self.low + 1

    @property
    def starts(self) -> Sequence[int]:
        """The smallest number of each code."""
        if isinstance(self.bins, Sequence):
            return self.bins
        if self.bins is None:
            return range(self.low, self.high + 1)
        return [self._start(code) for code in range(self.bins)]

    def _start(self, code: int) -> int:
        if isinstance(self.bins, Sequence):
            return self.bins[code]
        # of equal bins the least x with floor((x - low) size / span) = code
        return self.low - (-code * (self.high - self.low + 1) // self.size)

    def code(self, value: Any) -> int:
        whole = whole_number(value)
        if not self.low <= whole <= self.high:
            raise ValueError
        if isinstance(self.bins, Sequence):
            return bisect_right(self.bins, whole) - 1
        return (whole - self.low) * self.size // (self.high - self.low + 1)

    def codes(self, column: NDArray[Any]) -> Codes:
        if column.dtype.kind not in "iu":
            return super().codes(column)
        offsets = interval_codes(column, self.low, self.high)
        if self.bins is None:
            return offsets
        if isinstance(self.bins, Sequence):
            found = np.searchsorted(np.array(self.bins, np.int64), column, side="right")
            return (found - 1).astype(np.uint64)
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
        return [(start, end - 1) for start, end in pairwise([*self.starts, self.high + 1])]

    def options(self) -> dict[str, Any]:
        bins = list(self.bins) if isinstance(self.bins, Sequence) else self.bins
        return {"low": self.low, "high": self.high, "bins": bins, **self._other_option()}

    def _written(self, code: int) -> Label:
        return self._start(code)

    @property
    def rule(self) -> str:
        return f"value is outside the schema's range ({self.low} to {self.high}, whole numbers)"


@dataclass(frozen=True)
class Integer(Single):
    """A whole number of up to 128 bits, such as an address or a hash: nobody can list them all.

    Args:
        bits: how many bits the largest number has.

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
